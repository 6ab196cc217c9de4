/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* DMA handles (Linux 6.17): hints how the device shall access memory. REG_MR can name one for its region. */
#include <uverbsd/uapi_later.h>
#include "objects/internal.h"

enum { PH_MASK = 3 /* PCIe 6.2, TLP processing hints */ };

/* Fills dmah from the optional attributes, and checks them in the kernel's order. */
static int dmah_decode(struct uvd_req *req, struct uvd_dmah *dmah)
{
	int ret;

	ret = uvd_attr_copy_from(req, UVERBS_ATTR_ALLOC_DMAH_CPU_ID, &dmah->cpu_id);
	if (ret && ret != -ENOENT)
		return ret;
	dmah->has_cpu_id = !ret;
	if (dmah->has_cpu_id) {
		ret = uvd_caller_may_run_on(req->caller, dmah->cpu_id);
		if (ret)
			return uvd_bad(req, ret, "cpu_id", dmah->cpu_id);
	}
	ret = uvd_attr_enum_id(req, UVERBS_ATTR_ALLOC_DMAH_TPH_MEM_TYPE);
	dmah->has_mem_type = ret >= 0;
	if (dmah->has_mem_type)
		dmah->mem_type = ret;
	ret = uvd_attr_copy_from(req, UVERBS_ATTR_ALLOC_DMAH_PH, &dmah->ph);
	if (ret && ret != -ENOENT)
		return ret;
	dmah->has_ph = !ret;
	return dmah->ph & ~PH_MASK ? uvd_bad(req, -EINVAL, "ph", dmah->ph) : 0;
}

static int alloc_dmah(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_ALLOC_DMAH_HANDLE);
	struct uvd_dmah *dmah = uvd_zalloc(uvd_ops(req)->size_dmah);
	int ret;

	if (!dmah)
		return -ENOMEM;
	dmah->context = uvd_req_ucontext(req);
	ret = dmah_decode(req, dmah);
	if (!ret)
		ret = uvd_ops(req)->alloc_dmah(dmah);
	if (ret) {
		free(dmah);
		return ret;
	}
	uvd_uobject_set_object(uobj, dmah);
	return 0;
}

static int dmah_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_dmah *dmah = uobj->object;
	int ret = uvd_destroy_unused(uobj, dmah, dealloc_dmah);

	return ret ? ret : uvd_object_free(uobj);
}

static const uvd_step dmah_alloc_steps[] = { alloc_dmah, NULL };

/* The element that the client chooses is the value. The elements have no data. */
static const struct uvd_attr_row mem_types[] = {
	{ .name = "TPH_MEM_TYPE_VM", .id = 0, .type = UVD_ATTR_PTR_IN },
	{ .name = "TPH_MEM_TYPE_PM", .id = 1, .type = UVD_ATTR_PTR_IN },
};

static const struct uvd_attr_row dmah_alloc_attrs[] = {
	UVD_IDR(UVERBS_ATTR_ALLOC_DMAH_HANDLE, UVERBS_OBJECT_DMAH, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_ALLOC_DMAH_CPU_ID, sizeof(uint32_t), 0),
	UVD_ENUM_IN(UVERBS_ATTR_ALLOC_DMAH_TPH_MEM_TYPE, mem_types, 0),
	UVD_PTR_IN(UVERBS_ATTR_ALLOC_DMAH_PH, sizeof(uint8_t), 0),
};

static const struct uvd_attr_row dmah_free_attrs[] = {
	UVD_IDR(UVERBS_ATTR_FREE_DMA_HANDLE, UVERBS_OBJECT_DMAH, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row dmah_methods[] = {
	UVD_METHOD(UVERBS_METHOD_DMAH_ALLOC, dmah_alloc_attrs, dmah_alloc_steps),
	UVD_METHOD(UVERBS_METHOD_DMAH_FREE, dmah_free_attrs, NULL),
};

const struct uvd_object_row uvd_object_dmah = {
	.name = "UVERBS_OBJECT_DMAH",
	.id = UVERBS_OBJECT_DMAH,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(dmah),
	.destroy = dmah_destroy_uobj,
	UVD_ROWS(methods, dmah_methods),
	.needs = { UVD_OP(dealloc_dmah), UVD_OP(alloc_dmah) },
};
