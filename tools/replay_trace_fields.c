/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Replaces in requests and attributes what is another one now: handles, descriptors, keys, numbers, addresses. */
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "replay_trace.h"

/* ---- fields ------------------------------------------------------------------------------------------------------ */

const struct uvd_field *uvd_replay_field(const struct uvd_struct *of, const char *name, size_t len)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (!strcmp(f->name, name) && f->at + (size_t)f->size * (f->count ? f->count : 1) <= len)
			return f;
	return NULL;
}

uint64_t uvd_replay_get(const struct uvd_field *f, const uint8_t *bytes)
{
	uint64_t value = 0;

	memcpy(&value, bytes + f->at, f->size <= sizeof(value) ? f->size : sizeof(value));
	return value;
}

bool uvd_replay_ends(const char *name, const char *end)
{
	const size_t len = strlen(name), n = strlen(end);

	return len >= n && !strcmp(name + len - n, end);
}

const char *uvd_replay_last(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static bool word_is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words;
}

/* Returns the kind of number that a field or an attribute of this name has, or NULL. */
static const char *number_kind(const char *name)
{
	static const char *const rkeys[] = { "rkey", "invalidate_rkey", NULL };
	static const char *const qpns[] = { "dest_qp_num", "remote_qpn", "qpn", "qp_num", NULL };
	const char *word = uvd_replay_last(name);

	if (!strcmp(word, "lkey"))
		return "lkey";
	if (word_is_one_of(word, rkeys))
		return "rkey";
	if (word_is_one_of(word, qpns))
		return "qpn";
	if (!strcmp(word, "comp_channel"))
		return "fd";
	if (!strcmp(word, "ah") || (uvd_replay_ends(word, "_handle") && strcmp(word, "user_handle")))
		return "handle";
	return NULL;
}

/*
 * A command need not use the field of a handle: without an SRQ, srq_handle is 0, and that is another object's. Replace
 * it as the decoder names it: if the recorded handle stands for such an object.
 */
static bool handle_is_used(const struct uvd_replay_call *c, const char *name)
{
	return json_object_get(c->was->handles, name) || uvd_replay_ends(name, "ind_tbl_handle") ||
	       uvd_replay_ends(name, "wq_handle");
}

/* whole: the field's name in the request, "wr.0.wr.ud.ah". */
static void field_replace(struct uvd_replay_call *c, const char *whole, const struct uvd_field *f, uint8_t *bytes)
{
	const char *kind = number_kind(f->name);
	const uint64_t was = uvd_replay_get(f, bytes);

	json_object_set_new(c->values, f->name, json_integer(was));
	if (!kind || f->count || (!strcmp(kind, "handle") && !handle_is_used(c, whole)))
		return;
	if (!strcmp(kind, "fd") && (int32_t)was == -1)
		return;
	uvd_field_put(f, uvd_replay_number(c, kind, was), bytes);
}

/* Replaces the address in field `addr` by the memory of the region that field `key` names. */
static void field_address(struct uvd_replay_call *c, const struct uvd_struct *of, const char *addr, const char *key,
			  uint8_t *bytes, size_t len)
{
	const struct uvd_field *a = uvd_replay_field(of, addr, len), *k = uvd_replay_field(of, key, len);

	if (a && k)
		uvd_field_put(a, uvd_replay_address(c, uvd_replay_get(a, bytes), uvd_replay_get(k, bytes)), bytes);
}

