/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl env: prints the environment in which a shell's programs find the daemon's devices. */
#include "commands.h"
#include "exec.h"
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
		"run `modprobe -r ib_uverbs ib_core` (or reboot). Or start programs by `uverbsctl exec -- PROGRAM`.\n");
}

/* A command, or a shell, as `exec` does, but only with the mounts. */
static int env_execute(const char *control, const char *sysfs, char **command)
{
	const struct uvd_exec exec = { .who = "env", .control = control, .sysfs = sysfs, .must_mount = true };
	const char *shell = getenv("SHELL");
	char *own[] = { (char *)(shell && *shell ? shell : "/bin/sh"), NULL };

	return uvd_exec_program(&exec, *command ? command : own);
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
	else if (!uvd_exec_ask_sysfs("env", args->control, sysfs))
		return 1;
	if (o->mounts)
		return env_execute(args->control, sysfs, args->words);
	warn_netlink();
	fputs("export SYSFS_PATH=", stdout);
	print_quoted(sysfs);
	/* The comment comes last: eval of an unquoted $(...) makes one line of both, and must still set the variable. */
	fputs("\n# ibstat, ibstatus and others that read /sys/class themselves: uverbsd --sysfs overlay, or uverbsctl exec\n",
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
			"Prints what a shell needs for its programs to find the devices of uverbsd, where the kernel has no RDMA devices. "
			"ibstat, ibstatus and others read /sys/class themselves: for these start uverbsd with --sysfs overlay, or them by "
			"`uverbsctl exec`.",
			NULL },
	.words = "[COMMAND [ARG...]]",
	.stops = true,
	.takes = UVD_TAKES_CONTROL,
	.options =
		(const struct uvd_command_option[]){
			{ "mount",
			  .help = "run COMMAND (or a shell) as `uverbsctl exec` does, but fail where mounts are not allowed",
			  UVD_STORE(struct env_options, mounts, FLAG) },
			{ "sysfs", .arg = "DIR", .help = "the daemon's tree (default: what the daemon says)",
			  .values = UVD_VALUES_FOLDER, UVD_STORE(struct env_options, sysfs, TEXT) },
			{},
		},
	.size = sizeof(struct env_options),
	.exits =
		(const struct uvd_command_exit[]){
			{ "0", "success" },
			{ "1", "the daemon does not answer" },
			{ "2", "the command line is wrong" },
			{ "125", "there can be no mount namespace" },
			{ "126, 127", "COMMAND cannot be executed, or is not found" },
			{},
		},
	.run = env_command,
};
