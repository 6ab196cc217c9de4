/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decodes write() commands: the fields of their structs, and the work requests and completions behind them. */
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* COMMAND: bytes of a command that are looked at. ELEMENTS: of a flexible array. */
enum {
	COMMAND = 65536,
	ELEMENTS = 4096,
	EX_HDR = sizeof(struct ib_uverbs_cmd_hdr) + sizeof(struct ib_uverbs_ex_cmd_hdr)
};

const struct uverbsd_tree_row *uvd_trace_command_row(const struct uvd_script *s, uint32_t command)
{
	const bool ex = command & IB_USER_VERBS_CMD_FLAG_EXTENDED;

	for (size_t i = 0; s && i < s->view.num; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (row->kind == UVERBSD_TREE_COMMAND && !!(row->flags & UVERBSD_TREE_COMMAND_EX) == ex &&
		    row->id == (command & IB_USER_VERBS_CMD_COMMAND_MASK))
			return row;
	}
	return NULL;
}

/* ---- work requests ----------------------------------------------------------------------------------------------- */

/* A SEND on a QP of another type than UD has no address: the fields are not set, and say nothing. */
static void remove_address(struct uvd_trace_decoded *d, const char *wr)
{
	const char *type, *name;
	char prefix[2 * UVD_SHORT_NAME];
	uint32_t qp;
	json_t *value;
	void *next;

	type = uvd_trace_uses(d, UVERBS_OBJECT_QP, &qp) ? uvd_trace_type_of(d, qp) : NULL;
	if (!type || !strcmp(type, "UD"))
		return;
	snprintf(prefix, sizeof(prefix), "%s.wr.ud.", wr);
	json_object_foreach_safe(d->in, next, name, value)
		if (!strncmp(name, prefix, strlen(prefix))) {
			json_object_del(d->handles, name);
			json_object_del(d->words, name);
			json_object_del(d->in, name);
		}
}

/* Adds `num` scatter/gather elements of a work request. Returns how many bytes of `sges` are its own. */
static size_t add_sges(struct uvd_trace_decoded *d, const char *wr, uint64_t num, const uint8_t *sges, size_t len)
{
	const struct uvd_struct *of = uvd_attr_fields("UVERBS_ATTR_ADVISE_MR_SGE_LIST")->of;
	char name[UVD_SHORT_NAME];
	size_t i;

	for (i = 0; of && i < num && (i + 1) * of->size <= len; i++) {
		snprintf(name, sizeof(name), "%s.sge.%zu", wr, i);
		uvd_trace_struct(d, d->in, name, of, sges + i * of->size, of->size);
	}
	return of ? i * of->size : 0;
}

size_t uvd_trace_work_request(struct uvd_trace_decoded *d, const char *name, const struct uvd_struct *of,
			      const uint8_t *wr, size_t size, const uint8_t *sges, size_t len)
{
	const struct uvd_field *num_sge = uvd_struct_counter(of, "sge", UVD_ROLE_COUNT);

	uvd_trace_struct(d, d->in, name, of, wr, size < of->size ? size : of->size);
	remove_address(d, name);
	if (!num_sge || uvd_field_end(num_sge) > size)
		return 0;
	return add_sges(d, name, uvd_field_get(num_sge, wr), sges, len);
}

