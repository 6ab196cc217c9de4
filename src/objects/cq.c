/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues: creation, resizing and destruction. cq_poll.c polls and arms them; cq_buffer.c finds a buffer. */
#include <limits.h>
#include <uverbsd/uapi_later.h>
#include "explain/explain.h"
#include "objects/cq.h"
#include "objects/queue.h"
#include "pin/pin.h"

struct cq_args {
	struct uvd_uobject *uobj;
	struct uvd_event_file *channel; /* borrowed: the request holds its uobject */
	uint64_t user_handle;
	uint32_t cqe, comp_vector, flags;
	int32_t comp_channel; /* write() only; negative: none */
	struct uvd_cq_buffer buffer; /* ioctl only */
};

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static int cq_decode_create(struct uvd_req *req)
{
	struct cq_args *args = uvd_args(req, struct cq_args);
	struct ib_uverbs_create_cq cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->user_handle = cmd.user_handle;
	args->cqe = cmd.cqe;
	args->comp_vector = cmd.comp_vector;
	args->comp_channel = cmd.comp_channel;
	return 0;
}

static int cq_decode_create_ex(struct uvd_req *req)
{
	struct cq_args *args = uvd_args(req, struct cq_args);
	struct ib_uverbs_ex_create_cq cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	if (cmd.comp_mask)
		return uvd_bad(req, -EINVAL, "comp_mask", cmd.comp_mask);
	if (cmd.reserved)
		return uvd_bad(req, -EINVAL, "reserved", cmd.reserved);
	args->user_handle = cmd.user_handle;
	args->cqe = cmd.cqe;
	args->comp_vector = cmd.comp_vector;
	args->comp_channel = cmd.comp_channel;
	args->flags = cmd.flags;
	return 0;
}

static int cq_decode_create_ioctl(struct uvd_req *req)
{
	struct cq_args *args = uvd_args(req, struct cq_args);
	struct uvd_uobject *channel;
	uint64_t flags;
	int ret;

	ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &args->comp_vector);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_CQ_CQE, &args->cqe);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &args->user_handle);
	if (!ret)
		ret = uvd_attr_flags(req, UVERBS_ATTR_CREATE_CQ_FLAGS,
				     IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
				     &flags);
	if (ret)
		return ret;
	args->flags = flags;
	args->uobj = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_CQ_HANDLE);
	channel = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	if (channel)
		args->channel = channel->event_file;
	return 0;
}

/* ---- checks and look-ups ----------------------------------------------------------------------------------------- */

static int check_comp_vector(struct uvd_req *req)
{
	const uint32_t vector = uvd_args(req, struct cq_args)->comp_vector, num = req->dev->config.num_comp_vectors;

	if (vector < num)
		return 0;
	return uvd_refuse(req, -EINVAL, &uvd_why(RANGE, { .word = "comp_vector" }, { vector }, { 0 }, { num - 1 }));
}

static int cq_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_CQ, &uvd_args(req, struct cq_args)->uobj);
}

static int find_channel(struct uvd_req *req)
{
	struct cq_args *args = uvd_args(req, struct cq_args);
	struct uvd_uobject *channel;
	int ret;

	if (args->comp_channel < 0)
		return 0;
	ret = uvd_req_get_fd(req, UVERBS_OBJECT_COMP_CHANNEL, args->comp_channel, &channel);
	if (ret)
		return uvd_bad(req, ret, "comp_channel", args->comp_channel);
	args->channel = channel->event_file;
	return 0;
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

static void comp_handler(struct uvd_cq *cq)
{
	uvd_object_completed(cq->owner);
}

/* A CQ has one error event, for the first completion that finds no room. Its end tells how many found none. */
static void cq_explain(struct uvd_cq *cq, const struct uvd_why *why)
{
	const struct uvd_uobject *uobj = cq->owner;
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_EVENT,
		.why = *why,
		.object = "CQ",
		.number = uobj->id,
		.event = IBV_EVENT_CQ_ERR,
	};

	uvd_explain(cq->context->dev, cq->context, &e);
}

