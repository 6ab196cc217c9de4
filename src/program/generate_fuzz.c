/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random programs for fuzzing: calls beside each other, closes, events, and the destruction of what was made. */
#include <string.h>
#include "gen.h"

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Finds the command that destroys objects of this type. */
static const struct uvd_shape_command *gen_ender(struct uvd_gen *g, const char *type)
{
	const struct uvd_shape_command *shape;

	for (unsigned int n = 0; (shape = uvd_shape_command_at(n)); n++)
		if (shape->ends && !strcmp(shape->ends, type) && !uvd_gen_absent_command(g, shape))
			return shape;
	return NULL;
}

/* Finds the method that destroys objects of this type. */
static bool gen_method_ender(struct uvd_gen *g, const char *type, struct uvd_shape_method *ref)
{
	for (unsigned int n = 0; uvd_shape_method_at(n, ref); n++) {
		const struct uvd_attr_row *end = uvd_shape_method_end(ref->row);

		if (end && !strcmp(uvd_shape_object_name(end->object), type) && uvd_gen_can_ask(g, ref))
			return true;
	}
	return false;
}

/* Destroys this object by its method, with the attributes that the method needs. Returns the call, or NULL. */
static struct uvd_prog_call *gen_destroy_by_method(struct uvd_gen *g, const struct uvd_gen_live *live)
{
	struct uvd_shape_method ref;
	struct uvd_prog_call *call;

	if (!gen_method_ender(g, live->type, &ref))
		return NULL;
	call = uvd_gen_new_call(g, UVD_PROG_METHOD, uvd_shape_method_name(ref.row));
	for (unsigned int a = 0; call && a < ref.row->num_attrs; a++) {
		const struct uvd_attr_row *row = &ref.row->attrs[a];

		if (row == uvd_shape_method_end(ref.row))
			uvd_prog_add_item(call, "%s=%s", uvd_shape_attr_name(row), live->label);
		else if (row->flags & UVD_MANDATORY)
			uvd_prog_add_item(call, "%s", uvd_shape_attr_name(row));
	}
	return call;
}

/* Destroys this object by any front. Returns the call, or NULL. */
static struct uvd_prog_call *gen_destroy(struct uvd_gen *g, const struct uvd_gen_live *live)
{
	const struct uvd_shape_command *shape = gen_ender(g, live->type);
	struct uvd_prog_call *call;

	if (!shape || uvd_gen_chance(g, 35))
		return gen_destroy_by_method(g, live);
	call = uvd_gen_new_call(g, uvd_gen_front(g), shape->name);
	for (unsigned int f = 0; call && f < shape->in.n; f++)
		if (shape->in.f[f].field->ends)
			uvd_prog_add_item(call, "%s=%s", shape->in.f[f].name, live->label);
	return call;
}

/* Makes objects of one type while others of that type are destroyed, a few times: their calls use the same locks. */
static void gen_contend(struct uvd_gen *g)
{
	const struct uvd_gen_live *found = uvd_gen_live_find(g, NULL);
	const struct uvd_shape_command *maker = found ? uvd_gen_maker(g, found->type) : NULL;
	unsigned int rounds = 1 + uvd_gen_below(g, 5);

	for (unsigned int i = 0; maker && gen_ender(g, maker->makes) && i < rounds; i++) {
		struct uvd_gen_live *live;
		struct uvd_prog_call *end;

		uvd_gen_command(g, maker, uvd_gen_front(g));
		live = g->num_live ? &g->live[g->num_live - 1] : NULL;
		if (!live || strcmp(live->type, maker->makes))
			return;
		end = gen_destroy(g, live);
		if (!end)
			return;
		uvd_gen_live_end(g, live->label);
		end->beside = uvd_gen_command(g, maker, uvd_gen_front(g));
	}
}

