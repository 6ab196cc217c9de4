/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names and numbers of device nodes. CUSE says nothing when a name is taken: a second session of the same name just ends,
 * and a node of the kernel's own stays in front of ours. So look before, and compare afterwards.
 */
#ifndef UVD_CUSE_NODE_H
#define UVD_CUSE_NODE_H

#include <stddef.h>
#include <sys/types.h>

struct uvd_log;

struct uvd_node {
	int number; /* -1: of a User Capability */
	char name[48]; /* infiniband/uverbs0 */
	char path[64]; /* /dev/infiniband/uverbs0 */
	char sysfs[80]; /* /sys/class/cuse/infiniband!uverbs0 */
	char kernel[80]; /* /sys/class/infiniband_verbs/uverbs0: the kernel's own */
	dev_t rdev;
	int made; /* by us, because nobody does here */
};

void uvd_node_name(struct uvd_node *node, int number);
/* The node of a User Capability. */
void uvd_node_name_ucap(struct uvd_node *node, const char *ucap);
/* Who has it, in words, or NULL: it is free. */
const char *uvd_node_taken(const struct uvd_node *node);
/*
 * After the session's start: finds rdev and makes sure that the node is the session's. 0; -EEXIST: something else is there;
 * another negative errno. The log has been told, but for -EEXIST.
 */
int uvd_node_verify(struct uvd_node *node, struct uvd_log *log);
int uvd_node_permit(const struct uvd_node *node, unsigned int mode, gid_t group, struct uvd_log *log);
/* Removes the node's name: nobody opens it any more, who has it open keeps it. */
void uvd_node_hide(struct uvd_node *node);
/* Removes a node that verify() has made. */
void uvd_node_remove(struct uvd_node *node);

#endif
