/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * REREG_MR. A borrowed region is the adapter's: the engine has the adapter change it, in the context of this client
 * alone. A region whose data is copied is the engine's.
 *
 * Only a thread of the client could give a borrowed region other memory, as it has registered it. That is refused, as
 * by rxe.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <uverbsd/client.h>
#include <uverbsd/log.h>
#include "backends/verbs/verbs.h"

/* Issues the command by ioctl. Returns 0 or a negative errno. */
static int rereg_call(int fd, int driver_id, const struct ib_uverbs_rereg_mr *cmd, const struct uvd_reg_order *order,
		      struct ib_uverbs_rereg_mr_resp *resp)
{
	struct uverbsd_call call = {};
	int err;

	uverbsd_const(&call, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_REREG_MR);
	uverbsd_in(&call, UVERBS_ATTR_CORE_IN, cmd, sizeof(*cmd));
	uverbsd_out(&call, UVERBS_ATTR_CORE_OUT, resp, sizeof(*resp));
	if (order && order->driver_data_len)
		uverbsd_in(&call, UVERBS_ATTR_UHW_IN, order->driver_data, order->driver_data_len);
	err = uverbsd_call(fd, driver_id, &call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	return err ? hca_errno_of(err) : 0;
}

bool hca_tries_rereg(const struct ibv_context *adapter)
{
	const int id = uverbsd_driver_id(adapter->cmd_fd);
	const struct ib_uverbs_rereg_mr cmd = {};
	struct ib_uverbs_rereg_mr_resp resp;

	/* A kernel whose driver has the command refuses it without flags, before it looks for the region (mr-04). */
	return id >= 0 && rereg_call(adapter->cmd_fd, id, &cmd, NULL, &resp) == -EINVAL;
}

/* ---- borrowed regions -------------------------------------------------------------------------------------------- */

/*
 * Changes what flags say. Address and length in the command stay 0: a driver that can only register the region anew
 * would pin memory of the thread that executes the command, the engine's. Of 0 bytes the kernel pins none, and the call fails.
 */
static int borrowed_change(struct hca_mr *mr, int flags, uint32_t access, const struct uvd_pd *pd)
{
	const struct uvd_reg_order *order = &mr->registration.order;
	const struct ib_uverbs_rereg_mr cmd = {
		.mr_handle = mr->handle,
		.flags = flags,
		.pd_handle = ((const struct hca_pd *)pd)->adapter->handle,
		.access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp resp;

	return rereg_call(mr->registration.fd, (int)order->driver_id, &cmd, order, &resp);
}

/*
 * Access first, and the PD by a call of its own: rxe does not undo the change of the PD if it refuses the access, and the
 * old PD could then not be deallocated. If the adapter refuses the PD, it gets the old access again; if it refuses that,
 * too, the client has a region that it must not use any more, as after a failure of the adapter itself.
 */
static int borrowed_change_both(struct hca_mr *mr, const struct uvd_mr *to)
{
	int ret = borrowed_change(mr, IBV_REREG_MR_CHANGE_ACCESS, to->access, mr->mr.pd);

	if (ret)
		return ret;
	ret = borrowed_change(mr, IBV_REREG_MR_CHANGE_PD, to->access, to->pd);
	if (ret)
		borrowed_change(mr, IBV_REREG_MR_CHANGE_ACCESS, mr->mr.access, mr->mr.pd);
	return ret;
}

static int rereg_refuse(const struct hca_mr *mr, const struct uvd_mr *to)
{
	const struct hca_device *dev = hca_device(mr->mr.pd->context->dev);

	uvd_log_of_user(
		dev->ibdev->log, uvd_account_person(mr->mr.pd->context->account), UVD_WARN,
		"%s: REREG_MR with other memory, %llu bytes, is refused: only the client's thread could register it with %s; "
		"the client can deregister the region, and register the memory as a new one",
		dev->ibdev->config.ibdev, (unsigned long long)to->length, dev->hca);
	return -EOPNOTSUPP;
}

static int rereg_borrowed(struct hca_mr *mr, int flags, const struct uvd_mr *to)
{
	const bool access = flags & IBV_REREG_MR_CHANGE_ACCESS, pd = flags & IBV_REREG_MR_CHANGE_PD;
	const struct hca_device *dev = hca_device(mr->mr.pd->context->dev);
	struct uvd_mr answer = {};
	int ret = 0;

	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		return rereg_refuse(mr, to);
	if (access && pd)
		ret = borrowed_change_both(mr, to);
	else if (access || pd)
		ret = borrowed_change(mr, flags, to->access, to->pd);
	if (ret)
		return ret;
	/* A client with a copy of the context's device file can have put another region behind the handle. */
	ret = hca_borrow_query(mr, mr->handle, &answer);
	if (ret || answer.length != mr->mr.length || answer.iova != mr->mr.iova) {
		uvd_log_of_user(
			dev->ibdev->log, uvd_account_person(mr->mr.pd->context->account), UVD_WARN,
			"%s: after REREG_MR %s has another region behind handle %u of the client's, or none (%s): EFAULT; "
			"the client must deregister the region",
			dev->ibdev->config.ibdev, dev->hca, mr->handle, ret ? uvd_errno_name(ret) : "other bytes");
		return ret == -EIO ? ret : -EFAULT;
	}
	mr->mr.pd = to->pd;
	mr->mr.access = to->access;
	mr->mr.lkey = answer.lkey;
	mr->mr.rkey = answer.rkey;
	return UVD_REREG_CHANGED;
}

/* ---- regions whose data is copied -------------------------------------------------------------------------------- */

static int rereg_bounced(struct hca_mr *mr, int flags, struct uvd_mr *to)
{
	struct hca_context *context = hca_context(mr->mr.pd->context);
	int ret;

	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		ret = hca_bounce_mr((struct hca_mr *)to);
		return ret ? ret : UVD_REREG_NEW;
	}
	ret = hca_bounce_check(to);
	if (ret)
		return ret;
	/* Copies that have begun end with the old rights, as on an adapter that is at work. */
	uvd_lock(&context->lock);
	mr->mr.pd = to->pd;
	mr->mr.access = to->access;
	uvd_unlock(&context->lock);
	return UVD_REREG_CHANGED;
}

int hca_rereg_mr(struct uvd_mr *base, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	struct hca_mr *mr = (struct hca_mr *)base;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	return mr->borrowed ? rereg_borrowed(mr, flags, to) : rereg_bounced(mr, flags, to);
}
