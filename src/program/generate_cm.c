/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random programs of rdma_cm: connections that end anywhere, groups, and commands in any state. */
#include <stdio.h>
#include <string.h>

#include "cm.h"
#include "gen.h"

enum { CM_SPOILED = 8 };

/* Makes the call, with values of its fields as random as others. Returns NULL if the program is full. */
static struct uvd_prog_call *gen_cm_any(struct uvd_gen *g, const char *name)
{
	return uvd_gen_command(g, &uvd_shape_cm(name)->command, UVD_PROG_CM);
}

/* Appends a call with these items, separated by blanks. Returns NULL if the program is full. */
static struct uvd_prog_call *gen_cm(struct uvd_gen *g, const char *name, const char *items)
{
	struct uvd_prog_call *call = uvd_gen_new_call(g, UVD_PROG_CM, name);
	char item[64];
	int used;

	for (; call && sscanf(items, "%63s%n", item, &used) == 1; items += used)
		uvd_prog_add_item(call, "%s", item);
	if (call && uvd_gen_chance(g, CM_SPOILED))
		uvd_gen_spoil_cm(g, call, &uvd_shape_cm(name)->command);
	return call;
}

/* Makes an object, and stores its label. Returns false if there is no room for it. */
static bool gen_cm_make(struct uvd_gen *g, const char *name, const char *items, const char *type,
			char label[UVD_PROG_MAX_LABEL])
{
	struct uvd_prog_call *call = gen_cm(g, name, items);

	if (!call || !uvd_gen_live_add(g, call, type))
		return false;
	snprintf(label, UVD_PROG_MAX_LABEL, "%s", call->label);
	return true;
}

static bool gen_cm_of(struct uvd_gen *g, const char *name, const char *label, const char *items)
{
	struct uvd_prog_call *call = gen_cm(g, name, items);

	if (call)
		uvd_prog_add_item(call, "id=%s", label);
	return call;
}

static void gen_cm_event(struct uvd_gen *g)
{
	gen_cm(g, "GET_EVENT", "wait=20");
}

/* The steps of a connection, in the order in which they succeed. `c`: the client's, `s`: the server's, `n`: of the new identifier. */
static const struct cm_step {
	char who;
	const char *name, *items;
} cm_steps[] = {
	{ 's', "BIND", "addr=127.0.0.1:7471" },
	{ 's', "LISTEN", "" },
	{ 'c', "RESOLVE_ADDR", "dst_addr=127.0.0.1:7471" },
	{ 'e', NULL, NULL },
	{ 'c', "RESOLVE_ROUTE", "" },
	{ 'e', NULL, NULL },
	{ 'c', "INIT_QP_ATTR", "qp_state=1" },
	{ 'c', "CONNECT", "conn_param.valid=1 conn_param.qp_num=77 conn_param.private_data_len=4" },
	{ 'r', "GET_EVENT", "wait=20" },
	{ 'n', "ACCEPT", "conn_param.valid=1 conn_param.qp_num=78" },
	{ 'e', NULL, NULL },
	{ 'c', "ACCEPT", "conn_param.valid=0" },
	{ 'e', NULL, NULL },
	{ 'c', "QUERY", "option=1" },
	{ 'n', "DISCONNECT", "" },
	{ 'e', NULL, NULL },
	{ 'c', "DISCONNECT", "" },
	{ 'e', NULL, NULL },
};

static void gen_cm_connect(struct uvd_gen *g)
{
	const unsigned int most = UVD_COUNT(cm_steps), far = 2 + uvd_gen_below(g, most);
	char server[UVD_PROG_MAX_LABEL], client[UVD_PROG_MAX_LABEL], child[UVD_PROG_MAX_LABEL] = "0";
	const char *items = uvd_gen_chance(g, 25) ? "ps=0x111 qp_type=4" : "ps=0x106 qp_type=2";
	bool room = gen_cm_make(g, "CREATE_ID", items, "cm_id", server) &&
		    gen_cm_make(g, "CREATE_ID", items, "cm_id", client);

	for (unsigned int i = 0; room && i < far && i < most; i++) {
		const struct cm_step *s = &cm_steps[i];

		/* Anything can come between, or be left out. */
		if (uvd_gen_chance(g, 6))
			continue;
		if (uvd_gen_chance(g, 6))
			gen_cm_any(g, uvd_shape_cm_at(uvd_gen_below(g, 22))->command.name);
		if (s->who == 'e')
			gen_cm_event(g);
		else if (s->who == 'r')
			room = gen_cm_make(g, s->name, s->items, "cm_id", child);
		else if (s->who == 'n' && uvd_gen_chance(g, 20))
			room = gen_cm_of(g, "REJECT", child, "private_data_len=1");
		else
			room = gen_cm_of(g, s->name, s->who == 's' ? server : s->who == 'c' ? client : child, s->items);
	}
}

static void gen_cm_group(struct uvd_gen *g)
{
	char id[UVD_PROG_MAX_LABEL], group[UVD_PROG_MAX_LABEL];

	if (!gen_cm_make(g, "CREATE_ID", "ps=0x111 qp_type=4", "cm_id", id) ||
	    !gen_cm_of(g, "BIND_IP", id, "addr=127.0.0.1:0") ||
	    !gen_cm_make(g, "JOIN_IP_MCAST", "addr=239.1.2.3", "cm_mcast", group))
		return;
	uvd_prog_add_item(&g->p->calls[g->p->num_calls - 1], "id=%s", id);
	gen_cm_event(g);
	if (uvd_gen_chance(g, 70))
		gen_cm_of(g, "LEAVE_MCAST", group, "");
}

static void gen_cm_destroy_all(struct uvd_gen *g)
{
	for (unsigned int i = g->num_live; i-- > 0;)
		if (!strcmp(g->live[i].type, "cm_id"))
			gen_cm_of(g, "DESTROY_ID", g->live[i].label, "");
}

static void gen_cm_step(struct uvd_gen *g)
{
	const unsigned int n = uvd_gen_below(g, 10), first = g->p->num_calls;
	unsigned int second;

	if (n < 3) {
		gen_cm_connect(g);
		return;
	}
	if (n < 4) {
		gen_cm_group(g);
		return;
	}
	gen_cm_any(g, uvd_shape_cm_at(uvd_gen_below(g, 22))->command.name);
	second = g->p->num_calls;
	if (!uvd_gen_chance(g, 15))
		return;
	gen_cm_any(g, uvd_shape_cm_at(uvd_gen_below(g, 22))->command.name);
	if (second > first && g->p->num_calls > second)
		g->p->calls[second - 1].beside = true;
}

void uvd_prog_generate_cm(struct uvd_prog *p, const struct uvd_prog_list *list, uint64_t seed)
{
	struct uvd_gen g = { .state = seed, .p = p, .list = list, .fuzz = true };
	unsigned int most;

	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), UVD_PROG_SEED "%llu", (unsigned long long)seed);
	gen_cm_any(&g, "CREATE_ID");
	most = 4 + uvd_gen_below(&g, 16);
	while (p->num_calls < most && p->num_calls < UVD_PROG_MAX_CALLS)
		gen_cm_step(&g);
	if (uvd_gen_chance(&g, 60))
		gen_cm_destroy_all(&g);
}
