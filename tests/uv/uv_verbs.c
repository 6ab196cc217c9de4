/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Thin wrappers: one function for a verb, which the caller's front encodes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "uv.h"

struct uv_room uv_room;

/* A command with an input struct and, unless out_len is 0, an output struct. */
static int call(int fd, enum uv_front front, uint32_t command, const void *in, size_t in_len, void *out, size_t out_len)
{
	return uv_cmd(fd, front, &(struct uv_cmd){ command, in, in_len, out, out_len });
}

/* The same, with room bytes for the driver's response. */
static int call_room(int fd, enum uv_front front, uint32_t command, const void *in, size_t in_len, void *out,
		     size_t out_len, size_t room)
{
	uint8_t uhw_out[256];

	return uv_cmd(fd, front, &(struct uv_cmd){ command, in, in_len, out, out_len, NULL, 0, uhw_out, room });
}

/* A method whose only attribute is the handle to destroy. */
static int destroy(int fd, uint16_t object, uint16_t method, uint32_t handle)
{
	struct uv_tree tree;

	uv_tree_init(&tree, object, method);
	uv_attr_obj(&tree, 0, handle);
	return uv_ioctl(fd, &tree);
}

/* ---- device ------------------------------------------------------------------------------------------------------ */

int uv_get_context(int fd, enum uv_front front, int *async_fd, uint32_t *num_comp_vectors)
{
	struct ib_uverbs_get_context cmd = {};
	struct ib_uverbs_get_context_resp resp = { .async_fd = -1 };
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
		uv_attr_out(&tree, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &resp.num_comp_vectors, 4);
		ret = uv_ioctl(fd, &tree);
	} else {
		ret = call(fd, front, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), &resp, sizeof(resp));
	}
	if (async_fd)
		*async_fd = resp.async_fd;
	if (num_comp_vectors)
		*num_comp_vectors = resp.num_comp_vectors;
	return ret;
}

int uv_alloc_async_fd(int fd, int *async_fd)
{
	struct ib_uverbs_attr *attr;
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	attr = uv_attr_obj(&tree, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, -1);
	ret = uv_ioctl(fd, &tree);
	*async_fd = attr->data;
	return ret;
}

int uv_query_device(int fd, enum uv_front front, struct ib_uverbs_query_device_resp *resp)
{
	struct ib_uverbs_ex_query_device_resp ex_resp = {};
	struct ib_uverbs_ex_query_device ex = {};
	struct ib_uverbs_query_device cmd = {};
	int ret;

	if (!uv_front_ex(front))
		return call(fd, front, IB_USER_VERBS_CMD_QUERY_DEVICE, &cmd, sizeof(cmd), resp, sizeof(*resp));
	ret = call(fd, front, UV_EX(QUERY_DEVICE), &ex, sizeof(ex), &ex_resp, sizeof(ex_resp));
	*resp = ex_resp.base;
	return ret;
}

int uv_query_port(int fd, enum uv_front front, uint32_t port, struct ib_uverbs_query_port_resp *resp)
{
	struct ib_uverbs_query_port cmd = { .port_num = port };
	struct ib_uverbs_query_port_resp_ex ex = {};
	struct uv_tree tree;
	int ret;

	if (front != UV_METHOD)
		return call(fd, front, IB_USER_VERBS_CMD_QUERY_PORT, &cmd, sizeof(cmd), resp, sizeof(*resp));
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_PORT_PORT_NUM, port);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_PORT_RESP, &ex, sizeof(ex));
	ret = uv_ioctl(fd, &tree);
	*resp = ex.legacy_resp;
	return ret;
}

int uv_query_gid_table(int fd, struct ib_uverbs_gid_entry *entries, unsigned int max)
{
	struct uv_tree tree;
	uint64_t num = 0;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, sizeof(*entries));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries, max * sizeof(*entries));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &num, sizeof(num));
	ret = uv_ioctl(fd, &tree);
	return ret ? ret : (int)num;
}

