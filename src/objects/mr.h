/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of memory regions share. */
#ifndef UVD_OBJECTS_MR_H
#define UVD_OBJECTS_MR_H

#include "objects/internal.h"

enum {
	UVD_PAGE_MASK = 4096 - 1,
	/* IB_ACCESS_SUPPORTED of Linux 6.1: LOCAL_WRITE to HUGETLB, and the bits that a device may ignore */
	UVD_ACCESS_SUPPORTED = IB_UVERBS_ACCESS_OPTIONAL_RANGE | 0xff,
};

/* A registration of the client's memory, looked up and checked. */
struct uvd_mr_reg {
	struct uvd_pd *pd;
	struct uvd_dmah *dmah; /* or NULL */
	uint64_t start, length, iova;
	uint32_t access;
};

/* Pins, registers, and makes the region uobj's object. */
int uvd_reg_user_mr(struct uvd_req *req, struct uvd_uobject *uobj, const struct uvd_mr_reg *reg);
/* ib_umem_dmabuf_get(): as much of it (umem-11) as can be seen from outside. 0 or a negative errno. */
int uvd_check_dmabuf(struct uvd_req *req, int fd, uint64_t offset, uint64_t length);
/* The region is registered: it becomes uobj's object, and holds its PD, DM and DMA handle. */
void uvd_mr_made(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_mr *mr);

#endif
