/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The schema: tables of everything that a device accepts.
 *
 * One set of rows drives the parsers of both ABIs, `uverbsctl tree`, docs/abi.md and the random calls of
 * src/program. A feature (the common verbs, uverbsd's own, a persona's, a plug-in's) is a list of object rows.
 * The tree of a device is the merge of its features (src/core/tree.h): object rows with the same id and name are
 * merged, with all their methods and write commands; method rows likewise, with all their attributes.
 * Extending an object or a method requires its exact name: one id under two names is a conflict.
 *
 * Sizes are bytes. Ids have 16 bits as in the kernel's uverbs_ioctl.h: 4 of namespace (0 common, 1 driver) and 12 of
 * id. All rows are static and constant, so they need no lock and are never freed.
 */
#ifndef UVERBSD_SCHEMA_H
#define UVERBSD_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uvd_req;
struct uvd_uobject;

/* The namespace of drivers in the ids of objects, methods and attributes (UVERBS_ID_DRIVER_NS). */
#define UVD_ID_DRIVER_NS 0x1000
/* UVERBS_ATTR_UHW_IN and UVERBS_ATTR_UHW_OUT: the driver data of a method. */
#define UVD_ATTR_UHW_IN 0x1000
#define UVD_ATTR_UHW_OUT 0x1001

/*
 * One step of a command: decoding, one check, a look-up, the operation itself, or the response. A row lists its steps
 * in the kernel's order, because the order decides which errno a call with two errors gets. Returns 0, or a negative
 * errno that ends the command: then the dispatcher puts or aborts every handle that the steps touched.
 */
typedef int (*uvd_step)(struct uvd_req *req);

enum uvd_attr_type {
	UVD_ATTR_PTR_IN = 1, /* up to 8 bytes are inline in the attribute, more are behind its pointer */
	UVD_ATTR_PTR_OUT, /* always behind a pointer */
	UVD_ATTR_CONST, /* a PTR_IN of exactly 8 bytes: an enumeration value or a number */
	UVD_ATTR_FLAGS, /* a PTR_IN of 4 or 8 bytes: a set of bits */
	UVD_ATTR_IDR, /* a handle */
	UVD_ATTR_FD, /* a file descriptor that stands for an object */
	UVD_ATTR_IDRS_ARRAY, /* u32 handles; min_len and len count handles */
	UVD_ATTR_ENUM_IN, /* one of several PTR_IN, chosen by elem_id */
	UVD_ATTR_RAW_FD, /* a file descriptor that does not stand for an object */
};

/* A method uses the object that an attribute names in one of these ways: the kernel's enum uverbs_obj_access. */
enum uvd_uobj_access {
	UVD_UOBJ_READ, /* shared use */
	UVD_UOBJ_WRITE, /* exclusive use */
	UVD_UOBJ_NEW, /* creates the object */
	UVD_UOBJ_DESTROY, /* destroys it, before the method's own steps run */
};

enum uvd_attr_flags {
	UVD_MANDATORY = 1 << 0,
	/* PTR_IN: longer input is accepted if the excess is zero. PTR_OUT: a longer buffer is accepted. */
	UVD_ZERO_TRAILING = 1 << 1,
	UVD_ALLOC_AND_COPY = 1 << 2, /* input behind a pointer is copied while parsing, so EFAULT comes early */
	UVD_UDATA = 1 << 3, /* driver data */
};

#define UVD_LEN_ANY UINT16_MAX /* a size without an upper limit */

struct uvd_attr_row {
	const char *name; /* the kernel's, UVERBS_ATTR_... */
	uint16_t id;
	uint8_t type; /* enum uvd_attr_type */
	uint8_t flags; /* enum uvd_attr_flags */
	uint8_t access; /* IDR, FD, IDRS_ARRAY: enum uvd_uobj_access */
	uint16_t object; /* IDR, FD, IDRS_ARRAY: id of the object; 0xffff: any */
	uint16_t min_len, len; /* PTR_*: the minimum and the full size; UVD_LEN_ANY: no limit */
	const struct uvd_attr_row *elems; /* ENUM_IN: one PTR_IN row for each elem_id */
	uint16_t num_elems;
};

/*
 * `needs` of a row lists the operations of struct uvd_backend that it depends on, as UVD_OP(name). If a device's
 * backend lacks one of them, the row is absent from its tree: a command fails with EOPNOTSUPP, a method with
 * EPROTONOSUPPORT, as with the kernel's drivers.
 */
enum { UVD_NEEDS = 2 };
#define UVD_OP(op) offsetof(struct uvd_backend, op)

/*
 * A row whose `when` is not UVD_STEPS_OWN wraps the method or command that another feature has under the same id and name:
 * its steps run before or after that row's own steps, or instead of them. BEFORE: after the attributes were parsed (and
 * before a DESTROY destroys its object). AFTER: if all steps so far returned 0, before outputs are written and handles
 * committed. Several wrap in the order of the features. Two INSTEADs are a conflict. A wrapper of a method may also bring
 * attributes; a wrapper of a command has only number, name, UVD_WRITE_EX, needs and steps. If the backend lacks what its
 * `needs` name, only the wrapper is absent.
 */
enum uvd_when { UVD_STEPS_OWN, UVD_STEPS_BEFORE, UVD_STEPS_AFTER, UVD_STEPS_INSTEAD };

struct uvd_method_row {
	const char *name; /* the kernel's, UVERBS_METHOD_... */
	uint16_t id;
	const struct uvd_attr_row *attrs;
	uint16_t num_attrs;
	const uvd_step *steps; /* ends with NULL; may be NULL if parsing does all of the work (a plain DESTROY) */
	uint16_t needs[UVD_NEEDS]; /* ends with 0, unless it is full */
	uint8_t when; /* enum uvd_when */
};

enum uvd_write_flags {
	UVD_WRITE_EX = 1 << 0, /* extended header; it counts sizes in words of 8 bytes */
	UVD_WRITE_RESP = 1 << 1, /* plain command: the request begins with the u64 address of the response */
	UVD_WRITE_UDATA = 1 << 2, /* bytes beyond req_size and resp_size are driver data */
	UVD_WRITE_NO_CONTEXT = 1 << 3, /* allowed before GET_CONTEXT */
	UVD_WRITE_CM = 1 << 4, /* of the node rdma_cm; its own front reads it (src/cm) */
};

/* A command of the write() ABI. UVERBS_METHOD_INVOKE_WRITE of the ioctl ABI uses the same row. */
struct uvd_write_row {
	const char *name; /* the kernel's, IB_USER_VERBS_CMD_... or IB_USER_VERBS_EX_CMD_... */
	uint16_t number; /* without IB_USER_VERBS_CMD_FLAG_EXTENDED */
	uint8_t flags; /* enum uvd_write_flags */
	uint16_t req_size, resp_size; /* of the structs, without header; enforced for plain commands only */
	const uvd_step *steps; /* ends with NULL */
	uint16_t needs[UVD_NEEDS];
	uint8_t when; /* enum uvd_when */
};

enum uvd_object_class {
	UVD_CLASS_NONE, /* without handles; only contains methods (UVERBS_OBJECT_DEVICE) */
	UVD_CLASS_IDR, /* a number in the open file's handle table */
	UVD_CLASS_FD, /* a file descriptor of the client */
};

/* Why an object is destroyed: enum rdma_remove_reason. */
enum uvd_remove_reason {
	UVD_REMOVE_DESTROY, /* the client asked for it, which can fail with EBUSY */
	UVD_REMOVE_CLOSE, /* its file was closed */
	UVD_REMOVE_DRIVER_REMOVE, /* the device was removed */
	UVD_REMOVE_ABORT, /* its creation failed after the backend had created it */
	UVD_REMOVE_DRIVER_FAILURE, /* last resort: the handle goes even if the backend refuses */
};

struct uvd_object_row {
	const char *name; /* the kernel's, UVERBS_OBJECT_... */
	uint16_t id;
	uint8_t cls; /* enum uvd_object_class */
	uint16_t size; /* UVD_SIZE() of the backend's object, which is charged to the opener; 0: there is none */
	/*
	 * Destroys and frees the backend's object. Returns 0, or a negative errno: then the object is unchanged. The
	 * caller has locked the object exclusively, and holds the file's destroy_lock: for reading, or for writing at
	 * the file's close and at a removal.
	 */
	int (*destroy)(struct uvd_uobject *uobj, enum uvd_remove_reason why);
	const struct uvd_method_row *methods;
	uint16_t num_methods;
	const struct uvd_write_row *writes;
	uint16_t num_writes;
	uint16_t needs[UVD_NEEDS]; /* without them the object is absent, whichever feature adds to it */
};

/* One feature of a device: a list of objects that is merged into its tree. */
struct uvd_feature {
	const char *name; /* the owner's name, for messages about conflicts */
	const char *ucap; /* NULL, or the User Capability that a context needs to see the feature */
	const struct uvd_object_row *const *objects; /* ends with NULL */
};

/* The offset of the member of struct uvd_backend that has the size of objects of this type. */
#define UVD_SIZE(object) offsetof(struct uvd_backend, size_##object)
#define UVD_COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Initializes a pointer and its count (such as attrs and num_attrs) from an array. */
#define UVD_ROWS(member, a) .member = (a), .num_##member = UVD_COUNT(a)

/* A method's row: its id (and name), its attributes, its steps. */
#define UVD_METHOD(n, a, s) \
	{ \
		.name = #n, .id = n, UVD_ROWS(attrs, a), .steps = s \
	}
/* A write() command's row: its number (and name), its flags, the sizes of its structs, its steps, its UVD_OP()s. */
#define UVD_WRITE(n, f, in, out, s, ...) \
	{ \
		.name = #n, .number = n, .flags = f, .req_size = in, .resp_size = out, .steps = s, .needs = { \
			__VA_ARGS__ \
		} \
	}

