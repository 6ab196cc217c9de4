/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Programs that find the devices of the daemon, by `uverbsctl exec` and `uverbsctl env`. */
#ifndef UVD_TOOLS_EXEC_H
#define UVD_TOOLS_EXEC_H

#include <limits.h>
#include <stdbool.h>

/* Asks the daemon for its sysfs directory. who: the command. Returns false after a message. */
bool uvd_exec_ask_sysfs(const char *who, const char *control, char dir[PATH_MAX]);

struct uvd_exec {
	const char *who; /* the command */
	const char *control, *sysfs; /* of the daemon */
	bool must_mount; /* else, where mounts are not allowed, programs that read /sys/class themselves do not find the devices */
};
/*
 * Executes a program, in the place of this one, that finds the daemon's devices and no others. Returns an exit status as `run`
 * has them, after a message.
 */
int uvd_exec_program(const struct uvd_exec *exec, char **argv);

#endif
