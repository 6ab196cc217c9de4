/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Is a difference of a call of a trace in the list of differences between the kernel and uverbsd? */
#include <fnmatch.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "util/util.h"

/* ---- what the conditions of its rows ask ------------------------------------------------------------------------- */

const char *uvd_replay_listed_name(const char *name)
{
	static const char *const begins[] = { "IB_USER_VERBS_EX_CMD_", "IB_USER_VERBS_CMD_", "UVERBS_METHOD_" };
	static char text[UVD_SHORT_NAME];

	for (unsigned int i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i]))) {
			snprintf(text, sizeof(text), "%s%s", i ? "" : "EX_", name + strlen(begins[i]));
			return text;
		}
	return name;
}

/* Did the recorded device share its queues with its clients? */
static bool call_has_mapped_queues(const struct uvd_replay_call *c)
{
	return c->was->script && c->was->script->view.driver_id == RDMA_DRIVER_RXE;
}

/* Values of the header, and what a program cannot have. Returns false if `name` is none of these. */
static bool header_value(const struct uvd_replay_call *c, const char *name, uint64_t *value)
{
	const bool method = c->row->kind == UVERBSD_TREE_METHOD, extended = c->row->flags & UVERBSD_TREE_COMMAND_EX;

	if (!strcmp(name, "mapped_queues"))
		*value = call_has_mapped_queues(c);
	else if (!strcmp(name, "object") && (method || c->ioctl))
		*value = method ? c->row->object : UVERBS_OBJECT_DEVICE;
	else if (!strcmp(name, "method") && (method || c->ioctl))
		*value = method ? c->row->id : UVERBS_METHOD_INVOKE_WRITE;
	else if (!strcmp(name, "command") && !method)
		*value = c->row->id | (extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
	else
		return false;
	return true;
}

static bool asked_value(const void *of, const char *name, uint64_t *value)
{
	const struct uvd_replay_call *c = of;
	const json_t *input = json_object_get(c->values, name);

	if (header_value(c, name, value))
		return true;
	*value = json_integer_value(input);
	return input;
}

static bool asked_has_attr(const void *of, const char *pattern)
{
	const struct uvd_replay_call *c = of;
	json_t *name;
	size_t i;

	json_array_foreach(c->attrs, i, name)
		if (!fnmatch(pattern, json_string_value(name), 0))
			return true;
	return false;
}

static uint64_t asked_qp_now(const void *of)
{
	return uvd_replay_qp_now(of);
}

static bool asked_qp_after(const void *of, const char *call)
{
	return uvd_replay_qp_after(of, call);
}

static enum uvd_prog_front call_front(const struct uvd_replay_call *c)
{
	if (c->row->kind == UVERBSD_TREE_METHOD)
		return UVD_PROG_METHOD;
	return c->ioctl ? UVD_PROG_INVOKE : UVD_PROG_WRITE;
}

/* Without a row the call has no name in the list. */
static struct uvd_prog_asked call_asked(const struct uvd_replay_call *c)
{
	return (struct uvd_prog_asked){
		.call = uvd_replay_listed_name(c->row->name),
		.front = uvd_prog_front_names[call_front(c)],
		.of = c,
		.value = asked_value,
		.has_attr = asked_has_attr,
		.qp_now = asked_qp_now,
		.qp_after = asked_qp_after,
	};
}

/* The trace can be of another machine, and a peer's address is replaced by the device's own. */
struct uvd_prog_answers uvd_replay_answers(const struct uvd_replay_call *c)
{
	return (struct uvd_prog_answers){
		.list = c->row && !c->f->cm ? &c->r->list : NULL,
		.numbers = &c->r->numbers,
		.asked = c->row ? call_asked(c) : (struct uvd_prog_asked){},
		.ours_is_kernel = c->r->kernel,
		.same = c->f->other ? 0 : UVD_SAME_DRIVER,
		.complete = true,
		.scope = c->was->open ? c->was->open->file.number : 0,
		.of.file = c->f->file,
	};
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

const char *uvd_replay_result_text(long result)
{
	return result < 0 ? uvd_errno_name(-result) : "ok";
}

bool uvd_replay_result_agrees(const struct uvd_replay_call *c, long was, long now)
{
	struct uvd_prog_answers a = uvd_replay_answers(c);

	a.asked.failed = (c->r->kernel ? now : was) < 0;
	return uvd_prog_results_agree(&a, was == now, uvd_replay_result_text(was), uvd_replay_result_text(now));
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

const char *uvd_replay_output_word(const char *name)
{
	const char *word = uvd_replay_last(name);

	return strncmp(word, "resp_", 5) ? word : word + 5;
}

static const struct uvd_words *field_words(const struct uvd_struct *of, const char *name)
{
	const struct uvd_field *f = of ? uvd_replay_field(of, name, of->size) : NULL;

	return f ? f->words : NULL;
}

/* Returns the words of a method's output, "core_support" or "resp.state", or NULL. */
static const struct uvd_words *attr_words(const struct uvd_replay_call *c, const char *name)
{
	const struct uvd_tree_view *view = &c->r->device.view;
	const size_t len = strcspn(name, ".");
	char attr[UVD_SHORT_NAME];

	for (size_t i = 0; i < view->num; i++) {
		const struct uverbsd_tree_row *row = &view->entries[i].row;
		const struct uvd_attr_fields *fields;

		if (row->kind != UVERBSD_TREE_ATTR || row->object != c->row->object || row->method != c->row->id)
			continue;
		uvd_short_attr(c->row, row, attr);
		if (strlen(attr) != len || strncmp(attr, name, len))
			continue;
		fields = uvd_view_value(row);
		return name[len] ? field_words(fields->of, name + len + 1) : fields->words;
	}
	return NULL;
}

/* Returns the words of an output, or NULL: it is a number. */
static const struct uvd_words *output_words(const struct uvd_replay_call *c, const char *name)
{
	if (c->row->kind == UVERBSD_TREE_METHOD)
		return attr_words(c, name);
	return field_words(uvd_view_command(c->row)->response, name);
}

/* Returns false if the output is no number, such as a GID. */
static bool output_number(const struct uvd_replay_call *c, const char *name, const json_t *value, uint64_t *number)
{
	const struct uvd_words *words = output_words(c, name);
	const char *text = json_string_value(value);
	char *end;

	*number = json_integer_value(value);
	if (!text || (words && uvd_words_parse(words, text, number)))
		return json_is_integer(value) || text;
	*number = strtoull(text, &end, 16);
	return !strncmp(text, "0x", 2) && !*end && strlen(text) <= 18;
}

/* A row has the name of a field ("cqe"), or of the struct in which it is ("odp_caps"). */
bool uvd_replay_output_agrees(const struct uvd_replay_call *c, const char *name, const json_t *was, const json_t *now,
			      bool equal)
{
	struct uvd_prog_answers a = uvd_replay_answers(c);
	char outer[UVD_SHORT_NAME];
	struct uvd_prog_output o = {
		.name = uvd_replay_output_word(name),
		.outer = strchr(name, '.') ? outer : NULL,
		.role = uvd_trace_output_role(c->was, name),
		.equal = equal,
	};

	snprintf(outer, sizeof(outer), "%s", name);
	outer[strcspn(outer, ".")] = 0;
	if (!now)
		return uvd_prog_output_is_free(&a, o.role);
	o.is_number = c->row && output_number(c, name, was, &o.theirs) && output_number(c, name, now, &o.ours);
	if (!uvd_role_is_chosen(o.role) || !json_is_integer(was) || !json_is_integer(now))
		return uvd_prog_outputs_agree(&a, &o);
	o.is_number = true;
	o.theirs = json_integer_value(was);
	o.ours = json_integer_value(now);
	a.scope = uvd_replay_scope(c, o.role, o.theirs);
	return uvd_prog_numbers_agree(&a, &o);
}
