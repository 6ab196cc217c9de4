/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* More verbs, as in uv_verbs.c: SRQs, memory windows, multicast, RESIZE_CQ. None of them has an extended command. */
#include <errno.h>
#include <string.h>
#include "uv.h"

static int call(int fd, enum uv_front front, uint32_t command, const void *in, size_t in_len, void *out, size_t out_len,
		size_t room)
{
	uint8_t uhw_out[256];

	return uv_cmd(fd, front, &(struct uv_cmd){ command, in, in_len, out, out_len, NULL, 0, uhw_out, room });
}

/* ---- SRQ --------------------------------------------------------------------------------------------------------- */

struct uv_srq_attr uv_srq_attr(uint32_t pd)
{
	return (struct uv_srq_attr){ .pd = pd, .max_wr = 16, .max_sge = 2 };
}

/* Sends the attributes that only some types need (XRCD, CQ, tags) if attr has a value other than 0 for them. */
static int create_srq_method(int fd, const struct uv_srq_attr *attr, struct uv_srq *srq)
{
	static uint8_t uhw_out[256];
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, attr->pd);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_SRQ_TYPE, attr->type);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &attr->user_handle, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &attr->max_wr, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &attr->max_sge, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &attr->limit, 4);
	srq->srqn = 0;
	if (attr->xrcd) {
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, attr->xrcd);
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &srq->srqn, 4);
	}
	if (attr->cq)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, attr->cq);
	if (attr->tags)
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, &attr->tags, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &srq->max_wr, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &srq->max_sge, 4);
	if (uv_room.create_srq)
		uv_attr_out(&tree, UVERBS_ATTR_UHW_OUT, uhw_out, uv_room.create_srq);
	ret = uv_ioctl(fd, &tree);
	srq->handle = uv_attr_find(&tree, UVERBS_ATTR_CREATE_SRQ_HANDLE)->data;
	return ret;
}

int uv_create_srq(int fd, enum uv_front front, const struct uv_srq_attr *attr, struct uv_srq *srq)
{
	struct ib_uverbs_create_srq cmd = { .user_handle = attr->user_handle,
					    .pd_handle = attr->pd,
					    .max_wr = attr->max_wr,
					    .max_sge = attr->max_sge,
					    .srq_limit = attr->limit };
	struct ib_uverbs_create_srq_resp resp = {};
	int ret;

	if (front == UV_METHOD)
		return create_srq_method(fd, attr, srq);
	ret = call(fd, front, IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp), uv_room.create_srq);
	*srq = (struct uv_srq){ resp.srq_handle, resp.max_wr, resp.max_sge, resp.srqn };
	return ret;
}

int uv_create_xsrq(int fd, enum uv_front front, const struct uv_srq_attr *attr, struct uv_srq *srq)
{
	struct ib_uverbs_create_xsrq cmd = { .user_handle = attr->user_handle,
					     .srq_type = attr->type,
					     .pd_handle = attr->pd,
					     .max_wr = attr->max_wr,
					     .max_sge = attr->max_sge,
					     .srq_limit = attr->limit,
					     .max_num_tags = attr->tags,
					     .xrcd_handle = attr->xrcd,
					     .cq_handle = attr->cq };
	struct ib_uverbs_create_srq_resp resp = {};
	int ret = call(fd, front, IB_USER_VERBS_CMD_CREATE_XSRQ, &cmd, sizeof(cmd), &resp, sizeof(resp),
		       uv_room.create_srq);

	*srq = (struct uv_srq){ resp.srq_handle, resp.max_wr, resp.max_sge, resp.srqn };
	return ret;
}

int uv_modify_srq(int fd, enum uv_front front, uint32_t handle, uint32_t mask, uint32_t max_wr, uint32_t limit)
{
	struct ib_uverbs_modify_srq cmd = {
		.srq_handle = handle, .attr_mask = mask, .max_wr = max_wr, .srq_limit = limit
	};
	uint64_t place_of_queue = 0;

	return uv_cmd(fd, front,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd, sizeof(cmd), NULL, 0, &place_of_queue,
					uv_room.modify_srq });
}

int uv_query_srq(int fd, enum uv_front front, uint32_t handle, struct ib_uverbs_query_srq_resp *resp)
{
	struct ib_uverbs_query_srq cmd = { .srq_handle = handle };

	return call(fd, front, IB_USER_VERBS_CMD_QUERY_SRQ, &cmd, sizeof(cmd), resp, sizeof(*resp), 0);
}

int uv_destroy_srq(int fd, enum uv_front front, uint32_t handle, uint32_t *events_reported)
{
	struct ib_uverbs_destroy_srq cmd = { .srq_handle = handle };
	struct ib_uverbs_destroy_srq_resp resp = {};
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_init(&tree, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
		uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_SRQ_HANDLE, handle);
		uv_attr_out(&tree, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
		ret = uv_ioctl(fd, &tree);
	} else {
		ret = call(fd, front, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp), 0);
	}
	if (events_reported)
		*events_reported = resp.events_reported;
	return ret;
}

/* ---- MW, CQ ------------------------------------------------------------------------------------------------------ */

int uv_alloc_mw(int fd, enum uv_front front, uint32_t pd, uint8_t type, uint32_t *handle, uint32_t *rkey)
{
	struct ib_uverbs_alloc_mw cmd = { .pd_handle = pd, .mw_type = type };
	struct ib_uverbs_alloc_mw_resp resp = {};
	int ret = call(fd, front, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), &resp, sizeof(resp), 0);

	*handle = resp.mw_handle;
	*rkey = resp.rkey;
	return ret;
}

int uv_dealloc_mw(int fd, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_dealloc_mw cmd = { .mw_handle = handle };
	struct uv_tree tree;

	if (front != UV_METHOD)
		return call(fd, front, IB_USER_VERBS_CMD_DEALLOC_MW, &cmd, sizeof(cmd), NULL, 0, 0);
	uv_tree_init(&tree, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_MW_HANDLE, handle);
	return uv_ioctl(fd, &tree);
}

int uv_resize_cq(int fd, enum uv_front front, uint32_t handle, uint32_t cqe, uint32_t *got)
{
	struct ib_uverbs_resize_cq cmd = { .cq_handle = handle, .cqe = cqe };
	struct ib_uverbs_resize_cq_resp resp = {};
	int ret =
		call(fd, front, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp), uv_room.resize_cq);

	if (got)
		*got = resp.cqe;
	return ret;
}

/* ---- multicast --------------------------------------------------------------------------------------------------- */

int uv_mcast(int fd, enum uv_front front, bool attach, uint32_t qp, const uint8_t gid[16], uint16_t mlid)
{
	struct ib_uverbs_attach_mcast cmd = { .qp_handle = qp, .mlid = mlid };

	memcpy(cmd.gid, gid, sizeof(cmd.gid));
	return call(fd, front, attach ? IB_USER_VERBS_CMD_ATTACH_MCAST : IB_USER_VERBS_CMD_DETACH_MCAST, &cmd,
		    sizeof(cmd), NULL, 0, 0);
}
