/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes the calls of random programs and sweeps. */
#ifndef UVD_PROG_GEN_H
#define UVD_PROG_GEN_H

#include "generate.h"
#include "shape.h"

enum { UVD_GEN_MAX_LIVE = 40 };

struct uvd_gen_live {
	char label[UVD_PROG_MAX_LABEL], type[16];
	bool datagram; /* a QP of type UD */
};

struct uvd_gen {
	uint64_t state;
	struct uvd_prog *p;
	const struct uvd_prog_list *list;
	bool fuzz; /* the programs need not be those that tests/differential has compared with the kernel */
	bool plain; /* nothing random: make calls that succeed */
	unsigned int vary; /* per cent of a call's fields that do not have their usual value */
	unsigned int num_live, next;
	struct uvd_gen_live live[UVD_GEN_MAX_LIVE];
};

/* Appends the call, after calls that make the objects it needs. Returns NULL if the program is full. */
struct uvd_prog_call *uvd_gen_command(struct uvd_gen *g, const struct uvd_shape_command *shape,
				      enum uvd_prog_front front);
struct uvd_prog_call *uvd_gen_method(struct uvd_gen *g, const struct uvd_shape_method *ref);
/* May programs call the method? The kernel's device has it, and it is not excluded. */
bool uvd_gen_can_ask(struct uvd_gen *g, const struct uvd_shape_method *ref);
/* Does the method usually fail without this attribute? */
bool uvd_gen_wanted(const struct uvd_attr_row *row);
bool uvd_gen_absent_attr(struct uvd_gen *g, const struct uvd_attr_row *attr);
bool uvd_gen_absent_command(struct uvd_gen *g, const struct uvd_shape_command *shape);
bool uvd_gen_excluded(const char *name);
/* Picks an object of this type, or of any type for NULL. Returns NULL if there is none. */
struct uvd_gen_live *uvd_gen_live_find(struct uvd_gen *g, const char *type);
/* The call makes an object: labels the call. Returns NULL if there are too many objects. */
struct uvd_gen_live *uvd_gen_live_add(struct uvd_gen *g, struct uvd_prog_call *call, const char *type);
/* Forgets the object. */
void uvd_gen_live_end(struct uvd_gen *g, const char *label);
/* Appends a call without items. Returns NULL if the program is full. */
struct uvd_prog_call *uvd_gen_new_call(struct uvd_gen *g, enum uvd_prog_front front, const char *target);
/* Picks one of the two fronts of a command. */
enum uvd_prog_front uvd_gen_front(struct uvd_gen *g);
/* Returns the command that makes objects of this type, or NULL. */
const struct uvd_shape_command *uvd_gen_maker(struct uvd_gen *g, const char *type);
/* Begins the program of this seed: the context and some objects. */
void uvd_gen_begin(struct uvd_gen *g, uint64_t seed);
/* Appends a random call, or a sequence of them. */
void uvd_gen_any_call(struct uvd_gen *g);
/* Mods that corrupt an attribute; ends with NULL. */
extern const char *const uvd_gen_attr_mods[];

/* ---- spoil.c ----------------------------------------------------------------------------------------------------- */

/* Returns a number below n, the next of this seed. */
unsigned int uvd_gen_below(struct uvd_gen *g, unsigned int n);
/* Returns true in `percent` of 100 cases; never if nothing is to be random. */
bool uvd_gen_chance(struct uvd_gen *g, unsigned int percent);
const char *uvd_gen_one_of(struct uvd_gen *g, const char *const *words, unsigned int n);
#define UVD_GEN_ONE_OF(g, ...) \
	uvd_gen_one_of(g, (const char *const[]){ __VA_ARGS__ }, UVD_COUNT(((const char *const[]){ __VA_ARGS__ })))

/* Each corrupts the call in one way. */
void uvd_gen_spoil_write(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape);
void uvd_gen_spoil_invoke(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape);
void uvd_gen_spoil_cm(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape);
void uvd_gen_spoil_method(struct uvd_gen *g, struct uvd_prog_call *call);

#endif
