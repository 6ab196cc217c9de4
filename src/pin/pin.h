/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pinning, the counterpart of ib_umem_get() and ib_umem_release(). Nothing is really pinned, as the engine accesses a
 * client's memory through its address space. But the same ranges are refused, and the same pages are charged against
 * RLIMIT_MEMLOCK.
 */
#ifndef UVD_PIN_H
#define UVD_PIN_H

#include <infiniband/verbs.h>
#include <uverbsd/config.h>
#include <uverbsd/mm.h>

struct uvd_caller;
struct uvd_mm_table;
struct uvd_why;

/*
 * Checks and charges [addr, addr + length) for `access` (enum ibv_access_flags), and fills *umem, which then has a
 * reference to the address space. Returns 0, or the first of these errors, in the order of ib_umem_get() (rules umem-01
 * to umem-09). `memlock` (uvd_device_config.memlock) tells which limit holds: the caller's RLIMIT_MEMLOCK, as in the
 * kernel, none, or that many bytes.
 *   -EINVAL  the range wraps;
 *   -EPERM   RLIMIT_MEMLOCK is 0 and the caller lacks CAP_IPC_LOCK: *why, as below;
 *   -EINVAL  the range has no pages, or more than UINT_MAX;
 *   -ENOMEM  the pages charged to the caller's address space, plus those that the kernel has pinned for it (VmPin),
 *            would exceed the limit: *why (why may be NULL) has used, asked and limit;
 *   -EFAULT  a page of the range is not mapped with the permission that is needed.
 * Other errors are those of looking up the caller (-ESRCH, -EINTR, -ENOMEM). A failed call leaves no charge.
 *
 * With ON_DEMAND, as ib_umem_odp_get() (rule umem-10): charges nothing, and looks at the range only when it is used
 * (uvd_mm_check());
 *   -EINVAL  implicit (addr 0, length ~0) with HUGETLB;
 *   -EOVERFLOW  the range wraps;
 *   -EINVAL  no pages.
 * With any other result *why has no reason.
 */
int uvd_pin(struct uvd_mm_table *mms, struct uvd_caller *c, struct uvd_why *why, uint64_t memlock, uint64_t addr,
	    uint64_t length, unsigned int access, struct uvd_umem *umem);
/* Uncharges the address space that uvd_pin() charged, whichever process calls, and puts the reference. */
void uvd_unpin(struct uvd_umem *umem);
/* The kernel has pinned and charged this memory for the client: ends our charge, as uvd_pin() adds the kernel's. */
void uvd_pin_by_kernel(struct uvd_umem *umem);

/* Do these IBV_ACCESS_* need a writable mapping? As ib_access_writable(). */
bool uvd_mr_access_writable(unsigned int access);

/*
 * Would Linux 6.1 pin every page of [addr, addr + length)? write: for writing. Returns 0 or -EFAULT. Uses PROCMAP_QUERY
 * (Linux 6.11) where the kernel has it, else the text of /proc/TID/maps; the cost grows with mappings, not pages. A
 * mapping that is not writable passes only if it is private, and for reading only. A file's pages must exist. *shared
 * (or NULL): is any mapping shared?
 */
int uvd_check_range(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool *shared);

#endif
