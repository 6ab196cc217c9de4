/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uverbsd/log.h>

#include "client/client.h"
#include "pin/pin.h"

#define HUGE_PAGE (2ull << 20) /* the kernel's HPAGE_SIZE on x86-64 */

bool uvd_mr_access_writable(unsigned int access)
{
	return access &
	       (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

/* Users of RDMA ask about this failure most often, so the line has every number and the remedy. */
static void log_over_limit(struct uvd_log *log, struct uvd_caller *c, const struct uvd_identity *id, uint64_t used,
			   uint64_t asked, uint64_t limit)
{
	uint64_t kib = sysconf(_SC_PAGESIZE) / 1024;

	uvd_log_limited(log, UVD_WARN,
			"%s (pid %d, uid %u): no more memory can be registered (ENOMEM): "
			"%" PRIu64 " KiB (%" PRIu64 " pages) in use, %" PRIu64 " KiB (%" PRIu64 " pages) asked for, "
			"RLIMIT_MEMLOCK is %" PRIu64 " KiB (%" PRIu64 " pages); raise it: "
			"\"ulimit -l unlimited\" in the shell, memlock in /etc/security/limits.conf, "
			"or LimitMEMLOCK=infinity in the systemd unit",
			id->comm, (int)id->tgid, id->uid, used * kib, used, asked * kib, asked, limit * kib, limit);
}

/* Charges the pages to mm if the limit allows it. Returns 0 or a negative errno. */
static int umem_charge(struct uvd_mm *mm, struct uvd_caller *c, struct uvd_log *log, uint64_t pages,
		       uint64_t limit_bytes)
{
	uint64_t sum, limit = limit_bytes / sysconf(_SC_PAGESIZE);
	struct uvd_identity id;
	int err;

	sum = uvd_mm_charge(mm, pages);
	if (limit_bytes == (uint64_t)RLIM_INFINITY)
		return 0;
	err = uvd_caller_identity(c, &id);
	if (!err) {
		/* Add what real adapters have pinned for the process: the kernel has one sum for both. */
		sum += id.vm_pin_pages;
		if (sum <= limit || uvd_caller_capable_as(c, &id, CAP_IPC_LOCK))
			return 0;
		log_over_limit(log, c, &id, sum - pages, pages, limit);
		err = -ENOMEM;
	}
	uvd_mm_charge(mm, -(int64_t)pages);
	return err;
}

/* As ib_umem_odp_get(): nothing is pinned, so nothing is charged. The mappings are checked when the memory is used. */
static int pin_on_demand(struct uvd_mm_table *mms, struct uvd_caller *c, uint64_t addr, uint64_t length,
			 unsigned int access, struct uvd_umem *umem)
{
	uint64_t page = access & IBV_ACCESS_HUGETLB ? HUGE_PAGE : (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end = addr + length, aligned_end = (end + page - 1) & -page;
	struct uvd_mm *mm;
	int err;

	if (!addr && length == UINT64_MAX) {
		if (access & IBV_ACCESS_HUGETLB)
			return -EINVAL;
	} else if (end < addr || aligned_end < page) {
		return -EOVERFLOW;
	} else if (aligned_end == (addr & -page)) {
		return -EINVAL;
	}
	mm = uvd_mm_get(mms, c);
	if (!mm)
		return -errno;
	err = uvd_mm_watch(mm, c);
	if (err) {
		uvd_mm_put(mm);
		return err;
	}
	*umem = (struct uvd_umem){
		.mm = mm,
		.addr = addr,
		.length = length,
		.writable = uvd_mr_access_writable(access),
		.shared = true, /* not known: it may be */
	};
	return 0;
}

int uvd_pin(struct uvd_mm_table *mms, struct uvd_caller *c, struct uvd_log *log, uint64_t addr, uint64_t length,
	    unsigned int access, struct uvd_umem *umem)
{
	uint64_t page = sysconf(_SC_PAGESIZE), end = addr + length, aligned_end = (end + page - 1) & -page;
	uint64_t pages = (aligned_end - (addr & -page)) / page, limit;
	bool writable = uvd_mr_access_writable(access), shared;
	struct uvd_mm *mm;
	int err;

	if (access & IBV_ACCESS_ON_DEMAND)
		return pin_on_demand(mms, c, addr, length, access, umem);
	if (end < addr || aligned_end < end)
		return -EINVAL;
	err = uvd_caller_memlock(c, &limit);
	if (err)
		return err;
	if (!limit && !uvd_caller_capable(c, CAP_IPC_LOCK))
		return -EPERM;
	if (!pages || pages > UINT_MAX)
		return -EINVAL;

	mm = uvd_mm_get(mms, c);
	if (!mm)
		return -errno;
	err = umem_charge(mm, c, log, pages, limit);
	if (!err) {
		err = uvd_check_range(c, addr, length, writable, &shared);
		if (!err && shared)
			err = uvd_mm_watch(mm, c);
		if (err)
			uvd_mm_charge(mm, -(int64_t)pages);
	}
	if (err) {
		uvd_mm_put(mm);
		return err;
	}
	*umem = (struct uvd_umem){
		.mm = mm, .addr = addr, .length = length, .pages = pages, .writable = writable, .shared = shared
	};
	return 0;
}

void uvd_unpin(struct uvd_umem *umem)
{
	if (!umem->mm)
		return;
	uvd_mm_charge(umem->mm, -(int64_t)umem->pages);
	uvd_mm_put(umem->mm);
	memset(umem, 0, sizeof(*umem));
}