int uv_query_gid_entry(int fd, uint32_t port, uint32_t index, struct ib_uverbs_gid_entry *entry)
{
	struct uv_tree tree;
	uint32_t flags = 0;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port);
	uv_attr_const(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index);
	uv_attr_in(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, &flags, sizeof(flags));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry, sizeof(*entry));
	return uv_ioctl(fd, &tree);
}

/* ---- PD, MR ------------------------------------------------------------------------------------------------------ */

int uv_alloc_pd(int fd, enum uv_front front, uint32_t *handle)
{
	struct ib_uverbs_alloc_pd cmd = {};
	struct ib_uverbs_alloc_pd_resp resp = {};
	int ret = call(fd, front, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), &resp, sizeof(resp));

	*handle = resp.pd_handle;
	return ret;
}

int uv_dealloc_pd(int fd, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_dealloc_pd cmd = { .pd_handle = handle };

	if (front == UV_METHOD)
		return destroy(fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, handle);
	return call(fd, front, IB_USER_VERBS_CMD_DEALLOC_PD, &cmd, sizeof(cmd), NULL, 0);
}

int uv_reg_mr_at(int fd, enum uv_front front, uint32_t pd, uint64_t start, uint64_t len, uint64_t hca_va,
		 unsigned int access, struct uv_mr *mr)
{
	struct ib_uverbs_reg_mr cmd = {
		.start = start, .length = len, .hca_va = hca_va, .pd_handle = pd, .access_flags = access
	};
	struct ib_uverbs_reg_mr_resp resp = {};
	int ret = call(fd, front, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp));

	if (mr)
		*mr = (struct uv_mr){ resp.mr_handle, resp.lkey, resp.rkey };
	return ret;
}

int uv_reg_mr(int fd, enum uv_front front, uint32_t pd, const void *addr, uint64_t len, unsigned int access,
	      struct uv_mr *mr)
{
	return uv_reg_mr_at(fd, front, pd, (uintptr_t)addr, len, (uintptr_t)addr, access, mr);
}

int uv_dereg_mr(int fd, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_dereg_mr cmd = { .mr_handle = handle };

	if (front == UV_METHOD)
		return destroy(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, handle);
	return call(fd, front, IB_USER_VERBS_CMD_DEREG_MR, &cmd, sizeof(cmd), NULL, 0);
}

/* ---- CQ ---------------------------------------------------------------------------------------------------------- */

const struct uv_cq_attr uv_cq_default = { .cqe = 16, .channel = -1, .event_fd = -1 };

int uv_create_channel(int fd, enum uv_front front, int *channel)
{
	struct ib_uverbs_create_comp_channel cmd = {};
	struct ib_uverbs_create_comp_channel_resp resp = { .fd = -1 };
	int ret = call(fd, front, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &cmd, sizeof(cmd), &resp, sizeof(resp));

	*channel = resp.fd;
	return ret;
}

