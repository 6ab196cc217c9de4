/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. POST_SRQ_RECV is in post.c. */
#include <uverbsd/uapi_later.h>
#include "objects/queue.h"
#include "objects/xrc.h"

struct srq_args {
	struct uvd_uobject *uobj;
	struct uvd_pd *pd;
	struct uvd_xrcd_handle *xrcd;
	struct uvd_cq *cq;
	struct ibv_srq_init_attr init;
	uint64_t user_handle;
	uint32_t type; /* enum ib_uverbs_srq_type */
	uint32_t pd_handle, cq_handle, xrcd_handle, max_num_tags;
};

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static int srq_decode_create(struct uvd_req *req)
{
	struct srq_args *args = uvd_args(req, struct srq_args);
	struct ib_uverbs_create_srq cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->user_handle = cmd.user_handle;
	args->type = IB_UVERBS_SRQT_BASIC;
	args->pd_handle = cmd.pd_handle;
	args->init.attr = (struct ibv_srq_attr){ cmd.max_wr, cmd.max_sge, cmd.srq_limit };
	return 0;
}

static int decode_create_xsrq(struct uvd_req *req)
{
	struct srq_args *args = uvd_args(req, struct srq_args);
	struct ib_uverbs_create_xsrq cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->user_handle = cmd.user_handle;
	args->type = cmd.srq_type;
	args->pd_handle = cmd.pd_handle;
	args->cq_handle = cmd.cq_handle;
	args->xrcd_handle = cmd.xrcd_handle;
	args->max_num_tags = cmd.max_num_tags;
	args->init.attr = (struct ibv_srq_attr){ cmd.max_wr, cmd.max_sge, cmd.srq_limit };
	return 0;
}

static int srq_decode_create_ioctl(struct uvd_req *req)
{
	struct srq_args *args = uvd_args(req, struct srq_args);
	struct ibv_srq_attr *attr = &args->init.attr;
	uint64_t type;
	int ret;

	ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &attr->max_sge);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &attr->max_wr);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_SRQ_LIMIT, &attr->srq_limit);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &args->user_handle);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_CREATE_SRQ_TYPE, UINT32_MAX, &type);
	if (ret)
		return ret;
	args->type = type;
	args->uobj = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_SRQ_HANDLE);
	args->pd = uvd_attr_object(req, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE);
	return 0;
}

/* ---- checks and look-ups ----------------------------------------------------------------------------------------- */

static bool has_cq(uint32_t type)
{
	return type == IB_UVERBS_SRQT_XRC || type == IB_UVERBS_SRQT_TM;
}

static int srq_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_SRQ, &uvd_args(req, struct srq_args)->uobj);
}

/* For write(): looks up what the type needs. The backend refuses unknown types, as the kernel's drivers do (srq-01). */
static int srq_find_objects(struct uvd_req *req)
{
	struct srq_args *args = uvd_args(req, struct srq_args);
	int ret = 0;

	if (args->type == IB_UVERBS_SRQT_XRC && uvd_req_object(req, UVERBS_OBJECT_XRCD, args->xrcd_handle, &args->xrcd))
		return uvd_bad(req, -EINVAL, "xrcd_handle", args->xrcd_handle);
	if (has_cq(args->type))
		ret = uvd_req_object(req, UVERBS_OBJECT_CQ, args->cq_handle, &args->cq);
	return ret ? ret : uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->pd);
}

static int srq_find_objects_ioctl(struct uvd_req *req)
{
	struct srq_args *args = uvd_args(req, struct srq_args);
	struct uvd_uobject *cq = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE);
	struct uvd_uobject *xrcd = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE);

	if (has_cq(args->type)) {
		if (!cq)
			return uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE");
		args->cq = cq->object;
	}
	switch (args->type) {
	case IB_UVERBS_SRQT_BASIC:
		return 0;
	case IB_UVERBS_SRQT_XRC:
		if (!xrcd)
			return uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE");
		args->xrcd = xrcd->object;
		return 0;
	case IB_UVERBS_SRQT_TM:
		return uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, &args->max_num_tags);
	default:
		return uvd_bad(req, -EINVAL, "srq_type", args->type);
	}
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static void srq_event_handler(struct uvd_srq *srq, enum ibv_event_type type)
{
	uvd_object_event(srq->owner, type);
}

static void srq_count_users(struct uvd_srq *srq, int n)
{
	atomic_fetch_add(&srq->pd->usecnt, n);
	if (srq->cq)
		atomic_fetch_add(&srq->cq->usecnt, n);
	if (srq->xrcd)
		atomic_fetch_add(&srq->xrcd->usecnt, n);
}

