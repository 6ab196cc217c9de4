/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Compares what a call returned with what the trace has, by the names of the decoder. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "util/util.h"

enum { MOST_PRINTED = 100 };

void uvd_replay_differs(struct uvd_replay *r, const struct uvd_trace_decoded *was, const char *item,
			const char *expected, const char *result)
{
	char target[2 * UVD_SHORT_NAME + 2];

	if (was)
		snprintf(target, sizeof(target), "%s.%s", was->object, was->verb);
	else
		snprintf(target, sizeof(target), "close");
	if (++r->num_differences <= MOST_PRINTED)
		json_array_append_new(r->differences,
				      json_pack("{s:i,s:s,s:s,s:s,s:s}", "call", (int)r->call, "target", target, "item",
						item, "expected", expected, "result", result));
}

/* ---- which call it is -------------------------------------------------------------------------------------------- */

bool uvd_replay_is_command(const struct uvd_replay_call *c, unsigned int number)
{
	return c->was->row && c->was->row->kind == UVERBSD_TREE_COMMAND &&
	       !(c->was->row->flags & UVERBSD_TREE_COMMAND_CM) && c->was->row->id == number;
}

static bool call_is_method(const struct uvd_replay_call *c, unsigned int object, unsigned int id)
{
	return c->was->row && c->was->row->kind == UVERBSD_TREE_METHOD && c->was->row->object == object &&
	       c->was->row->id == id;
}

static bool call_is_post(const struct uvd_replay_call *c)
{
	return uvd_replay_is_command(c, IB_USER_VERBS_CMD_POST_SEND) ||
	       uvd_replay_is_command(c, IB_USER_VERBS_CMD_POST_RECV) ||
	       uvd_replay_is_command(c, IB_USER_VERBS_CMD_POST_SRQ_RECV);
}