void uv_tree_create_cq(struct uv_tree *tree, const struct uv_cq_attr *attr, uint32_t *cqe)
{
	static uint8_t uhw_out[256];

	uv_tree_init(tree, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	uv_attr_obj(tree, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	uv_attr_in(tree, UVERBS_ATTR_CREATE_CQ_CQE, &attr->cqe, 4);
	uv_attr_in(tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &attr->user_handle, 8);
	if (attr->channel >= 0)
		uv_attr_obj(tree, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, attr->channel);
	uv_attr_in(tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &attr->comp_vector, 4);
	if (attr->flags)
		uv_attr_in(tree, UVERBS_ATTR_CREATE_CQ_FLAGS, &attr->flags, 4);
	uv_attr_out(tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe, 4);
	if (attr->event_fd >= 0)
		uv_attr_obj(tree, UVERBS_ATTR_CREATE_CQ_EVENT_FD, attr->event_fd);
	if (uv_room.create_cq)
		uv_attr_out(tree, UVERBS_ATTR_UHW_OUT, uhw_out, uv_room.create_cq);
}

int uv_create_cq(int fd, enum uv_front front, const struct uv_cq_attr *attr, uint32_t *handle, uint32_t *cqe)
{
	struct ib_uverbs_ex_create_cq ex = { .user_handle = attr->user_handle,
					     .cqe = attr->cqe,
					     .comp_vector = attr->comp_vector,
					     .comp_channel = attr->channel,
					     .flags = attr->flags };
	struct ib_uverbs_create_cq cmd = { .user_handle = attr->user_handle,
					   .cqe = attr->cqe,
					   .comp_vector = attr->comp_vector,
					   .comp_channel = attr->channel };
	struct ib_uverbs_ex_create_cq_resp resp = {};
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_create_cq(&tree, attr, &resp.base.cqe);
		ret = uv_ioctl(fd, &tree);
		resp.base.cq_handle = uv_attr_find(&tree, UVERBS_ATTR_CREATE_CQ_HANDLE)->data;
	} else if (uv_front_ex(front)) {
		ret = call_room(fd, front, UV_EX(CREATE_CQ), &ex, sizeof(ex), &resp, sizeof(resp), uv_room.create_cq);
	} else {
		ret = call_room(fd, front, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &resp.base,
				sizeof(resp.base), uv_room.create_cq);
	}
	*handle = resp.base.cq_handle;
	if (cqe)
		*cqe = resp.base.cqe;
	return ret;
}

int uv_destroy_cq(int fd, enum uv_front front, uint32_t handle, struct ib_uverbs_destroy_cq_resp *resp)
{
	struct ib_uverbs_destroy_cq cmd = { .cq_handle = handle };
	struct ib_uverbs_destroy_cq_resp ignored;
	struct uv_tree tree;

	resp = resp ? resp : &ignored;
	if (front != UV_METHOD)
		return call(fd, front, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), resp, sizeof(*resp));
	uv_tree_init(&tree, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_CQ_HANDLE, handle);
	uv_attr_out(&tree, UVERBS_ATTR_DESTROY_CQ_RESP, resp, sizeof(*resp));
	return uv_ioctl(fd, &tree);
}

int uv_poll_cq(int fd, enum uv_front front, uint32_t cq, unsigned int n, struct ib_uverbs_wc *wc)
{
	size_t len = sizeof(struct ib_uverbs_poll_cq_resp) + n * sizeof(*wc);
	struct ib_uverbs_poll_cq cmd = { .cq_handle = cq, .ne = n };
	struct ib_uverbs_poll_cq_resp *resp = calloc(1, len);
	int ret = call(fd, front, IB_USER_VERBS_CMD_POLL_CQ, &cmd, sizeof(cmd), resp, len);

	if (!ret) {
		ret = resp->count;
		memcpy(wc, resp + 1, (resp->count < n ? resp->count : n) * sizeof(*wc));
	}
	free(resp);
	return ret;
}

int uv_req_notify_cq(int fd, enum uv_front front, uint32_t cq, bool solicited_only)
{
	struct ib_uverbs_req_notify_cq cmd = { .cq_handle = cq, .solicited_only = solicited_only };

	return call(fd, front, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &cmd, sizeof(cmd), NULL, 0);
}

/* ---- QP, AH ------------------------------------------------------------------------------------------------------ */

struct uv_qp_attr uv_qp_attr(uint32_t pd, uint32_t cq)
{
	return (struct uv_qp_attr){ .pd = pd,
				    .send_cq = cq,
				    .recv_cq = cq,
				    .cap = { 16, 16, 4, 4, 0 },
				    .type = 2 /* IB_QPT_RC */,
				    .event_fd = -1 };
}

