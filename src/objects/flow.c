/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flow steering: rules that send packets to a QP. flow_spec.c parses their layers and actions. */
#include <linux/capability.h>
#include "objects/flow.h"

enum { FLOW_FLAGS_RESERVED = 1 << 3 };

struct flow_args {
	struct uvd_uobject *uobj;
	struct uvd_qp *qp;
	struct ib_uverbs_create_flow cmd;
	const void *specs; /* cmd.flow_attr.size bytes */
};

/* ---- decoding and checks ----------------------------------------------------------------------------------------- */

static int flow_check_attr(struct uvd_req *req, const struct ib_uverbs_flow_attr *attr)
{
	if (attr->flags >= FLOW_FLAGS_RESERVED)
		return uvd_bad(req, -EINVAL, "flags", attr->flags);
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP &&
	    (attr->type == IBV_FLOW_ATTR_ALL_DEFAULT || attr->type == IBV_FLOW_ATTR_MC_DEFAULT))
		return uvd_bad(req, -EINVAL, "type", attr->type);
	if (attr->num_of_specs > UVD_FLOW_MAX_SPECS)
		return uvd_bad(req, -EINVAL, "num_of_specs", attr->num_of_specs);
	if (attr->size > attr->num_of_specs * UVD_FLOW_MAX_SPEC_SIZE)
		return uvd_bad(req, -EINVAL, "size", attr->size);
	if (attr->reserved[0] || attr->reserved[1])
		return uvd_bad(req, -EINVAL, "reserved", attr->reserved[0] ? attr->reserved[0] : attr->reserved[1]);
	return 0;
}

static int flow_decode_create(struct uvd_req *req)
{
	struct flow_args *args = uvd_args(req, struct flow_args);
	struct ib_uverbs_create_flow *cmd = &args->cmd;
	struct uvd_core_iter iter;
	int ret = uvd_core_start(req, &iter, cmd);

	if (ret)
		return ret;
	if (cmd->comp_mask)
		return uvd_bad(req, -EINVAL, "comp_mask", cmd->comp_mask);
	if (!uvd_caller_capable(req->caller, CAP_NET_RAW))
		return uvd_bad(req, -EPERM, "CAP_NET_RAW", 0);
	ret = flow_check_attr(req, &cmd->flow_attr);
	if (!ret)
		ret = uvd_core_next(req, &iter, &args->specs, cmd->flow_attr.size);
	return ret ? ret : uvd_core_finish(req, &iter);
}

static int flow_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_FLOW, &uvd_args(req, struct flow_args)->uobj);
}

static int flow_check_port(struct uvd_req *req)
{
	uint8_t port = uvd_args(req, struct flow_args)->cmd.flow_attr.port;

	return uvd_port_valid(req->dev, port) ? 0 : uvd_bad(req, -EINVAL, "port", port);
}

