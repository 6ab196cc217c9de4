/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request's outputs. They are staged, so that one system call writes them all: the response, the provider's
 * response, and for ioctl the handle and the flags in the client's attributes.
 */
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#include "dispatch/internal.h"

/* Room for all pieces of one write: the handle, the staged pieces, a flag for each attribute. */
struct vec {
	struct uvd_write_vec v[1 + UVD_REQ_MAX_OUT + 64 * UVD_COUNT(((struct uvd_req *)NULL)->written)];
	unsigned int n;
};

static void vec_add(struct vec *vec, uint64_t addr, const void *src, size_t len)
{
	vec->v[vec->n++] = (struct uvd_write_vec){ .addr = addr, .src = src, .len = len };
}

/* Adds a new object's handle, for the client's attribute. The kernel writes it before all else (ioctl-20). */
static void vec_handle(struct uvd_req *req, struct vec *vec)
{
	const int i = req->new_attr;

	if (i < 0)
		return;
	req->new_attr = -1;
	vec_add(vec, req->user_attrs + i * sizeof(*req->uattrs) + offsetof(struct ib_uverbs_attr, data),
		&req->uattrs[i].data, sizeof(req->uattrs[i].data));
}

static void unmark_written(struct uvd_req *req, unsigned int i)
{
	req->written[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static void vec_flag(struct uvd_req *req, struct vec *vec, unsigned int i)
{
	unmark_written(req, i);
	req->uattrs[i].flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	vec_add(vec, req->user_attrs + i * sizeof(*req->uattrs) + offsetof(struct ib_uverbs_attr, flags),
		&req->uattrs[i].flags, sizeof(req->uattrs[i].flags));
}

/*
 * Adds all staged pieces. An attribute's flag follows its output, so that it is written even if a later output cannot
 * be. The attribute `unfinished` (-1: none) has more output to come, and gets no flag yet.
 */
static void vec_outs(struct uvd_req *req, struct vec *vec, int unfinished)
{
	struct uvd_req_buffers *buffers = uvd_buffers(req);

	for (unsigned int i = 0; i < req->num_outs; i++) {
		const struct uvd_req_out *out = &buffers->outs[i];
		bool last = i + 1 == req->num_outs || out[1].attr != out->attr;

		vec_add(vec, out->addr, buffers->stage + out->at, out->len);
		if (out->attr >= 0 && out->attr != unfinished && last)
			vec_flag(req, vec, out->attr);
	}
	req->num_outs = 0;
	req->staged = 0;
}

/* Adds the flags of attributes whose output was not staged. */
static void vec_flags(struct uvd_req *req, struct vec *vec)
{
	for (unsigned int word = 0; word < UVD_COUNT(req->written); word++)
		for (uint64_t bits = req->written[word]; bits; bits &= bits - 1)
			vec_flag(req, vec, word * 64 + __builtin_ctzll(bits));
}

int uvd_out_flush(struct uvd_req *req)
{
	struct vec vec;
	int err;

	vec.n = 0;
	vec_handle(req, &vec);
	vec_outs(req, &vec, -1);
	vec_flags(req, &vec);
	err = uvd_caller_writev(req->caller, vec.v, vec.n);
	for (unsigned int i = 0; req->observation && i < vec.n; i++)
		uvd_observe_written(req->observation, vec.v[i].addr, vec.v[i].src, vec.v[i].len, err);
	return err ? uvd_bad(req, -EFAULT, "response", req->core_out.addr) : 0;
}

/*
 * Does a piece follow the last one in the client's memory, for the same attribute? Then both become one, as a
 * response and the provider's part of it.
 */
static bool extends_last(struct uvd_req *req, uint64_t addr, int attr)
{
	const struct uvd_req_out *last;

	if (!req->num_outs)
		return false;
	last = &uvd_buffers(req)->outs[req->num_outs - 1];
	return last->addr + last->len == addr && last->attr == attr;
}

/*
 * Stages a piece of output, or writes it through if it is larger than the stage. attr: the index of the attribute
 * that it belongs to; -1: none. Returns 0 or -EFAULT.
 */
static int out_stage(struct uvd_req *req, uint64_t addr, const void *src, size_t len, int attr)
{
	struct uvd_req_buffers *buffers = uvd_buffers(req);
	struct vec vec;
	bool extends;
	int err;

	/* Stage even an empty output of an attribute, so that its flag is written in its turn. */
	if (!len && attr < 0)
		return 0;
	if (!addr && len)
		return uvd_bad(req, -EFAULT, "response", addr);
	extends = extends_last(req, addr, attr);
	if (len > UVD_REQ_STAGE - req->staged || (!extends && req->num_outs == UVD_REQ_MAX_OUT)) {
		vec.n = 0;
		vec_outs(req, &vec, attr);
		err = uvd_caller_writev(req->caller, vec.v, vec.n);
		if (!err && len > UVD_REQ_STAGE)
			err = uvd_caller_write(req->caller, addr, src, len);
		if (err) {
			if (attr >= 0)
				unmark_written(req, attr);
			return uvd_bad(req, -EFAULT, "response", addr);
		}
		if (len > UVD_REQ_STAGE)
			return 0;
		extends = false;
	}
	if (len)
		memcpy(buffers->stage + req->staged, src, len);
	if (extends)
		buffers->outs[req->num_outs - 1].len += len;
	else
		buffers->outs[req->num_outs++] =
			(struct uvd_req_out){ .addr = addr, .at = req->staged, .len = len, .attr = attr };
	req->staged += len;
	return 0;
}

static int out_zero(struct uvd_req *req, uint64_t addr, size_t len, int attr)
{
	static const uint8_t zeros[512];
	size_t n;
	int err = 0;

	for (; len && !err; addr += n, len -= n) {
		n = len < sizeof(zeros) ? len : sizeof(zeros);
		err = out_stage(req, addr, zeros, n, attr);
	}
	return err;
}

static void core_written(struct uvd_req *req)
{
	if (req->core_out.attr >= 0)
		uvd_mark_written(req, req->core_out.attr);
}

int uvd_core_out_bytes(struct uvd_req *req, const void *src, size_t size)
{
	size_t n = size < req->core_out.len ? size : req->core_out.len;
	int err = out_stage(req, req->core_out.addr, src, n, req->core_out.attr);

	if (!err)
		err = out_zero(req, req->core_out.addr + n, req->core_out.len - n, req->core_out.attr);
	if (!err)
		core_written(req);
	return err;
}

int uvd_core_out_at(struct uvd_req *req, size_t at, const void *src, size_t size)
{
	int err;

	if (!req->core_out.addr)
		return size ? uvd_bad(req, -EFAULT, "response", 0) : 0;
	err = out_stage(req, req->core_out.addr + at, src, size, req->core_out.attr);
	if (!err)
		core_written(req);
	return err;
}

int uvd_uhw_out(struct uvd_req *req, const void *src, size_t size)
{
	return out_stage(req, req->uhw_out.addr, src, size < req->uhw_out.len ? size : req->uhw_out.len, -1);
}

int uvd_attr_copy_to_bytes(struct uvd_req *req, uint16_t id, const void *src, size_t size)
{
	const struct uvd_attr *attr = uvd_attr_get(req, id);
	int err;

	if (!attr)
		return -ENOENT;
	err = out_stage(req, attr->data, src, size < attr->len ? size : attr->len, attr->index);
	if (!err)
		uvd_mark_written(req, attr->index);
	return err;
}

int uvd_attr_copy_to_or_zero_bytes(struct uvd_req *req, uint16_t id, const void *src, size_t size)
{
	const struct uvd_attr *attr = uvd_attr_get(req, id);
	int err = uvd_attr_copy_to_bytes(req, id, src, size);

	if (!err && size < attr->len)
		err = out_zero(req, attr->data + size, attr->len - size, attr->index);
	return err;
}
