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
#include <stddef.h>
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
	UVD_RES_PARKED, /* calls that wait for an event, without a thread */
	UVD_RES_LOANS, /* threads on loan for a grant */
	UVD_RES_RINGS, /* rings of adapters' queues that the daemon has mapped */
	UVD_RES_CONNECTIONS, /* to the control socket, that have not become a trace or a meter */
	UVD_RES_TRACES, /* traces that are being read from the control socket */
	UVD_RES_METERS, /* counts of calls that are being read from it */
	UVD_RES_CM_IDS, /* identifiers of the connection manager */
	UVD_RES_FLIGHT, /* packets on the wire that wait for an answer. Charged also beyond the limit: see backends/soft/wire */
	UVD_RES_INBOX, /* packets from the wire that wait for a thread */
	UVD_RES_REGISTERED, /* bytes of clients' memory, in whole pages, that their objects have pinned */
	UVD_RES_DM_BYTES, /* bytes of device memory */
	UVD_RES_NAMED_XRCDS, /* XRC domains that a file stands for, which clients share: see struct uvd_payers */
	UVD_RES_ATTACHMENTS, /* pairs of a QP and a multicast group */
	UVD_RES_MEMBERS, /* those of one group. Not charged: the core counts them, and asks for the limit */
	UVD_RES_OBJECTS, /* objects of all types */
	UVD_RES_OBJECT, /* objects of one type: this value and the next UVD_MAX_COUNTED_TYPES - 1 */
	UVD_NUM_RES = UVD_RES_OBJECT + 24,
};

enum { UVD_MAX_COUNTED_TYPES = UVD_NUM_RES - UVD_RES_OBJECT, UVD_MAX_PAYERS = 34 /* 32 nested namespaces, and two */ };

/* The kinds of limits that a resource can have for all users together. */
enum uvd_whole_kind {
	UVD_WHOLE_NONE, /* nothing: no row may say so */
	UVD_WHOLE_DEVICE, /* an attribute of each device */
	UVD_WHOLE_CONFIG, /* a field of each device's struct uvd_limits */
	UVD_WHOLE_EACH_DEVICE, /* a constant for each device */
	UVD_WHOLE_DAEMON, /* a constant for the daemon */
	UVD_WHOLE_DESCRIPTORS, /* the daemon's RLIMIT_NOFILE */
	UVD_WHOLE_MEMORY, /* the machine's memory */
	UVD_WHOLE_OTHER, /* only another resource, of which each costs one or more */
	UVD_WHOLE_CLIENTS, /* it is not the daemon's: the kernel limits it for the client */
};

struct uvd_whole {
	enum uvd_whole_kind kind;
	size_t offset, size; /* of the attribute or the field */
	const char *option; /* that sets it for a device: "max-qp"; NULL: none does */
	uint64_t number; /* the constant, or the other resource */
};

/* Constants of the table: how much there is for all users together. */
enum {
	UVD_WHOLE_WORKERS = 256, /* threads of a node */
	UVD_WHOLE_CALLS = UVD_WHOLE_WORKERS - 32, /* of them, those that calls may occupy */
	UVD_WHOLE_PARKED = 4096, /* calls that wait for an event */
	UVD_WHOLE_CM_IDS = 65536, /* identifiers of the connection manager */
	UVD_WHOLE_FLIGHT = 16384, /* packets without an answer: 256 full windows */
	UVD_WHOLE_INBOX = 65536, /* packets that wait for threads: some 300 MB */
	UVD_WHOLE_LOANS = 256, /* threads that lend out clients' threads, and the broker's children for them */
	UVD_WHOLE_RINGS = 16382, /* of an adapter: a quarter of the kernel's vm.max_map_count, 65530 by default */
	UVD_WHOLE_CONNECTIONS = 64, /* to the control socket, without root's */
	UVD_WHOLE_TRACES = 4,
	UVD_WHOLE_METERS = 8,
	UVD_WHOLE_NUMBERS = 1 << 24, /* numbers of QPs and SRQs, indices of keys */
	UVD_WHOLE_NAMED_XRCDS = 1024, /* each costs the engine a descriptor */
	UVD_SHARE_CLOSES = 8, /* of one user */
};

