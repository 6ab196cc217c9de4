/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues: creation by every front, polling, and the counters of events. */
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;
static int channel;

static void begin(void)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct ib_uverbs_create_comp_channel cmd = {};

	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(WRITE(&h, CREATE_COMP_CHANNEL, &cmd, &resp), 0);
	channel = resp.fd;
}

static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(harness_alloc_pd(&h, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_int_eq(harness_dealloc_pd(&h, next), 0);
}

static int destroy_cq(uint32_t handle, struct ib_uverbs_destroy_cq_resp *resp)
{
	struct ib_uverbs_destroy_cq cmd = { .cq_handle = handle };

	return WRITE(&h, DESTROY_CQ, &cmd, resp);
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

static struct ib_uverbs_attr *create_cq_tree(struct harness_tree *tree, uint32_t cqe, uint32_t vector, uint32_t *resp)
{
	uint64_t user_handle = 0xabcd;
	struct ib_uverbs_attr *handle = tree_object(tree, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);

	tree_in(tree, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	tree_in(tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &user_handle, sizeof(user_handle));
	tree_in(tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector));
	tree_out(tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, resp, sizeof(*resp));
	return handle;
}

static int create_cq_ioctl(struct harness_tree *tree)
{
	return harness_ioctl(&h, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, tree);
}

START_TEST(test_create_cq_by_every_front)
{
	struct ib_uverbs_ex_create_cq ex = { .cqe = 10, .comp_channel = -1 };
	struct ib_uverbs_create_cq cmd = { .cqe = 10, .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp resp = {};
	struct ib_uverbs_ex_create_cq_resp ex_resp = {};
	struct harness_tree tree = {};
	struct ib_uverbs_attr *handle;
	uint32_t cqe = 0;

	begin();
	ck_assert_int_eq(WRITE(&h, CREATE_CQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.cq_handle, 2);
	ck_assert_uint_ge(resp.cqe, 10);
	ck_assert_int_eq(INVOKE(&h, CREATE_CQ, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.cq_handle, 3);
	ck_assert_int_eq(WRITE_EX(&h, CREATE_CQ, &ex, &ex_resp), 0);
	ck_assert_uint_eq(ex_resp.base.cq_handle, 4);
	ck_assert_uint_eq(ex_resp.base.cqe, resp.cqe);
	ck_assert_uint_eq(ex_resp.response_length, sizeof(ex_resp));
	handle = create_cq_tree(&tree, 10, 0, &cqe);
	ck_assert_int_eq(create_cq_ioctl(&tree), 0);
	ck_assert_uint_eq(handle->data, 5);
	ck_assert_uint_eq(cqe, resp.cqe);
}
END_TEST

START_TEST(test_cq_02_ex_refuses_comp_mask_and_reserved)
{
	struct ib_uverbs_ex_create_cq cmd = { .cqe = 10, .comp_channel = -1, .comp_mask = 1, .comp_vector = 9999 };
	struct ib_uverbs_ex_create_cq_resp resp;

	begin();
	ck_assert_int_eq(WRITE_EX(&h, CREATE_CQ, &cmd, &resp), -EINVAL);
	cmd = (struct ib_uverbs_ex_create_cq){ .cqe = 10, .comp_channel = -1, .reserved = 1 };
	ck_assert_int_eq(WRITE_EX(&h, CREATE_CQ, &cmd, &resp), -EINVAL);
	cmd = (struct ib_uverbs_ex_create_cq){ .cqe = 10, .comp_channel = -7 };
	ck_assert_int_eq(WRITE_EX(&h, CREATE_CQ, &cmd, &resp), 0);
}
END_TEST

/*
 * CREATE_CQ by write() checks the vector, then the channel, then the backend checks cqe. The ioctl method checks the
 * channel, then the flags, then the vector.
 */
START_TEST(test_cq_01_order_of_checks_differs_by_front)
{
	struct ib_uverbs_create_cq cmd = { .cqe = 0, .comp_channel = 9999, .comp_vector = h.config.num_comp_vectors };
	struct ib_uverbs_create_cq_resp resp;
	struct harness_tree tree = {};
	uint64_t flags = 1ULL << 40;
	uint32_t cqe;

	begin();
	ck_assert_int_eq(WRITE(&h, CREATE_CQ, &cmd, &resp), -EINVAL);
	cmd.comp_vector = 0;
	ck_assert_int_eq(WRITE(&h, CREATE_CQ, &cmd, &resp), -EBADF);
	cmd.comp_channel = channel;
	ck_assert_int_eq(WRITE(&h, CREATE_CQ, &cmd, &resp), -EINVAL);
	create_cq_tree(&tree, 0, h.config.num_comp_vectors, &cqe);
	tree_object(&tree, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 9999);
	ck_assert_int_eq(create_cq_ioctl(&tree), -EBADF);
	memset(&tree, 0, sizeof(tree));
	create_cq_tree(&tree, 10, 0, &cqe);
	tree_in(&tree, UVERBS_ATTR_CREATE_CQ_FLAGS, &flags, sizeof(flags));
	ck_assert_int_eq(create_cq_ioctl(&tree), -EINVAL);
	memset(&tree, 0, sizeof(tree));
	create_cq_tree(&tree, 10, h.config.num_comp_vectors, &cqe);
	ck_assert_int_eq(create_cq_ioctl(&tree), -EINVAL);
	assert_no_leak();
}
END_TEST

static int see_cqe(struct uvd_cq *cq)
{
	return cq->cqe < 0 ? -EXDEV : -ENOSPC;
}

START_TEST(test_cqe_beyond_int_is_never_negative_for_the_backend)
{
	uint32_t other;

	begin();
	h.ops.create_cq = see_cqe;
	ck_assert_int_eq(harness_create_cq(&h, 0, ~0u, channel, &other), -ENOSPC);
	assert_no_leak();
}
END_TEST

START_TEST(test_a_file_that_is_no_channel_is_ebadf)
{
	uint32_t other;

	begin();
	ck_assert_int_eq(harness_create_cq(&h, 0, 10, STDERR_FILENO, &other), -EBADF);
	assert_no_leak();
}
END_TEST

START_TEST(test_regression_08_channel_of_another_file_is_ebadf)
{
	struct uvd_file *first = h.file, *second;
	uint32_t pd2, other;
	int err;

	begin();
	second = uvd_file_open(h.dev, h.account, &err);
	h.call->file = h.file = second;
	ck_assert_int_eq(harness_begin(&h, &pd2, &other), 0);
	ck_assert_int_eq(harness_create_cq(&h, 0, 10, channel, &other), -EBADF);
	uvd_file_close(second);
	h.call->file = h.file = first;
	ck_assert_int_eq(harness_create_cq(&h, 0, 10, channel, &other), 0);
}
END_TEST

START_TEST(test_create_cq_with_a_bad_response_leaves_no_cq)
{
	struct ib_uverbs_create_cq cmd = { .cqe = 10, .comp_channel = channel };

	begin();
	cmd.comp_channel = channel;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), BAD, 8), -EFAULT);
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

	return harness_write(&h, IB_USER_VERBS_CMD_POLL_CQ, &cmd, sizeof(cmd), room, sizeof(room->resp));
}

START_TEST(test_poll_cq_of_none_writes_the_header_only)
{
	struct poll_room room;

	begin();
	memset(&room, 0xee, sizeof(room));
	ck_assert_int_eq(poll_cq(&room, 100), 0);
	ck_assert_uint_eq(room.resp.count, 0);
	ck_assert_uint_eq(room.resp.reserved, 0);
	ck_assert_uint_eq(*(uint8_t *)room.wc, 0xee);
}
END_TEST

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

START_TEST(test_poll_cq_of_another_handle)
{
	struct poll_room room;

	begin();
	cq = 77;
	ck_assert_int_eq(poll_cq(&room, 1), -ENOENT);
	cq = pd;
	ck_assert_int_eq(poll_cq(&room, 1), -EINVAL);
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
	struct ib_uverbs_req_notify_cq cmd;

	begin();
	h.ops.req_notify_cq = see_notify;
	cmd = (struct ib_uverbs_req_notify_cq){ .cq_handle = cq, .solicited_only = 2 };
	ck_assert_int_eq(WRITE_IN(&h, REQ_NOTIFY_CQ, &cmd), 0);
	ck_assert_int_eq(armed, 1);
	cmd.solicited_only = 0;
	ck_assert_int_eq(WRITE_IN(&h, REQ_NOTIFY_CQ, &cmd), 0);
	ck_assert_int_eq(armed, 0);
	cmd.cq_handle = 77;
	ck_assert_int_eq(WRITE_IN(&h, REQ_NOTIFY_CQ, &cmd), -ENOENT);
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(test_cleanup_04_destroy_cq_counts_the_events_that_were_read)
{
	struct ib_uverbs_destroy_cq_resp resp = {};
	struct ib_uverbs_comp_event_desc event;
	uint32_t a, b;

	begin();
	ck_assert_int_eq(harness_create_cq(&h, 0xaaaa, 10, channel, &a), 0);
	ck_assert_int_eq(harness_create_cq(&h, 0xbbbb, 10, channel, &b), 0);
	for (int i = 0; i < 3; i++) {
		backend_cq(a)->comp_handler(backend_cq(a));
		backend_cq(b)->comp_handler(backend_cq(b));
	}
	ck_assert_int_eq(read(channel, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.cq_handle, 0xaaaa);
	ck_assert_int_eq(destroy_cq(a, &resp), 0);
	ck_assert_uint_eq(resp.comp_events_reported, 1);
	ck_assert_uint_eq(resp.async_events_reported, 0);
	/* Only b's events are left in the channel. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(recv(channel, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
		ck_assert_uint_eq(event.cq_handle, 0xbbbb);
	}
	ck_assert_int_lt(recv(channel, &event, sizeof(event), MSG_DONTWAIT), 0);
	ck_assert_int_eq(destroy_cq(b, &resp), 0);
	ck_assert_uint_eq(resp.comp_events_reported, 3);
}
END_TEST

START_TEST(test_cleanup_04_async_events_are_counted_and_purged)
{
	struct ib_uverbs_get_context_resp context = {};
	struct ib_uverbs_destroy_cq_resp resp = {};
	struct ib_uverbs_async_event_desc event = {};
	int async;

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	async = context.async_fd;
	ck_assert_int_eq(harness_create_cq(&h, 1, 10, -1, &cq), 0);
	backend_cq(cq)->event_handler(backend_cq(cq), IBV_EVENT_CQ_ERR);
	backend_cq(cq)->event_handler(backend_cq(cq), IBV_EVENT_CQ_ERR);
	h.dev->ib.event_handler(&h.dev->ib, IBV_EVENT_PORT_ACTIVE, 1);
	ck_assert_int_eq(read(async, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 1);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_CQ_ERR);
	ck_assert_int_eq(destroy_cq(cq, &resp), 0);
	ck_assert_uint_eq(resp.async_events_reported, 1);
	/* The port's event has the same element (1), but it must stay. */
	ck_assert_int_eq(recv(async, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.event_type, IBV_EVENT_PORT_ACTIVE);
	ck_assert_int_lt(recv(async, &event, sizeof(event), MSG_DONTWAIT), 0);
}
END_TEST

START_TEST(test_cq_destroy_by_ioctl_reports_events)
{
	struct ib_uverbs_destroy_cq_resp resp = { .async_events_reported = 9 };
	struct ib_uverbs_comp_event_desc event;
	struct harness_tree create = {}, tree = {};
	struct ib_uverbs_attr *handle;
	uint32_t cqe;

	begin();
	handle = create_cq_tree(&create, 10, 0, &cqe);
	tree_object(&create, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, channel);
	ck_assert_int_eq(create_cq_ioctl(&create), 0);
	backend_cq(handle->data)->comp_handler(backend_cq(handle->data));
	ck_assert_int_eq(read(channel, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.cq_handle, 0xabcd);
	tree_object(&tree, UVERBS_ATTR_DESTROY_CQ_HANDLE, handle->data);
	tree_out(&tree, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, &tree), 0);
	ck_assert_uint_eq(resp.comp_events_reported, 1);
	ck_assert_uint_eq(resp.async_events_reported, 0);
}
END_TEST

START_TEST(test_create_cq_event_fd_gets_the_async_events)
{
	struct ib_uverbs_async_event_desc event;
	struct harness_tree alloc = {}, create = {};
	struct ib_uverbs_attr *handle;
	uint32_t cqe;
	int fd;

	begin();
	tree_object(&alloc, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, &alloc), 0);
	fd = h.granted;
	handle = create_cq_tree(&create, 10, 0, &cqe);
	tree_object(&create, UVERBS_ATTR_CREATE_CQ_EVENT_FD, fd);
	ck_assert_int_eq(create_cq_ioctl(&create), 0);
	backend_cq(handle->data)->event_handler(backend_cq(handle->data), IBV_EVENT_CQ_ERR);
	ck_assert_int_eq(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.element, 0xabcd);
}
END_TEST

/* libibverbs passes the context's async fd, which is -2 if GET_CONTEXT could not grant one. */
START_TEST(test_event_fd_minus_2_is_none_in_a_file_without_one)
{
	struct harness_tree create = {}, again = {};
	struct ib_uverbs_get_context_resp resp;
	uint32_t cqe;

	h.refuse_grant = EPERM;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	ck_assert_int_eq((int)resp.async_fd, -2);
	create_cq_tree(&create, 10, 0, &cqe);
	tree_object(&create, UVERBS_ATTR_CREATE_CQ_EVENT_FD, -2);
	ck_assert_int_eq(create_cq_ioctl(&create), 0);
	create_cq_tree(&again, 10, 0, &cqe);
	tree_object(&again, UVERBS_ATTR_CREATE_CQ_EVENT_FD, -3);
	ck_assert_int_eq(create_cq_ioctl(&again), -EBADF);
}
END_TEST

START_TEST(test_event_fd_minus_2_is_ebadf_as_the_kernels_in_a_file_that_has_one)
{
	struct harness_tree create = {};
	uint32_t cqe;

	begin();
	create_cq_tree(&create, 10, 0, &cqe);
	tree_object(&create, UVERBS_ATTR_CREATE_CQ_EVENT_FD, -2);
	ck_assert_int_eq(create_cq_ioctl(&create), -EBADF);
}
END_TEST

START_TEST(test_write_22_destroy_cq_with_a_bad_response_has_destroyed)
{
	struct ib_uverbs_destroy_cq cmd;
	struct ib_uverbs_destroy_cq_resp resp;

	begin();
	cmd.cq_handle = cq;
	cmd.reserved = 0;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), BAD, sizeof(resp)),
			 -EFAULT);
	ck_assert_int_eq(destroy_cq(cq, &resp), -ENOENT);
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
	ck_assert_int_eq(destroy_cq(cq, &resp), -EBUSY);
	ck_assert_int_eq(poll_cq(&room, 1), 0);
	h.ops.destroy_cq = uvd_backend_null.destroy_cq;
	ck_assert_int_eq(destroy_cq(cq, &resp), 0);
}
END_TEST

TEST_LIST(test_create_cq_by_every_front, test_cq_02_ex_refuses_comp_mask_and_reserved,
	  test_cq_01_order_of_checks_differs_by_front, test_cqe_beyond_int_is_never_negative_for_the_backend,
	  test_a_file_that_is_no_channel_is_ebadf, test_regression_08_channel_of_another_file_is_ebadf,
	  test_create_cq_with_a_bad_response_leaves_no_cq, test_poll_cq_of_none_writes_the_header_only,
	  test_regression_02_poll_cq_fills_every_field_and_zeroes_the_reserved,
	  test_poll_cq_converts_the_flags_to_the_kernels, test_regression_01_poll_cq_of_any_number,
	  test_poll_cq_of_another_handle, test_req_notify_cq_says_which_and_hides_the_backends_errno,
	  test_cleanup_04_destroy_cq_counts_the_events_that_were_read,
	  test_cleanup_04_async_events_are_counted_and_purged, test_cq_destroy_by_ioctl_reports_events,
	  test_create_cq_event_fd_gets_the_async_events, test_event_fd_minus_2_is_none_in_a_file_without_one,
	  test_event_fd_minus_2_is_ebadf_as_the_kernels_in_a_file_that_has_one,
	  test_write_22_destroy_cq_with_a_bad_response_has_destroyed, test_handle_09_a_cq_that_the_backend_keeps_stays)
