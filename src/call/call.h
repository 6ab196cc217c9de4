/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The calls of the kernel's ABI as data: the structs of write() commands and of attributes, field by field, and what each
 * field means; work requests and completions (work.h). Names, offsets and sizes are those of the headers that this build has; roles.txt states the roles
 * (structs.py makes tables of both). The tables are constant, and all functions can be called by any thread.
 */
#ifndef UVD_CALL_H
#define UVD_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "call/work.h"

/* The words of an enumeration, or of a set of flags, without what all its names begin with. */
struct uvd_word {
	const char *name; /* NULL: end of the list */
	uint64_t value;
};

struct uvd_words {
	const char *name; /* "ibv_qp_state", the name of the enumeration in the header */
	const char *prefix; /* "IBV_QPS_", what the names of all enumerators begin with */
	bool flags; /* words can be joined by '|' */
	const struct uvd_word *words;
};

/* The meanings of fields, of attributes and of the elements of arrays. roles.txt explains each. */
enum uvd_role {
	UVD_ROLE_UNKNOWN, /* the headers of this build have the field, and roles.txt has not: it is printed as a number */
	UVD_ROLE_NUMBER,
	UVD_ROLE_WORDS,
	UVD_ROLE_FLAGS,
	UVD_ROLE_HANDLE,
	UVD_ROLE_FD,
	UVD_ROLE_LKEY,
	UVD_ROLE_RKEY,
	UVD_ROLE_QPN,
	UVD_ROLE_SRQN,
	UVD_ROLE_WQN,
	UVD_ROLE_ADDRESS,
	UVD_ROLE_IOVA,
	UVD_ROLE_AT,
	UVD_ROLE_COUNT,
	UVD_ROLE_LOG,
	UVD_ROLE_SIZE,
	UVD_ROLE_BYTES_OF,
	UVD_ROLE_GID,
	UVD_ROLE_LID,
	UVD_ROLE_COOKIE,
	UVD_ROLE_BYTES,
	UVD_ROLE_STRUCT,
	UVD_ROLE_SPECS, /* of a flow: each begins with its type and its size */
	UVD_ROLE_RESERVED, /* of uvd_struct.reserved only */
};

/* No type of objects: the descriptor of a file that is not the device's. */
#define UVD_NO_OBJECT 0xffff

/* A field of a struct, or of a struct in it: "dest.dlid". */
struct uvd_field {
	const char *name; /* NULL: end of the list */
	uint16_t at, size; /* bytes */
	uint16_t count; /* of an array: its elements, of `size` bytes each; 0: a number */
	enum uvd_role role;
	uint16_t object, or_object; /* of a handle or a descriptor: UVERBS_OBJECT_..., or UVD_NO_OBJECT */
	uint8_t beside; /* the number, from 1, of the field with an address's length or key */
	/*
	 * The number, from 1, of the field that says if the kernel reads this one: if it has one of these flags, or one of
	 * these values (bit N for value N). 0: the kernel always reads it.
	 */
	uint8_t selector;
	bool big; /* big-endian */
	bool makes; /* of a response: the handle or descriptor of the object that the command creates */
	bool ends; /* the handle of the object that the command destroys */
	bool optional; /* a descriptor: -1 is none */
	uint64_t select_flags, select_values;
	const char *array; /* whose elements the field counts, "sge", or NULL */
	const struct uvd_words *words; /* or NULL */
};

struct uvd_struct {
	const char *name;
	uint16_t size; /* bytes, without the flexible array */
	const struct uvd_field *fields;
	const char *tail; /* the name of its flexible array, or NULL */
	const struct uvd_struct *tail_of; /* the array's elements, if they are structs */
	enum uvd_role tail_role; /* UVD_ROLE_STRUCT, UVD_ROLE_SPECS, or the role of its elements, numbers of 4 bytes */
	uint16_t tail_object; /* UVERBS_OBJECT_..., if they are handles */
	const struct uvd_field
		*reserved; /* no values of a call: the kernel requires that they are 0, or ignores them */
};

struct uvd_command_fields {
	const char *command; /* IB_USER_VERBS_CMD_... */
	const struct uvd_struct *request, *response;
};

struct uvd_attr_fields {
	const char *attr; /* UVERBS_ATTR_... */
	enum uvd_role role;
	const struct uvd_struct *of; /* or NULL */
	const struct uvd_words *words; /* or NULL */
	uint16_t object, or_object; /* of a descriptor */
};

struct uvd_flow_kind {
	const char *name; /* "ETH" */
	uint32_t type;
	const struct uvd_struct *of;
};

/* The tables. An entry without a name ends each. */
extern const struct uvd_command_fields uvd_commands_fields[];
extern const struct uvd_attr_fields uvd_attrs_fields[];
extern const struct uvd_flow_kind uvd_flow_kinds[];

/* Returns the structs of a command, or structs without fields if they are not known: bytes only. */
const struct uvd_command_fields *uvd_command_fields(const char *command);
/* Returns what is known of an attribute's value: perhaps nothing, but never NULL. */
const struct uvd_attr_fields *uvd_attr_fields(const char *attr);
/* Returns the kind of a flow's spec, or NULL. */
const struct uvd_flow_kind *uvd_flow_kind(uint32_t type);

/* Returns the word of a role, as roles.txt has it. */
const char *uvd_role_name(enum uvd_role role);

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

/* Room for all flags of a set. */
enum { UVD_WORDS = 1024 };

/* Makes the number of a word, or of flags joined by '|'. Returns false if there is no such word. */
bool uvd_words_parse(const struct uvd_words *words, const char *text, uint64_t *value);
/* The reverse. Flags without a word follow as a number: "SM|0x100". Returns false if no part of the number has a word. */
bool uvd_words_format(const struct uvd_words *words, uint64_t value, char *text, size_t size);

#endif
