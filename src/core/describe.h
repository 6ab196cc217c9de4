/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A tree as rows that can be printed, sent and compared: what `uverbsctl tree` shows and a device answers about itself.
 */
#ifndef UVD_DESCRIBE_H
#define UVD_DESCRIBE_H

#include <uverbsd/abi.h>

struct uvd_tree;

/* The row is valid during the call. Other than 0 ends the walk. */
typedef int (*uvd_describe_fn)(void *arg, const struct uverbsd_tree_row *row);

/* Calls fn for each row, in the order that <uverbsd/abi.h> promises. 0, or what ended it. No locks: a tree is constant. */
int uvd_tree_describe(const struct uvd_tree *tree, uvd_describe_fn fn, void *arg);

/* The words of the kernel's declarations: "PTR_IN", "READ", "IDR". "?": there is no such value. */
const char *uvd_tree_type_name(unsigned int type);
const char *uvd_tree_access_name(unsigned int access);
const char *uvd_tree_class_name(unsigned int cls);

#endif
