/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A request's inputs, and its memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/internal.h"
#include "util/util.h"

struct block {
	struct block *next;
	uint64_t data[];
};

/* ---- the backend's view of the provider's part ------------------------------------------------------------------- */

static struct uvd_req *udata_req(const struct uvd_udata *udata)
{
	return container_of(udata, struct uvd_req, udata);
}

static size_t udata_inlen(const struct uvd_udata *udata)
{
	return udata_req(udata)->uhw_in.len;
}

static size_t udata_outlen(const struct uvd_udata *udata)
{
	return udata_req(udata)->uhw_out.len;
}

static int udata_in(struct uvd_udata *udata, void *dst, size_t size)
{
	return uvd_uhw_in(udata_req(udata), dst, size);
}

static int udata_out(struct uvd_udata *udata, const void *src, size_t size)
{
	struct uvd_req *req = udata_req(udata);

	if (req->uhw_fetched && size > UVD_REQ_STAGE - req->staged)
		return -ENOSPC;
	return uvd_uhw_out(req, src, size);
}

static int udata_refuse(struct uvd_udata *udata, int err, const struct uvd_why *why)
{
	return uvd_refuse(udata_req(udata), err, why);
}

static const struct uvd_udata_ops udata_ops = {
	.inlen = udata_inlen,
	.outlen = udata_outlen,
	.in = udata_in,
	.out = udata_out,
	.refuse = udata_refuse,
};

struct uvd_udata *uvd_req_udata(struct uvd_req *req)
{
	return &req->udata;
}

struct uvd_udata *uvd_req_fetch_udata(struct uvd_req *req)
{
	struct uvd_in *in = &req->uhw_in;
	void *buf;

	if (in->len && !in->buf) {
		if (in->len > UVD_REQ_IN - req->in_used)
			return NULL;
		buf = uvd_req_in_buffer(req, in->len);
		if (!uvd_req_read(req, buf, req->attrs[req->tree_method->uhw_in_slot].data, in->len))
			in->buf = buf;
	}
	req->uhw_fetched = true;
	return &req->udata;
}

/* ---- a request and its memory ------------------------------------------------------------------------------------ */

static _Thread_local struct uvd_req *current; /* the request that this thread carries out */

/* A signal handler calls it. */
const char *uvd_dispatch_site(pid_t *thread)
{
	const struct uvd_req *req = current;

	if (!req)
		return NULL;
	*thread = req->caller->tid;
	return req->name;
}

void uvd_req_left(void)
{
	current = NULL;
}

/* A function of its own, so that uvd_req_init() saves no registers for it while there is no observer. */
static __attribute__((cold, noinline)) struct uvd_req *req_observe(struct uvd_req *req)
{
	req->entered_watched = req->entered;
	req->entered = false;
	req->observation =
		uvd_observe_begin(&req->file->watched, req->tree, req->caller, req->front == UVD_FRONT_IOCTL);
	return req;
}

struct uvd_req *uvd_req_init(struct uvd_call *call, enum uvd_front front)
{
	struct uvd_req *req = &call->req;
	struct uvd_device *dev;

	call->grant.uobj = NULL;
	call->grant.replaces = false;
	call->result = 0;
	memset(req, 0, sizeof(*req));
	req->call = call;
	req->file = call->file;
	req->tree = uvd_file_tree(call->file);
	req->caller = &call->caller;
	req->caller->is_explained = false;
	req->front = front;
	req->core_out.attr = -1;
	req->uhw_out.attr = -1;
	req->udata.ops = &udata_ops;
	req->new_attr = -1;
	current = req;
	/* Last, so that the device's address stays in a register. */
	dev = call->file->dev;
	req->dev = dev;
	req->entered = uvd_file_enter(call->file);
	return uvd_is_watched(&dev->engine->observers) ? req_observe(req) : req;
}

struct uvd_ibdev *uvd_req_ibdev(const struct uvd_req *req)
{
	return &req->dev->ib;
}

struct uvd_context *uvd_req_ucontext(const struct uvd_req *req)
{
	return req->new_context ?: atomic_load(&req->file->context);
}

struct uvd_log *uvd_req_log(const struct uvd_req *req)
{
	return req->dev->engine->log;
}

void *uvd_req_args(struct uvd_req *req, const char *type)
{
	uvd_req_args_check(req, type);
	return req->args;
}

int uvd_bad(struct uvd_req *req, int err, const char *field, uint64_t value)
{
	req->bad_field = field;
	req->bad_value = value;
	req->bad_type = 0;
	req->refused = req->has_why = false;
	return err;
}

int uvd_refuse(struct uvd_req *req, int err, const struct uvd_why *why)
{
	uvd_buffers(req)->why = *why;
	req->has_why = true;
	req->bad_field = NULL;
	req->refused = false;
	return err;
}

