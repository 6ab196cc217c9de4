/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Builds a call from the bytes that the trace has. All pointers in it point to the replayer's memory: the tree of the
 * device, and not the one in the trace, tells which they are.
 */
#include <ctype.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "replay.h"

/* MAX_ATTRS: of a call. SLACK: behind each copy of the client's memory. */
enum {
	MAX_ATTRS = 256,
	SLACK = 64,
	COMMAND = 65536,
	HDR = sizeof(struct ib_uverbs_cmd_hdr),
	EX_HDR = HDR + sizeof(struct ib_uverbs_ex_cmd_hdr),
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

uint8_t *uvd_replay_allocate(struct uvd_replay_call *c, size_t len)
{
	uint8_t *mem = c->num_allocated < UVD_REPLAY_RANGES ? calloc(1, len + SLACK) : NULL;

	if (mem)
		c->allocated[c->num_allocated++] = mem;
	else
		c->skip = "it has too many parts";
	return mem;
}

uint8_t *uvd_replay_find(const struct uvd_replay_call *c, uint64_t addr, size_t *len)
{
	for (unsigned int i = 0; i < c->num_ranges; i++) {
		const struct uvd_replay_range *range = &c->ranges[i];

		if (addr < range->addr || addr - range->addr >= range->len)
			continue;
		*len = range->len - (addr - range->addr);
		return range->mem + (addr - range->addr);
	}
	return NULL;
}

static void range_add(struct uvd_replay_call *c, uint64_t addr, size_t len, uint8_t *mem)
{
	if (c->num_ranges == UVD_REPLAY_RANGES)
		c->skip = "it has too many parts";
	else
		c->ranges[c->num_ranges++] = (struct uvd_replay_range){ addr, len, mem };
}

bool uvd_replay_memory_failed(const struct uvd_replay_call *c, uint64_t addr, size_t len)
{
	const struct uvd_trace_image *image = &c->was->image;

	for (const struct uvd_piece *p = uvd_image_first(image); p; p = uvd_image_next(image, p))
		if (p->failed && p->addr >= addr && p->addr - addr < len)
			return true;
	return false;
}

/* Did the call read more there than the trace kept? */
static bool memory_is_cut(const struct uvd_replay_call *c, uint64_t addr, size_t len)
{
	const struct uvd_trace_image *image = &c->was->image;

	for (const struct uvd_piece *p = uvd_image_first(image); p; p = uvd_image_next(image, p))
		if (p->kind == UVD_PIECE_READ && !p->failed && p->kept < p->len && p->addr < addr + len &&
		    p->addr + p->len > addr)
			return true;
	return false;
}

uint8_t *uvd_replay_memory(struct uvd_replay_call *c, uint64_t addr, size_t len)
{
	size_t have = 0;
	uint8_t *mem = uvd_replay_find(c, addr, &have);

	if (!addr)
		return NULL;
	if (uvd_replay_memory_failed(c, addr, len))
		return c->r->none;
	if (mem && have >= len)
		return mem;
	if (memory_is_cut(c, addr, len))
		c->skip = "the trace has only a part of its input";
	mem = uvd_replay_allocate(c, len);
	if (!mem)
		return NULL;
	uvd_image_get(&c->was->image, UVD_PIECE_READ, addr, mem, len);
	range_add(c, addr, len, mem);
	return mem;
}

/* The driver's part of a request: of the drivers that we know only addresses of where to write. */
static void driver_in(const struct uvd_replay_call *c, uint8_t *data, size_t len)
{
	const uint64_t scratch = (uintptr_t)c->r->scratch;
	bool zero = true;

	for (size_t i = 0; i < len; i++)
		zero = zero && !data[i];
	memset(data, 0, len);
	if (!zero)
		memcpy(data, &scratch, len < sizeof(scratch) ? len : sizeof(scratch));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const struct uverbsd_tree_row *replay_row(const struct uvd_replay *r, enum uverbsd_tree_kind kind,
						 uint16_t object, uint16_t method, uint16_t id)
{
	for (size_t i = 0; i < r->device.view.num; i++) {
		const struct uverbsd_tree_row *row = &r->device.view.entries[i].row;

		if (row->kind == kind && row->object == object && row->id == id &&
		    (kind != UVERBSD_TREE_ATTR || row->method == method))
			return row;
	}
	return NULL;
}

static const struct uverbsd_tree_row *replay_attr_of(const struct uvd_replay_call *c,
						     const struct uverbsd_tree_row *method, uint16_t id)
{
	return method ? replay_row(c->r, UVERBSD_TREE_ATTR, method->object, method->id, id) : NULL;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* Returns the bytes of an input: in the attribute, or in the replayer's memory, to which it then points. */
static uint8_t *attr_bytes(struct uvd_replay_call *c, struct ib_uverbs_attr *ua)
{
	uint8_t *mem;

	if (ua->len <= sizeof(ua->data))
		return (uint8_t *)&ua->data;
	mem = uvd_replay_memory(c, ua->data, ua->len);
	ua->data = (uintptr_t)mem;
	return mem == c->r->none ? NULL : mem;
}

static void attr_handles(struct uvd_replay_call *c, uint8_t *bytes, size_t len)
{
	uint32_t handle;

	for (size_t i = 0; bytes && (i + 1) * sizeof(handle) <= len; i++) {
		memcpy(&handle, bytes + i * sizeof(handle), sizeof(handle));
		handle = uvd_replay_number(c, UVD_ROLE_HANDLE, handle);
		memcpy(bytes + i * sizeof(handle), &handle, sizeof(handle));
	}
}

/* Makes the name that the list of differences has for an attribute: "create_qp_type". */
static void attr_listed_name(const struct uverbsd_tree_row *row, char name[UVD_SHORT_NAME])
{
	static const char begin[] = "UVERBS_ATTR_";
	const char *from = row->name + (strncmp(row->name, begin, strlen(begin)) ? 0 : strlen(begin));

	snprintf(name, UVD_SHORT_NAME, "%s", from);
	for (char *at = name; *at; at++)
		*at = tolower((unsigned char)*at);
}

static void attr_input_replace(struct uvd_replay_call *c, const struct uverbsd_tree_row *method,
			       const struct uverbsd_tree_row *row, struct ib_uverbs_attr *ua)
{
	uint8_t *bytes = attr_bytes(c, ua);
	char name[UVD_SHORT_NAME];
	json_t *number;

	if (!bytes)
		return;
	if (row->flags & UVERBSD_TREE_UDATA) {
		driver_in(c, bytes, ua->len);
		return;
	}
	uvd_short_attr(method, row, name);
	uvd_replay_value(c, name, uvd_view_value(row), bytes, ua->len);
	number = json_object_get(c->values, name);
	attr_listed_name(row, name);
	if (number)
		json_object_set(c->values, name, number);
}

/* Replaces what one attribute has. */
static void attr_replace(struct uvd_replay_call *c, const struct uverbsd_tree_row *method, struct ib_uverbs_attr *ua)
{
	const struct uverbsd_tree_row *row = replay_attr_of(c, method, ua->attr_id);
	char name[UVD_SHORT_NAME];

	if (!row) {
		/* Ours has told all its attributes. The kernel's may have some that this build does not know. */
		if (c->r->kernel)
			c->skip = "this version of uverbsctl does not know one of its attributes";
		else if (ua->len > sizeof(ua->data))
			attr_bytes(c, ua);
		return;
	}
	attr_listed_name(row, name);
	json_array_append_new(c->attrs, json_string(name));
	switch (row->type) {
	case UVERBSD_TREE_PTR_OUT:
		ua->data = (uintptr_t)uvd_replay_memory(c, ua->data, ua->len);
		break;
	case UVERBSD_TREE_IDR:
		if (row->access != UVERBSD_TREE_NEW)
			ua->data = uvd_replay_number(c, UVD_ROLE_HANDLE, ua->data);
		break;
	case UVERBSD_TREE_FD:
		if (row->access != UVERBSD_TREE_NEW)
			ua->data_s64 = uvd_replay_number(c, UVD_ROLE_FD, ua->data_s64);
		break;
	case UVERBSD_TREE_RAW_FD:
		c->skip = "it uses a file of the client";
		break;
	case UVERBSD_TREE_IDRS_ARRAY:
		attr_handles(c, attr_bytes(c, ua), ua->len);
		break;
	default:
		attr_input_replace(c, method, row, ua);
	}
}

static struct ib_uverbs_attr *attr_find(struct uvd_replay_call *c, const struct uverbsd_tree_row *method,
					const char *name)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)c->msg;

	for (unsigned int i = 0; i < c->num_attrs; i++) {
		const struct uverbsd_tree_row *row = replay_attr_of(c, method, hdr->attrs[i].attr_id);

		if (row && !strcmp(row->name, name))
			return &hdr->attrs[i];
	}
	return NULL;
}

/* Finds the first attribute whose value has this role. Returns NULL if there is none, or the value is not in it. */
static struct ib_uverbs_attr *attr_of_role(struct uvd_replay_call *c, const struct uverbsd_tree_row *method,
					   enum uvd_role role, const struct uverbsd_tree_row **row)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)c->msg;

	for (unsigned int i = 0; i < c->num_attrs; i++) {
		*row = replay_attr_of(c, method, hdr->attrs[i].attr_id);
		if (*row && ((*row)->type == UVERBSD_TREE_PTR_IN || (*row)->type == UVERBSD_TREE_CONST) &&
		    hdr->attrs[i].len <= sizeof(hdr->attrs[i].data) && uvd_view_value(*row)->role == role)
			return &hdr->attrs[i];
	}
	return NULL;
}

