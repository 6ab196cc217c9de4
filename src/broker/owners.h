/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The owners of user namespaces, for accounts: NS_GET_OWNER_UID and NS_GET_PARENT (ioctl_ns(2)). */
#ifndef UVD_BROKER_OWNERS_H
#define UVD_BROKER_OWNERS_H

#include <sys/types.h>

/*
 * The owners of the user namespace that ns is open on and of those above it, up to our own, as seen from ours. Closes ns.
 * Returns how many, or a negative errno; -ENOSPC: more than max.
 */
int uvd_ns_owners(int ns, uid_t *uids, unsigned int max);

#endif
