/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Replaces in requests and attributes what is another one now: handles, descriptors, keys, numbers, addresses. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "replay.h"

/* ---- fields ------------------------------------------------------------------------------------------------------ */

const struct uvd_field *uvd_replay_field(const struct uvd_struct *of, const char *name, size_t len)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (!strcmp(f->name, name) && uvd_field_end(f) <= len)
			return f;
	return NULL;
}

const char *uvd_replay_last(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* Does a field or an attribute of this role have a number that the device chose? */
static bool role_is_replaced(enum uvd_role role, uint16_t object)
{
	/* The trace does not have a file of the client's. */
	if (role == UVD_ROLE_FD)
		return object != UVD_NO_OBJECT;
	return role == UVD_ROLE_HANDLE || uvd_role_is_chosen(role);
}

/*
 * A command need not use the field of a handle: without an SRQ, srq_handle is 0, and that is another object's. Replace
 * it as the decoder names it: if the recorded handle stands for such an object. whole: the field's name in the request,
 * "wr.0.wr.ud.ah".
 */
static bool handle_is_used(const struct uvd_replay_call *c, const char *whole)
{
	return json_object_get(c->was->handles, whole);
}

static void field_replace(struct uvd_replay_call *c, const char *whole, const struct uvd_field *f, bool read,
			  uint8_t *bytes)
{
	const uint64_t was = uvd_field_get(f, bytes);
	const enum uvd_role kind = f->role == UVD_ROLE_HANDLE ? uvd_replay_handle_kind(f->object) : f->role;

	json_object_set_new(c->values, f->name, json_integer(was));
	if (!role_is_replaced(f->role, f->object) || f->count || !read ||
	    (f->role == UVD_ROLE_HANDLE && !handle_is_used(c, whole)))
		return;
	if (f->optional && (int32_t)was == -1)
		return;
	uvd_field_put(f, uvd_replay_number(c, kind, was), bytes);
}

/* Replaces the address of a peer's or the caller's region by the memory of the region that its key names. */
static void field_address(struct uvd_replay_call *c, const struct uvd_struct *of, const struct uvd_field *f,
			  uint8_t *bytes, size_t len)
{
	const struct uvd_field *key = uvd_field_beside(of, f);

	if (uvd_field_is_read(of, f, bytes, len) && uvd_field_is_read(of, key, bytes, len))
		uvd_field_put(f, uvd_replay_address(c, uvd_field_get(f, bytes), uvd_field_get(key, bytes)), bytes);
}

static void struct_replace(struct uvd_replay_call *c, const char *prefix, const struct uvd_struct *of, uint8_t *bytes,
			   size_t len)
{
	char whole[3 * UVD_SHORT_NAME];

	/* The addresses first: they are found by the recorded keys. */
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->role == UVD_ROLE_AT)
			field_address(c, of, f, bytes, len);
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		if (uvd_field_end(f) > len)
			continue;
		snprintf(whole, sizeof(whole), "%s%s", prefix, f->name);
		field_replace(c, whole, f, uvd_field_is_read(of, f, bytes, len), bytes);
	}
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->role == UVD_ROLE_SOCKADDR && uvd_field_end(f) <= len)
			uvd_replay_port(c, bytes + f->at, uvd_field_bytes(f));
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->role == UVD_ROLE_GID && f->selector)
			uvd_replay_peer(c, of, f, bytes, len);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static size_t sges_replace(struct uvd_replay_call *c, uint32_t num, uint8_t *sges, size_t len)
{
	const struct uvd_struct *of = uvd_attr_fields("UVERBS_ATTR_ADVISE_MR_SGE_LIST")->of;
	size_t used = 0;

	for (uint32_t i = 0; of && i < num && used + of->size <= len; i++, used += of->size)
		struct_replace(c, "", of, sges + used, of->size);
	return used;
}

static void work_requests_replace(struct uvd_replay_call *c, const struct uvd_struct *of,
				  const struct uvd_struct *request, uint8_t *tail, size_t len)
{
	const struct uvd_field *each = uvd_struct_counter(request, request->tail, UVD_ROLE_SIZE),
			       *num_sge = uvd_struct_counter(of, "sge", UVD_ROLE_COUNT);
	const bool whole = c->request_len >= request->size;
	const uint64_t num = whole ? uvd_struct_tail_count(request, c->request, request->size) : 0,
		       size = whole && each ? uvd_field_get(each, c->request) : 0;
	uint8_t *sges = tail + (size <= len && num * size < len ? num * size : len);
	char prefix[32];

	for (uint64_t i = 0; size && i < num && (i + 1) * size <= len; i++) {
		uint8_t *wr = tail + i * size;

		snprintf(prefix, sizeof(prefix), "wr.%u.", (unsigned int)i);
		struct_replace(c, prefix, of, wr, size < of->size ? size : of->size);
		if (num_sge && num_sge->at + num_sge->size <= size)
			sges += sges_replace(c, uvd_field_get(num_sge, wr), sges, tail + len - sges);
	}
}