/* The memory that a method registers or reads, by the roles of its attributes. */
static void method_memory(struct uvd_replay_call *c, const struct uverbsd_tree_row *method)
{
	const struct uverbsd_tree_row *row, *other;
	struct ib_uverbs_attr *addr = attr_of_role(c, method, UVD_ROLE_ADDRESS, &row), *len,
			      *iova = attr_of_role(c, method, UVD_ROLE_IOVA, &other);

	if (!addr)
		return;
	len = attr_find(c, method, uvd_view_value(row)->beside);
	c->region = uvd_replay_region_add(c, addr->data, len ? len->data : 0, iova ? iova->data : 0);
	if (!c->region)
		return;
	if (c->was->call->result != -EFAULT) /* else nobody can access it */
		uvd_image_get(&c->was->image, UVD_PIECE_READ, addr->data, c->region->mem, c->region->len);
	addr->data = (uintptr_t)c->region->mem;
	if (iova)
		iova->data = c->region->new_hca_va;
}

/* Why a call that is not in the tree of the kernel's device is not made. The driver of the recorded one may have it. */
static const char *call_unknown(const struct uvd_replay_call *c)
{
	return c->was->row ? "the device does not have it" : "this version of uverbsctl does not know it";
}

/* ---- ioctl ------------------------------------------------------------------------------------------------------- */

