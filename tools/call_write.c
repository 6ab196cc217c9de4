/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls a command by write(): its fields by name where they are known, else its request and response as bytes. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"

/* DRIVER_OUT: room for the driver's part of a response. MAX_FIELDS: of a request. */
enum {
	DRIVER_OUT = 64,
	MAX_FIELDS = 32,
	EX_HDRS = sizeof(struct ib_uverbs_cmd_hdr) + sizeof(struct ib_uverbs_ex_cmd_hdr)
};

struct command_call {
	struct uvd_script *script;
	const struct uverbsd_tree_row *row;
	const struct uvd_command_fields *fields;
	const char *in, *uhw_in, *uhw_out; /* values given, or NULL */
	const char *texts[MAX_FIELDS]; /* of the request's fields, or NULL */
	uint8_t *request; /* row->min_len bytes, without headers */
	size_t request_len;
	struct uvd_bytes driver;
	uint8_t *response; /* the command's part, then the driver's */
	size_t core_out, driver_out; /* bytes in it */
};

static bool is_extended(const struct command_call *c)
{
	return c->row->flags & UVERBSD_TREE_COMMAND_EX;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static const char **find_field(struct command_call *c, const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };

	if (uvd_names_equal(word, "in"))
		return &c->in;
	if (c->row->flags & UVERBSD_TREE_COMMAND_UDATA && uvd_names_equal(word, "uhw_in"))
		return &c->uhw_in;
	if (c->row->flags & UVERBSD_TREE_COMMAND_UDATA && uvd_names_equal(word, "uhw_out"))
		return &c->uhw_out;
	for (unsigned int i = 0; c->fields->request[i].name && i < MAX_FIELDS; i++)
		if (uvd_names_equal(c->fields->request[i].name, word))
			return &c->texts[i];
	for (unsigned int i = 0; c->fields->request[i].name; i++)
		uvd_nearest_add(&nearest, c->fields->request[i].name);
	uvd_nearest_add(&nearest, "in");
	uvd_nearest_complain(&nearest, c->script, c->row->name, "field");
	return NULL;
}

static bool take_fields(struct command_call *c, unsigned int num, char **args)
{
	for (unsigned int i = 0; i < num; i += 2) {
		const char **text = find_field(c, args[i]);

		if (!text)
			return false;
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
		text = field->none ? "-1" : NULL;
	if (!text)
		return true;
	if (field->at + field->size > c->request_len) {
		uvd_script_complain(c->script, "%s: the device's request is too short for it", field->name);
		return false;
	}
	return uvd_value_sized(c->script, field->name, text, c->request + field->at, field->size);
}

/* The request is as long as the device says, or longer if more bytes are given. */
static bool make_request(struct command_call *c)
{
	struct uvd_bytes in = {};
	bool ok = !c->in || uvd_value_bytes(c->script, "in", c->in, &in);

	c->request_len = in.len > c->row->min_len ? in.len : c->row->min_len;
	c->request = ok ? calloc(1, c->request_len + 8) : NULL;
	if (c->request && in.len)
		memcpy(c->request, in.data, in.len);
	free(in.data);
	if (!c->request)
		return false;
	for (unsigned int i = 0; c->fields->request[i].name && i < MAX_FIELDS; i++)
		if (!fill_field(c, &c->fields->request[i], c->texts[i]))
			return false;
	return !c->uhw_in || uvd_value_bytes(c->script, "uhw_in", c->uhw_in, &c->driver);
}

static size_t write_round_up(size_t len, size_t to)
{
	return (len + to - 1) / to * to;
}

static bool command_creates(const struct uvd_command_fields *fields)
{
	for (const struct uvd_field *field = fields->response; field->name; field++)
		if (field->created)
			return true;
	return false;
}

static bool make_response(struct command_call *c)
{
	const size_t word = is_extended(c) ? 8 : 4;
	/* Some of the kernel's drivers refuse room for their part where they have none. */
	bool has_driver = c->row->flags & UVERBSD_TREE_COMMAND_UDATA && command_creates(c->fields);

	c->core_out = is_extended(c) ? write_round_up(c->row->len, word) : c->row->len;
	c->driver_out = has_driver ? DRIVER_OUT : 0;
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

static int send_command(const struct command_call *c)
{
	uint8_t *msg = calloc(1, EX_HDRS + c->request_len + c->driver.len + 16);
	size_t len;
	int err;

	if (!msg)
		return -ENOMEM;
	len = is_extended(c) ? extended_message(c, msg) : plain_message(c, msg);
	err = write(c->script->fd, msg, len) < 0 ? -errno : 0;
	free(msg);
	return err;
}

static void take_response(const struct command_call *c, struct uvd_outcome *out)
{
	const struct uvd_field *field = c->fields->response;
	size_t len = c->driver_out;
	int32_t created;

	if (!field->name && c->core_out)
		uvd_result_set(out->results, "resp", c->response, c->core_out);
	for (; field->name; field++) {
		if (field->at + field->size > c->core_out)
			continue;
		uvd_result_set(out->results, field->name, c->response + field->at, field->size);
		if (!field->created)
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
	struct command_call c = { .script = s, .row = &command->row, .fields = uvd_command_fields(command->row.name) };
	bool ok = take_fields(&c, num, args);

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
	free(c.request);
	free(c.driver.data);
	free(c.response);
	return ok;
}
