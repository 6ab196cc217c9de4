/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Stubs of uvd_mm_*(): the client's memory is that of the test process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/backends/bed.h"

_Atomic uint64_t mm_bad, mm_bad_len, mm_ro, mm_ro_len;
_Atomic bool mm_gone;
void (*_Atomic mm_written)(void), (*_Atomic mm_failed)(void);
_Atomic uint64_t mm_slow, mm_slow_len;
atomic_bool mm_spins;
atomic_int mm_slowed, mm_bursts;

struct fake_view mm_views[MM_VIEWS];
atomic_int mm_viewed, mm_view_refs;

struct uvd_mm *uvd_mm_ref(struct uvd_mm *mm)
{
	return mm;
}

void uvd_mm_put(struct uvd_mm *mm)
{
}

bool uvd_mm_alive(struct uvd_mm *mm)
{
	return !mm_gone;
}

static bool meets(uint64_t addr, size_t len, uint64_t start, uint64_t start_len)
{
	return start_len && addr < start + start_len && start < addr + len;
}

static bool is_bad(uint64_t addr, size_t len)
{
	return meets(addr, len, mm_bad, mm_bad_len);
}

static void wait_if_slow(uint64_t addr, size_t len)
{
	if (!meets(addr, len, mm_slow, mm_slow_len))
		return;
	mm_slowed++;
	while (mm_slow_len)
		if (!mm_spins)
			usleep(100);
	mm_slowed--;
}

int uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len)
{
	if (is_bad(src, len))
		return -EFAULT;
	wait_if_slow(src, len);
	memcpy(dst, (void *)(uintptr_t)src, len);
	return 0;
}

int uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len)
{
	if (is_bad(dst, len)) {
		if (mm_failed)
			mm_failed();
		return -EFAULT;
	}
	/* A system call fails in the same way if it reads from the mapping of a truncated file. */
	if (is_bad((uintptr_t)src, len))
		return -EFAULT;
	wait_if_slow(dst, len);
	memcpy((void *)(uintptr_t)dst, src, len);
	if (mm_written)
		mm_written();
	return 0;
}

int uvd_mm_readv(struct uvd_mm *mm, void *dst, const struct iovec *src, unsigned int num)
{
	char *at = dst;

	mm_bursts++;
	for (unsigned int i = 0; i < num; at += src[i++].iov_len)
		if (uvd_mm_read(mm, at, (uintptr_t)src[i].iov_base, src[i].iov_len))
			return -EFAULT;
	return 0;
}

int uvd_mm_writev(struct uvd_mm *mm, const struct iovec *dst, unsigned int num, const void *src)
{
	const char *at = src;

	mm_bursts++;
	for (unsigned int i = 0; i < num; at += dst[i++].iov_len)
		if (uvd_mm_write(mm, (uintptr_t)dst[i].iov_base, at, dst[i].iov_len))
			return -EFAULT;
	return 0;
}

int uvd_mm_find(const struct uvd_umem *umem, uint64_t addr, struct uvd_mm_place *place)
{
	*place = (struct uvd_mm_place){ { 0 }, addr };
	return 0;
}

int uvd_mm_check(struct uvd_mm *mm, uint64_t addr, size_t len, bool write)
{
	return is_bad(addr, len) || (write && meets(addr, len, mm_ro, mm_ro_len)) ? -EFAULT : 0;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

struct uvd_mm_view {
	const struct fake_view *fake;
	atomic_int refs;
};

struct uvd_mm_view *uvd_mm_view_get(const struct uvd_umem *umem)
{
	struct uvd_mm_view *view;

	mm_viewed++;
	wait_if_slow(umem->addr, umem->length);
	for (const struct fake_view *fake = mm_views; fake < mm_views + MM_VIEWS; fake++)
		if (fake->len && umem->addr >= fake->addr && umem->addr + umem->length <= fake->addr + fake->len) {
			view = malloc(sizeof(*view));
			view->fake = fake;
			atomic_init(&view->refs, 1);
			mm_view_refs++;
			return view;
		}
	return NULL;
}

struct uvd_mm_view *uvd_mm_view_ref(struct uvd_mm_view *view)
{
	view->refs++;
	return view;
}

void uvd_mm_view_put(struct uvd_mm_view *view)
{
	if (--view->refs)
		return;
	free(view);
	mm_view_refs--;
}

void *uvd_mm_view_at(const struct uvd_mm_view *view, uint64_t addr)
{
	return view->fake->at + (addr - view->fake->addr);
}

bool uvd_mm_view_writable(const struct uvd_mm_view *view)
{
	return !view->fake->read_only;
}

int uvd_mm_view_copy(void *dst, const void *src, size_t len)
{
	if (is_bad((uintptr_t)src, len) || is_bad((uintptr_t)dst, len))
		return -EFAULT;
	wait_if_slow((uintptr_t)dst, len);
	memcpy(dst, src, len);
	return 0;
}
