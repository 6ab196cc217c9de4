/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ABI of the plug-in counter, for clients. It includes nothing but the kernel's types, so a client can copy it. */
#ifndef COUNTER_H
#define COUNTER_H

#include <linux/types.h>

#define UVERBS_OBJECT_COUNTER 0x1090

enum {
	UVERBS_METHOD_COUNTER_CREATE = 0x1090,
	UVERBS_METHOD_COUNTER_ADD,
	UVERBS_METHOD_COUNTER_READ,
	UVERBS_METHOD_COUNTER_DESTROY,
	/* Only for a context with the User Capability counter_reset. */
	UVERBS_METHOD_COUNTER_RESET,
};

enum {
	UVERBS_ATTR_COUNTER_CREATE_HANDLE = 0x1090, /* IDR, NEW */
	UVERBS_ATTR_COUNTER_CREATE_IN, /* PTR_IN, struct counter_create; optional: all zero */
};

/*
 * An ADD by which the value reaches the threshold posts an asynchronous event. libibverbs knows no element of such an
 * event, and gives the program its low 31 bits in event.element.port_num.
 */
struct counter_create {
	__u64 threshold; /* 0: none */
	__u64 user_handle; /* the element of the event */
};

#define COUNTER_EVENT_THRESHOLD 0x10000

enum {
	UVERBS_ATTR_COUNTER_ADD_HANDLE = 0x1090, /* IDR, READ */
	UVERBS_ATTR_COUNTER_ADD_IN, /* PTR_IN, struct counter_add. EOVERFLOW: the sum is above 2^64 - 1 */
};

struct counter_add {
	__u64 amount;
	__u32 times; /* adds amount * times */
	__u32 reserved; /* 0 */
};

enum {
	UVERBS_ATTR_COUNTER_READ_HANDLE = 0x1090, /* IDR, READ */
	UVERBS_ATTR_COUNTER_READ_OUT, /* PTR_OUT, struct counter_state; later versions may add fields at its end */
};

struct counter_state {
	__u64 value, threshold;
	__u32 contexts; /* open contexts of the device */
	__u32 reserved;
};

enum { UVERBS_ATTR_COUNTER_DESTROY_HANDLE = 0x1090 }; /* IDR, DESTROY */
enum { UVERBS_ATTR_COUNTER_RESET_HANDLE = 0x1090 }; /* IDR, WRITE: sets the value to the option `initial` */

#endif
