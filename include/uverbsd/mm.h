/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A client's memory: what a registration of it is, and how a backend accesses it. */
#ifndef UVERBSD_MM_H
#define UVERBSD_MM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <uverbsd/api.h>

struct uvd_mm; /* a client's address space, see below */

/* Memory that a client registered: struct ib_umem. */
struct uvd_umem {
	struct uvd_mm *mm; /* a reference; NULL: no memory is registered */
	uint64_t addr, length; /* bytes, in the client's address space */
	uint64_t pages; /* charged to the client's RLIMIT_MEMLOCK; 0: registered on demand */
	bool writable;
	bool shared; /* other address spaces may have mapped this memory; uvd_mm_find() says where it is */
};

/* The place of a byte of client memory, which is the same in every address space that has mapped it. */
struct uvd_mm_place {
	uint64_t space[2]; /* shared: device and inode of the file; else the address space, and 0 */
	uint64_t offset; /* bytes: in the file; else the address */
};

/*
 * An address space of a client. It can be accessed between the client's calls, too, until the last process leaves it.
 * An access can block for as long as the client likes (userfaultfd, FUSE), so the caller holds no lock that another
 * client needs.
 *
 * uvd_mm_ref() takes a reference and returns mm. uvd_mm_put() puts one; the last frees it. mm is not NULL. Any thread;
 * both take locks of the core only.
 */
UVD_API struct uvd_mm *uvd_mm_ref(struct uvd_mm *mm);
UVD_API void uvd_mm_put(struct uvd_mm *mm);
/* Returns false if all processes of the address space have exited, or left it by exec. */
UVD_API bool uvd_mm_alive(struct uvd_mm *mm);
/*
 * Copy exactly len bytes. Return 0, or -EFAULT: then some may have been copied. They only access the address space that
 * registered the memory, never a process that reused its pid or the program after an exec. They ignore page protection,
 * as access to pinned pages does.
 */
UVD_API int uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len);
UVD_API int uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len);
/* The same for num pieces of the client's memory, which are contiguous in dst or src. */
UVD_API int uvd_mm_readv(struct uvd_mm *mm, void *dst, const struct iovec *src, unsigned int num);
UVD_API int uvd_mm_writev(struct uvd_mm *mm, const struct iovec *dst, unsigned int num, const void *src);
/*
 * A view: the engine's own mapping of a region's memory, so that a transfer takes one copy and not two. It exists only
 * for memory that the client has mapped shared from a file without a disk (memfd, SysV, tmpfs, hugetlbfs). It stays
 * valid as pinned pages would, even if the client maps something else there. But the file can be truncated, which
 * raises SIGBUS: so only system calls and uvd_mm_view_copy() may access it.
 */
struct uvd_mm_view;
/* Returns a reference to the view of a region, or NULL if there cannot be one. Can block as uvd_mm_read() can. */
UVD_API struct uvd_mm_view *uvd_mm_view_get(const struct uvd_umem *umem);
UVD_API struct uvd_mm_view *uvd_mm_view_ref(struct uvd_mm_view *view);
UVD_API void uvd_mm_view_put(struct uvd_mm_view *view);
/* Returns where an address of the region lies in the view. */
UVD_API void *uvd_mm_view_at(const struct uvd_mm_view *view, uint64_t addr);
/* Is the client's mapping writable? */
UVD_API bool uvd_mm_view_writable(const struct uvd_mm_view *view);
/*
 * Copies len bytes; dst, src or both are in a view. Returns 0, or -EFAULT if the file has become shorter: then some may
 * have been copied.
 */
UVD_API int uvd_mm_view_copy(void *dst, const void *src, size_t len);
/*
 * For memory that was registered on demand: returns 0 if the client itself may read (write) all of [addr, addr + len)
 * now, else -EFAULT. Can block as uvd_mm_read() can.
 */
UVD_API int uvd_mm_check(struct uvd_mm *mm, uint64_t addr, size_t len, bool write);
/*
 * Sets *place to the place of a byte of a region's memory. Returns 0, or -EFAULT if nothing is mapped there. Can block
 * as uvd_mm_read() can.
 */
UVD_API int uvd_mm_find(const struct uvd_umem *umem, uint64_t addr, struct uvd_mm_place *place);

#endif
