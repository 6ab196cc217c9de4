/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The process that becomes PROGRAM. */
#include <cap-ng.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/launch.h"
#include "util/util.h"

static void program_fail(int status, const char *what, int err) __attribute__((noreturn));

static void program_fail(int status, const char *what, int err)
{
	fprintf(stderr, "uverbsctl run: %s: %s\n", what, uvd_errno_name(err));
	_exit(status);
}

/*
 * May PROGRAM choose thread ids (set_tid of clone3(), /proc/sys/kernel/ns_last_pid)? Under no_new_privs a process
 * without the capability can never gain it.
 */
static bool chooses_ids(void)
{
	capng_get_caps_process();
	return capng_have_capability(CAPNG_PERMITTED, CAP_SYS_ADMIN) ||
	       capng_have_capability(CAPNG_PERMITTED, CAP_CHECKPOINT_RESTORE);
}

static int program_install_filter(struct uvd_run_launch *l)
{
	int listener = uvd_run_filter_install(&l->filter);

	if (listener == -EBUSY)
		program_fail(UVD_RUN_FAILED,
			     "these processes have a seccomp listener already (a run inside a run, or a container's)",
			     EBUSY);
	if (listener == -EINVAL)
		program_fail(UVD_RUN_FAILED, "cannot set the seccomp filter: is this kernel older than 5.19?", EINVAL);
	if (listener < 0)
		program_fail(UVD_RUN_FAILED, "cannot set the seccomp filter", -listener);
	return listener;
}

void uvd_run_program_main(struct uvd_run_launch *l)
{
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS], listener, pidfd;
	char sys[PATH_MAX + 8], control[PATH_MAX + 16];

	if (uvd_run_receive(l->program_end, &msg, fds))
		_exit(UVD_RUN_FAILED); /* the process that failed has said why */
	snprintf(sys, sizeof(sys), "%s/sys", msg.root);
	setenv("SYSFS_PATH", sys, 1);
	snprintf(control, sizeof(control), "%s/" UVD_RUN_CONTROL, msg.root);
	setenv("UVERBSD_CONTROL", control, 1);
	pidfd = syscall(SYS_pidfd_open, getpid(), 0);
	msg.kind = UVD_RUN_STARTED;
	uvd_run_send(l->up, &msg, &pidfd, pidfd >= 0);
	close(pidfd);
	msg.chooses_ids = chooses_ids();
	msg.mounted = 0;
	if (l->options->mount && uvd_run_mount(msg.root, &msg.mounted))
		_exit(UVD_RUN_FAILED);
	/* From here on each open() of ours waits for the engine. */
	listener = program_install_filter(l);
	msg.kind = UVD_RUN_LISTENER;
	msg.status = getpid();
	if (uvd_run_send(l->program_end, &msg, &listener, 1))
		_exit(UVD_RUN_FAILED);
	close(listener); /* only guardian and engine keep it: a copy in the tree would keep it alive without them */
	sigprocmask(SIG_SETMASK, &l->mask, NULL);
	execvp(l->argv[0], l->argv);
	program_fail(errno == ENOENT ? UVD_RUN_NOT_FOUND : UVD_RUN_CANNOT_EXEC, l->argv[0], errno);
}
