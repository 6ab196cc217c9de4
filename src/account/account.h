/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Accounts: how much of the daemon each user holds, and how much of it a user may hold.
 *
 * As with the kernel's ucounts (kernel/ucount.c), a charge counts for the user and for the owner of each user namespace
 * that the user is in. So a user with a range of mapped user ids does not get one share for each of them.
 *
 * The opener of a file is charged for its objects, memory and descriptors. The caller is charged for calls and loans of
 * threads, as the file may have been passed to another user. Under `uverbsctl run` the supervised process tree is one
 * user.
 *
 * Every function may be called from any thread. Charges take no lock.
 */
#ifndef UVD_ACCOUNT_H
#define UVD_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct uvd_account; /* a user and the owners of the namespaces above, who pay together; reference counted */
struct uvd_quota; /* what each user may hold of one device; reference counted, see below */
struct uvd_accounts; /* all users of one engine */
struct uvd_log;

/* The accounts count and limit these resources: indices of uvd_limit_rows. UVD_RES_OBJECT + UVERBS_OBJECT_*: objects of one type. */
enum uvd_resource {
	UVD_RES_FILES, /* open files of devices */
	UVD_RES_EVENT_FILES,
	UVD_RES_DESCRIPTORS, /* descriptors of the daemon */
	UVD_RES_BYTES, /* bytes of the daemon's memory and of its socket buffers */
	UVD_RES_CALLS, /* calls in progress; more of them wait in the user's queue */
	UVD_RES_LOANS, /* threads on loan for a grant */
	UVD_RES_RINGS, /* rings of adapters' queues that the daemon has mapped */
	UVD_RES_REGISTERED, /* bytes of clients' memory, in whole pages, that their objects have pinned */
	UVD_RES_OBJECTS, /* objects of all types */
	UVD_RES_OBJECT, /* objects of one type: this value and the next UVD_MAX_COUNTED_TYPES - 1 */
	UVD_NUM_RES = UVD_RES_OBJECT + 24,
};

enum { UVD_MAX_COUNTED_TYPES = UVD_NUM_RES - UVD_RES_OBJECT, UVD_MAX_PAYERS = 34 /* 32 nested namespaces, and two */ };

/* One limit: a row of the table that options, log and status share. */
struct uvd_limit_row {
	const char *name; /* "files": option --limit-files, key `files` of [limits] in a file. NULL: no such type */
	const char *what; /* for help: "open files of devices" */
	uint64_t value; /* the default for each user; UINT64_MAX: no limit */
	int err; /* negative errno of a call beyond the limit; 0: the call waits, or goes on without */
};

extern const struct uvd_limit_row uvd_limit_rows[UVD_NUM_RES];

struct uvd_account_limits {
	uint64_t max[UVD_NUM_RES];
	bool limit_root; /* the limits apply to user id 0, too */
};

/* Are both accounts of the same user, whoever pays with him? NULL is nobody's. */
bool uvd_account_is_same(const struct uvd_account *a, const struct uvd_account *b);

/* Fills in the defaults. */
void uvd_account_limits_init(struct uvd_account_limits *limits);

/* Copies limits. log (or NULL) must stay valid; the caller owns it. Returns NULL if there is no memory. */
struct uvd_accounts *uvd_accounts_new(const struct uvd_account_limits *limits, struct uvd_log *log);
/* Call it once all references to accounts are put. NULL is allowed. */
void uvd_accounts_free(struct uvd_accounts *accounts);

/*
 * Returns a reference to a new account of these users; NULL: no memory. uids: num ids (1 to UVD_MAX_PAYERS) of the
 * daemon's user namespace, the client's own first. An id that occurs twice counts once.
 */
struct uvd_account *uvd_account_get(struct uvd_accounts *accounts, const uid_t *uids, unsigned int num);
struct uvd_account *uvd_account_ref(struct uvd_account *account);
void uvd_account_put(struct uvd_account *account); /* NULL is allowed */
/* Returns the id of its first user. */
uid_t uvd_account_uid(const struct uvd_account *account);

/*
 * Charges n more. Returns 0; or charges nothing, logs a line that names the limit and its option, and returns the
 * limit's errno (uvd_limit_rows; -EAGAIN where that is 0). With account NULL it returns 0 and charges nothing.
 */
