/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <fnmatch.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "answers.h"
#include "compare.h"
#include "object.h"

struct state {
	struct uvd_prog_list *list;
	const struct uvd_prog *p;
	const struct uvd_prog_run *kernel, *ours;
	unsigned int call;
	struct uvd_prog_difference *first;
	struct uvd_prog_numbers numbers;
	struct uvd_prog_answers answers; /* to the current call */
};

const char *uvd_prog_result(const struct uvd_prog_record *r)
{
	static char text[4][32];
	static unsigned int next;
	const char *name = r->err ? strerrorname_np(r->err) : NULL;

	if (name)
		return name;
	if (r->is_ioctl ? r->ret == 0 : r->ret >= 0)
		return "ok";
	next = (next + 1) % 4;
	snprintf(text[next], sizeof(text[next]), "%ld/%d", r->ret, r->err);
	return text[next];
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Does an item of the call (!ATTR) corrupt this attribute of an INVOKE_WRITE? */
static bool call_modded(const struct uvd_prog_call *call, const char *text)
{
	for (unsigned int i = 0; i < call->num_items; i++)
		if (!strncmp(call->items[i], text, strlen(text)) && call->items[i][strlen(text)] == ':')
			return true;
	return false;
}

static bool asked_method(const struct state *s, struct uvd_shape_method *ref)
{
	return uvd_prog_method_of(s->p, s->kernel, s->call, ref);
}

static const char *asked_name(const struct state *s)
{
	const struct uvd_prog_call *call = &s->p->calls[s->call];
	struct uvd_shape_method ref;

	return call->front == UVD_PROG_METHOD && asked_method(s, &ref) ? uvd_shape_method_name(ref.row) : call->target;
}

static const char *asked_attr_name(const struct state *s, uint16_t id)
{
	static char text[16];
	struct uvd_shape_method ref;

	if (asked_method(s, &ref))
		for (unsigned int a = 0; a < ref.row->num_attrs; a++)
			if (ref.row->attrs[a].id == id)
				return uvd_shape_attr_name(&ref.row->attrs[a]);
	snprintf(text, sizeof(text), "#%#x", id);
	return text;
}

/* Returns the name of an item's attribute in the method that the sent header asks for. */
static const char *item_attr(const struct state *s, const char *item)
{
	static char name[UVD_PROG_MAX_ITEM];
	const struct uvd_attr_row *row = NULL;
	struct uvd_shape_method named;

	snprintf(name, sizeof(name), "%s", item);
	name[strcspn(name, "=:")] = 0;
	if (*name == '#')
		return asked_attr_name(s, strtoul(name + 1, NULL, 0));
	if (uvd_shape_method(s->p->calls[s->call].target, &named) && named.row)
		row = uvd_shape_attr_row(named.row, name);
	return row ? asked_attr_name(s, row->id) : name;
}

static bool call_has_attr(const void *of, const char *pattern)
{
	const struct state *s = of;
	const struct uvd_prog_call *call = &s->p->calls[s->call];

	for (unsigned int i = 0; i < call->num_items; i++)
		if (!fnmatch(pattern, item_attr(s, call->items[i]), 0))
			return true;
	return false;
}

/* ---- conditions of rows ------------------------------------------------------------------------------------------ */

/* Did call `i` make the QP with this handle? */
static bool call_makes_qp(const struct state *s, unsigned int i, uint64_t qp)
{
	const char *makes = s->kernel->records[i].ret >= 0 ? uvd_prog_makes(s->p, s->kernel, i) : NULL;
	uint64_t value;

	return makes && !strcmp(makes, uvd_shape_object_name(UVERBS_OBJECT_QP)) &&
	       uvd_prog_made(&s->kernel->records[i], &value) && value == qp;
}

/* Returns the QP's state before this call: as the last MODIFY_QP set it, else 0 (RESET). UINT64_MAX: no QP. */
static uint64_t qp_now(const void *of)
{
	const struct state *s = of;
	uint64_t qp, value, mask;

	if (!uvd_prog_handle(s->p, s->kernel, s->call, UVERBS_OBJECT_QP, &qp))
		return UINT64_MAX;
	for (unsigned int i = s->call; i-- && !call_makes_qp(s, i, qp);) {
		const struct uvd_prog_record *r = &s->kernel->records[i];

		if (r->ret >= 0 && uvd_prog_list_match("MODIFY_QP EX_MODIFY_QP", s->p->calls[i].target) &&
		    uvd_prog_handle(s->p, s->kernel, i, UVERBS_OBJECT_QP, &value) && value == qp &&
		    uvd_prog_input(r, "attr_mask", &mask) && mask & 1 && uvd_prog_input(r, "qp_state", &value))
			return value;
	}
	return 0;
}

/* Did an earlier call of `target` succeed on this call's QP? */
static bool qp_after(const void *of, const char *target)
{
	const struct state *s = of;
	uint64_t qp, value;

	if (uvd_prog_handle(s->p, s->kernel, s->call, UVERBS_OBJECT_QP, &qp))
		for (unsigned int i = s->call; i-- && !call_makes_qp(s, i, qp);)
			if (s->kernel->records[i].ret >= 0 && !strcmp(s->p->calls[i].target, target) &&
			    uvd_prog_handle(s->p, s->kernel, i, UVERBS_OBJECT_QP, &value) && value == qp)
				return true;
	return false;
}

/* An input as it was sent, else an output of the kernel's. */
static bool asked_value(const void *of, const char *name, uint64_t *value)
{
	const struct state *s = of;
	const struct uvd_prog_record *r = &s->kernel->records[s->call];

	return uvd_prog_input(r, name, value) || uvd_prog_output(r, name, value);
}

static bool asked_has_knob(const void *of, const char *knob)
{
	const struct state *s = of;
	const struct uvd_prog_call *call = &s->p->calls[s->call];

	return uvd_prog_item(call, knob) || call_modded(call, knob);
}

static struct uvd_prog_asked call_asked(const struct state *s)
{
	return (struct uvd_prog_asked){
		.call = asked_name(s),
		.front = uvd_prog_front_names[s->p->calls[s->call].front],
		.failed = s->kernel->records[s->call].ret < 0,
		.of = s,
		.value = asked_value,
		.has_attr = call_has_attr,
		.has_knob = asked_has_knob,
		.qp_now = qp_now,
		.qp_after = qp_after,
	};
}

static bool record_is_of_file(const struct uvd_prog_record *r)
{
	return r->num_regions && r->regions[0].is_expected;
}

/*
 * The results in a file can be those of another machine, while two runs are on one machine, and their devices are set up alike. A
 * file does not say by which driver it was recorded: sizes that drivers round up in different ways are in the list.
 */
static struct uvd_prog_answers call_answers(struct state *s)
{
	const bool recorded =
		record_is_of_file(&s->kernel->records[s->call]) || record_is_of_file(&s->ours->records[s->call]);

	return (struct uvd_prog_answers){
		.list = s->list,
		.numbers = &s->numbers,
		.asked = call_asked(s),
		.same = UVD_SAME_DRIVER | UVD_SAME_PEERS | (recorded ? 0 : UVD_SAME_MACHINE),
		.races = uvd_prog_races(s->p),
	};
}

static void difference_note(struct state *s, const char *item, const char *kernel, const char *ours)
{
	s->first->found = true;
	s->first->call = s->call;
	snprintf(s->first->target, sizeof(s->first->target), "%s", s->p->calls[s->call].target);
	snprintf(s->first->item, sizeof(s->first->item), "%s", item);
	snprintf(s->first->kernel, sizeof(s->first->kernel), "%s", kernel);
	snprintf(s->first->ours, sizeof(s->first->ours), "%s", ours);
}

/* Returns false after a difference. */
static bool result_compare(struct state *s, const char *kernel, const char *ours)
{
	if (uvd_prog_results_agree(&s->answers, false, kernel, ours))
		return true;
	difference_note(s, "result", kernel, ours);
	return false;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t bytes_number(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes, size < 8 ? size : 8);
	return value;
}

/* Compares with `agree`, and returns false after a difference. */
static bool output_compare(struct state *s, const struct uvd_prog_output *o,
			   bool (*agree)(const struct uvd_prog_answers *a, const struct uvd_prog_output *o))
{
	char theirs[24] = "bytes", ours[24] = "bytes";

	if (agree(&s->answers, o))
		return true;
	if (o->is_number) {
		uvd_prog_number_text(o->theirs, theirs);
		uvd_prog_number_text(o->ours, ours);
	}
	difference_note(s, o->name, theirs, ours);
	return false;
}

static struct uvd_prog_output output_of(const char *name, enum uvd_role role, const uint8_t *kernel,
					const uint8_t *ours, size_t size)
{
	struct uvd_prog_output o = { .name = name, .role = role, .is_number = size <= 8 };

	o.equal = !memcmp(kernel, ours, size);
	if (o.is_number) {
		o.theirs = bytes_number(kernel, size);
		o.ours = bytes_number(ours, size);
	}
	return o;
}

/* Has any byte been written? */
static bool number_is_written(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != UVD_PROG_UNTOUCHED)
			return true;
	return false;
}

