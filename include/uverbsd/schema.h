/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The schema: what a device accepts, as tables.
 *
 * One set of rows drives the parsers of both ABIs, `uverbsctl tree`, docs/abi.md and the random calls of
 * tests/differential. A feature (the common verbs, uverbsd's own, a persona's) is a list of object rows; the tree of
 * a device is the merge of its features (src/core/tree.h). Object rows with the same id and name from several
 * features add up: their methods and write commands are united, and so are the attributes of methods with the same id and
 * name. One id with two names is a conflict.
 *
 * Sizes are bytes. Ids are 16 bits: 4 of namespace (0 common, 1 driver) and 12 of id, as uverbs_ioctl.h has them.
 * All rows are static and constant: nobody frees or locks them.
 */
#ifndef UVERBSD_SCHEMA_H
#define UVERBSD_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uvd_req;
struct uvd_uobject;

/* Namespace of driver ids: objects, methods and attributes alike (UVERBS_ID_DRIVER_NS). */
#define UVD_ID_DRIVER_NS 0x1000
/* UVERBS_ATTR_UHW_IN and UVERBS_ATTR_UHW_OUT: what belongs to the provider and not to the core. */
#define UVD_ATTR_UHW_IN 0x1000
#define UVD_ATTR_UHW_OUT 0x1001

/*
 * One step of a command: decoding, one check, a look-up, the operation itself, or the response. A row lists its steps in
 * the order in which the kernel performs them, because the order decides which errno a doubly wrong call gets.
 * Returns 0, or a negative errno that ends the command: every handle touched so far is then put back or aborted.
 */
typedef int (*uvd_step)(struct uvd_req *req);

enum uvd_attr_type {
	UVD_ATTR_PTR_IN = 1, /* up to 8 bytes are inline in the attribute, more are behind its pointer */
	UVD_ATTR_PTR_OUT, /* always behind a pointer */
	UVD_ATTR_CONST, /* on the wire PTR_IN of exactly 8 bytes: an enumeration value or a number */
	UVD_ATTR_FLAGS, /* on the wire PTR_IN of 4 or 8 bytes: a set of bits */
	UVD_ATTR_IDR, /* a handle */
	UVD_ATTR_FD, /* a file descriptor that stands for an object */
	UVD_ATTR_IDRS_ARRAY, /* u32 handles; min_len and len count entries */
	UVD_ATTR_ENUM_IN, /* one of several PTR_IN, chosen by elem_id */
	UVD_ATTR_RAW_FD, /* a file descriptor that is no object of ours */
};

enum uvd_access {
	UVD_ACCESS_READ, /* shared use */
	UVD_ACCESS_WRITE, /* exclusive use */
	UVD_ACCESS_NEW, /* makes the object */
	UVD_ACCESS_DESTROY, /* ends it, before the method's own steps run */
};

enum uvd_attr_flags {
	UVD_MANDATORY = 1 << 0,
	UVD_ZERO_TRAILING = 1 << 1, /* longer input is accepted while the excess is zero (PTR_IN), or always (PTR_OUT) */
	UVD_ALLOC_AND_COPY = 1 << 2, /* input behind a pointer is copied while parsing, so its EFAULT comes early */
	UVD_UDATA = 1 << 3, /* the provider's part */
};

#define UVD_LEN_ANY UINT16_MAX

struct uvd_attr_row {
	const char *name; /* the kernel's, UVERBS_ATTR_... */
	uint16_t id;
	uint8_t type; /* enum uvd_attr_type */
	uint8_t flags; /* enum uvd_attr_flags */
	uint8_t access; /* IDR, FD, IDRS_ARRAY: enum uvd_access */
	uint16_t object; /* IDR, FD, IDRS_ARRAY: the object's id */
	uint16_t min_len, len; /* PTR_*: least accepted and fully known size; UVD_LEN_ANY: no upper end */
	const struct uvd_attr_row *elems; /* ENUM_IN: one PTR_IN row for each elem_id */
	uint16_t num_elems;
};

/*
 * The functions of struct uvd_backend that a row depends on, as UVD_OP(name). On a device whose backend lacks one, the row
 * is not there at all: EOPNOTSUPP for a command, EPROTONOSUPPORT for a method, as with the kernel's drivers.
 */
enum { UVD_NEEDS = 2 };
#define UVD_OP(op) offsetof(struct uvd_backend, op)

struct uvd_method_row {
	const char *name; /* the kernel's, UVERBS_METHOD_... */
	uint16_t id;
	const struct uvd_attr_row *attrs;
	uint16_t num_attrs;
	const uvd_step *steps; /* ends with NULL; may be NULL where parsing does all (a plain DESTROY) */
	uint16_t needs[UVD_NEEDS]; /* 0: nothing more */
};

enum uvd_write_flags {
	UVD_WRITE_EX = 1 << 0, /* extended header, sizes in words of 8 bytes */
	UVD_WRITE_RESP = 1 << 1, /* not extended: the request begins with the u64 address of the response */
	UVD_WRITE_UDATA = 1 << 2, /* what exceeds req_size and resp_size is the provider's */
	UVD_WRITE_NO_CONTEXT = 1 << 3, /* meaningful before GET_CONTEXT */
};

