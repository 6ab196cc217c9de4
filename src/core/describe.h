/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Describes a parse tree as rows that can be printed, sent and compared: `uverbsctl tree` shows them, and a device
 * answers the tree query with them.
 */
#ifndef UVD_DESCRIBE_H
#define UVD_DESCRIBE_H

#include <uverbsd/abi.h>

struct uvd_tree;
struct uverbsd_tree_role;

/* The row is valid during the call only. A return value other than 0 ends the walk. */
typedef int (*uvd_describe_fn)(void *arg, const struct uverbsd_tree_row *row);

/*
 * Calls fn for each row, in the order that <uverbsd/abi.h> promises. Returns 0, or the value of fn that ended the
 * walk. Takes no locks: a tree is constant.
 */
int uvd_tree_describe(const struct uvd_tree *tree, uvd_describe_fn fn, void *arg);
/* The same for the roles that plug-ins state of their rows. */
int uvd_tree_describe_roles(const struct uvd_tree *tree, int (*fn)(void *arg, const struct uverbsd_tree_role *row),
			    void *arg);

/* Return the words of the kernel's declarations ("PTR_IN", "READ", "IDR"), or "?" for an unknown value. */
const char *uvd_tree_type_name(unsigned int type);
const char *uvd_tree_access_name(unsigned int access);
const char *uvd_tree_class_name(unsigned int cls);

#endif