/* Has a line of results named the field, if the region's values come from one? */
static bool field_is_named(const struct uvd_prog_region *region, unsigned int f)
{
	return !region->is_expected || (f < 64 && region->named >> f & 1);
}

/* Is field `f` of region `i` a number that the device has chosen, and do both sides have it? Then numbers_compare() compares it. */
static bool number_is_answered(const struct uvd_prog_record *k, const struct uvd_prog_record *o, unsigned int i,
			       unsigned int f)
{
	const struct uvd_prog_region *region = &k->regions[i];
	const struct uvd_shape_field *field = &region->fields.f[f];

	return k->ret >= 0 && !region->fields.stride && field->size <= 8 && field->at + field->size <= region->len &&
	       uvd_role_is_chosen(uvd_shape_field_role(field)) && field_is_named(region, f) &&
	       field_is_named(&o->regions[i], f) && number_is_written(k->out + region->at + field->at, field->size) &&
	       number_is_written(o->out + region->at + field->at, field->size);
}

/* A piece of output. */
struct piece {
	size_t begin, size;
	char name[80];
	unsigned int region, f; /* of the record, of the region */
	const struct uvd_shape_field *field; /* or NULL */
};

/* Finds the piece at offset `at`. */
static struct piece piece_at(const struct uvd_prog_record *r, size_t at)
{
	struct piece piece = { .begin = at, .size = 1 };

