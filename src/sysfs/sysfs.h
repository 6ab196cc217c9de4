/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The published tree: what libibverbs and other programs read below /sys/class, as files in a folder of ours (SYSFS_PATH
 * or an overlay leads programs there).
 */
#ifndef UVD_SYSFS_H
#define UVD_SYSFS_H

#include <sys/types.h>
#include <uverbsd/config.h>

struct uvd_log;
struct uvd_persona;

/*
 * Makes `root` (and its parents; mode 0755) with class/infiniband_verbs/abi_version. A tree that a daemon which is gone
 * left behind is replaced. -EBUSY: it is another living process's. -ENOTEMPTY: a folder with something else in it.
 * 0 or a negative errno, logged.
 */
int uvd_sysfs_create(const char *root, struct uvd_log *log);
/*
 * Calls fn for each node, of a device or a User Capability, that is published in the directory of a process that does not
 * live any more (uvd_process_lives()). Before uvd_sysfs_create(), which replaces the directory. name: uverbs0.
 */
void uvd_sysfs_each_orphan(const char *root, void (*fn)(void *arg, const char *name, dev_t rdev), void *arg);
/*
 * Publishes one device, all of it at once; node is what its node has for st_rdev. -EEXIST: the name or number is taken.
 */
int uvd_sysfs_add(const char *root, const struct uvd_device_config *config, const struct uvd_persona *persona,
		  dev_t node, struct uvd_log *log);
/* The state of a port (from 1) of a published device has changed. 0 or a negative errno. */
int uvd_sysfs_set_port(const char *root, const struct uvd_device_config *config, unsigned int port, bool up);
void uvd_sysfs_remove(const char *root, const struct uvd_device_config *config);
/* Publishes a User Capability's node, in class/infiniband_ucaps, and takes it away again. As above. */
int uvd_sysfs_add_ucap(const char *root, const char *name, dev_t node, struct uvd_log *log);
void uvd_sysfs_remove_ucap(const char *root, const char *name);
/* Removes the tree, if it is this process's or that of one which is gone. */
void uvd_sysfs_destroy(const char *root);

/*
 * Mounts `root`/class over /sys/class as an overlay in the caller's mount namespace, so that programs which have
 * /sys/class/infiniband built in find the devices. An earlier one of ours is replaced. Devices that are added later may stay
 * unseen through it: mount it when they are published. Whether other namespaces see it is up to the caller's mount
 * propagation. 0 or a negative errno, logged.
 */
int uvd_sysfs_overlay(const char *root, struct uvd_log *log);
/* Takes that overlay away again, where there is one. Before uvd_sysfs_destroy(). */
void uvd_sysfs_overlay_undo(const char *root);

#endif
