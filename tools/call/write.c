/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls a command by write(): its fields by name where they are known, else its request and response as bytes. */
#include <errno.h>
#include <inttypes.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script.h"

/* MAX_FIELDS: of a request. MAX_ELEMENTS: of a response. */
enum {
	MAX_FIELDS = 96,
	MAX_ELEMENTS = 1024,
	EX_HDRS = sizeof(struct ib_uverbs_cmd_hdr) + sizeof(struct ib_uverbs_ex_cmd_hdr)
};

struct command_call {
	struct uvd_script *script;
	const struct uverbsd_tree_row *row;
	const struct uvd_command_fields *fields;
	const struct uvd_struct *answer; /* the response, once the request is made */
	const char *in, *uhw_in, *uhw_out; /* values given, or NULL */
	const char *texts[MAX_FIELDS]; /* of the request's fields, or NULL */
	struct uvd_tail tail; /* of the request */
	uint8_t *request; /* row->min_len bytes or more, without headers */
	size_t request_len;
	struct uvd_bytes driver;
	uint8_t *response; /* the command's part, then the driver's */
	size_t core_out, driver_out; /* bytes in it */
};

static bool is_extended(const struct command_call *c)
{
	return c->row->flags & UVERBSD_TREE_COMMAND_EX;
}

static bool is_cm(const struct command_call *c)
{
	return c->row->flags & UVERBSD_TREE_COMMAND_CM;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* Returns the place of an argument's text. NULL: there is no such argument. */
static const char **find_arg_text(struct command_call *c, const char *word)
{
	const struct uvd_field *field = uvd_struct_find(c->fields->request, word);

	if (uvd_names_equal(word, "in"))
		return &c->in;
	if (c->row->flags & UVERBSD_TREE_COMMAND_UDATA && uvd_names_equal(word, "uhw_in"))
		return &c->uhw_in;
	if (c->row->flags & UVERBSD_TREE_COMMAND_UDATA && uvd_names_equal(word, "uhw_out"))
		return &c->uhw_out;
	return field && field - c->fields->request->fields < MAX_FIELDS ? &c->texts[field - c->fields->request->fields]
									: NULL;
}

static void complain_no_field(struct command_call *c, const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };

	for (const struct uvd_field *field = c->fields->request->fields; field->name; field++)
		uvd_nearest_add(&nearest, field->name);
	if (c->fields->request->tail)
		uvd_nearest_add(&nearest, c->fields->request->tail);
	uvd_nearest_add(&nearest, "in");
	uvd_nearest_complain(&nearest, c->script, c->row->name, "field");
}

static bool take_fields(struct command_call *c, unsigned int num, char **args)
{
	for (unsigned int i = 0; i < num; i += 2) {
		const char **text = find_arg_text(c, args[i]);

		if (!text && uvd_tail_is_called(&c->tail, args[i])) {
			if (!uvd_tail_add(&c->tail, c->script, args[i], args[i + 1]))
				return false;
			continue;
		}
		if (!text) {
			complain_no_field(c, args[i]);
			return false;
		}
		if (*text) {
			uvd_script_complain(c->script, "%s is given twice", args[i]);
			return false;
		}
		*text = args[i + 1];
	}
	return true;
}

static bool fill_field(struct command_call *c, const struct uvd_field *field, const char *text)
{
	if (text ? uvd_names_equal(text, "none") : !c->in)
		text = field->optional ? "-1" : NULL;
	if (!text)
		return true;
	if (uvd_field_end(field) > c->request_len) {
		uvd_script_complain(c->script, "%s: the device's request is too short for it", field->name);
		return false;
	}
	return uvd_field_set(c->script, field, text, c->request);
}

/* Bytes that the request needs for the fields given: an extended one can be longer than the device says. */
static size_t fields_len(const struct command_call *c)
{
	const struct uvd_field *fields = c->fields->request->fields;
	size_t len = 0;

	for (unsigned int i = 0; fields[i].name && i < MAX_FIELDS && is_extended(c); i++)
		if (c->texts[i] && uvd_field_end(&fields[i]) > len)
			len = uvd_field_end(&fields[i]);
	return len;
}

/* Sets the fields that count the flexible array's elements, unless they are given. */
static void fill_counts(struct command_call *c)
{
	const struct uvd_field *fields = c->fields->request->fields;
	uint64_t value;

	for (unsigned int i = 0; fields[i].name && i < MAX_FIELDS; i++)
		if (!c->texts[i] && uvd_tail_count(&c->tail, &fields[i], &value))
			uvd_field_put(&fields[i], value, c->request);
}

