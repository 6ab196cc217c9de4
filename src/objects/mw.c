/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows. Binding one is a work request. */
#include "objects/internal.h"

struct mw_args {
	struct uvd_uobject *uobj;
	struct uvd_pd *pd;
	uint32_t pd_handle;
	uint8_t type;
};

static int mw_decode_alloc(struct uvd_req *req)
{
	struct mw_args *args = uvd_args(req, struct mw_args);
	struct ib_uverbs_alloc_mw cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->pd_handle = cmd.pd_handle;
	args->type = cmd.mw_type;
	return 0;
}

static int mw_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_MW, &uvd_args(req, struct mw_args)->uobj);
}

static int mw_find_pd(struct uvd_req *req)
{
	struct mw_args *args = uvd_args(req, struct mw_args);

	return uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->pd);
}

static int mw_check_type(struct uvd_req *req)
{
	uint8_t type = uvd_args(req, struct mw_args)->type;

	return type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2 ? 0 : uvd_bad(req, -EINVAL, "mw_type", type);
}

static int alloc_mw(struct uvd_req *req)
{
	struct mw_args *args = uvd_args(req, struct mw_args);
	struct uvd_mw *mw = uvd_zalloc(uvd_ops(req)->size_mw);
	int ret;

	if (!mw)
		return -ENOMEM;
	mw->pd = args->pd;
	mw->type = args->type;
	ret = uvd_ops(req)->alloc_mw(mw, uvd_req_udata(req));
	if (ret) {
		free(mw);
		return ret;
	}
	atomic_fetch_add(&mw->pd->usecnt, 1);
	uvd_uobject_set_object(args->uobj, mw);
	return 0;
}

static int mw_answer_alloc(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct mw_args)->uobj;
	struct ib_uverbs_alloc_mw_resp resp = {
		.mw_handle = uobj->id,
		.rkey = ((struct uvd_mw *)uobj->object)->rkey,
	};

	return uvd_core_out(req, &resp);
}

static int dealloc_mw(struct uvd_req *req)
{
	struct ib_uverbs_dealloc_mw cmd;
	int ret = uvd_core_in(req, &cmd);

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_MW, cmd.mw_handle, NULL);
}

static int mw_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_mw *mw = uobj->object;
	int ret = uvd_uobject_ops(uobj)->dealloc_mw(mw);

	if (ret)
		return ret;
	atomic_fetch_sub(&mw->pd->usecnt, 1);
	return uvd_object_free(uobj);
}

static const uvd_step mw_alloc_steps[] = {
	mw_decode_alloc, mw_new_handle, mw_find_pd, mw_check_type, alloc_mw, mw_answer_alloc, NULL,
};
static const uvd_step mw_dealloc_steps[] = { dealloc_mw, NULL };

static const struct uvd_write_row mw_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_ALLOC_MW, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_alloc_mw),
		  sizeof(struct ib_uverbs_alloc_mw_resp), mw_alloc_steps, UVD_OP(alloc_mw)),
	UVD_WRITE(IB_USER_VERBS_CMD_DEALLOC_MW, 0, sizeof(struct ib_uverbs_dealloc_mw), 0, mw_dealloc_steps,
		  UVD_OP(dealloc_mw)),
};

static const struct uvd_attr_row mw_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_MW_HANDLE, UVERBS_OBJECT_MW, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row mw_methods[] = {
	UVD_METHOD(UVERBS_METHOD_MW_DESTROY, mw_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_mw = {
	.name = "UVERBS_OBJECT_MW",
	.id = UVERBS_OBJECT_MW,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(mw),
	.destroy = mw_destroy_uobj,
	UVD_ROWS(methods, mw_methods),
	UVD_ROWS(writes, mw_writes),
	.needs = { UVD_OP(dealloc_mw) },
};
