/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names and numbers of device nodes. CUSE says nothing when a name is taken: a second session of the same name just ends,
 * and a node of the kernel's own stays in front of ours. So look before, and compare afterwards.
 */
#ifndef UVD_CUSE_NODE_H
#define UVD_CUSE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct uvd_log;

struct uvd_node {
	int number; /* -1: of a User Capability */
	char name[64]; /* infiniband/uverbs0, CUSE's */
	char path[64]; /* /dev/infiniband/uverbs0 */
	char sysfs[96]; /* /sys/class/cuse/infiniband!uverbs0 */
	char kernel[80]; /* /sys/class/infiniband_verbs/uverbs0: the kernel's own */
	dev_t rdev;
	int made; /* by us, because nobody does here */
	int brokers; /* name, node and channel are the broker's; we only serve it */
};

/*
 * CUSE devices of dead processes that cannot end, because they wait for a client: CUSE keeps the device's name for as long,
 * so who takes its place in /dev needs another.
 */
enum { UVD_NODE_ORPHANS = 128 };

struct uvd_node_orphans {
	unsigned int num; /* that there ever were; the list has the last ones */
	dev_t rdev[UVD_NODE_ORPHANS];
};

void uvd_node_name(struct uvd_node *node, int number);
/* The node of a User Capability. */
void uvd_node_name_ucap(struct uvd_node *node, const char *ucap);
/*
 * Returns NULL if the node's name is free, else a text that says what has it. If an orphan has the name in CUSE, this function
 * gives the node another name there.
 */
const char *uvd_node_taken(struct uvd_node *node, const struct uvd_node_orphans *orphans);
/*
 * After the session's start: finds rdev and makes sure that the node is the session's. 0; -EEXIST: something else is there;
 * another negative errno. The log has been told, but for -EEXIST.
 */
int uvd_node_verify(struct uvd_node *node, struct uvd_log *log);
int uvd_node_permit(const struct uvd_node *node, unsigned int mode, gid_t group, struct uvd_log *log);
/* Removes the node's name: nobody opens it any more, who has it open keeps it. */
void uvd_node_hide(struct uvd_node *node);
/*
 * Ends the session of a dead process that still has the CUSE device infiniband/NAME, with this rdev, if there is one: its
 * clients go on with an error, and the name in /dev is free.
 */
void uvd_node_abort(struct uvd_node_orphans *orphans, const char *name, dev_t rdev, struct uvd_log *log);
/* Is the CUSE device infiniband/NAME there, with this rdev? */
bool uvd_node_exists(const char *name, dev_t rdev);
/* Removes a node that verify() has made. */
void uvd_node_remove(struct uvd_node *node);

#endif
