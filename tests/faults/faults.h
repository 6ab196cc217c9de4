/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * test_calls.c makes each allocation, client copy, backend call and look-up in /proc of every method and write command
 * fail in turn. This header says how a call is described to it.
 *
 * A NEW VERB needs one entry: a function that makes the objects the call needs and fills in one valid call, and a line
 * with the row's name in the table at the end of its file (calls_*.c). A row without an entry fails the test, and so
 * does a new function of struct uvd_backend that is not in the list of filter.c.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <check.h>
#include "inject.h"
#include "encode.h"

/* ---- the backend's filter (filter.c) ----------------------------------------------------------------------------- */

enum thing {
	T_NONE,
	T_CONTEXT,
	T_PD,
	T_XRCD,
	T_MR,
	T_MW,
	T_AH,
	T_CQ,
	T_SRQ,
	T_QP,
	T_MCAST,
	T_WQ,
	T_RWQ_IND_TBL,
	T_FLOW,
	T_DM,
	T_DMAH,
	T_COUNTERS,
	T_COMP_CNTR,
	NUM_THINGS
};

/* Puts the filter in front of *ops. Returns NULL, or a message about a function that the filter lacks. */
const char *filter_install(struct uvd_backend *ops);
/* The numbers of objects of each kind that exist in the backend. */
extern int filter_live[NUM_THINGS];

/* ---- a call ------------------------------------------------------------------------------------------------------ */

struct call {
	struct harness h;
	/* Write command: its struct (issuing it fills in the response's address), and room for the response. */
	uint64_t in[1024], out[512];
	size_t in_len, out_len;
	/* Method: its attributes. */
	struct uv_tree tree;
	/* The fds and handles that call_context() and the functions of calls_*.c have made. */
	int async_fd, channel_fd;
	uint32_t pd, cq, srq, qp, ah, mr, mw, xrcd, qpn;
	/* Client memory to point at. */
	uint8_t data[4096] __attribute__((aligned(4096)));
};

struct call_entry {
	const char *row; /* the row's name */
	/* Makes the objects that the call needs, and fills in the call. No fault is armed meanwhile. */
	void (*prepare)(struct call *c);
	const char *only; /* the only backend that supports it; NULL: all that have the row */
	int result; /* of the call without a fault: 0, or the negative errno of an operation that no device supports */
	/* As in the kernel: */
	bool destroys; /* the object stays destroyed if the response cannot be written */
	bool forgets; /* if the backend refuses to destroy the object, its handle is freed nevertheless */
	bool tolerant; /* ignores the backend's error, or returns its own errno for it */
};

struct call_group {
	const struct call_entry *entries;
	unsigned int num;
};

#define CALL_GROUP(name, table) const struct call_group name = { table, UVD_COUNT(table) }
/* Request and response of a write command. */
#define CALL_IN(c, type, ...) \
	do { \
		const type in_ = { __VA_ARGS__ }; \
		call_in(c, &in_, sizeof(in_)); \
	} while (0)
#define CALL_OUT(c, type) ((c)->out_len = sizeof(type))

static inline void call_in(struct call *c, const void *in, size_t len)
{
	memcpy(c->in, in, len);
	c->in_len = len;
}

/* Make a context with its async event file, and objects by write(). All assert success. */
void call_context(struct call *c);
void call_pd(struct call *c);
void call_cq(struct call *c);
void call_srq(struct call *c);
/* Makes the PD and CQ, too. state: RESET or INIT; for UD also RTS. */
void call_qp(struct call *c, uint8_t type, enum ibv_qp_state state);
void call_ah(struct call *c);
void call_mr(struct call *c);
void call_channel(struct call *c);

extern const struct call_group calls_device, calls_memory, calls_cq, calls_qp, calls_srq, calls_xrc, calls_wq,
	calls_rare;

#endif
