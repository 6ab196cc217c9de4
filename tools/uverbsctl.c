/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl: runs the command that argv[1] names. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "util/util.h"

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

static int uverbsctl_unknown(const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };
	const struct uvd_command_row *row;
	char names[UVD_NEAREST_TEXT];

	for (unsigned int i = 0; (row = uvd_command_at(i)); i++)
		if (row->command && !row->command->is_hidden)
			uvd_nearest_add(&nearest, row->command->name);
	fprintf(stderr, "uverbsctl: unknown command `%s`; the nearest are %s; see `uverbsctl --help`\n", word,
		uvd_nearest_text(&nearest, names));
	return 2;
}

/* `uverbsctl help`: as --help of a command. */
static int uverbsctl_help(int argc, char **argv)
{
	char *words[] = { NULL, "--help", NULL };
	const struct uvd_command *command = argc > 2 ? uvd_command_find(argv[2]) : NULL;

	if (argc > 2 && !command)
		return uverbsctl_unknown(argv[2]);
	if (command)
		return uvd_command_main(command, 2, words);
	uvd_command_help_all(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	const struct uvd_command *command;
	const int ret = uvd_fd_open_standard();

	if (ret) {
		fprintf(stderr, "uverbsctl: /dev/null: %s: standard descriptors are closed, and cannot be opened\n",
			uvd_errno_name(ret));
		return 1;
	}
	if (argc < 2) {
		uvd_command_help_all(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return uverbsctl_end(NULL, uverbsctl_help(argc, argv));
	if (!strcmp(argv[1], "--version"))
		return uverbsctl_end(NULL, printf("uverbsctl %s\n", UVD_VERSION) < 0);
	argv = uvd_old_spelling_rewrite(&argc, argv);
	command = uvd_command_find(argv[1]);
	if (!command)
		return uverbsctl_unknown(argv[1]);
	return uverbsctl_end(command->name, uvd_command_main(command, argc - 1, argv + 1));
}
