/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages between the engine process and the broker: a request and its answer, of fixed size, over SOCK_SEQPACKET, with
 * descriptors where the table of operations says so. Both sides check every message against the table.
 */
#ifndef UVD_WIRE_H
#define UVD_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uverbsd/config.h>

/*
 * After `uverbsctl restart` the two processes can be of different versions of this program. Whoever changes an operation or a
 * struct increments the version: then the new engine process fails at once, instead of being misunderstood.
 */
enum { UVD_WIRE_VERSION = 3, UVD_WIRE_FDS = 4, UVD_WIRE_NAME = 64, UVD_WIRE_OWNERS_MAX = 33 /* 32 nested namespaces */,
       UVD_WIRE_MAX_NICE = 19 };

/* A socket carries the operations of one kind. */
enum uvd_wire_kind {
	UVD_WIRE_CONTROL, /* the broker's own loop */
	UVD_WIRE_QUESTIONS, /* a process that opens files below /proc */
	UVD_WIRE_LOAN, /* a process that borrows one thread, once */
	UVD_WIRE_KINDS
};

enum uvd_wire_op {
	UVD_WIRE_NONE,
	/* CONTROL. index: of a device that is configured, or was added. */
	UVD_WIRE_CONNECT, /* index: the kind; fd: the process's end of a new socket */
	UVD_WIRE_NODE, /* index -> values: number, st_rdev; fd: the channel */
	UVD_WIRE_PUBLISH, /* index */
	UVD_WIRE_WITHDRAW, /* index: from the sysfs directory and from /dev */
	UVD_WIRE_PORT, /* index, value: the port, flag: up */
	UVD_WIRE_UCAP, /* name -> values: st_rdev; fd: the channel */
	UVD_WIRE_UCAP_GONE, /* name */
	UVD_WIRE_READY, /* all devices are served and published */
	UVD_WIRE_ADD, /* a device is behind the request -> values: its index */
	UVD_WIRE_RESTART, /* the broker ends this engine process, and starts another */
	/* QUESTIONS. tid: a thread that waits in a call on one of the nodes. */
	UVD_WIRE_PEER, /* -> values: its process; fds: mem, maps, pagemap, statm */
	UVD_WIRE_OPENER, /* tid opens a node -> fd: pagemap */
	UVD_WIRE_OPEN, /* index: enum uvd_wire_file, value: its number -> fd */
	UVD_WIRE_WRITE, /* -> values: address and length of the write() that it waits in */
	UVD_WIRE_SAME_MEMORY, /* value: another process -> result 1 or 0 */
	/* LOAN, in this order. */
	UVD_WIRE_SEIZE, /* tid; index: the nice value that the loan's process takes */
	UVD_WIRE_TAKE, /* fd: to be passed to it, or index 1: nothing is -> values: its number there or a negative errno, is it dead?; fds: mem, maps */
	UVD_WIRE_RELEASE, /* flag: the call returns value; index: 1: close the number first -> values: processor time of the loan, in ns */
	UVD_WIRE_OPS
};

/* Files below /proc/TID that may be asked for by UVD_WIRE_OPEN. */
enum uvd_wire_file {
	UVD_WIRE_MEM, /* value: 1: for writing */
	UVD_WIRE_MAPS,
	UVD_WIRE_PAGEMAP,
	UVD_WIRE_AUXV,
	UVD_WIRE_LIMITS,
	UVD_WIRE_USER_NS, /* O_PATH */
	UVD_WIRE_FD, /* O_PATH; value: its number */
	UVD_WIRE_FDINFO, /* value: the descriptor's number */
	/* Everybody may read these, of any thread. */
	UVD_WIRE_STATUS,
	UVD_WIRE_STAT,
	UVD_WIRE_COMM,
	UVD_WIRE_STATM,
	UVD_WIRE_OWNERS, /* no file of /proc's: uid_t of the owner of each user namespace of the thread, below ours */
	UVD_WIRE_FILES
};

struct uvd_wire_request {
	uint32_t version, op;
	int32_t tid;
	uint32_t index;
	int64_t value;
	uint32_t flag, pad;
	char name[UVD_WIRE_NAME];
};

struct uvd_wire_answer {
	uint32_t version, op;
	int32_t result; /* a negative errno: nothing else is set */
	uint32_t num_fds;
	int64_t values[2];
};

/* A message with its descriptors; -1 where there is none. */
struct uvd_wire_fds {
	int fd[UVD_WIRE_FDS];
};

extern const struct uvd_wire_fds uvd_wire_no_fds;

static inline struct uvd_wire_fds uvd_wire_one_fd(int fd)
{
	struct uvd_wire_fds fds = uvd_wire_no_fds;

	fds.fd[0] = fd;
	return fds;
}

void uvd_wire_close(struct uvd_wire_fds *fds);

/*
 * Each returns 0, -EPIPE: the other side is gone, -EPROTO: the message is none that the table allows, and its descriptors are
 * closed; -EMFILE: it is good, but this process has no room for its descriptors; or another negative errno. Descriptors that are
 * sent stay the caller's. An answer does not wait: -EAGAIN: the other side does not read its answers.
 */
int uvd_wire_ask(int sock, const struct uvd_wire_request *request, const struct uvd_wire_fds *fds);
int uvd_wire_asked(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request, struct uvd_wire_fds *fds);
/* The same for operations with a device behind the request, too. Only the operation's own have one; nobody has checked it. */
int uvd_wire_ask_with(int sock, const struct uvd_wire_request *request, const struct uvd_device_config *device);
int uvd_wire_asked_with(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request, struct uvd_device_config *device,
			struct uvd_wire_fds *fds);
int uvd_wire_answer(int sock, const struct uvd_wire_answer *answer, const struct uvd_wire_fds *fds);
int uvd_wire_answered(int sock, enum uvd_wire_op op, struct uvd_wire_answer *answer, struct uvd_wire_fds *fds);

#endif
