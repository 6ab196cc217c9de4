/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subcommands of uverbsctl. argv[0] is the subcommand's name ("run", "env"...). Each returns the exit status: 0, 1
 * if the request failed, 2 for a wrong command line or configuration. `run` returns PROGRAM's exit status, or 125 to
 * 127 (src/run/run.h). `env --mount` executes COMMAND in its place, or returns 126 or 127.
 */
#ifndef UVD_COMMANDS_H
#define UVD_COMMANDS_H

int uvd_cmd_call(int argc, char **argv);
int uvd_cmd_run(int argc, char **argv);
int uvd_cmd_env(int argc, char **argv);
int uvd_cmd_device(int argc, char **argv);
int uvd_cmd_fuzz(int argc, char **argv);
int uvd_cmd_filter(int argc, char **argv);
int uvd_cmd_hca(int argc, char **argv);
int uvd_cmd_new_plugin(int argc, char **argv);
int uvd_cmd_plugin(int argc, char **argv);
int uvd_cmd_port(int argc, char **argv);
int uvd_cmd_replay(int argc, char **argv);
int uvd_cmd_restart(int argc, char **argv);
int uvd_cmd_status(int argc, char **argv);
int uvd_cmd_trace(int argc, char **argv);
int uvd_cmd_tree(int argc, char **argv);

#endif
