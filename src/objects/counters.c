/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counters objects: they count the packets of flows, and a QP's traffic (counters_bind.c). */
#include "objects/internal.h"

static int create_counters(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_COUNTERS_HANDLE);
	struct uvd_counters *counters;
	int ret;

	if (!uvd_ops(req)->create_counters)
		return -EOPNOTSUPP;
	counters = uvd_zalloc(uvd_ops(req)->size_counters);
	if (!counters)
		return -ENOMEM;
	counters->context = uvd_req_ucontext(req);
	ret = uvd_ops(req)->create_counters(counters);
	if (ret) {
		free(counters);
		return ret;
	}
	uvd_uobject_set_object(uobj, counters);
	return 0;
}

static int read_counters(struct uvd_req *req)
{
	struct uvd_counters *counters = uvd_attr_object(req, UVERBS_ATTR_READ_COUNTERS_HANDLE);
	uint64_t flags, *values;
	size_t num;
	int ret;

	if (!uvd_ops(req)->read_counters)
		return -EOPNOTSUPP;
	if (!atomic_load(&counters->usecnt))
		return uvd_bad(req, -EINVAL, "handle", uvd_attr_uobj(req, UVERBS_ATTR_READ_COUNTERS_HANDLE)->id);
	ret = uvd_attr_flags(req, UVERBS_ATTR_READ_COUNTERS_FLAGS, IB_UVERBS_READ_COUNTERS_PREFER_CACHED, &flags);
	if (ret)
		return ret;
	num = uvd_attr_len(req, UVERBS_ATTR_READ_COUNTERS_BUFF) / sizeof(*values);
	values = uvd_req_alloc(req, num * sizeof(*values));
	if (!values)
		return -ENOMEM;
	ret = uvd_ops(req)->read_counters(counters, values, num, flags);
	if (ret)
		return ret;
	return uvd_attr_copy_to_bytes(req, UVERBS_ATTR_READ_COUNTERS_BUFF, values, num * sizeof(*values));
}

static int counters_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_counters *counters = uobj->object;
	int ret = uvd_destroy_unused(uobj, counters, destroy_counters);

	return ret ? ret : uvd_object_free(uobj);
}

static const uvd_step counters_create_steps[] = { create_counters, NULL };
static const uvd_step counters_read_steps[] = { read_counters, NULL };

static const struct uvd_attr_row counters_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_COUNTERS_HANDLE, UVERBS_OBJECT_COUNTERS, UVD_UOBJ_NEW, UVD_MANDATORY),
};

static const struct uvd_attr_row counters_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, UVERBS_OBJECT_COUNTERS, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_attr_row counters_read_attrs[] = {
	UVD_IDR(UVERBS_ATTR_READ_COUNTERS_HANDLE, UVERBS_OBJECT_COUNTERS, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_READ_COUNTERS_BUFF, 0, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_READ_COUNTERS_FLAGS, 0),
};

static const struct uvd_method_row counters_methods[] = {
	UVD_METHOD(UVERBS_METHOD_COUNTERS_CREATE, counters_create_attrs, counters_create_steps),
	UVD_METHOD(UVERBS_METHOD_COUNTERS_DESTROY, counters_destroy_attrs, NULL),
	UVD_METHOD(UVERBS_METHOD_COUNTERS_READ, counters_read_attrs, counters_read_steps),
};

const struct uvd_object_row uvd_object_counters = {
	.name = "UVERBS_OBJECT_COUNTERS",
	.id = UVERBS_OBJECT_COUNTERS,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(counters),
	.destroy = counters_destroy_uobj,
	UVD_ROWS(methods, counters_methods),
	.needs = { UVD_OP(destroy_counters) },
};