/* A command inside of INVOKE_WRITE. */
static void invoke_replace(struct uvd_replay_call *c, const struct uverbsd_tree_row *method)
{
	struct ib_uverbs_attr *cmd = attr_find(c, method, "UVERBS_ATTR_WRITE_CMD"),
			      *in = attr_find(c, method, "UVERBS_ATTR_CORE_IN"),
			      *out = attr_find(c, method, "UVERBS_ATTR_CORE_OUT");

	c->row = cmd ? uvd_trace_command_row(&c->r->device, cmd->data) : NULL;
	if (!c->row) {
		c->skip = c->r->kernel ? call_unknown(c) : NULL;
		return;
	}
	if (in) {
		c->request = in->len > sizeof(in->data) ? (void *)(uintptr_t)in->data : (uint8_t *)&in->data;
		c->request_len = in->len;
	}
	if (out) {
		c->response = (void *)(uintptr_t)out->data;
		c->response_len = out->len;
		for (unsigned int i = 0; i < c->num_ranges; i++)
			if (c->ranges[i].mem == c->response)
				c->response_was = c->ranges[i].addr;
	}
	if (c->request && c->request != c->r->none)
		uvd_replay_request(c);
}

/* Has the driver something to return from this command or method? QUERY_DEVICE refuses room for it. */
static bool call_has_driver_data(const struct uvd_replay_call *c)
{
	if (!c->row || c->row->kind == UVERBSD_TREE_METHOD)
		return c->row;
	return c->row->flags & UVERBSD_TREE_COMMAND_UDATA && c->row->id != IB_USER_VERBS_CMD_QUERY_DEVICE;
}

static bool attr_is_driver(const struct uvd_replay_call *c, const struct uverbsd_tree_row *method, uint16_t id)
{
	const struct uverbsd_tree_row *row = replay_attr_of(c, method, id);

	return row && row->flags & UVERBSD_TREE_UDATA;
}

/* Replaces the other driver's part by room for this one's. c->msg has space for an attribute more. */
static void driver_replace(struct uvd_replay_call *c, const struct uverbsd_tree_row *method)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)c->msg;
	const struct uverbsd_tree_row *out = replay_attr_of(c, method, UVERBS_ATTR_UHW_OUT);
	unsigned int kept = 0;
	uint8_t *mem;

	for (unsigned int i = 0; i < c->num_attrs; i++)
		if (!attr_is_driver(c, method, hdr->attrs[i].attr_id))
			hdr->attrs[kept++] = hdr->attrs[i];
	mem = out && call_has_driver_data(c) ? uvd_replay_allocate(c, UVD_DRIVER_OUT) : NULL;
	if (mem)
		hdr->attrs[kept++] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_UHW_OUT,
							      .len = UVD_DRIVER_OUT,
							      .data = (uintptr_t)mem };
	hdr->num_attrs = kept;
	hdr->length = sizeof(*hdr) + kept * sizeof(hdr->attrs[0]);
}