int uvd_refused(struct uvd_req *req, int err)
{
	req->refused = !req->bad_field && !req->has_why;
	return err;
}

static void *block_new(struct uvd_req *req, size_t size)
{
	struct block *block;

	if (size > SIZE_MAX - sizeof(*block))
		return NULL;
	block = uvd_zalloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->next = req->allocated;
	req->allocated = block;
	return block->data;
}

void *uvd_req_alloc(struct uvd_req *req, size_t size)
{
	return block_new(req, size);
}

void *uvd_req_in_buffer(struct uvd_req *req, size_t len)
{
	void *p = uvd_buffers(req)->in + req->in_used;

	if (len > UVD_REQ_IN - req->in_used)
		return block_new(req, len);
	req->in_used += (len + 7) & ~(size_t)7;
	return p;
}

int uvd_req_read(struct uvd_req *req, void *dst, uint64_t src, size_t len)
{
	if (src >= req->ahead_addr && src - req->ahead_addr < req->ahead_len &&
	    len <= req->ahead_len - (src - req->ahead_addr)) {
		memcpy(dst, uvd_buffers(req)->ahead + (src - req->ahead_addr), len);
		return 0;
	}
	return src ? uvd_caller_read(req->caller, dst, src, len) : -EFAULT;
}

int uvd_req_copy_from_user(struct uvd_req *req, void *dst, uint64_t src, size_t size)
{
	return uvd_caller_read(req->caller, dst, src, size);
}

int uvd_req_copy_to_user(struct uvd_req *req, uint64_t dst, const void *src, size_t size)
{
	return uvd_caller_write(req->caller, dst, src, size);
}

int uvd_run_steps(struct uvd_req *req, const uvd_step *steps)
{
	int err = 0;

	for (; steps && *steps && !err; steps++)
		err = atomic_load_explicit(&req->caller->let_go, memory_order_relaxed) ? -EINTR : (*steps)(req);
	return err;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	return !len;
}

/* ---- write() and INVOKE_WRITE ------------------------------------------------------------------------------------ */

/*
 * Returns the errno for input that could not be read in one piece. The kernel reads the known part first (-EFAULT), and
 * treats a tail that it cannot read as one that is not zero (-EOPNOTSUPP).
 */
static int core_in_unreadable(struct uvd_req *req, void *dst, size_t size)
{
	if (req->core_in.len > size && !uvd_req_read(req, dst, req->core_in_addr, size))
		return uvd_bad(req, -EOPNOTSUPP, "core_in", req->core_in_addr);
	return uvd_bad(req, -EFAULT, "core_in", req->core_in_addr);
}

int uvd_core_in_bytes(struct uvd_req *req, void *dst, size_t size)
{
	const struct uvd_in *in = &req->core_in;
	size_t n = in->len < size ? in->len : size;

	if (in->len && !in->buf)
		return core_in_unreadable(req, dst, size);
	if (n)
		memcpy(dst, in->buf, n);
	memset((uint8_t *)dst + n, 0, size - n);
	if (in->len > size && !all_zero(in->buf + size, in->len - size))
		return uvd_bad(req, -EOPNOTSUPP, "core_in length", in->len);
	return 0;
}

int uvd_core_start_bytes(struct uvd_req *req, struct uvd_core_iter *iter, void *dst, size_t size)
{
	const struct uvd_in *in = &req->core_in;

	if (in->len < size)
		return uvd_bad(req, -ENOSPC, "core_in length", in->len);
	if (in->buf)
		memcpy(dst, in->buf, size);
	else if (uvd_req_read(req, dst, req->core_in_addr, size))
		return uvd_bad(req, -EFAULT, "core_in", req->core_in_addr);
	iter->at = size;
	return 0;
}

/* Input that could not be read in one piece is read step by step, as by the kernel, so that the same step faults. */
int uvd_core_next(struct uvd_req *req, struct uvd_core_iter *iter, const void **out, size_t size)
{
	const struct uvd_in *in = &req->core_in;
	void *copy;

	if (size > in->len - iter->at)
		return uvd_bad(req, -ENOSPC, "core_in length", in->len);
	if (in->buf) {
		*out = in->buf + iter->at;
	} else {
		copy = uvd_req_alloc(req, size);
		if (!copy)
			return -ENOMEM;
		if (uvd_req_read(req, copy, req->core_in_addr + iter->at, size))
			return uvd_bad(req, -EFAULT, "core_in", req->core_in_addr);
		*out = copy;
	}
	iter->at += size;
	return 0;
}

int uvd_core_finish(struct uvd_req *req, const struct uvd_core_iter *iter)
{
	const struct uvd_in *in = &req->core_in;

	if (iter->at == in->len || (in->buf && all_zero(in->buf + iter->at, in->len - iter->at)))
		return 0;
	return uvd_bad(req, -EOPNOTSUPP, "core_in length", in->len);
}