/* request: a whole struct `of`, which says how many there are, and how large each is. */
static void add_work_requests(struct uvd_trace_decoded *d, const struct uvd_struct *of, const uint8_t *request,
			      const uint8_t *tail, size_t len)
{
	const struct uvd_field *each = uvd_struct_counter(of, of->tail, UVD_ROLE_SIZE);
	const uint64_t num = uvd_struct_tail_count(of, request, of->size),
		       size = each ? uvd_field_get(each, request) : 0;
	const uint64_t all = size <= len ? num * size : len;
	const uint8_t *sges = tail + (all < len ? all : len);
	size_t left = tail + len - sges;
	char name[UVD_SHORT_NAME];

	for (uint64_t i = 0; size && i < num && i < ELEMENTS && (i + 1) * size <= len; i++) {
		size_t used;

		snprintf(name, sizeof(name), "wr.%u", (unsigned int)i);
		used = uvd_trace_work_request(d, name, of->tail_of, tail + i * size, size, sges, left);
		sges += used;
		left -= used;
	}
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

/* Handles, as many as the request says. */
static void add_handles(struct uvd_trace_decoded *d, const struct uvd_struct *of, const uint8_t *tail, size_t len,
			uint64_t num)
{
	char name[2 * UVD_SHORT_NAME];
	uint32_t handle;

	for (size_t i = 0; i < num && i < len / sizeof(handle) && i < ELEMENTS; i++) {
		memcpy(&handle, tail + i * sizeof(handle), sizeof(handle));
		snprintf(name, sizeof(name), "%s.%zu", of->tail, i);
		json_object_set_new(d->in, name, json_integer(handle));
		if (of->tail_role == UVD_ROLE_HANDLE)
			uvd_trace_handle(d, name, of->tail_object, handle);
	}
}

/* The specs of a flow: each begins with its type and its size. */
static void add_specs(struct uvd_trace_decoded *d, const uint8_t *tail, size_t len)
{
	struct ib_uverbs_flow_spec_hdr hdr;
	char name[2 * UVD_SHORT_NAME];

	for (unsigned int i = 0; len >= sizeof(hdr) && i < ELEMENTS; i++) {
		const struct uvd_flow_kind *kind;

		memcpy(&hdr, tail, sizeof(hdr));
		if (hdr.size < sizeof(hdr) || hdr.size > len)
			return;
		kind = uvd_flow_kind(hdr.type);
		snprintf(name, sizeof(name), "specs.%u.%s", i, kind ? kind->name : "unknown");
		if (kind)
			uvd_trace_struct(d, d->in, name, kind->of, tail, hdr.size);
		else
			uvd_result_set_hex(d->in, name, tail, hdr.size);
		tail += hdr.size;
		len -= hdr.size;
	}
}

static void add_request(struct uvd_trace_decoded *d, const struct uvd_struct *of, const struct uvd_trace_command *c)
{
	const size_t size = c->request_len < of->size ? c->request_len : of->size;
	const uint8_t *tail = c->request + size;
	const size_t len = c->request_len - size;

	if (!of->fields->name && !of->size && c->request_len)
		uvd_result_set_hex(d->in, "in", c->request, c->request_len);
	if (!of->size)
		return;
	uvd_trace_struct(d, d->in, "", of, c->request, size);
	if (size < of->size)
		return;
	if (of->tail_of)
		add_work_requests(d, of, c->request, tail, len);
	else if (of->tail_role == UVD_ROLE_SPECS)
		add_specs(d, tail, len);
	else if (of->tail)
		add_handles(d, of, tail, len, uvd_struct_tail_count(of, c->request, size));
}

/* ---- the response ------------------------------------------------------------------------------------------------ */

static void add_elements(struct uvd_trace_decoded *d, const struct uvd_struct *of, const uint8_t *response, size_t len)
{
	const struct uvd_struct *element = of->tail_of;
	char name[2 * UVD_SHORT_NAME];
	uint64_t num;

	if (!element || len < of->size)
		return;
	num = uvd_struct_tail_count(of, response, len);
	for (uint32_t i = 0; i < num && i < ELEMENTS && of->size + (i + 1ul) * element->size <= len; i++) {
		snprintf(name, sizeof(name), "%s.%u", of->tail, i);
		uvd_trace_struct(d, d->out, name, element, response + of->size + (size_t)i * element->size,
				 element->size);
	}
}

/* An event's parameters are those of the identifier's type: the others lie in the same place, and say nothing. */
static void remove_other_parameters(struct uvd_trace_decoded *d)
{
	const json_int_t id = json_integer_value(json_object_get(d->out, "id"));
	const char *type = uvd_trace_type_of(d, id), *name,
		   *other = type && !strcmp(type, "UD") ? "param.conn." : "param.ud.";
	json_t *value;
	void *next;

	json_object_foreach_safe(d->out, next, name, value) {
		if (strncmp(name, other, strlen(other)))
			continue;
		json_object_del(d->roles, name);
		json_object_del(d->words, name);
		json_object_del(d->out, name);
	}
}

static void add_response(struct uvd_trace_decoded *d, const struct uvd_struct *of, const struct uvd_trace_command *c)
{
	const size_t room = c->response_len < COMMAND ? c->response_len : COMMAND;
	uint8_t *response = calloc(1, COMMAND);
	size_t len;

	if (!response)
		return;
	len = uvd_image_get(&d->image, UVD_PIECE_WRITTEN, c->response, response, room);
	uvd_trace_struct(d, d->out, "", of, response, len);
	add_elements(d, of, response, len);
	free(response);
}

void uvd_trace_command_fields(struct uvd_trace_decoded *d, const struct uvd_trace_command *c)
{
	const struct uvd_command_fields *fields = uvd_view_command(d->row);

	add_request(d, fields->request, c);
	if (c->response)
		add_response(d, uvd_command_response(fields, c->request, c->request_len), c);
	if (!strcmp(d->row->name, "RDMA_USER_CM_CMD_GET_EVENT"))
		remove_other_parameters(d);
}

/* ---- write() ----------------------------------------------------------------------------------------------------- */

/* Splits the driver's part from the command's, as dispatch does. */
static void split_plain(struct uvd_trace_decoded *d, const struct ib_uverbs_cmd_hdr *hdr, struct uvd_trace_command *c,
			const uint8_t *buf, size_t len)
{
	c->request = buf + sizeof(*hdr);
	c->request_len = len - sizeof(*hdr);
	if (d->row->flags & UVERBSD_TREE_COMMAND_UDATA && c->request_len > d->row->min_len) {
		uvd_result_set_hex(d->in, "uhw_in", c->request + d->row->min_len, c->request_len - d->row->min_len);
		c->request_len = d->row->min_len;
	}
	if (d->row->flags & UVERBSD_TREE_COMMAND_RESP && c->request_len >= sizeof(c->response))
		memcpy(&c->response, c->request, sizeof(c->response));
	c->response_len = hdr->out_words * 4u;
}

static void split_extended(struct uvd_trace_decoded *d, const struct ib_uverbs_cmd_hdr *hdr,
			   struct uvd_trace_command *c, const uint8_t *buf, size_t len)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t left = len - EX_HDR;

	memcpy(&ex, buf + sizeof(*hdr), sizeof(ex));
	c->request = buf + EX_HDR;
	c->request_len = hdr->in_words * 8u < left ? hdr->in_words * 8u : left;
	left -= c->request_len;
	if (left && ex.provider_in_words)
		uvd_result_set_hex(d->in, "uhw_in", c->request + c->request_len, left);
	c->response = ex.response;
	c->response_len = hdr->out_words * 8u;
}

