/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the devices of uverbsd answer beyond the kernel's ABI, for clients. Everything here is reached by
 * RDMA_VERBS_IOCTL and lies in the namespace of drivers (ids from 0x1000 on), of which uverbsd keeps 0x1040 to 0x107f
 * for its own objects. A device without these, the kernel's included, answers EPROTONOSUPPORT.
 *
 * This header needs none of the others, so a client can copy it.
 */
#ifndef UVERBSD_ABI_H
#define UVERBSD_ABI_H

#include <linux/types.h>

/*
 * The parse tree: what the device accepts from this open file, as rows. The object has no handles, and its method needs
 * no context.
 *
 * The driver_id of the ioctl's header is the device's, as in every ioctl. A client that does not know it may try: a
 * wrong one is EINVAL, whatever else the call says.
 */
#define UVERBSD_OBJECT_TREE 0x1040

#define UVERBSD_METHOD_TREE_QUERY 0x1040

/* Attributes of UVERBSD_METHOD_TREE_QUERY, all of them mandatory. */
enum {
	/* PTR_IN, __u32: index of the first row that is wanted. Past the last one is no error: then there are none. */
	UVERBSD_ATTR_TREE_QUERY_FIRST = 0x1040,
	/*
	 * PTR_IN, __u32: sizeof(struct uverbsd_tree_row) as the client knows it. What a longer one has at its end is zeroed,
	 * and of a shorter one the end is left out: fields may be added, and are never moved. 0: EINVAL.
	 */
	UVERBSD_ATTR_TREE_QUERY_ROW_SIZE,
	/* PTR_OUT: the rows, one after the other, as many as there are and have room. The rest is not written. */
	UVERBSD_ATTR_TREE_QUERY_ROWS,
	/* PTR_OUT, __u32: how many these are. */
	UVERBSD_ATTR_TREE_QUERY_NUM_ROWS,
	/* PTR_OUT, __u32: how many the tree has. Only a context with User Capabilities changes the tree, once. */
	UVERBSD_ATTR_TREE_QUERY_TOTAL,
};

/*
 * Rows are in a fixed order: objects by id; after each its methods by id, and after each of these its attributes by id
 * (an ENUM_IN is followed by its elements); after the methods the object's write() commands by number, plain ones first.
 */
enum uverbsd_tree_kind {
	UVERBSD_TREE_OBJECT = 1,
	UVERBSD_TREE_METHOD,
	UVERBSD_TREE_ATTR,
	UVERBSD_TREE_ELEM,
	UVERBSD_TREE_COMMAND,
};

/* Of an object: what a handle of it is. */
enum uverbsd_tree_class {
	UVERBSD_TREE_CLASS_NONE, /* it has none: a place for methods */
	UVERBSD_TREE_CLASS_IDR, /* a number in the open file's table */
	UVERBSD_TREE_CLASS_FD, /* a file descriptor of the client */
};

/* Of an attribute or an element. */
enum uverbsd_tree_type {
	UVERBSD_TREE_PTR_IN = 1, /* up to 8 bytes stand in the attribute itself, more behind its pointer */
	UVERBSD_TREE_PTR_OUT, /* always behind its pointer */
	UVERBSD_TREE_CONST, /* a number, 8 bytes */
	UVERBSD_TREE_FLAGS, /* a set of bits, 4 or 8 bytes */
	UVERBSD_TREE_IDR, /* a handle */
	UVERBSD_TREE_FD, /* a file descriptor that stands for an object */
	UVERBSD_TREE_IDRS_ARRAY, /* __u32 handles; sizes count these */
	UVERBSD_TREE_ENUM_IN, /* one of several PTR_IN, chosen by elem_id */
	UVERBSD_TREE_RAW_FD, /* any other file descriptor */
};

/* Of an attribute of type IDR, FD or IDRS_ARRAY: what the method does with the object. */
enum uverbsd_tree_access {
	UVERBSD_TREE_READ, /* shared use */
	UVERBSD_TREE_WRITE, /* exclusive use */
	UVERBSD_TREE_NEW, /* makes it */
	UVERBSD_TREE_DESTROY, /* ends it */
};