static void handles_replace(struct uvd_replay_call *c, const struct uvd_struct *of, uint8_t *tail, size_t len)
{
	const uint64_t num = uvd_struct_tail_count(of, c->request, of->size);
	const bool replaced = role_is_replaced(of->tail_role, of->tail_object);
	uint32_t handle;

	for (size_t i = 0; replaced && i < num && (i + 1) * sizeof(handle) <= len; i++) {
		memcpy(&handle, tail + i * sizeof(handle), sizeof(handle));
		handle = uvd_replay_number(c, of->tail_role, handle);
		memcpy(tail + i * sizeof(handle), &handle, sizeof(handle));
	}
}

/* Finds the first field of this role that the call reads, or NULL. */
static const struct uvd_field *field_of_role(const struct uvd_struct *of, enum uvd_role role, const uint8_t *data,
					     size_t len)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->role == role && uvd_field_is_read(of, f, data, len))
			return f;
	return NULL;
}

/*
 * The memory that a call registers, or reads: then the trace has what it has read. Without an iova, the address is that of
 * work requests, too. A REREG_MR that leaves the memory as it is reads no address.
 */
static void memory_replace(struct uvd_replay_call *c, const struct uvd_struct *of, uint8_t *data, size_t len)
{
	const struct uvd_field *start = field_of_role(of, UVD_ROLE_ADDRESS, data, len),
			       *iova = field_of_role(of, UVD_ROLE_IOVA, data, len);
	uint64_t was, size;

	if (!start || c->region || uvd_field_end(uvd_field_beside(of, start)) > len)
		return;
	was = uvd_field_get(start, data);
	size = uvd_field_get(uvd_field_beside(of, start), data);
	c->region = uvd_replay_region_add(c, was, size, iova ? uvd_field_get(iova, data) : was);
	if (!c->region)
		return;
	if (c->was->call->result != -EFAULT)
		uvd_image_get(&c->was->image, UVD_PIECE_READ, was, c->region->mem, size);
	uvd_field_put(start, (uintptr_t)c->region->mem, data);
	if (iova)
		uvd_field_put(iova, c->region->new_hca_va, data);
}

/* A domain of XRC can belong to a file of the client, which the trace does not have. */
static bool uses_file(const struct uvd_replay_call *c, const struct uvd_struct *of)
{
	const struct uvd_field *fd = field_of_role(of, UVD_ROLE_FD, c->request, c->request_len);

	return fd && fd->object == UVD_NO_OBJECT && (int32_t)uvd_field_get(fd, c->request) != -1;
}

void uvd_replay_request(struct uvd_replay_call *c)
{
	const struct uvd_struct *of = uvd_view_command(c->row)->request;
	const size_t size = c->request_len < of->size ? c->request_len : of->size;
	uint8_t *tail = c->request + size;

	struct_replace(c, "", of, c->request, size);
	memory_replace(c, of, c->request, c->request_len);
	if (of->tail_of)
		work_requests_replace(c, of->tail_of, of, tail, c->request_len - size);
	else if (of->tail)
		handles_replace(c, of, tail, c->request_len - size);
	if (!c->f->cm && uses_file(c, of))
		c->skip = "it uses a file of the client";
}

void uvd_replay_value(struct uvd_replay_call *c, const char *name, const struct uvd_attr_fields *fields, uint8_t *data,
		      size_t len)
{
	const struct uvd_struct *of = fields->of;
	char prefix[UVD_SHORT_NAME + 24];
	uint64_t value = 0;

	snprintf(prefix, sizeof(prefix), "%s.", name);
	if (of && of->size) {
		for (size_t at = 0; at < len; at += of->size) {
			const size_t size = len - at < of->size ? len - at : of->size;

			if (len > of->size)
				snprintf(prefix, sizeof(prefix), "%s.%zu.", name, at / of->size);
			struct_replace(c, prefix, of, data + at, size);
			memory_replace(c, of, data + at, size);
		}
		return;
	}
	if (len > sizeof(value))
		return;
	memcpy(&value, data, len);
	json_object_set_new(c->values, name, json_integer(value));
	if (role_is_replaced(fields->role, fields->object)) {
		value = uvd_replay_number(c, fields->role, value);
		memcpy(data, &value, len);
	}
}