	for (unsigned int i = 0; i < r->num_regions; i++) {
		const struct uvd_prog_region *region = &r->regions[i];

		if (at < region->at || at >= region->at + region->len)
			continue;
		for (unsigned int f = 0; f < region->fields.n; f++) {
			const struct uvd_shape_field *field = &region->fields.f[f];
			size_t stride = region->fields.stride, past = at - region->at;
			size_t left, from = region->at + field->at + (stride ? past / stride * stride : 0);

			if (at < from || at >= from + field->size)
				continue;
			left = region->at + region->len - from;
			piece.begin = from;
			piece.size = field->size < left ? field->size : left;
			piece.region = i;
			piece.f = f;
			piece.field = field;
			snprintf(piece.name, sizeof(piece.name), "%s", field->name);
			return piece;
		}
		snprintf(piece.name, sizeof(piece.name), "%s+%#zx", region->name, at - region->at);
		return piece;
	}
	snprintf(piece.name, sizeof(piece.name), "beyond+%#zx", at);
	return piece;
}

static bool piece_compare(struct state *s, const struct piece *piece, const struct uvd_prog_record *k,
			  const struct uvd_prog_record *o)
{
	const enum uvd_role role = piece->field ? uvd_shape_field_role(piece->field) : UVD_ROLE_UNKNOWN;
	const struct uvd_prog_output out =
		output_of(piece->name, role, k->out + piece->begin, o->out + piece->begin, piece->size);

	if (piece->field && number_is_answered(k, o, piece->region, piece->f) &&
	    !uvd_prog_output_is_own_number(&s->answers, piece->name, role))
		return true;
	/* That drivers choose numbers is a row of the list, too. */
	return output_compare(s, &out, uvd_prog_outputs_agree);
}