/* Both limits of one resource: a row of the table that options, log, status and QUERY_DEVICE share. */
struct uvd_limit_row {
	const char *name; /* "files": option --limit-files, key `files` of [limits] in a file. NULL: no such type */
	const char *what; /* for help: "open files of devices" */
	/* The default for each user, of all devices together; UINT64_MAX: none. A device's quarter holds beside it. */
	uint64_t value;
	int err; /* negative errno of a call beyond the limit; 0: the call waits, or goes on without */
	struct uvd_whole whole;
};

extern const struct uvd_limit_row uvd_limit_rows[UVD_NUM_RES];

/* Limits that no account counts and no option changes. Ends with a row whose `what` is NULL. */
struct uvd_fixed_share {
	const char *what;
	uint64_t whole, share; /* share: of one user */
};

extern const struct uvd_fixed_share uvd_fixed_shares[];

struct ibv_device_attr_ex;
struct uvd_limits;

/* The share of one user: a quarter, but at least one if there is any. */
uint64_t uvd_limit_share(uint64_t whole);
/* Returns how much the daemon has. UINT64_MAX: the daemon has no such limit. */
uint64_t uvd_limit_of_daemon(enum uvd_resource res);
/* Returns how much a device with these attributes and this configuration has. UINT64_MAX: a device has no such limit. */
uint64_t uvd_limit_of_device(enum uvd_resource res, const struct ibv_device_attr_ex *attr,
			     const struct uvd_limits *limits);

/* In uvd_account_limits.max: nobody has set it. */
#define UVD_LIMIT_DEFAULT (UINT64_MAX - 1)

struct uvd_account_limits {
	uint64_t max[UVD_NUM_RES]; /* as set by the administrator, or UVD_LIMIT_DEFAULT */
	bool limit_root; /* the limits apply to user id 0, too */
	bool one_user; /* the engine serves one user, who may have all: there are no shares */
};

/* Fills in the defaults. */
void uvd_account_limits_init(struct uvd_account_limits *limits);
/* Returns how much each user may hold of all devices together. UINT64_MAX: any amount. */
uint64_t uvd_account_limit(const struct uvd_account_limits *limits, enum uvd_resource res);
/* Returns how much each user may hold of a device with these attributes and this configuration. UINT64_MAX: any amount. */
uint64_t uvd_account_device_share(const struct uvd_account_limits *limits, enum uvd_resource res,
				  const struct ibv_device_attr_ex *attr, const struct uvd_limits *device);

/* Are both accounts of the same user, whoever pays with him? NULL is nobody's. */
bool uvd_account_is_same(const struct uvd_account *a, const struct uvd_account *b);

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
/* Stores the ids of its users, `max` at most. Returns their number; 0 for the account NULL. */
unsigned int uvd_account_uids(const struct uvd_account *account, uid_t *uids, unsigned int max);
/* Is this user one of those who pay? */
bool uvd_account_names(const struct uvd_account *account, uid_t uid);

/*
 * Charges n more. Returns 0; or charges nothing, logs a line that names the limit and its option, and returns the
 * limit's errno (uvd_limit_rows; -EAGAIN where that is 0). With account NULL it returns 0 and charges nothing.
 */
