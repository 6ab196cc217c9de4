/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl port: takes a port down or up. */
#include "ask.h"
#include "../commands.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int port_command(const struct uvd_args *args)
{
	const char *device = args->device ? args->device : args->words[0];
	const char *port = args->words[args->num_words - 1];
	json_t *answer;
	char *command;
	int status;

	if (port[strspn(port, "0123456789")])
		return uvd_args_wrong(args, "`%s` is not the number of a port", port);
	if (asprintf(&command, "port %s %s %s", device, port, args->verb->name) < 0)
		return 1;
	answer = uvd_ask("port", args->control, command);
	status = answer ? 0 : 1;
	json_decref(answer);
	free(command);
	return status;
}

const struct uvd_command uvd_command_port = {
	.name = "port",
	.purpose = "take a port of a device down, or up again",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl port down hfi1_0 1", "take port 1 down" },
			{ "uverbsctl port up hfi1_0 1", "and up again" },
			{ "uverbsctl run -- sh -c 'uverbsctl port down rxe0 1; ibv_devinfo'", "" },
			{},
		},
	.text =
		(const char *const[]){
			"Takes a port of a device (hfi1_0, or uverbs0) down, or up again. Programs see its state change, and an event. "
			"Within `uverbsctl run` it is the run's own device, else that of uverbsd.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "down", "DEVICE PORT", "take the port down", .takes_device = true },
			{ "up", "DEVICE PORT", "take the port up again", .takes_device = true },
			{},
		},
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN,
	.run = port_command,
};
