/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's loop (serve.c), and the requests that it serves itself (requests.c). */
#ifndef UVD_BROKER_LOOP_H
#define UVD_BROKER_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/queues.h"
#include "broker/serve.h"
#include "broker/waiting.h"
#include "broker/way.h"

enum {
	MAX_STARTS = 5, /* of engine processes within a minute */
	MAX_ABANDONED = 3, /* engine processes that are dead, and cannot exit */
};

struct broker {
	const struct uvd_broker_config *config;
	int sock, signals;
	sigset_t before; /* the signal mask that an engine process gets */
	pid_t engine;
	int engine_status; /* of waitpid(); valid if engine is 0 */
	bool ready, restart; /* the engine process has said that it is ready; it has asked for another one */
	bool dead; /* its first thread has ended, or it is killed */
	bool killed; /* by us */
	uint64_t end_by; /* when the engine process must have ended, in ms; 0: it may go on */
	bool hup; /* SIGHUP has come, and was not passed on */
	bool asked; /* by SIGTERM or SIGINT, to end the broker itself */
	uint64_t check_at; /* when adapters are looked for again, in ms */
	uint64_t starts[MAX_STARTS]; /* ms */
	unsigned int num_starts;
	pid_t abandoned[MAX_ABANDONED]; /* 0: free */
	enum uvd_log_level least_level, level; /* the broker's own at its start, and what engine processes log now */
	struct uvd_nodes *nodes;
	const struct uvd_nodes *view; /* the same for children */
	struct uvd_ways ways;
	struct uvd_queue_files queues; /* of the engine process that runs */
	struct uvd_children children;
};

/*
 * requests.c: receives and answers one request. Returns 0; -EPIPE: the engine process has closed its socket; another negative
 * errno: it breaks the protocol, or does not read its answers.
 */
int uvd_broker_answer(struct broker *b);
/* serve.c: passes SIGHUP on, if there was one, once the engine process has a handler. */
void uvd_broker_pass_hup(struct broker *b);
/* serve.c: serves UVD_WIRE_RESTART. */
int uvd_broker_restart(struct broker *b);

#endif
