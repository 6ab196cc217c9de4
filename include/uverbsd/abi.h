/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsd's extensions of the kernel's ABI, for clients. A client calls them by RDMA_VERBS_IOCTL. Their ids lie in the
 * namespace of drivers (from 0x1000 on), where uverbsd reserves 0x1040 to 0x107f for its own objects. A device that
 * lacks an extension, such as any device of the kernel's, fails the call with EPROTONOSUPPORT.
 *
 * This header includes none of the others, so a client can copy it.
 */
#ifndef UVERBSD_ABI_H
#define UVERBSD_ABI_H

#include <linux/types.h>

/*
 * The parse tree: returns everything that the device accepts from this open file, as rows. The object has no handles,
 * and its method needs no context.
 *
 * As in every ioctl, the header's driver_id must be the device's. A client that does not know it can try several: a
 * call with a wrong driver_id fails with EINVAL before anything else happens.
 */
#define UVERBSD_OBJECT_TREE 0x1040

#define UVERBSD_METHOD_TREE_QUERY 0x1040

/* Attributes of UVERBSD_METHOD_TREE_QUERY, all of them mandatory. */
enum {
	/* PTR_IN, __u32: index of the first row to return. An index past the last row is valid and returns no rows. */
	UVERBSD_ATTR_TREE_QUERY_FIRST = 0x1040,
	/*
	 * PTR_IN, __u32: sizeof(struct uverbsd_tree_row) in the client's version of this header. The device zeroes the
	 * end of a longer row, and leaves out the end of a shorter one: later versions add fields at the end and never
	 * move one. 0 is EINVAL.
	 */
	UVERBSD_ATTR_TREE_QUERY_ROW_SIZE,
	/* PTR_OUT: the rows, one after the other, as many as fit. The rest of the buffer is not written. */
	UVERBSD_ATTR_TREE_QUERY_ROWS,
	/* PTR_OUT, __u32: the number of rows returned. */
	UVERBSD_ATTR_TREE_QUERY_NUM_ROWS,
	/*
	 * PTR_OUT, __u32: the number of rows in the tree. The tree changes at most once, when GET_CONTEXT is given User
	 * Capabilities.
	 */
	UVERBSD_ATTR_TREE_QUERY_TOTAL,
};

/*
 * Rows have a fixed order. Objects are sorted by id. An object is followed by its methods, sorted by id, and then by
 * its write() commands, sorted by number, the plain ones first. A method is followed by its attributes, sorted by id,
 * and an ENUM_IN attribute by its elements.
 */
enum uverbsd_tree_kind {
	UVERBSD_TREE_OBJECT = 1,
	UVERBSD_TREE_METHOD,
	UVERBSD_TREE_ATTR,
	UVERBSD_TREE_ELEM,
	UVERBSD_TREE_COMMAND,
};

/* Rows of objects: what a handle of this object is. */
enum uverbsd_tree_class {
	UVERBSD_TREE_CLASS_NONE, /* the object has no handles and only contains methods */
	UVERBSD_TREE_CLASS_IDR, /* a number in the open file's table */
	UVERBSD_TREE_CLASS_FD, /* a file descriptor of the client */
};

/* Rows of attributes and elements. */
enum uverbsd_tree_type {
	UVERBSD_TREE_PTR_IN = 1, /* up to 8 bytes are in the attribute itself, more are behind its pointer */
	UVERBSD_TREE_PTR_OUT, /* always behind its pointer */
	UVERBSD_TREE_CONST, /* a number, 8 bytes */
	UVERBSD_TREE_FLAGS, /* a set of bits, 4 or 8 bytes */
	UVERBSD_TREE_IDR, /* a handle */
	UVERBSD_TREE_FD, /* a file descriptor that stands for an object */
	UVERBSD_TREE_IDRS_ARRAY, /* __u32 handles; min_len and len count handles */
	UVERBSD_TREE_ENUM_IN, /* one of several PTR_IN, chosen by elem_id */
	UVERBSD_TREE_RAW_FD, /* any other file descriptor */
};

/* Rows of attributes of type IDR, FD or IDRS_ARRAY: how the method uses the object. */
enum uverbsd_tree_access {
	UVERBSD_TREE_READ, /* shared use */
	UVERBSD_TREE_WRITE, /* exclusive use */
	UVERBSD_TREE_NEW, /* creates it */
	UVERBSD_TREE_DESTROY, /* destroys it */
};

