/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl: runs the subcommand that argv[1] names. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "util/util.h"

#define COMMAND_ROW(name, function, what) { name, uvd_cmd_##function, what },
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = { UVD_COMMANDS(COMMAND_ROW) };

static int uverbsctl_usage(FILE *to, int status)
{
	fputs("Usage: uverbsctl COMMAND [OPTION...]\n"
	      "\n"
	      "  uverbsctl run -- ibv_devinfo         a program with a device of its own\n"
	      "  uverbsctl status                     what the daemon serves\n"
	      "  uverbsctl device remove uverbs0      unplug a device\n"
	      "\n"
	      "Commands:\n",
	      to);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].what);
	fprintf(to, "\n`uverbsctl COMMAND --help` tells more, `uverbsctl --version` the version.\n");
	return status;
}

/* Returns the exit status of a command, or 1 after a message if its output was not all written. */
static int uverbsctl_end(const char *command, int status)
{
	/* fflush() tries again to write what could not be written before. */
	const bool fails = fflush(stdout);

	if (!fails && !ferror(stdout))
		return status;
	fprintf(stderr, "uverbsctl%s%s: cannot write all of the output%s%s\n", command ? " " : "",
		command ? command : "", fails ? ": " : "", fails ? uvd_errno_name(errno) : "");
	return status ? status : 1;
}

int main(int argc, char **argv)
{
	struct uvd_nearest nearest = { .wrong = argc > 1 ? argv[1] : "" };
	char names[UVD_NEAREST_TEXT], name[32];
	const int ret = uvd_fd_open_standard();

	if (ret) {
		fprintf(stderr, "uverbsctl: /dev/null: %s: standard descriptors are closed, and cannot be opened\n",
			uvd_errno_name(ret));
		return 1;
	}
	if (argc < 2)
		return uverbsctl_usage(stderr, 2);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return uverbsctl_end(NULL, uverbsctl_usage(stdout, 0));
	if (!strcmp(argv[1], "--version"))
		return uverbsctl_end(NULL, printf("uverbsctl %s\n", UVD_VERSION) < 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		/* Messages of getopt_long() and of the options begin with the command's argv[0]. */
		snprintf(name, sizeof(name), "uverbsctl %s", commands[i].name);
		argv[1] = name;
		return uverbsctl_end(commands[i].name, commands[i].run(argc - 1, argv + 1));
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		uvd_nearest_add(&nearest, commands[i].name);
	fprintf(stderr, "uverbsctl: unknown command `%s`; the nearest are %s; see `uverbsctl --help`\n", argv[1],
		uvd_nearest_text(&nearest, names));
	return 2;
}
