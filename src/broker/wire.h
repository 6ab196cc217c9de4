/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages between the engine process and the broker: a request and its answer, both of fixed size, over
 * SOCK_SEQPACKET, with descriptors if the table of operations says so. Both sides check every message against the
 * table.
 */
#ifndef UVD_WIRE_H
#define UVD_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include <uverbsd/counters.h>
#include <uverbsd/registration.h>

/*
 * After `uverbsctl daemon restart` the two processes can be of different versions of this program. A change of an operation
 * or a struct must increment UVD_WIRE_VERSION: then the new engine process fails at once, and is not misunderstood.
 */
enum {
	UVD_WIRE_VERSION = 16,
	UVD_WIRE_FDS = 4,
	UVD_WIRE_NAME = 64,
	UVD_WIRE_OWNERS_MAX = 33 /* 32 nested namespaces */,
	UVD_WIRE_MAX_NICE = 19,
	UVD_WIRE_SOCKETS_MAX = 1024,
	/*
	 * The engine process has a descriptor for each slot, at these numbers. A slot is a memfd that only the broker
	 * can write to. The sandbox maps code from slots alone (sandbox_rows.c). A power of two, at a multiple of it.
	 */
	UVD_WIRE_SLOTS = 64,
	UVD_WIRE_FIRST_SLOT = 64
};

/* A socket carries the operations of one kind. */
enum uvd_wire_kind {
	UVD_WIRE_CONTROL, /* the broker's own loop */
	UVD_WIRE_QUESTIONS, /* a process that opens files below /proc */
	UVD_WIRE_LOAN, /* a process that borrows one thread, once */
	UVD_WIRE_KINDS
};

enum uvd_wire_op {
	UVD_WIRE_NONE,
	/* CONTROL. index: a device that is configured or was added, unless stated otherwise. */
	/* index: the kind, value: of a loan the thread; fd: the end of a new socket that the child serves -> values: the child's pid */
	UVD_WIRE_CONNECT,
	UVD_WIRE_NODE, /* index, value: the number, -1: any -> values: number, st_rdev; fd: the channel */
	UVD_WIRE_PUBLISH, /* index */
	UVD_WIRE_WITHDRAW, /* index; removes it from the sysfs directory and from /dev */
	UVD_WIRE_PORT, /* index, value: the port, flag: up */
	UVD_WIRE_COUNTERS, /* index, value: the port, counters */
	UVD_WIRE_UCAP, /* name -> values: st_rdev; fd: the channel */
	UVD_WIRE_UCAP_GONE, /* name */
	UVD_WIRE_CM, /* the connection manager's node -> values: st_rdev, is it aside?; fd: the channel */
	UVD_WIRE_CM_GONE,
	UVD_WIRE_READY, /* all devices are served and published */
	UVD_WIRE_ALIVE, /* the loop of the engine process runs */
	UVD_WIRE_ADD, /* a device follows the request -> values: its index */
	/*
	 * index: a device with an adapter, value: a port that has changed, or 0: all, before PUBLISH; a device follows: what
	 * the adapter has
	 */
	UVD_WIRE_TABLES,
	UVD_WIRE_ADAPTER, /* index; the engine process gets a node of the device's adapter, in its own /dev/infiniband */
	/*
	 * index: a slot, into which the broker copies a plug-in: the file `name` in --plugin-dir, or that of the --plugin
	 * with the number value -> values: 0; or a negative errno, and a memfd with the reason as text
	 */
	UVD_WIRE_PLUGIN,
	UVD_WIRE_PLUGIN_OPTION,
	/* tid, value: process and user of SO_PEERCRED, of a connection to the control socket -> fd: uid_t[], as UVD_WIRE_OWNERS */
	UVD_WIRE_PEER_OWNERS,
	/* The file system of queues (queues.h) -> fd: its channel. */
	UVD_WIRE_QUEUES,
	UVD_WIRE_BACKING, /* the memory of a new file of it -> values: its number; fd: the memfd */
	UVD_WIRE_BACKING_GONE, /* value: the number */
	UVD_WIRE_EARS, /* -> fds: an inotify instance that the broker has too, and a file that it watches */
	UVD_WIRE_WATCH, /* value: the number of memory, which that instance watches from now on -> values: the watch descriptor */
	/*
	 * The broker reads its configuration again -> fd: a memfd with what it has (src/daemon/reload.c); -EAGAIN: it was asked for a
	 * moment ago
	 */
	UVD_WIRE_RELOAD,
	UVD_WIRE_RESTART, /* the broker ends this engine process and starts another */
	UVD_WIRE_LOG_LEVEL, /* index: enum uvd_log_level, of this engine process and the later ones */
	UVD_WIRE_LIFE, /* -> values: engine processes before this one; the level of the log */
	/* QUESTIONS. tid: a thread that waits in a call on one of the nodes. */
	UVD_WIRE_PEER, /* -> values: the thread's process; fds: mem, maps, pagemap, statm */
	UVD_WIRE_OPENER, /* tid: a thread that opens a node -> fd: pagemap */
	UVD_WIRE_OPEN, /* index: enum uvd_wire_file, value: as said there -> fd */
	UVD_WIRE_WRITE, /* -> values: address and length of the write() that the thread waits in */
	UVD_WIRE_SAME_MEMORY, /* value: another process -> result 1 or 0 */
	/*
	 * Which sockets have other processes than tid open? fd: a socket that holds one message: uint64_t[], the inode numbers
	 * of at most UVD_WIRE_SOCKETS_MAX sockets -> values: the processor time that this took, in ns; on that socket: a bool
	 * for each number
	 */
	UVD_WIRE_SOCKETS,
	/* LOAN, in this order. */
	UVD_WIRE_SEIZE, /* tid: that of CONNECT; index: the nice value that the loan's process takes */
	/*
	 * fd: to pass to the thread; index: 1: do not pass it -> values: its number there or a negative errno, is the
	 * thread dead?; fds: mem, maps
	 */
	UVD_WIRE_TAKE,
	/*
	 * instead of TAKE; fd: the device file of an adapter's context; reg: what the thread registers with it -> values:
	 * the region's handle or a negative errno; bits of enum uvd_wire_registered; fds: mem, maps
	 */
	UVD_WIRE_REGISTER,
	/*
	 * after TAKE; value: the name of a file of queues, which takes the place of the descriptor that the thread's call is on; index: its
	 * position is 1 << index; 0: it is 0 ->
	 * values: 0 or a negative errno, is the thread dead?
	 */
	UVD_WIRE_REPLACE,
	/*
	 * flag: the call returns value; index: 1: close the number first -> values: processor time of the loan, in ns
	 */
	UVD_WIRE_RELEASE,
	UVD_WIRE_OPS
};

