/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Access to the memory of an address space, and look-ups in its present mappings. */
#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uverbsd/mm.h>

#include "client/client.h"
#include "client/internal.h"
#include "util/util.h"
#include "client/maps.h"
#include "client/mm_internal.h"

enum {
	/*
	 * From this many bytes or pieces on, process_vm_readv() and process_vm_writev() are faster: /proc/PID/mem
	 * copies twice, page by page, and takes one piece a call.
	 */
	MM_BULK = 8192,
	MM_PIECES = 6,
};

bool uvd_mm_number_is_ours(struct uvd_mm *mm)
{
	struct pollfd ended = { .fd = mm->pidfd, .events = POLLIN };

	return !poll(&ended, 1, 0) && uvd_mm_alive(mm);
}

/* Returns false if the caller must copy through memfd, which ignores page protection. */
static bool bulk_copy(struct uvd_mm *mm, const struct iovec *pieces, unsigned int num, void *bytes, bool write)
{
	struct iovec local = { bytes, 0 };
	ssize_t n;

	for (unsigned int i = 0; i < num; i++)
		local.iov_len += pieces[i].iov_len;
	if ((local.iov_len < MM_BULK && num < MM_PIECES) || mm->pidfd < 0)
		return false;
	/*
	 * A read counts if bulk_tgid is still the client's process afterwards. A write cannot be undone, so check
	 * before it. An exec or exit between the check and the write goes unnoticed.
	 */
	if (write && !uvd_mm_number_is_ours(mm))
		return false;
	n = write ? process_vm_writev(mm->bulk_tgid, &local, 1, pieces, num, 0)
		  : process_vm_readv(mm->bulk_tgid, &local, 1, pieces, num, 0);
	return n == (ssize_t)local.iov_len && (write || uvd_mm_number_is_ours(mm));
}

int uvd_mm_readv(struct uvd_mm *mm, void *dst, const struct iovec *src, unsigned int num)
{
	uint8_t *at = dst;
	int err = 0;

	if (bulk_copy(mm, src, num, dst, false))
		return 0;
	for (unsigned int i = 0; !err && i < num; at += src[i++].iov_len)
		err = uvd_memfd_read(mm->memfd, at, (uintptr_t)src[i].iov_base, src[i].iov_len);
	return err;
}

int uvd_mm_writev(struct uvd_mm *mm, const struct iovec *dst, unsigned int num, const void *src)
{
	const uint8_t *at = src;
	int err = 0;

	if (bulk_copy(mm, dst, num, (void *)src, true))
		return 0;
	for (unsigned int i = 0; !err && i < num; at += dst[i++].iov_len)
		err = uvd_memfd_write(mm->memfd, (uintptr_t)dst[i].iov_base, at, dst[i].iov_len);
	return err;
}

int uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len)
{
	return uvd_mm_readv(mm, dst, &(struct iovec){ (void *)(uintptr_t)src, len }, 1);
}

int uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len)
{
	return uvd_mm_writev(mm, &(struct iovec){ (void *)(uintptr_t)dst, len }, 1, src);
}

/* ---- its present mappings ---------------------------------------------------------------------------------------- */

int uvd_mm_watch(struct uvd_mm *mm, struct uvd_caller *c)
{
	struct uvd_mapping m;
	struct uvd_maps maps;
	int err = 0;

	pthread_mutex_lock(&mm->maps_lock);
	if (mm->mapsfd < 0)
		err = uvd_maps_open(&maps, c, true);
	if (!err && mm->mapsfd < 0) {
		/* This look-up clears maps.query if the kernel lacks PROCMAP_QUERY. */
		(void)uvd_maps_find(&maps, 0, &m);
		mm->maps_query = maps.query;
		mm->mapsfd = uvd_fd_raise(maps.fd);
	}
	pthread_mutex_unlock(&mm->maps_lock);
	return err;
}

static bool mapping_allows(const struct uvd_mapping *m, uint64_t end, void *arg)
{
	/* As the kernel's page faults for devices: a write needs read permission, too. */
	return m->read && (m->write || !*(bool *)arg) && !m->special;
}

/* Without PROCMAP_QUERY, one thread at a time reads the text from its beginning. */
int uvd_mm_find_mapping(struct uvd_mm *mm, uint64_t addr, struct uvd_mapping *m)
{
	struct uvd_maps maps;
	int err = -EFAULT;

	uvd_maps_from_fd(&maps, mm->mapsfd, mm->maps_query);
	if (mm->maps_query)
		return uvd_maps_find(&maps, addr, m);
	pthread_mutex_lock(&mm->maps_lock);
	if (!lseek(maps.fd, 0, SEEK_SET))
		err = uvd_maps_find(&maps, addr, m);
	pthread_mutex_unlock(&mm->maps_lock);
	return err;
}

int uvd_mm_find(const struct uvd_umem *umem, uint64_t addr, struct uvd_mm_place *place)
{
	struct uvd_mapping m;

	*place = (struct uvd_mm_place){ { (uintptr_t)umem->mm }, addr };
	if (!umem->shared || umem->mm->mapsfd < 0)
		return 0;
	uvd_might_fault();
	if (uvd_mm_find_mapping(umem->mm, addr, &m) || m.start > addr)
		return -EFAULT;
	if (m.shared && m.file)
		*place = (struct uvd_mm_place){ { (uint64_t)m.dev_major << 32 | m.dev_minor, m.inode },
						addr - m.start + m.offset };
	return 0;
}

int uvd_mm_check(struct uvd_mm *mm, uint64_t addr, size_t len, bool write)
{
	int fd = mm->mapsfd, err = -EFAULT;
	struct uvd_maps maps;

	uvd_might_fault();
	if (fd < 0 || addr + len < addr)
		return -EFAULT;
	uvd_maps_from_fd(&maps, fd, mm->maps_query);
	if (mm->maps_query)
		return uvd_maps_all(&maps, addr, addr + len, mapping_allows, &write);
	pthread_mutex_lock(&mm->maps_lock);
	if (!lseek(fd, 0, SEEK_SET))
		err = uvd_maps_all(&maps, addr, addr + len, mapping_allows, &write);
	pthread_mutex_unlock(&mm->maps_lock);
	return err;
}