/* Two calls at the same time: of the same object's destruction, or of anything. */
static void gen_race(struct uvd_gen *g)
{
	const struct uvd_gen_live *found = uvd_gen_live_find(g, NULL);
	struct uvd_gen_live live = found ? *found : (struct uvd_gen_live){};
	bool ends = found && uvd_gen_chance(g, 60);
	unsigned int first = g->p->num_calls, second;

	if (ends)
		gen_destroy(g, &live);
	else
		uvd_gen_any_call(g);
	second = g->p->num_calls;
	if (ends && uvd_gen_chance(g, 50))
		gen_destroy(g, &live);
	else
		uvd_gen_any_call(g);
	if (second > first && g->p->num_calls > second)
		g->p->calls[second - 1].beside = true;
	if (ends)
		uvd_gen_live_end(g, live.label);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

/* Picks a word for a descriptor that a call has returned, usually an open one. Returns its object, or NULL. */
static struct uvd_gen_live *word_fd(struct uvd_gen *g, char *word)
{
	struct uvd_gen_live *live = uvd_gen_live_find(g, UVD_GEN_ONE_OF(g, "channel", "channel", "async", "context"));

	if (live && !uvd_gen_chance(g, 5))
		snprintf(word, UVD_PROG_MAX_TARGET, "%s%s", live->label, strcmp(live->type, "context") ? "" : ".fd");
	else
		snprintf(word, UVD_PROG_MAX_TARGET, "%s", UVD_GEN_ONE_OF(g, "0", "-1", "1000"));
	return live;
}

/* Reads an event, rarely after a wait: most have none. */
static void gen_event(struct uvd_gen *g)
{
	char word[UVD_PROG_MAX_TARGET];
	struct uvd_prog_call *call;

	word_fd(g, word);
	call = uvd_gen_new_call(g, UVD_PROG_EVENT, word);
	if (call && uvd_gen_chance(g, 20))
		uvd_prog_add_item(call, "wait=2");
}

/* Closes a descriptor. Some programs use it afterwards. */
static void gen_close(struct uvd_gen *g)
{
	char word[UVD_PROG_MAX_TARGET];
	struct uvd_gen_live *live = word_fd(g, word);

	if (uvd_gen_new_call(g, UVD_PROG_CLOSE, word) && live && !strcmp(word, live->label) && !uvd_gen_chance(g, 20))
		uvd_gen_live_end(g, live->label);
}

/* Begins a call that makes an object. Returns NULL if the program is full. */
static struct uvd_prog_call *gen_make(struct uvd_gen *g, const char *command, const char *type)
{
	struct uvd_prog_call *call = uvd_gen_new_call(g, uvd_gen_front(g), command);

	if (call)
		uvd_gen_live_add(g, call, type);
	return call;
}

/* Posts a receive to a QP, which then fails: its completion is an event on the CQ's channel. */
static void gen_completion(struct uvd_gen *g)
{
	struct uvd_prog_call *pd = gen_make(g, "ALLOC_PD", "pd");
	struct uvd_prog_call *channel = gen_make(g, "CREATE_COMP_CHANNEL", "channel");
	struct uvd_prog_call *cq = gen_make(g, "CREATE_CQ", "cq");
	struct uvd_prog_call *qp = gen_make(g, "CREATE_QP", "qp"), *call;

	if (!qp || !(call = uvd_gen_new_call(g, uvd_gen_front(g), "REQ_NOTIFY_CQ")))
		return;
	uvd_prog_add_item(cq, "comp_channel=%s", channel->label);
	uvd_prog_add_item(qp, "pd_handle=%s", pd->label);
	uvd_prog_add_item(qp, "send_cq_handle=%s", cq->label);
	uvd_prog_add_item(qp, "recv_cq_handle=%s", cq->label);
	uvd_prog_add_item(call, "cq_handle=%s", cq->label);
	for (unsigned int i = 0; i < 2; i++) {
		call = uvd_gen_new_call(g, uvd_gen_front(g), "MODIFY_QP");
		if (!call)
			return;
		uvd_prog_add_item(call, "qp_handle=%s", qp->label);
		uvd_prog_add_item(call, "qp_state=%u", i ? 6 : 1);
		uvd_prog_add_item(call, "attr_mask=%#x", i ? 1 : 0x39);
		if (!i)
			uvd_gen_new_call(g, UVD_PROG_RECV, qp->label);
	}
	call = uvd_gen_new_call(g, UVD_PROG_EVENT, channel->label);
	if (call)
		uvd_prog_add_item(call, "wait=2");
}

/* Makes a CQ, or another call, while another thread closes a descriptor. */
static void gen_race_close(struct uvd_gen *g)
{
	unsigned int first = g->p->num_calls, second;

	if (uvd_gen_chance(g, 50))
		uvd_gen_command(g, uvd_shape_command("CREATE_CQ"), uvd_gen_front(g));
	else
		uvd_gen_any_call(g);
	second = g->p->num_calls;
	gen_close(g);
	if (second > first && g->p->num_calls > second)
		g->p->calls[second - 1].beside = true;
}

/* Closes the device, mostly while other threads make calls. The calls that follow find it closed. */
static void gen_close_device(struct uvd_gen *g)
{
	const struct uvd_gen_live *live = uvd_gen_live_find(g, NULL);
	unsigned int first = g->p->num_calls, after = uvd_gen_below(g, 3);
	bool beside = uvd_gen_chance(g, 80);

	if (live && uvd_gen_chance(g, 50))
		gen_destroy(g, live);
	if (uvd_gen_chance(g, 70))
		uvd_gen_any_call(g);
	if (g->p->num_calls > first && g->p->num_calls < UVD_PROG_MAX_CALLS)
		g->p->calls[g->p->num_calls - 1].beside = beside;
	uvd_gen_new_call(g, UVD_PROG_CLOSE, UVD_PROG_DEVICE);
	for (unsigned int i = 0; i < after; i++)
		uvd_gen_any_call(g);
	if (uvd_gen_chance(g, 30))
		gen_close(g);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Destroys all objects, one after the other; some a second time, which must fail. */
static void gen_destroy_all(struct uvd_gen *g)
{
	for (unsigned int i = g->num_live; i-- > 0;) {
		gen_destroy(g, &g->live[i]);
		if (uvd_gen_chance(g, 8))
			gen_destroy(g, &g->live[i]);
	}
}

static void gen_any_fuzz(struct uvd_gen *g)
{
	unsigned int n = uvd_gen_below(g, 100);

	if (n < 10)
		gen_race(g);
	else if (n < 14)
		gen_contend(g);
	else if (n < 17)
		gen_event(g);
	else if (n < 20)
		gen_close(g);
	else if (n < 23)
		gen_race_close(g);
	else if (n < 25)
		gen_completion(g);
	else
		uvd_gen_any_call(g);
}

void uvd_prog_generate_fuzz(struct uvd_prog *p, const struct uvd_prog_list *list, uint64_t seed)
{
	struct uvd_gen g = { .state = seed, .p = p, .list = list, .fuzz = true };
	unsigned int most;

	uvd_gen_begin(&g, seed);
	most = p->num_calls + 2 + uvd_gen_below(&g, 14);
	while (p->num_calls < most && p->num_calls < UVD_PROG_MAX_CALLS)
		gen_any_fuzz(&g);
	if (uvd_gen_chance(&g, 12))
		gen_close_device(&g);
	else if (uvd_gen_chance(&g, 70))
		gen_destroy_all(&g);
}