/* Does the header tell the truth about its attributes, and does the trace have them all? */
static bool attrs_are_known(const struct uvd_replay_call *c, const struct ib_uverbs_ioctl_hdr *hdr, size_t known)
{
	return hdr->num_attrs <= MAX_ATTRS && hdr->length == sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]) &&
	       known == hdr->length && c->msg;
}

static void ioctl_build(struct uvd_replay_call *c, uint64_t addr)
{
	struct ib_uverbs_ioctl_hdr hdr, *sent;
	size_t known;

	if (uvd_image_get(&c->was->image, UVD_PIECE_READ, addr, &hdr, sizeof(hdr)) != sizeof(hdr)) {
		c->skip = "the trace does not have its header";
		return;
	}
	c->len = hdr.length > sizeof(hdr) ? hdr.length : sizeof(hdr);
	c->msg = uvd_replay_allocate(c, c->len);
	if (!c->msg)
		return;
	known = uvd_image_get(&c->was->image, UVD_PIECE_READ, addr, c->msg, c->len);
	sent = (void *)c->msg;
	if (c->was->script && hdr.driver_id == c->was->script->view.driver_id)
		sent->driver_id = c->r->driver_id;
	c->row = replay_row(c->r, UVERBSD_TREE_METHOD, hdr.object_id, 0, hdr.method_id);
	if (!c->row && c->r->kernel) {
		c->skip = call_unknown(c);
		return;
	}
	/* The device refuses it before it looks at an attribute; they do not get there. */
	if (!attrs_are_known(c, &hdr, known)) {
		memset(c->msg + sizeof(hdr), 0, c->len - sizeof(hdr));
		return;
	}
	c->num_attrs = hdr.num_attrs;
	for (unsigned int i = 0; i < c->num_attrs; i++)
		attr_replace(c, c->row, &sent->attrs[i]);
	/* Last: an attribute that points to the message does not change what was checked. */
	range_add(c, addr, c->len, c->msg);
	if (!c->skip)
		method_memory(c, c->row);
}

static void method_finish(struct uvd_replay_call *c)
{
	const struct uverbsd_tree_row *method = c->row;

	if (!method || c->skip || !c->num_attrs)
		return;
	if (method->object == UVERBS_OBJECT_DEVICE && method->id == UVERBS_METHOD_INVOKE_WRITE)
		invoke_replace(c, method);
	if (c->f->other && !c->skip)
		driver_replace(c, method);
}

/* ---- write() ----------------------------------------------------------------------------------------------------- */

uint64_t uvd_replay_response_room(struct uvd_replay_call *c, size_t core, size_t driver)
{
	uint8_t *mem = uvd_replay_allocate(c, core + driver);

	c->response_len = core;
	c->response = mem;
	if (mem && c->response_was)
		range_add(c, c->response_was, core + driver, mem);
	return (uintptr_t)mem;
}

static void plain_build(struct uvd_replay_call *c)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)c->msg;
	const size_t core = (size_t)c->row->min_len < c->len - HDR ? c->row->min_len : c->len - HDR;
	const bool driver = c->row->flags & UVERBSD_TREE_COMMAND_UDATA;
	uint64_t response;
	size_t out = hdr->out_words * 4u;

	c->request = c->msg + HDR;
	c->request_len = driver ? core : c->len - HDR;
	if (driver && !c->f->other)
		driver_in(c, c->msg + HDR + core, c->len - HDR - core);
	if (driver && c->f->other && core == c->row->min_len && hdr->in_words * 4u == c->len) {
		c->len = HDR + core;
		hdr->in_words = c->len / 4;
		out = c->row->len + (call_has_driver_data(c) ? UVD_DRIVER_OUT : 0);
		hdr->out_words = out / 4;
	}
	if (!(c->row->flags & UVERBSD_TREE_COMMAND_RESP) || core < sizeof(response))
		return;
	memcpy(&c->response_was, c->request, sizeof(response));
	response = c->response_was ? uvd_replay_response_room(c, out, 0) : 0;
	if (c->response_was && uvd_replay_memory_failed(c, c->response_was, out))
		response = (uintptr_t)c->r->none;
	memcpy(c->request, &response, sizeof(response));
}

