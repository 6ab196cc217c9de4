/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: XRC domains, their target QPs and SRQs. */
#include <fcntl.h>
#include "faults.h"

static void open_private(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_open_xrcd, .fd = -1);
	CALL_OUT(c, struct ib_uverbs_open_xrcd_resp);
}

static void open_by_file(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_open_xrcd, .fd = c->async_fd, .oflags = O_CREAT);
	CALL_OUT(c, struct ib_uverbs_open_xrcd_resp);
}

static void make_xrcd(struct call *c)
{
	struct ib_uverbs_open_xrcd cmd = { .fd = c->async_fd, .oflags = O_CREAT };
	struct ib_uverbs_open_xrcd_resp resp;

	call_context(c);
	WORKS(WRITE(&c->h, OPEN_XRCD, &cmd, &resp));
	c->xrcd = resp.xrcd_handle;
}

static void close_xrcd(struct call *c)
{
	make_xrcd(c);
	CALL_IN(c, struct ib_uverbs_close_xrcd, .xrcd_handle = c->xrcd);
}

static void xrcd_destroy(struct call *c)
{
	make_xrcd(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_XRCD_HANDLE, c->xrcd);
}

static void create_target(struct call *c)
{
	make_xrcd(c);
	CALL_IN(c, struct ib_uverbs_create_qp, .pd_handle = c->xrcd, .qp_type = IBV_QPT_XRC_RECV);
	CALL_OUT(c, struct ib_uverbs_create_qp_resp);
}

static void make_target(struct call *c)
{
	struct ib_uverbs_create_qp cmd = { .qp_type = IBV_QPT_XRC_RECV };
	struct ib_uverbs_create_qp_resp resp;

	make_xrcd(c);
	cmd.pd_handle = c->xrcd;
	WORKS(WRITE(&c->h, CREATE_QP, &cmd, &resp));
	c->qp = resp.qp_handle;
	c->qpn = resp.qpn;
}

static void destroy_target(struct call *c)
{
	make_target(c);
	CALL_IN(c, struct ib_uverbs_destroy_qp, .qp_handle = c->qp);
	CALL_OUT(c, struct ib_uverbs_destroy_qp_resp);
}

static void open_qp(struct call *c)
{
	make_target(c);
	CALL_IN(c, struct ib_uverbs_open_qp, .pd_handle = c->xrcd, .qpn = c->qpn, .qp_type = IBV_QPT_XRC_RECV);
	CALL_OUT(c, struct ib_uverbs_create_qp_resp);
}

static void create_xsrq(struct call *c)
{
	make_xrcd(c);
	call_pd(c);
	call_cq(c);
	CALL_IN(c, struct ib_uverbs_create_xsrq, .user_handle = 1, .srq_type = IB_UVERBS_SRQT_XRC, .pd_handle = c->pd,
		.max_wr = 8, .max_sge = 2, .cq_handle = c->cq, .xrcd_handle = c->xrcd);
	CALL_OUT(c, struct ib_uverbs_create_srq_resp);
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_CMD_OPEN_XRCD", open_private },
	{ "IB_USER_VERBS_CMD_OPEN_XRCD", open_by_file },
	{ "IB_USER_VERBS_CMD_CLOSE_XRCD", close_xrcd, .destroys = true },
	{ "UVERBS_METHOD_XRCD_DESTROY", xrcd_destroy, .destroys = true },
	{ "IB_USER_VERBS_CMD_CREATE_QP", create_target },
	{ "IB_USER_VERBS_CMD_DESTROY_QP", destroy_target, .destroys = true },
	{ "IB_USER_VERBS_CMD_OPEN_QP", open_qp },
	{ "IB_USER_VERBS_CMD_CREATE_XSRQ", create_xsrq },
};

CALL_GROUP(calls_xrc, entries);
