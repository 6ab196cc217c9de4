/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Chance, and the ways to corrupt a call. */
#include <string.h>
#include "gen.h"

/* splitmix64 */
static uint64_t gen_draw(struct uvd_gen *g)
{
	uint64_t z = g->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

unsigned int uvd_gen_below(struct uvd_gen *g, unsigned int n)
{
	return gen_draw(g) % n;
}

bool uvd_gen_chance(struct uvd_gen *g, unsigned int percent)
{
	return !g->plain && uvd_gen_below(g, 100) < percent;
}

const char *uvd_gen_one_of(struct uvd_gen *g, const char *const *words, unsigned int n)
{
	return words[uvd_gen_below(g, n)];
}
/*
 * Picks a wrong command number: the command's other form, or one that no command with a response has: the bytes of
 * another command's response would be compared under the wrong names.
 */
static const char *gen_other_command(struct uvd_gen *g)
{
	return UVD_GEN_ONE_OF(g, "+0x80000000", "+0x40000000", "+64", "+256", "6", "16", "0x3f", "0xff");
}

/* Spoils what commands of both headers have: the length of the write(), the response's address, and the sizes. */
static void gen_spoil_either(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape,
			     unsigned int what)
{
	switch (what) {
	case 2:
		uvd_prog_add_item(call, "!len=%s", UVD_GEN_ONE_OF(g, "+4", "-4", "-8", "4", "8", "7", "+8"));
		break;
	case 3:
		uvd_prog_add_item(call, "!response=%s",
				  UVD_GEN_ONE_OF(g, "none", "0", "ro", "0xffffffffffffffff", "mem"));
		break;
	case 5:
		uvd_prog_add_item(call, "out=%u", uvd_gen_below(g, shape->out_size + 17) & ~3u);
		break;
	default:
		uvd_prog_add_item(call, "in=%u", uvd_gen_below(g, shape->in_size + 17) & ~3u);
	}
}

void uvd_gen_spoil_write(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape)
{
	const unsigned int what = uvd_gen_below(g, shape->ex ? 13 : 10);

	switch (what) {
	case 0:
		uvd_prog_add_item(call, "!in_words=%s", UVD_GEN_ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 1:
		uvd_prog_add_item(call, "!out_words=%s", UVD_GEN_ONE_OF(g, "+1", "-1", "0", "+4"));
		break;
	case 2:
	case 3:
		gen_spoil_either(g, call, shape, what);
		break;
	case 4:
		uvd_prog_add_item(call, "!command=%s", gen_other_command(g));
		break;
	case 5:
	case 6:
		gen_spoil_either(g, call, shape, what);
		break;
	case 7:
		uvd_prog_add_item(call, "uhw_out=%u", uvd_gen_below(g, 48) & ~3u);
		break;
	case 8:
		uvd_prog_add_item(call, "uhw_in=%u", uvd_gen_below(g, 24) & ~3u);
		break;
	case 9:
		uvd_prog_add_item(call, "@%u=%u",
				  (shape->ex	     ? 24
				   : shape->response ? 16
						     : 8) +
					  uvd_gen_below(g, shape->in_size + 1),
				  uvd_gen_below(g, 256));
		break;
	case 10:
		uvd_prog_add_item(call, "!provider_in_words=%s", UVD_GEN_ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 11:
		uvd_prog_add_item(call, "!provider_out_words=%s", UVD_GEN_ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 12:
		uvd_prog_add_item(call, "!cmd_hdr_reserved=1");
		break;
	}
}

void uvd_gen_spoil_cm(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape)
{
	const unsigned int what = uvd_gen_below(g, 8);

	switch (what) {
	case 0:
		uvd_prog_add_item(call, "!in=%s", UVD_GEN_ONE_OF(g, "+4", "-4", "0", "0xffff"));
		break;
	case 1:
		uvd_prog_add_item(call, "!out=%s", UVD_GEN_ONE_OF(g, "+4", "-4", "0", "3"));
		break;
	case 2:
	case 3:
		gen_spoil_either(g, call, shape, what);
		break;
	case 4:
		uvd_prog_add_item(call, "!command=%s", UVD_GEN_ONE_OF(g, "13", "23", "24", "255", "-1", "0x80000000"));
		break;
	case 5:
	case 6:
		gen_spoil_either(g, call, shape, what);
		break;
	default:
		uvd_prog_add_item(call, "@%u=%u", 8 + uvd_gen_below(g, shape->in_size + 1), uvd_gen_below(g, 256));
		break;
	}
}

static void gen_spoil_header(struct uvd_gen *g, struct uvd_prog_call *call)
{
	switch (uvd_gen_below(g, call->front == UVD_PROG_METHOD ? 9 : 8)) {
	case 0:
		uvd_prog_add_item(call, "!length=%s", UVD_GEN_ONE_OF(g, "+16", "-16", "+1", "0", "0xffff"));
		break;
	case 1:
		uvd_prog_add_item(call, "!num_attrs=%s", UVD_GEN_ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 2:
		uvd_prog_add_item(call, "!object=%#x", uvd_gen_below(g, 24) | (uvd_gen_chance(g, 20) ? 0x1000 : 0));
		break;
	case 3:
		uvd_prog_add_item(call, "!method=%#x", uvd_gen_below(g, 10) | (uvd_gen_chance(g, 20) ? 0x1000 : 0));
		break;
	case 4:
		uvd_prog_add_item(call, "!reserved1=1");
		break;
	case 5:
		uvd_prog_add_item(call, "!reserved2=1");
		break;
	case 6:
		uvd_prog_add_item(call, "!driver=%s", UVD_GEN_ONE_OF(g, "+1", "+64", "-1", "+65536"));
		break;
	case 7:
		uvd_prog_add_item(call, "!arg=%s", UVD_GEN_ONE_OF(g, "none", "0", "0xffffffffffffffff"));
		break;
	case 8:
		uvd_prog_add_item(call, "#%#x%s", uvd_gen_below(g, 16) | (uvd_gen_chance(g, 30) ? 0x1000 : 0),
				  uvd_gen_chance(g, 50) ? ":flags=0" : "");
		break;
	}
}

const char *const uvd_gen_attr_mods[] = {
	"len=+1",  "len=-1",  "len=0",	   "len=8",	   "len=9",    "len=4", "len=64", "len=64:tail=1",
	"flags=0", "flags=2", "flags=3",   "flags=0x8001", "ptr=none", "ptr=0", "ptr=ro", "ptr=0xffffffffffffffff",
	"elem=1",  "rsv=1",   "id=0x1002", "id=0x2000",	   "id=7",     NULL
};

static const char *gen_attr_mod(struct uvd_gen *g)
{
	/* The checks of lengths are what a client attacks first. */
	if (g->fuzz && uvd_gen_chance(g, 50))
		return UVD_GEN_ONE_OF(g, "len=-1", "len=+1", "len=-4", "len=0", "len=4");
	return uvd_gen_one_of(g, uvd_gen_attr_mods, UVD_COUNT(uvd_gen_attr_mods) - 1);
}

void uvd_gen_spoil_invoke(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape)
{
	switch (uvd_gen_below(g, 8)) {
	case 0:
		gen_spoil_header(g, call);
		break;
	case 1:
		uvd_prog_add_item(call, "out=%u", uvd_gen_below(g, shape->out_size + 17));
		break;
	case 2:
		uvd_prog_add_item(call, "in=%u", uvd_gen_below(g, shape->in_size + 17));
		break;
	case 3:
		uvd_prog_add_item(call, "uhw_out=%u", uvd_gen_below(g, 48));
		break;
	case 4:
		uvd_prog_add_item(call, "!command=%s", gen_other_command(g));
		break;
	default:
		uvd_prog_add_item(call, "!%s:%s", UVD_GEN_ONE_OF(g, "write_cmd", "core_in", "core_out", "uhw_out"),
				  uvd_gen_chance(g, 20) ? "drop" : gen_attr_mod(g));
		break;
	}
}

void uvd_gen_spoil_method(struct uvd_gen *g, struct uvd_prog_call *call)
{
	unsigned int i = call->num_items ? uvd_gen_below(g, call->num_items) : 0,
		     j = call->num_items ? uvd_gen_below(g, call->num_items) : 0;
	char item[UVD_PROG_MAX_ITEM];

	if (!call->num_items || uvd_gen_chance(g, 30)) {
		gen_spoil_header(g, call);
		return;
	}
	switch (uvd_gen_below(g, 5)) {
	case 0: /* another order */
		memcpy(item, call->items[i], sizeof(item));
		memmove(call->items[i], call->items[j], sizeof(item));
		memcpy(call->items[j], item, sizeof(item));
		break;
	case 1: /* twice */
		uvd_prog_add_item(call, "%s", call->items[i]);
		break;
	case 2:
		uvd_prog_drop_item(call, i);
		break;
	default:
		snprintf(item, sizeof(item), "%s", call->items[i]);
		snprintf(call->items[i], UVD_PROG_MAX_ITEM, "%.100s:%s", item, gen_attr_mod(g));
		break;
	}
}
