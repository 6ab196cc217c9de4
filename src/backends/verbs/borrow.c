/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions that the client's own thread registers with the adapter (--memory=borrow), in the context that the
 * adapter has for this client alone. The keys are the adapter's, so peers reach them, and work requests need no copies.
 *
 * The handle of a new region comes from the client's memory, so it may name another region of its own context. The adapter
 * is asked for keys, length and address of the region, and none is taken that differs from what was ordered. A client can
 * keep the context's device file: docs/security-adapter.md ("A real adapter") says what it gains, and what the daemon checks.
 */
#include <errno.h>
#include <linux/capability.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/irdma-abi.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/client.h>
#include <uverbsd/log.h>
#include "backends/verbs/verbs.h"

/*
 * The drivers whose REG_MR is known, and the data that each gets with it beside the attributes of the InfiniBand core: see
 * the drivers' headers.
 * docs/hca.md says which of them were tried.
 */
static const struct borrow_driver {
	enum rdma_driver_id id;
	bool has_rights; /* the driver gives each context the rights that the opener's capabilities allow */
	uint32_t len; /* bytes of data */
	union {
		uint8_t bytes[UVD_REG_DRIVER_DATA];
		struct irdma_mem_reg_req irdma;
	} data;
} drivers[] = {
	{ RDMA_DRIVER_RXE },
	{ RDMA_DRIVER_MLX5, .has_rights = true },
	{ RDMA_DRIVER_MLX4 },
	{ RDMA_DRIVER_EFA },
	{ RDMA_DRIVER_BNXT_RE },
	/* Memory for data, and not for a queue: no pages of queues. */
	{ RDMA_DRIVER_IRDMA, .len = sizeof(struct irdma_mem_reg_req),
	  .data = { .irdma.reg_type = IRDMA_MEMREG_TYPE_MEM } },
};

static const struct borrow_driver *borrow_driver(int id)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (id == (int)drivers[i].id)
			return &drivers[i];
	return NULL;
}

bool hca_borrow_knows(const struct ibv_context *adapter)
{
	return borrow_driver(uverbsd_driver_id(adapter->cmd_fd));
}

bool hca_has_capability(uint32_t capabilities)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	return syscall(SYS_capget, &hdr, data) || data[0].effective & capabilities;
}

const char *hca_borrow_obstacle(struct uvd_ibdev *ibdev)
{
	const struct borrow_driver *driver = borrow_driver(hca_device(ibdev)->driver_id);
	/* The capabilities at which drivers look. */
	const bool has_rights = hca_has_capability(1u << CAP_NET_RAW | 1u << CAP_SYS_RAWIO);

	if (!driver)
		return "the registration of the adapter's driver is not known";
	if (driver->has_rights && has_rights)
		return "the adapter's driver would give clients what CAP_NET_RAW and CAP_SYS_RAWIO of uverbsd allow; "
		       "--memory=borrow does so";
	return NULL;
}

void hca_borrow_probe(struct hca_device *dev)
{
	const int id = uverbsd_driver_id(dev->adapter->cmd_fd);

	dev->driver_id = borrow_driver(id) ? id : -1;
	if (dev->driver_id < 0 && dev->ibdev->config.memory == UVD_MEMORY_BORROW)
		uvd_logf(
			dev->ibdev->log, UVD_WARN,
			"%s: --memory=borrow does not work with the driver of %s, number %d: data is copied, and peers cannot "
			"access clients' memory",
			dev->ibdev->config.ibdev, dev->hca, id);
}

/* ---- a region's life --------------------------------------------------------------------------------------------- */

static int borrow_call(const struct hca_mr *mr, struct uverbsd_call *call, uint16_t method)
{
	const int err = uverbsd_call(mr->registration.fd, (int)mr->registration.order.driver_id, call, UVERBS_OBJECT_MR,
				     method);

	return err ? hca_errno_of(err) : 0;
}

