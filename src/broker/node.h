/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names and numbers of device nodes. CUSE reports no error if a name is taken: a second session of the same name just
 * ends, and a node of the kernel's own hides ours. So call uvd_node_taken() before a session starts, and
 * uvd_node_verify() after it.
 */
#ifndef UVD_CUSE_NODE_H
#define UVD_CUSE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uverbsd/config.h>

struct uvd_log;

struct uvd_node {
	int number; /* -1: the node is no device's */
	char name[64]; /* infiniband/uverbs0, CUSE's */
	char path[64]; /* /dev/infiniband/uverbs0 */
	char sysfs
		[96]; /* /sys/devices/virtual/cuse/infiniband!uverbs0: an overlay on /sys/class does not hide what is new there */
	char kernel[80]; /* /sys/class/infiniband_verbs/uverbs0: the kernel's own */
	dev_t rdev;
	int made; /* we made the node: there is no devtmpfs */
	bool aside; /* the connection manager's, where the name rdma_cm is taken */
};

/*
 * CUSE devices of dead processes that cannot exit because they wait for a client. CUSE keeps such a device's name
 * until then, so a new device at the same path in /dev needs another CUSE name.
 */
enum { UVD_NODE_ORPHANS = 128 };

struct uvd_node_orphans {
	unsigned int num; /* ever added; rdev[] has the last ones */
	dev_t rdev[UVD_NODE_ORPHANS];
};

/* Initializes *node with the names and paths of uverbsN. */
void uvd_node_name(struct uvd_node *node, int number);
/* The same for the node of a User Capability. */
void uvd_node_name_ucap(struct uvd_node *node, const char *ucap);
/* The same for the connection manager's: rdma_cm; aside: uverbsd_cm. */
void uvd_node_name_cm(struct uvd_node *node, bool aside);
/*
 * Returns NULL if the node's name is free, else a text that says what has it. If an orphan has the name in CUSE, this function
 * gives the node another name there.
 */
const char *uvd_node_taken(struct uvd_node *node, const struct uvd_node_orphans *orphans);
/*
 * Makes the node with this number; -1: with the lowest number for which make() does not return -EEXIST. make() gets the node with
 * its names set. Returns what make() returned, or -EEXIST: the number is taken, or all are. Logs that.
 */
int uvd_node_make(struct uvd_node *node, int number, const struct uvd_node_orphans *orphans,
		  int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log);
/* The same for the node of this User Capability. */
int uvd_node_make_ucap(struct uvd_node *node, const char *ucap, const struct uvd_node_orphans *orphans,
		       int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log);
/* The same for the connection manager's node, which is aside if another one exists. The log says what to do then. */
int uvd_node_make_cm(struct uvd_node *node, const struct uvd_node_orphans *orphans,
		     int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log);
/*
 * Call after the session's start. Finds rdev, and checks that the node is the session's; makes the node if there is
 * none. Returns 0; -EEXIST: something else is there; or another negative errno. Logs the errors, but not -EEXIST and
 * lstat()'s.
 */
int uvd_node_verify(struct uvd_node *node, struct uvd_log *log);
/* Sets the node's mode, and its group unless that is -1. Returns 0 or a negative errno, which it logs. */
int uvd_node_permit(const struct uvd_node *node, unsigned int mode, gid_t group, struct uvd_log *log);
/* Unlinks the node: it can no longer be opened, open files keep working. */
void uvd_node_hide(struct uvd_node *node);
/*
 * Aborts the session of a dead process that still has the CUSE device infiniband/NAME with this rdev, if there is
 * one: its clients' calls fail, the name in /dev becomes free, and rdev is added to the orphans.
 */
void uvd_node_abort(struct uvd_node_orphans *orphans, const char *name, dev_t rdev, struct uvd_log *log);
/* Does the CUSE device infiniband/NAME exist with this rdev? */
bool uvd_node_exists(const char *name, dev_t rdev);
/* Removes the node if uvd_node_verify() made it. */
void uvd_node_remove(struct uvd_node *node);

#endif