/* The files below /proc/TID that UVD_WIRE_OPEN opens. */
enum uvd_wire_file {
	UVD_WIRE_MEM, /* value: 1: for writing */
	UVD_WIRE_MAPS,
	UVD_WIRE_PAGEMAP,
	UVD_WIRE_AUXV,
	UVD_WIRE_LIMITS,
	UVD_WIRE_USER_NS, /* O_PATH */
	UVD_WIRE_FD, /* O_PATH; value: the descriptor's number */
	UVD_WIRE_FDINFO, /* value: the descriptor's number */
	/* The broker opens these for any thread, whether it waits or not. */
	UVD_WIRE_STATUS,
	UVD_WIRE_STAT,
	UVD_WIRE_COMM,
	UVD_WIRE_STATM,
	UVD_WIRE_OWNERS, /* not in /proc: uid_t[], what uvd_ns_owners() stores for the thread's user namespace */
	UVD_WIRE_FILES
};

enum uvd_wire_registered { UVD_WIRE_DEAD = 1 /* the thread is */, UVD_WIRE_EXECUTED = 2 /* the errno is REG_MR's */ };

struct uvd_wire_request {
	uint32_t version, op;
	int32_t tid;
	uint32_t index;
	int64_t value;
	uint32_t flag, pad;
	char name[UVD_WIRE_NAME];
	uint64_t counters[UVD_PORT_COUNTERS];
	struct uvd_reg_order reg;
};

struct uvd_wire_answer {
	uint32_t version, op;
	int32_t result; /* a negative errno: the answer has no descriptors */
	uint32_t num_fds;
	int64_t values[2];
};

/* A message's descriptors, in the first places; -1 in the others. */
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

/* Closes the descriptors, and sets all to -1. */
void uvd_wire_close(struct uvd_wire_fds *fds);

/*
 * ask() and answer() send, asked() and answered() receive. Each returns 0; -EPIPE: the peer is gone; -EPROTO: the
 * table does not allow the message received; -EMFILE: this process has no room for the message's descriptors, while
 * *request itself is valid; or another negative errno. Sent descriptors stay the caller's. Received ones become the
 * caller's; after an error they are closed. answer() does not wait: -EAGAIN: the peer does not read its answers.
 */
int uvd_wire_ask(int sock, const struct uvd_wire_request *request, const struct uvd_wire_fds *fds);
int uvd_wire_asked(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request, struct uvd_wire_fds *fds);
/* The same, also for operations whose request is followed by a device. Only the device's size has been checked. */
int uvd_wire_ask_with(int sock, const struct uvd_wire_request *request, const struct uvd_device_config *device);
int uvd_wire_asked_with(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request,
			struct uvd_device_config *device, struct uvd_wire_fds *fds);
int uvd_wire_answer(int sock, const struct uvd_wire_answer *answer, const struct uvd_wire_fds *fds);
int uvd_wire_answered(int sock, enum uvd_wire_op op, struct uvd_wire_answer *answer, struct uvd_wire_fds *fds);

#endif
