/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The calls that plug-ins add to those that programs know: those whose roles the device tells. */
#ifndef UVD_PROGRAM_MORE_H
#define UVD_PROGRAM_MORE_H

#include "../tree/view.h"
#include "core/core.h"
#include "program/program.h"

/*
 * Learn them from a device that is open (node: its path; without a message), or from a tree in this process. Call one of them
 * at most once, and before programs are made or read. Return 0, or a negative errno.
 */
int uvd_program_more_of_node(const char *who, const char *node, int fd);
int uvd_program_more_of_tree(const struct uvd_tree *tree);

#endif
