/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/register.h"
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <stddef.h>
#include <string.h>
#include "broker/borrow.h"

_Static_assert(sizeof(struct uvd_register_call) <= UVD_BORROW_SCRATCH, "the call does not fit");
_Static_assert(UVD_REG_DRIVER_DATA == sizeof(((struct ib_uverbs_attr *)NULL)->data), "the driver's data do not fit");

struct uvd_register_call uvd_register_call(const struct uvd_reg_order *o, uint64_t at)
{
	const uint16_t num = o->driver_data_len ? 4 : 3;
	struct uvd_register_call call = {
		.hdr = { .length = offsetof(struct uvd_register_call, attrs[num]),
			 .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_INVOKE_WRITE,
			 .num_attrs = num,
			 .driver_id = o->driver_id },
		.attrs = { { .attr_id = UVERBS_ATTR_WRITE_CMD,
			     .len = sizeof(uint64_t),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = IB_USER_VERBS_CMD_REG_MR },
			   { .attr_id = UVERBS_ATTR_CORE_IN,
			     .len = sizeof(struct ib_uverbs_reg_mr),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = at + offsetof(struct uvd_register_call, cmd) },
			   { .attr_id = UVERBS_ATTR_CORE_OUT,
			     .len = sizeof(struct ib_uverbs_reg_mr_resp),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = at + offsetof(struct uvd_register_call, resp) },
			   { .attr_id = UVERBS_ATTR_UHW_IN,
			     .len = o->driver_data_len,
			     .flags = UVERBS_ATTR_F_MANDATORY } },
		.cmd = { .response = at + offsetof(struct uvd_register_call, resp),
			 .start = o->start,
			 .length = o->length,
			 .hca_va = o->iova,
			 .pd_handle = o->pd_handle,
			 .access_flags = o->access },
	};

	memcpy(&call.attrs[3].data, o->driver_data, sizeof(o->driver_data));
	return call;
}

/* Executes the call on the thread's descriptor `number`. */
static int64_t register_execute(struct uvd_borrow *b, long number, const struct uvd_reg_order *order, bool *executed)
{
	const uint64_t at = uvd_borrow_scratch(b);
	struct uvd_register_call saved, call;
	int64_t ret;

	if (!at)
		return -EPERM;
	call = uvd_register_call(order, at);
	if (!uvd_borrow_read(b, at, &saved, sizeof(saved)) || !uvd_borrow_write(b, at, &call, sizeof(call)))
		return -EFAULT;
	ret = uvd_borrow_call(b, UVD_SYSCALL_IOCTL, (long[3]){ number, RDMA_VERBS_IOCTL, (long)at });
	*executed = !b->dead && !b->disobeyed;
	/* If the response cannot be read, the region stays until its context is closed. */
	if (!ret)
		ret = uvd_borrow_read(b, at, &call, sizeof(call)) ? (int64_t)call.resp.mr_handle : -EFAULT;
	uvd_borrow_write(b, at, &saved, sizeof(saved));
	return ret;
}

int64_t uvd_borrow_register_by(struct uvd_borrow *b, long number, const struct uvd_reg_order *order, bool *executed)
{
	int64_t ret;

	*executed = false;
	ret = register_execute(b, number, order, executed);
	uvd_borrow_call(b, UVD_SYSCALL_CLOSE, (long[3]){ number });
	return b->dead ? -ESRCH : ret;
}
