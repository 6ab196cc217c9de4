/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parts of a call's bytes, which write() commands of both nodes have. */
#ifndef UVD_PROG_BUILD_H
#define UVD_PROG_BUILD_H

#include "run.h"

/* Returns NULL, or what is wrong with the items of call i. */
const char *uvd_build_items_check(const struct uvd_prog_call *call, const struct uvd_shape_command *shape);
/* Fills the command's struct: fields that the program gives, and the defaults of the others. Records them as inputs. */
void uvd_build_fill(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
		    const struct uvd_shape_command *shape, uint8_t *core);
/* Returns the word of an item for this field, by either of its names, or NULL. */
const char *uvd_build_given(const struct uvd_prog_call *call, const struct uvd_shape_field *f);
/* Returns the field's default: its first good word, or "0" if that is an object. */
const char *uvd_build_preset(const struct uvd_shape_field *f, char word[UVD_PROG_MAX_ITEM]);
/* Returns `value`, or what the item `name` replaces it with. uvd_build_size(): of a part of a message. */
uint64_t uvd_build_knob(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *name,
			uint64_t value);
size_t uvd_build_size(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *name,
		      size_t size);
/* Overwrites bytes, as the items say. */
void uvd_build_spoil(const struct uvd_prog_call *call, uint8_t *msg, size_t len);
/* Copies the message to the end of its place in the arena. Records its length. */
void uvd_build_place(struct uvd_prog_run *run, unsigned int i, struct uvd_prog_built *b, const uint8_t *msg,
		     size_t readable);

#endif
