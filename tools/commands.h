/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subcommands of uverbsctl. argv[0] is the subcommand's name ("run", "env"...). Each returns the exit status: 0, 1
 * if the request failed, 2 for a wrong command line or configuration. `run` returns PROGRAM's exit status, or 125 to
 * 127 (src/run/run.h). `env --mount` executes COMMAND in its place, or returns 126 or 127.
 */
#ifndef UVD_COMMANDS_H
#define UVD_COMMANDS_H

/* Name, function and purpose of each, in the order of the help. */
/* clang-format off */
#define UVD_COMMANDS(X) \
	X("run", run, "run a program with a device of its own, without root") \
	X("check", check, "whether this machine can have devices, and why not") \
	X("env", env, "what a shell must export to find the daemon's devices") \
	X("device", device, "unplug a device under its users, or plug one in") \
	X("explain", explain, "why completions and calls failed; the table of reasons") \
	X("filter", filter, "make a device fail: list, add, set or remove its filters") \
	X("hca", hca, "the adapters that a device can forward to (--backend verbs)") \
	X("plugin", plugin, "load, reload, unload or list plug-ins") \
	X("port", port, "take a port of a device down, or up again") \
	X("replay", replay, "run a program of calls, and compare the results with those in its file") \
	X("restart", restart, "end the daemon's engine process and start an upgraded one") \
	X("status", status, "what the daemon serves") \
	X("trace", trace, "what programs call: print a trace, as strace does") \
	X("tree", tree, "what a device accepts") \
	X("call", call, "call a method or a write() command of a device by name") \
	X("fuzz", fuzz, "look for bugs of a device with random programs of calls") \
	X("new-plugin", new_plugin, "write the files of a new plug-in")
/* clang-format on */

#define UVD_COMMAND_DECLARE(name, function, what) int uvd_cmd_##function(int argc, char **argv);
UVD_COMMANDS(UVD_COMMAND_DECLARE)
#undef UVD_COMMAND_DECLARE

#endif
