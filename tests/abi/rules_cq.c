/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues. */
#include <infiniband/verbs.h>
#include "abi.h"

START_TEST(test_cq_01_comp_vector_out_of_range_is_einval)
{
	struct uv_cq_attr attr = uv_cq_default;
	uint32_t num, cq;
	int fd = uv_open();

	target();
	expect_ok(uv_get_context(fd, UV_WRITE, NULL, &num));
	attr.comp_vector = num - 1;
	expect_ok(uv_create_cq(fd, _i, &attr, &cq, NULL));
	attr.comp_vector = num;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EINVAL);
	attr.comp_vector = UINT32_MAX;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

/* Commands check the completion vector first, the method checks the channel first. */
START_TEST(test_cq_01_order_of_vector_and_channel)
{
	struct uv_cq_attr attr = uv_cq_default;
	int fd = open_context(NULL);
	uint32_t cq;

	attr.comp_vector = 0xffffff;
	attr.channel = 900;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), _i == UV_METHOD ? EBADF : EINVAL);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_cq_02_extended_comp_mask_or_reserved_is_einval)
{
	struct ib_uverbs_ex_create_cq in = { .cqe = 16, .comp_channel = -1, .comp_mask = 1 };
	struct ib_uverbs_ex_create_cq_resp resp = {};
	int fd = open_context(NULL);
	uint8_t uhw_out[64];
	struct uv_cmd cmd = { UV_EX(CREATE_CQ), &in, sizeof(in), &resp, sizeof(resp), NULL, 0, uhw_out,
			      uv_room.create_cq };

	expect(uv_cmd(fd, _i, &cmd), EINVAL);
	in.comp_mask = 0;
	in.reserved = 1;
	expect(uv_cmd(fd, _i, &cmd), EINVAL);
	in.reserved = 0;
	in.comp_channel = -7; /* any negative number is none */
	expect_ok(uv_cmd(fd, _i, &cmd));
	ck_assert_uint_eq(resp.response_length, sizeof(resp));
}
END_TEST

/* The driver refuses an unknown flag of the command (EOPNOTSUPP); the core refuses one of the method (EINVAL). */
START_TEST(test_cq_02_flags)
{
	static const enum uv_front fronts[] = { UV_WRITE_EX, UV_INVOKE_EX };
	struct uv_cq_attr attr = uv_cq_default;
	int fd = open_context(NULL);
	uint32_t cq;

	attr.flags = 1 << 7;
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(fronts); i++)
		expect(uv_create_cq(fd, fronts[i], &attr, &cq, NULL), EOPNOTSUPP);
	expect(uv_create_cq(fd, UV_METHOD, &attr, &cq, NULL), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

/* -2 is what a client of ours has as its async fd where GET_CONTEXT could not grant one. Here it could. */
START_TEST(test_cq_event_fd_that_is_not_open_is_ebadf)
{
	int async_fd, fd = open_context(&async_fd);
	struct uv_tree tree;
	uint32_t cqe;

	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_EVENT_FD, -2);
	expect(uv_ioctl(fd, &tree), EBADF);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

/* POLL_CQ does not check that the response has room for the number of completions asked for. */
START_TEST(test_cq_04_poll_does_not_look_at_the_room)
{
	struct ib_uverbs_poll_cq in = { .ne = 100000 };
	struct {
		struct ib_uverbs_poll_cq_resp resp;
	} out = { { 7, 7 } };
	int fd = open_context(NULL);
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_POLL_CQ, &in, sizeof(in), &out, sizeof(out) };

	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &in.cq_handle, NULL));
	expect_choice("poll-cq", uv_cmd(fd, _i, &cmd), 0);
	if (choice("poll-cq"))
		return;
	ck_assert_uint_eq(out.resp.count, 0);
	cmd.out_len = 4;
	expect(uv_cmd(fd, _i, &cmd), ENOSPC);
}
END_TEST

START_TEST(test_cq_size_must_be_positive_and_within_the_limit)
{
	struct ib_uverbs_query_device_resp dev = {};
	struct uv_cq_attr attr = uv_cq_default;
	int fd = open_context(NULL);
	uint32_t cq, cqe;

	expect_ok(uv_query_device(fd, UV_WRITE, &dev));
	attr.cqe = 0;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EINVAL);
	attr.cqe = dev.max_cqe + 1;
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EINVAL);
	attr.cqe = 100;
	expect_ok(uv_create_cq(fd, _i, &attr, &cq, &cqe));
	ck_assert_uint_ge(cqe, 100);
}
END_TEST

START_TEST(test_cq_resize)
{
	struct ib_uverbs_query_device_resp dev = {};
	int fd = open_context(NULL);
	uint32_t pd, cq, cqe;

	expect_ok(uv_query_device(fd, UV_WRITE, &dev));
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	expect_ok(uv_resize_cq(fd, _i, cq, 100, &cqe));
	ck_assert_uint_ge(cqe, 100);
	expect_ok(uv_resize_cq(fd, _i, cq, 5, &cqe));
	ck_assert_uint_ge(cqe, 5);
	expect(uv_resize_cq(fd, _i, cq, 0, NULL), EINVAL);
	expect(uv_resize_cq(fd, _i, cq, dev.max_cqe + 1, NULL), EINVAL);
	expect(uv_resize_cq(fd, _i, cq, UINT32_MAX, NULL), EINVAL);
	expect(uv_resize_cq(fd, _i, 99, 0, NULL), ENOENT);
	expect(uv_resize_cq(fd, _i, pd, 0, NULL), EINVAL);
}
END_TEST

TCase *case_cq(void)
{
	TCase *tc = tcase_create("cq");

	tcase_add_loop_test(tc, test_cq_01_comp_vector_out_of_range_is_einval, 0, UV_FRONTS);
	tcase_add_loop_test(tc, test_cq_01_order_of_vector_and_channel, 0, UV_FRONTS);
	tcase_add_loop_test(tc, test_cq_02_extended_comp_mask_or_reserved_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_cq_02_flags);
	tcase_add_test(tc, test_cq_event_fd_that_is_not_open_is_ebadf);
	tcase_add_loop_test(tc, test_cq_04_poll_does_not_look_at_the_room, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_cq_size_must_be_positive_and_within_the_limit, 0, UV_FRONTS);
	tcase_add_loop_test(tc, test_cq_resize, 0, UV_PLAIN_FRONTS);
	return tc;
}
