/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl restart: replaces the daemon's engine process. */
#include "ask.h"
#include "../commands.h"
#include <stdio.h>

static const char restart_usage[] =
	"Usage: uverbsctl restart [--control PATH]\n"
	"\n"
	"  uverbsctl restart                           start the engine process anew\n"
	"  uverbsctl status                            answers when the devices are back\n"
	"  uverbsctl restart --control /run/test/control\n"
	"\n"
	"Restarts the engine process of uverbsd: an upgraded program takes effect. The devices disappear for a\n"
	"moment. Calls on files that are open fail from then on: programs must open the device again. The command returns when\n"
	"the restart begins; `uverbsctl status` answers when the devices are back. The broker keeps running, with the options\n"
	"and the configuration file that it was started with: to change those, restart the service.\n"
	"\n"
	"  --control PATH    the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n";

int uvd_cmd_restart(int argc, char **argv)
{
	const char *control;
	json_t *answer;
	int status, first = uvd_ask_options(argc, argv, restart_usage, &control, &status);

	if (first < 0)
		return status;
	if (argc != first) {
		fputs(restart_usage, stderr);
		return 2;
	}
	answer = uvd_ask("restart", control, "restart");
	if (!answer)
		return 1;
	puts("the restart begins; programs must open the device again");
	json_decref(answer);
	return 0;
}
