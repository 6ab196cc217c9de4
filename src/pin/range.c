/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Would the kernel pin these pages? Linux 6.1 always pins for writing (FOLL_WRITE), with FOLL_FORCE where the
 * registration itself only reads. So:
 *   writable mapping                    passes;
 *   private mapping, not writable       passes for reading (the pages are copied), whatever its protection;
 *   shared mapping, not writable        never;
 *   [vvar], holes, beyond a file's end  never.
 * The kernel also refuses other drivers' mappings of device memory. We cannot recognize those.
 */
#include <errno.h>
#include <unistd.h>

#include "client/client.h"
#include "cpu/cpu.h"
#include "pin/internal.h"
#include "pin/pin.h"

struct check {
	struct uvd_caller *c;
	bool write, shared;
};

static bool can_pin(const struct uvd_mapping *m, uint64_t end, void *arg)
{
	struct check *check = arg;

	check->shared |= m->shared;
	if (m->special)
		return false;
	if (!m->write && (check->write || m->shared))
		return false;
	/* Only pages at the end of a file can be missing, so checking the last page is enough. */
	return !m->file || !(m->read ? uvd_caller_peek(check->c, end - 1) : uvd_caller_peek_forced(check->c, end - 1));
}

int uvd_check_range_by(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool query, bool *shared)
{
	struct check check = { .c = c, .write = write };
	uint64_t page = uvd_cpu_page_size();
	uint64_t end = (addr + length + page - 1) & -page;
	struct uvd_maps maps;
	int err;

	addr &= -page;
	if (end < addr)
		return -EFAULT;
	if (uvd_maps_open(&maps, c, query))
		return -EFAULT;
	err = uvd_maps_all(&maps, addr, end, can_pin, &check);
	uvd_maps_close(&maps);
	if (shared)
		*shared = check.shared;
	return err;
}

int uvd_check_range(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool *shared)
{
	return uvd_check_range_by(c, addr, length, write, true, shared);
}
