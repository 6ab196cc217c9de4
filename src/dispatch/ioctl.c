/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctl ABI: an object, a method, and a list of attributes, each checked against its row in the client's order. */
#include <errno.h>
#include <limits.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#include "dispatch/internal.h"
#include "explain/explain.h"

typedef struct ib_uverbs_ioctl_hdr hdr_t;

enum {
	HDR = sizeof(hdr_t),
	ATTR = sizeof(struct ib_uverbs_attr),
	PAGE = 4096,
};

/*
 * Reads the header, and ahead of it what follows: the attributes, and often the structs that they point to, as
 * libibverbs has all of them on its stack. That saves a system call for each.
 */
static int read_header(struct uvd_req *req, uint64_t arg)
{
	uint8_t *ahead = uvd_buffers(req)->ahead;
	ssize_t n = arg ? uvd_caller_read_ahead(req->caller, ahead, arg, HDR, UVD_REQ_AHEAD) : -EFAULT;

	if (n < 0)
		return uvd_bad(req, -EFAULT, "header", arg);
	req->ahead_addr = arg;
	req->ahead_len = n;
	return 0;
}

static int check_header(struct uvd_req *req, const hdr_t *hdr)
{
	if (hdr->length > PAGE || hdr->length != HDR + (size_t)hdr->num_attrs * ATTR)
		return uvd_bad(req, -EINVAL, "length", hdr->length);
	if (hdr->reserved1 || hdr->reserved2)
		return uvd_bad(req, -EPROTONOSUPPORT, "reserved", hdr->reserved1 | hdr->reserved2);
	if (hdr->driver_id != req->tree->driver_id)
		return uvd_bad(req, -EINVAL, "driver_id", hdr->driver_id);
	return 0;
}

static int find_method(struct uvd_req *req, const hdr_t *hdr)
{
	const struct uvd_tree_method *tm = uvd_tree_method(req->tree, hdr->object_id, hdr->method_id);

	if (!tm)
		return uvd_bad(req, -EPROTONOSUPPORT, "method", (uint64_t)hdr->object_id << 16 | hdr->method_id);
	req->tree_method = tm;
	req->method = tm->row;
	req->name = tm->row->name;
	/* The device is gone, and with it the handlers of its driver's methods (ioctl-07). */
	if (((hdr->object_id | hdr->method_id) & UVD_ID_DRIVER_NS) && atomic_load(&req->dev->gone))
		return -EIO;
	return 0;
}

/* ---- one attribute ----------------------------------------------------------------------------------------------- */

/* Input beyond the known length must be zero, else it is -EOPNOTSUPP. A tail that cannot be read counts as not zero. */
static int check_tail(struct uvd_req *req, const struct uvd_attr_row *row, const struct ib_uverbs_attr *ua,
		      uint8_t *copy)
{
	const size_t tail = ua->len - row->len;
	uint8_t chunk[256];
	size_t n;

	if (ua->len <= sizeof(ua->data)) {
		for (size_t i = row->len; i < ua->len; i++)
			if (((const uint8_t *)&ua->data)[i])
				return -EOPNOTSUPP;
		return 0;
	}
	for (size_t at = 0; at < tail; at += n) {
		uint8_t *p = copy ? copy + row->len + at : chunk;

		n = tail - at < sizeof(chunk) ? tail - at : sizeof(chunk);
		if (uvd_req_read(req, p, ua->data + row->len + at, n))
			return -EOPNOTSUPP;
		for (size_t i = 0; i < n; i++)
			if (p[i])
				return -EOPNOTSUPP;
	}
	return 0;
}

static int ptr_attr(struct uvd_req *req, const struct uvd_attr_row *row, const struct ib_uverbs_attr *ua,
		    struct uvd_attr *attr)
{
	const bool in = row->type != UVD_ATTR_PTR_OUT;
	const bool longer = row->len != UVD_LEN_ANY && ua->len > row->len;
	uint8_t *copy = NULL;
	int err;

