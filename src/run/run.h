/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * `uverbsctl run` provides devices to one process tree, without root and without a device in the kernel. A seccomp
 * filter sends the tree's opens, stats and device calls to the engine, a process that answers them.
 *
 *   launcher      the process that the user started: forwards signals, returns PROGRAM's exit status (launch.c)
 *   └ guardian    keeps a copy of the listener, and answers if the engine has died (guardian.c)
 *     └ engine    the devices; one thread for each listener (engine.c, serve.c)
 *       └ PROGRAM and its tree
 *
 * With --join one engine serves several process trees. A run that joins has no engine of its own: its PROGRAM is a
 * child of the guardian, which opens for the engine what only an ancestor may open (join.c, agent.c).
 */
#ifndef UVD_RUN_H
#define UVD_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <uverbsd/config.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "doorbell/doorbell.h"
#include "report/report.h"

/* Our own exit statuses: from 125 on the same as those of env(1), nohup(1) and timeout(1). */
enum { UVD_RUN_FINDINGS = 99, UVD_RUN_FAILED = 125, UVD_RUN_CANNOT_EXEC = 126, UVD_RUN_NOT_FOUND = 127 };

struct uvd_options;

struct uvd_run_options {
	const struct uvd_device_config *devices;
	unsigned int num_devices;
	const struct uvd_options *parsed; /* has the plug-ins */
	const char *join; /* NULL: an engine of its own */
	const char *trace; /* record all calls into this file, an absolute path; NULL: no */
	const char *pcap; /* write the soft engine's traffic into this file, an absolute path; NULL: no */
	const char *report; /* write a report into this file, an absolute path; "-": on stderr; NULL: no */
	enum uvd_report_format report_format;
	bool report_stacks; /* it names where objects were created */
	bool report_fails; /* exit with UVD_RUN_FINDINGS instead of 0 if it has findings */
	bool mount; /* mount the devices' folders in a mount namespace of PROGRAM's */
	enum uvd_doorbell_way doorbells;
	unsigned int busy_poll; /* how long, in us, the engine polls for PROGRAM's next call before it sleeps */
	struct uvd_ucap_names granted; /* User Capabilities that PROGRAM may open */
	struct uvd_account_limits limits; /* of the user; all process trees of an engine together */
	enum uvd_log_level log_level;
};

/*
 * Runs argv[0] with its arguments (NULL at the end). Returns its exit status, or one of the above after a message on
 * stderr.
 */
int uvd_run(const struct uvd_run_options *options, char **argv);

/*
 * Has the kernel refuse sockets of NETLINK_RDMA (EPROTONOSUPPORT) to this process, which has one thread, and to all that it starts: then libibverbs
 * reads sysfs. Sets no_new_privs if the process has no CAP_SYS_ADMIN in its user namespace. Returns 0 or a negative errno.
 */
int uvd_run_refuse_netlink(void);

/*
 * Finds the control socket of the runs that were started with --join NAME by this user. Returns false after a message
 * on stderr.
 */
bool uvd_run_find(const char *name, char path[PATH_MAX]);

/*
 * Does Yama forbid a process to access the memory of one that it started? Returns the reason as text, or NULL if it
 * does not. path: the file of Yama's ptrace_scope; privileged: the process has CAP_SYS_PTRACE.
 */
const char *uvd_run_yama_refusal(const char *path, bool privileged);

#endif