static void cq_event_handler(struct uvd_cq *cq, enum ibv_event_type type)
{
	if (type == IBV_EVENT_CQ_ERR)
		cq_explain(cq, &uvd_why(CQ_OVERRUN, { cq->cqe }));
	uvd_object_event(cq->owner, type);
}

static int cq_refused(struct uvd_req *req, int err, uint32_t cqe)
{
	return uvd_refused_range(req, err, "cqe", cqe, 1, req->dev->config.limits.max_cqe);
}

static int create_cq(struct uvd_req *req)
{
	struct cq_args *args = uvd_args(req, struct cq_args);
	struct uvd_uobject *uobj = args->uobj;
	struct uvd_cq *cq = uvd_zalloc(uvd_ops(req)->size_cq);
	int ret;

	if (!cq) {
		uvd_unpin(&args->buffer.umem);
		return -ENOMEM;
	}
	/* The backend may raise events as soon as it knows the CQ, so set all that they need first. */
	uobj->user_handle = args->user_handle;
	uobj->channel = args->channel ? uvd_event_file_ref(args->channel) : NULL;
	uobj->event_file = uvd_req_async_file(req, UVERBS_ATTR_CREATE_CQ_EVENT_FD);
	cq->context = uvd_req_ucontext(req);
	cq->cqe = args->cqe > INT_MAX ? INT_MAX : args->cqe;
	cq->comp_vector = args->comp_vector;
	cq->flags = args->flags;
	cq->comp_handler = comp_handler;
	cq->event_handler = cq_event_handler;
	cq->owner = uobj;
	cq->umem = args->buffer.umem;
	ret = uvd_queues_for_cq(req, cq);
	if (!ret)
		ret = args->buffer.given ? uvd_ops(req)->create_cq_umem(cq, uvd_req_udata(req))
					 : uvd_ops(req)->create_cq(cq, uvd_req_udata(req));
	if (ret) {
		uvd_queue_end(cq->queue);
		uvd_unpin(&cq->umem);
		free(cq);
		return cq_refused(req, ret, args->cqe);
	}
	uvd_uobject_set_object(uobj, cq);
	return 0;
}

/* One step: a call that is let go between two steps would keep the buffer pinned. */
static int create_cq_in_buffer(struct uvd_req *req)
{
	struct cq_args *args = uvd_args(req, struct cq_args);
	int ret = uvd_cq_find_buffer(req, args->uobj, &args->buffer);

	return ret ? ret : create_cq(req);
}

static int cq_answer_queue(struct uvd_req *req)
{
	return uvd_queues_answer_cq(req, uvd_args(req, struct cq_args)->uobj->object);
}

static int cq_answer_create(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_args(req, struct cq_args)->uobj;
	struct ib_uverbs_ex_create_cq_resp resp = {
		.base.cq_handle = uobj->id,
		.base.cqe = ((struct uvd_cq *)uobj->object)->cqe,
		.response_length = uvd_response_length(req, sizeof(resp)),
	};

	/* The response of CREATE_CQ is the beginning of EX_CREATE_CQ's, and uvd_core_out() cuts it. */
	return uvd_core_out(req, &resp);
}

static int cq_answer_create_ioctl(struct uvd_req *req)
{
	struct uvd_cq *cq = uvd_args(req, struct cq_args)->uobj->object;
	uint32_t cqe = cq->cqe;

	return uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe);
}

/* ---- resizing ---------------------------------------------------------------------------------------------------- */