	if (in && (row->flags & UVD_ALLOC_AND_COPY) && ua->len > sizeof(ua->data)) {
		copy = uvd_req_in_buffer(req, ua->len);
		if (!copy)
			return -ENOMEM;
	}
	if (in && longer && (row->flags & UVD_ZERO_TRAILING)) {
		err = check_tail(req, row, ua, copy);
		if (err)
			return uvd_bad(req, err, row->name, ua->len);
	}
	if (ua->len < row->min_len || (longer && !(row->flags & UVD_ZERO_TRAILING)))
		return uvd_bad(req, -EINVAL, row->name, ua->len);
	/* In an ENUM_IN these bytes hold the element's number. */
	if (attr->row->type != UVD_ATTR_ENUM_IN && ua->attr_data.reserved)
		return uvd_bad(req, -EINVAL, row->name, ua->attr_data.reserved);
	attr->len = ua->len;
	attr->data = ua->data;
	/* check_tail() has already copied the tail of longer input. */
	if (copy && uvd_req_read(req, copy, ua->data, longer ? row->len : ua->len))
		return uvd_bad(req, -EFAULT, row->name, ua->data);
	attr->copy = copy;
	return 0;
}

static int enum_attr(struct uvd_req *req, const struct uvd_attr_row *row, const struct ib_uverbs_attr *ua,
		     struct uvd_attr *attr)
{
	const uint8_t elem = ua->attr_data.enum_data.elem_id;

	if (elem >= row->num_elems)
		return uvd_bad(req, -EOPNOTSUPP, row->name, elem);
	if (ua->attr_data.enum_data.reserved)
		return uvd_bad(req, -EINVAL, row->name, ua->attr_data.enum_data.reserved);
	if (row->elems[elem].type != UVD_ATTR_PTR_IN)
		return uvd_bad(req, -EOPNOTSUPP, row->name, elem);
	attr->elem = elem;
	return ptr_attr(req, &row->elems[elem], ua, attr);
}

enum { NO_EVENT_FILE = -2 };

/*
 * If a context cannot be given an asynchronous event file, GET_CONTEXT falls back to the fd -2, and libibverbs passes
 * that as the event file of each CQ, QP, SRQ and WQ. In such an open file -2 means that there is none. The kernel's
 * contexts always have an event file, so the kernel answers EBADF.
 */
static bool is_no_event_file(struct uvd_req *req, const struct uvd_attr_row *row, int64_t fd)
{
	struct uvd_event_file *async;

	if (row->type != UVD_ATTR_FD || row->object != UVERBS_OBJECT_ASYNC_EVENT || row->access == UVD_UOBJ_NEW ||
	    fd != NO_EVENT_FILE)
		return false;
	async = uvd_file_default_async(req->file);
	if (async)
		uvd_event_file_put(async);
	return !async;
}

static int object_attr(struct uvd_req *req, const struct uvd_attr_row *row, struct ib_uverbs_attr *ua,
		       struct uvd_attr *attr)
{
	int err;

	if (ua->attr_data.reserved || ua->len)
		return uvd_bad(req, -EINVAL, row->name, ua->len);
	if (is_no_event_file(req, row, (int64_t)ua->data))
		return 0;
	if (row->access != UVD_UOBJ_NEW) {
		err = uvd_req_lookup(req, row->object, (int64_t)ua->data, row->access, &attr->uobj);
		return err ? uvd_bad(req, err, row->name, ua->data) : 0;
	}
	err = uvd_req_new(req, row->object, &attr->uobj);
	if (err)
		return uvd_bad(req, err, row->name, ua->data);
	/*
	 * An fd has no number yet: uvd_call_granted() writes it. Before the grant, the client's own value is written
	 * back, so that an attribute in read-only memory is EFAULT while there is no fd to take away from the client
	 * again.
	 */
	if (row->type == UVD_ATTR_IDR)
		ua->data = attr->uobj->id;
	req->new_attr = attr->index;
	return 0;
}

static int array_attr(struct uvd_req *req, const struct uvd_attr_row *row, const struct ib_uverbs_attr *ua,
		      struct uvd_attr *attr)
{
	const unsigned int n = ua->len / sizeof(uint32_t);
	uint32_t *ids;
	int err = 0;

