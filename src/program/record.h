/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The record of a call has its inputs and its outputs, by the names that programs have for them. */
#ifndef UVD_PROG_RECORD_H
#define UVD_PROG_RECORD_H

#include "run.h"

/*
 * Records an input of `size` bytes; one that is recorded already gets the new value. The value of more than 8 bytes (a GID) is
 * its last 8, where GIDs differ; NAME.begin is the first 8.
 */
void uvd_prog_note(struct uvd_prog_record *r, const char *name, const uint8_t *from, size_t size);
void uvd_prog_note_number(struct uvd_prog_record *r, const char *name, uint64_t value);
/* Records where an output is, and the names of its bytes. One that has no room in r->out is left out. */
void uvd_prog_region_add(struct uvd_prog_record *r, const char *name, size_t at, size_t len,
			 struct uvd_shape_fields fields);

/* These return false, and set nothing, if the call has no such input or output. */
bool uvd_prog_input(const struct uvd_prog_record *r, const char *name, uint64_t *value);
bool uvd_prog_output(const struct uvd_prog_record *r, const char *name, uint64_t *value);
/* Returns where the output is in r->out, and its size of up to 8 bytes, or NULL. */
const uint8_t *uvd_prog_output_at(const struct uvd_prog_record *r, const char *name, size_t *size);

#endif
