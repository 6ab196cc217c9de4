/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl daemon: changes the daemon itself. */
#include "ask.h"
#include "../commands.h"
#include <stdio.h>

static int daemon_restart(const struct uvd_args *args)
{
	json_t *answer = uvd_ask("daemon restart", args->control, "restart");

	if (!answer)
		return 1;
	puts("the restart begins; programs must open the device again");
	json_decref(answer);
	return 0;
}

const struct uvd_command uvd_command_daemon = {
	.name = "daemon",
	.purpose = "restart the daemon's engine process",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl daemon restart", "start the engine process anew" },
			{ "uverbsctl status", "answers when the devices are back" },
			{ "uverbsctl daemon restart --control /run/test/control", "that of another daemon" },
			{},
		},
	.text =
		(const char *const[]){
			"`restart` ends the engine process of uverbsd, and starts it anew: an upgraded program takes effect. The devices "
			"disappear for a moment. Calls on files that are open fail from then on: programs must open the device again. The "
			"command returns when the restart begins; `uverbsctl status` answers when the devices are back. The broker keeps "
			"running, with the options and the configuration file that it was started with: to change those, restart the service.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "restart", .purpose = "end the engine process and start an upgraded one",
			  .run = daemon_restart },
			{},
		},
	.takes = UVD_TAKES_CONTROL,
};
