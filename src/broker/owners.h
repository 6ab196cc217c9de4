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

#endif
