/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work queues: the receive queues of receive-side scaling. The tables that select them are in rwq_ind_tbl.c. */
#include "objects/internal.h"

enum {
	WQ_FLAGS = IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | IB_UVERBS_WQ_FLAGS_SCATTER_FCS | IB_UVERBS_WQ_FLAGS_DELAY_DROP |
		   IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING,
	WQ_ATTRS = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS,
};

struct wq_args {
	struct uvd_uobject *uobj;
	struct uvd_pd *pd;
	struct uvd_cq *cq;
	struct ibv_wq_init_attr init;
	uint64_t user_handle;
	uint32_t pd_handle, cq_handle;
};

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

/* The backend checks the type and the flags, as the drivers do in the kernel. */
static int wq_decode_create(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	struct ib_uverbs_ex_create_wq cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	if (cmd.comp_mask)
		return uvd_bad(req, -EOPNOTSUPP, "comp_mask", cmd.comp_mask);
	args->user_handle = cmd.user_handle;
	args->pd_handle = cmd.pd_handle;
	args->cq_handle = cmd.cq_handle;
	args->init.wq_type = cmd.wq_type;
	args->init.max_wr = cmd.max_wr;
	args->init.max_sge = cmd.max_sge;
	args->init.create_flags = cmd.create_flags;
	return 0;
}

static int wq_decode_create_ioctl(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	struct ibv_wq_init_attr *init = &args->init;
	uint64_t flags, type;
	int ret;

	ret = uvd_attr_flags(req, UVERBS_ATTR_CREATE_WQ_FLAGS, WQ_FLAGS, &flags);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_WQ_MAX_SGE, &init->max_sge);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_WQ_MAX_WR, &init->max_wr);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, &args->user_handle);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_CREATE_WQ_TYPE, UINT32_MAX, &type);
	if (ret)
		return ret;
	init->create_flags = flags;
	init->wq_type = type;
	return 0;
}

/* ---- checks and look-ups ----------------------------------------------------------------------------------------- */

static int wq_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_WQ, &uvd_args(req, struct wq_args)->uobj);
}

static int wq_find_objects(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	int ret = uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->pd);

	return ret ? ret : uvd_req_object(req, UVERBS_OBJECT_CQ, args->cq_handle, &args->cq);
}

/*
 * The kernel's table makes the CQ attribute optional, but its handler does not check for it: without the attribute it
 * uses the look-up's error pointer as a CQ. Here the call fails with that error, -ENOENT.
 */
static int wq_find_objects_ioctl(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	struct uvd_uobject *cq = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE);

	if (args->init.wq_type != IBV_WQT_RQ)
		return uvd_bad(req, -EINVAL, "wq_type", args->init.wq_type);
	if (!cq)
		return -ENOENT;
	args->uobj = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_WQ_HANDLE);
	args->pd = uvd_attr_object(req, UVERBS_ATTR_CREATE_WQ_PD_HANDLE);
	args->cq = cq->object;
	return 0;
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static void wq_event_handler(struct uvd_wq *wq, enum ibv_event_type type)
{
	uvd_object_event(wq->owner, type);
}

static int create_wq(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	struct uvd_uobject *uobj = args->uobj;
	struct uvd_wq *wq = uvd_zalloc(uvd_ops(req)->size_wq);
	int ret;

	if (!wq)
		return -ENOMEM;
	/* The backend may report an event before create_wq() returns: set the fields that events use first. */
	uobj->user_handle = args->user_handle;
	uobj->event_file = uvd_req_async_file(req, UVERBS_ATTR_CREATE_WQ_EVENT_FD);
	wq->pd = args->pd;
	wq->cq = args->cq;
	wq->wq_type = args->init.wq_type;
	wq->event_handler = wq_event_handler;
	wq->owner = uobj;
	ret = uvd_ops(req)->create_wq(wq, &args->init, uvd_req_udata(req));
	if (ret) {
		free(wq);
		return uvd_refused(req, ret);
	}
	atomic_fetch_add(&wq->pd->usecnt, 1);
	atomic_fetch_add(&wq->cq->usecnt, 1);
	uvd_uobject_set_object(uobj, wq);
	return 0;
}

static int wq_answer_create(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	struct ib_uverbs_ex_create_wq_resp resp = {
		.response_length = uvd_response_length(req, sizeof(resp)),
		.wq_handle = args->uobj->id,
		.max_wr = args->init.max_wr,
		.max_sge = args->init.max_sge,
		.wqn = ((struct uvd_wq *)args->uobj->object)->wq_num,
	};

	return uvd_core_out(req, &resp);
}

static int wq_answer_create_ioctl(struct uvd_req *req)
{
	struct wq_args *args = uvd_args(req, struct wq_args);
	const struct ibv_wq_init_attr *init = &args->init;
	const struct uvd_wq *wq = args->uobj->object;
	int ret = uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &init->max_wr);

	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &init->max_sge);
	/* As in the kernel, even a missing optional output attribute is -ENOENT, and the new WQ is destroyed. */
	return ret ? ret : uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &wq->wq_num);
}

