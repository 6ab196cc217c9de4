/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/client.h"
#include "cpu/cpu.h"
#include "explain/explain.h"
#include "pin/pin.h"
#include "util/util.h"

bool uvd_mr_access_writable(unsigned int access)
{
	return access &
	       (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

/* The name of a limit and the way to raise it, for messages. */
struct limit_text {
	const char *name, *remedy;
};

static const struct limit_text of_client = {
	"RLIMIT_MEMLOCK", "\"ulimit -l unlimited\" in the shell, memlock in /etc/security/limits.conf, "
			  "or LimitMEMLOCK=infinity in the systemd unit"
};
static const struct limit_text of_device = { "the device's limit (--memlock)", "--memlock unlimited, or more bytes" };

/* Users of RDMA ask about this failure most often, so the reason has every number and the remedy. */
static int over_limit(struct uvd_why *why, const struct limit_text *text, int err, uint64_t used, uint64_t asked,
		      uint64_t limit)
{
	const uint64_t kib = uvd_cpu_page_size() / 1024;

	if (why)
		*why = uvd_why(MEMLOCK, { asked * kib }, { used * kib }, { .word = text->name }, { limit * kib },
			       { .word = text->remedy });
	return err;
}

/* Charges the pages to mm if the limit allows it. Returns 0 or a negative errno. */
static int umem_charge(struct uvd_mm *mm, struct uvd_caller *c, struct uvd_why *why, uint64_t pages,
		       const struct limit_text *text, uint64_t limit_bytes)
{
	uint64_t sum, limit = limit_bytes / uvd_cpu_page_size();
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
		err = over_limit(why, text, -ENOMEM, sum - pages, pages, limit);
	}
	uvd_mm_charge(mm, -(int64_t)pages);
	return err;
}

/* As ib_umem_odp_get(): nothing is pinned, so nothing is charged. The mappings are checked when the memory is used. */
static int pin_on_demand(struct uvd_mm_table *mms, struct uvd_caller *c, uint64_t addr, uint64_t length,
			 unsigned int access, struct uvd_umem *umem)
{
	uint64_t page = access & IBV_ACCESS_HUGETLB ? uvd_cpu_huge_page() : uvd_cpu_page_size();
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

/* As can_do_mlock(), for a client whose RLIMIT_MEMLOCK is 0. Returns 0, -EPERM, or why that cannot be known. */
static int may_pin_any(struct uvd_caller *c, struct uvd_why *why, uint64_t pages)
{
	struct uvd_identity id;
	int err = uvd_caller_identity(c, &id);

	if (!err && !uvd_caller_capable_as(c, &id, CAP_IPC_LOCK))
		err = over_limit(why, &of_client, -EPERM, 0, pages, 0);
	return err;
}

int uvd_pin(struct uvd_mm_table *mms, struct uvd_caller *c, struct uvd_why *why, uint64_t memlock, uint64_t addr,
	    uint64_t length, unsigned int access, struct uvd_umem *umem)
{
	uint64_t page = uvd_cpu_page_size(), end = addr + length, aligned_end = (end + page - 1) & -page;
	uint64_t pages = (aligned_end - (addr & -page)) / page, limit = memlock;
	const bool writable = uvd_mr_access_writable(access), clients = memlock == UVD_MEMLOCK_CLIENT;
	struct uvd_mm *mm;
	bool shared;
	int err;

	if (why)
		why->reason = NULL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return pin_on_demand(mms, c, addr, length, access, umem);
	if (end < addr || aligned_end < end)
		return -EINVAL;
	err = clients ? uvd_caller_memlock(c, &limit) : 0;
	if (err)
		return err;
	err = limit ? 0 : may_pin_any(c, why, pages);
	if (err)
		return err;
	if (!pages || pages > UINT_MAX)
		return -EINVAL;

	mm = uvd_mm_get(mms, c);
	if (!mm)
		return -errno;
	err = umem_charge(mm, c, why, pages, clients ? &of_client : &of_device, limit);
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

void uvd_pin_by_kernel(struct uvd_umem *umem)
{
	uvd_mm_charge(umem->mm, -(int64_t)umem->pages);
	umem->pages = 0;
}