int uvd_account_charge(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/* Why a charge was refused. */
struct uvd_refusal {
	const struct uvd_quota *quota; /* of a device; NULL: the limit is one of the whole daemon */
	uid_t uid; /* the user that would exceed it */
	enum uvd_resource res;
	uint64_t used, more, max; /* the user held `used` at that moment, and the charge was for `more` */
};

/* The same, with the reason. If that is a quota it logs nothing: the caller has to, as it knows the process. */
int uvd_account_charge_why(struct uvd_account *account, enum uvd_resource res, uint64_t n, struct uvd_refusal *why);
/* The same without the log line. Returns false if it charges nothing because of the limit. */
bool uvd_account_try(struct uvd_account *account, enum uvd_resource res, uint64_t n);
void uvd_account_uncharge(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/*
 * Records processor time that we have spent for the account. It counts for the account's outermost user other than
 * root. No limit depends on it; it only decides which users' threads run with lower priority.
 */
void uvd_account_spend(struct uvd_account *account, uint64_t ns);
/*
 * Is the time spent lately for that user above the mean of all users with time on record? Never true for root, or if
 * there is only one such user.
 */
bool uvd_account_is_ahead(const struct uvd_account *account);
/*
 * Returns the nice value for a thread that works for the account. It is 0 unless the account's user is ahead: then all
 * threads that work for that user together get at most about the weight of two threads of nice 0. With less than two, a
 * client and its peer that make one call after the other would run behind every busy loop on the machine. more: the
 * user's threads that are neither a call nor a loan.
 */
int uvd_account_nice(const struct uvd_account *account, unsigned int more);
/* Returns how much the first of the account's users holds now. */
uint64_t uvd_account_used(const struct uvd_account *account, enum uvd_resource res);

/*
 * Calls fn for each user and each resource of which the user holds some of the daemon. max is UINT64_MAX if the user is exempt. Holds
 * no lock meanwhile: what changes during the call may or may not be reported.
 */
void uvd_accounts_each(struct uvd_accounts *accounts,
		       void (*fn)(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max), void *arg);

/* ---- quotas of devices (quota.c) --------------------------------------------------------------------------------- */

/*
 * A quota says how much of one device each user may hold, or one named user. An administrator writes it as texts:
 *
 *	[user:NAME:]RESOURCE:N[,RESOURCE:N...]
 *
 * RESOURCE is a name of uvd_limit_rows: `objects`, `registered`, or that of a type of objects. N is a number, or
 * `unlimited`. A later text replaces the N of an earlier one for the same user and resource. For each resource the N of
 * the user counts, else that of everybody.
 *
 * The user is uvd_account_person(), so a user's processes share one quota whatever the ids of their user namespaces, and
 * root has a quota, too. One thread makes a struct uvd_quota, which is constant afterwards.
 */

/* Returns a quota without texts, with one reference; NULL: no memory. It copies the name of the device. */
struct uvd_quota *uvd_quota_new(const char *device);
struct uvd_quota *uvd_quota_ref(struct uvd_quota *quota);
void uvd_quota_put(struct uvd_quota *quota); /* NULL is allowed */
/* Adds a text. Returns NULL, or a message that says what is wrong with it, as in "`qps:x` contains ...". */
const char *uvd_quota_add(struct uvd_quota *quota, const char *text);
/* Returns a copy of a right text with the id of its user in the place of the name. NULL: no memory. */
char *uvd_quota_without_names(const char *text);
/* Is the text right? Returns NULL or the message. */
const char *uvd_quota_check(const char *text);
/* Returns how much the user may hold; UINT64_MAX: any amount. */
uint64_t uvd_quota_limit(const struct uvd_quota *quota, uid_t uid, enum uvd_resource res);
/* Writes the text that decides that: "user:1000:qps:16". */
void uvd_quota_text(const struct uvd_quota *quota, uid_t uid, enum uvd_resource res, char *text, size_t size);
const char *uvd_quota_device(const struct uvd_quota *quota);

/*
 * Returns a reference to a new account of the same users, whose charges also count against the quota; NULL: no memory. It
 * takes a reference to the quota.
 */
struct uvd_account *uvd_account_on_device(struct uvd_account *account, struct uvd_quota *quota);
/* As uvd_accounts_each(), for what users hold of devices, where a quota restricts it. */
void uvd_accounts_each_quota(struct uvd_accounts *accounts,
			     void (*fn)(void *arg, const char *device, uid_t uid, enum uvd_resource res, uint64_t used,
					uint64_t max),
			     void *arg);

#endif
