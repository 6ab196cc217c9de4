/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes the calls of random programs and sweeps. */
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
	bool plain; /* nothing random: make calls that succeed */
	unsigned int vary; /* per cent of a call's fields that do not have their usual value */
	unsigned int num_live, next;
	struct live live[MAX_LIVE];
};

/* Appends the call, after calls that make the objects it needs. Returns NULL if the program is full. */
struct call *gen_command(struct gen *g, const struct command_shape *shape, enum front front);
struct call *gen_method(struct gen *g, const struct method_ref *ref);
/* May programs call the method? The kernel's device has it, and it is not excluded. */
bool gen_can_ask(struct gen *g, const struct method_ref *ref);
/* Does the method usually fail without this attribute? */
bool gen_wanted(const struct uvd_attr_row *row);
bool gen_absent_attr(struct gen *g, const struct uvd_attr_row *attr);
bool gen_absent_command(struct gen *g, const struct command_shape *shape);
bool gen_excluded(const char *name);
/* Mods that corrupt an attribute; ends with NULL. */
extern const char *const gen_attr_mods[];

#endif