static int flow_find_qp(struct uvd_req *req)
{
	struct flow_args *args = uvd_args(req, struct flow_args);
	int ret = uvd_req_object(req, UVERBS_OBJECT_QP, args->cmd.qp_handle, &args->qp);

	if (ret)
		return ret;
	if (args->qp->qp_type != IBV_QPT_UD && args->qp->qp_type != IBV_QPT_RAW_PACKET)
		return uvd_bad(req, -EINVAL, "qp_type", args->qp->qp_type);
	return 0;
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

static void flow_count_users(struct uvd_flow *flow, int n)
{
	atomic_fetch_add(&flow->qp->usecnt, n);
	atomic_fetch_add(&flow->qp->flows, n);
	for (unsigned int i = 0; i < flow->num_specs; i++) {
		if (flow->specs[i].type == IBV_FLOW_SPEC_ACTION_HANDLE)
			atomic_fetch_add(&flow->specs[i].action->usecnt, n);
		else if (flow->specs[i].type == IBV_FLOW_SPEC_ACTION_COUNT)
			atomic_fetch_add(&flow->specs[i].counters->usecnt, n);
	}
}

static struct uvd_flow *new_flow(struct uvd_req *req)
{
	struct flow_args *args = uvd_args(req, struct flow_args);
	const struct ib_uverbs_flow_attr *attr = &args->cmd.flow_attr;
	struct uvd_flow *flow = uvd_zalloc(uvd_ops(req)->size_flow);

	if (!flow)
		return NULL;
	flow->qp = args->qp;
	flow->type = attr->type;
	flow->flags = attr->flags;
	flow->priority = attr->priority;
	flow->port = attr->port;
	flow->num_specs = attr->num_of_specs;
	if (flow->num_specs) {
		if (uvd_uobject_charge(args->uobj, flow->num_specs * sizeof(flow->specs[0]))) {
			free(flow);
			return NULL;
		}
		flow->specs = uvd_zalloc(flow->num_specs * sizeof(flow->specs[0]));
		if (!flow->specs) {
			free(flow);
			return NULL;
		}
	}
	return flow;
}

static int create_flow(struct uvd_req *req)
{
	struct flow_args *args = uvd_args(req, struct flow_args);
	struct uvd_flow *flow = new_flow(req);
	int ret;

	if (!flow)
		return -ENOMEM;
	ret = uvd_flow_parse_specs(req, args->specs, args->cmd.flow_attr.size, flow->specs, flow->num_specs);
	if (!ret) {
		ret = uvd_ops(req)->create_flow(flow, uvd_req_udata(req));
		if (ret)
			uvd_refused(req, ret);
	}
	if (ret) {
		free(flow->specs);
		free(flow);
		return ret;
	}
	flow_count_users(flow, 1);
	uvd_uobject_set_object(args->uobj, flow);
	return 0;
}

static int flow_answer_create(struct uvd_req *req)
{
	struct ib_uverbs_create_flow_resp resp = { .flow_handle = uvd_args(req, struct flow_args)->uobj->id };

	return uvd_core_out(req, &resp);
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

static int flow_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_flow *flow = uobj->object;
	int ret = uvd_uobject_ops(uobj)->destroy_flow(flow);

	if (ret)
		return ret;
	flow_count_users(flow, -1);
	free(flow->specs);
	return uvd_object_free(uobj);
}

static int flow_destroy_write(struct uvd_req *req)
{
	struct ib_uverbs_destroy_flow cmd;
	int ret = uvd_core_in(req, &cmd);

	if (!ret && cmd.comp_mask)
		ret = uvd_bad(req, -EINVAL, "comp_mask", cmd.comp_mask);
	return ret ? ret : uvd_req_destroy(req, UVERBS_OBJECT_FLOW, cmd.flow_handle, NULL);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step flow_create_steps[] = {
	flow_decode_create, flow_new_handle, flow_check_port, flow_find_qp, create_flow, flow_answer_create, NULL,
};
static const uvd_step flow_destroy_steps[] = { flow_destroy_write, NULL };

static const struct uvd_write_row flow_writes[] = {
	UVD_WRITE(IB_USER_VERBS_EX_CMD_CREATE_FLOW, UVD_WRITE_EX | UVD_WRITE_UDATA,
		  sizeof(struct ib_uverbs_create_flow), sizeof(struct ib_uverbs_create_flow_resp), flow_create_steps,
		  UVD_OP(create_flow)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_DESTROY_FLOW, UVD_WRITE_EX | UVD_WRITE_UDATA,
		  sizeof(struct ib_uverbs_destroy_flow), 0, flow_destroy_steps, UVD_OP(destroy_flow)),
};

static const struct uvd_attr_row flow_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_FLOW_HANDLE, UVERBS_OBJECT_FLOW, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row flow_methods[] = {
	UVD_METHOD(UVERBS_METHOD_FLOW_DESTROY, flow_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_flow = {
	.name = "UVERBS_OBJECT_FLOW",
	.id = UVERBS_OBJECT_FLOW,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(flow),
	.destroy = flow_destroy_uobj,
	UVD_ROWS(methods, flow_methods),
	UVD_ROWS(writes, flow_writes),
	.needs = { UVD_OP(destroy_flow) },
};