static int create_srq(struct uvd_req *req)
{
	struct srq_args *args = uvd_args(req, struct srq_args);
	struct uvd_uobject *uobj = args->uobj;
	struct uvd_srq *srq;
	int ret;

	srq = uvd_zalloc(uvd_ops(req)->size_srq);
	if (!srq)
		return -ENOMEM;
	/* The backend may report an event before create_srq() returns: set the fields that events use first. */
	uobj->user_handle = args->user_handle;
	uobj->event_file = uvd_req_async_file(req, UVERBS_ATTR_CREATE_SRQ_EVENT_FD);
	srq->pd = args->pd;
	srq->srq_type = (enum ibv_srq_type)args->type;
	srq->cq = args->cq;
	srq->xrcd = args->xrcd ? args->xrcd->xrcd : NULL;
	srq->max_num_tags = args->max_num_tags;
	srq->attr = args->init.attr;
	srq->event_handler = srq_event_handler;
	srq->owner = uobj;
	ret = uvd_queues_for_srq(req, srq, &args->init.attr);
	if (!ret)
		ret = uvd_ops(req)->create_srq(srq, &args->init, uvd_req_udata(req));
	if (ret) {
		uvd_queue_end(srq->queue);
		free(srq);
		uvd_refused_range(req, ret, "max_wr", args->init.attr.max_wr, 1, req->dev->config.limits.max_srq_wr);
		return uvd_refused_range(req, ret, "max_sge", args->init.attr.max_sge, 1,
					 req->dev->config.limits.max_srq_sge);
	}
	srq_count_users(srq, 1);
	uobj->xrcd = args->xrcd;
	if (uobj->xrcd)
		atomic_fetch_add(&uobj->xrcd->users, 1);
	uvd_uobject_set_object(uobj, srq);
	return 0;
}

static int srq_answer_queue(struct uvd_req *req)
{
	return uvd_queues_answer_srq(req, uvd_args(req, struct srq_args)->uobj->object);
}

static int srq_answer_create(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct srq_args)->uobj;
	const struct uvd_srq *srq = uobj->object;
	struct ib_uverbs_create_srq_resp resp = {
		.srq_handle = uobj->id,
		.max_wr = srq->attr.max_wr,
		.max_sge = srq->attr.max_sge,
		.srqn = srq->srq_type == IBV_SRQT_XRC ? srq->srq_num : 0,
	};

	return uvd_core_out(req, &resp);
}

static int srq_answer_create_ioctl(struct uvd_req *req)
{
	const struct uvd_srq *srq = uvd_args(req, struct srq_args)->uobj->object;
	int ret = uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &srq->attr.max_wr);

	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &srq->attr.max_sge);
	if (!ret && srq->srq_type == IBV_SRQT_XRC)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &srq->srq_num);
	return ret;
}

static int modify_srq(struct uvd_req *req)
{
	struct ib_uverbs_modify_srq cmd;
	struct ibv_srq_attr attr = {};
	struct uvd_srq *srq;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_SRQ, cmd.srq_handle, &srq);
	if (ret)
		return ret;
	uvd_req_about(req, "SRQ", cmd.srq_handle);
	attr.max_wr = cmd.max_wr;
	attr.srq_limit = cmd.srq_limit;
	if (srq->queue && (cmd.attr_mask & IBV_SRQ_MAX_WR))
		ret = uvd_queue_resize_srq(req, srq, &attr, cmd.attr_mask);
	else
		ret = uvd_ops(req)->modify_srq(srq, &attr, cmd.attr_mask, uvd_req_udata(req));
	return ret ? uvd_refused(req, ret) : 0;
}

static int query_srq(struct uvd_req *req)
{
	struct ib_uverbs_query_srq_resp resp = {};
	struct ib_uverbs_query_srq cmd;
	struct ibv_srq_attr attr = {};
	struct uvd_srq *srq;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_SRQ, cmd.srq_handle, &srq);
	if (!ret)
		ret = uvd_ops(req)->query_srq(srq, &attr);
	if (ret)
		return ret;
	resp.max_wr = attr.max_wr;
	resp.max_sge = attr.max_sge;
	resp.srq_limit = attr.srq_limit;
	return uvd_core_out(req, &resp);
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

static int srq_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_srq *srq = uobj->object;
	int ret = uvd_destroy_unused(uobj, srq, destroy_srq);

	if (ret)
		return ret;
	srq_count_users(srq, -1);
	if (uobj->xrcd)
		atomic_fetch_sub(&uobj->xrcd->users, 1);
	uobj->xrcd = NULL;
	uvd_queue_end(srq->queue);
	return uvd_object_free(uobj);
}

static int srq_destroy_write(struct uvd_req *req)
{
	struct ib_uverbs_destroy_srq_resp resp = {};
	struct ib_uverbs_destroy_srq cmd;
	struct uvd_uobject *uobj;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_destroy(req, UVERBS_OBJECT_SRQ, cmd.srq_handle, &uobj);
	if (ret)
		return ret;
	resp.events_reported = atomic_load(&uobj->async_events);
	return uvd_core_out(req, &resp);
}