static void extended_build(struct uvd_replay_call *c)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)c->msg;
	struct ib_uverbs_ex_cmd_hdr *ex = (void *)(hdr + 1);
	const size_t in = hdr->in_words * 8u < c->len - EX_HDR ? hdr->in_words * 8u : c->len - EX_HDR;

	c->request = c->msg + EX_HDR;
	c->request_len = in;
	if (c->f->other && c->row->flags & UVERBSD_TREE_COMMAND_UDATA && in == hdr->in_words * 8u) {
		c->len = EX_HDR + in;
		ex->provider_in_words = 0;
		ex->provider_out_words = call_has_driver_data(c) ? UVD_DRIVER_OUT / 8 : 0;
	} else {
		driver_in(c, c->request + in, c->len - EX_HDR - in);
	}
	c->response_was = ex->response;
	if (!ex->response && !(c->f->other && ex->provider_out_words))
		return;
	ex->response = uvd_replay_response_room(c, hdr->out_words * 8u, ex->provider_out_words * 8u);
	if (c->response_was && uvd_replay_memory_failed(c, c->response_was, hdr->out_words * 8u))
		ex->response = (uintptr_t)c->r->none;
}

/* Returns the length that the client passed to write(), as far as the trace tells it. */
static size_t write_len(const struct uvd_replay_call *c, const struct uvd_piece *first)
{
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
	const struct uvd_trace_image *image = &c->was->image;

	if (first->kind == UVD_PIECE_COMMAND)
		return first->len;
	if (c->was->call->result > 0)
		return c->was->call->result;
	if (uvd_image_get(image, UVD_PIECE_READ, first->addr, &hdr, sizeof(hdr)) != sizeof(hdr))
		return 0;
	if (!(hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return hdr.in_words * 4u;
	if (uvd_image_get(image, UVD_PIECE_READ, first->addr + HDR, &ex, sizeof(ex)) != sizeof(ex))
		return 0;
	return EX_HDR + (hdr.in_words + ex.provider_in_words) * 8u;
}

static void write_build(struct uvd_replay_call *c, const struct uvd_piece *first)
{
	const struct ib_uverbs_cmd_hdr *hdr;
	const size_t len = write_len(c, first);
	size_t known;

	if (!len || len > COMMAND) {
		c->skip = "the trace does not have all of it";
		return;
	}
	c->msg = uvd_replay_allocate(c, len);
	if (!c->msg)
		return;
	c->len = len;
	if (first->kind == UVD_PIECE_COMMAND) {
		known = first->kept;
		memcpy(c->msg, first + 1, known);
	} else {
		known = uvd_image_get(&c->was->image, UVD_PIECE_READ, first->addr, c->msg, len);
	}
	/* The device refuses some commands before it reads all of them. */
	if (known != len && c->was->call->result >= 0) {
		c->skip = "the trace does not have all of it";
		return;
	}
	hdr = (const void *)c->msg;
	if (c->len < HDR)
		return;
	c->row = uvd_trace_command_row(&c->r->device, hdr->command);
	if (!c->row) {
		c->skip = "the device does not have it";
		return;
	}
	if (!(hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED))
		plain_build(c);
	else if (c->len >= EX_HDR)
		extended_build(c);
	if (c->request && !c->skip)
		uvd_replay_request(c);
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

void uvd_replay_build(struct uvd_replay_call *c)
{
	const struct uvd_piece *first = uvd_image_first(&c->was->image);

	c->values = json_object();
	c->attrs = json_array();
	c->ioctl = c->was->call->flags & UVD_TRACE_CALL_IOCTL;
	if (!first || (c->ioctl && first->kind == UVD_PIECE_COMMAND)) {
		c->skip = "the trace has nothing of it";
		return;
	}
	if (c->r->kernel && c->was->row && !strcmp(c->was->row->owner, "uverbsd")) {
		c->skip = "only devices of uverbsd have it";
		return;
	}
	if (c->was->call->flags & UVD_TRACE_CALL_CUT) {
		c->skip = "the trace does not have all of it";
		return;
	}
	if (c->ioctl) {
		ioctl_build(c, first->addr);
		method_finish(c);
	} else if (c->f->cm) {
		uvd_replay_cm_build(c, first);
	} else {
		write_build(c, first);
	}
}

void uvd_replay_call_free(struct uvd_replay_call *c)
{
	for (unsigned int i = 0; i < c->num_allocated; i++)
		free(c->allocated[i]);
	json_decref(c->values);
	json_decref(c->attrs);
}
