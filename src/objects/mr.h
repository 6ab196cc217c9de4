/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared declarations of the memory region files. */
#ifndef UVD_OBJECTS_MR_H
#define UVD_OBJECTS_MR_H

#include "cpu/cpu.h"
#include "objects/internal.h"

enum {
	/* IB_ACCESS_SUPPORTED of Linux 6.1: LOCAL_WRITE to HUGETLB, and the bits that a device may ignore */
	UVD_MR_ACCESS_SUPPORTED = IB_UVERBS_ACCESS_OPTIONAL_RANGE | 0xff,
};

static inline uint64_t offset_in_page(uint64_t addr)
{
	return addr % uvd_cpu_page_size();
}

/* A registration of the client's memory, looked up and checked. */
struct uvd_mr_reg {
	struct uvd_pd *pd;
	struct uvd_dmah *dmah; /* or NULL */
	uint64_t start, length, iova;
	uint32_t access;
};

/*
 * Pins the memory, registers it with the backend, and makes the region uobj's object. 0, or a negative errno: nothing
 * is left.
 */
int uvd_reg_user_mr(struct uvd_req *req, struct uvd_uobject *uobj, const struct uvd_mr_reg *reg);
/*
 * Makes those checks of ib_umem_dmabuf_get() that are possible from outside the kernel (umem-11). -EINVAL: the range
 * wraps, is empty, or exceeds the dma-buf; or the errno of uvd_caller_dmabuf().
 */
int uvd_check_dmabuf(struct uvd_req *req, int fd, uint64_t offset, uint64_t length);
/* Makes mr, which the backend has registered, uobj's object, and counts it as a user of its PD, DM and DMA handle. */
void uvd_mr_made(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_mr *mr);

#endif
