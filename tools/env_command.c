/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl env: prints the environment in which a shell's programs find the daemon's devices. */
#include "commands.h"
#include "control/control.h"
#include "sysfs/sysfs.h"
#include "util/util.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/log.h>

/* Asks the daemon for its sysfs directory. */
static bool ask_sysfs(const char *control, char *dir, size_t size)
{
	char *line = uvd_control_ask(control, "status");
	json_t *status = line ? json_loads(line, 0, NULL) : NULL;
	const char *sysfs = json_string_value(json_object_get(status, "sysfs"));

	if (sysfs)
		snprintf(dir, size, "%s", sysfs);
	else if (!line)
		uvd_control_complain("env", control);
	else
		fprintf(stderr, "uverbsctl env: %s\n",
			json_string_value(json_object_get(status, "error"))
				?: "the daemon's answer has no sysfs directory");
	json_decref(status);
	free(line);
	return sysfs;
}

/*
 * Warns if the kernel answers on NETLINK_RDMA. libibverbs asks there first and takes even an empty answer as complete,
 * so it never scans sysfs. Opening the socket loads ib_core if the kernel has that module.
 */
static void warn_netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0)
		return;
	close(fd);
	fprintf(stderr,
		"uverbsctl env: warning: the kernel answers NETLINK_RDMA, so libibverbs will see the kernel's RDMA devices and\n"
		"not these. Where there is no real adapter: put `alias net-pf-16-proto-20 off` in /etc/modprobe.d/uverbsd.conf and\n"
		"run `modprobe -r ib_uverbs ib_core` (or reboot). Or start the program with `uverbsctl run`.\n");
}

static bool write_file(const char *path, const char *fmt, unsigned int id)
{
	char text[64];
	int fd = open(path, O_WRONLY | O_CLOEXEC), len;
	bool ok;

	len = snprintf(text, sizeof(text), fmt, id, id);
	ok = fd >= 0 && write(fd, text, len) == len;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Unshares the mount namespace. Without root it takes a user namespace, too, with the same user and group id inside. */
static bool private_mounts(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWNS) &&
	    (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNS) || !write_file("/proc/self/setgroups", "deny", 0) ||
	     !write_file("/proc/self/gid_map", "%u %u 1", gid) || !write_file("/proc/self/uid_map", "%u %u 1", uid)))
		return false;
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int run_mounted(const char *sysfs, char **command)
{
	const char *shell = getenv("SHELL");
	char *own[] = { (char *)(shell && *shell ? shell : "/bin/sh"), NULL };
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "uverbsctl env", UVD_WARN);

	if (!private_mounts()) {
		fprintf(stderr, "uverbsctl env: no mount namespace: %s (it needs root, or user namespaces)\n",
			uvd_errno_name(errno));
		return 1;
	}
	if (uvd_sysfs_overlay(sysfs, log))
		return 1;
	setenv("SYSFS_PATH", sysfs, 1);
	if (!*command)
		command = own;
	execvp(*command, command);
	fprintf(stderr, "uverbsctl env: %s: %s\n", *command, uvd_errno_name(errno));
	return errno == ENOENT ? 127 : 126;
}

/* Prints the text in single quotes, escaped for a shell. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

struct env_options {
	bool mounts;
	const char *sysfs;
};

static int env_command(const struct uvd_args *args)
{
	const struct env_options *o = args->options;
	char sysfs[PATH_MAX] = "";

	if (args->num_words && !o->mounts)
		return uvd_args_wrong(args, "COMMAND `%s` is for --mount", args->words[0]);
	if (o->sysfs)
		snprintf(sysfs, sizeof(sysfs), "%s", o->sysfs);
	else if (!ask_sysfs(args->control, sysfs, sizeof(sysfs)))
		return 1;
	warn_netlink();
	if (o->mounts)
		return run_mounted(sysfs, args->words);
	fputs("export SYSFS_PATH=", stdout);
	print_quoted(sysfs);
	/* The comment comes last: eval of an unquoted $(...) makes one line of both, and must still set the variable. */
	fputs("\n# ibstat, ibstatus and others that read /sys/class themselves: uverbsd --sysfs overlay, or uverbsctl env --mount\n",
	      stdout);
	return 0;
}

const struct uvd_command uvd_command_env = {
	.name = "env",
	.purpose = "print what a shell must export to find the daemon's devices",
	.synopses = (const char *const[]){ "eval \"$(uverbsctl env [OPTION...])\"",
					   "uverbsctl env --mount [OPTION...] [-- COMMAND [ARG...]]", NULL },
	.examples =
		(const struct uvd_help_example[]){
			{ "eval \"$(uverbsctl env)\"", "for this shell and all that it starts" },
			{ "uverbsctl env --mount -- ibstat", "one program that reads /sys/class itself" },
			{ "uverbsctl env --mount", "a shell for such programs" },
			{},
		},
	.text =
		(const char *const[]){
			"Prints what a shell needs for its programs to find the devices of uverbsd. ibstat, ibstatus and others read "
			"/sys/class themselves: for these start uverbsd with --sysfs overlay, or the programs with --mount.",
			NULL },
	.words = "[COMMAND [ARG...]]",
	.stops = true,
	.takes = UVD_TAKES_CONTROL,
	.options =
		(const struct uvd_command_option[]){
			{ "mount",
			  .help = "run COMMAND (or a shell) where /sys/class has them too, for programs with that path built in",
			  UVD_STORE(struct env_options, mounts, FLAG) },
			{ "sysfs", .arg = "DIR", .help = "the daemon's tree (default: what the daemon says)",
			  .values = UVD_VALUES_FOLDER, UVD_STORE(struct env_options, sysfs, TEXT) },
			{},
		},
	.size = sizeof(struct env_options),
	.exits =
		(const struct uvd_command_exit[]){
			{ "0", "success" },
			{ "1", "the daemon does not answer, or there can be no mount namespace" },
			{ "2", "the command line is wrong" },
			{ "126, 127", "COMMAND cannot be executed, or is not found" },
			{},
		},
	.run = env_command,
};
