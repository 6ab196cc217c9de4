/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The messages between the processes of a run: of fixed size, over SOCK_SEQPACKET, with fds. */
#ifndef UVD_RUN_LINK_H
#define UVD_RUN_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include "options/options.h"
#include "run/file.h"
#include "run/filter.h"

enum uvd_run_kind {
	UVD_RUN_READY =
		1, /* engine to guardian to PROGRAM: the devices are there; root, pid_ns, outside, wire, net_ns */
	UVD_RUN_LISTENER, /* PROGRAM to guardian to engine, which gets all members; fds: listener, notif, agent */
	UVD_RUN_STARTED, /* PROGRAM to launcher; fds: its pidfd */
	UVD_RUN_ENDED, /* engine or guardian to launcher: PROGRAM has ended; status, stays */
	UVD_RUN_BYE, /* engine to guardian: the process tree has ended and is cleaned up; stays */
};

enum { UVD_RUN_LINK_FDS = 3 };

/* Folders of the run that are mounted in PROGRAM's mount namespace: the kernel carries out calls on their files. */
enum { UVD_RUN_MOUNTED_SYS = 1, /* /sys/class/infiniband* */ UVD_RUN_MOUNTED_DEV = 2 /* /dev/infiniband */ };

struct uvd_run_msg {
	enum uvd_run_kind kind;
	int status; /* ENDED: an exit status; LISTENER: PROGRAM's pid; the agent's reply: 0 or a negative errno */
	bool stays; /* ENDED: other processes of the tree live on; BYE: the engine serves other trees */
	uint64_t pid_ns; /* READY: the inode of the engine's pid namespace; 0: the kernel has none */
	struct uvd_wire_options wire; /* READY */
	uint64_t net_ns; /* READY: the inode of the engine's network namespace; 0: the kernel has none */
	bool outside; /* READY: the guardian has no number in that namespace, nor have its processes */
	bool chooses_ids; /* LISTENER: PROGRAM may choose the ids of new threads */
	bool receives; /* LISTENER: the guardian receives the calls, as only it knows the callers by their numbers: agent.c */
	unsigned int filters; /* LISTENER: seccomp filters that PROGRAM has */
	unsigned int mounted; /* LISTENER: UVD_RUN_MOUNTED_* */
	struct uvd_run_inode slash; /* LISTENER: PROGRAM's root */
	struct uvd_run_window windows[UVD_RUN_WINDOWS];
	struct uvd_ucap_names granted; /* LISTENER */
	unsigned int busy_poll; /* LISTENER */
	char root[PATH_MAX];
};

/* Returns 0 or a negative errno. The caller keeps its fds. */
int uvd_run_send(int sock, const struct uvd_run_msg *msg, const int *fds, unsigned int num_fds);
/*
 * Stores UVD_RUN_LINK_FDS fds, which are the caller's to close; -1 where fewer came. Returns 0 or a negative errno, and
 * then no fds: -EPIPE if the other end is closed, -EPROTO for a message of another size.
 */
int uvd_run_receive(int sock, struct uvd_run_msg *msg, int *fds);
/* Closes fds that another process sent, and that may be files of any kind, without waiting. Sets them to -1. */
void uvd_run_drop_fds(int fds[UVD_RUN_LINK_FDS]);

/* ---- agent.c: what only an ancestor of a process, or only a process of its pid namespace, can do ------------------- */

/*
 * The engine's side. name: "mem" and others as in struct uvd_proc, or "getfd/7" to duplicate the thread's fd 7, with
 * the tgid as flags. Returns an fd or a negative errno.
 */
int uvd_run_agent_open(int agent, pid_t tid, const char *name, int flags);
/*
 * Has the guardian receive a call, into the memory of notifications. Call it when the listener has one. Returns 0 or a negative
 * errno: -ENOENT, the caller was killed before; -EPIPE, there is no agent any more.
 */
int uvd_run_agent_recv(int agent);
struct uvd_run_notif;
/* The guardian's side: answers one request. Returns false if the engine has closed its end: no call waits for it then. */
bool uvd_run_agent_answer(int agent, int listener, struct uvd_run_notif *notif);
/* As kcmp(KCMP_VM), by the guardian: false if they do not share their memory, or if that cannot be learned. */
bool uvd_run_agent_same_memory(int agent, pid_t a, pid_t b);
/* Duplicates fd number `fd` of thread tid into this process. Returns an fd or a negative errno. */
int uvd_run_get_fd(pid_t tid, pid_t tgid, int fd);

#endif
