/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device in this process, for programs of calls: no transport and no other process. This process is the client. Its
 * memory is the programs' arena (program/run.h), and its descriptors are those that the device gives it: an address or a
 * number beyond these fails as it does for a client of another process, so a hostile call does not reach the engine's own
 * memory and descriptors.
 *
 * There is one device, with at most one open file. Functions that return int return 0, or -1 after a message on stderr.
 */
#ifndef UVD_IN_PROCESS_H
#define UVD_IN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include "options/options.h"
#include "program/program.h"

/* Programs reach the device with these. Its open() makes the device of uvd_in_process_options(), and opens it. */
extern const struct uvd_prog_node_ops uvd_in_process_ops;

/*
 * The options of the device: those of `uverbsctl run`, of which those about the process tree have no effect. Keeps o, and `who`,
 * which begins each message.
 */
void uvd_in_process_options(const struct uvd_options *o, const char *who);
/* The driver id of the device that the options stand for; -1 if there is no such persona. */
int uvd_in_process_driver(const struct uvd_options *o);

/*
 * Learns the calls of the device's plug-ins, for programs: makes the device for a moment, if the options have plug-ins.
 * Call it after uvd_in_process_options(), in a process that forks later.
 */
int uvd_in_process_learn(void);

/* Makes the engine and the device. A process that forks later must not use them in the child. */
int uvd_in_process_start(void);
void uvd_in_process_stop(void);
/* Opens the device. Returns an fd, which belongs to the device; or -1. */
int uvd_in_process_open(void);
/* Closes the file, which destroys all its objects, and all descriptors that it has given to the client. */
void uvd_in_process_close(void);
/* With the file closed: is anybody charged still? Waits so long for work that ends. text: for what. */
bool uvd_in_process_leaks(char *text, size_t size, unsigned int seconds);

#endif
