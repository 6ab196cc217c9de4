/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The owners of user namespaces, for accounts, by NS_GET_OWNER_UID and NS_GET_PARENT (ioctl_ns(2)). And shares of a table
 * whose entries belong to users: uvd_owners_may_take().
 */
#ifndef UVD_BROKER_OWNERS_H
#define UVD_BROKER_OWNERS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Stores the owners of the user namespace that ns is open on, and of its ancestors below our own namespace, as UIDs
 * in our namespace. Closes ns. Returns their number, or a negative errno; -ENOSPC: there are more than max.
 */
int uvd_ns_owners(int ns, uid_t *uids, unsigned int max);
/*
 * The same for the process at the other end of a Unix socket, by the number and the user id of SO_PEERCRED. The process
 * may have exited since it connected, and another may have its number. So one process must have this number, its user
 * namespace, and this id as its real, effective or saved user id; -ESRCH: it has not.
 */
int uvd_peer_owners(pid_t pid, uid_t uid, uid_t *uids, unsigned int max);
/* Returns a memfd with the ids, or a negative errno: a message has no room for them. */
int uvd_owners_pack(const uid_t *uids, unsigned int num);
/* Reads such a memfd, and closes it. Returns the number of ids, or a negative errno. */
int uvd_owners_unpack(int fd, uid_t *uids, unsigned int max);

enum { UVD_OWNERS_MAX = 34 /* the user, and the owners of 32 nested namespaces and of one more */ };

/* The users who are charged for an entry of a table, as an account's are (account/account.h). */
struct uvd_owners {
	unsigned int num;
	uid_t uid[UVD_OWNERS_MAX];
};

/*
 * Stores the real user of the thread, and the owners of its user namespace and of those above. Never waits for the thread.
 * Returns 0; -ESRCH: there is no such thread; or another negative errno. The caller makes sure that the number still stands
 * for the thread.
 */
int uvd_owners_of(pid_t tid, struct uvd_owners *owners);
bool uvd_owners_are(const struct uvd_owners *a, const struct uvd_owners *b);
/*
 * May these users take one more entry of a table of `all`? entry() returns the owners of an entry that counts; NULL: it is
 * free, or does not count. Each user other than root has a share. Root has none, but leaves the last quarter to others.
 */
bool uvd_owners_may_take(const struct uvd_owners *owners, unsigned int share, unsigned int all,
			 const struct uvd_owners *(*entry)(const void *table, unsigned int i), const void *table);

#endif
