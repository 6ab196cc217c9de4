/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains. */
#include "objects/internal.h"

struct pd_args {
	struct uvd_uobject *uobj;
};

static int pd_decode_alloc(struct uvd_req *req)
{
	struct ib_uverbs_alloc_pd cmd;

	return uvd_core_in(req, &cmd);
}

static int pd_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_PD, &uvd_args(req, struct pd_args)->uobj);
}

static int alloc_pd(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct pd_args)->uobj;
	struct uvd_pd *pd = uvd_zalloc(uvd_ops(req)->size_pd);
	int ret;

	if (!pd)
		return -ENOMEM;
	pd->context = uvd_req_ucontext(req);
	ret = uvd_ops(req)->alloc_pd(pd, uvd_req_udata(req));
	if (ret) {
		free(pd);
		return ret;
	}
	uvd_uobject_set_object(uobj, pd);
	return 0;
}

static int pd_answer_alloc(struct uvd_req *req)
{
	struct ib_uverbs_alloc_pd_resp resp = { .pd_handle = uvd_args(req, struct pd_args)->uobj->id };

	return uvd_core_out(req, &resp);
}

static int dealloc_pd(struct uvd_req *req)
{
	struct ib_uverbs_dealloc_pd cmd;
	int ret = uvd_core_in(req, &cmd);

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_PD, cmd.pd_handle, NULL);
}

static int pd_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_pd *pd = uobj->object;
	int ret = uvd_destroy_unused(uobj, pd, dealloc_pd);

	return ret ? ret : uvd_object_free(uobj);
}

static const uvd_step pd_alloc_steps[] = { pd_decode_alloc, pd_new_handle, alloc_pd, pd_answer_alloc, NULL };
static const uvd_step pd_dealloc_steps[] = { dealloc_pd, NULL };

static const struct uvd_write_row pd_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_ALLOC_PD, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_alloc_pd),
		  sizeof(struct ib_uverbs_alloc_pd_resp), pd_alloc_steps, UVD_OP(alloc_pd)),
	UVD_WRITE(IB_USER_VERBS_CMD_DEALLOC_PD, 0, sizeof(struct ib_uverbs_dealloc_pd), 0, pd_dealloc_steps,
		  UVD_OP(dealloc_pd)),
};

static const struct uvd_attr_row pd_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row pd_methods[] = {
	UVD_METHOD(UVERBS_METHOD_PD_DESTROY, pd_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_pd = {
	.name = "UVERBS_OBJECT_PD",
	.id = UVERBS_OBJECT_PD,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(pd),
	.destroy = pd_destroy_uobj,
	UVD_ROWS(methods, pd_methods),
	UVD_ROWS(writes, pd_writes),
	.needs = { UVD_OP(dealloc_pd) },
};
