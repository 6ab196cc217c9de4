/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The daemon: an engine, its devices with a node each, the sysfs directory, the control socket, and the event loop. */
#ifndef UVD_DAEMON_H
#define UVD_DAEMON_H

struct uvd_options;

/* Can clients map the queues of a daemon's devices? For uvd_options_parse(). Returns 0 or a negative errno. */
int uvd_daemon_can_map(void);
/* Serves until a signal ends it. Returns the exit status; the log says why it is not 0. */
int uvd_daemon_main(const struct uvd_options *options);
/*
 * uverbsd --internal-facts: prints what an installer needs to know of this program and machine, a line each: `broker_version N`: a
 * broker of that version can start this program as its engine process; `adapter WHAT`: the machine has that RDMA adapter, beside which the
 * service is not started unasked. Returns the exit status.
 */
int uvd_daemon_facts(void);

#endif
