/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs: creation and destruction. MODIFY_QP, QUERY_QP and posting are in qp_modify.c, qp_query.c and post.c. */
#include <linux/capability.h>
#include <uverbsd/uapi_later.h>
#include "objects/queue.h"
#include "objects/xrc.h"

/*
 * The flags of the kernel's enum ib_qp_create_flags that no header for programs has, and the sets of flags that write() and
 * ioctl accept.
 */
enum {
	IB_QP_CREATE_CROSS_CHANNEL = 1 << 2,
	IB_QP_CREATE_MANAGED_SEND = 1 << 3,
	IB_QP_CREATE_MANAGED_RECV = 1 << 4,
	IB_QP_CREATE_SOURCE_QPN = 1 << 10,
	CREATE_WRITE_FLAGS = IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_QP_CREATE_CROSS_CHANNEL |
			     IB_QP_CREATE_MANAGED_SEND | IB_QP_CREATE_MANAGED_RECV | IB_UVERBS_QP_CREATE_SCATTER_FCS |
			     IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_QP_CREATE_SOURCE_QPN |
			     IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING,
	CREATE_IOCTL_FLAGS = IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_UVERBS_QP_CREATE_SCATTER_FCS |
			     IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING |
			     IB_UVERBS_QP_CREATE_SQ_SIG_ALL,
};

struct qp_args {
	struct uvd_uobject *uobj;
	struct uvd_pd *pd;
	struct uvd_xrcd_handle *xrcd; /* an XRC target has it instead of the PD */
	struct uvd_qp_init_attr init;
	uint64_t user_handle;
	uint32_t pd_handle, send_cq_handle, recv_cq_handle, srq_handle, ind_table_handle;
	bool is_srq, has_ind_table;
};

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static int qp_decode_create(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct ib_uverbs_create_qp cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->user_handle = cmd.user_handle;
	args->pd_handle = cmd.pd_handle;
	args->send_cq_handle = cmd.send_cq_handle;
	args->recv_cq_handle = cmd.recv_cq_handle;
	args->srq_handle = cmd.srq_handle;
	args->is_srq = cmd.is_srq;
	args->init.cap = (struct ibv_qp_cap){ cmd.max_send_wr, cmd.max_recv_wr, cmd.max_send_sge, cmd.max_recv_sge,
					      cmd.max_inline_data };
	args->init.qp_type = cmd.qp_type;
	args->init.sq_sig_all = cmd.sq_sig_all;
	return 0;
}

static int qp_decode_create_ex(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct ib_uverbs_ex_create_qp cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	if (cmd.comp_mask & ~IB_UVERBS_CREATE_QP_SUP_COMP_MASK)
		return uvd_bad(req, -EINVAL, "comp_mask", cmd.comp_mask);
	if (cmd.reserved)
		return uvd_bad(req, -EINVAL, "reserved", cmd.reserved);
	args->user_handle = cmd.user_handle;
	args->pd_handle = cmd.pd_handle;
	args->send_cq_handle = cmd.send_cq_handle;
	args->recv_cq_handle = cmd.recv_cq_handle;
	args->srq_handle = cmd.srq_handle;
	args->is_srq = cmd.is_srq;
	args->has_ind_table = cmd.comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
	args->ind_table_handle = cmd.rwq_ind_tbl_handle;
	args->init.cap = (struct ibv_qp_cap){ cmd.max_send_wr, cmd.max_recv_wr, cmd.max_send_sge, cmd.max_recv_sge,
					      cmd.max_inline_data };
	args->init.qp_type = cmd.qp_type;
	args->init.sq_sig_all = cmd.sq_sig_all;
	args->init.create_flags = cmd.create_flags;
	args->init.source_qpn = cmd.source_qpn;
	return 0;
}

static int qp_decode_create_ioctl(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct ib_uverbs_qp_cap cap = {};
	uint64_t type;
	int ret;

	ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_QP_CAP, &cap);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &args->user_handle);
	if (!ret)
		ret = uvd_attr_const(req, UVERBS_ATTR_CREATE_QP_TYPE, UINT32_MAX, &type);
	if (ret)
		return ret;
	args->uobj = uvd_attr_uobj(req, UVERBS_ATTR_CREATE_QP_HANDLE);
	args->init.cap = (struct ibv_qp_cap){ cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge,
					      cap.max_inline_data };
	args->init.qp_type = type;
	return 0;
}

