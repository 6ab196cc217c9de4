/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pinning: what ib_umem_get() and ib_umem_release() do. Nothing is really pinned (a client's memory is reached through
 * its address space), but the same ranges are refused, and the same pages are charged against RLIMIT_MEMLOCK.
 */
#ifndef UVD_PIN_H
#define UVD_PIN_H

#include <uverbsd/backend.h>

struct uvd_caller;
struct uvd_log;
struct uvd_mm_table;

/*
 * Checks and charges [addr, addr + length) for `access` (enum ibv_access_flags) and fills *umem. In this order, as
 * ib_umem_get (rules umem-01 to umem-09):
 *   -EINVAL  the range wraps;
 *   -EPERM   RLIMIT_MEMLOCK is 0 and the caller lacks CAP_IPC_LOCK;
 *   -EINVAL  no pages;
 *   -ENOMEM  our account of the caller's address space, with what its kernel has pinned (VmPin), would exceed the limit:
 *            logged with used, asked, limit, uid and program;
 *   -EFAULT  a page of the range is not mapped with the permission that is needed.
 * A failed call leaves no charge.
 *
 * ON_DEMAND is as ib_umem_odp_get (rule umem-10): no charge, and no look at the range until it is used (uvd_mm_check);
 *   -EINVAL  implicit (addr 0, length ~0) with HUGETLB;
 *   -EOVERFLOW  the range wraps;
 *   -EINVAL  no pages.
 */
int uvd_pin(struct uvd_mm_table *mms, struct uvd_caller *c, struct uvd_log *log, uint64_t addr, uint64_t length,
	    unsigned int access, struct uvd_umem *umem);
/* Credits the address space that was charged, whoever calls, and puts the reference. */
void uvd_unpin(struct uvd_umem *umem);

/* IBV_ACCESS_* that need a writable mapping: ib_access_writable(). */
bool uvd_access_writable(unsigned int access);

/*
 * Would Linux 6.1 pin every page of [addr, addr + length), for writing if asked for? 0 or -EFAULT. Reads PROCMAP_QUERY
 * (6.11) where the kernel has it, else /proc/TID/maps: the cost grows with mappings, not pages. A mapping that is not
 * writable passes only if it is private, and for reading only; a file's pages must exist. *shared (may be NULL): one is shared.
 */
int uvd_check_range(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool *shared);

#endif
