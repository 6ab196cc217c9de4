/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the processes of a run say to each other: fixed messages over SOCK_SEQPACKET, with fds. */
#ifndef UVD_RUN_LINK_H
#define UVD_RUN_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include "run/filter.h"

enum uvd_run_kind {
	UVD_RUN_HELLO = 1, /* guardian to engine: is the device there? */
	UVD_RUN_READY, /* engine to guardian to PROGRAM: it is; root */
	UVD_RUN_LISTENER, /* PROGRAM to guardian to engine: windows, chooses_ids; fds: listener, notif, agent */
	UVD_RUN_STARTED, /* PROGRAM to launcher: fds: its pidfd */
	UVD_RUN_ENDED, /* whoever waited for PROGRAM to launcher: status, stays */
	UVD_RUN_BYE, /* engine to guardian: the tree has ended, all is clean; stays: the engine has other trees */
};

enum { UVD_RUN_LINK_FDS = 3 };

struct uvd_run_msg {
	enum uvd_run_kind kind;
	int status; /* as an exit status */
	bool stays; /* ENDED: others of the tree live on, and are served */
	bool chooses_ids; /* LISTENER: PROGRAM has the right to give new threads the ids that it likes */
	struct uvd_run_window windows[UVD_RUN_WINDOWS];
	struct uvd_ucap_names granted; /* LISTENER */
	unsigned int busy_poll; /* LISTENER */
	char root[PATH_MAX];
};

/* 0 or a negative errno. Fds that are not sent stay the caller's, as those that are. */
int uvd_run_send(int sock, const struct uvd_run_msg *msg, const int *fds, unsigned int num_fds);
/* fds: UVD_RUN_LINK_FDS of them, -1 where fewer came. -EPIPE: the other end is gone. */
int uvd_run_receive(int sock, struct uvd_run_msg *msg, int *fds);

/* ---- agent.c: what only an ancestor of a process may open -------------------------------------------------------- */

/* The engine's side: an fd or a negative errno. "mem" and the like as in struct uvd_proc; "getfd/7" copies the fd itself. */
int uvd_run_agent_open(int agent, pid_t tid, const char *name, int flags);
/* The guardian's side: answers one request. False: the engine is gone. */
bool uvd_run_agent_answer(int agent);
/* Copies fd number fd of thread tid. An fd or a negative errno. */
int uvd_run_get_fd(pid_t tid, pid_t tgid, int fd);

#endif