static int resize_cq(struct uvd_req *req)
{
	struct ib_uverbs_resize_cq_resp resp = {};
	struct ib_uverbs_resize_cq cmd;
	struct uvd_cq *cq;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_CQ, cmd.cq_handle, &cq);
	if (ret)
		return ret;
	uvd_req_about(req, "CQ", cmd.cq_handle);
	if (cq->queue)
		ret = uvd_queue_resize_cq(req, cq, cmd.cqe);
	else
		ret = uvd_ops(req)->resize_cq(cq, cmd.cqe > INT_MAX ? INT_MAX : cmd.cqe, uvd_req_udata(req));
	if (ret)
		return cq_refused(req, ret, cmd.cqe);
	uvd_uobject_update_facts(cq->owner);
	resp.cqe = cq->cqe;
	return uvd_core_out(req, &resp);
}

/* ---- moderation -------------------------------------------------------------------------------------------------- */

static int modify_cq(struct uvd_req *req)
{
	struct ib_uverbs_ex_modify_cq cmd;
	struct uvd_cq *cq;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (ret)
		return ret;
	if (!cmd.attr_mask)
		return uvd_bad(req, -EINVAL, "attr_mask", 0);
	if (cmd.reserved)
		return uvd_bad(req, -EINVAL, "reserved", cmd.reserved);
	/* The kernel compares attr_mask as a number, too, not as a set of bits. */
	if (cmd.attr_mask > IBV_CQ_ATTR_MODERATE)
		return uvd_bad(req, -EOPNOTSUPP, "attr_mask", cmd.attr_mask);
	ret = uvd_req_object(req, UVERBS_OBJECT_CQ, cmd.cq_handle, &cq);
	if (ret)
		return ret;
	uvd_req_about(req, "CQ", cmd.cq_handle);
	ret = uvd_ops(req)->modify_cq(cq, cmd.attr.cq_count, cmd.attr.cq_period);
	return ret ? uvd_refused(req, ret) : 0;
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

static int cq_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	const struct uvd_backend *ops = uvd_uobject_ops(uobj);
	struct uvd_cq *cq = uobj->object;
	/* No QP that can complete into it is left if it can be destroyed. */
	const uint64_t lost = ops->query_cq_lost ? ops->query_cq_lost(cq) : 0;
	int ret = uvd_destroy_unused(uobj, cq, destroy_cq);

	if (ret)
		return ret;
	if (lost)
		cq_explain(cq, &uvd_why(CQ_LOST, { cq->cqe }, { lost }));
	uvd_queue_end(cq->queue);
	uvd_unpin(&cq->umem);
	return uvd_object_free(uobj);
}

static struct ib_uverbs_destroy_cq_resp events_read(struct uvd_uobject *uobj)
{
	return (struct ib_uverbs_destroy_cq_resp){
		.comp_events_reported = atomic_load(&uobj->comp_events),
		.async_events_reported = atomic_load(&uobj->async_events),
	};
}

static int cq_destroy_write(struct uvd_req *req)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq cmd;
	struct uvd_uobject *uobj;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_destroy(req, UVERBS_OBJECT_CQ, cmd.cq_handle, &uobj);
	if (ret)
		return ret;
	resp = events_read(uobj);
	return uvd_core_out(req, &resp);
}

