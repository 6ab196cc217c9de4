/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Common to the tests of XRC: the commands, a second client, and counters of the backend's calls. */
#ifndef UVD_TESTS_XRC_H
#define UVD_TESTS_XRC_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;

static inline void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
}

static inline int open_xrcd(int fd, uint32_t oflags, uint32_t *xrcd)
{
	struct ib_uverbs_open_xrcd cmd = { .fd = fd, .oflags = oflags };
	struct ib_uverbs_open_xrcd_resp resp = { .xrcd_handle = ~0u };
	int ret = WRITE(&h, OPEN_XRCD, &cmd, &resp);

	*xrcd = resp.xrcd_handle;
	return ret;
}

static inline int close_xrcd(uint32_t xrcd)
{
	struct ib_uverbs_close_xrcd cmd = { .xrcd_handle = xrcd };

	return WRITE_IN(&h, CLOSE_XRCD, &cmd);
}

static inline int create_target(uint32_t xrcd, struct ib_uverbs_create_qp_resp *resp)
{
	struct ib_uverbs_create_qp cmd = { .user_handle = 0x7777, .pd_handle = xrcd, .qp_type = IBV_QPT_XRC_RECV };

	return WRITE(&h, CREATE_QP, &cmd, resp);
}

static inline int open_target(uint32_t xrcd, uint32_t qpn, uint32_t *qp)
{
	struct ib_uverbs_open_qp cmd = {
		.user_handle = 0x8888, .pd_handle = xrcd, .qpn = qpn, .qp_type = IBV_QPT_XRC_RECV
	};
	struct ib_uverbs_create_qp_resp resp = { .max_send_wr = 9 };
	int ret = WRITE(&h, OPEN_QP, &cmd, &resp);

	*qp = resp.qp_handle;
	if (!ret) {
		ck_assert_uint_eq(resp.qpn, qpn);
		ck_assert_uint_eq(resp.max_send_wr, 0);
	}
	return ret;
}

static inline int destroy_qp(uint32_t qp, uint32_t *events)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = qp };
	struct ib_uverbs_destroy_qp_resp resp = { .events_reported = ~0u };
	int ret = WRITE(&h, DESTROY_QP, &cmd, &resp);

	if (events)
		*events = resp.events_reported;
	return ret;
}

/* Opens the device a second time. Calls use the new file until use(h.file). */
static inline struct uvd_file *second_file(void)
{
	struct ib_uverbs_get_context_resp resp;
	struct uvd_file *file;
	int err;

	file = uvd_file_open(h.dev, h.account, &err);
	ck_assert_ptr_nonnull(file);
	h.call->file = file;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	return file;
}

static inline void use(struct uvd_file *file)
{
	h.call->file = file;
}

static unsigned int num_alloc, num_dealloc, num_destroyed;

static inline int count_alloc(struct uvd_xrcd *xrcd, struct uvd_udata *udata)
{
	ck_assert_ptr_eq(xrcd->dev, &h.dev->ib);
	num_alloc++;
	return 0;
}

static inline int count_dealloc(struct uvd_xrcd *xrcd)
{
	ck_assert_int_eq(atomic_load(&xrcd->usecnt), 0);
	num_dealloc++;
	return 0;
}

static inline int count_destroy(struct uvd_qp *qp)
{
	num_destroyed++;
	return uvd_backend_null.destroy_qp(qp);
}

static inline void count(void)
{
	num_alloc = num_dealloc = num_destroyed = 0;
	h.ops.alloc_xrcd = count_alloc;
	h.ops.dealloc_xrcd = count_dealloc;
	h.ops.destroy_qp = count_destroy;
}

#endif
