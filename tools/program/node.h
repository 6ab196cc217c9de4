/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The device that a program of calls runs on, for `replay` and `fuzz`. */
#ifndef UVD_PROGRAM_NODE_H
#define UVD_PROGRAM_NODE_H

#include "program/program.h"
#include <limits.h>

/* The table "Call by call" of docs/abi-differences.md, as text (embed_list.py). */
extern const char uvd_program_list[];

/*
 * Finds the device by name, as uvd_node_find() does, or by the path of its node, and makes a run for it. Returns NULL
 * after a message, which begins with `who`, on stderr. The run uses `node` as long as it exists.
 */
struct uvd_prog_run *uvd_program_open(const char *who, const char *control, const char *device, char node[PATH_MAX]);
/* Is it the kernel's own device? It has no tree query. */
bool uvd_program_is_kernel(const char *node, uint16_t driver_id);
/*
 * Reads the list of differences: all rows of the table if `cross`, the two devices being the kernel's and ours; else only
 * those of numbers that the device chooses. Returns false after a message.
 */
bool uvd_program_list_read(struct uvd_prog_list *list, bool cross);

#endif
