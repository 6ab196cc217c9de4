/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The calls of the ABI as data: the structs of write() commands and of attributes, field by field, and what each field
 * means; work requests and completions (work.h). Names, offsets and sizes of the kernel's are those of the headers that
 * this build has; roles.txt states the roles (structs.py makes tables of both). Plug-ins bring the same tables for their
 * own calls (uverbsd/roles.h). The tables are constant, and all functions can be called by any thread.
 */
#ifndef UVD_CALL_H
#define UVD_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/roles.h>
#include "call/sockaddr.h"
#include "call/work.h"

struct uvd_flow_kind {
	const char *name; /* "ETH" */
	uint32_t type;
	const struct uvd_struct *of;
};

#define UVD_NO_RESPONSE SIZE_MAX

/* A command of rdma_cm has these beside its structs. */
struct uvd_cm_command {
	const char *command; /* NULL: end of the list */
	size_t response_at; /* where the request has the response's address, or UVD_NO_RESPONSE */
	/* The response if the request's field of this number, from 1, has this value; NULL: there is only one. */
	const struct uvd_struct *other;
	uint8_t selector;
	uint32_t value;
};

/* The tables. An entry without a name ends each. */
extern const struct uvd_command_fields uvd_commands_fields[];
extern const struct uvd_cm_command uvd_cm_commands[];
extern const struct uvd_attr_fields uvd_attrs_fields[];
extern const struct uvd_flow_kind uvd_flow_kinds[];

/* Returns the structs of a command, or structs without fields if they are not known: bytes only. */
const struct uvd_command_fields *uvd_command_fields(const char *command);
/* Returns the response of a command to a request that begins with these bytes: that of QUERY depends on it. */
const struct uvd_struct *uvd_command_response(const struct uvd_command_fields *c, const uint8_t *request, size_t len);
/* Returns where the request of a command of rdma_cm has the response's address; UVD_NO_RESPONSE: it has none. */
size_t uvd_cm_response_at(const char *command);
/* Returns what is known of an attribute's value: perhaps nothing, but never NULL. */
const struct uvd_attr_fields *uvd_attr_fields(const char *attr);
/* Returns the kind of a flow's spec, or NULL. */
const struct uvd_flow_kind *uvd_flow_kind(uint32_t type);

/* Bytes of room for what a driver returns behind a response, or in its own attribute, of which it alone knows the length. */
enum { UVD_DRIVER_OUT = 64 };

/* Returns the word of a role, as roles.txt has it. */
const char *uvd_role_name(enum uvd_role role);
/* Is it a number, but no handle, that a device chooses for an object? */
bool uvd_role_is_chosen(enum uvd_role role);

/* Two devices must share these so that their outputs of a role can be compared: uvd_role_needs(). */
enum uvd_same {
	UVD_SAME_DRIVER = 1, /* or emulations of one */
	UVD_SAME_PEERS = 2, /* both calls are given the same addresses of peers */
	UVD_SAME_MACHINE = 4, /* both are on one machine, set up alike, and opened by one user */
	UVD_SAME_RUN = 8, /* no two devices share it: the output differs from run to run */
};
/* Returns a set of the above, which is empty for most roles: such outputs are always compared. */
unsigned int uvd_role_needs(enum uvd_role role);

/* Returns the number of bytes of a field, and the place in the struct where it ends. */
size_t uvd_field_bytes(const struct uvd_field *f);
size_t uvd_field_end(const struct uvd_field *f);
/* Reads a field that is a number from the struct at `data`. The caller has checked that the struct has it. */
uint64_t uvd_field_get(const struct uvd_field *f, const uint8_t *data);
/* Sets a field that is a number. */
void uvd_field_put(const struct uvd_field *f, uint64_t value, uint8_t *data);
/*
 * Does the kernel read this field of a request or a work request, of which `data` has the first `len` bytes? It does not
 * if they do not have the field, or if a mask or another field of the request does not select it.
 */
bool uvd_field_is_read(const struct uvd_struct *of, const struct uvd_field *f, const uint8_t *data, size_t len);
/* Returns the field that has an address's length, or its key. */
const struct uvd_field *uvd_field_beside(const struct uvd_struct *of, const struct uvd_field *f);
/* Can the value be a handle, or descriptor, of this type of objects? */
bool uvd_field_is_of(const struct uvd_field *f, uint16_t object);
/* Finds the field that counts `array` in this way: UVD_ROLE_COUNT, _LOG, _SIZE or _BYTES_OF. Returns NULL if there is none. */
const struct uvd_field *uvd_struct_counter(const struct uvd_struct *of, const char *array, enum uvd_role role);
/*
 * Returns how many elements of its flexible array the struct at `data`, of which there are `len` bytes, says that it has;
 * UINT64_MAX if it does not say.
 */
