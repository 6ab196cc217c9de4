/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node of the connection manager: /dev/infiniband/rdma_cm. */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include "cuse/internal.h"

static int cm_node_make(struct uvd_cuse *c, int *fd)
{
	struct uvd_privilege *p = c->config.privilege;

	return p->ops->make_cm(p, &c->node, fd);
}

static void cm_node_events(void *owner, unsigned int num, bool added)
{
	if (added)
		uvd_cuse_notify(owner);
}

/* All opens of a node are one inode, so nothing tells which of them a descriptor is. */
static int cm_node_file_of(void *owner, struct uvd_caller *caller, int fd, struct uvd_cm_file **file)
{
	const struct cuse_file *f = owner;
	struct stat st;
	int err = uvd_caller_fget(caller, fd, &st);

	*file = NULL;
	if (err)
		return err == -EBADF ? -ENOENT : err;
	return S_ISCHR(st.st_mode) && st.st_rdev == f->cuse->node.rdev ? 0 : -EINVAL;
}

static const struct uvd_cm_file_ops cm_node_file_ops = { .events = cm_node_events, .file_of = cm_node_file_of };

static int cm_node_open(struct cuse_file *f, struct uvd_account *account)
{
	int err = 0;

	f->priv = uvd_cm_open(f->cuse->config.cm, account, f->opener.tgid, f->opener.privileged, &cm_node_file_ops, f,
			      &err);
	return f->priv ? 0 : err;
}

static void cm_node_close(struct cuse_file *f)
{
	uvd_cm_close(f->priv);
}

static long cm_node_write_from(struct cuse_file *f, struct uvd_call *call, uint64_t addr, size_t size)
{
	return uvd_cm_write_from(f->priv, &call->caller, addr, size);
}

static long cm_node_write(struct cuse_file *f, struct uvd_call *call, const void *data, size_t size)
{
	long ret = uvd_cm_write(f->priv, &call->caller, data, size);
	uint64_t addr;
	size_t total;

	if (ret != UVD_CM_IS_SHORT)
		return ret;
	ret = uvd_caller_confirm(&call->caller,
				 f->cuse->config.clients->write_whole(f->cuse, call->caller.tid, &addr, &total));
	return ret ? ret : cm_node_write_from(f, call, addr, total);
}

static bool cm_node_wait(struct cuse_file *f, struct uvd_cm_waiter *waiter)
{
	return uvd_cm_wait(f->priv, waiter);
}

static bool cm_node_wait_end(struct cuse_file *f, struct uvd_cm_waiter *waiter)
{
	return uvd_cm_wait_end(f->priv, waiter);
}

/* As ucma_poll(): a file can always be written, but POLLOUT is never reported. */
static unsigned int cm_node_poll(struct cuse_file *f)
{
	return uvd_cm_has_events(f->priv) ? POLLIN | POLLRDNORM : 0;
}

const struct uvd_cuse_kind uvd_cuse_cm_nodes = {
	.make = cm_node_make,
	.open = cm_node_open,
	.close = cm_node_close,
	.write = cm_node_write,
	.write_from = cm_node_write_from,
	.wait = cm_node_wait,
	.wait_end = cm_node_wait_end,
	.poll = cm_node_poll,
};
