/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What random programs and sweeps make their calls with. */
#ifndef DIFF_GEN_H
#define DIFF_GEN_H

#include "generate.h"
#include "shape.h"

enum { MAX_LIVE = 40 };

struct live {
	char label[MAX_LABEL], type[16];
	bool datagram; /* a QP of type UD */
};

struct gen {
	uint64_t state;
	struct program *p;
	const struct list *list;
	bool plain; /* nothing by chance: what succeeds */
	unsigned int vary; /* per cent of a call's fields that do not have their usual value */
	unsigned int num_live, next;
	struct live live[MAX_LIVE];
};

/* Appends the call, and before it those that make the objects that it wants. NULL: the program is full. */
struct call *gen_command(struct gen *g, const struct command_shape *shape, enum front front);
struct call *gen_method(struct gen *g, const struct method_ref *ref);
/* The kernel has it, and nothing speaks against asking. */
bool gen_can_ask(struct gen *g, const struct method_ref *ref);
/* The method hardly succeeds without it. */
bool gen_wanted(const struct uvd_attr_row *row);
bool gen_absent_attr(struct gen *g, const struct uvd_attr_row *attr);
bool gen_absent_command(struct gen *g, const struct command_shape *shape);
bool gen_excluded(const char *name);
/* Ways to spoil an attribute; ends with NULL. */
extern const char *const gen_attr_mods[];

#endif