void uv_tree_create_qp(struct uv_tree *tree, const struct uv_qp_attr *attr, struct uv_qp *qp)
{
	uint32_t flags = attr->create_flags | (attr->sq_sig_all ? IB_UVERBS_QP_CREATE_SQ_SIG_ALL : 0);

	uv_tree_init(tree, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	uv_attr_obj(tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uv_attr_obj(tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, attr->pd);
	uv_attr_obj(tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, attr->send_cq);
	uv_attr_obj(tree, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, attr->recv_cq);
	uv_attr_in(tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &attr->user_handle, 8);
	uv_attr_in(tree, UVERBS_ATTR_CREATE_QP_CAP, &attr->cap, sizeof(attr->cap));
	uv_attr_const(tree, UVERBS_ATTR_CREATE_QP_TYPE, attr->type);
	if (flags)
		uv_attr_in(tree, UVERBS_ATTR_CREATE_QP_FLAGS, &flags, 4);
	if (attr->event_fd >= 0)
		uv_attr_obj(tree, UVERBS_ATTR_CREATE_QP_EVENT_FD, attr->event_fd);
	uv_attr_out(tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp->cap, sizeof(qp->cap));
	uv_attr_out(tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qp->qpn, 4);
	if (uv_room.create_qp)
		uv_attr_out(tree, UVERBS_ATTR_UHW_OUT, qp->driver, uv_room.create_qp);
}

static int create_qp_ex(int fd, enum uv_front front, const struct uv_qp_attr *attr,
			struct ib_uverbs_ex_create_qp_resp *resp, void *driver)
{
	struct ib_uverbs_ex_create_qp cmd = {
		.user_handle = attr->user_handle,
		.pd_handle = attr->pd,
		.send_cq_handle = attr->send_cq,
		.recv_cq_handle = attr->recv_cq,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline_data = attr->cap.max_inline_data,
		.sq_sig_all = attr->sq_sig_all,
		.qp_type = attr->type,
		.create_flags = attr->create_flags,
	};

	return uv_cmd(fd, front,
		      &(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), resp, sizeof(*resp), NULL, 0, driver,
					uv_room.create_qp });
}

static int create_qp_plain(int fd, enum uv_front front, const struct uv_qp_attr *attr,
			   struct ib_uverbs_create_qp_resp *resp, void *driver)
{
	struct ib_uverbs_create_qp cmd = {
		.user_handle = attr->user_handle,
		.pd_handle = attr->pd,
		.send_cq_handle = attr->send_cq,
		.recv_cq_handle = attr->recv_cq,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline_data = attr->cap.max_inline_data,
		.sq_sig_all = attr->sq_sig_all,
		.qp_type = attr->type,
	};

	return uv_cmd(fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), resp, sizeof(*resp), NULL, 0,
					driver, uv_room.create_qp });
}

int uv_create_qp(int fd, enum uv_front front, const struct uv_qp_attr *attr, struct uv_qp *qp)
{
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_create_qp(&tree, attr, qp);
		ret = uv_ioctl(fd, &tree);
		qp->handle = uv_attr_find(&tree, UVERBS_ATTR_CREATE_QP_HANDLE)->data;
		return ret;
	}
	ret = uv_front_ex(front) ? create_qp_ex(fd, front, attr, &resp, qp->driver)
				 : create_qp_plain(fd, front, attr, &resp.base, qp->driver);
	qp->handle = resp.base.qp_handle;
	qp->qpn = resp.base.qpn;
	qp->cap = (struct ib_uverbs_qp_cap){ resp.base.max_send_wr, resp.base.max_recv_wr, resp.base.max_send_sge,
					     resp.base.max_recv_sge, resp.base.max_inline_data };
	return ret;
}

int uv_destroy_qp(int fd, enum uv_front front, uint32_t handle, uint32_t *events_reported)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp resp = {};
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_init(&tree, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
		uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_QP_HANDLE, handle);
		uv_attr_out(&tree, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
		ret = uv_ioctl(fd, &tree);
	} else {
		ret = call(fd, front, IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd), &resp, sizeof(resp));
	}
	if (events_reported)
		*events_reported = resp.events_reported;
	return ret;
}