/* Sets the sizes of socket addresses, unless they are given. */
static void fill_sizes(struct command_call *c)
{
	const struct uvd_struct *of = c->fields->request;

	for (unsigned int i = 0; of->fields[i].name && i < MAX_FIELDS; i++) {
		const struct uvd_field *field = &of->fields[i], *size = uvd_field_beside(of, field);
		uint8_t room[sizeof(struct __kernel_sockaddr_storage)];

		if (field->role == UVD_ROLE_SOCKADDR && size && c->texts[i] && !c->texts[size - of->fields])
			uvd_field_put(size, uvd_sockaddr_parse(c->texts[i], room, sizeof(room)), c->request);
	}
}

/* The request is as long as the device says, or longer if more bytes are given. A flexible array follows the struct. */
static bool make_request(struct command_call *c)
{
	const size_t tail_len = c->tail.elements.len + c->tail.sges.len;
	struct uvd_bytes in = {};
	bool ok = !c->in || uvd_value_bytes(c->script, "in", c->in, &in);

	c->request_len = in.len > c->row->min_len ? in.len : c->row->min_len;
	if (fields_len(c) > c->request_len)
		c->request_len = fields_len(c);
	c->request = ok ? calloc(1, c->request_len + tail_len + c->fields->request->size + 8) : NULL;
	if (c->request && in.len)
		memcpy(c->request, in.data, in.len);
	free(in.data);
	if (!c->request)
		return false;
	if (c->in && tail_len) {
		uvd_script_complain(c->script, "--in is the whole request: --%s cannot be added",
				    c->fields->request->tail);
		return false;
	}
	for (unsigned int i = 0; c->fields->request->fields[i].name && i < MAX_FIELDS; i++)
		if (!fill_field(c, &c->fields->request->fields[i], c->texts[i]))
			return false;
	fill_sizes(c);
	if (tail_len) {
		fill_counts(c);
		uvd_tail_copy(&c->tail, c->request + c->fields->request->size);
		c->request_len = c->fields->request->size + tail_len;
	}
	return !c->uhw_in || uvd_value_bytes(c->script, "uhw_in", c->uhw_in, &c->driver);
}

static size_t write_round_up(size_t len, size_t to)
{
	return (len + to - 1) / to * to;
}

static bool command_creates(const struct uvd_command_fields *fields)
{
	for (const struct uvd_field *field = fields->response->fields; field->name; field++)
		if (field->makes)
			return true;
	return false;
}

/* A response with a flexible array has up to as many elements as the request says. */
static bool add_elements(struct command_call *c)
{
	const struct uvd_struct *response = c->answer;
	const struct uvd_field *most = uvd_struct_counter(c->fields->request, response->tail, UVD_ROLE_COUNT);
	const uint64_t num = most && uvd_field_end(most) <= c->request_len ? uvd_field_get(most, c->request) : 0;

	/* The device returns as many as it was asked for, whatever the room: as the kernel does. */
	if (num > MAX_ELEMENTS) {
		uvd_script_complain(c->script, "%s: %" PRIu64 " is above %u, the most completions of one call",
				    most->name, num, MAX_ELEMENTS);
		return false;
	}
	c->core_out += num * response->tail_of->size;
	return true;
}

static bool make_response(struct command_call *c)
{
	const size_t word = is_extended(c) ? 8 : 4;
	/* Some of the kernel's drivers refuse room for their part where they have none. */
	bool has_driver = c->row->flags & UVERBSD_TREE_COMMAND_UDATA && command_creates(c->fields);

	c->core_out = is_extended(c) ? write_round_up(c->row->len, word) : c->row->len;
	c->answer = uvd_command_response(c->fields, c->request, c->request_len);
	if (c->answer->tail_of && !is_extended(c) && !is_cm(c) && !add_elements(c))
		return false;
	c->driver_out = has_driver ? UVD_DRIVER_OUT : 0;
	if (c->uhw_out && !uvd_value_size(c->script, "uhw_out", c->uhw_out, &c->driver_out))
		return false;
	c->driver_out = write_round_up(c->driver_out, word);
	c->response = calloc(1, c->core_out + c->driver_out + 8);
	return c->response;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static size_t plain_message(const struct command_call *c, uint8_t *msg)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = c->row->id };
	const uint64_t response = (uintptr_t)c->response;
	size_t len = sizeof(hdr);

	memcpy(msg + len, c->request, c->request_len);
	if (c->row->flags & UVERBSD_TREE_COMMAND_RESP)
		memcpy(msg + len, &response, sizeof(response));
	len += c->request_len;
	if (c->driver.len)
		memcpy(msg + len, c->driver.data, c->driver.len);
	len = write_round_up(len + c->driver.len, 4);
	hdr.in_words = len / 4;
	hdr.out_words = (c->core_out + c->driver_out) / 4;
	memcpy(msg, &hdr, sizeof(hdr));
	return len;
}

