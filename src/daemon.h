/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The daemon: an engine, its devices with a node each, the published tree, and the event loop. All of it belongs to the
 * main thread; the nodes' threads serve the clients.
 */
#ifndef UVD_DAEMON_H
#define UVD_DAEMON_H

#include <ev.h>
#include <jansson.h>
#include "objects/file.h"
#include "options.h"

struct uvd_control;
struct uvd_cuse;
struct uvd_grants;

struct uvd_daemon_node {
	struct uvd_cuse *cuse;
	struct uvd_device *dev;
	bool published;
};

struct uvd_daemon {
	const struct uvd_options *options;
	struct uvd_log *log;
	struct ev_loop *loop;
	struct ev_signal on_term, on_int, on_hup;
	struct ev_timer tick;
	struct ev_async on_lost;
	struct uvd_control *control;
	struct uvd_grants *grants;
	struct uvd_engine engine;
	bool have_engine, have_tree;
	struct uvd_daemon_node nodes[UVD_MAX_DEVICES];
	unsigned int num_nodes;
	int status; /* the exit status */
};

/* Sets everything up. false: it could not, the log says why; uvd_daemon_stop() follows in any case. */
bool uvd_daemon_start(struct uvd_daemon *d, const struct uvd_options *options);
/* Until a signal ends it. */
void uvd_daemon_run(struct uvd_daemon *d);
/* Removes tree and nodes, and frees everything. Where a thread does not come back, it exits the process. */
void uvd_daemon_stop(struct uvd_daemon *d);

/* The answer of the control socket (src/daemon_status.c). */
json_t *uvd_daemon_answer(void *daemon, const char *command, bool may_change);

#endif
