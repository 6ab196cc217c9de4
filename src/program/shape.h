/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands and attributes as programs see them: the fields that src/call has, under the names that programs use, and
 * values with which a call is likely to succeed or which are worth trying (shape_values.h). The tables are made at the first
 * call of any function here, and stay. Any thread may call them, but for those that say otherwise.
 */
#ifndef UVD_PROG_SHAPE_H
#define UVD_PROG_SHAPE_H

#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/schema.h>
#include "call/call.h"

struct uvd_shape_field {
	const char *name;
	uint16_t at, size;
	/*
	 * For input: words to choose from. Numbers, hexadecimal bytes (xff00...), addresses (mem), and objects in brackets
	 * (<pd>). The first word is the field's default; if it is an object, or there are no words, 0 is.
	 */
	const char *good;
	const struct uvd_field
		*field; /* its role; NULL: several fields of the struct, or of an attribute that is a number */
};

struct uvd_shape_fields {
	const struct uvd_shape_field *f;
	unsigned int n;
	uint16_t stride; /* of an array of such structs; 0: there is one */
};

/* A write() command. A request with a flexible array has one element of it, or two handles, and one scatter/gather element. */
struct uvd_shape_command {
	const char *name; /* EX_CREATE_CQ */
	uint8_t number;
	bool ex, response; /* response: the request begins with the address of the response */
	uint16_t in_size, out_size;
	struct uvd_shape_fields in, out;
	const struct uvd_struct *request;
	uint16_t object; /* which has the command */
	bool renews; /* the numbers in its response are its object's from then on */
	const char *makes, *ends; /* objects: "pd"; or NULL */
	uint16_t uhw_in,
		uhw_out; /* sizes of the driver data that rxe requires, and of a response's flexible array; 0: none */
};

/* The name of what an attribute has that is a number. */
#define UVD_SHAPE_VALUE "value"

/* The contents of an attribute, by the attribute's name without UVERBS_ATTR_. */
struct uvd_shape_attr {
	const char *name;
	uint16_t size; /* of a buffer whose attribute has no size of its own */
	struct uvd_shape_fields fields; /* of what is in it; one field at 0 for a plain number */
};

/*
 * Makes the tables, if no function here has been called yet. A record in memory that processes share points to them, so a
 * process makes them before it forks.
 */
void uvd_shape_need(void);

/*
 * Adds calls that are not the kernel's: those of plug-ins whose roles are known. `objects` ends with NULL; one can have the id of
 * a common object, and adds to it. The rows have no steps. Call it before any other function here; all of it stays valid.
 */
struct uvd_shape_added {
	const struct uvd_object_row *const *objects;
	const struct uvd_command_fields *commands;
	const struct uvd_attr_fields *attrs;
};
void uvd_shape_add(const struct uvd_shape_added *more);

/* Has the field this name? Programs can also name it as the kernel's struct does: dest.dgid, or qp_handle of a response. */
bool uvd_shape_field_is(const struct uvd_shape_field *f, const char *name);
enum uvd_role uvd_shape_field_role(const struct uvd_shape_field *f);

/* Returns the fields of a struct, of a request (`in`) or of a response, as programs see them. */
struct uvd_shape_fields uvd_shape_fields_of(const struct uvd_struct *of, bool in);

const struct uvd_shape_command *uvd_shape_command(const char *name);
const struct uvd_shape_command *uvd_shape_command_at(unsigned int i); /* NULL beyond the last */
const struct uvd_shape_attr *uvd_shape_attr(const char *name); /* or NULL */

/* "pd" for UVERBS_OBJECT_PD */
const char *uvd_shape_object_name(uint16_t object);

/* These functions return the roles of a command, or of an attribute's value, by its row's name. NULL: it has none. */
const struct uvd_command_fields *uvd_shape_command_fields(const char *name);
const struct uvd_attr_fields *uvd_shape_attr_fields(const char *name);
const struct uvd_attr_fields *uvd_shape_added_attr(unsigned int i); /* NULL beyond the last */
/* Returns what follows the prefix in a row's name, or all of it. */
const char *uvd_shape_without(const char *name, const char *prefix);
/* Is it a struct of added calls? */
bool uvd_shape_is_added(const struct uvd_struct *of);

/* ---- the schema's rows by name ----------------------------------------------------------------------------------- */

struct uvd_shape_method {
	uint16_t object, method;
	const struct uvd_method_row *row; /* NULL: given by number */
};

/* NAME is without UVERBS_METHOD_, or #OBJECT/METHOD. */
bool uvd_shape_method(const char *name, struct uvd_shape_method *ref);
const struct uvd_object_row *uvd_shape_object_at(unsigned int i); /* NULL beyond the last */
const char *uvd_shape_method_name(const struct uvd_method_row *row);
bool uvd_shape_method_at(unsigned int i, struct uvd_shape_method *ref); /* false beyond the last */
const struct uvd_write_row *uvd_shape_write(unsigned int number, bool ex); /* or NULL */
/* Returns the attribute whose object the method destroys, or NULL. */
const struct uvd_attr_row *uvd_shape_method_end(const struct uvd_method_row *row);
/* Returns the type of the object that the method makes, or NULL. */
const char *uvd_shape_method_makes(const struct uvd_method_row *row);
/* Lower case, without UVERBS_ATTR_. Valid until the next call; for one thread at a time. */
const char *uvd_shape_attr_name(const struct uvd_attr_row *row);
const struct uvd_attr_row *uvd_shape_attr_row(const struct uvd_method_row *row, const char *name);

#endif