int hca_borrow_query(const struct hca_mr *mr, uint32_t handle, struct uvd_mr *out)
{
	struct uverbsd_call call = {};

	uverbsd_handle(&call, UVERBS_ATTR_QUERY_MR_HANDLE, handle);
	uverbsd_out(&call, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &out->lkey, sizeof(out->lkey));
	uverbsd_out(&call, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &out->rkey, sizeof(out->rkey));
	uverbsd_out(&call, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &out->length, sizeof(out->length));
	uverbsd_out(&call, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &out->iova, sizeof(out->iova));
	return borrow_call(mr, &call, UVERBS_METHOD_QUERY_MR);
}

/* The region is in the adapter's context. Takes its keys over, or refuses what the client's memory has named. */
static int borrow_accept(struct hca_mr *mr, uint32_t handle)
{
	const struct hca_device *dev = hca_device(mr->mr.pd->context->dev);
	struct uvd_mr answer = {};
	int ret = hca_borrow_query(mr, handle, &answer);

	if (ret || answer.length != mr->mr.length || answer.iova != mr->mr.iova) {
		uvd_log_of_user(
			dev->ibdev->log, uvd_account_person(mr->mr.pd->context->account), UVD_WARN,
			"%s: the client's memory names handle %u for its new region, and %s has another region there or "
			"none (%s): refused",
			dev->ibdev->config.ibdev, handle, dev->hca, ret ? uvd_errno_name(ret) : "other bytes");
		return ret == -EIO ? ret : -EFAULT;
	}
	mr->handle = handle;
	mr->borrowed = true;
	mr->mr.lkey = answer.lkey;
	mr->mr.rkey = answer.rkey;
	return 0;
}

static int borrow_end(struct uvd_mr *base, int64_t result)
{
	const struct hca_device *dev = hca_device(base->pd->context->dev);
	struct hca_mr *mr = (struct hca_mr *)base;

	if (result >= 0)
		return borrow_accept(mr, (uint32_t)result);
	if (mr->registration.executed || result == -ESRCH || result == -EAGAIN)
		return (int)result;
	uvd_log_of_user(
		dev->ibdev->log, uvd_account_person(base->pd->context->account), UVD_WARN,
		"%s: no thread of the client can be borrowed (%s): its data is copied, and peers cannot access it",
		dev->ibdev->config.ibdev, uvd_errno_name((int)result));
	return hca_bounce_mr(mr);
}

void hca_borrow_mr(struct hca_mr *mr)
{
	const struct hca_device *dev = hca_device(mr->mr.pd->context->dev);
	const struct borrow_driver *driver = borrow_driver(dev->driver_id);

	atomic_store(&hca_context(mr->mr.pd->context)->lent, true);
	mr->registration = (struct uvd_registration){
		.order = { .start = mr->mr.umem.addr,
			   .length = mr->mr.length,
			   .iova = mr->mr.iova,
			   .access = mr->mr.access,
			   .pd_handle = ((struct hca_pd *)mr->mr.pd)->adapter->handle,
			   .driver_id = dev->driver_id,
			   .driver_data_len = driver->len },
		.fd = hca_context(mr->mr.pd->context)->adapter->cmd_fd,
		.end = borrow_end,
	};
	memcpy(mr->registration.order.driver_data, driver->data.bytes, sizeof(driver->data.bytes));
	mr->mr.registration = &mr->registration;
}

int hca_borrow_dereg(struct hca_mr *mr)
{
	struct uverbsd_call call = {};
	int ret;

	uverbsd_handle(&call, UVERBS_ATTR_DESTROY_MR_HANDLE, mr->handle);
	ret = borrow_call(mr, &call, UVERBS_METHOD_MR_DESTROY);
	/* ENOENT: the client, which can have a copy of the descriptor, has destroyed the region itself. */
	return ret == -ENOENT ? 0 : hca_destroyed(hca_device(mr->mr.pd->context->dev), ret);
}
