/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl port: takes a port down or up. */
#include "ask.h"
#include "../commands.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char port_usage[] =
	"Usage: uverbsctl port [--control PATH] DEVICE PORT up|down\n"
	"\n"
	"  uverbsctl port hfi1_0 1 down                take port 1 down\n"
	"  uverbsctl port hfi1_0 1 up                  and up again\n"
	"  uverbsctl run -- sh -c 'uverbsctl port rxe0 1 down; ibv_devinfo'\n"
	"\n"
	"Takes a port of a device (hfi1_0, or uverbs0) down, or up again. Programs see its state change, and an "
	"event.\n"
	"Within `uverbsctl run` it is the run's own device, else that of uverbsd.\n"
	"\n"
	"  --control PATH    the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n";

int uvd_cmd_port(int argc, char **argv)
{
	const char *control;
	json_t *answer;
	char *command;
	int status, first = uvd_ask_options(argc, argv, port_usage, &control, &status);

	if (first < 0)
		return status;
	argv += first;
	if (argc - first != 3 || (strcmp(argv[2], "up") && strcmp(argv[2], "down")) ||
	    argv[1][strspn(argv[1], "0123456789")]) {
		fputs(port_usage, stderr);
		return 2;
	}
	if (asprintf(&command, "port %s %s %s", argv[0], argv[1], argv[2]) < 0)
		return 1;
	answer = uvd_ask("port", control, command);
	status = answer ? 0 : 1;
	json_decref(answer);
	free(command);
	return status;
}
