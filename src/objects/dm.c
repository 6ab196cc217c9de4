/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memory. DM_MR_REG (mr_methods.c) registers regions of it. */
#include "objects/internal.h"

static int alloc_dm(struct uvd_req *req)
{
	const struct uvd_asker asker = { req->caller, req->name, false };
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_ALLOC_DM_HANDLE);
	struct uvd_dm *dm;
	int ret;

	if (!uvd_ops(req)->alloc_dm)
		return -EOPNOTSUPP;
	dm = uvd_zalloc(uvd_ops(req)->size_dm);
	if (!dm)
		return -ENOMEM;
	dm->context = uvd_req_ucontext(req);
	ret = uvd_attr_copy_from(req, UVERBS_ATTR_ALLOC_DM_LENGTH, &dm->length);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &dm->alignment);
	if (!ret)
		ret = uvd_uobject_hold(uobj, &asker, UVD_RES_DM_BYTES, dm->length);
	if (!ret)
		ret = uvd_ops(req)->alloc_dm(dm);
	if (ret) {
		free(dm);
		return ret;
	}
	uvd_uobject_set_object(uobj, dm);
	return 0;
}

static int dm_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_dm *dm = uobj->object;
	int ret = uvd_destroy_unused(uobj, dm, dealloc_dm);

	return ret ? ret : uvd_object_free(uobj);
}

static const uvd_step dm_alloc_steps[] = { alloc_dm, NULL };

static const struct uvd_attr_row dm_alloc_attrs[] = {
	UVD_IDR(UVERBS_ATTR_ALLOC_DM_HANDLE, UVERBS_OBJECT_DM, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_ALLOC_DM_LENGTH, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_attr_row dm_free_attrs[] = {
	UVD_IDR(UVERBS_ATTR_FREE_DM_HANDLE, UVERBS_OBJECT_DM, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row dm_methods[] = {
	UVD_METHOD(UVERBS_METHOD_DM_ALLOC, dm_alloc_attrs, dm_alloc_steps),
	UVD_METHOD(UVERBS_METHOD_DM_FREE, dm_free_attrs, NULL),
};

const struct uvd_object_row uvd_object_dm = {
	.name = "UVERBS_OBJECT_DM",
	.id = UVERBS_OBJECT_DM,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(dm),
	.destroy = dm_destroy_uobj,
	UVD_ROWS(methods, dm_methods),
	.needs = { UVD_OP(dealloc_dm) },
};
