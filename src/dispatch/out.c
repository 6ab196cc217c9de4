/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request's outputs. They are collected, so that a command costs one system call to write them all: response, the
 * provider's response, and for ioctl the handles and flags in the client's attributes.
 */
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#include "dispatch/internal.h"

/* All pieces that there can be at once: the handle, what is staged, a flag for each attribute. */
struct vec {
	struct uvd_write_vec v[1 + UVD_REQ_MAX_OUT + 64 * UVD_COUNT(((struct uvd_req *)NULL)->written)];
	unsigned int n;
};

static void vec_add(struct vec *vec, uint64_t addr, const void *src, size_t len)
{
	vec->v[vec->n++] = (struct uvd_write_vec){ .addr = addr, .src = src, .len = len };
}

/* The handle of a new object goes into the client's attribute: the kernel writes it before all else (ioctl-20). */
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
 * An attribute's flag follows its output, so that it is there even if a later output cannot be written. `unfinished` (-1:
 * none) has more output to come, and no flag yet.
 */
static void vec_outs(struct uvd_req *req, struct vec *vec, int unfinished)
{
	for (unsigned int i = 0; i < req->num_outs; i++) {
		const int attr = req->outs[i].attr;
		bool last = i + 1 == req->num_outs || req->outs[i + 1].attr != attr;

		vec_add(vec, req->outs[i].addr, req->stage + req->outs[i].at, req->outs[i].len);
		if (attr >= 0 && attr != unfinished && last)
			vec_flag(req, vec, attr);
	}
	req->num_outs = 0;
	req->staged = 0;
}

/* Of what was written by another way. */
static void vec_flags(struct uvd_req *req, struct vec *vec)
{
	for (unsigned int word = 0; word < UVD_COUNT(req->written); word++)
		for (uint64_t bits = req->written[word]; bits; bits &= bits - 1)
			vec_flag(req, vec, word * 64 + __builtin_ctzll(bits));
}

int uvd_out_flush(struct uvd_req *req)
{
	struct vec vec;

	vec.n = 0;
	vec_handle(req, &vec);
	vec_outs(req, &vec, -1);
	vec_flags(req, &vec);
	if (uvd_caller_writev(req->caller, vec.v, vec.n))
		return uvd_bad(req, -EFAULT, "response", req->core_out.addr);
	return 0;
}

/* Pieces that follow each other in the client (a response and the provider's part of it) become one. */
static bool extends_last(const struct uvd_req *req, uint64_t addr, int attr)
{
	unsigned int last = req->num_outs - 1;

	return req->num_outs && req->outs[last].addr + req->outs[last].len == addr && req->outs[last].attr == attr;
}

/* attr: of whose output this is a piece; -1: nobody's. */
static int out(struct uvd_req *req, uint64_t addr, const void *src, size_t len, int attr)
{
	struct vec vec;
	bool extends;
	int err;

	/* An attribute has its flag even if nothing was to be written, and in its turn. */
	if (!len && attr < 0)
		return 0;
	if (!addr && len)
		return uvd_bad(req, -EFAULT, "response", addr);
	extends = extends_last(req, addr, attr);
	if (len > sizeof(req->stage) - req->staged || (!extends && req->num_outs == UVD_REQ_MAX_OUT)) {
		vec.n = 0;
		vec_outs(req, &vec, attr);
		err = uvd_caller_writev(req->caller, vec.v, vec.n);
		if (!err && len > sizeof(req->stage))
			err = uvd_caller_write(req->caller, addr, src, len);
		if (err) {
			if (attr >= 0)
				unmark_written(req, attr);
			return uvd_bad(req, -EFAULT, "response", addr);
		}
		if (len > sizeof(req->stage))
			return 0;
		extends = false;
	}
	if (len)
		memcpy(req->stage + req->staged, src, len);
	if (extends) {
		req->outs[req->num_outs - 1].len += len;
	} else {
		req->outs[req->num_outs].addr = addr;
		req->outs[req->num_outs].at = req->staged;
		req->outs[req->num_outs].attr = attr;
		req->outs[req->num_outs++].len = len;
	}
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
		err = out(req, addr, zeros, n, attr);
	}
	return err;
}

static void core_written(struct uvd_req *req)
{
	if (req->core_out.attr >= 0)
		uvd_mark_written(req, req->core_out.attr);
}

int uvd_core_out(struct uvd_req *req, const void *src, size_t size)
{
	size_t n = size < req->core_out.len ? size : req->core_out.len;
	int err = out(req, req->core_out.addr, src, n, req->core_out.attr);

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
	err = out(req, req->core_out.addr + at, src, size, req->core_out.attr);
	if (!err)
		core_written(req);
	return err;
}

int uvd_uhw_out(struct uvd_req *req, const void *src, size_t size)
{
	return out(req, req->uhw_out.addr, src, size < req->uhw_out.len ? size : req->uhw_out.len, -1);
}

int uvd_attr_copy_to(struct uvd_req *req, uint16_t id, const void *src, size_t size)
{
	const struct uvd_attr *attr = uvd_attr_get(req, id);
	int err;

	if (!attr)
		return -ENOENT;
	err = out(req, attr->data, src, size < attr->len ? size : attr->len, attr->index);
	if (!err)
		uvd_mark_written(req, attr->index);
	return err;
}

int uvd_attr_copy_to_or_zero(struct uvd_req *req, uint16_t id, const void *src, size_t size)
{
	const struct uvd_attr *attr = uvd_attr_get(req, id);
	int err = uvd_attr_copy_to(req, id, src, size);

	if (!err && size < attr->len)
		err = out_zero(req, attr->data + size, attr->len - size, attr->index);
	return err;
}
