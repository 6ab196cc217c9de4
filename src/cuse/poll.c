/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * poll(): the kernel asks for a file's events, and gives a handle by which those who poll the file are woken. All handles of a file
 * mean the same, so one of them is kept, also after it has woken them: a client of epoll with EPOLLET gets an edge for each event, as
 * from the kernel's wake_up().
 */
#include "cuse/internal.h"

static void poll_set(struct cuse_file *f, struct fuse_pollhandle *handle)
{
	struct fuse_pollhandle *old;

	uvd_lock(&f->poll_lock);
	old = f->poll;
	f->poll = handle;
	uvd_unlock(&f->poll_lock);
	if (old)
		fuse_pollhandle_destroy(old);
}

void uvd_cuse_poll_keep(struct cuse_file *f, struct fuse_pollhandle *handle)
{
	if (handle)
		poll_set(f, handle);
}

/* The lock is held over the notification, which is a write() that waits for nobody: so the session exists until it is over. */
void uvd_cuse_notify(struct cuse_file *f)
{
	uvd_lock(&f->poll_lock);
	if (f->poll)
		fuse_lowlevel_notify_poll(f->poll);
	uvd_unlock(&f->poll_lock);
}

void uvd_cuse_poll_end(struct cuse_file *f)
{
	poll_set(f, NULL);
}
