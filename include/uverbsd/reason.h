/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Explanations: why a completion failed, a call was refused, or an asynchronous event was raised. Whoever finds the fault
 * names a reason, a constant row, and the values that the row's text contains. The engine tells the client's user: a line
 * in the log, or a record for `uverbsctl explain`.
 *
 * Backends, filters and plug-ins explain with uvd_explain(), with rows of their own if those of the engine do not fit.
 */
#ifndef UVERBSD_REASON_H
#define UVERBSD_REASON_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/objects.h>

/*
 * A row. `text` says what was asked and what was found, `remedy` what to do about it. Both may contain {NAME} or
 * {NAME:FORM}, which stand for the values: the first name for values[0], and so on, text before remedy. A name that comes
 * again means the same value again. Forms (none: decimal):
 *
 *	d	decimal, of a signed number
 *	x	hexadecimal, with 0x
 *	s	a constant string
 *	time	nanoseconds, as "3 ms"
 *	state	enum ibv_qp_state, as "INIT"
 *	states	bits 1 << enum ibv_qp_state, as "INIT and RTR"
 *	attrs	flags of enum ibv_qp_attr_mask, as "PKEY_INDEX, PORT"
 *	access	flags of enum ibv_access_flags, as "REMOTE_WRITE"
 *	gid	two values: the halves of a GID, big endian
 */
struct uvd_reason {
	const char *code; /* unique: lower case, '-'; of a filter or plug-in: its name and ':' before */
	const char *text, *remedy; /* without a full stop; remedy: may be NULL */
	const char *source; /* who requires it: a section of the specification, or a function of the kernel */
};

union uvd_why_value {
	uint64_t number;
	const char *word; /* constant, or valid as long as the explanation is */
};

enum { UVD_WHY_VALUES = 6 };

struct uvd_why {
	const struct uvd_reason *reason; /* NULL: not known */
	union uvd_why_value values[UVD_WHY_VALUES];
};

enum uvd_explained_kind {
	UVD_EXPLAINED_COMPLETION,
	UVD_EXPLAINED_CALL,
	UVD_EXPLAINED_EVENT,
	UVD_EXPLAINED_DROP, /* a QP drops what comes from another user, or a datagram; or a datagram of it is dropped */
};

/* An explanation. Fields that no comment gives to one kind mean the same for each. */
struct uvd_explained {
	enum uvd_explained_kind kind;
	struct uvd_why why;
	const char *object; /* "QP", "CQ": constant; NULL: none */
	uint32_t number; /* of the object: the QP number, or the handle that the client has */
	int pid; /* the process that it happened to; 0: the one that has opened the device */
	/* A completion: */
	enum ibv_wc_status status;
	bool is_recv;
	enum ibv_wr_opcode opcode; /* unless is_recv */
	uint64_t wr_id;
	uint32_t length; /* bytes of the request, or of what came for the receive */
	/* A call: */
	const char *verb; /* constant, or valid during the call */
	int err; /* negative errno */
	/* An event: */
	enum ibv_event_type event;
};

/*
 * Explains something to the user of the context, which must stay open during the call; NULL: of dev, to nobody in particular.
 * Any thread may call it. It can write to the log, so no lock may be held that other users wait for.
 */
static inline void uvd_explain(struct uvd_ibdev *dev, struct uvd_context *context,
			       const struct uvd_explained *explained)
{
	if (dev->explain)
		dev->explain(dev, context, explained);
}

#endif
