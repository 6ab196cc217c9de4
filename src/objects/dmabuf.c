/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Dma-bufs that export the device's own memory (Linux after 6.18). */
#include <uverbsd/uapi_later.h>
#include "objects/internal.h"

/*
 * The kernel makes a dma-buf of the physical pages behind one of the device's mappings. A device in userspace has no
 * such pages, so this only checks that the offset is one of a mapping, and then fails with -EOPNOTSUPP.
 */
static int alloc_dmabuf(struct uvd_req *req)
{
	uint64_t pgoff, length;
	int ret;

	ret = uvd_attr_copy_from(req, UVERBS_ATTR_ALLOC_DMABUF_PGOFF, &pgoff);
	if (ret)
		return ret;
	ret = uvd_ops(req)->pgoff_to_mmap_entry(uvd_req_ucontext(req), pgoff, &length);
	return ret ? uvd_bad(req, ret, "pgoff", pgoff) : -EOPNOTSUPP;
}

static int dmabuf_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	return 0;
}

static const uvd_step dmabuf_alloc_steps[] = { alloc_dmabuf, NULL };

static const struct uvd_attr_row dmabuf_alloc_attrs[] = {
	UVD_FD(UVERBS_ATTR_ALLOC_DMABUF_HANDLE, UVERBS_OBJECT_DMABUF, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_ALLOC_DMABUF_PGOFF, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_method_row dmabuf_methods[] = {
	UVD_METHOD(UVERBS_METHOD_DMABUF_ALLOC, dmabuf_alloc_attrs, dmabuf_alloc_steps),
};

const struct uvd_object_row uvd_object_dmabuf = {
	.name = "UVERBS_OBJECT_DMABUF",
	.id = UVERBS_OBJECT_DMABUF,
	.cls = UVD_CLASS_FD,
	.destroy = dmabuf_destroy_uobj,
	UVD_ROWS(methods, dmabuf_methods),
	.needs = { UVD_OP(pgoff_to_mmap_entry) },
};