/* ---- checks and look-ups ----------------------------------------------------------------------------------------- */

static int qp_refuse_net_raw(struct uvd_req *req, const char *field, uint64_t value)
{
	return uvd_refuse(req, -EPERM, &uvd_why(NET_RAW, { .word = field }, { value }));
}

static int qp_check_type(struct uvd_req *req)
{
	enum ibv_qp_type type = uvd_args(req, struct qp_args)->init.qp_type;

	switch (type) {
	case IBV_QPT_RAW_PACKET:
		if (!uvd_caller_capable(req->caller, CAP_NET_RAW))
			return qp_refuse_net_raw(req, "qp_type", type);
		/* fall through */
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return uvd_req_allow_qp_type(req, type);
	default:
		return uvd_bad(req, -EINVAL, "qp_type", type);
	}
}

static int qp_new_handle(struct uvd_req *req)
{
	return uvd_req_new(req, UVERBS_OBJECT_QP, &uvd_args(req, struct qp_args)->uobj);
}

static int check_ind_table(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	int ret;

	if (!args->has_ind_table)
		return 0;
	ret = uvd_req_object(req, UVERBS_OBJECT_RWQ_IND_TBL, args->ind_table_handle, &args->init.rwq_ind_tbl);
	if (ret)
		return ret;
	if (args->init.cap.max_recv_wr || args->init.cap.max_recv_sge || args->is_srq)
		return uvd_bad(req, -EINVAL, "max_recv_wr", args->init.cap.max_recv_wr);
	return 0;
}

/*
 * For write(): looks up the SRQ, the receive CQ if it is not the send CQ, the send CQ and the PD, in this order. An XRC
 * target has none of them: its pd_handle names an XRC domain.
 */
static int qp_find_objects(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct uvd_qp_init_attr *init = &args->init;
	int ret = 0;

	if (init->qp_type == IBV_QPT_XRC_RECV)
		return uvd_req_object(req, UVERBS_OBJECT_XRCD, args->pd_handle, &args->xrcd)
			       ? uvd_bad(req, -EINVAL, "pd_handle", args->pd_handle)
			       : 0;
	if (init->qp_type == IBV_QPT_XRC_SEND) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	} else {
		if (args->is_srq)
			ret = uvd_req_object(req, UVERBS_OBJECT_SRQ, args->srq_handle, &init->srq);
		if (!ret && init->srq && init->srq->srq_type == IBV_SRQT_XRC)
			return uvd_bad(req, -EINVAL, "srq_handle", args->srq_handle);
		if (!ret && !args->has_ind_table && args->recv_cq_handle != args->send_cq_handle)
			ret = uvd_req_object(req, UVERBS_OBJECT_CQ, args->recv_cq_handle, &init->recv_cq);
	}
	if (!ret && (!args->has_ind_table || init->cap.max_send_wr))
		ret = uvd_req_object(req, UVERBS_OBJECT_CQ, args->send_cq_handle, &init->send_cq);
	if (ret)
		return ret;
	if (!args->has_ind_table && init->qp_type != IBV_QPT_XRC_SEND && !init->recv_cq)
		init->recv_cq = init->send_cq;
	return uvd_req_object(req, UVERBS_OBJECT_PD, args->pd_handle, &args->pd);
}

/* The kernel asks for the capability in write() only, but the packets of such a QP are the same (docs/abi-differences.md). */
static int check_source_qpn(struct uvd_req *req)
{
	uint32_t flags = uvd_args(req, struct qp_args)->init.create_flags;

	if (flags & IB_QP_CREATE_SOURCE_QPN && !uvd_caller_capable(req->caller, CAP_NET_RAW))
		return qp_refuse_net_raw(req, "create_flags", flags);
	return 0;
}

static int check_create_flags(struct uvd_req *req)
{
	uint32_t flags = uvd_args(req, struct qp_args)->init.create_flags;

	if (flags & ~CREATE_WRITE_FLAGS)
		return uvd_bad(req, -EINVAL, "create_flags", flags);
	return check_source_qpn(req);
}

/* Sets *out to the backend's object behind an attribute. Returns false if the client did not send the attribute. */
static bool attr_object(struct uvd_req *req, uint16_t id, void *out)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, id);

	if (uobj)
		*(void **)out = uobj->object;
	return uobj;
}