uint64_t uvd_struct_tail_count(const struct uvd_struct *of, const uint8_t *data, size_t len);

/* Finds a field by its name, or by the end of it after a '.' if only one field ends so. */
const struct uvd_field *uvd_struct_find(const struct uvd_struct *of, const char *word);

/* ---- check.c: tables that are not this build's own --------------------------------------------------------------- */

enum { UVD_CALL_WHY = 200 /* bytes of a reason */, UVD_CALL_FIELDS = 255 /* of a struct, at most */ };

/*
 * Is the struct one that the functions above and their callers can use? That of a request, of a response or of an
 * attribute, which has up to `most` bytes. Returns false, and a reason that names the field.
 */
enum uvd_call_part { UVD_CALL_REQUEST, UVD_CALL_RESPONSE, UVD_CALL_VALUE };
bool uvd_struct_check(const struct uvd_struct *of, enum uvd_call_part part, size_t most, char why[UVD_CALL_WHY]);
/* The same of what is known of an attribute's value. */
bool uvd_value_check(const struct uvd_attr_fields *value, size_t most, char why[UVD_CALL_WHY]);
/*
 * Finds the first handle, or descriptor of an object, of a type that known() does not have. Returns the name of its
 * field, or NULL. *object is that type.
 */
const char *uvd_struct_unknown_object(const struct uvd_struct *of, bool (*known)(void *arg, uint16_t object), void *arg,
				      uint16_t *object);

/* A struct of which nothing is known: bytes only. */
extern const struct uvd_struct uvd_no_struct;

/* ---- rows.c, learn.c: the same tables as rows of the tree query --------------------------------------------------- */

struct uverbsd_tree_row;
struct uverbsd_tree_role;

/* Finds what a list says of a command's or an attribute's row. Returns NULL: nothing, or there is no list. */
const struct uvd_command_fields *uvd_commands_find(const struct uvd_command_fields *list, const char *command);
const struct uvd_attr_fields *uvd_attrs_find(const struct uvd_attr_fields *list, const char *attr);

/* The row is valid during the call only. A return value other than 0 ends the walk. */
typedef int (*uvd_role_fn)(void *arg, const struct uverbsd_tree_role *row);
/* Call fn for each row that tells the roles of this row of the tree. Return 0, or the value of fn that ended the walk. */
int uvd_command_describe(const struct uverbsd_tree_row *of, const struct uvd_command_fields *c, uvd_role_fn fn,
			 void *arg);
int uvd_value_describe(const struct uverbsd_tree_row *of, const struct uvd_attr_fields *a, uvd_role_fn fn, void *arg);

/*
 * What such rows have told, of anybody's device or trace. Collect the rows with uvd_learned_add(), then call
 * uvd_learned_finish(): it makes tables of those rows that make sense, and leaves out the others. Both return 0 or
 * -ENOMEM. The look-ups return NULL for a row of which nothing was told; of a command neither struct is NULL.
 */
struct uvd_learned;
struct uvd_learned *uvd_learned_new(void);
int uvd_learned_add(struct uvd_learned *l, const struct uverbsd_tree_role *row);
int uvd_learned_finish(struct uvd_learned *l);
void uvd_learned_free(struct uvd_learned *l);
const struct uvd_command_fields *uvd_learned_command(const struct uvd_learned *l, const struct uverbsd_tree_row *row);
const struct uvd_attr_fields *uvd_learned_attr(const struct uvd_learned *l, const struct uverbsd_tree_row *row);

/* Room for all flags of a set. */
enum { UVD_WORDS = 1024 };

/* Makes the number of a word, or of flags joined by '|'. Returns false if there is no such word. */
bool uvd_words_parse(const struct uvd_words *words, const char *text, uint64_t *value);
/* The reverse. Flags without a word follow as a number: "SM|0x100". Returns false if no part of the number has a word. */
bool uvd_words_format(const struct uvd_words *words, uint64_t value, char *text, size_t size);

#endif
