/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the fields of a call mean: their roles. The rows (schema.h) have only the sizes of structs and values. These tables
 * stand beside them, and name each row that they describe. The kernel's calls have theirs in uverbsd itself (src/call). A
 * plug-in states those of its own rows in struct uvd_plugin; a field or a value without a role is printed as a number or
 * as bytes, and nothing else is made of it. By its roles a call is traced, called, replayed, fuzzed and described for
 * syzkaller without code of its own. docs/extending.md has an example.
 *
 * All tables are static and constant. Within an API version the structs do not change, and roles are only added, before
 * UVD_ROLES: the loader refuses one that it does not know.
 */
#ifndef UVERBSD_ROLES_H
#define UVERBSD_ROLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The meanings of fields, of attributes and of the elements of arrays. src/call/roles.txt explains each. */
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
	UVD_ROLE_PORT,
	UVD_ROLE_GID_INDEX,
	UVD_ROLE_OWN_GID,
	UVD_ROLE_OWN_LID,
	UVD_ROLE_GUID,
	UVD_ROLE_MACHINE,
	UVD_ROLE_TIME,
	UVD_ROLE_SHARE,
	UVD_ROLE_CAPACITY,
	UVD_ROLE_DRIVER, /* of an attribute that is the provider's */
	UVD_ROLE_SOCKADDR,
	UVD_ROLE_RANDOM,
	UVD_ROLES, /* their number */
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
	uint8_t beside; /* the number, from 1, of the field with an address's length or key, or a socket address's size */
	/*
	 * The number, from 1, of the field that says if the kernel reads this one: if it has one of these flags, or one of
	 * these values (bit N for value N). 0: the kernel always reads it.
	 */
	uint8_t selector;
	bool big; /* big-endian */
	bool makes; /* of a response: the handle or descriptor of the object that the command creates */
	bool ends; /* the handle of the object that the command destroys */
	bool optional; /* a descriptor: -1 is none */
	bool renews; /* the handle of the object that the command gives other numbers: those in its response, from then on */
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
	const struct uvd_field *reserved; /* or NULL. No values of a call: they are 0, or are ignored */
};

/* The structs of the write() command whose row has this name. */
struct uvd_command_fields {
	const char *command; /* IB_USER_VERBS_CMD_...; NULL: end of the list */
	const struct uvd_struct *request, *response; /* of the kernel's commands neither is NULL */
};

/* The value of the attribute, or of the element of an ENUM_IN, whose row has this name. */
struct uvd_attr_fields {
	const char *attr; /* UVERBS_ATTR_...; NULL: end of the list */
	enum uvd_role role;
	const struct uvd_struct *of; /* or NULL */
	const struct uvd_words *words; /* or NULL */
	uint16_t object, or_object; /* of a descriptor */
	const char *beside; /* of an address: the attribute of the same method that has its length, or NULL */
};

/*
 * A field that is a number: a member of a struct, its role, and what else belongs to that: UVD_FIELD(struct pair_new, mr,
 * UVD_ROLE_HANDLE, .object = UVERBS_OBJECT_MR). UVD_FIELD_ARRAY: a member that is an array, such as a GID's bytes.
 */
#define UVD_FIELD(s, member, r, ...) \
	{ \
		.name = #member, .at = offsetof(s, member), .size = sizeof(((s *)0)->member), .role = r, __VA_ARGS__ \
	}
#define UVD_FIELD_ARRAY(s, member, r, ...) \
	{ \
		.name = #member, .at = offsetof(s, member), .size = sizeof(((s *)0)->member[0]), \
		.count = sizeof(((s *)0)->member) / sizeof(((s *)0)->member[0]), .role = r, __VA_ARGS__ \
	}

#endif