/* flags of an attribute */
#define UVERBSD_TREE_MANDATORY 0x01
#define UVERBSD_TREE_ZERO_TRAILING 0x02 /* longer input is accepted if the excess is zero; longer output is zeroed */
#define UVERBSD_TREE_ALLOC_AND_COPY 0x04 /* read while parsing: EFAULT comes before the method's own errors */
#define UVERBSD_TREE_UDATA 0x08 /* driver data */
/* flags of a command */
#define UVERBSD_TREE_COMMAND_EX 0x01 /* extended */
#define UVERBSD_TREE_COMMAND_RESP 0x02 /* plain command whose request begins with the response's address */
#define UVERBSD_TREE_COMMAND_UDATA 0x04 /* takes driver data */
#define UVERBSD_TREE_COMMAND_NO_CONTEXT 0x08 /* works before GET_CONTEXT */
#define UVERBSD_TREE_COMMAND_CM 0x10 /* of /dev/infiniband/rdma_cm, with its header: struct rdma_ucm_cmd_hdr */

/* The size has no upper limit. */
#define UVERBSD_TREE_LEN_ANY 0xffff

/* A field is 0 in rows of a kind for which it has no meaning. Texts end with a 0 byte. Sizes are bytes. */
struct uverbsd_tree_row {
	__u8 kind; /* enum uverbsd_tree_kind */
	__u8 type; /* object: enum uverbsd_tree_class; attribute, element: enum uverbsd_tree_type */
	__u8 access; /* enum uverbsd_tree_access */
	__u8 flags; /* flags of an attribute or of a command, see above */
	__u16 object; /* id of this object, or of the object that contains this row */
	__u16 method; /* id of this method, or of the method that contains this row */
	__u16 id; /* element: its elem_id; command: its number without IB_USER_VERBS_CMD_FLAG_EXTENDED; else its id */
	__u16 attr; /* element: id of its attribute */
	__u16 target; /* attribute of type IDR, FD or IDRS_ARRAY: id of the object; 0xffff: any object */
	__u16 min_len; /* attribute: the minimum size; command: size of the request, without header */
	__u16 len; /* attribute: the full size, or UVERBSD_TREE_LEN_ANY; command: size of the response */
	__u16 reserved[3];
	char name[64]; /* the kernel's name if the kernel has this row */
	char owner[32]; /* the feature that added the row: "common verbs", "uverbsd", or a persona's */
	char ucap[32]; /* the User Capability that a context needs to have this row, or "" */
};

/*
 * Roles: what the fields of calls mean that are not the kernel's: those of plug-ins that state it. Returns rows of struct
 * uverbsd_tree_role. It has the attributes of UVERBSD_METHOD_TREE_QUERY, which stand for these rows in the same way. A
 * device without this method (EPROTONOSUPPORT) does not tell any.
 */
#define UVERBSD_METHOD_TREE_ROLES 0x1041

/*
 * Rows follow each other in the order of the tree. A command has a row of its request, and one of its response, if they
 * are known; an attribute, or an element, has a row of its value. A row of a struct is followed by those of its fields,
 * and the row of a field or value by one of its words, if it has any, and that by each word.
 */
enum uverbsd_tree_role_kind {
	UVERBSD_TREE_ROLE_REQUEST =
		1, /* a struct. name: its name; size: bytes, without its flexible array; text: that array */
	UVERBSD_TREE_ROLE_RESPONSE, /* the same */
	UVERBSD_TREE_ROLE_VALUE, /* text: of an address, the attribute that has its length */
	UVERBSD_TREE_ROLE_STRUCT, /* of the value before */
	UVERBSD_TREE_ROLE_FIELD, /* text: the array whose elements it counts */
	UVERBSD_TREE_ROLE_WORDS, /* name: of the enumeration; text: what its names begin with; size 1: a set of flags */
	UVERBSD_TREE_ROLE_WORD, /* name; select_values: the value */
};

/* flags of a field */
#define UVERBSD_TREE_ROLE_BIG 0x01 /* big-endian */
#define UVERBSD_TREE_ROLE_MAKES 0x02 /* the handle of the object that the command makes */
#define UVERBSD_TREE_ROLE_ENDS 0x04 /* the handle of the object that the command ends */
#define UVERBSD_TREE_ROLE_OPTIONAL 0x08 /* a descriptor: -1 is none */
#define UVERBSD_TREE_ROLE_RENEWS 0x10 /* the handle of the object that the command gives other numbers */