	if (ua->attr_data.reserved || ua->len % sizeof(uint32_t) || n < row->min_len || n > row->len)
		return uvd_bad(req, -EINVAL, row->name, ua->len);
	ids = uvd_req_in_buffer(req, ua->len);
	attr->uobjs = uvd_req_in_buffer(req, n * sizeof(*attr->uobjs));
	if (!ids || !attr->uobjs)
		return -ENOMEM;
	if (ua->len <= sizeof(ua->data))
		memcpy(ids, &ua->data, ua->len);
	else if (uvd_req_read(req, ids, ua->data, ua->len))
		return uvd_bad(req, -EFAULT, row->name, ua->data);
	for (unsigned int i = 0; i < n && !err; i++) {
		err = uvd_req_lookup(req, row->object, ids[i], row->access, &attr->uobjs[i]);
		if (err)
			uvd_bad(req, err, row->name, ids[i]);
	}
	attr->num_uobjs = n;
	return err;
}

static int process_attr(struct uvd_req *req, const struct uvd_attr_row *row, struct ib_uverbs_attr *ua,
			struct uvd_attr *attr)
{
	switch (row->type) {
	case UVD_ATTR_PTR_IN:
	case UVD_ATTR_PTR_OUT:
	case UVD_ATTR_CONST:
	case UVD_ATTR_FLAGS:
		return ptr_attr(req, row, ua, attr);
	case UVD_ATTR_ENUM_IN:
		return enum_attr(req, row, ua, attr);
	case UVD_ATTR_IDR:
	case UVD_ATTR_FD:
		return object_attr(req, row, ua, attr);
	case UVD_ATTR_IDRS_ARRAY:
		return array_attr(req, row, ua, attr);
	default: /* UVD_ATTR_RAW_FD: a tree has no other type */
		if (ua->attr_data.reserved || ua->len || ua->data_s64 < INT_MIN || ua->data_s64 > INT_MAX)
			return uvd_bad(req, -EINVAL, row->name, ua->data);
		attr->data = ua->data;
		return 0;
	}
}

/* ---- all attributes ---------------------------------------------------------------------------------------------- */

/* Names the first mandatory attribute that the client has not sent. */
__attribute__((cold)) static int refuse_missing(struct uvd_req *req)
{
	const struct uvd_tree_method *tm = req->tree_method;

	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < tm->num_attrs[ns]; i++) {
			const struct uvd_tree_attr *ta = &tm->attrs[ns][i];

			if (ta->row && ta->row->flags & UVD_MANDATORY && !req->attrs[ta->slot].present)
				return uvd_refuse(req, -EINVAL, &uvd_why(ATTR_MISSING, { .word = ta->row->name }));
		}
	return -EINVAL;
}

static int process_attrs(struct uvd_req *req)
{
	unsigned int mandatory = 0;

	for (unsigned int i = 0; i < req->num_uattrs; i++) {
		struct ib_uverbs_attr *ua = &req->uattrs[i];
		const struct uvd_tree_attr *ta = uvd_tree_attr(req->tree_method, ua->attr_id);
		struct uvd_attr *attr;
		int err;

		if (!ta) {
			if (ua->flags & UVERBS_ATTR_F_MANDATORY)
				return uvd_bad(req, -EPROTONOSUPPORT, "attr_id", ua->attr_id);
			continue;
		}
		attr = &req->attrs[ta->slot];
		if (attr->present)
			return uvd_bad(req, -EINVAL, ta->row->name, ua->attr_id);
		attr->row = ta->row;
		attr->index = i;
		err = process_attr(req, ta->row, ua, attr);
		if (err)
			return err;
		attr->present = true;
		mandatory += !!(ta->row->flags & UVD_MANDATORY);
	}
	return mandatory == req->tree_method->num_mandatory ? 0 : refuse_missing(req);
}