static void struct_replace(struct uvd_replay_call *c, const char *prefix, const struct uvd_struct *of, uint8_t *bytes,
			   size_t len)
{
	static const char *const peers[] = { "dest.", "alt_dest.", "attr.grh.", NULL };
	char whole[3 * UVD_SHORT_NAME];

	/* The addresses first: they are found by the recorded keys. */
	field_address(c, of, "addr", "lkey", bytes, len);
	field_address(c, of, "wr.rdma.remote_addr", "wr.rdma.rkey", bytes, len);
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		if (f->at + (size_t)f->size * (f->count ? f->count : 1) > len)
			continue;
		snprintf(whole, sizeof(whole), "%s%s", prefix, f->name);
		field_replace(c, whole, f, bytes);
	}
	for (const char *const *p = peers; *p; p++)
		uvd_replay_peer(c, of, *p, bytes, len);
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
	const struct uvd_field *count = uvd_replay_field(request, "wr_count", c->request_len),
			       *each = uvd_replay_field(request, "wqe_size", c->request_len),
			       *num_sge = uvd_replay_field(of, "num_sge", of->size);
	const uint64_t num = count ? uvd_replay_get(count, c->request) : 0,
		       size = each ? uvd_replay_get(each, c->request) : 0;
	uint8_t *sges = tail + (size <= len && num * size < len ? num * size : len);
	char prefix[32];

	for (uint64_t i = 0; size && i < num && (i + 1) * size <= len; i++) {
		uint8_t *wr = tail + i * size;

		snprintf(prefix, sizeof(prefix), "wr.%u.", (unsigned int)i);
		struct_replace(c, prefix, of, wr, size < of->size ? size : of->size);
		if (num_sge && num_sge->at + num_sge->size <= size)
			sges += sges_replace(c, uvd_replay_get(num_sge, wr), sges, tail + len - sges);
	}
}

static void numbers_replace(struct uvd_replay_call *c, uint8_t *tail, size_t len)
{
	uint32_t handle;

	for (size_t i = 0; (i + 1) * sizeof(handle) <= len; i++) {
		memcpy(&handle, tail + i * sizeof(handle), sizeof(handle));
		handle = uvd_replay_number(c, "handle", handle);
		memcpy(tail + i * sizeof(handle), &handle, sizeof(handle));
	}
}

/* The memory that a command registers. */
static void memory_replace(struct uvd_replay_call *c, const struct uvd_struct *of)
{
	const struct uvd_field *start = uvd_replay_field(of, "start", c->request_len),
			       *length = uvd_replay_field(of, "length", c->request_len),
			       *hca_va = uvd_replay_field(of, "hca_va", c->request_len),
			       *flags = uvd_replay_field(of, "flags", c->request_len);

	if (!start || !length || !hca_va)
		return;
	/* REREG_MR that leaves the memory as it is. */
	if (flags && !(uvd_replay_get(flags, c->request) & IBV_REREG_MR_CHANGE_TRANSLATION))
		return;
	c->region = uvd_replay_region_add(c, uvd_replay_get(start, c->request), uvd_replay_get(length, c->request),
					  uvd_replay_get(hca_va, c->request));
	if (!c->region)
		return;
	uvd_field_put(start, (uintptr_t)c->region->mem, c->request);
	uvd_field_put(hca_va, c->region->new_hca_va, c->request);
}

void uvd_replay_request(struct uvd_replay_call *c)
{
	const struct uvd_struct *of = uvd_command_fields(c->row->name)->request;
	const size_t size = c->request_len < of->size ? c->request_len : of->size;
	uint8_t *tail = c->request + size;
	const struct uvd_field *fd;

	struct_replace(c, "", of, c->request, size);
	memory_replace(c, of);
	if (of->tail && of->tail_of)
		work_requests_replace(c, of->tail_of, of, tail, c->request_len - size);
	else if (of->tail && strstr(of->tail, "handles"))
		numbers_replace(c, tail, c->request_len - size);
	/* A domain of XRC can belong to a file of the client, which the trace does not have. */
	fd = strstr(c->row->name, "OPEN_XRCD") ? uvd_replay_field(of, "fd", size) : NULL;
	if (fd && (int32_t)uvd_replay_get(fd, c->request) != -1)
		c->skip = "it uses a file of the client";
}

void uvd_replay_value(struct uvd_replay_call *c, const char *name, const struct uvd_attr_fields *fields, uint8_t *data,
		      size_t len)
{
	const struct uvd_struct *of = fields->of;
	const char *kind = number_kind(name);
	uint64_t value = 0;

	if (of && of->size) {
		for (size_t at = 0; at < len; at += of->size)
			struct_replace(c, "", of, data + at, len - at < of->size ? len - at : of->size);
		return;
	}
	if (len > sizeof(value))
		return;
	memcpy(&value, data, len);
	json_object_set_new(c->values, name, json_integer(value));
	if (kind && strcmp(kind, "handle")) {
		value = uvd_replay_number(c, kind, value);
		memcpy(data, &value, len);
	}
}
