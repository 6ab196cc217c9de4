/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A registration of memory that the client's own thread makes with an adapter: the kernel pins the memory of the thread
 * that executes REG_MR, whoever has opened the adapter. The backend (reg_mr) describes the registration, the transport
 * has the client's thread execute it before the client goes on, and the backend ends it.
 */
#ifndef UVERBSD_REGISTRATION_H
#define UVERBSD_REGISTRATION_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_mr;

enum { UVD_REG_DRIVER_DATA = 8 /* bytes; an attribute of the kernel's ioctl has room for so many in itself */ };

/*
 * The fields of struct ib_uverbs_reg_mr, the adapter's driver, and what that driver gets beside them. Of fixed size: the
 * broker gets it in a message.
 */
struct uvd_reg_order {
	uint64_t start, length, iova; /* bytes, and addresses of the client */
	uint32_t access; /* enum ibv_access_flags */
	uint32_t pd_handle; /* of the adapter's context */
	uint32_t driver_id; /* enum rdma_driver_id */
	uint32_t driver_data_len; /* bytes; 0: the driver takes none */
	uint8_t driver_data[UVD_REG_DRIVER_DATA]; /* as in the driver's header <rdma/NAME-abi.h>; the rest is 0 */
};

struct uvd_registration {
	struct uvd_reg_order order;
	/* The device file of the adapter's context. The backend's; open until the client's context is deallocated. */
	int fd;
	/* Set by the transport: a thread of the client has executed the call, and `result` is what the kernel answered. */
	bool executed;
	/*
	 * Ends the registration, once, on any thread. result: the handle of the region on the adapter, as the client's
	 * memory has it, so it may be any number; or a negative errno: of the kernel if `executed`, else why the thread
	 * was not borrowed: -ESRCH: the client does not wait any more; -EAGAIN: too many threads are borrowed at this
	 * moment; others: it cannot be borrowed. Sets the keys.
	 * Returns 0 or a negative errno; dereg_mr follows in both cases, then or later.
	 */
	int (*end)(struct uvd_mr *mr, int64_t result);
};

#endif
