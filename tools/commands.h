/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subcommands of uverbsctl. Each gets argv from its own name on (argv[0] is "run", "env"...) and returns the exit
 * status: 0, 1 where what was asked failed, 2 for a wrong command line or configuration.
 */
#ifndef UVD_COMMANDS_H
#define UVD_COMMANDS_H

int uvd_cmd_run(int argc, char **argv);
int uvd_cmd_env(int argc, char **argv);
int uvd_cmd_device(int argc, char **argv);
int uvd_cmd_port(int argc, char **argv);
int uvd_cmd_restart(int argc, char **argv);
int uvd_cmd_status(int argc, char **argv);
int uvd_cmd_tree(int argc, char **argv);

#endif
