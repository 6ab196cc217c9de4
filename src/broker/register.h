/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A borrowed thread (borrow.h) registers its memory with an adapter: it receives the device file of an adapter's context
 * (way.h), executes REG_MR on it by ioctl, and closes it. The kernel then pins and charges the memory of that thread.
 *
 * Other threads of the client can duplicate the descriptor meanwhile and keep it, and they can change the command and the
 * response, which lie on the thread's stack. So the context must be of this client alone, the result must be asked of
 * the adapter again, and the client is trusted with what works in that context (docs/security-adapter.md).
 */
#ifndef UVD_REGISTER_H
#define UVD_REGISTER_H

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/registration.h>

struct uvd_borrow;

/* INVOKE_WRITE with REG_MR, as it lies on the thread's stack; the same for 64 and 32 bits. */
struct uvd_register_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[4]; /* the last is of the driver's data, if there are any */
	struct ib_uverbs_reg_mr cmd;
	struct ib_uverbs_reg_mr_resp resp;
};

/* Returns the call for a place `at` in the client's memory. */
struct uvd_register_call uvd_register_call(const struct uvd_reg_order *order, uint64_t at);

/*
 * Between uvd_borrow_stop() and uvd_borrow_release(). number: of the adapter's device file in the thread's table; this function
 * closes it. Returns the region's handle as the thread's memory has it; or a negative errno, with *executed: of the kernel's
 * REG_MR; -ESRCH: the thread died.
 */
int64_t uvd_borrow_register_by(struct uvd_borrow *b, long number, const struct uvd_reg_order *order, bool *executed);

#endif