static bool out_compare(struct state *s, const struct uvd_prog_record *k, const struct uvd_prog_record *o)
{
	for (size_t at = 0; at < k->out_len; at++) {
		struct piece piece;

		if (k->out[at] == o->out[at])
			continue;
		piece = piece_at(k, at);
		if (!piece_compare(s, &piece, k, o))
			return false;
		at = piece.begin + piece.size - 1;
	}
	return true;
}

static bool msg_compare(struct state *s, const struct uvd_prog_record *k, const struct uvd_prog_record *o)
{
	static const struct {
		const char *name;
		size_t at, size;
	} parts[] = { { "id", 0, 2 }, { "len", 2, 2 }, { "flags", 4, 2 }, { "elem", 6, 2 }, { "data", 8, 8 } };
	const size_t hdr = sizeof(struct ib_uverbs_ioctl_hdr), size = sizeof(struct ib_uverbs_attr);
	char name[80];

	if (!memcmp(k->msg, o->msg, k->msg_len))
		return true;
	if (!k->is_ioctl || memcmp(k->msg, o->msg, hdr < k->msg_len ? hdr : k->msg_len))
		return output_compare(s, &(struct uvd_prog_output){ .name = "header" }, uvd_prog_outputs_agree);
	for (size_t at = hdr; at + size <= k->msg_len; at += size)
		for (unsigned int i = 0; i < UVD_COUNT(parts); i++) {
			const uint8_t *kp = k->msg + at + parts[i].at, *op = o->msg + at + parts[i].at;
			struct uvd_prog_output out;

			if (!memcmp(kp, op, parts[i].size))
				continue;
			snprintf(name, sizeof(name), "%s.%s", asked_attr_name(s, bytes_number(k->msg + at, 2)),
				 parts[i].name);
			out = output_of(name, UVD_ROLE_UNKNOWN, kp, op, parts[i].size);
			if (!output_compare(s, &out, uvd_prog_outputs_agree))
				return false;
		}
	return true;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Returns the handle that identifies the call's object. */
static uint64_t numbers_owner(const struct state *s)
{
	uint64_t handle;

	return uvd_prog_object_of(s->p, s->kernel, s->call, &handle) ? handle : UVD_PROG_ALL_OBJECTS;
}

/* Does the call give its object numbers? Others answer those that the object has. */
static bool numbers_are_new(const struct state *s)
{
	const struct uvd_shape_command *command = uvd_prog_command_of(s->p, s->call);

	return uvd_prog_makes(s->p, s->kernel, s->call) || (command && command->renews);
}

static bool region_numbers_compare(struct state *s, const struct uvd_prog_record *k, const struct uvd_prog_record *o,
				   unsigned int i)
{
	const struct uvd_prog_region *region = &k->regions[i];

	for (unsigned int f = 0; f < region->fields.n; f++) {
		const struct uvd_shape_field *field = &region->fields.f[f];
		const size_t at = region->at + field->at;
		struct uvd_prog_output out;

		if (!number_is_answered(k, o, i, f))
			continue;
		out = output_of(field->name, uvd_shape_field_role(field), k->out + at, o->out + at, field->size);
		if (!output_compare(s, &out, uvd_prog_numbers_agree))
			return false;
	}
	return true;
}

/*
 * Did the program send another command than it names, or one without a name? The comparison cannot know which objects
 * such a command has destroyed.
 */
static bool command_is_other(const struct state *s)
{
	const struct uvd_shape_command *command = uvd_prog_command_of(s->p, s->call);
	uint64_t sent;

	if (s->p->calls[s->call].front > UVD_PROG_INVOKE)
		return false;
	return !command || (uvd_prog_input(&s->kernel->records[s->call], "command", &sent) &&
			    (sent & IB_USER_VERBS_CMD_COMMAND_MASK) != command->number);
}

/* Does the call destroy its object, or give it other numbers? */
static bool call_ends_numbers(const struct state *s)
{
	const struct uvd_shape_command *command = uvd_prog_command_of(s->p, s->call);
	struct uvd_shape_method ref;

	if (command)
		return command->ends || command->renews;
	return s->p->calls[s->call].front == UVD_PROG_METHOD && asked_method(s, &ref) && uvd_shape_method_end(ref.row);
}

/* The object of a call that destroys, or that gives it new numbers, has its numbers no longer. */
static void numbers_end(struct state *s)
{
	if (command_is_other(s))
		uvd_prog_numbers_end(&s->numbers, (struct uvd_prog_object){ .handle = UVD_PROG_ALL_OBJECTS });
	else if (call_ends_numbers(s))
		uvd_prog_numbers_end(&s->numbers, (struct uvd_prog_object){ .handle = numbers_owner(s) });
}

/* Compares the numbers that the drivers choose, in the outputs of a call that both sides have answered. */
static bool numbers_compare(struct state *s, const struct uvd_prog_record *k, const struct uvd_prog_record *o)
{
	if (k->ret < 0)
		return true;
	numbers_end(s);
	s->answers.gives = numbers_are_new(s);
	s->answers.of.handle = numbers_owner(s);
	for (unsigned int i = 0; i < k->num_regions; i++)
		if (!region_numbers_compare(s, k, o, i))
			return false;
	return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static const char *end_text(const struct uvd_prog_run *run, char *text, size_t size)
{
	if (WIFSIGNALED(run->status))
		snprintf(text, size, "%s",
			 WTERMSIG(run->status) == SIGALRM ? UVD_PROG_HANG : sigabbrev_np(WTERMSIG(run->status)));
	else
		snprintf(text, size, "ended/%d", WEXITSTATUS(run->status));
	return text;
}

/* Returns false if the calls after this one are not to be compared. */
static bool call_compare(struct state *s)
{
	const struct uvd_prog_record *k = &s->kernel->records[s->call], *o = &s->ours->records[s->call];
	char kend[32], oend[32];

	s->answers = call_answers(s);
	if (!k->done || !o->done) {
		result_compare(s, k->done ? uvd_prog_result(k) : end_text(s->kernel, kend, sizeof(kend)),
			       o->done ? uvd_prog_result(o) : end_text(s->ours, oend, sizeof(oend)));
		return false;
	}
	if (k->ret != o->ret || k->err != o->err) {
		return result_compare(s, uvd_prog_result(k), uvd_prog_result(o)) && k->ret < 0 && o->ret < 0;
	}
	return msg_compare(s, k, o) && out_compare(s, k, o) && numbers_compare(s, k, o);
}

void uvd_prog_compare(struct uvd_prog_list *list, const struct uvd_prog *p, const struct uvd_prog_run *kernel,
		      const struct uvd_prog_run *ours, struct uvd_prog_difference *first)
{
	struct state s = { .list = list, .p = p, .kernel = kernel, .ours = ours, .first = first };

	memset(first, 0, sizeof(*first));
	for (s.call = 0; s.call < p->num_calls; s.call++)
		if (!call_compare(&s))
			break;
	uvd_prog_numbers_clear(&s.numbers);
}

bool uvd_prog_same_difference(const struct uvd_prog_difference *a, const struct uvd_prog_difference *b)
{
	return a->found == b->found && !strcmp(a->target, b->target) && !strcmp(a->item, b->item) &&
	       (strcmp(a->item, "result") || (!strcmp(a->kernel, b->kernel) && !strcmp(a->ours, b->ours)));
}

void uvd_prog_difference_print(const struct uvd_prog_difference *d, FILE *out)
{
	fprintf(out, "call %u, %s: %s is %s with the kernel, %s with uverbsd\n", d->call + 1, d->target, d->item,
		d->kernel, d->ours);
}
