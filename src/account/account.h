/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Accounts: how much of the daemon each user holds, and how much of it a user may hold.
 *
 * A charge is taken as the kernel's ucounts are (kernel/ucount.c): from the user, and from the owner of each user namespace
 * that the user is in. So a user with a range of mapped user ids does not get a share for each of them.
 *
 * Objects, memory and descriptors of an open file are charged to its opener; calls and loans of threads to the caller, as
 * descriptors may have been passed on. Under `uverbsctl run` the supervised process tree is one user.
 *
 * Every function may be called from any thread. Charges take no lock.
 */
#ifndef UVD_ACCOUNT_H
#define UVD_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct uvd_account; /* the user who pays, with the owners of the namespaces above; reference counted */
struct uvd_accounts; /* all users of one engine */
struct uvd_log;

/* The limits, in the order of the table in account.c. UVD_RES_OBJECT + UVERBS_OBJECT_*: objects of one type. */
enum uvd_resource {
	UVD_RES_FILES, /* open files of devices */
	UVD_RES_EVENT_FILES,
	UVD_RES_DESCRIPTORS, /* of ours */
	UVD_RES_BYTES, /* of our memory and of socket buffers */
	UVD_RES_CALLS, /* carried out at this moment; more wait in the user's queue */
	UVD_RES_LOANS, /* threads that are borrowed for a grant at this moment */
	UVD_RES_OBJECTS, /* of all types */
	UVD_RES_OBJECT, /* of one type: this one and the next UVD_MAX_COUNTED_TYPES - 1 */
	UVD_NUM_RES = UVD_RES_OBJECT + 24,
};

enum { UVD_MAX_COUNTED_TYPES = UVD_NUM_RES - UVD_RES_OBJECT, UVD_MAX_PAYERS = 34 /* 32 nested namespaces, and two */ };

/* One limit: its row in the table that options, log and status share. */
struct uvd_limit_row {
	const char *name; /* "files": the option is --limit-files, in a file `files` of [limits]. NULL: no such type */
	const char *what; /* for help: "open files of devices" */
	uint64_t value; /* the default, of each user */
	int err; /* negative errno of a call beyond it; 0: such a call waits, or does without */
};

extern const struct uvd_limit_row uvd_limit_rows[UVD_NUM_RES];

struct uvd_account_limits {
	uint64_t max[UVD_NUM_RES];
	bool limit_root; /* limits hold for user id 0, too */
};

/* Fills in the defaults. */
void uvd_account_limits_init(struct uvd_account_limits *limits);

/* limits: copied. log: the caller's, or NULL. NULL: no memory. */
struct uvd_accounts *uvd_accounts_new(const struct uvd_account_limits *limits, struct uvd_log *log);
/* All references are put. */
void uvd_accounts_free(struct uvd_accounts *accounts);

/*
 * The account of these users, with a reference: num from 1 to UVD_MAX_PAYERS, in the daemon's user namespace, the caller's
 * own first; one that is named twice counts once. NULL: no memory.
 */
struct uvd_account *uvd_account_get(struct uvd_accounts *accounts, const uid_t *uids, unsigned int num);
struct uvd_account *uvd_account_ref(struct uvd_account *account);
void uvd_account_put(struct uvd_account *account); /* NULL: nothing */
/* The first of its users. */
uid_t uvd_account_uid(const struct uvd_account *account);

/*
 * Charges n more. 0; or the limit's errno (uvd_limit_rows; -EAGAIN where that is 0), then nothing is charged, and the log has
 * one line that names the limit and its option. account NULL: 0, nothing is charged.
 */
int uvd_account_charge(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/* The same without the line. */
bool uvd_account_try(struct uvd_account *account, enum uvd_resource res, uint64_t n);
void uvd_account_uncharge(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/*
 * Processor time that we have spent for the account, which its outermost user other than root answers for. No limit depends
 * on it: it decides who gives way.
 */
void uvd_account_spend(struct uvd_account *account, uint64_t ns);
/* Has lately more been spent for that user than for the mean of those for whom some was? Never true for root, or for one alone. */
bool uvd_account_is_ahead(const struct uvd_account *account);
/*
 * The nice value of a thread that works for the account. If its user is ahead, all threads that work for him have together the
 * weight of two threads of nice 0, and not more. Two: a client and its peer, each with one call after the other, would otherwise
 * give way to every loop on the machine. more: threads that are no call and no loan.
 */
int uvd_account_nice(const struct uvd_account *account, unsigned int more);
/* Returns how much the first of the account's users holds now. */
uint64_t uvd_account_used(const struct uvd_account *account, enum uvd_resource res);

/*
 * For each user who holds something: user by user, resource by resource; max UINT64_MAX: the user is exempt. With the
 * table's lock: fn calls nothing here.
 */
void uvd_accounts_each(struct uvd_accounts *accounts,
		       void (*fn)(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max), void *arg);

#endif