static int srq_answer_destroy_ioctl(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_DESTROY_SRQ_HANDLE);
	struct ib_uverbs_destroy_srq_resp resp = { .events_reported = atomic_load(&uobj->async_events) };

	return uvd_attr_copy_to(req, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step srq_create_steps[] = {
	srq_decode_create, srq_new_handle, srq_find_objects, create_srq, srq_answer_queue, srq_answer_create, NULL,
};
static const uvd_step create_xsrq_steps[] = {
	decode_create_xsrq, srq_new_handle, srq_find_objects, create_srq, srq_answer_queue, srq_answer_create, NULL,
};
static const uvd_step srq_create_ioctl_steps[] = {
	srq_decode_create_ioctl, srq_find_objects_ioctl, create_srq, srq_answer_queue, srq_answer_create_ioctl, NULL,
};
static const uvd_step srq_modify_steps[] = { modify_srq, NULL };
static const uvd_step srq_query_steps[] = { query_srq, NULL };
static const uvd_step srq_destroy_write_steps[] = { srq_destroy_write, NULL };
static const uvd_step srq_destroy_ioctl_steps[] = { srq_answer_destroy_ioctl, NULL };

static const struct uvd_write_row srq_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_CREATE_SRQ, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_create_srq),
		  sizeof(struct ib_uverbs_create_srq_resp), srq_create_steps, UVD_OP(create_srq)),
	UVD_WRITE(IB_USER_VERBS_CMD_CREATE_XSRQ, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_create_xsrq),
		  sizeof(struct ib_uverbs_create_srq_resp), create_xsrq_steps, UVD_OP(create_srq)),
	UVD_WRITE(IB_USER_VERBS_CMD_MODIFY_SRQ, UVD_WRITE_UDATA, sizeof(struct ib_uverbs_modify_srq), 0,
		  srq_modify_steps, UVD_OP(modify_srq)),
	UVD_WRITE(IB_USER_VERBS_CMD_QUERY_SRQ, UVD_WRITE_RESP, sizeof(struct ib_uverbs_query_srq),
		  sizeof(struct ib_uverbs_query_srq_resp), srq_query_steps, UVD_OP(query_srq)),
	UVD_WRITE(IB_USER_VERBS_CMD_DESTROY_SRQ, UVD_WRITE_RESP, sizeof(struct ib_uverbs_destroy_srq),
		  sizeof(struct ib_uverbs_destroy_srq_resp), srq_destroy_write_steps, UVD_OP(destroy_srq)),
	UVD_WRITE(IB_USER_VERBS_CMD_POST_SRQ_RECV, UVD_WRITE_RESP, sizeof(struct ib_uverbs_post_srq_recv),
		  sizeof(struct ib_uverbs_post_srq_recv_resp), uvd_post_srq_recv_steps, UVD_OP(post_srq_recv)),
};

static const struct uvd_attr_row srq_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_SRQ_HANDLE, UVERBS_OBJECT_SRQ, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_CREATE_SRQ_TYPE, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_SRQ_MAX_WR, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_SRQ_LIMIT, sizeof(uint32_t), UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, UVERBS_OBJECT_XRCD, UVD_UOBJ_READ, 0),
	UVD_IDR(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, UVERBS_OBJECT_CQ, UVD_UOBJ_READ, 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, sizeof(uint32_t), 0),
	UVD_FD(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, UVD_UOBJ_READ, 0),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, sizeof(uint32_t), 0),
	UVD_BUF_UMEM(UVERBS_ATTR_CREATE_SRQ_BUF_UMEM),
	UVD_UHW(),
};

static const struct uvd_attr_row srq_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_SRQ_HANDLE, UVERBS_OBJECT_SRQ, UVD_UOBJ_DESTROY, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, sizeof(struct ib_uverbs_destroy_srq_resp), UVD_MANDATORY),
};

static const struct uvd_method_row srq_methods[] = {
	UVD_METHOD(UVERBS_METHOD_SRQ_CREATE, srq_create_attrs, srq_create_ioctl_steps),
	UVD_METHOD(UVERBS_METHOD_SRQ_DESTROY, srq_destroy_attrs, srq_destroy_ioctl_steps),
};

const struct uvd_object_row uvd_object_srq = {
	.name = "UVERBS_OBJECT_SRQ",
	.id = UVERBS_OBJECT_SRQ,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(srq),
	.destroy = srq_destroy_uobj,
	UVD_ROWS(methods, srq_methods),
	UVD_ROWS(writes, srq_writes),
	.needs = { UVD_OP(destroy_srq) },
};
