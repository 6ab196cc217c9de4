/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of uverbsctl, in the order of the help: groups, and in each the most used commands first. COMMAND(x) is the row
 * uvd_command_x, in the file of the command.
 */
#ifndef UVD_COMMANDS_H
#define UVD_COMMANDS_H

#include "command/command.h"

/* clang-format off */
#define UVD_COMMANDS(GROUP, COMMAND) \
	GROUP("Run programs") \
	COMMAND(run) \
	COMMAND(pair) \
	COMMAND(exec) \
	COMMAND(env) \
	COMMAND(doctor) \
	GROUP("See what happens") \
	COMMAND(status) \
	COMMAND(metrics) \
	COMMAND(trace) \
	COMMAND(explain) \
	GROUP("Change devices and the daemon") \
	COMMAND(device) \
	COMMAND(port) \
	COMMAND(filter) \
	COMMAND(plugin) \
	COMMAND(daemon) \
	COMMAND(hca) \
	GROUP("Try verbs, and test devices") \
	COMMAND(call) \
	COMMAND(tree) \
	COMMAND(replay) \
	COMMAND(fuzz) \
	COMMAND(new_plugin) \
	GROUP(NULL) \
	COMMAND(internal_tables)
/* clang-format on */

#define UVD_COMMAND_NO_GROUP(title)
#define UVD_COMMAND_DECLARE(x) extern const struct uvd_command uvd_command_##x;
UVD_COMMANDS(UVD_COMMAND_NO_GROUP, UVD_COMMAND_DECLARE)
#undef UVD_COMMAND_DECLARE

#endif
