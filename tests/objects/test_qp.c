/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs: the flags that the backend gets, and events. tests/abi/rules_qp.c has the checks of their creation. */
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;
static int async_fd;

static void begin(void)
{
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, &async_fd, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

static int create(enum uv_front front, uint8_t type, uint32_t flags, struct uv_qp *qp)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	attr.type = type;
	attr.create_flags = flags;
	attr.user_handle = 0x9999;
	return uv_create_qp(h.fd, front, &attr, qp);
}

static struct uvd_qp *backend_qp(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_qp *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, NULL, handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static int see_init(struct uvd_qp *q, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	return init->create_flags ? -EXDEV : init->sq_sig_all ? -ENOSPC : -ENODEV;
}

START_TEST(test_backend_gets_the_flags_of_the_method)
{
	static const struct {
		uint8_t type;
		uint64_t flags;
		int err;
	} rows[] = {
		{ IBV_QPT_RC, 0, -ENODEV },
		{ IBV_QPT_RC, IB_UVERBS_QP_CREATE_SQ_SIG_ALL, -ENOSPC },
		{ IBV_QPT_UD, IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK, -EXDEV },
		{ IBV_QPT_DRIVER, IB_UVERBS_QP_CREATE_CVLAN_STRIPPING, -EXDEV },
	};
	struct uv_qp qp;

	begin();
	h.ops.create_qp = see_init;
	for (size_t i = 0; i < UVD_COUNT(rows); i++)
		ck_assert_int_eq(create(UV_METHOD, rows[i].type, rows[i].flags, &qp), rows[i].err);
}
END_TEST

START_TEST(test_create_qp_that_the_backend_refuses_counts_no_user)
{
	uint32_t next;
	struct uv_qp qp;

	begin();
	h.ops.create_qp = see_init;
	for (int front = 0; front < UV_FRONTS; front++)
		ck_assert_int_eq(create(front, IBV_QPT_RC, 0, &qp), -ENODEV);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, cq, NULL), 0);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_cleanup_04_destroy_qp_counts_the_events_that_were_read)
{
	static const enum uv_front fronts[] = { UV_WRITE, UV_METHOD };
	struct ib_uverbs_async_event_desc event;
	struct uvd_qp *made;
	struct uv_qp qp;
	uint32_t events;

	begin();
	for (unsigned int f = 0; f < UV_ARRAY_SIZE(fronts); f++) {
		ck_assert_int_eq(create(fronts[f], IBV_QPT_RC, 0, &qp), 0);
		made = backend_qp(qp.handle);
		for (int i = 0; i < 3; i++)
			made->event_handler(made, IBV_EVENT_QP_FATAL + i);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(read(async_fd, &event, sizeof(event)), sizeof(event));
			ck_assert_uint_eq(event.element, 0x9999);
			ck_assert_uint_eq(event.event_type, IBV_EVENT_QP_FATAL + i);
		}
		ck_assert_int_eq(uv_destroy_qp(h.fd, fronts[f], qp.handle, &events), 0);
		ck_assert_uint_eq(events, 2);
		ck_assert_int_lt(recv(async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	}
}
END_TEST

TEST_LIST(test_backend_gets_the_flags_of_the_method, test_create_qp_that_the_backend_refuses_counts_no_user,
	  test_cleanup_04_destroy_qp_counts_the_events_that_were_read)