static int qp_refuse_extra(struct uvd_req *req, const char *attr)
{
	const char *type = uvd_name_of(uvd_qp_type_names, uvd_args(req, struct qp_args)->init.qp_type);

	return uvd_refuse(req, -EINVAL, &uvd_why(ATTR_EXTRA, { .word = type }, { .word = attr }));
}

/* For ioctl: the parser has looked the objects up. Checks which of them the QP's type requires and allows. */
static int qp_find_objects_ioctl(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct uvd_qp_init_attr *init = &args->init;
	bool target = init->qp_type == IBV_QPT_XRC_RECV, ini = init->qp_type == IBV_QPT_XRC_SEND;
	bool has_send = attr_object(req, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, &init->send_cq);
	bool has_recv = attr_object(req, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, &init->recv_cq);
	bool has_srq = attr_object(req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, &init->srq);
	bool has_pd = attr_object(req, UVERBS_ATTR_CREATE_QP_PD_HANDLE, &args->pd);
	bool has_xrcd = attr_object(req, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, &args->xrcd);
	bool has_table = attr_object(req, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, &init->rwq_ind_tbl);

	if (target && (has_send || has_recv || has_pd || has_table))
		return qp_refuse_extra(req, has_send   ? "UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE"
					    : has_recv ? "UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE"
					    : has_pd   ? "UVERBS_ATTR_CREATE_QP_PD_HANDLE"
						       : "UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE");
	if (target)
		return has_xrcd ? 0 : uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_QP_XRCD_HANDLE");
	if (has_xrcd || (has_srq && ini))
		return qp_refuse_extra(req, has_xrcd ? "UVERBS_ATTR_CREATE_QP_XRCD_HANDLE"
						     : "UVERBS_ATTR_CREATE_QP_SRQ_HANDLE");
	if (!has_pd)
		return uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_QP_PD_HANDLE");
	if (has_table) {
		if (init->cap.max_recv_wr || init->cap.max_recv_sge || has_recv || has_srq)
			return uvd_bad(req, -EINVAL, "max_recv_wr", init->cap.max_recv_wr);
		if (!init->cap.max_send_wr)
			init->send_cq = NULL;
		return init->cap.max_send_wr && !has_send
			       ? uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE")
			       : 0;
	}
	if (ini)
		init->recv_cq = NULL;
	if (!has_send)
		return uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE");
	return has_recv || ini ? 0 : uvd_missing(req, -ENOENT, "UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE");
}

