/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl exec: executes a program that finds the devices of the daemon, whatever RDMA devices the kernel has.
 *
 * libibverbs asks the kernel by netlink first, and reads sysfs only if it cannot: so a filter refuses that socket, and SYSFS_PATH names the
 * daemon's directory. Other programs have /sys/class and /dev/infiniband/rdma_cm built in: for those it is mounted there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "commands.h"
#include "control/control.h"
#include "exec.h"
#include "run/run.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

#define NODES "/dev/infiniband"
#define CM_NODE NODES "/rdma_cm"

/* ---- what the daemon says ------------------------------------------------------------------------------------------ */

bool uvd_exec_ask_sysfs(const char *who, const char *control, char dir[PATH_MAX])
{
	char *line = uvd_control_ask(control, "status");
	const int err = errno;
	json_t *status = uvd_control_parse(line);
	const char *sysfs = json_string_value(json_object_get(status, "sysfs"));

	if (sysfs && !strcmp(json_string_value(json_object_get(status, "transport")) ?: "", "run")) {
		fprintf(stderr,
			"uverbsctl %s: %s is of a `uverbsctl run`, whose programs find its devices as they are\n", who,
			control);
		sysfs = NULL;
	} else if (sysfs) {
		snprintf(dir, PATH_MAX, "%s", sysfs);
	} else if (!line) {
		uvd_control_complain(who, control);
		if (err == ENOENT || err == ECONNREFUSED)
			fprintf(stderr,
				"uverbsctl %s: start it, as by `systemctl start uverbsd`, or give the program a device of its own: "
				"`uverbsctl run -- PROGRAM`\n",
				who);
	} else {
		fprintf(stderr, "uverbsctl %s: %s\n", who,
			json_string_value(json_object_get(status, "error"))
				?: "the daemon's answer has no sysfs directory");
	}
	json_decref(status);
	free(line);
	return sysfs;
}

/* ---- the node of the connection manager ---------------------------------------------------------------------------- */

/* Returns the number of the daemon's rdma_cm, or 0: it has none. */
static dev_t exec_cm_number(const char *sysfs)
{
	unsigned int major_, minor_;
	char path[PATH_MAX + 32];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/class/misc/rdma_cm/dev", sysfs);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fscanf(f, "%u:%u", &major_, &minor_);
	fclose(f);
	return n == 2 ? makedev(major_, minor_) : 0;
}

/* Finds the node with this number. */
static bool exec_find_node(dev_t number, char path[PATH_MAX])
{
	DIR *list = opendir(NODES);
	bool found = false;
	struct dirent *e;
	struct stat st;

	while (list && !found && (e = readdir(list))) {
		found = !fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISCHR(st.st_mode) &&
			st.st_rdev == number;
		if (found)
			snprintf(path, PATH_MAX, NODES "/%s", e->d_name);
	}
	if (list)
		closedir(list);
	return found;
}

/* Is another node, the kernel's, where programs open rdma_cm, while the daemon has one elsewhere? */
static bool exec_cm_is_elsewhere(const char *sysfs, char path[PATH_MAX])
{
	const dev_t number = exec_cm_number(sysfs);
	struct stat st;

	return number && !stat(CM_NODE, &st) && st.st_rdev != number && exec_find_node(number, path);
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

/* Mounts the devices where programs look for them that do not ask for SYSFS_PATH. */
static int exec_mount(const struct uvd_exec *exec, struct uvd_sysfs_why *why)
{
	char node[PATH_MAX];
	int err = uvd_sysfs_namespace(why) ?: uvd_sysfs_mount(exec->sysfs, true, why);

	if (!err && exec_cm_is_elsewhere(exec->sysfs, node))
		err = uvd_sysfs_bind(node, CM_NODE, why);
	return err;
}

int uvd_exec_program(const struct uvd_exec *exec, char **argv)
{
	struct uvd_sysfs_why why;
	int err = exec_mount(exec, &why);

	if (err)
		fprintf(stderr, "uverbsctl %s: %s%s\n", exec->who,
			exec->must_mount
				? ""
				: "warning: programs that read /sys/class themselves, such as ibstat, and, beside the kernel's "
				  "rdma_cm, librdmacm do not find the devices: ",
			why.text);
	if (err && exec->must_mount)
		return UVD_RUN_FAILED;
	err = uvd_run_refuse_netlink();
	if (err) {
		fprintf(stderr, "uverbsctl %s: cannot set a seccomp filter: %s\n", exec->who, uvd_errno_name(-err));
		return UVD_RUN_FAILED;
	}
	setenv("SYSFS_PATH", exec->sysfs, 1);
	setenv("UVERBSD_CONTROL", exec->control, 1);
	execvp(*argv, argv);
	err = errno;
	fprintf(stderr, "uverbsctl %s: %s: %s\n", exec->who, *argv, uvd_errno_name(err));
	return err == ENOENT ? UVD_RUN_NOT_FOUND : UVD_RUN_CANNOT_EXEC;
}

static int exec_command(const struct uvd_args *args)
{
	char sysfs[PATH_MAX];
	const struct uvd_exec exec = { .who = "exec", .control = args->control, .sysfs = sysfs };

	return uvd_exec_ask_sysfs(exec.who, exec.control, sysfs) ? uvd_exec_program(&exec, args->words)
								 : UVD_RUN_FAILED;
}

const struct uvd_command uvd_command_exec = {
	.name = "exec",
	.purpose = "run a program that finds the daemon's devices alone",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl exec -- ibv_devinfo", "the daemon's devices, and no others" },
			{ "uverbsctl exec -- ibstat", "also for programs that read /sys/class themselves" },
			{ "uverbsctl exec -- bash", "a shell for several programs" },
			{},
		},
	.text =
		(const char *const[]){
			"Executes PROGRAM where it finds the devices of uverbsd, and those only, whatever RDMA devices the kernel has. It needs "
			"no root. For an ordinary user set-user-ID programs such as sudo give no rights in there.",
			NULL },
	.words = "PROGRAM [ARG...]",
	.stops = true,
	.takes = UVD_TAKES_CONTROL,
	.exits =
		(const struct uvd_command_exit[]){
			{ "that of PROGRAM", "PROGRAM has ended" },
			{ "2", "the command line is wrong" },
			{ "125",
			  "the daemon does not answer, or the kernel does not let PROGRAM be kept from its own devices" },
			{ "126, 127", "PROGRAM cannot be executed, or is not found" },
			{},
		},
	.run = exec_command,
};