int uvd_account_charge(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/* Why a charge was refused. */
struct uvd_refusal {
	const struct uvd_quota *quota; /* of a device; NULL: it is a limit of --limit-NAME */
	const char *device; /* valid as long as the account: of its share; NULL: of all devices together */
	uid_t uid; /* the user that would exceed it */
	enum uvd_resource res;
	uint64_t used, more, max; /* the user held `used` at that moment, and the charge was for `more` */
};

/* The same, with the reason. It logs nothing: the caller has to, as it knows the process. */
int uvd_account_charge_why(struct uvd_account *account, enum uvd_resource res, uint64_t n, struct uvd_refusal *why);
/* The same for what no account counts: would n more than `used` be too many? Charges nothing. */
int uvd_account_check_why(const struct uvd_account *account, enum uvd_resource res, uint64_t used, uint64_t n,
			  struct uvd_refusal *why);
/* Logs the refusal of a charge that is of no call. A quota's is not logged: the account does not know the device's log. */
void uvd_account_log_refusal(const struct uvd_account *account, const struct uvd_refusal *why);
/* The errno of a call that is refused so. */
int uvd_refusal_errno(const struct uvd_refusal *why);
/* uvd_account_charge() without the log line. Returns false if it charges nothing because of the limit. */
bool uvd_account_try(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/* The same; if it returns false, *why has the reason. */
bool uvd_account_try_why(struct uvd_account *account, enum uvd_resource res, uint64_t n, struct uvd_refusal *why);
/* Charges n more, also beyond the limit. */
void uvd_account_charge_anyway(struct uvd_account *account, enum uvd_resource res, uint64_t n);
/* Could n be charged if the users held nothing? */
bool uvd_account_may_hold(const struct uvd_account *account, enum uvd_resource res, uint64_t n);
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
/*
 * Returns the most that the account may hold: the least of its users' limits, of their shares of the device and of its
 * quota. NULL is nobody's. UINT64_MAX: any amount.
 */
uint64_t uvd_account_most(const struct uvd_account *account, enum uvd_resource res);
/* Stores what the user with the least room holds, and may hold. max: UINT64_MAX: any amount. NULL is nobody's. */
void uvd_account_room(const struct uvd_account *account, enum uvd_resource res, uint64_t *used, uint64_t *max);
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
 * RESOURCE is a name of uvd_limit_rows from `registered` on: what a device has. N is a number, or
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
 * Sets what each user may hold of the device beside the quota, but root unless limit_root says so: uvd_account_device_share().
 * Call it before the quota has accounts.
 */
void uvd_quota_set_shares(struct uvd_quota *quota, const struct uvd_accounts *accounts,
			  const struct ibv_device_attr_ex *attr, const struct uvd_limits *device);
uint64_t uvd_quota_share(const struct uvd_quota *quota, enum uvd_resource res);
/* For account.c. */
const struct uvd_account_limits *uvd_accounts_limits(const struct uvd_accounts *accounts);

/*
 * Returns a reference to a new account of the same users, whose charges also count against the quota; NULL: no memory. It
 * takes a reference to the quota.
 */
struct uvd_account *uvd_account_on_device(struct uvd_account *account, struct uvd_quota *quota);
/* As uvd_accounts_each(), for what users hold of devices, where a quota or a share restricts it. */
void uvd_accounts_each_quota(struct uvd_accounts *accounts,
			     void (*fn)(void *arg, const char *device, uid_t uid, enum uvd_resource res, uint64_t used,
					uint64_t max),
			     void *arg);

/* ---- what users share (payers.c) --------------------------------------------------------------------------------- */

/*
 * The users that hold one thing, such as a named XRC domain. It exists until the last of them lets go of it, so each of
 * them pays for a whole one: otherwise a user could keep what others have to pay for. Caller locks it. All zeros: nobody.
 */
struct uvd_payers {
	struct uvd_payer *first;
};

/*
 * The account holds the thing once more. If nobody else of its uvd_account_person() does, charges the account 1 of res,
 * and keeps a reference to it. Returns 0, -ENOMEM, or the errno of the charge (see uvd_account_charge_why()): then
 * nothing has changed. account may be NULL: nobody pays.
 */
int uvd_payers_add(struct uvd_payers *payers, struct uvd_account *account, enum uvd_resource res,
		   struct uvd_refusal *why);
/* The account holds it once less: the last of its person gets the charge back. */
void uvd_payers_drop(struct uvd_payers *payers, const struct uvd_account *account, enum uvd_resource res);

#endif
