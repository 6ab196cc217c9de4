/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues: polling, and the counters of events. tests/abi has the checks of their creation (rules_cq.c). */
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;
static int channel;

static void begin(void)
{
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
	ck_assert_int_eq(uv_create_channel(h.fd, UV_WRITE, &channel), 0);
}

static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &next), 0);
	ck_assert_uint_eq(next, 2);
}

static int create_cq(uint64_t user_handle, uint32_t cqe, int with_channel, uint32_t *handle)
{
	struct uv_cq_attr attr = { .user_handle = user_handle, .cqe = cqe, .channel = with_channel, .event_fd = -1 };

	return uv_create_cq(h.fd, UV_WRITE, &attr, handle, NULL);
}

/* The backend's CQ behind a handle. */
static struct uvd_cq *backend_cq(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_cq *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, NULL, handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static int see_cqe(struct uvd_cq *cq, struct uvd_udata *udata)
{
	return cq->cqe < 0 ? -EXDEV : -ENOSPC;
}

START_TEST(test_cqe_beyond_int_is_never_negative_for_the_backend)
{
	uint32_t other;

	begin();
	h.ops.create_cq = see_cqe;
	ck_assert_int_eq(create_cq(0, ~0u, channel, &other), -ENOSPC);
	assert_no_leak();
}
END_TEST

/* ---- polling ----------------------------------------------------------------------------------------------------- */

static uint32_t available;
static unsigned int available_flags = IBV_WC_GRH | IBV_WC_WITH_INV;

static int poll_some(struct uvd_cq *cq, int n, struct ibv_wc *wc)
{
	int i;

	ck_assert_int_le(n, 64);
	for (i = 0; i < n && available; i++, available--)
		wc[i] = (struct ibv_wc){ .wr_id = available,
					 .status = IBV_WC_WR_FLUSH_ERR,
					 .opcode = IBV_WC_RECV,
					 .vendor_err = 3,
					 .byte_len = 4,
					 .imm_data = 5,
					 .qp_num = 6,
					 .src_qp = 7,
					 .wc_flags = available_flags,
					 .pkey_index = 8,
					 .slid = 9,
					 .sl = 10,
					 .dlid_path_bits = 11 };
	return i;
}

struct poll_room {
	struct ib_uverbs_poll_cq_resp resp;
	struct ib_uverbs_wc wc[200];
};

static int poll_cq(struct poll_room *room, uint32_t ne)
{
	struct ib_uverbs_poll_cq cmd = { .cq_handle = cq, .ne = ne };

	return uv_cmd(h.fd, UV_WRITE,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_POLL_CQ, &cmd, sizeof(cmd), room, sizeof(room->resp) });
}

START_TEST(test_regression_02_poll_cq_fills_every_field_and_zeroes_the_reserved)
{
	struct ib_uverbs_wc expected = { .wr_id = 1,
					 .status = IBV_WC_WR_FLUSH_ERR,
					 .opcode = 1 << 7,
					 .vendor_err = 3,
					 .byte_len = 4,
					 .ex.imm_data = 5,
					 .qp_num = 6,
					 .src_qp = 7,
					 .wc_flags = 1 | 1 << 2,
					 .pkey_index = 8,
					 .slid = 9,
					 .sl = 10,
					 .dlid_path_bits = 11 };
	struct poll_room room;

	begin();
	memset(&room, 0xee, sizeof(room));
	h.ops.poll_cq = poll_some;
	available = 1;
	ck_assert_int_eq(poll_cq(&room, 1), 0);
	ck_assert_uint_eq(room.resp.count, 1);
	ck_assert_uint_eq(room.resp.reserved, 0);
	ck_assert_mem_eq(&room.wc[0], &expected, sizeof(expected));
	ck_assert_uint_eq(*(uint8_t *)&room.wc[1], 0xee);
}
END_TEST

START_TEST(test_poll_cq_converts_the_flags_to_the_kernels)
{
	static const struct {
		unsigned int libibverbs, kernel;
	} flags[] = { { IBV_WC_GRH, 1 },
		      { IBV_WC_WITH_IMM, 1 << 1 },
		      { IBV_WC_WITH_INV, 1 << 2 },
		      { IBV_WC_IP_CSUM_OK, 1 << 3 },
		      { ~0u, 0xf } };
	struct poll_room room;

	begin();
	h.ops.poll_cq = poll_some;
	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		available = 1;
		available_flags = flags[i].libibverbs;
		ck_assert_int_eq(poll_cq(&room, 1), 0);
		ck_assert_uint_eq(room.wc[0].wc_flags, flags[i].kernel);
	}
}
END_TEST

/* POLL_CQ polls in chunks of 64: try the numbers around multiples of that. */
START_TEST(test_regression_01_poll_cq_of_any_number)
{
	static const uint32_t numbers[] = { 1, 63, 64, 65, 127, 128, 129, 190 };
	struct poll_room room;

	begin();
	h.ops.poll_cq = poll_some;
	for (size_t i = 0; i < UVD_COUNT(numbers); i++) {
		uint32_t n = numbers[i];

		memset(&room, 0xee, sizeof(room));
		available = n;
		ck_assert_int_eq(poll_cq(&room, ~0u), 0);
		ck_assert_uint_eq(room.resp.count, n);
		for (uint32_t k = 0; k < n; k++)
			ck_assert_uint_eq(room.wc[k].wr_id, n - k);
		ck_assert_uint_eq(*(uint8_t *)&room.wc[n], 0xee);
		available = n + 5;
		ck_assert_int_eq(poll_cq(&room, n), 0);
		ck_assert_uint_eq(room.resp.count, n);
		ck_assert_uint_eq(available, 5);
	}
}
END_TEST