static int cq_answer_destroy_ioctl(struct uvd_req *req)
{
	struct ib_uverbs_destroy_cq_resp resp = events_read(uvd_attr_uobj(req, UVERBS_ATTR_DESTROY_CQ_HANDLE));

	return uvd_attr_copy_to(req, UVERBS_ATTR_DESTROY_CQ_RESP, &resp);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/*
 * As in the kernel, write() commands check comp_vector before they look up anything; the ioctl method checks it after
 * all handles were looked up.
 */
static const uvd_step cq_create_write_steps[] = {
	cq_decode_create, check_comp_vector, cq_new_handle,    find_channel,
	create_cq,	  cq_answer_queue,   cq_answer_create, NULL,
};
static const uvd_step cq_create_ex_steps[] = {
	cq_decode_create_ex, check_comp_vector, cq_new_handle,	  find_channel,
	create_cq,	     cq_answer_queue,	cq_answer_create, NULL,
};
static const uvd_step cq_create_ioctl_steps[] = {
	cq_decode_create_ioctl, check_comp_vector, create_cq_in_buffer, cq_answer_queue, cq_answer_create_ioctl, NULL,
};
static const uvd_step resize_steps[] = { resize_cq, NULL };
static const uvd_step cq_modify_steps[] = { modify_cq, NULL };
static const uvd_step cq_destroy_write_steps[] = { cq_destroy_write, NULL };
static const uvd_step cq_destroy_ioctl_steps[] = { cq_answer_destroy_ioctl, NULL };

static const struct uvd_write_row cq_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_CREATE_CQ, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_create_cq),
		  sizeof(struct ib_uverbs_create_cq_resp), cq_create_write_steps, UVD_OP(create_cq)),
	UVD_WRITE(IB_USER_VERBS_CMD_RESIZE_CQ, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_resize_cq),
		  sizeof(struct ib_uverbs_resize_cq_resp), resize_steps, UVD_OP(resize_cq)),
	UVD_WRITE(IB_USER_VERBS_CMD_DESTROY_CQ, UVD_WRITE_RESP, sizeof(struct ib_uverbs_destroy_cq),
		  sizeof(struct ib_uverbs_destroy_cq_resp), cq_destroy_write_steps, UVD_OP(destroy_cq)),
	UVD_WRITE(IB_USER_VERBS_CMD_POLL_CQ, UVD_WRITE_RESP, sizeof(struct ib_uverbs_poll_cq),
		  sizeof(struct ib_uverbs_poll_cq_resp), uvd_poll_cq_steps, UVD_OP(poll_cq)),
	UVD_WRITE(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, 0, sizeof(struct ib_uverbs_req_notify_cq), 0,
		  uvd_req_notify_cq_steps, UVD_OP(req_notify_cq)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_CREATE_CQ, UVD_WRITE_EX | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_ex_create_cq),
		  sizeof(struct ib_uverbs_ex_create_cq_resp), cq_create_ex_steps, UVD_OP(create_cq)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_MODIFY_CQ, UVD_WRITE_EX | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_ex_modify_cq),
		  0, cq_modify_steps, UVD_OP(modify_cq)),
};

static const struct uvd_attr_row cq_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_OBJECT_CQ, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_CQ_CQE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, sizeof(uint64_t), UVD_MANDATORY),
	UVD_FD(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, UVERBS_OBJECT_COMP_CHANNEL, UVD_UOBJ_READ, 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, sizeof(uint32_t), UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_CREATE_CQ_FLAGS, 0),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_FD(UVERBS_ATTR_CREATE_CQ_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, UVD_UOBJ_READ, 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_CQ_BUFFER_VA, sizeof(uint64_t), 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH, sizeof(uint64_t), 0),
	UVD_RAW_FD(UVERBS_ATTR_CREATE_CQ_BUFFER_FD, 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET, sizeof(uint64_t), 0),
	UVD_BUF_UMEM(UVERBS_ATTR_CREATE_CQ_BUF_UMEM),
	UVD_UHW(),
};

static const struct uvd_attr_row cq_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_CQ_HANDLE, UVERBS_OBJECT_CQ, UVD_UOBJ_DESTROY, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(struct ib_uverbs_destroy_cq_resp), UVD_MANDATORY),
};

static const struct uvd_method_row cq_methods[] = {
	UVD_METHOD(UVERBS_METHOD_CQ_CREATE, cq_create_attrs, cq_create_ioctl_steps),
	UVD_METHOD(UVERBS_METHOD_CQ_DESTROY, cq_destroy_attrs, cq_destroy_ioctl_steps),
};

const struct uvd_object_row uvd_object_cq = {
	.name = "UVERBS_OBJECT_CQ",
	.id = UVERBS_OBJECT_CQ,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(cq),
	.destroy = cq_destroy_uobj,
	UVD_ROWS(methods, cq_methods),
	UVD_ROWS(writes, cq_writes),
	.needs = { UVD_OP(destroy_cq) },
};
