/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl restart: replaces the daemon's engine process. */
#include "ask.h"
#include "../commands.h"
#include <stdio.h>

static int restart_command(const struct uvd_args *args)
{
	json_t *answer = uvd_ask("restart", args->control, "restart");

	if (!answer)
		return 1;
	puts("the restart begins; programs must open the device again");
	json_decref(answer);
	return 0;
}

const struct uvd_command uvd_command_restart = {
	.name = "restart",
	.purpose = "end the daemon's engine process and start an upgraded one",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl restart", "start the engine process anew" },
			{ "uverbsctl status", "answers when the devices are back" },
			{ "uverbsctl restart --control /run/test/control", "that of another daemon" },
			{},
		},
	.text =
		(const char *const[]){
			"Restarts the engine process of uverbsd: an upgraded program takes effect. The devices disappear for a moment. Calls "
			"on files that are open fail from then on: programs must open the device again. The command returns when the restart "
			"begins; `uverbsctl status` answers when the devices are back. The broker keeps running, with the options and the "
			"configuration file that it was started with: to change those, restart the service.",
			NULL },
	.takes = UVD_TAKES_CONTROL,
	.run = restart_command,
};
