/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands and methods for the harness's first file, with fewer words than uv.h needs.
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

/* Issues a plain command. With `out`, the first 8 bytes of `in` are set to its address. */
static inline int harness_write(struct harness *h, uint32_t command, void *in, size_t in_len, void *out, size_t out_len)
{
	uint64_t buf[512] = {}, *big = NULL, *p = buf;
	struct ib_uverbs_cmd_hdr hdr = {
		.command = command,
		.in_words = (sizeof(hdr) + in_len) / 4,
		.out_words = out_len / 4,
	};
	uint64_t response = (uintptr_t)out;
	int ret;

	if (sizeof(hdr) + in_len > sizeof(buf))
		p = big = calloc(1, sizeof(hdr) + in_len + 8);
	if (out)
		memcpy(in, &response, sizeof(response));
	memcpy(p, &hdr, sizeof(hdr));
	memcpy((uint8_t *)p + sizeof(hdr), in, in_len);
	ret = harness_bytes(h, p, sizeof(hdr) + in_len);
	free(big);
	return ret;
}

/* Issues an extended command. `in` is padded with zeros to a multiple of 8 bytes. */
static inline int harness_write_ex(struct harness *h, uint32_t command, const void *in, size_t in_len, void *out,
				   size_t out_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t in[];
	} *msg = calloc(1, sizeof(*msg) + in_len + 8);
	size_t words = (in_len + 7) / 8;
	int ret;

	msg->hdr.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	msg->hdr.in_words = words;
	msg->hdr.out_words = out_len / 8;
	msg->ex.response = (uintptr_t)out;
	memcpy(msg->in, in, in_len);
	ret = harness_bytes(h, msg, sizeof(*msg) + words * 8);
	free(msg);
	return ret;
}

/* The same for pointers to structs, whose sizes are passed. */
#define WRITE(h, n, in, out) harness_write(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))
#define WRITE_IN(h, n, in) harness_write(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), NULL, 0)
#define WRITE_EX_IN(h, n, in) harness_write_ex(h, IB_USER_VERBS_EX_CMD_##n, in, sizeof(*(in)), NULL, 0)
#define WRITE_EX(h, n, in, out) harness_write_ex(h, IB_USER_VERBS_EX_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))

/* ---- ioctl ------------------------------------------------------------------------------------------------------- */

struct harness_tree {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[32];
};

static inline struct ib_uverbs_attr *tree_add(struct harness_tree *tree, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &tree->attrs[tree->hdr.num_attrs++];

	*attr = (struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
	return attr;
}

static inline struct ib_uverbs_attr *tree_in(struct harness_tree *tree, uint16_t id, const void *in, uint16_t len)
{
	uint64_t data = (uintptr_t)in;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, in, len);
	}
	return tree_add(tree, id, len, data);
}

static inline struct ib_uverbs_attr *tree_out(struct harness_tree *tree, uint16_t id, void *out, uint16_t len)
{
	return tree_add(tree, id, len, (uintptr_t)out);
}

static inline struct ib_uverbs_attr *tree_const(struct harness_tree *tree, uint16_t id, uint64_t value)
{
	return tree_add(tree, id, sizeof(value), value);
}

/* value: a handle or an fd. */
static inline struct ib_uverbs_attr *tree_object(struct harness_tree *tree, uint16_t id, int64_t value)
{
	return tree_add(tree, id, 0, value);
}

static inline int harness_ioctl(struct harness *h, uint16_t object, uint16_t method, struct harness_tree *tree)
{
	tree->hdr.object_id = object;
	tree->hdr.method_id = method;
	tree->hdr.driver_id = h->dev->tree->driver_id;
	tree->hdr.length = sizeof(tree->hdr) + tree->hdr.num_attrs * sizeof(tree->attrs[0]);
	return harness_finish(h, h->call, uvd_dispatch_ioctl(h->call, RDMA_VERBS_IOCTL, (uintptr_t)tree));
}

/* Issues a command by UVERBS_METHOD_INVOKE_WRITE, with the same structs as harness_write(). */
static inline int harness_invoke(struct harness *h, uint32_t command, const void *in, size_t in_len, void *out,
				 size_t out_len)
{
	struct harness_tree tree = {};

	tree_const(&tree, UVERBS_ATTR_WRITE_CMD, command);
	tree_in(&tree, UVERBS_ATTR_CORE_IN, in, in_len);
	if (out)
		tree_out(&tree, UVERBS_ATTR_CORE_OUT, out, out_len);
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