/* flags of an attribute */
#define UVERBSD_TREE_MANDATORY 0x01
#define UVERBSD_TREE_ZERO_TRAILING 0x02 /* longer input is taken while the excess is zero; longer output is zeroed */
#define UVERBSD_TREE_ALLOC_AND_COPY 0x04 /* read while parsing: its EFAULT comes before the method's own errors */
#define UVERBSD_TREE_UDATA 0x08 /* the provider's part */
/* flags of a command */
#define UVERBSD_TREE_COMMAND_EX 0x01 /* extended */
#define UVERBSD_TREE_COMMAND_RESP 0x02 /* a plain one whose request begins with the address of its response */
#define UVERBSD_TREE_COMMAND_UDATA 0x04 /* takes driver data */
#define UVERBSD_TREE_COMMAND_NO_CONTEXT 0x08 /* works before GET_CONTEXT */

/* No upper end of a size. */
#define UVERBSD_TREE_LEN_ANY 0xffff

/* Fields that mean nothing in a row of its kind are 0. Texts end with a 0 byte. Sizes are bytes. */
struct uverbsd_tree_row {
	__u8 kind; /* enum uverbsd_tree_kind */
	__u8 type; /* object: enum uverbsd_tree_class; attribute, element: enum uverbsd_tree_type */
	__u8 access; /* enum uverbsd_tree_access */
	__u8 flags; /* UVERBSD_TREE_... by kind */
	__u16 object; /* id of the object that this is, or is in */
	__u16 method; /* id of the method that this is, or is in */
	__u16 id; /* its own: of an element its elem_id, of a command its number without IB_USER_VERBS_CMD_FLAG_EXTENDED */
	__u16 attr; /* element: the attribute's id */
	__u16 target; /* attribute of type IDR, FD or IDRS_ARRAY: the object's id; 0xffff: any */
	__u16 min_len; /* attribute: the least size that is taken; command: size of the request, without header */
	__u16 len; /* attribute: the whole size; command: size of the response */
	__u16 reserved[3];
	char name[64]; /* the kernel's, where the kernel has it */
	char owner[32]; /* the feature that brought it: "common verbs", "uverbsd", or a persona's */
	char ucap[32]; /* the User Capability without which it is absent, or "" */
};

/*
 * A port's state, for everybody: as `uverbsctl port` takes it down and up. Queries and sysfs change, and who has the device
 * open gets an event.
 *
 * It is there for a context that GET_CONTEXT was given the User Capability for (UVERBS_ATTR_GET_CONTEXT_FD_ARR: a
 * descriptor of /dev/infiniband/uverbsd_port_state), on a device that was told to create that (`--ucaps`). For every other
 * it does not exist.
 */
#define UVERBSD_UCAP_PORT_STATE "uverbsd_port_state"

#define UVERBSD_OBJECT_PORT 0x1041

#define UVERBSD_METHOD_PORT_SET_STATE 0x1040

/* Attributes of UVERBSD_METHOD_PORT_SET_STATE, both mandatory. A state that the port has already is no error. */
enum {
	/* CONST, __u64: the port, from 1. One that the device does not have: EINVAL. */
	UVERBSD_ATTR_PORT_SET_STATE_PORT = 0x1040,
	/* CONST, __u64: 1 active, 0 down; else EINVAL. */
	UVERBSD_ATTR_PORT_SET_STATE_UP,
};

/*
 * Counters of a QP. In the kernel only a flow is counted by a counters object (UVERBS_OBJECT_COUNTERS), and no stock
 * provider makes such flows without a device of its kind. Here a QP can be bound to one as well: from then on the object
 * can be read, and is in use until the QP is destroyed. Where the backend counts (soft), COUNTERS_READ gives two numbers:
 * packets and bytes of payload that have reached the QP and were carried out there: sends, RDMA writes, atomics (8
 * bytes each), and read requests, which have no payload.
 *
 * A method of UVERBS_OBJECT_COUNTERS. EBUSY: the QP is bound already. EINVAL: the QP is an XRC target.
 */
#define UVERBSD_METHOD_COUNTERS_BIND_QP 0x1040

/* Attributes of UVERBSD_METHOD_COUNTERS_BIND_QP, both mandatory. */
enum {
	UVERBSD_ATTR_COUNTERS_BIND_QP_HANDLE = 0x1040, /* IDR, READ: the counters */
	UVERBSD_ATTR_COUNTERS_BIND_QP_QP_HANDLE, /* IDR, WRITE: the QP */
};

#endif
