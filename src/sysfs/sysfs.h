/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sysfs directory: the files that libibverbs and other programs read below /sys/class, published in a folder of
 * ours. SYSFS_PATH or an overlay leads programs there.
 */
#ifndef UVD_SYSFS_H
#define UVD_SYSFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include <uverbsd/counters.h>

struct uvd_log;
struct uvd_persona;

/*
 * Creates the sysfs directory `root` (and its parents; mode 0755) with class/infiniband_verbs/abi_version. Replaces
 * one that a dead process left behind. Returns 0 or a negative errno, logged. -EBUSY: another living process publishes
 * it. -ENOTEMPTY: the folder has other files in it.
 */
int uvd_sysfs_create(const char *root, struct uvd_log *log);
/*
 * If a dead process left the directory behind (uvd_process_lives()), calls fn for each node of a device, of a User
 * Capability and of the connection manager in it. name: "uverbs0". Call it before uvd_sysfs_create(), which replaces the directory.
 */
void uvd_sysfs_each_orphan(const char *root, void (*fn)(void *arg, const char *name, dev_t rdev), void *arg);
/*
 * Publishes one device; readers never see half of it. node: st_rdev of the device node. Returns 0 or a negative errno,
 * logged. -EEXIST: the name or the number is taken.
 */
int uvd_sysfs_add(const char *root, const struct uvd_device_config *config, const struct uvd_persona *persona,
		  dev_t node, struct uvd_log *log);
/* Replaces the state of a port (from 1) of a published device. Returns 0 or a negative errno. */
int uvd_sysfs_set_port(const char *root, const struct uvd_device_config *config, unsigned int port, bool up);
/*
 * Replaces those files of a port (from 1) of a published device that no longer show what the configuration says: its state,
 * addresses and tables. A reader sees the former text of a file or the new one. Returns 0 or the first negative errno, after
 * it has tried all files. -ENOENT: the device is not published.
 */
int uvd_sysfs_set_tables(const char *root, const struct uvd_device_config *config, unsigned int port);
/* The counters that the files of a device show. Zeroed when the device is published. */
struct uvd_sysfs_counters {
	uint64_t ports[UVD_MAX_PORTS][UVD_PORT_COUNTERS];
};

/*
 * Shows new values of a port's counters (from 1), and stores them in *shown. Writes only to the files that change, in
 * place, so that a program which has one open reads the new value. Values that fall do not count. For one device, the caller makes
 * one call at a time. Returns 0 or a negative errno.
 */
int uvd_sysfs_set_counters(const char *root, const struct uvd_device_config *config, const struct uvd_persona *persona,
			   unsigned int port, struct uvd_sysfs_counters *shown,
			   const uint64_t values[UVD_PORT_COUNTERS]);
void uvd_sysfs_remove(const char *root, const struct uvd_device_config *config);
/* The same for the node of a User Capability, in class/infiniband_ucaps. */
int uvd_sysfs_add_ucap(const char *root, const char *name, dev_t node, struct uvd_log *log);
void uvd_sysfs_remove_ucap(const char *root, const char *name);
/* The same for the connection manager's node, rdma_cm in class/misc. */
int uvd_sysfs_add_cm(const char *root, dev_t node, struct uvd_log *log);
void uvd_sysfs_remove_cm(const char *root);
/* Removes the sysfs directory, unless another living process publishes it. */
void uvd_sysfs_destroy(const char *root);

/*
 * Mounts `root`/class on /sys/class as an overlay in the caller's mount namespace, so that programs which have
 * /sys/class/infiniband built in find the devices. Replaces an earlier overlay of `root`. Devices that are added later
 * may not be visible through it, so mount it after they are published. The caller's mount propagation decides whether
 * other namespaces see it. Returns 0 or a negative errno, logged.
 */
int uvd_sysfs_overlay(const char *root, struct uvd_log *log);
/* Unmounts that overlay, if there is one. Call it before uvd_sysfs_destroy(). */
void uvd_sysfs_overlay_undo(const char *root);

/*
 * For the process that becomes a program: its own view of /sys/class. Each function returns 0, or a negative errno with a text
 * that says what failed, why, and what to do.
 */
struct uvd_sysfs_why {
	char text[PATH_MAX + 256];
};
/*
 * Moves this process, which has one thread, into a mount namespace of its own; without CAP_SYS_ADMIN also into a user namespace, in
 * which its ids stay.
 */
int uvd_sysfs_namespace(struct uvd_sysfs_why *why);
/* The user and mount namespaces alone. Takes no lock. Returns 0 or a negative errno. */
int uvd_sysfs_user_namespace(void);
/*
 * Mounts `root`/class/infiniband* on /sys/class, read-only, where they replace the kernel's. The kernel's other classes
 * stay. follows: they are symbolic links, which lead to the folders of a later daemon, too. Call it in such a namespace.
 */
int uvd_sysfs_mount(const char *root, bool follows, struct uvd_sysfs_why *why);
/* Mounts the file or folder `from`, read-only, on `to`. Likewise. */
int uvd_sysfs_bind(const char *from, const char *to, struct uvd_sysfs_why *why);

/*
 * Has this machine an RDMA adapter: a device of the kernel's RDMA stack, a software one as rxe0 too, or hardware that a driver of that
 * stack claims? sys: "/sys". modules: the folder of the running kernel's modules, whose driver may not be loaded yet. Stores the
 * device's name, or what the hardware is, for messages.
 */
bool uvd_sysfs_has_adapter(const char *sys, const char *modules, char *what, size_t size);
/*
 * Returns 0 if the kernel has no RDMA device in the folder `class`, else a number that differs if other devices are there, and stores
 * the name of one. An overlay shows only those that were there when it was mounted.
 */
unsigned long uvd_sysfs_kernel_devices(const char *class, char *what, size_t size);

#endif