uint32_t uvd_response_length(const struct uvd_req *req, size_t size)
{
	return req->core_out.len < size ? req->core_out.len : size;
}

int uvd_uhw_in(struct uvd_req *req, void *dst, size_t size)
{
	const struct uvd_in *in = &req->uhw_in;
	size_t n = in->len < size ? in->len : size;
	const struct uvd_attr *attr;

	memset((uint8_t *)dst + n, 0, size - n);
	if (!n)
		return 0;
	if (in->buf) {
		memcpy(dst, in->buf, n);
		return 0;
	}
	attr = &req->attrs[req->tree_method->uhw_in_slot];
	if (req->uhw_fetched)
		return uvd_bad(req, -EFAULT, "UVERBS_ATTR_UHW_IN", attr->data);
	return uvd_req_read(req, dst, attr->data, n) ? uvd_bad(req, -EFAULT, "UVERBS_ATTR_UHW_IN", attr->data) : 0;
}

/* ---- ioctl attributes -------------------------------------------------------------------------------------------- */

static struct uvd_attr *req_attr_find(struct uvd_req *req, uint16_t id)
{
	const struct uvd_tree_attr *ta;

	if (!req->tree_method)
		return NULL;
	ta = uvd_tree_attr(req->tree_method, id);
	return ta && req->attrs[ta->slot].present ? &req->attrs[ta->slot] : NULL;
}

const struct uvd_attr *uvd_attr_get(struct uvd_req *req, uint16_t id)
{
	return req_attr_find(req, id);
}

bool uvd_attr_is_present(struct uvd_req *req, uint16_t id)
{
	return req_attr_find(req, id);
}

size_t uvd_attr_len(struct uvd_req *req, uint16_t id)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	return attr ? attr->len : 0;
}

int uvd_attr_enum_id(struct uvd_req *req, uint16_t id)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	return attr ? attr->elem : -ENOENT;
}

int uvd_attr_copy_from_bytes(struct uvd_req *req, uint16_t id, void *dst, size_t size)
{
	const struct uvd_attr *attr = req_attr_find(req, id);
	size_t n;

	if (!attr)
		return -ENOENT;
	n = attr->len < size ? attr->len : size;
	memset((uint8_t *)dst + n, 0, size - n);
	if (attr->copy)
		memcpy(dst, attr->copy, n);
	else if (attr->len <= sizeof(attr->data))
		memcpy(dst, &attr->data, n);
	else if (uvd_req_read(req, dst, attr->data, n))
		return uvd_bad(req, -EFAULT, attr->row->name, attr->data);
	return 0;
}

int uvd_attr_const(struct uvd_req *req, uint16_t id, uint64_t max, uint64_t *out)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	if (!attr)
		return -ENOENT;
	if (attr->data > max)
		return uvd_bad(req, -EINVAL, attr->row->name, attr->data);
	*out = attr->data;
	return 0;
}

int uvd_attr_flags(struct uvd_req *req, uint16_t id, uint64_t allowed, uint64_t *out)
{
	const struct uvd_attr *attr = req_attr_find(req, id);
	uint64_t flags = 0;

	if (attr) {
		if (attr->len != 4 && attr->len != 8)
			return uvd_bad(req, -EINVAL, attr->row->name, attr->len);
		memcpy(&flags, &attr->data, attr->len);
		if (flags & ~allowed)
			return uvd_bad(req, -EINVAL, attr->row->name, flags);
	}
	*out = flags;
	return 0;
}

struct uvd_uobject *uvd_attr_uobj(struct uvd_req *req, uint16_t id)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	return attr ? attr->uobj : NULL;
}

void *uvd_attr_object(struct uvd_req *req, uint16_t id)
{
	const struct uvd_attr *attr = uvd_attr_get(req, id);

	/* A look-up for DESTROY does not lock: another call can free the object meanwhile. */
	return attr && attr->uobj && attr->row->access != UVD_UOBJ_DESTROY ? attr->uobj->object : NULL;
}

void uvd_attr_set_object(struct uvd_req *req, uint16_t id, void *object)
{
	uvd_uobject_set_object(uvd_attr_uobj(req, id), object);
}

struct uvd_uobject **uvd_attr_uobjs(struct uvd_req *req, uint16_t id, unsigned int *num)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	*num = attr ? attr->num_uobjs : 0;
	return attr ? attr->uobjs : NULL;
}

uint64_t uvd_attr_addr(struct uvd_req *req, uint16_t id)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	return attr ? req->user_attrs + attr->index * sizeof(*req->uattrs) + offsetof(struct ib_uverbs_attr, data) : 0;
}

void uvd_attr_written(struct uvd_req *req, uint16_t id)
{
	const struct uvd_attr *attr = req_attr_find(req, id);

	if (attr)
		uvd_mark_written(req, attr->index);
}
