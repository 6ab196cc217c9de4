/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The objects that a call of a run makes and names, as the roles of its fields and its attributes' rows say. */
#ifndef UVD_PROG_OBJECT_H
#define UVD_PROG_OBJECT_H

#include "record.h"

/* These return false, and set nothing, if there is no such number. */

/* Finds the method in the sent header: !object and !method can make it another one than the program names. */
bool uvd_prog_method_of(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i,
			struct uvd_shape_method *ref);
/* Reads the handle of an object of this type that call i names. */
bool uvd_prog_handle(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i, uint16_t object,
		     uint64_t *handle);
/* Reads the handle or the descriptor of the object that the call has made. */
bool uvd_prog_made(const struct uvd_prog_record *r, uint64_t *handle);
/* Reads the handle of the object that call i is about: the new one, or that of a call on one. */
bool uvd_prog_object_of(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i, uint64_t *handle);

/* Returns the command that the program names as call i, or NULL. */
const struct uvd_shape_command *uvd_prog_command_of(const struct uvd_prog *p, unsigned int i);
/* Returns the type of the object that call i makes, or NULL. */
const char *uvd_prog_makes(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i);

#endif
