/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs of calls know of commands and attributes that src/call does not say: values that are worth trying, names that
 * programs have for fields, and sizes. Each table ends with a row without a first column.
 */
#ifndef UVD_PROG_SHAPE_VALUES_H
#define UVD_PROG_SHAPE_VALUES_H

#include <stdint.h>

/* Structs and fields are patterns, separated by blanks: `*` matches as in file names. The first row that matches counts. */
struct uvd_shape_values {
	const char *structs, *fields; /* as in src/call/roles.txt; fields of structs within have names like dest.dlid */
	const char *words; /* of struct uvd_shape_field; NULL: random programs do not give the field */
};
extern const struct uvd_shape_values uvd_shape_values[];

/* The name that programs have for a field. A field without a row has that of its struct. */
struct uvd_shape_name {
	const char *structs;
	const char *fields; /* one pattern */
	/* `*`: what `*` of the pattern stands for. Without it the fields that match are one field, of the bytes of all of them. */
	const char *name;
};
extern const struct uvd_shape_name uvd_shape_names[];

/* A command of which src/call does not say all. */
struct uvd_shape_more {
	const char *command;
	uint16_t uhw_in, uhw_out; /* bytes of the driver data that rxe requires */
	const char *makes; /* what is no object in src/call */
};
extern const struct uvd_shape_more uvd_shape_more[];

/* An attribute that is no struct. Outputs without a row have no names: programs see their bytes. */
struct uvd_shape_attr_values {
	const char *attr; /* without UVERBS_ATTR_ */
	const char *name; /* of an output */
	const char *words; /* of an input */
	uint16_t size; /* if the attribute has no size of its own; 0: 8 bytes */
	const char *response; /* the command whose response has the same fields, or NULL */
	const char *elements; /* the attribute whose fields each element of this one has, or NULL */
};
extern const struct uvd_shape_attr_values uvd_shape_attr_values[];

#endif
