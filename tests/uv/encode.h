/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands and methods on the harness's file, which a test may have replaced, encoded by uv.h: for tests that look at
 * other things than the answers of standard verbs.
 *
 * Return values: 0 or a negative errno, unless a comment says otherwise.
 */
#ifndef UVD_TESTS_ENCODE_H
#define UVD_TESTS_ENCODE_H

#include "harness.h"

/* ---- write() ----------------------------------------------------------------------------------------------------- */

static inline int harness_bytes(struct harness *h, const void *bytes, size_t len)
{
	long ret = harness_finish(h, h->call, uvd_dispatch_write(h->call, bytes, len));

	return ret < 0 ? ret : (size_t)ret == len ? 0 : -EMSGSIZE;
}

/* Allocates nothing: some tests count allocations. */
static inline struct uv_msg *harness_msg(void)
{
	static _Thread_local struct uv_msg msg;

	return &msg;
}

/* Issues a plain command. With `out`, the first 8 bytes of `in` are set to its address. */
static inline int harness_write(struct harness *h, uint32_t command, void *in, size_t in_len, void *out, size_t out_len)
{
	struct uv_msg *msg = harness_msg();

	if (out)
		memcpy(in, &(uint64_t){ (uintptr_t)out }, sizeof(uint64_t));
	uv_msg_plain(msg, command, in, in_len, out_len);
	return harness_bytes(h, msg->bytes, msg->len);
}

/* Issues an extended command. */
static inline int harness_write_ex(struct harness *h, uint32_t command, const void *in, size_t in_len, void *out,
				   size_t out_len)
{
	struct uv_msg *msg = harness_msg();

	uv_msg_ex(msg, command | IB_USER_VERBS_CMD_FLAG_EXTENDED, in, in_len, out, out_len);
	return harness_bytes(h, msg->bytes, msg->len);
}

/* The same for pointers to structs, whose sizes are passed. */
#define WRITE(h, n, in, out) harness_write(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))
#define WRITE_IN(h, n, in) harness_write(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), NULL, 0)
#define WRITE_EX_IN(h, n, in) harness_write_ex(h, IB_USER_VERBS_EX_CMD_##n, in, sizeof(*(in)), NULL, 0)
#define WRITE_EX(h, n, in, out) harness_write_ex(h, IB_USER_VERBS_EX_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))

/* ---- ioctl ------------------------------------------------------------------------------------------------------- */

/* Sets the header and issues the tree. */
static inline int harness_ioctl(struct harness *h, uint16_t object, uint16_t method, struct uv_tree *tree)
{
	tree->hdr.object_id = object;
	tree->hdr.method_id = method;
	tree->hdr.driver_id = h->dev->trees->plain->driver_id;
	tree->hdr.length = sizeof(tree->hdr) + tree->hdr.num_attrs * sizeof(tree->hdr.attrs[0]);
	return harness_finish(h, h->call, uvd_dispatch_ioctl(h->call, RDMA_VERBS_IOCTL, (uintptr_t)tree));
}

/* Issues a command by UVERBS_METHOD_INVOKE_WRITE, with the same structs as harness_write(). */
static inline int harness_invoke(struct harness *h, uint32_t command, const void *in, size_t in_len, void *out,
				 size_t out_len)
{
	struct uv_tree tree = {};

	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, command);
	uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, in, in_len);
	if (out)
		uv_attr_out(&tree, UVERBS_ATTR_CORE_OUT, out, out_len);
	return harness_ioctl(h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, &tree);
}

#define INVOKE_EX(h, n, in, out) \
	harness_invoke(h, IB_USER_VERBS_EX_CMD_##n | IB_USER_VERBS_CMD_FLAG_EXTENDED, in, sizeof(*(in)), out, \
		       sizeof(*(out)))
#define INVOKE(h, n, in, out) harness_invoke(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))

/* ---- verbs, by write() ------------------------------------------------------------------------------------------- */

static inline int harness_get_context(struct harness *h, struct ib_uverbs_get_context_resp *resp)
{
	struct ib_uverbs_get_context cmd = {};

	return WRITE(h, GET_CONTEXT, &cmd, resp);
}

static inline int harness_alloc_pd(struct harness *h, uint32_t *pd)
{
	struct ib_uverbs_alloc_pd_resp resp = { .pd_handle = ~0u };
	struct ib_uverbs_alloc_pd cmd = {};
	int ret = WRITE(h, ALLOC_PD, &cmd, &resp);

	*pd = resp.pd_handle;
	return ret;
}

static inline int harness_dealloc_pd(struct harness *h, uint32_t pd)
{
	struct ib_uverbs_dealloc_pd cmd = { .pd_handle = pd };

	return WRITE_IN(h, DEALLOC_PD, &cmd);
}

static inline int harness_reg_mr(struct harness *h, uint32_t pd, void *addr, uint64_t len, uint32_t access,
				 struct ib_uverbs_reg_mr_resp *resp)
{
	struct ib_uverbs_reg_mr cmd = {
		.start = (uintptr_t)addr,
		.length = len,
		.hca_va = (uintptr_t)addr,
		.pd_handle = pd,
		.access_flags = access,
	};

	return WRITE(h, REG_MR, &cmd, resp);
}

/* channel: the fd of a completion channel; -1: none. */
static inline int harness_create_cq(struct harness *h, uint64_t user_handle, uint32_t cqe, int channel, uint32_t *cq)
{
	struct ib_uverbs_create_cq_resp resp = { .cq_handle = ~0u };
	struct ib_uverbs_create_cq cmd = { .user_handle = user_handle, .cqe = cqe, .comp_channel = channel };
	int ret = WRITE(h, CREATE_CQ, &cmd, &resp);

	*cq = resp.cq_handle;
	return ret;
}

static inline int harness_create_qp(struct harness *h, uint8_t type, uint32_t pd, uint32_t cq,
				    struct ib_uverbs_create_qp_resp *resp)
{
	struct ib_uverbs_create_qp cmd = {
		.user_handle = 0x9999,
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = 16,
		.max_recv_wr = 16,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.qp_type = type,
	};

	return WRITE(h, CREATE_QP, &cmd, resp);
}

/* Makes a context, a PD (handle 0) and a CQ (handle 1). */
static inline int harness_begin(struct harness *h, uint32_t *pd, uint32_t *cq)
{
	struct ib_uverbs_get_context_resp resp;
	int ret = harness_get_context(h, &resp);

	if (!ret)
		ret = harness_alloc_pd(h, pd);
	return ret ? ret : harness_create_cq(h, 0x1111, 64, -1, cq);
}

#endif
