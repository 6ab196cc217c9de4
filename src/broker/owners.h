/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The owners of user namespaces, for accounts, by NS_GET_OWNER_UID and NS_GET_PARENT (ioctl_ns(2)). */
#ifndef UVD_BROKER_OWNERS_H
#define UVD_BROKER_OWNERS_H

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

#endif
