/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Every call that succeeds, with each single change to it. */
#include <string.h>
#include "gen.h"

static const char *const write_knobs[] = {
	"!in_words=+1",
	"!in_words=-1",
	"!in_words=0",
	"!out_words=+1",
	"!out_words=-1",
	"!out_words=0",
	"!len=+4",
	"!len=-4",
	"!len=8",
	"!len=7",
	"!response=none",
	"!response=0",
	"!response=ro",
	"uhw_in=8",
	"uhw_out=0",
	"uhw_out=64",
	"in=4",
	"in=256",
	"out=4",
	"out=512",
	"!provider_in_words=+1",
	"!provider_out_words=+1",
	"!cmd_hdr_reserved=1",
};

static const char *const invoke_knobs[] = {
	"!core_in:drop",    "!core_in:ptr=none", "!core_in:len=-1",    "!core_in:len=+8:tail=1", "!core_in:len=+8",
	"!core_in:flags=0", "!core_out:drop",	 "!core_out:ptr=none", "!core_out:ptr=0",	 "!core_out:len=-1",
	"!core_out:len=+8", "!core_out:flags=0", "!write_cmd:drop",    "!write_cmd:len=4",	 "!write_cmd:flags=0",
	"!uhw_in:len=8",    "!uhw_out:len=64",	 "!uhw_out:ptr=none",  "!core_in:rsv=1",	 "!core_out:elem=1",
};

static const char *const header_knobs[] = { "!length=+16",   "!length=-16",   "!length=+1",	   "!length=0",
					    "!num_attrs=+1", "!num_attrs=-1", "!num_attrs=0xffff", "!reserved1=1",
					    "!reserved2=1",  "!driver=+1",    "!arg=none",	   "!arg=0",
					    "#0x7:flags=0",  "#0x7",	      "#0x1005",	   "#0x2000" };

/* Sets an item of the call, or adds it. */
static void item_set(struct uvd_prog_call *call, const char *name, const char *word)
{
	for (unsigned int i = 0; i < call->num_items; i++)
		if (!strncmp(call->items[i], name, strlen(name)) && call->items[i][strlen(name)] == '=') {
			uvd_prog_drop_item(call, i);
			break;
		}
	uvd_prog_add_item(call, "%.60s=%.60s", name, word);
}

static bool word_nth(const char *good, unsigned int n, char *word)
{
	int used;

	for (; good && sscanf(good, "%159s%n", word, &used) == 1; good += used)
		if (!n--)
			return true;
	return false;
}

/* Makes the n-th change to the call. Returns false if there are fewer. */
static bool sweep_command(struct uvd_prog_call *call, const struct uvd_shape_command *shape, unsigned int n)
{
	char word[UVD_PROG_MAX_ITEM];

	for (unsigned int f = 0; f < shape->in.n; f++)
		for (unsigned int w = 0; word_nth(shape->in.f[f].good, w, word); w++)
			if (!n--) {
				if (*word != '<')
					item_set(call, shape->in.f[f].name, word);
				else
					item_set(call, shape->in.f[f].name, "0x7fff");
				return true;
			}
	if (call->front == UVD_PROG_WRITE && n < UVD_COUNT(write_knobs) - (shape->ex ? 0 : 3))
		return uvd_prog_add_item(call, "%s", write_knobs[n]), true;
	if (call->front == UVD_PROG_INVOKE && n < UVD_COUNT(invoke_knobs))
		return uvd_prog_add_item(call, "%s", invoke_knobs[n]), true;
	return false;
}

