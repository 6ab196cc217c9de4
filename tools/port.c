/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl port: takes a port down, or up again. */
#include "commands.h"
#include "control.h"
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: uverbsctl port [--control PATH] DEVICE PORT up|down\n"
	"\n"
	"Takes a port of a device (hfi1_0, or uverbs0) down, or up again. Programs see its state change, and an "
	"event.\n"
	"Within `uverbsctl run` it is the run's own device, else that of uverbsd.\n"
	"\n"
	"  --control PATH    the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n";

static int ask(const char *control, const char *device, const char *port, const char *state)
{
	const char *error, *problem = NULL;
	json_t *answer;
	char *line, *command;

	if (asprintf(&command, "port %s %s %s", device, port, state) < 0)
		return 1;
	line = uvd_control_ask(control, command);
	answer = line ? json_loads(line, 0, NULL) : NULL;
	error = json_string_value(json_object_get(answer, "error"));
	if (!answer)
		problem = strerror(errno);
	if (problem)
		fprintf(stderr, "uverbsctl port: nobody answers on %s: %s\n", control, problem);
	else if (error)
		fprintf(stderr, "uverbsctl port: %s\n", error);
	json_decref(answer);
	free(line);
	free(command);
	return problem || error ? 1 : 0;
}

int uvd_cmd_port(int argc, char **argv)
{
	static const struct option longs[] = { { "control", required_argument, NULL, 'c' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL } };
	const char *control = getenv("UVERBSD_CONTROL");
	int c;

	if (!control || !*control)
		control = "/run/uverbsd/control";
	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0) {
		switch (c) {
		case 'c':
			control = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	argv += optind;
	if (argc - optind != 3 || (strcmp(argv[2], "up") && strcmp(argv[2], "down")) ||
	    argv[1][strspn(argv[1], "0123456789")]) {
		fputs(usage, stderr);
		return 2;
	}
	return ask(control, argv[0], argv[1], argv[2]);
}