/* The kernel reads the whole struct of a command, whatever the header says. */
static void split_cm(struct uvd_trace_decoded *d, const struct rdma_ucm_cmd_hdr *hdr, struct uvd_trace_command *c,
		     const uint8_t *buf, size_t len)
{
	const size_t at = uvd_cm_response_at(d->row->name), left = len - sizeof(*hdr);

	c->request = buf + sizeof(*hdr);
	c->request_len = left < d->row->min_len ? left : d->row->min_len;
	if (at != UVD_NO_RESPONSE && at + sizeof(c->response) <= c->request_len)
		memcpy(&c->response, c->request + at, sizeof(c->response));
	c->response_len = hdr->out;
}

static size_t command_bytes(const struct uvd_trace_decoded *d, uint8_t *buf)
{
	const struct uvd_piece *first = uvd_image_first(&d->image);

	if (!first)
		return 0;
	if (first->kind != UVD_PIECE_COMMAND)
		return uvd_image_get(&d->image, UVD_PIECE_READ, first->addr, buf, COMMAND);
	memcpy(buf, first + 1, first->kept < COMMAND ? first->kept : COMMAND);
	return first->kept < COMMAND ? first->kept : COMMAND;
}

static void write_decode(struct uvd_trace_decoded *d, const uint8_t *buf, size_t len)
{
	struct uvd_trace_command c = {};
	struct ib_uverbs_cmd_hdr hdr;
	bool ex;

	if (len < sizeof(hdr))
		return;
	memcpy(&hdr, buf, sizeof(hdr));
	ex = hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	snprintf(d->verb, sizeof(d->verb), "command_0x%x", hdr.command);
	d->row = uvd_trace_command_row(d->script, hdr.command);
	if (!d->row || (ex && len < EX_HDR))
		return;
	if (ex)
		split_extended(d, &hdr, &c, buf, len);
	else
		split_plain(d, &hdr, &c, buf, len);
	uvd_trace_command_fields(d, &c);
}

static void write_decode_cm(struct uvd_trace_decoded *d, const uint8_t *buf, size_t len)
{
	struct uvd_trace_command c = {};
	struct rdma_ucm_cmd_hdr hdr;

	if (len < sizeof(hdr))
		return;
	memcpy(&hdr, buf, sizeof(hdr));
	snprintf(d->verb, sizeof(d->verb), "command_0x%x", hdr.cmd);
	d->row = hdr.cmd <= IB_USER_VERBS_CMD_COMMAND_MASK ? uvd_trace_command_row(d->script, hdr.cmd) : NULL;
	if (!d->row)
		return;
	split_cm(d, &hdr, &c, buf, len);
	uvd_trace_command_fields(d, &c);
}

void uvd_trace_write(struct uvd_trace_decoded *d)
{
	uint8_t *buf = calloc(1, COMMAND + 8);

	d->front = "write";
	snprintf(d->object, sizeof(d->object), "?");
	snprintf(d->verb, sizeof(d->verb), "write");
	if (buf)
		(d->script && uvd_view_is_cm(&d->script->view) ? write_decode_cm : write_decode)(d, buf,
												 command_bytes(d, buf));
	free(buf);
}
