/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A kind of nodes is a table of operations: those of devices (device.c), those of User Capabilities (ucap.c), the connection
 * manager's (cm.c). The other files of src/cuse have what is alike for all nodes: channel, threads, shares and turns, openers, answers.
 */
#ifndef UVD_CUSE_KIND_H
#define UVD_CUSE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cm/cm.h"

struct cuse_file;
struct uvd_account;
struct uvd_call;
struct uvd_cuse;

struct fuse_lowlevel_ops;

struct uvd_cuse_kind {
	/* The channel is that of a file system, whose files are opens of devices' nodes (queues.h). NULL: it is a node's. */
	const struct fuse_lowlevel_ops *fuse;
	/* Makes the node: sets c->node, and *fd to its channel. Returns 0 or a negative errno. */
	int (*make)(struct uvd_cuse *c, int *fd);
	/*
	 * A client opens the node: f->opener is set, and the account is charged. Sets f->priv, or returns a negative errno. Runs on a
	 * worker, as all that follows. NULL: the node can be opened and nothing else, its files have no opener, and nobody is charged.
	 */
	int (*open)(struct cuse_file *f, struct uvd_account *account);
	void (*close)(struct cuse_file *f);
	/* Has the device been removed? Then an opener that cannot be asked gets EIO. NULL: it never is. */
	bool (*is_gone)(struct uvd_cuse *c);
	/*
	 * Calls on an open file, by its opener: result, or a negative errno. NULL: EINVAL, and ENOTTY for ioctl(). A write() has
	 * all its bytes in `data`, or is longer and has them in the caller's memory. UVD_CM_WAITS: nothing was changed, and the
	 * call waits for an event of the file. It fails with EAGAIN if it must not wait (O_NONBLOCK), else it is parked (turns.h).
	 */
	long (*write)(struct cuse_file *f, struct uvd_call *call, const void *data, size_t size);
	long (*write_from)(struct cuse_file *f, struct uvd_call *call, uint64_t addr, size_t size);
	long (*ioctl)(struct cuse_file *f, struct uvd_call *call, unsigned int cmd, uint64_t arg);
	/* uvd_cm_wait() and uvd_cm_wait_end(), for parked calls. NULL: no call of the kind waits for an event. */
	bool (*wait)(struct cuse_file *f, struct uvd_cm_waiter *waiter);
	bool (*wait_end)(struct cuse_file *f, struct uvd_cm_waiter *waiter);
	/*
	 * poll(): returns the events of the file (POLLIN and others). It calls uvd_cuse_notify() for each event that comes. NULL: ENOSYS,
	 * and the kernel reports the node's files as ready from then on, without asking.
	 */
	unsigned int (*poll)(struct cuse_file *f);
};

#endif
