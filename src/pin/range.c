/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Would the kernel pin these pages? Linux 6.1 pins for writing always, and forces it where the registration itself only
 * reads. So:
 *   writable mapping                    passes;
 *   private mapping, not writable       passes for reading (the pages are copied), whatever its protection;
 *   shared mapping, not writable        never;
 *   [vvar], holes, beyond a file's end  never.
 * Not seen here: mappings of device memory by other drivers, which the kernel refuses.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/client.h"
#include "client/maps.h"
#include "client/proc.h"
#include "pin/pin.h"
#include "pin/range.h"

struct check {
	struct uvd_caller *c;
	bool write;
};

/* Can one byte be read there? An ordinary read of our own memory would be SIGBUS beyond a file's end. */
static int peek(struct uvd_caller *c, uint64_t addr)
{
	char byte;
	struct iovec local = { .iov_base = &byte, .iov_len = 1 };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = 1 };

	if (!uvd_caller_is_self(c))
		return uvd_caller_read(c, &byte, addr, 1);
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : -EFAULT;
}

/* The same, whatever the protection. */
static int peek_forced(struct uvd_caller *c, uint64_t addr)
{
	int memfd = uvd_proc_open(c, uvd_proc_tid(c), "mem", O_RDONLY), err;
	char byte;

	if (memfd < 0)
		return -EFAULT;
	err = uvd_memfd_read(memfd, &byte, addr, 1);
	close(memfd);
	return err;
}

static bool can_pin(const struct uvd_mapping *m, uint64_t end, void *arg)
{
	const struct check *check = arg;

	if (m->special)
		return false;
	if (!m->write && (check->write || m->shared))
		return false;
	/* Of a file, only the end can be missing: the last page tells for all of them. */
	return !m->file || !(m->read ? peek(check->c, end - 1) : peek_forced(check->c, end - 1));
}

int uvd_check_range_by(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool query)
{
	struct check check = { .c = c, .write = write };
	uint64_t page = sysconf(_SC_PAGESIZE);
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
	return err;
}

int uvd_check_range(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write)
{
	return uvd_check_range_by(c, addr, length, write, true);
}
