/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/register.h"
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include "broker/borrow.h"
#include "broker/way.h"

enum { I386_CLOSE = 6, I386_IOCTL = 54 };

/* INVOKE_WRITE with REG_MR, as it lies on the thread's stack; the same for 64 and 32 bits. */
struct register_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[3];
	struct ib_uverbs_reg_mr cmd;
	struct ib_uverbs_reg_mr_resp resp;
};

_Static_assert(sizeof(struct register_call) <= UVD_BORROW_SCRATCH, "the call does not fit");

static struct register_call make_call(const struct uvd_reg_order *o, uint64_t at)
{
	return (struct register_call){
		.hdr = { .length = offsetof(struct register_call, cmd),
			 .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_INVOKE_WRITE,
			 .num_attrs = 3,
			 .driver_id = o->driver_id },
		.attrs = { { .attr_id = UVERBS_ATTR_WRITE_CMD,
			     .len = sizeof(uint64_t),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = IB_USER_VERBS_CMD_REG_MR },
			   { .attr_id = UVERBS_ATTR_CORE_IN,
			     .len = sizeof(struct ib_uverbs_reg_mr),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = at + offsetof(struct register_call, cmd) },
			   { .attr_id = UVERBS_ATTR_CORE_OUT,
			     .len = sizeof(struct ib_uverbs_reg_mr_resp),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = at + offsetof(struct register_call, resp) } },
		.cmd = { .response = at + offsetof(struct register_call, resp),
			 .start = o->start,
			 .length = o->length,
			 .hca_va = o->iova,
			 .pd_handle = o->pd_handle,
			 .access_flags = o->access },
	};
}

/* Executes the call on the thread's descriptor `number`. */
static int64_t register_execute(struct uvd_borrow *b, long number, const struct uvd_reg_order *order, bool *executed)
{
	const uint64_t at = uvd_borrow_scratch(b);
	struct register_call saved, call;
	int64_t ret;

	if (!at)
		return -EPERM;
	call = make_call(order, at);
	if (!uvd_borrow_read(b, at, &saved, sizeof(saved)) || !uvd_borrow_write(b, at, &call, sizeof(call)))
		return -EFAULT;
	ret = uvd_borrow_call(b, SYS_ioctl, I386_IOCTL, (long[3]){ number, RDMA_VERBS_IOCTL, (long)at });
	*executed = !b->dead && !b->disobeyed;
	/* If the response cannot be read, the region stays until its context is closed. */
	if (!ret)
		ret = uvd_borrow_read(b, at, &call, sizeof(call)) ? (int64_t)call.resp.mr_handle : -EFAULT;
	uvd_borrow_write(b, at, &saved, sizeof(saved));
	return ret;
}

int64_t uvd_borrow_register(struct uvd_ways *ways, struct uvd_borrow *b, int fd, const struct uvd_reg_order *order,
			    bool *executed)
{
	const long number = uvd_way_pass(ways, b, fd);
	int64_t ret;

	*executed = false;
	if (number < 0)
		return number;
	ret = register_execute(b, number, order, executed);
	uvd_borrow_call(b, SYS_close, I386_CLOSE, (long[3]){ number });
	return b->dead ? -ESRCH : ret;
}
