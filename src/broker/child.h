/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's processes that may have to wait for a client: one for each socket of the engine process. Internal. */
#ifndef UVD_BROKER_CHILD_H
#define UVD_BROKER_CHILD_H

#include "broker/wire.h"

struct uvd_log;
struct uvd_nodes;
struct uvd_ways;

/* Each serves the socket until the other side closes it, with no more than the capabilities that it needs. */
void uvd_questions_serve(int sock, const struct uvd_nodes *nodes);
void uvd_loan_serve(int sock, const struct uvd_nodes *nodes, struct uvd_ways *ways);

/* ---- children.c: the list of them, in the broker ----------------------------------------------------------------------- */

enum {
	UVD_CHILDREN_OF_KIND = 256, /* sockets of the engine process: loans take no question's place */
	UVD_CHILDREN_MAX = 2 * UVD_CHILDREN_OF_KIND, /* questions, then loans */
};

struct uvd_children {
	struct uvd_child {
		pid_t pid; /* 0: free */
		int sock; /* a copy of its own */
		uint64_t kill_at; /* ms; 0: never */
	} list[UVD_CHILDREN_MAX];
};

/* Starts one that serves the socket, which stays the caller's. 0, -EAGAIN: there are too many, or another negative errno. */
int uvd_children_start(struct uvd_children *c, enum uvd_wire_kind kind, int sock, struct uvd_nodes *nodes,
		       struct uvd_ways *ways);
/* This process has ended. */
void uvd_children_ended(struct uvd_children *c, pid_t pid);
/* Kills loans that take too long. */
void uvd_children_check(struct uvd_children *c, struct uvd_log *log);
/* The engine process is gone, or as good as: each child finds its socket closed, also where a corpse still has the other end. */
void uvd_children_hang_up(struct uvd_children *c);
/* In a new engine process. */
void uvd_children_close(struct uvd_children *c);

/*
 * sandbox.c. Drops the capabilities that the role does not need, and for QUESTIONS loads a filter of system calls. Returns false if
 * that fails: the process must not go on.
 */
enum uvd_role { UVD_ROLE_BROKER, UVD_ROLE_QUESTIONS, UVD_ROLE_LOAN, UVD_ROLE_ENGINE };
bool uvd_role_take(enum uvd_role role);

#endif
