/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address handles. */
#include "objects/internal.h"

struct ah_args {
	struct uvd_uobject *uobj;
	struct uvd_pd *pd;
	struct ibv_ah_attr attr;
	uint64_t user_handle;
	uint32_t pd_handle;
};

static int ah_decode_create(struct uvd_req *req)
{
	struct ah_args *args = uvd_args(req, struct ah_args);
	struct ib_uverbs_create_ah cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->user_handle = cmd.user_handle;
	args->pd_handle = cmd.pd_handle;
	args->attr.dlid = cmd.attr.dlid;
	args->attr.sl = cmd.attr.sl;
	args->attr.src_path_bits = cmd.attr.src_path_bits;
	args->attr.static_rate = cmd.attr.static_rate;
	args->attr.port_num = cmd.attr.port_num;
	args->attr.is_global = !!cmd.attr.is_global;
	if (!cmd.attr.is_global)
		return 0;
	memcpy(args->attr.grh.dgid.raw, cmd.attr.grh.dgid, sizeof(cmd.attr.grh.dgid));
	args->attr.grh.flow_label = cmd.attr.grh.flow_label;
	args->attr.grh.sgid_index = cmd.attr.grh.sgid_index;
	args->attr.grh.hop_limit = cmd.attr.grh.hop_limit;
	args->attr.grh.traffic_class = cmd.attr.grh.traffic_class;
	return 0;
}

static int ah_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_AH, &uvd_args(req, struct ah_args)->uobj);
}

static int ah_check_port(struct uvd_req *req)
{
	uint8_t port = uvd_args(req, struct ah_args)->attr.port_num;

	return uvd_check_range_of(req, "port_num", port, 1, req->dev->config.num_ports);
}

static int ah_find_pd(struct uvd_req *req)
{
	struct ah_args *args = uvd_args(req, struct ah_args);

	return uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->pd);
}

static int check_av(struct uvd_req *req)
{
	return uvd_check_av(req, "attr", &uvd_args(req, struct ah_args)->attr);
}

static int create_ah(struct uvd_req *req)
{
	struct ah_args *args = uvd_args(req, struct ah_args);
	struct uvd_ah *ah = uvd_zalloc(uvd_ops(req)->size_ah);
	int ret;

	if (!ah)
		return -ENOMEM;
	ah->pd = args->pd;
	ah->attr = args->attr;
	ret = uvd_ops(req)->create_ah(ah, uvd_req_udata(req));
	if (ret) {
		free(ah);
		return ret;
	}
	atomic_fetch_add(&ah->pd->usecnt, 1);
	args->uobj->user_handle = args->user_handle;
	uvd_uobject_set_object(args->uobj, ah);
	return 0;
}

static int ah_answer_create(struct uvd_req *req)
{
	struct ib_uverbs_create_ah_resp resp = { .ah_handle = uvd_args(req, struct ah_args)->uobj->id };

	return uvd_core_out(req, &resp);
}

static int destroy_ah(struct uvd_req *req)
{
	struct ib_uverbs_destroy_ah cmd;
	int ret = uvd_core_in(req, &cmd);

	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_AH, cmd.ah_handle, NULL);
}

static int ah_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_ah *ah = uobj->object;
	int ret = uvd_uobject_ops(uobj)->destroy_ah(ah);

	if (ret)
		return ret;
	atomic_fetch_sub(&ah->pd->usecnt, 1);
	return uvd_object_free(uobj);
}

static const uvd_step ah_create_steps[] = {
	ah_decode_create, ah_new_handle, ah_check_port, ah_find_pd, check_av, create_ah, ah_answer_create, NULL,
};
static const uvd_step ah_destroy_steps[] = { destroy_ah, NULL };

static const struct uvd_write_row ah_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_CREATE_AH, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_create_ah),
		  sizeof(struct ib_uverbs_create_ah_resp), ah_create_steps),
	UVD_WRITE(IB_USER_VERBS_CMD_DESTROY_AH, 0, sizeof(struct ib_uverbs_destroy_ah), 0, ah_destroy_steps),
};

static const struct uvd_attr_row ah_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_AH_HANDLE, UVERBS_OBJECT_AH, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row ah_methods[] = {
	UVD_METHOD(UVERBS_METHOD_AH_DESTROY, ah_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_ah = {
	.name = "UVERBS_OBJECT_AH",
	.id = UVERBS_OBJECT_AH,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(ah),
	.destroy = ah_destroy_uobj,
	UVD_ROWS(methods, ah_methods),
	UVD_ROWS(writes, ah_writes),
	.needs = { UVD_OP(create_ah), UVD_OP(destroy_ah) },
};