static int check_create_flags_ioctl(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	enum ibv_qp_type type = args->init.qp_type;
	uint64_t flags;
	int ret = uvd_attr_flags(req, UVERBS_ATTR_CREATE_QP_FLAGS, CREATE_IOCTL_FLAGS, &flags);

	if (ret)
		return ret;
	args->init.sq_sig_all = flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	flags &= ~(uint64_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	if (flags && type != IBV_QPT_DRIVER && type != IBV_QPT_RAW_PACKET && type != IBV_QPT_UD)
		return uvd_bad(req, -EINVAL, "flags", flags);
	if (flags & (IB_UVERBS_QP_CREATE_SCATTER_FCS | IB_UVERBS_QP_CREATE_CVLAN_STRIPPING) && type != IBV_QPT_DRIVER &&
	    type != IBV_QPT_RAW_PACKET)
		return uvd_bad(req, -EINVAL, "flags", flags);
	args->init.create_flags = flags;
	ret = uvd_attr_copy_from(req, UVERBS_ATTR_CREATE_QP_SOURCE_QPN, &args->init.source_qpn);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	args->init.create_flags |= IB_QP_CREATE_SOURCE_QPN;
	return check_source_qpn(req);
}

/*
 * For ioctl: an XRC target may name an XRC SRQ, and only it may. The backend sees that SRQ in `init`, but the target
 * does not count as its user.
 */
static int check_srq_ioctl(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct uvd_srq *srq = args->init.srq;
	bool target = args->init.qp_type == IBV_QPT_XRC_RECV;

	if (srq && (srq->srq_type == IBV_SRQT_XRC) != target)
		return uvd_bad(req, -EINVAL, "srq_type", srq->srq_type);
	return 0;
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

static void qp_event_handler(struct uvd_qp *qp, enum ibv_event_type type)
{
	uvd_object_event(qp->owner, type);
}

/* ib_qp_usecnt_inc() if n is 1, ib_qp_usecnt_dec() if n is -1 */
static void qp_count_users(struct uvd_qp *qp, int n)
{
	atomic_fetch_add(&qp->pd->usecnt, n);
	if (qp->send_cq)
		atomic_fetch_add(&qp->send_cq->usecnt, n);
	if (qp->recv_cq)
		atomic_fetch_add(&qp->recv_cq->usecnt, n);
	if (qp->srq)
		atomic_fetch_add(&qp->srq->usecnt, n);
	if (qp->rwq_ind_tbl)
		atomic_fetch_add(&qp->rwq_ind_tbl->usecnt, n);
}

static void end_queues(struct uvd_qp *qp)
{
	uvd_queue_end(qp->sq);
	uvd_queue_end(qp->rq);
}

/* Creates a QP of any type except XRC_RECV, whose QPs several handles share. */
static int create_own(struct uvd_req *req, struct uvd_qp *qp, struct qp_args *args)
{
	int ret;

	qp->pd = args->pd;
	qp->send_cq = args->init.send_cq;
	qp->recv_cq = args->init.recv_cq;
	qp->srq = args->init.srq;
	qp->rwq_ind_tbl = args->init.rwq_ind_tbl;
	qp->event_handler = qp_event_handler;
	qp->owner = args->uobj;
	ret = uvd_queues_for_qp(req, qp, &args->init);
	if (!ret)
		ret = uvd_ops(req)->create_qp(qp, &args->init, uvd_req_udata(req));
	if (ret) {
		end_queues(qp);
		return ret;
	}
	qp_count_users(qp, 1);
	args->uobj->object = qp;
	return 0;
}

static int create_qp(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	struct uvd_uobject *uobj = args->uobj;
	struct uvd_qp *qp;
	int ret;

	qp = uvd_zalloc(uvd_ops(req)->size_qp);
	if (!qp)
		return -ENOMEM;
	uobj->user_handle = args->user_handle;
	uobj->asked[0] = args->init.cap.max_send_wr;
	uobj->asked[1] = args->init.cap.max_recv_wr;
	uobj->asked[2] = args->init.cap.max_inline_data;
	uobj->event_file = uvd_req_async_file(req, UVERBS_ATTR_CREATE_QP_EVENT_FD);
	qp->qp_type = args->init.qp_type;
	qp->account = req->file->account;
	ret = args->xrcd ? uvd_xrc_target_create(qp, uobj, args->xrcd, &args->init, uvd_req_udata(req))
			 : create_own(req, qp, args);
	if (ret) {
		free(qp);
		return uvd_refused(req, ret);
	}
	uobj->made = true;
	return 0;
}

static int answer_queues(struct uvd_req *req)
{
	return uvd_queues_answer_qp(req, uvd_args(req, struct qp_args)->uobj->object);
}

static int qp_answer_create(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	const struct ibv_qp_cap *cap = &args->init.cap;
	struct ib_uverbs_ex_create_qp_resp resp = {
		.base.qp_handle = args->uobj->id,
		.base.qpn = ((struct uvd_qp *)args->uobj->object)->qp_num,
		.base.max_send_wr = cap->max_send_wr,
		.base.max_recv_wr = cap->max_recv_wr,
		.base.max_send_sge = cap->max_send_sge,
		.base.max_recv_sge = cap->max_recv_sge,
		.base.max_inline_data = cap->max_inline_data,
		.response_length = uvd_response_length(req, sizeof(resp)),
	};

	/* The plain command's response is the first part of the extended one's. */
	return uvd_core_out(req, &resp);
}

static int qp_answer_create_ioctl(struct uvd_req *req)
{
	struct qp_args *args = uvd_args(req, struct qp_args);
	const struct ibv_qp_cap *cap = &args->init.cap;
	struct uvd_qp *qp = args->uobj->object;
	struct ib_uverbs_qp_cap resp = {
		.max_send_wr = cap->max_send_wr,
		.max_recv_wr = cap->max_recv_wr,
		.max_send_sge = cap->max_send_sge,
		.max_recv_sge = cap->max_recv_sge,
		.max_inline_data = cap->max_inline_data,
	};
	int ret = uvd_attr_copy_to_or_zero(req, UVERBS_ATTR_CREATE_QP_RESP_CAP, &resp);

	return ret ? ret : uvd_attr_copy_to(req, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qp->qp_num);
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

/* Somebody observes the device: tells what the QP has done, and what it leaves undone. */
static __attribute__((cold, noinline)) void qp_tell_work(const struct uvd_uobject *uobj, struct uvd_qp *qp)
{
	const struct uvd_backend *ops = uvd_uobject_ops(uobj);
	struct uvd_qp_work work = {};

	if (!ops->query_qp_work)
		return;
	ops->query_qp_work(qp, &work);
	uvd_observe_qp_ends(uobj, &work);
}

static int qp_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_qp *qp = uobj->object;
	int ret;

	/*
	 * Multicast groups and flows use a QP, so the client cannot destroy it before them. A cleanup detaches the
	 * groups itself, and ignores errors: a group that the backend refuses to leave must not keep the QP forever.
	 */
	if (why != UVD_REMOVE_DESTROY)
		uvd_qp_detach_all(uobj);
	else if (uobj->mcast || atomic_load(&qp->usecnt))
		return -EBUSY;
	if (atomic_load(&qp->flows))
		return -EBUSY;
	if (qp->xrcd)
		return uvd_xrc_target_close(uobj, why);
	if (uvd_is_watched(&uobj->file->dev->engine->observers))
		qp_tell_work(uobj, qp);
	ret = uvd_uobject_ops(uobj)->destroy_qp(qp);
	if (ret)
		return ret;
	qp_count_users(qp, -1);
	uvd_qp_put_counters(qp);
	end_queues(qp);
	return uvd_object_free(uobj);
}

static int qp_destroy_write(struct uvd_req *req)
{
	struct ib_uverbs_destroy_qp_resp resp = {};
	struct ib_uverbs_destroy_qp cmd;
	struct uvd_uobject *uobj;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_destroy(req, UVERBS_OBJECT_QP, cmd.qp_handle, &uobj);
	if (ret)
		return ret;
	resp.events_reported = atomic_load(&uobj->async_events);
	return uvd_core_out(req, &resp);
}

static int qp_answer_destroy_ioctl(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_DESTROY_QP_HANDLE);
	struct ib_uverbs_destroy_qp_resp resp = { .events_reported = atomic_load(&uobj->async_events) };

	return uvd_attr_copy_to(req, UVERBS_ATTR_DESTROY_QP_RESP, &resp);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step qp_create_write_steps[] = {
	qp_decode_create, qp_check_type, qp_new_handle,	   qp_find_objects,
	create_qp,	  answer_queues, qp_answer_create, NULL,
};
static const uvd_step qp_create_ex_steps[] = {
	qp_decode_create_ex, qp_check_type, qp_new_handle, check_ind_table,  qp_find_objects,
	check_create_flags,  create_qp,	    answer_queues, qp_answer_create, NULL,
};
static const uvd_step qp_create_ioctl_steps[] = {
	qp_decode_create_ioctl,
	qp_check_type,
	qp_find_objects_ioctl,
	check_create_flags_ioctl,
	check_srq_ioctl,
	create_qp,
	answer_queues,
	qp_answer_create_ioctl,
	NULL,
};
static const uvd_step qp_destroy_write_steps[] = { qp_destroy_write, NULL };
static const uvd_step qp_destroy_ioctl_steps[] = { qp_answer_destroy_ioctl, NULL };

static const struct uvd_write_row qp_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_CREATE_QP, UVD_WRITE_RESP | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_create_qp),
		  sizeof(struct ib_uverbs_create_qp_resp), qp_create_write_steps, UVD_OP(create_qp)),
	UVD_WRITE(IB_USER_VERBS_CMD_QUERY_QP, UVD_WRITE_RESP, sizeof(struct ib_uverbs_query_qp),
		  sizeof(struct ib_uverbs_query_qp_resp), uvd_query_qp_steps, UVD_OP(query_qp)),
	UVD_WRITE(IB_USER_VERBS_CMD_MODIFY_QP, 0, sizeof(struct ib_uverbs_modify_qp), 0, uvd_modify_qp_steps,
		  UVD_OP(modify_qp)),
	UVD_WRITE(IB_USER_VERBS_CMD_DESTROY_QP, UVD_WRITE_RESP, sizeof(struct ib_uverbs_destroy_qp),
		  sizeof(struct ib_uverbs_destroy_qp_resp), qp_destroy_write_steps, UVD_OP(destroy_qp)),
	UVD_WRITE(IB_USER_VERBS_CMD_POST_SEND, UVD_WRITE_RESP, sizeof(struct ib_uverbs_post_send),
		  sizeof(struct ib_uverbs_post_send_resp), uvd_post_send_steps, UVD_OP(post_send)),
	UVD_WRITE(IB_USER_VERBS_CMD_POST_RECV, UVD_WRITE_RESP, sizeof(struct ib_uverbs_post_recv),
		  sizeof(struct ib_uverbs_post_recv_resp), uvd_post_recv_steps, UVD_OP(post_recv)),
	UVD_WRITE(IB_USER_VERBS_CMD_ATTACH_MCAST, 0, sizeof(struct ib_uverbs_attach_mcast), 0, uvd_attach_mcast_steps,
		  UVD_OP(attach_mcast), UVD_OP(detach_mcast)),
	UVD_WRITE(IB_USER_VERBS_CMD_DETACH_MCAST, 0, sizeof(struct ib_uverbs_detach_mcast), 0, uvd_detach_mcast_steps,
		  UVD_OP(detach_mcast)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_CREATE_QP, UVD_WRITE_EX | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_ex_create_qp),
		  sizeof(struct ib_uverbs_ex_create_qp_resp), qp_create_ex_steps, UVD_OP(create_qp)),
	UVD_WRITE(IB_USER_VERBS_EX_CMD_MODIFY_QP, UVD_WRITE_EX | UVD_WRITE_UDATA, sizeof(struct ib_uverbs_ex_modify_qp),
		  sizeof(struct ib_uverbs_ex_modify_qp_resp), uvd_modify_qp_ex_steps, UVD_OP(modify_qp)),
};