static size_t extended_message(const struct command_call *c, uint8_t *msg)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = IB_USER_VERBS_CMD_FLAG_EXTENDED | c->row->id };
	struct ib_uverbs_ex_cmd_hdr ex = { .provider_in_words = write_round_up(c->driver.len, 8) / 8,
					   .provider_out_words = c->driver_out / 8 };

	hdr.in_words = write_round_up(c->request_len, 8) / 8;
	hdr.out_words = c->core_out / 8;
	if (c->core_out + c->driver_out)
		ex.response = (uintptr_t)c->response;
	memcpy(msg, &hdr, sizeof(hdr));
	memcpy(msg + sizeof(hdr), &ex, sizeof(ex));
	memcpy(msg + EX_HDRS, c->request, c->request_len);
	if (c->driver.len)
		memcpy(msg + EX_HDRS + hdr.in_words * 8ul, c->driver.data, c->driver.len);
	return EX_HDRS + (hdr.in_words + ex.provider_in_words) * 8ul;
}

/* The header's sizes are bytes, and the address of the response is where the command has it. */
static size_t cm_message(const struct command_call *c, uint8_t *msg)
{
	struct rdma_ucm_cmd_hdr hdr = { .cmd = c->row->id, .in = c->request_len, .out = c->core_out };
	const uint64_t response = (uintptr_t)c->response;
	const size_t at = uvd_cm_response_at(c->row->name);

	memcpy(msg, &hdr, sizeof(hdr));
	memcpy(msg + sizeof(hdr), c->request, c->request_len);
	if (at != UVD_NO_RESPONSE)
		memcpy(msg + sizeof(hdr) + at, &response, sizeof(response));
	return sizeof(hdr) + c->request_len;
}

static int send_command(const struct command_call *c)
{
	uint8_t *msg = calloc(1, EX_HDRS + c->request_len + c->driver.len + 16);
	size_t len;
	int err;

	if (!msg)
		return -ENOMEM;
	len = is_cm(c) ? cm_message(c, msg) : is_extended(c) ? extended_message(c, msg) : plain_message(c, msg);
	err = write(c->script->fd, msg, len) < 0 ? -errno : 0;
	free(msg);
	return err;
}

/* The elements behind the response's struct, as many as it says. */
static void take_elements(const struct command_call *c, json_t *results)
{
	const struct uvd_struct *of = c->answer, *element = of->tail_of;
	size_t at = of->size;
	char prefix[UVD_SHORT_NAME];
	uint64_t num;

	if (!element)
		return;
	num = uvd_struct_tail_count(of, c->response, c->core_out);
	for (uint32_t i = 0; i < num && at + element->size <= c->core_out; i++, at += element->size) {
		snprintf(prefix, sizeof(prefix), "%s.%u", of->tail, i);
		uvd_struct_results(results, prefix, element, c->response + at, element->size);
	}
}

static void take_response(const struct command_call *c, struct uvd_outcome *out)
{
	const struct uvd_field *field = c->answer->fields;
	size_t len = c->driver_out;
	int32_t created;

	if (!field->name && c->core_out)
		uvd_result_set(out->results, "resp", c->response, c->core_out);
	uvd_struct_results(out->results, "", c->answer, c->response, c->core_out);
	take_elements(c, out->results);
	for (; field->name; field++) {
		if (!field->makes || !uvd_field_is_read(c->answer, field, c->response, c->core_out) ||
		    field->at + (size_t)field->size > c->core_out)
			continue;
		memcpy(&created, c->response + field->at, sizeof(created));
		out->handle = created;
	}
	if (!c->uhw_out)
		len = uvd_used_len(c->response + c->core_out, len, 0);
	if (len)
		uvd_result_set(out->results, "uhw_out", c->response + c->core_out, len);
}

bool uvd_call_command(struct uvd_script *s, const struct uvd_tree_entry *command, unsigned int num, char **args,
		      bool must_create, struct uvd_outcome *out)
{
	struct command_call c = { .script = s, .row = &command->row, .fields = uvd_view_command(&command->row) };
	bool ok;

	c.tail.of = c.fields->request;
	ok = take_fields(&c, num, args);
	out->creates = command_creates(c.fields);
	if (ok && must_create && !out->creates) {
		uvd_script_complain(s, "the response of %s has no handle that is known by name", command->row.name);
		ok = false;
	}
	ok = ok && make_request(&c) && make_response(&c);
	if (ok) {
		out->err = send_command(&c);
		if (!out->err)
			take_response(&c, out);
	}
	uvd_tail_free(&c.tail);
	free(c.request);
	free(c.driver.data);
	free(c.response);
	return ok;
}