int uv_modify_qp(int fd, enum uv_front front, const struct ib_uverbs_modify_qp *attr)
{
	struct ib_uverbs_ex_modify_qp ex = { .base = *attr };
	struct ib_uverbs_ex_modify_qp_resp resp = {};

	if (uv_front_ex(front))
		return call(fd, front, UV_EX(MODIFY_QP), &ex, sizeof(ex), &resp, sizeof(resp));
	return call(fd, front, IB_USER_VERBS_CMD_MODIFY_QP, attr, sizeof(*attr), NULL, 0);
}

int uv_query_qp(int fd, enum uv_front front, uint32_t handle, struct ib_uverbs_query_qp_resp *resp)
{
	struct ib_uverbs_query_qp cmd = { .qp_handle = handle, .attr_mask = 0x1fffff };

	return call(fd, front, IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), resp, sizeof(*resp));
}

int uv_create_ah(int fd, enum uv_front front, uint32_t pd, const struct ib_uverbs_ah_attr *attr, uint32_t *handle)
{
	struct ib_uverbs_create_ah cmd = { .pd_handle = pd, .attr = *attr };
	struct ib_uverbs_create_ah_resp resp = {};
	int ret = call_room(fd, front, IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), &resp, sizeof(resp),
			    uv_room.create_ah);

	*handle = resp.ah_handle;
	return ret;
}

int uv_destroy_ah(int fd, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_destroy_ah cmd = { .ah_handle = handle };

	if (front == UV_METHOD)
		return destroy(fd, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, handle);
	return call(fd, front, IB_USER_VERBS_CMD_DESTROY_AH, &cmd, sizeof(cmd), NULL, 0);
}

/* ---- work requests ----------------------------------------------------------------------------------------------- */

struct post {
	uint32_t command, qp;
	const void *wr;
	size_t wr_size;
	unsigned int num_wr;
	const struct ib_uverbs_sge *sge;
	unsigned int num_sge;
};

/* POST_SEND and POST_RECV have the same layout: the struct, the work requests, the SGEs. */
static int post(int fd, enum uv_front front, const struct post *p, uint32_t *bad_wr)
{
	struct ib_uverbs_post_send cmd = {
		.qp_handle = p->qp, .wr_count = p->num_wr, .sge_count = p->num_sge, .wqe_size = p->wr_size
	};
	size_t wr_len = p->num_wr * p->wr_size, sge_len = p->num_sge * sizeof(*p->sge);
	uint8_t *in = malloc(sizeof(cmd) + wr_len + sge_len);
	struct ib_uverbs_post_send_resp resp = {};
	int ret;

	memcpy(in, &cmd, sizeof(cmd));
	if (wr_len)
		memcpy(in + sizeof(cmd), p->wr, wr_len);
	if (sge_len)
		memcpy(in + sizeof(cmd) + wr_len, p->sge, sge_len);
	ret = call(fd, front, p->command, in, sizeof(cmd) + wr_len + sge_len, &resp, sizeof(resp));
	if (bad_wr)
		*bad_wr = resp.bad_wr;
	free(in);
	return ret;
}

int uv_post_send(int fd, enum uv_front front, uint32_t qp, const struct ib_uverbs_send_wr *wr, unsigned int num_wr,
		 const struct ib_uverbs_sge *sge, unsigned int num_sge, uint32_t *bad_wr)
{
	return post(fd, front, &(struct post){ IB_USER_VERBS_CMD_POST_SEND, qp, wr, sizeof(*wr), num_wr, sge, num_sge },
		    bad_wr);
}

int uv_post_recv(int fd, enum uv_front front, uint32_t qp, const struct ib_uverbs_recv_wr *wr, unsigned int num_wr,
		 const struct ib_uverbs_sge *sge, unsigned int num_sge, uint32_t *bad_wr)
{
	return post(fd, front, &(struct post){ IB_USER_VERBS_CMD_POST_RECV, qp, wr, sizeof(*wr), num_wr, sge, num_sge },
		    bad_wr);
}