static const struct uvd_attr_row qp_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_OBJECT_QP, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, UVERBS_OBJECT_XRCD, UVD_UOBJ_READ, 0),
	UVD_IDR(UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_OBJECT_PD, UVD_UOBJ_READ, 0),
	UVD_IDR(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, UVERBS_OBJECT_SRQ, UVD_UOBJ_READ, 0),
	UVD_IDR(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UVERBS_OBJECT_CQ, UVD_UOBJ_READ, 0),
	UVD_IDR(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_OBJECT_CQ, UVD_UOBJ_READ, 0),
	UVD_IDR(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, UVERBS_OBJECT_RWQ_IND_TBL, UVD_UOBJ_READ, 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_QP_USER_HANDLE, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_IN_STRUCT(UVERBS_ATTR_CREATE_QP_CAP, sizeof(struct ib_uverbs_qp_cap), sizeof(struct ib_uverbs_qp_cap),
			  UVD_MANDATORY),
	UVD_CONST_IN(UVERBS_ATTR_CREATE_QP_TYPE, UVD_MANDATORY),
	UVD_FLAGS_IN(UVERBS_ATTR_CREATE_QP_FLAGS, 0),
	UVD_PTR_IN(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, sizeof(uint32_t), 0),
	UVD_FD(UVERBS_ATTR_CREATE_QP_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, UVD_UOBJ_READ, 0),
	UVD_PTR_OUT_STRUCT(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(struct ib_uverbs_qp_cap),
			   sizeof(struct ib_uverbs_qp_cap), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, sizeof(uint32_t), UVD_MANDATORY),
	UVD_BUF_UMEM(UVERBS_ATTR_CREATE_QP_BUF_UMEM),
	UVD_BUF_UMEM(UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM),
	UVD_BUF_UMEM(UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM),
	UVD_UHW(),
};

static const struct uvd_attr_row qp_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_QP_HANDLE, UVERBS_OBJECT_QP, UVD_UOBJ_DESTROY, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_DESTROY_QP_RESP, sizeof(struct ib_uverbs_destroy_qp_resp), UVD_MANDATORY),
};

static const struct uvd_method_row qp_methods[] = {
	UVD_METHOD(UVERBS_METHOD_QP_CREATE, qp_create_attrs, qp_create_ioctl_steps),
	UVD_METHOD(UVERBS_METHOD_QP_DESTROY, qp_destroy_attrs, qp_destroy_ioctl_steps),
};

const struct uvd_object_row uvd_object_qp = {
	.name = "UVERBS_OBJECT_QP",
	.id = UVERBS_OBJECT_QP,
	.cls = UVD_CLASS_IDR,
	.size = UVD_SIZE(qp),
	.destroy = qp_destroy_uobj,
	UVD_ROWS(methods, qp_methods),
	UVD_ROWS(writes, qp_writes),
	.needs = { UVD_OP(destroy_qp) },
};