/* A command of the write() ABI. UVERBS_METHOD_INVOKE_WRITE of the ioctl ABI runs the same row. */
struct uvd_write_row {
	const char *name; /* the kernel's, IB_USER_VERBS_CMD_... or IB_USER_VERBS_EX_CMD_... */
	uint16_t number; /* without IB_USER_VERBS_CMD_FLAG_EXTENDED */
	uint8_t flags; /* enum uvd_write_flags */
	uint16_t req_size, resp_size; /* of the structs, without headers; the kernel enforces them for plain commands only */
	const uvd_step *steps; /* ends with NULL */
	uint16_t needs[UVD_NEEDS];
};

enum uvd_object_class {
	UVD_CLASS_NONE, /* no objects: a place for methods (UVERBS_OBJECT_DEVICE) */
	UVD_CLASS_IDR, /* a number in the open file's handle table */
	UVD_CLASS_FD, /* a file descriptor of the client */
};

/* Why an object ends: enum rdma_remove_reason. */
enum uvd_remove_reason {
	UVD_REMOVE_DESTROY, /* the client asked: may be refused with EBUSY */
	UVD_REMOVE_CLOSE, /* its open file is gone */
	UVD_REMOVE_DRIVER_REMOVE, /* the device is gone */
	UVD_REMOVE_ABORT, /* its creation failed after the backend had made it */
	UVD_REMOVE_DRIVER_FAILURE, /* last resort: drop it, whatever the backend says */
};

struct uvd_object_row {
	const char *name; /* the kernel's, UVERBS_OBJECT_... */
	uint16_t id;
	uint8_t cls; /* enum uvd_object_class */
	uint16_t size; /* UVD_SIZE() of what the backend has for it, so that the opener is charged; 0: nothing */
	/*
	 * Ends the backend's object. 0, or a negative errno: then the object stays as it was. Called with the object
	 * locked exclusively, and the open file's destroy lock held for reading.
	 */
	int (*destroy)(struct uvd_uobject *uobj, enum uvd_remove_reason why);
	const struct uvd_method_row *methods;
	uint16_t num_methods;
	const struct uvd_write_row *writes;
	uint16_t num_writes;
	uint16_t needs[UVD_NEEDS]; /* without them the object, its methods and its commands are absent, whoever brought them */
};

/* One contribution to a device's tree. */
struct uvd_feature {
	const char *name; /* the owner, as conflicts name it */
	const char *ucap; /* NULL, or the User Capability without which all of this is absent */
	const struct uvd_object_row *const *objects; /* ends with NULL */
};

/* The size in struct uvd_backend of an object of this type. */
#define UVD_SIZE(object) offsetof(struct uvd_backend, size_##object)
#define UVD_COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Fills the (pointer, count) pairs above from an array. */
#define UVD_ROWS(member, a) .member = (a), .num_##member = UVD_COUNT(a)

/* Attribute rows, in the words of the kernel's UVERBS_ATTR_* macros. `f` is a set of enum uvd_attr_flags. */
#define UVD_PTR_IN(n, l, f) { .name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .flags = f, .min_len = l, .len = l }
#define UVD_PTR_IN_MIN(n, l, f) { .name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .flags = f, .min_len = l, .len = UVD_LEN_ANY }
#define UVD_PTR_IN_STRUCT(n, l, known, f) \
	{ .name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .flags = (f) | UVD_ZERO_TRAILING, .min_len = l, .len = known }
#define UVD_PTR_OUT(n, l, f) { .name = #n, .id = n, .type = UVD_ATTR_PTR_OUT, .flags = f, .min_len = l, .len = l }
#define UVD_PTR_OUT_MIN(n, l, f) { .name = #n, .id = n, .type = UVD_ATTR_PTR_OUT, .flags = f, .min_len = l, .len = UVD_LEN_ANY }
#define UVD_PTR_OUT_STRUCT(n, l, known, f) \
	{ .name = #n, .id = n, .type = UVD_ATTR_PTR_OUT, .flags = (f) | UVD_ZERO_TRAILING, .min_len = l, .len = known }
#define UVD_CONST_IN(n, f) { .name = #n, .id = n, .type = UVD_ATTR_CONST, .flags = f, .min_len = 8, .len = 8 }
#define UVD_FLAGS_IN(n, f) { .name = #n, .id = n, .type = UVD_ATTR_FLAGS, .flags = f, .min_len = 4, .len = 8 }
#define UVD_IDR(n, o, a, f) { .name = #n, .id = n, .type = UVD_ATTR_IDR, .flags = f, .access = a, .object = o }
#define UVD_FD(n, o, a, f) { .name = #n, .id = n, .type = UVD_ATTR_FD, .flags = f, .access = a, .object = o }
#define UVD_RAW_FD(n, f) { .name = #n, .id = n, .type = UVD_ATTR_RAW_FD, .flags = f }
/* e: an array of rows, by elem_id */
#define UVD_ENUM_IN(n, e, f) { .name = #n, .id = n, .type = UVD_ATTR_ENUM_IN, .flags = f, UVD_ROWS(elems, e) }
#define UVD_UHW() \
	{ .name = "UVERBS_ATTR_UHW_IN", .id = UVD_ATTR_UHW_IN, .type = UVD_ATTR_PTR_IN, .flags = UVD_UDATA, .len = UVD_LEN_ANY }, \
	{ .name = "UVERBS_ATTR_UHW_OUT", .id = UVD_ATTR_UHW_OUT, .type = UVD_ATTR_PTR_OUT, .flags = UVD_UDATA, .len = UVD_LEN_ANY }

#endif
