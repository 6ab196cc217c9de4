/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The nodes of devices: /dev/infiniband/uverbsN. */
#include <stdatomic.h>
#include "cuse/internal.h"

static int device_node_make(struct uvd_cuse *c, int *fd)
{
	struct uvd_privilege *p = c->config.privilege;

	return p->ops->make_node(p, c->config.index, c->config.number, &c->node, fd);
}

static int device_node_open(struct cuse_file *f, struct uvd_account *account)
{
	struct uvd_file *file;
	int err = 0;

	f->priv = file = uvd_file_open(f->cuse->dev, account, &err);
	if (!file)
		return err;
	atomic_store_explicit(&file->watched.opened_by, f->opener.tgid, memory_order_relaxed);
	file->watched.privileged = f->opener.privileged;
	if (f->cuse->config.queues)
		uvd_cuse_memory_init(f);
	return 0;
}

static void device_node_close(struct cuse_file *f)
{
	uvd_file_close(f->priv);
}

static bool device_node_is_gone(struct uvd_cuse *c)
{
	return c->dev->gone;
}

long uvd_cuse_device_write(struct cuse_file *f, struct uvd_call *call, const void *data, size_t size)
{
	uvd_cuse_memory_drain(f);
	call->file = f->priv;
	return uvd_dispatch_write(call, data, size);
}

long uvd_cuse_device_write_from(struct cuse_file *f, struct uvd_call *call, uint64_t addr, size_t size)
{
	uvd_cuse_memory_drain(f);
	call->file = f->priv;
	return uvd_dispatch_write_from(call, addr, size);
}

long uvd_cuse_device_ioctl(struct cuse_file *f, struct uvd_call *call, unsigned int cmd, uint64_t arg)
{
	uvd_cuse_memory_drain(f);
	call->file = f->priv;
	return uvd_dispatch_ioctl(call, cmd, arg);
}

const struct uvd_cuse_kind uvd_cuse_device_nodes = {
	.make = device_node_make,
	.open = device_node_open,
	.close = device_node_close,
	.is_gone = device_node_is_gone,
	.write = uvd_cuse_device_write,
	.write_from = uvd_cuse_device_write_from,
	.ioctl = uvd_cuse_device_ioctl,
};
