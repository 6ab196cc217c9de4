/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl device: unplugs a device, or plugs one in. */
#include "ask.h"
#include "../commands.h"
#include "options/options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char device_usage[] =
	"Usage: uverbsctl device [--control PATH] remove DEVICE\n"
	"       uverbsctl device [--control PATH] add DEVICE\n"
	"       uverbsctl device [--control PATH] add [OPTION...]\n"
	"\n"
	"  uverbsctl device remove uverbs0                  unplug it under its users\n"
	"  uverbsctl device add uverbs0                     plug it in again\n"
	"  uverbsctl device add --ports 2 --state down      one more, with these options\n"
	"\n"
	"Unplugs a device (hfi1_0, or uverbs0): its node and its sysfs entries go, programs that have it open get\n"
	"IBV_EVENT_DEVICE_FATAL, and every call of theirs fails with EIO. Or plugs one in: a device that was removed, or a\n"
	"new one with the options that describe a device to uverbsd (`uverbsctl run --help`). Prints its two names.\n"
	"Within `uverbsctl run` these are the run's own devices, else those of uverbsd.\n"
	"\n"
	"  --control PATH    the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n";

/* Joins the arguments into one command line. Returns NULL if there is no memory. */
static char *command_join(int argc, char **argv)
{
	char *line = NULL, *longer;

	for (int i = 0; i < argc; i++) {
		if (asprintf(&longer, "%s %s", line ? line : "device", argv[i]) < 0)
			longer = NULL;
		free(line);
		line = longer;
		if (!line)
			return NULL;
	}
	return line;
}

static int device_ask(const char *control, int argc, char **argv)
{
	char *command = command_join(argc, argv);
	json_t *answer = command ? uvd_ask("device", control, command) : NULL;
	const char *absent;
	int status = answer ? 0 : 1;

	if (answer)
		printf("%s %s\n", json_string_value(json_object_get(answer, "device")),
		       json_string_value(json_object_get(answer, "node")));
	absent = json_string_value(json_object_get(answer, "absent"));
	if (absent)
		fprintf(stderr,
			"uverbsctl device: no %s: uverbsd has no CAP_NET_RAW, unless it runs with `--separate no`\n",
			absent);
	json_decref(answer);
	free(command);
	return status;
}

/* Parses the options here, too: the daemon's answer does not say what is wrong with them. */
static bool makes_sense(int argc, char **argv)
{
	const struct uvd_option_machine unknown = {};
	const struct uvd_option_place place = { .machine = &unknown };
	struct uvd_options o;
	bool fits;

	for (int i = 0; i < argc; i++)
		if (!*argv[i] || strpbrk(argv[i], " \n")) {
			fprintf(stderr, "uverbsctl device: `%s`: blanks are not allowed\n", argv[i]);
			return false;
		}
	if (argc == 2 && argv[1][0] != '-' && (!strcmp(argv[0], "remove") || !strcmp(argv[0], "add")))
		return true;
	if (argc < 1 || strcmp(argv[0], "add")) {
		fputs(device_usage, stderr);
		return false;
	}
	argv[0] = "uverbsctl device add";
	fits = !uvd_options_parse_device(&o, &place, argc, argv);
	argv[0] = "add";
	if (fits)
		uvd_options_free(&o);
	return fits;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

int uvd_cmd_device(int argc, char **argv)
{
	const char *control;
	int status, first = uvd_ask_options(argc, argv, device_usage, &control, &status);

	if (first < 0)
		return status;
	argc -= first;
	argv += first;
	if (wants_help(argc, argv)) {
		fputs(device_usage, stdout);
		return 0;
	}
	return makes_sense(argc, argv) ? device_ask(control, argc, argv) : 2;
}
