/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices, contexts, PDs and AHs, and the backend's table of operations. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/select.h>
#include <unistd.h>
#include "account/account.h"
#include "backends/backends.h"
#include "backends/verbs/verbs.h"

enum { CONTEXT_DESCRIPTORS = 3 /* of commands, of asynchronous events, and the completion channel */ };

static int hca_open(struct uvd_ibdev *ibdev)
{
	struct hca_device *dev = uvd_zalloc(sizeof(*dev));
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->ibdev = ibdev;
	dev->max_rings = hca_max_rings();
	dev->patience = HCA_PATIENCE;
	INIT_LIST_HEAD(&dev->left);
	dev->most_left = HCA_MOST_LEFT;
	ibdev->priv = dev;
	ret = hca_adapter_open(dev);
	if (ret)
		goto free_device;
	hca_borrow_probe(dev);
	ret = hca_events_start(dev);
	if (ret)
		goto close_adapter;
	ret = hca_xrc_begin(dev);
	if (!ret)
		return 0;
	hca_events_end(dev);
close_adapter:
	ibv_close_device(dev->adapter);
free_device:
	ibdev->priv = NULL;
	hca_left_free(dev);
	free(dev);
	return ret;
}

static void hca_close(struct uvd_ibdev *ibdev)
{
	struct hca_device *dev = hca_device(ibdev);

	hca_xrc_end(dev);
	hca_events_end(dev);
	ibv_close_device(dev->adapter);
	ibdev->priv = NULL;
	hca_left_free(dev);
	free(dev);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static int hca_query_device(struct uvd_ibdev *ibdev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata)
{
	struct hca_device *dev = hca_device(ibdev);
	int ret;

	if (uvd_udata_inlen(udata) || uvd_udata_outlen(udata))
		return -EINVAL;
	if (atomic_load(&dev->dead))
		return -EIO;
	ret = hca_result(ibv_query_device_ex(dev->adapter, NULL, attr));
	if (ret)
		return ret;
	hca_mask_device(attr, hca_borrows(dev), dev->features);
	hca_cap_by_rings(dev, attr);
	return 0;
}

static int hca_query_port(struct uvd_ibdev *ibdev, uint8_t port, struct ibv_port_attr *attr)
{
	struct hca_device *dev = hca_device(ibdev);

	return atomic_load(&dev->dead) ? -EIO : hca_result(ibv_query_port(dev->adapter, port, attr));
}

static int hca_query_gid(struct uvd_ibdev *ibdev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry)
{
	struct hca_device *dev = hca_device(ibdev);

	return atomic_load(&dev->dead) ? -EIO : hca_result(ibv_query_gid_ex(dev->adapter, port, index, entry, 0));
}

/* ---- destruction ------------------------------------------------------------------------------------------------- */

/* Does the adapter answer a query? That of a context whose adapter was removed fails with EIO. */
static bool adapter_answers(const struct hca_device *dev)
{
	struct ibv_port_attr attr;
	const int ret = hca_result(ibv_query_port(dev->adapter, 1, &attr));

	return ret != -EIO && ret != -ENODEV;
}

int hca_destroyed(struct hca_device *dev, int ret)
{
	ret = hca_result(ret);
	/* The event that tells of the adapter's end can come later than the end. Its objects have ended with it. */
	if (ret == -EIO && !atomic_load(&dev->dead) && !adapter_answers(dev))
		atomic_store(&dev->dead, true);
	return atomic_load(&dev->dead) ? 0 : ret;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

int hca_context_begin(struct hca_device *dev, struct hca_context *context)
{
	int ret;

	context->adapter = ibv_open_device(dev->adapter->device);
	if (!context->adapter)
		return hca_errno();
	context->channel = ibv_create_comp_channel(context->adapter);
	if (!context->channel) {
		ret = hca_errno();
		goto close;
	}
	/* Before any other thread or epoll knows them. Providers use the numbers of these structs. */
	context->adapter->cmd_fd = uvd_fd_raise(context->adapter->cmd_fd);
	context->adapter->async_fd = uvd_fd_raise(context->adapter->async_fd);
	context->channel->fd = uvd_fd_raise(context->channel->fd);
	hca_objects_init(context);
	pthread_mutex_init(&context->lock, NULL);
	pthread_cond_init(&context->unused, NULL);
	INIT_LIST_HEAD(&context->free_records);
	INIT_LIST_HEAD(&context->dm_mrs);
	ret = hca_events_add(dev, context);
	if (!ret)
		return 0;
	pthread_cond_destroy(&context->unused);
	pthread_mutex_destroy(&context->lock);
	ibv_destroy_comp_channel(context->channel);
close:
	ibv_close_device(context->adapter);
	return ret;
}

static void context_close(struct hca_context *context)
{
	const int channel = context->channel->fd;

	/* libibverbs keeps a channel that has CQs: those that could not be destroyed. */
	if (ibv_destroy_comp_channel(context->channel))
		close(channel);
	ibv_close_device(context->adapter);
}

/* A context with a destruction that is stuck stays open, and charged: the thread of that destruction may go on one day. */
void hca_context_end(struct hca_device *dev, struct hca_context *context)
{
	hca_events_remove(dev, context);
	if (!atomic_load(&context->stuck))
		context_close(context);
	pthread_cond_destroy(&context->unused);
	pthread_mutex_destroy(&context->lock);
}

static int hca_alloc_context(struct uvd_context *base, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base);
	struct hca_device *dev = hca_device(base->dev);
	int ret;

	if (atomic_load(&dev->dead))
		return -EIO;
	ret = uvd_account_charge(base->account, UVD_RES_DESCRIPTORS, CONTEXT_DESCRIPTORS);
	if (ret)
		return ret;
	ret = hca_context_begin(dev, context);
	if (ret)
		uvd_account_uncharge(base->account, UVD_RES_DESCRIPTORS, CONTEXT_DESCRIPTORS);
	return ret;
}

static void hca_dealloc_context(struct uvd_context *base)
{
	struct hca_context *context = hca_context(base);

	hca_context_end(hca_device(base->dev), context);
	hca_records_end(context);
	free(context->mrs);
	uvd_uncharge_bytes(base->account, context->num_mrs * sizeof(*context->mrs));
	if (!atomic_load(&context->stuck))
		uvd_account_uncharge(base->account, UVD_RES_DESCRIPTORS, CONTEXT_DESCRIPTORS);
}

/* ---- PDs and AHs ------------------------------------------------------------------------------------------------- */

static int hca_alloc_pd(struct uvd_pd *base, struct uvd_udata *udata)
{
	struct hca_pd *pd = (struct hca_pd *)base;
	int ret;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	pd->pool = hca_pool_new(base->context->account);
	if (!pd->pool)
		return -ENOMEM;
	pd->adapter = ibv_alloc_pd(hca_context(base->context)->adapter);
	if (pd->adapter)
		return 0;
	ret = hca_errno();
	hca_pool_put(pd->pool);
	return ret;
}

static int hca_dealloc_pd(struct uvd_pd *base)
{
	struct hca_context *context = hca_context(base->context);
	struct hca_pd *pd = (struct hca_pd *)base;
	int ret;

	uvd_lock(&context->lock);
	/* The adapter refuses to deallocate a PD that has regions. If it refuses now, too, the next post makes others. */
	hca_pool_deregister(pd->pool);
	ret = hca_destroyed(hca_device(base->context->dev), ibv_dealloc_pd(pd->adapter));
	if (!ret)
		hca_pool_put(pd->pool);
	uvd_unlock(&context->lock);
	return ret;
}

/*
 * Some providers find the peer's MAC address themselves, and libibverbs then calls select() on new descriptors: one of
 * FD_SETSIZE or more would abort the daemon. Other threads may open some between this look and that call: hence a gap.
 */
static bool ah_has_low_descriptors(void)
{
	const int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 && fd < FD_SETSIZE - 128;
}

static int hca_create_ah(struct uvd_ah *base, struct uvd_udata *udata)
{
	struct hca_ah *ah = (struct hca_ah *)base;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	if (!ah_has_low_descriptors())
		return -EMFILE;
	ah->adapter = ibv_create_ah(((struct hca_pd *)base->pd)->adapter, &base->attr);
	return ah->adapter ? 0 : hca_errno();
}

static int hca_destroy_ah(struct uvd_ah *base)
{
	return hca_destroyed(hca_device(base->pd->context->dev), ibv_destroy_ah(((struct hca_ah *)base)->adapter));
}

/* ---- memory windows ---------------------------------------------------------------------------------------------- */

static int hca_alloc_mw(struct uvd_mw *base, struct uvd_udata *udata)
{
	struct hca_mw *mw = (struct hca_mw *)base;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	mw->adapter = ibv_alloc_mw(((struct hca_pd *)base->pd)->adapter, base->type);
	if (!mw->adapter)
		return hca_errno();
	base->rkey = mw->adapter->rkey;
	return 0;
}

static int hca_dealloc_mw(struct uvd_mw *base)
{
	return hca_destroyed(hca_device(base->pd->context->dev), ibv_dealloc_mw(((struct hca_mw *)base)->adapter));
}

static void hca_narrow(struct uvd_ibdev *ibdev, struct uvd_backend *ops)
{
	const enum uvd_memory memory = ibdev->config.memory;
	const unsigned int features = hca_device(ibdev)->features;

	if (memory != UVD_MEMORY_BORROW) {
		ops->alloc_mw = NULL;
		ops->dealloc_mw = NULL;
	}
	if (!(features & HCA_XRC)) {
		ops->alloc_xrcd = NULL;
		ops->dealloc_xrcd = NULL;
	}
	if (!(features & HCA_DM)) {
		ops->alloc_dm = NULL;
		ops->dealloc_dm = NULL;
		ops->reg_dm_mr = NULL;
	}
	/* Regions whose data is copied are the engine's own, and can change without the adapter. */
	if (memory != UVD_MEMORY_BOUNCE && !(features & HCA_REREG))
		ops->rereg_mr = NULL;
	if (!(features & HCA_COUNTERS)) {
		ops->create_counters = NULL;
		ops->destroy_counters = NULL;
		ops->read_counters = NULL;
	}
	if (!(features & HCA_FLOW)) {
		ops->create_flow = NULL;
		ops->destroy_flow = NULL;
	}
	if (!(features & HCA_RSS)) {
		ops->create_wq = NULL;
		ops->modify_wq = NULL;
		ops->destroy_wq = NULL;
		ops->create_rwq_ind_table = NULL;
		ops->destroy_rwq_ind_table = NULL;
	}
}

const struct uvd_backend uvd_backend_verbs = {
	.name = "verbs",
	.size_context = sizeof(struct hca_context),
	.size_pd = sizeof(struct hca_pd),
	.size_xrcd = sizeof(struct hca_xrcd),
	.size_mr = sizeof(struct hca_mr),
	.size_dm = sizeof(struct hca_dm),
	.size_mw = sizeof(struct hca_mw),
	.size_ah = sizeof(struct hca_ah),
	.size_cq = sizeof(struct hca_cq),
	.size_srq = sizeof(struct hca_srq),
	.size_qp = sizeof(struct hca_qp),
	.size_wq = sizeof(struct hca_wq),
	.size_rwq_ind_table = sizeof(struct hca_rwq_ind_table),
	.size_flow = sizeof(struct hca_flow),
	.size_counters = sizeof(struct hca_counters),
	.open = hca_open,
	.close = hca_close,
	.ending = hca_objects_ending,
	.narrow = hca_narrow,
	.borrow_obstacle = hca_borrow_obstacle,
	.take_port = hca_take_port,
	.query_device = hca_query_device,
	.query_port = hca_query_port,
	.query_gid = hca_query_gid,
	.alloc_context = hca_alloc_context,
	.dealloc_context = hca_dealloc_context,
	.alloc_pd = hca_alloc_pd,
	.dealloc_pd = hca_dealloc_pd,
	.reg_mr = hca_reg_mr,
	.dereg_mr = hca_dereg_any_mr,
	.rereg_mr = hca_rereg_mr,
	.alloc_xrcd = hca_alloc_xrcd,
	.dealloc_xrcd = hca_dealloc_xrcd,
	.alloc_dm = hca_alloc_dm,
	.dealloc_dm = hca_dealloc_dm,
	.reg_dm_mr = hca_reg_dm_mr,
	.alloc_mw = hca_alloc_mw,
	.dealloc_mw = hca_dealloc_mw,
	.create_ah = hca_create_ah,
	.destroy_ah = hca_destroy_ah,
	.create_cq = hca_create_cq,
	.destroy_cq = hca_destroy_cq,
	.poll_cq = hca_poll_cq,
	.req_notify_cq = hca_req_notify_cq,
	.resize_cq = hca_resize_cq,
	.create_srq = hca_create_srq,
	.modify_srq = hca_modify_srq,
	.query_srq = hca_query_srq,
	.destroy_srq = hca_destroy_srq,
	.post_srq_recv = hca_post_srq_recv,
	.create_qp = hca_create_qp,
	.modify_qp = hca_modify_qp,
	.query_qp = hca_query_qp,
	.destroy_qp = hca_destroy_qp,
	.post_send = hca_post_send,
	.post_recv = hca_post_recv,
	.attach_mcast = hca_attach_mcast,
	.detach_mcast = hca_detach_mcast,
	.create_wq = hca_create_wq,
	.modify_wq = hca_modify_wq,
	.destroy_wq = hca_destroy_wq,
	.create_rwq_ind_table = hca_create_rwq_ind_table,
	.destroy_rwq_ind_table = hca_destroy_rwq_ind_table,
	.create_flow = hca_create_flow,
	.destroy_flow = hca_destroy_flow,
	.create_counters = hca_create_counters,
	.destroy_counters = hca_destroy_counters,
	.read_counters = hca_read_counters,
};
