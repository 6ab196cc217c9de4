/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random messages between the engine process and the broker: valid ones, and ones that the table in wire.c forbids. */
#ifndef TESTS_BROKER_MESSAGES_H
#define TESTS_BROKER_MESSAGES_H

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "broker/broker.h"

enum { USER = 65534, GROUP = 65533, MOST_FDS = 9, STUCK_MS = 20000 };

static inline unsigned int rounds(unsigned int n)
{
	const char *more = getenv("UVERBSD_FUZZ");

	if (!more && !getenv("UVERBSD_LONG"))
		n /= 2;
	return n * (more && atoi(more) > 0 ? atoi(more) : 1);
}

static inline unsigned int any(unsigned int below)
{
	return random() % below;
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

/* The operations as wire.h documents them, independent of the table in wire.c that is under test. */
static const struct {
	enum uvd_wire_kind kind;
	unsigned int fds_in;
	bool tid, index, value, flag, name, counters, device, reg, ends; /* ends: the request ends the engine process */
} ops[UVD_WIRE_OPS] = {
	[UVD_WIRE_CONNECT] = { UVD_WIRE_CONTROL, 1, .index = true, .value = true },
	[UVD_WIRE_NODE] = { UVD_WIRE_CONTROL, .index = true, .value = true },
	[UVD_WIRE_PUBLISH] = { UVD_WIRE_CONTROL, .index = true },
	[UVD_WIRE_WITHDRAW] = { UVD_WIRE_CONTROL, .index = true },
	[UVD_WIRE_PORT] = { UVD_WIRE_CONTROL, .index = true, .value = true, .flag = true },
	[UVD_WIRE_COUNTERS] = { UVD_WIRE_CONTROL, .index = true, .value = true, .counters = true },
	[UVD_WIRE_UCAP] = { UVD_WIRE_CONTROL, .name = true },
	[UVD_WIRE_UCAP_GONE] = { UVD_WIRE_CONTROL, .name = true },
	[UVD_WIRE_CM] = { UVD_WIRE_CONTROL },
	[UVD_WIRE_CM_GONE] = { UVD_WIRE_CONTROL },
	[UVD_WIRE_READY] = { UVD_WIRE_CONTROL },
	[UVD_WIRE_ADD] = { UVD_WIRE_CONTROL, .device = true },
	[UVD_WIRE_TABLES] = { UVD_WIRE_CONTROL, .index = true, .value = true, .device = true },
	[UVD_WIRE_ADAPTER] = { UVD_WIRE_CONTROL, .index = true },
	[UVD_WIRE_PLUGIN] = { UVD_WIRE_CONTROL, .index = true, .name = true },
	[UVD_WIRE_PLUGIN_OPTION] = { UVD_WIRE_CONTROL, .index = true, .value = true },
	[UVD_WIRE_PEER_OWNERS] = { UVD_WIRE_CONTROL, .tid = true, .value = true },
	[UVD_WIRE_QUEUES] = { UVD_WIRE_CONTROL },
	[UVD_WIRE_BACKING] = { UVD_WIRE_CONTROL },
	[UVD_WIRE_BACKING_GONE] = { UVD_WIRE_CONTROL, .value = true },
	[UVD_WIRE_EARS] = { UVD_WIRE_CONTROL },
	[UVD_WIRE_WATCH] = { UVD_WIRE_CONTROL, .value = true },
	[UVD_WIRE_RESTART] = { UVD_WIRE_CONTROL, .ends = true },
	[UVD_WIRE_PEER] = { UVD_WIRE_QUESTIONS, .tid = true },
	[UVD_WIRE_OPENER] = { UVD_WIRE_QUESTIONS, .tid = true },
	[UVD_WIRE_OPEN] = { UVD_WIRE_QUESTIONS, .tid = true, .index = true, .value = true },
	[UVD_WIRE_WRITE] = { UVD_WIRE_QUESTIONS, .tid = true },
	[UVD_WIRE_SAME_MEMORY] = { UVD_WIRE_QUESTIONS, .tid = true, .value = true },
	[UVD_WIRE_SOCKETS] = { UVD_WIRE_QUESTIONS, .tid = true, .fds_in = 1 },
	[UVD_WIRE_SEIZE] = { UVD_WIRE_LOAN, .tid = true, .index = true },
	[UVD_WIRE_TAKE] = { UVD_WIRE_LOAN, 1, .index = true },
	[UVD_WIRE_REGISTER] = { UVD_WIRE_LOAN, 1, .reg = true },
	[UVD_WIRE_REPLACE] = { UVD_WIRE_LOAN, .index = true, .value = true },
	[UVD_WIRE_RELEASE] = { UVD_WIRE_LOAN, .index = true, .value = true, .flag = true },
};

struct message {
	union {
		struct uvd_wire_request r;
		struct uvd_wire_answer a;
		unsigned char bytes[sizeof(struct uvd_wire_request) + sizeof(struct uvd_device_config) + 64];
	};
	size_t size;
	unsigned int num_fds;
};

static inline int64_t any_value(void)
{
	static const int64_t values[] = { 0,   1,	  2,	     3,		-1,	   255,
					  256, INT32_MAX, INT32_MIN, 1ll << 32, INT64_MAX, INT64_MIN };

	return any(4) ? values[any(sizeof(values) / sizeof(values[0]))] : random();
}

static inline size_t size_of(enum uvd_wire_op op)
{
	return sizeof(struct uvd_wire_request) + (ops[op].device ? sizeof(struct uvd_device_config) : 0);
}

/* Valid indexes are 0 to the returned number less one. 0: every index is valid. */
static inline unsigned int num_indexes(enum uvd_wire_op op)
{
	static const unsigned int num[UVD_WIRE_OPS] = {
		[UVD_WIRE_CONNECT] = UVD_WIRE_KINDS,
		[UVD_WIRE_TABLES] = UVD_MAX_DEVICES,
		[UVD_WIRE_ADAPTER] = UVD_MAX_DEVICES,
		[UVD_WIRE_PLUGIN] = UVD_WIRE_SLOTS,
		[UVD_WIRE_PLUGIN_OPTION] = UVD_WIRE_SLOTS,
		[UVD_WIRE_OPEN] = UVD_WIRE_FILES,
		[UVD_WIRE_SEIZE] = 20,
		[UVD_WIRE_TAKE] = 2,
		[UVD_WIRE_REPLACE] = 63,
		[UVD_WIRE_RELEASE] = 2,
	};

	return ops[op].index ? num[op] : 1;
}

static inline unsigned int any_index(enum uvd_wire_op op)
{
	const unsigned int num = num_indexes(op);

	return num ? any(num) : any(4) ? any(3) : (unsigned int)random();
}

/* A valid request for this operation. */
static inline struct message request_of(enum uvd_wire_op op, pid_t tid)
{
	struct message m = { .size = size_of(op), .num_fds = ops[op].fds_in };

	m.r.version = UVD_WIRE_VERSION;
	m.r.op = op;
	m.r.tid = ops[op].tid ? tid : 0;
	m.r.index = any_index(op);
	m.r.value = ops[op].value ? any_value() : 0;
	m.r.flag = ops[op].flag ? any(2) : 0;
	for (unsigned int i = 0; ops[op].name && i < 1 + any(UVD_WIRE_NAME - 1); i++)
		m.r.name[i] = 1 + any(255);
	m.r.name[UVD_WIRE_NAME - 1] = 0;
	for (unsigned int i = 0; ops[op].counters && i < UVD_PORT_COUNTERS; i++)
		m.r.counters[i] = any_value();
	if (ops[op].reg)
		m.r.reg = (struct uvd_reg_order){ .start = any_value(), .length = any_value(), .access = any_value() };
	for (size_t i = sizeof(m.r); i < m.size; i++)
		m.bytes[i] = any(256);
	return m;
}

static inline enum uvd_wire_op op_of(enum uvd_wire_kind kind)
{
	enum uvd_wire_op op;

	do {
		op = 1 + any(UVD_WIRE_OPS - 1);
	} while (ops[op].kind != kind || ops[op].ends);
	return op;
}

/* Makes the valid message m invalid by one change. kind: the socket that will carry it. */
static inline void spoil(struct message *m, enum uvd_wire_kind kind)
{
	const enum uvd_wire_op op = m->r.op;

	for (;;) {
		switch (any(13)) {
		case 0:
			m->r.version += 1 + any(3);
			return;
		case 1:
			m->r.op = any(2) ? UVD_WIRE_NONE : UVD_WIRE_OPS + any(1 << 30);
			return;
		case 2:
			*m = request_of(op_of((kind + 1 + any(UVD_WIRE_KINDS - 1)) % UVD_WIRE_KINDS), 1);
			return;
		case 3:
			m->r.pad = 1 + any(1 << 30);
			return;
		case 4:
			m->r.tid = ops[op].tid ? -(int)any(1 << 30) : 1;
			return;
		case 5:
			m->r.flag = 2 + any(1 << 30);
			return;
		case 6:
			m->size = 1 + any(sizeof(m->bytes) - 1);
			if (op >= UVD_WIRE_OPS || m->size != size_of(op))
				return;
			break;
		case 7:
			m->num_fds = any(MOST_FDS);
			if (m->num_fds != ops[op].fds_in)
				return;
			break;
		case 8:
			m->r.name[UVD_WIRE_NAME - 1] = 1;
			memset(m->r.name, 'x', sizeof(m->r.name));
			return;
		case 9:
			m->r.name[0] = ops[op].name ? 0 : 'x';
			return;
		case 10:
			m->r.value = 1;
			if (!ops[op].value)
				return;
			break;
		case 11:
			m->r.counters[any(UVD_PORT_COUNTERS)] = 1;
			if (!ops[op].counters)
				return;
			break;
		case 12:
			if (!num_indexes(op))
				break;
			m->r.index = num_indexes(op) + any(1 << 30);
			return;
		}
	}
}

static inline bool send_message(int sock, const struct message *m, int fd)
{
	union {
		char room[CMSG_SPACE(MOST_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)m->bytes, m->size };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (m->num_fds) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_LEN(m->num_fds * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = h.msg_controllen };
		for (unsigned int i = 0; i < m->num_fds; i++)
			memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &fd, sizeof(int));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL) == (ssize_t)m->size;
}

/* Returns false if the peer closes the socket or sends an invalid answer. Aborts after STUCK_MS. */
static inline bool receive_answer(int sock, const struct message *m, struct uvd_wire_answer *a,
				  struct uvd_wire_fds *fds)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	*fds = uvd_wire_no_fds;
	if (poll(&p, 1, STUCK_MS) <= 0)
		abort();
	return !uvd_wire_answered(sock, m->r.op, a, fds);
}

static inline unsigned int fds_of(pid_t pid)
{
	unsigned int n = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Waits because the process may still be closing the descriptors that it sent with its last answer. */
static inline bool has_fds(pid_t pid, unsigned int want)
{
	for (int ms = 0; ms < STUCK_MS && fds_of(pid) != want; ms++)
		usleep(1000);
	return fds_of(pid) == want;
}

#endif