/* As struct uverbsd_tree_row: 0 has no meaning, and later versions add fields at the end. */
struct uverbsd_tree_role {
	__u8 kind; /* enum uverbsd_tree_role_kind */
	__u8 role; /* enum uvd_role (uverbsd/roles.h); of a struct: that of the elements of its flexible array */
	__u8 flags;
	__u8 row_kind; /* which row of the tree it is about: enum uverbsd_tree_kind, and its object, method, id and attr */
	__u16 object, method, id, attr;
	__u16 row_flags; /* UVERBSD_TREE_COMMAND_EX of an extended command */
	__u16 at, size, count; /* of a field: as in struct uvd_field */
	__u16 target, or_target; /* ids of objects that a handle, a descriptor or the array's elements stand for */
	__u8 beside, selector; /* numbers, from 1, of fields of this struct */
	__u8 reserved[2];
	__aligned_u64 select_flags, select_values;
	char name[64];
	char text[64];
};

/*
 * The state of a port: takes a port of the device down or up for all its clients, as `uverbsctl port` does. Queries and
 * sysfs show the new state, and every open file of the device gets an event.
 *
 * The object exists only on a device that was configured to create its User Capability (`--ucaps`), and only for a
 * context whose GET_CONTEXT was given that capability (UVERBS_ATTR_GET_CONTEXT_FD_ARR: a descriptor of
 * /dev/infiniband/uverbsd_port_state). Other calls fail with EPROTONOSUPPORT.
 */
#define UVERBSD_UCAP_PORT_STATE "uverbsd_port_state"

#define UVERBSD_OBJECT_PORT 0x1041

#define UVERBSD_METHOD_PORT_SET_STATE 0x1040

/* Attributes of UVERBSD_METHOD_PORT_SET_STATE, both mandatory. Setting the state that the port has already succeeds. */
enum {
	/* CONST, __u64: the port, counted from 1. EINVAL if the device has no such port. */
	UVERBSD_ATTR_PORT_SET_STATE_PORT = 0x1040,
	/* CONST, __u64: 1 for active, 0 for down. Other values are EINVAL. */
	UVERBSD_ATTR_PORT_SET_STATE_UP,
};

/*
 * The objects of /dev/infiniband/rdma_cm, in rows that describe its commands. They have no methods, and no device has
 * them: they are numbers in that node's own tables.
 */
#define UVERBSD_OBJECT_CM_ID 0x1042 /* an identifier: struct rdma_cm_id */
#define UVERBSD_OBJECT_CM_MCAST 0x1043 /* its membership of a multicast group */

/*
 * Counters of a QP, a method of UVERBS_OBJECT_COUNTERS. In the kernel a counters object only counts flows, and stock
 * providers create such flows only on their own devices. This method binds a QP to a counters object. The object is in
 * use (destroying it is EBUSY) until the QP is destroyed. If the backend counts (soft), COUNTERS_READ returns two
 * numbers: the packets and the bytes of payload that reached the QP and were carried out there. It counts sends, RDMA
 * writes, atomics (8 bytes each), and read requests (no payload).
 *
 * Errors: EBUSY: the QP is bound already. EINVAL: the QP is an XRC target. EPROTONOSUPPORT: the backend cannot bind
 * counters.
 */
#define UVERBSD_METHOD_COUNTERS_BIND_QP 0x1040

/* Attributes of UVERBSD_METHOD_COUNTERS_BIND_QP, both mandatory. */
enum {
	UVERBSD_ATTR_COUNTERS_BIND_QP_HANDLE = 0x1040, /* IDR, READ: the counters */
	UVERBSD_ATTR_COUNTERS_BIND_QP_QP_HANDLE, /* IDR, WRITE: the QP */
};

/*
 * The hash by which a QP with an indirection table chooses the work queue of a packet. In the kernel's ABI it is driver
 * data of EX_CREATE_QP and of UVERBS_METHOD_QP_CREATE (UVERBS_ATTR_UHW_IN), of a layout that each driver chooses. This is
 * the layout of uverbsd's devices, for the backend verbs. What the client does not send is zero. Functions and fields are
 * those of libibverbs, which the adapter checks. EINVAL: there is more driver data than this, a reserved byte is not zero,
 * or key_len is more than the key's room.
 */
struct uverbsd_rx_hash {
	__aligned_u64 fields_mask; /* enum ibv_rx_hash_fields */
	__u8 function; /* enum ibv_rx_hash_function_flags */
	__u8 key_len; /* bytes */
	__u8 reserved[6];
	__u8 key[128];
};

#endif