/* Attribute rows, named as the kernel's UVERBS_ATTR_* macros. `f` is a set of enum uvd_attr_flags. */
#define UVD_PTR_IN(n, l, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .flags = f, .min_len = l, .len = l \
	}
#define UVD_PTR_IN_MIN(n, l, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .flags = f, .min_len = l, .len = UVD_LEN_ANY \
	}
#define UVD_PTR_IN_STRUCT(n, l, known, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .flags = (f) | UVD_ZERO_TRAILING, .min_len = l, \
		.len = known \
	}
#define UVD_PTR_OUT(n, l, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_OUT, .flags = f, .min_len = l, .len = l \
	}
#define UVD_PTR_OUT_MIN(n, l, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_OUT, .flags = f, .min_len = l, .len = UVD_LEN_ANY \
	}
#define UVD_PTR_OUT_STRUCT(n, l, known, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_OUT, .flags = (f) | UVD_ZERO_TRAILING, .min_len = l, \
		.len = known \
	}
#define UVD_CONST_IN(n, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_CONST, .flags = f, .min_len = 8, .len = 8 \
	}
#define UVD_FLAGS_IN(n, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_FLAGS, .flags = f, .min_len = 4, .len = 8 \
	}
#define UVD_IDR(n, o, a, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_IDR, .flags = f, .access = a, .object = o \
	}
#define UVD_FD(n, o, a, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_FD, .flags = f, .access = a, .object = o \
	}
#define UVD_RAW_FD(n, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_RAW_FD, .flags = f \
	}
/* e: an array of rows, indexed by elem_id */
#define UVD_ENUM_IN(n, e, f) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_ENUM_IN, .flags = f, UVD_ROWS(elems, e) \
	}
#define UVD_UHW() \
	{ .name = "UVERBS_ATTR_UHW_IN", \
	  .id = UVD_ATTR_UHW_IN, \
	  .type = UVD_ATTR_PTR_IN, \
	  .flags = UVD_UDATA, \
	  .len = UVD_LEN_ANY }, \
	{ \
		.name = "UVERBS_ATTR_UHW_OUT", .id = UVD_ATTR_UHW_OUT, .type = UVD_ATTR_PTR_OUT, .flags = UVD_UDATA, \
		.len = UVD_LEN_ANY \
	}

#endif