static bool sweep_method(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_method *ref,
			 unsigned int n)
{
	unsigned int num_mods = 0;

	while (uvd_gen_attr_mods[num_mods])
		num_mods++;
	for (unsigned int a = 0; a < ref->row->num_attrs; a++) {
		const struct uvd_attr_row *row = &ref->row->attrs[a];
		char name[64], item[UVD_PROG_MAX_ITEM], word[UVD_PROG_MAX_ITEM];
		const struct uvd_shape_attr *shape;
		unsigned int i;

		snprintf(name, sizeof(name), "%s", uvd_shape_attr_name(row));
		shape = uvd_shape_attr(name);
		if (uvd_gen_absent_attr(g, row) || row->flags & UVD_UDATA)
			continue;
		for (i = 0; i < call->num_items && strncmp(call->items[i], name, strlen(name)); i++)
			;
		if (i == call->num_items)
			uvd_prog_add_item(call, "%s", name);
		if (n == 0) {
			if (uvd_gen_wanted(row))
				uvd_prog_drop_item(call, i);
			return true;
		}
		if (n == 1)
			return uvd_prog_add_item(call, "%s", call->items[i]), true;
		n -= 2;
		snprintf(item, sizeof(item), "%s", call->items[i]);
		if (n < num_mods)
			return snprintf(call->items[i], UVD_PROG_MAX_ITEM, "%.100s:%s", item, uvd_gen_attr_mods[n]),
			       true;
		n -= num_mods;
		for (unsigned int f = 0; shape && row->type != UVD_ATTR_PTR_OUT && f < shape->fields.n; f++)
			for (unsigned int w = 0; word_nth(shape->fields.f[f].good, w, word); w++)
				if (!n--) {
					bool value = !strcmp(shape->fields.f[f].name, UVD_SHAPE_VALUE);

					if (value)
						snprintf(call->items[i], UVD_PROG_MAX_ITEM, "%s=%.60s", name, word);
					else
						snprintf(call->items[i], UVD_PROG_MAX_ITEM, "%s={%s=%.60s}", name,
							 shape->fields.f[f].name, word);
					return true;
				}
		if (i == call->num_items - 1 && !(uvd_gen_wanted(row)))
			uvd_prog_drop_item(call, i);
	}
	if (n < UVD_COUNT(header_knobs))
		return uvd_prog_add_item(call, "%s", header_knobs[n]), true;
	return false;
}

/* Finds the n-th target: each command by each front, then each method. */
static bool sweep_target(struct uvd_gen *g, unsigned int n, const struct uvd_shape_command **shape,
			 enum uvd_prog_front *front, struct uvd_shape_method *ref)
{
	for (unsigned int c = 0; (*shape = uvd_shape_command_at(c)); c++) {
		if (uvd_gen_absent_command(g, *shape) || uvd_gen_excluded((*shape)->name))
			continue;
		if (n < 2) {
			*front = n ? UVD_PROG_INVOKE : UVD_PROG_WRITE;
			return true;
		}
		n -= 2;
	}
	*front = UVD_PROG_METHOD;
	for (unsigned int m = 0; uvd_shape_method_at(m, ref); m++)
		if (uvd_gen_can_ask(g, ref) && !n--)
			return true;
	return false;
}

bool uvd_prog_sweep(struct uvd_prog *p, const struct uvd_prog_list *list, unsigned int target, unsigned int part)
{
	struct uvd_gen g = { .state = 1, .p = p, .list = list, .plain = true };
	const struct uvd_shape_command *shape;
	struct uvd_shape_method ref;
	enum uvd_prog_front front;
	unsigned int n;

	memset(p, 0, sizeof(*p));
	if (!sweep_target(&g, target, &shape, &front, &ref))
		return false;
	uvd_gen_command(&g, uvd_shape_command("GET_CONTEXT"), UVD_PROG_WRITE);
	for (n = part * UVD_PROG_SWEEP_CALLS;
	     n < (part + 1) * UVD_PROG_SWEEP_CALLS && p->num_calls < UVD_PROG_MAX_CALLS; n++) {
		struct uvd_prog_call *call =
			front == UVD_PROG_METHOD ? uvd_gen_method(&g, &ref) : uvd_gen_command(&g, shape, front);

		if (!call)
			break;
		if (front == UVD_PROG_METHOD ? sweep_method(&g, call, &ref, n) : sweep_command(call, shape, n))
			continue;
		p->num_calls--;
		break;
	}
	snprintf(p->name, sizeof(p->name), "sweep of %s by %s, part %u",
		 front == UVD_PROG_METHOD ? uvd_shape_method_name(ref.row) : shape->name, uvd_prog_front_names[front],
		 part + 1);
	return n > part * UVD_PROG_SWEEP_CALLS;
}