static int modify_wq(struct uvd_req *req)
{
	struct ib_uverbs_ex_modify_wq cmd;
	struct ibv_wq_attr attr = {};
	struct uvd_wq *wq;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	if (!cmd.attr_mask || cmd.attr_mask > WQ_ATTRS)
		return uvd_bad(req, -EINVAL, "attr_mask", cmd.attr_mask);
	ret = uvd_req_object(req, UVERBS_OBJECT_WQ, cmd.wq_handle, &wq);
	if (ret)
		return ret;
	attr.attr_mask = cmd.attr_mask;
	if (cmd.attr_mask & IBV_WQ_ATTR_FLAGS) {
		attr.flags = cmd.flags;
		attr.flags_mask = cmd.flags_mask;
	}
	attr.curr_wq_state = cmd.attr_mask & IBV_WQ_ATTR_CURR_STATE ? cmd.curr_wq_state : atomic_load(&wq->state);
	if (attr.curr_wq_state > IBV_WQS_ERR)
		return uvd_bad(req, -EINVAL, "curr_wq_state", cmd.curr_wq_state);
	attr.wq_state = cmd.attr_mask & IBV_WQ_ATTR_STATE ? cmd.wq_state : attr.curr_wq_state;
	if (attr.wq_state > IBV_WQS_ERR)
		return uvd_bad(req, -EINVAL, "wq_state", cmd.wq_state);
	ret = uvd_ops(req)->modify_wq(wq, &attr, uvd_req_udata(req));
	return ret ? uvd_refused(req, ret) : 0;
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

static int wq_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_wq *wq = uobj->object;
	int ret = uvd_destroy_unused(uobj, wq, destroy_wq);

	if (ret)
		return ret;
	atomic_fetch_sub(&wq->pd->usecnt, 1);
	atomic_fetch_sub(&wq->cq->usecnt, 1);
	return uvd_object_free(uobj);
}

static int wq_destroy_write(struct uvd_req *req)
{
	struct ib_uverbs_ex_destroy_wq_resp resp = {};
	struct ib_uverbs_ex_destroy_wq cmd;
	struct uvd_uobject *uobj;
	int ret = uvd_core_in(req, &cmd);

	if (!ret && cmd.comp_mask)
		ret = uvd_bad(req, -EOPNOTSUPP, "comp_mask", cmd.comp_mask);
	if (!ret)
		ret = uvd_req_destroy(req, UVERBS_OBJECT_WQ, cmd.wq_handle, &uobj);
	if (ret)
		return ret;
	resp.response_length = uvd_response_length(req, sizeof(resp));
	resp.events_reported = atomic_load(&uobj->async_events);
	return uvd_core_out(req, &resp);
}

static int wq_answer_destroy_ioctl(struct uvd_req *req)
{
	uint32_t events = atomic_load(&uvd_attr_uobj(req, UVERBS_ATTR_DESTROY_WQ_HANDLE)->async_events);

	return uvd_attr_copy_to(req, UVERBS_ATTR_DESTROY_WQ_RESP, &events);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step wq_create_steps[] = {
	wq_decode_create, wq_new_handle, wq_find_objects, create_wq, wq_answer_create, NULL,
};
static const uvd_step wq_create_ioctl_steps[] = {
	wq_decode_create_ioctl, wq_find_objects_ioctl, create_wq, wq_answer_create_ioctl, NULL,
};
static const uvd_step wq_modify_steps[] = { modify_wq, NULL };
static const uvd_step wq_destroy_write_steps[] = { wq_destroy_write, NULL };
static const uvd_step wq_destroy_ioctl_steps[] = { wq_answer_destroy_ioctl, NULL };

static const struct uvd_write_row wq_writes[] = {
	UVD_WRITE(IB_USER_VERBS_EX_CMD_CREATE_WQ, UVD_WRITE_EX | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_ex_create_wq),
		  sizeof(struct ib_uverbs_ex_create_wq_resp), wq_create_steps, UVD_OP(create_wq)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_MODIFY_WQ, UVD_WRITE_EX | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_ex_modify_wq),
		  0, wq_modify_steps, UVD_OP(modify_wq)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_DESTROY_WQ, UVD_WRITE_EX | UVD_WRITE_UDATA,
		  sizeof(struct ib_uverbs_ex_destroy_wq), sizeof(struct ib_uverbs_ex_destroy_wq_resp),
		  wq_destroy_write_steps, UVD_OP(destroy_wq)),
};

static const struct uvd_attr_row wq_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_WQ_HANDLE, UVERBS_OBJECT_WQ, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_CREATE_WQ_TYPE, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_WQ_USER_HANDLE, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_WQ_MAX_WR, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_WQ_MAX_SGE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_CREATE_WQ_FLAGS, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, UVERBS_OBJECT_CQ, UVD_UOBJ_READ, 0),
	UVD_FD(UVERBS_ATTR_CREATE_WQ_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, UVD_UOBJ_READ, 0),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, sizeof(uint32_t), 0),
	UVD_UHW(),
};

static const struct uvd_attr_row wq_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_WQ_HANDLE, UVERBS_OBJECT_WQ, UVD_UOBJ_DESTROY, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_DESTROY_WQ_RESP, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_method_row wq_methods[] = {
	UVD_METHOD(UVERBS_METHOD_WQ_CREATE, wq_create_attrs, wq_create_ioctl_steps),
	UVD_METHOD(UVERBS_METHOD_WQ_DESTROY, wq_destroy_attrs, wq_destroy_ioctl_steps),
};

const struct uvd_object_row uvd_object_wq = {
	.name = "UVERBS_OBJECT_WQ",
	.id = UVERBS_OBJECT_WQ,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(wq),
	.destroy = wq_destroy_uobj,
	UVD_ROWS(methods, wq_methods),
	UVD_ROWS(writes, wq_writes),
	.needs = { UVD_OP(destroy_wq) },
};