static int armed = -1;

static int see_notify(struct uvd_cq *cq, bool solicited_only)
{
	armed = solicited_only;
	return -EIO;
}

START_TEST(test_req_notify_cq_says_which_and_hides_the_backends_errno)
{
	struct ib_uverbs_req_notify_cq cmd = { .solicited_only = 2 };

	begin();
	h.ops.req_notify_cq = see_notify;
	cmd.cq_handle = cq;
	ck_assert_int_eq(uv_cmd(h.fd, UV_WRITE, &(struct uv_cmd){ IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &cmd, sizeof(cmd) }),
			 0);
	ck_assert_int_eq(armed, 1);
	ck_assert_int_eq(uv_req_notify_cq(h.fd, UV_WRITE, cq, false), 0);
	ck_assert_int_eq(armed, 0);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_cleanup_04_destroy_cq_counts_the_events_that_were_read)
{
	struct ib_uverbs_destroy_cq_resp resp = {};
	struct ib_uverbs_comp_event_desc event;
	uint32_t a, b;

	begin();
	ck_assert_int_eq(create_cq(0xaaaa, 10, channel, &a), 0);
	ck_assert_int_eq(create_cq(0xbbbb, 10, channel, &b), 0);
	for (int i = 0; i < 3; i++) {
		backend_cq(a)->comp_handler(backend_cq(a));
		backend_cq(b)->comp_handler(backend_cq(b));
	}
	ck_assert_int_eq(read(channel, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.cq_handle, 0xaaaa);
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, a, &resp), 0);
	ck_assert_uint_eq(resp.comp_events_reported, 1);
	ck_assert_uint_eq(resp.async_events_reported, 0);
	/* Only b's events are left in the channel. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(recv(channel, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
		ck_assert_uint_eq(event.cq_handle, 0xbbbb);
	}
	ck_assert_int_lt(recv(channel, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, b, &resp), 0);
	ck_assert_uint_eq(resp.comp_events_reported, 3);
}
END_TEST

START_TEST(test_cleanup_04_async_events_are_counted_and_purged)
{
	struct ib_uverbs_destroy_cq_resp resp = {};
	struct ib_uverbs_async_event_desc event = {};
	int async;

	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, &async, NULL), 0);
	ck_assert_int_eq(create_cq(1, 10, -1, &cq), 0);
	backend_cq(cq)->event_handler(backend_cq(cq), IBV_EVENT_CQ_ERR);
	backend_cq(cq)->event_handler(backend_cq(cq), IBV_EVENT_CQ_ERR);
	h.dev->ib.event_handler(&h.dev->ib, IBV_EVENT_PORT_ACTIVE, 1);
	ck_assert_int_eq(read(async, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 1);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_CQ_ERR);
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, cq, &resp), 0);
	ck_assert_uint_eq(resp.async_events_reported, 1);
	/* The port's event has the same element (1), but it must stay. */
	ck_assert_int_eq(recv(async, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.event_type, IBV_EVENT_PORT_ACTIVE);
	ck_assert_int_lt(recv(async, &event, sizeof(event), MSG_DONTWAIT), 0);
}
END_TEST

/* libibverbs passes the context's async fd, which is -2 if GET_CONTEXT could not grant one. */
START_TEST(test_event_fd_minus_2_is_none_in_a_file_without_one)
{
	struct uv_tree tree;
	uint32_t cqe;
	int async;

	h.refuse_grant = EPERM;
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, &async, NULL), 0);
	ck_assert_int_eq(async, -2);
	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_EVENT_FD, -2);
	ck_assert_int_eq(uv_ioctl(h.fd, &tree), 0);
	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_EVENT_FD, -3);
	ck_assert_int_eq(uv_ioctl(h.fd, &tree), -EBADF);
}
END_TEST

static int refuse_destroy(struct uvd_cq *cq)
{
	return -EBUSY;
}

START_TEST(test_handle_09_a_cq_that_the_backend_keeps_stays)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct poll_room room;

	begin();
	h.ops.destroy_cq = refuse_destroy;
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, cq, &resp), -EBUSY);
	ck_assert_int_eq(poll_cq(&room, 1), 0);
	h.ops.destroy_cq = uvd_backend_null.destroy_cq;
	ck_assert_int_eq(uv_destroy_cq(h.fd, UV_WRITE, cq, &resp), 0);
}
END_TEST

TEST_LIST(test_cqe_beyond_int_is_never_negative_for_the_backend,
	  test_regression_02_poll_cq_fills_every_field_and_zeroes_the_reserved,
	  test_poll_cq_converts_the_flags_to_the_kernels, test_regression_01_poll_cq_of_any_number,
	  test_req_notify_cq_says_which_and_hides_the_backends_errno,
	  test_cleanup_04_destroy_cq_counts_the_events_that_were_read,
	  test_cleanup_04_async_events_are_counted_and_purged, test_event_fd_minus_2_is_none_in_a_file_without_one,
	  test_handle_09_a_cq_that_the_backend_keeps_stays)