static void fill_udata(struct uvd_req *req)
{
	const struct uvd_tree_method *tm = req->tree_method;
	const struct uvd_attr *attr;

	if (tm->uhw_in_slot >= 0 && req->attrs[tm->uhw_in_slot].present) {
		attr = &req->attrs[tm->uhw_in_slot];
		req->uhw_in.len = attr->len;
		if (attr->len <= sizeof(attr->data))
			req->uhw_in.buf = (const uint8_t *)&attr->data;
	}
	if (tm->uhw_out_slot >= 0 && req->attrs[tm->uhw_out_slot].present) {
		attr = &req->attrs[tm->uhw_out_slot];
		req->uhw_out.addr = attr->data;
		req->uhw_out.len = attr->len;
		req->uhw_out.attr = attr->index;
	}
}

static int read_attrs(struct uvd_req *req, uint64_t arg, const hdr_t *hdr)
{
	const struct uvd_tree_method *tm = req->tree_method;
	const size_t len = hdr->length - HDR, have = req->ahead_len - HDR, near = len < have ? len : have;

	req->user_attrs = arg + HDR;
	req->uattrs = uvd_req_in_buffer(req, len);
	memcpy(req->uattrs, uvd_buffers(req)->ahead + HDR, near);
	if (uvd_req_read(req, (uint8_t *)req->uattrs + near, req->user_attrs + near, len - near))
		return uvd_bad(req, -EFAULT, "attrs", arg);
	req->num_uattrs = hdr->num_attrs;
	req->attrs = uvd_buffers(req)->attr_store;
	if (tm->num_slots > UVD_REQ_MAX_ATTRS) {
		req->attrs = uvd_req_alloc(req, tm->num_slots * sizeof(*req->attrs));
		return req->attrs ? 0 : -ENOMEM;
	}
	memset(req->attrs, 0, tm->num_slots * sizeof(*req->attrs));
	return 0;
}

/* Destroys the object that the DESTROY attribute names, after the steps that other features run before that. */
static int run_destroy(struct uvd_req *req)
{
	const struct uvd_tree_method *tm = req->tree_method;
	struct uvd_attr *attr = &req->attrs[tm->destroy_slot];
	int err = uvd_run_steps(req, tm->before);

	if (err)
		return err;
	err = uvd_uobject_destroy(attr->uobj);
	if (!err)
		return 0;
	uvd_bad(req, err, attr->row->name, attr->uobj->id);
	req->bad_type = attr->row->object;
	return err;
}

static int run_method(struct uvd_req *req)
{
	const struct uvd_tree_method *tm = req->tree_method;
	int err = uvd_req_check_verb(req, tm->verb);

	if (!err)
		err = process_attrs(req);
	if (err)
		return err;
	fill_udata(req);
	if (atomic_load_explicit(&req->caller->let_go, memory_order_relaxed))
		return -EINTR;
	if (tm->destroy_slot >= 0)
		err = run_destroy(req);
	if (!err)
		err = uvd_run_steps(req, tm->steps);
#ifdef UVD_CHECKS
	if (!err)
		uvd_check_method(req);
#endif
	if (!err && req->uhw_out.attr >= 0)
		uvd_mark_written(req, req->uhw_out.attr);
	/* Only the parser may answer EPROTONOSUPPORT (ioctl-26). */
	return err == -EPROTONOSUPPORT ? -EINVAL : err;
}

long uvd_dispatch_ioctl(struct uvd_call *call, unsigned int cmd, uint64_t arg)
{
	struct uvd_req *req;
	const hdr_t *hdr;
	int err;

	if (cmd != RDMA_VERBS_IOCTL || call->file->dev->config.write_abi)
		return -ENOTTY;
	req = uvd_req_init(call, UVD_FRONT_IOCTL);
	hdr = (const hdr_t *)uvd_buffers(req)->ahead;
	err = read_header(req, arg);
	if (!err)
		err = check_header(req, hdr);
	if (!err)
		err = find_method(req, hdr);
	if (!err)
		err = read_attrs(req, arg, hdr);
	if (!err)
		err = run_method(req);
	return uvd_req_finish(req, err, 0);
}