/* Does it ask for properties of the device or of its ports? */
static bool call_is_query_of_device(const struct uvd_replay_call *c)
{
	const struct uverbsd_tree_row *row = c->was->row;

	if (c->f->cm)
		return uvd_replay_is_cm(c, RDMA_USER_CM_CMD_QUERY) ||
		       uvd_replay_is_cm(c, RDMA_USER_CM_CMD_QUERY_ROUTE) ||
		       uvd_replay_is_cm(c, RDMA_USER_CM_CMD_INIT_QP_ATTR);
	if (row->kind == UVERBSD_TREE_METHOD)
		return row->object == UVERBS_OBJECT_DEVICE && row->id != UVERBS_METHOD_INFO_HANDLES;
	return uvd_replay_is_command(c, IB_USER_VERBS_CMD_QUERY_DEVICE) ||
	       uvd_replay_is_command(c, IB_USER_VERBS_CMD_QUERY_PORT) ||
	       uvd_replay_is_command(c, IB_USER_VERBS_CMD_GET_CONTEXT);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

/* Is it a number that the device chose, and that the calls after this one can have? */
static bool output_is_learned(enum uvd_role role)
{
	return role == UVD_ROLE_FD || uvd_role_is_chosen(role);
}

/* Are the call's outputs about another device and its ports, a parse tree, or counts of events that were not read, or need not be? */
static bool call_is_free(const struct uvd_replay_call *c)
{
	return (c->was->destroys && (!c->f->cm || c->r->cm_differs)) ||
	       call_is_method(c, UVERBSD_OBJECT_TREE, UVERBSD_METHOD_TREE_QUERY) ||
	       (c->f->other && call_is_query_of_device(c));
}

static void value_text(const json_t *value, char text[UVD_WORDS])
{
	char *all = json_dumps(value, JSON_ENCODE_ANY);

	snprintf(text, UVD_WORDS, "%s", all ? all : "nothing");
	free(all);
}

/* Returns the recorded handle of the region that a call is about: of REREG_MR or QUERY_MR. */
static uint32_t mr_handle(const struct uvd_replay_call *c)
{
	uint32_t handle = 0;

	uvd_trace_uses(c->was, UVERBS_OBJECT_MR, &handle);
	return handle;
}

/* Returns the memory of that region, or NULL. */
static struct uvd_replay_region *region_of(const struct uvd_replay_call *c)
{
	struct uvd_replay_region *region = c->r->regions;

	while (region && (region->file != c->f->file || !region->has_handle || region->handle != mr_handle(c)))
		region = region->next;
	return region;
}

/*
 * Which digits of a path record are compared: what is before its hop limit is a service id with a port, GIDs, LIDs, and RoCE's flow
 * label, which is random.
 */
enum { PATH_DIGITS = 2 * 47 };

/* Is it a part of a path that is another one in each run? */
static bool path_output_is_equal(const char *name, const json_t *was, const json_t *now)
{
	const char *last = uvd_replay_last(name), *text = json_string_value(was), *other = json_string_value(now);

	if (!strcmp(last, "flow_label"))
		return now;
	return !strcmp(last, "path_rec") && text && other && strlen(text) == strlen(other) &&
	       strlen(text) > PATH_DIGITS && !strcmp(text + PATH_DIGITS, other + PATH_DIGITS);
}

/* A handle that the call has not made: the event of an identifier. Of a group, it is the group's. */
static bool handle_is_equal(const struct uvd_replay_call *c, const json_t *was, const json_t *now)
{
	const bool group = !strncmp(json_string_value(json_object_get(c->was->out, "event")) ?: "", "MULTICAST", 9);
	const uint64_t number = json_integer_value(was);
	uint64_t known;

	if (!uvd_replay_number_known(c, group ? UVD_REPLAY_GROUP : UVD_ROLE_HANDLE, number, &known))
		known = number;
	return json_is_integer(now) && (uint64_t)json_integer_value(now) == known;
}

/* The address that work requests have for a region is that of the replayer's memory. */
static bool output_is_equal(const struct uvd_replay_call *c, const char *name, enum uvd_role role, const json_t *was,
			    const json_t *now)
{
	const struct uvd_replay_region *region = role == UVD_ROLE_IOVA ? region_of(c) : NULL;

	if (region && json_is_integer(was) && (uint64_t)json_integer_value(was) == region->hca_va)
		return json_is_integer(now) && (uint64_t)json_integer_value(now) == region->new_hca_va;
	if (role == UVD_ROLE_HANDLE && c->f->cm)
		return handle_is_equal(c, was, now);
	return json_equal(was, now) || (c->f->cm && path_output_is_equal(name, was, now));
}

static void output_compare(struct uvd_replay_call *c, const char *name, const json_t *was, const json_t *now)
{
	const enum uvd_role role = uvd_trace_output_role(c->was, name);
	char expected[UVD_WORDS], result[UVD_WORDS];

	if (c->was->creates && !strcmp(name, c->was->created_name))
		return;
	/* A descriptor is learned, whatever it is. */
	if (role == UVD_ROLE_FD && json_is_integer(was) && json_is_integer(now))
		return;
	if (uvd_replay_output_agrees(c, name, was, now, output_is_equal(c, name, role, was, now)))
		return;
	value_text(was, expected);
	value_text(now, result);
	uvd_replay_differs(c->r, c->was, name, expected, now ? result : "not written");
}

/* Returns the recorded handle of the object that gets its numbers from the call. */
static uint32_t call_numbers_owner(const struct uvd_replay_call *c)
{
	return c->was->creates ? c->was->created : c->was->renewed;
}

/*
 * The memory that the call registers belongs to its object. That of a REREG_MR takes the place of the region's old one.
 * Returns the object's memory, or NULL.
 */
static struct uvd_replay_region *region_learn(struct uvd_replay_call *c)
{
	const uint32_t handle = call_numbers_owner(c);

	if (c->was->renews) {
		uvd_replay_numbers_end(c->r, c->f->file, &handle);
		if (c->region)
			uvd_replay_regions_end(c->r, c->f->file, &handle);
	} else if (!c->was->creates) {
		if (c->region)
			uvd_replay_region_drop(c->r, c->region); /* the call has read it, and keeps nothing */
		c->region = NULL;
		return NULL;
	}
	if (!c->region)
		return c->was->creates ? NULL : region_of(c);
	c->region->handle = handle;
	c->region->has_handle = true;
	return c->region;
}

/* A number of an object; OPEN_QP finds one that has its number already. */
static void number_learn(struct uvd_replay_call *c, const char *name, enum uvd_role kind, uint64_t was, uint64_t now)
{
	const uint32_t handle = call_numbers_owner(c);
	uint64_t known;
	char expected[64], result[64];

	if (kind == UVD_ROLE_FD) {
		uvd_replay_learn(c, kind, was, now);
		return;
	}
	if (uvd_replay_is_command(c, IB_USER_VERBS_CMD_OPEN_QP) && uvd_replay_number_known(c, kind, was, &known))
		return;
	if (uvd_replay_number_bind(c, kind, was, now, handle))
		return;
	snprintf(expected, sizeof(expected), "a number of its own");
	snprintf(result, sizeof(result), "%llu, which another object has", (unsigned long long)now);
	uvd_replay_differs(c->r, c->was, name, expected, result);
}

/* A call that creates or renews has the numbers of its object in its outputs. */
static void numbers_learn(struct uvd_replay_call *c, const struct uvd_trace_decoded *now)
{
	struct uvd_replay_region *region;
	enum uvd_role role;
	const char *name;
	json_t *value, *is;

	if (c->was->creates)
		uvd_replay_learn(c, uvd_replay_handle_kind(c->was->created_object), c->was->created, now->created);
	/* The numbers in an answer of rdma_cm are those of somebody's QP. */
	if (c->f->cm)
		return;
	region = region_learn(c);
	json_object_foreach(c->was->out, name, value) {
		is = json_object_get(now->out, name);
		role = uvd_trace_output_role(c->was, name);
		if (!json_is_integer(value) || !json_is_integer(is) || !output_is_learned(role) ||
		    (!c->was->creates && role != UVD_ROLE_FD && !c->was->renews))
			continue;
		number_learn(c, name, role, json_integer_value(value), json_integer_value(is));
		if (region && role == UVD_ROLE_LKEY)
			region->lkey = json_integer_value(value);
		if (region && role == UVD_ROLE_RKEY)
			region->rkey = json_integer_value(value);
	}
}

static void numbers_lose(struct uvd_replay_call *c)
{
	enum uvd_role role;
	const char *name;
	json_t *value;

	if (c->was->creates)
		uvd_replay_learn_lost(c, uvd_replay_handle_kind(c->was->created_object), c->was->created);
	if (c->f->cm)
		return;
	json_object_foreach(c->was->out, name, value) {
		role = uvd_trace_output_role(c->was, name);
		if (json_is_integer(value) && output_is_learned(role) &&
		    (c->was->creates || c->was->renews || role == UVD_ROLE_FD))
			uvd_replay_learn_lost(c, role, json_integer_value(value));
	}
}

/* Its completions do not come: those of the caller, and of the peer, which has one of the files that are open now. */
static void post_lose(struct uvd_replay_call *c)
{
	for (struct uvd_replay_file *f = c->r->files; f; f = f->next)
		f->partial = true;
}

void uvd_replay_skip(struct uvd_replay_call *c)
{
	char target[2 * UVD_SHORT_NAME + 2];

	if (call_is_post(c))
		post_lose(c);

	snprintf(target, sizeof(target), "%s.%s", c->was->object, c->was->verb);
	if (++c->r->num_skipped <= MOST_PRINTED)
		json_array_append_new(c->r->skipped, json_pack("{s:i,s:s,s:s}", "call", (int)c->r->call, "target",
							       target, "why", c->skip));
	if (c->region)
		uvd_replay_region_drop(c->r, c->region);
	if (c->was->row && c->was->call->result >= 0)
		numbers_lose(c);
}

/* ---- the call as a record ---------------------------------------------------------------------------------------- */

/*
 * Makes a record of the call as it is now: what the device wrote stands where it stood in the recorded client, so that
 * the same decoder names it.
 */
static struct uvd_trace_call *record_new(const struct uvd_replay_call *c, long result)
{
	const struct uvd_trace_call *was = c->was->call;
	struct uvd_trace_call *now = malloc(sizeof(*was) + was->pieces);
	struct uvd_trace_image image;
	const uint8_t *mem;
	size_t have;

	if (!now)
		return NULL;
	memcpy(now, was, sizeof(*was) + was->pieces);
	now->result = result;
	image = (struct uvd_trace_image){ .pieces = (const uint8_t *)(now + 1), .len = now->pieces };
	for (struct uvd_piece *p = (void *)uvd_image_first(&image); p; p = (void *)uvd_image_next(&image, p)) {
		if (p->kind != UVD_PIECE_WRITTEN || !p->kept)
			continue;
		mem = uvd_replay_find(c, p->addr, &have);
		/* The device cannot have written where the replayer has no memory. */
		if (mem && have >= p->kept)
			memcpy(p + 1, mem, p->kept);
		else
			memset(p + 1, 0, p->kept);
	}
	return now;
}

/*
 * The decoder reads an event by the type of its identifier: that which the client's has is the type of the one that now stands in
 * its place.
 */
static json_t *handles_new(const struct uvd_replay_call *c, const struct uvd_trace_call *record)
{
	struct rdma_ucm_event_resp was, now;
	json_t *handles = json_object(), *known;
	char key[16];

	if (!c->f->cm || !uvd_replay_gets_event(c->was->call, &was) || !uvd_replay_gets_event(record, &now))
		return handles;
	snprintf(key, sizeof(key), "%u", was.id);
	known = json_object_get(c->was->open->handles, key);
	snprintf(key, sizeof(key), "%u", now.id);
	json_object_set(handles, key, known);
	return handles;
}

static void outputs_compare(struct uvd_replay_call *c, long result)
{
	struct uvd_trace_open *open = c->was->open;
	struct uvd_trace_call *record = record_new(c, result);
	json_t *handles = open ? open->handles : NULL;
	struct uvd_trace_decoded now;
	const char *name;
	json_t *value;

	if (!record)
		return;
	if (open)
		open->handles =
			handles_new(c, record); /* the decoder remembers what it names: this is not the client's */
	if (uvd_trace_decode(&c->r->reader, record, &now)) {
		numbers_learn(c, &now);
		json_object_foreach(c->was->out, name, value)
			if (!call_is_free(c))
				output_compare(c, name, value, json_object_get(now.out, name));
	}
	uvd_trace_decoded_free(&now);
	if (open) {
		json_decref(open->handles);
		open->handles = handles;
	}
	free(record);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Does the call post or poll by a queue that one of the two devices shares with its clients? */
static bool call_uses_queue(const struct uvd_replay_call *c)
{
	return c->f->other && (call_is_post(c) || uvd_replay_is_command(c, IB_USER_VERBS_CMD_POLL_CQ) ||
			       uvd_replay_is_command(c, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ));
}

/* Does the result depend on what the machine's table of GIDs holds, or on completions that are not there again? */
static bool result_is_free(const struct uvd_replay_call *c, long was, long result)
{
	if (call_is_method(c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY))
		return (was == -ENODATA || was >= 0) && (result == -ENODATA || result >= 0);
	/* A CQ cannot become smaller than the number of completions in it. */
	return uvd_replay_is_command(c, IB_USER_VERBS_CMD_RESIZE_CQ) && was == -EINVAL && result >= 0 &&
	       (c->f->other || c->r->driver_id == RDMA_DRIVER_RXE);
}

static void cm_learn(struct uvd_replay_call *c)
{
	if (c->response)
		uvd_replay_ports_learn(c);
	if (uvd_replay_is_cm(c, RDMA_USER_CM_CMD_MIGRATE_ID))
		uvd_replay_migrated(c);
}

static void result_compare(struct uvd_replay_call *c, long result)
{
	const long was = c->was->call->result;

	if (c->was->destroys && result >= 0)
		uvd_replay_numbers_end(c->r, c->f->file, &c->was->destroyed);
	if (c->region && result < 0) {
		uvd_replay_region_drop(c->r, c->region);
		c->region = NULL;
	}
	if (call_uses_queue(c))
		return;
	if ((was < 0 || result < 0) && was != result) {
		if (!result_is_free(c, was, result) && !uvd_replay_result_agrees(c, was, result))
			uvd_replay_differs(c->r, c->was, "result", uvd_replay_result_text(was),
					   uvd_replay_result_text(result));
		c->r->cm_differs |= c->f->cm;
		if (was >= 0 && c->was->row)
			numbers_lose(c);
		return;
	}
	if (was < 0 || !c->was->row)
		return;
	if (c->f->cm)
		cm_learn(c);
	outputs_compare(c, result);
	if (c->was->destroys)
		uvd_replay_regions_end(c->r, c->f->file, &c->was->destroyed);
}

void uvd_replay_compare(struct uvd_replay_call *c, long result)
{
	result_compare(c, result);
	if (c->row && (result >= 0 || c->was->call->result >= 0))
		uvd_replay_qp_note(c, uvd_replay_listed_name(c->row->name));
}
