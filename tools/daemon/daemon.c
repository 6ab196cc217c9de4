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

static int daemon_log_level(const struct uvd_args *args)
{
	enum uvd_log_level level;
	char command[32];
	json_t *answer;

	if (!uvd_log_level_parse(args->words[0], &level))
		return uvd_args_wrong(args, "unknown level `%s`: it is error, warning, info or debug", args->words[0]);
	snprintf(command, sizeof(command), "log-level %s", args->words[0]);
	answer = uvd_ask("daemon log-level", args->control, command);
	json_decref(answer);
	return answer ? 0 : 1;
}

static void reload_print(const json_t *answer, const char *list)
{
	const json_t *names = json_object_get(answer, list);

	if (!json_array_size(names))
		return;
	printf("%s:", list);
	for (size_t i = 0; i < json_array_size(names); i++)
		printf(" %s", json_string_value(json_array_get(names, i)));
	putchar('\n');
}

static int daemon_reload(const struct uvd_args *args)
{
	json_t *answer = uvd_ask("daemon reload", args->control, "reload"), *why;
	const char *ibdev;
	int status = 0;

	if (!answer)
		return 1;
	reload_print(answer, "added");
	reload_print(answer, "changed");
	reload_print(answer, "removed");
	reload_print(answer, "ignored");
	json_object_foreach(json_object_get(answer, "failed"), ibdev, why) {
		fprintf(stderr, "uverbsctl daemon reload: %s: %s\n", ibdev, json_string_value(why));
		status = 1;
	}
	json_decref(answer);
	return status;
}

const struct uvd_command uvd_command_daemon = {
	.name = "daemon",
	.purpose = "reload the configuration, restart the engine process, or set what it logs",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl daemon restart", "start the engine process anew" },
			{ "uverbsctl daemon reload", "add, replace and remove devices as the file says" },
			{ "uverbsctl status", "answers when the devices are back" },
			{ "uverbsctl daemon restart --control /run/test/control", "that of another daemon" },
			{ "uverbsctl daemon log-level debug", "log more, from now on" },
			{ "uverbsctl daemon log-level info --run NAME", "that of the runs that have joined NAME" },
			{},
		},
	.text =
		(const char *const[]){
			"`restart` ends the engine process of uverbsd, and starts it anew: an upgraded program takes effect. The devices "
			"disappear for a moment. Calls on files that are open fail from then on: programs must open the device again. The "
			"command returns when the restart begins; `uverbsctl status` answers when the devices are back. The broker keeps "
			"running, with the options that it was started with: to change those, restart the service.",
			"`reload` reads the configuration file again. Devices that the file adds, changes or removes are added, replaced or "
			"removed, by name; programs go on with all others. `ignored` lists options that differ and change with the next start of "
			"the service alone. If there is an error in the file nothing changes.",
			"`log-level` sets what uverbsd, or a run, logs from now on: error, warning, info or debug. Engine processes that are "
			"started later follow, too. The broker logs no less than the --log-level that it was started with. `uverbsctl status` "
			"shows the level.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "reload", .purpose = "read the configuration file again", .run = daemon_reload },
			{ "restart", .purpose = "end the engine process and start an upgraded one",
			  .run = daemon_restart },
			{ "log-level", "LEVEL", "log up to LEVEL", .run = daemon_log_level },
			{},
		},
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN,
};
