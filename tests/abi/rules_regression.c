/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bugs that the kernel once had. */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "abi.h"

START_TEST(test_regression_01_poll_of_a_huge_number)
{
	struct ib_uverbs_poll_cq_resp resp = { 7, 7 };
	struct ib_uverbs_poll_cq in = {};
	int fd = open_context(NULL);
	static const uint32_t numbers[] = { 0x05555556, 0x7fffffff, 0x80000000, UINT32_MAX };

	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &in.cq_handle, NULL));
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(numbers); i++) {
		struct uv_cmd cmd = { IB_USER_VERBS_CMD_POLL_CQ, &in, sizeof(in), &resp, sizeof(resp) };

		in.ne = numbers[i];
		expect_choice("poll-cq", uv_cmd(fd, _i, &cmd), 0);
		if (!choice("poll-cq"))
			ck_assert_uint_eq(resp.count, 0);
	}
}
END_TEST

START_TEST(test_regression_02_reserved_bytes_of_the_poll_reply_are_zero)
{
	struct {
		struct ib_uverbs_poll_cq_resp resp;
		uint32_t first;
	} out = { { 0x5a5a5a5a, 0x5a5a5a5a }, 0x5a5a5a5a };
	struct ib_uverbs_poll_cq in = { .ne = 1 };
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_POLL_CQ, &in, sizeof(in), &out, sizeof(out.resp) };
	int fd = open_context(NULL);

	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &in.cq_handle, NULL));
	expect_choice("poll-cq", uv_cmd(fd, _i, &cmd), 0);
	if (choice("poll-cq"))
		return;
	ck_assert_uint_eq(out.resp.reserved, 0);
	ck_assert_uint_eq(out.first, 0x5a5a5a5a); /* no completion is written */
}
END_TEST

START_TEST(test_regression_03_wrapping_registration_is_einval)
{
	int fd = open_context(NULL);
	uint32_t pd;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect(uv_reg_mr_at(fd, _i, pd, 0x1000, UINT64_MAX - 0x1000 + 1, 0x1000, 1, NULL), EINVAL);
	expect(uv_reg_mr_at(fd, _i, pd, 0x7fff00000000, UINT64_MAX - 0x7fff00000000 + 0x2000, 0, 1, NULL), EINVAL);
}
END_TEST

/* The device must not execute a command that is spliced from a pipe, whatever splice() returns. */
START_TEST(test_regression_04_command_by_splice_does_nothing)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} msg = { { IB_USER_VERBS_CMD_ALLOC_PD, 4, 1 }, {} };
	struct ib_uverbs_alloc_pd_resp resp = { 77 };
	int fd = open_context(NULL), ends[2];
	ssize_t ret;

	msg.cmd.response = (uintptr_t)&resp;
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], &msg, sizeof(msg)), sizeof(msg));
	ret = splice(ends[0], NULL, fd, NULL, sizeof(msg), 0);
	if (!choice("regression-04"))
		expect(ret < 0 ? -errno : (int)ret, EINVAL);
	ck_assert_uint_eq(resp.pd_handle, 77);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_regression_04_another_program_s_stdout_is_eacces)
{
	int fd = open_context(NULL);

	expect(uv_alloc_pd_after_exec(fd), EACCES);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_regression_06_overflowing_work_request_sizes_are_enospc)
{
	static const uint32_t posts[] = { IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV };
	static const struct {
		uint32_t wr_count, sge_count, wqe_size;
	} sizes[] = {
		{ 1u << 16, 0, 1u << 16 }, { 1u << 31, 0, 128 }, { UINT32_MAX, 0, UINT32_MAX },	  { 0, 1u << 28, 128 },
		{ 0, UINT32_MAX, 128 },	   { 1u << 25, 0, 128 }, { UINT32_MAX, UINT32_MAX, 128 },
	};
	struct bed bed = make_bed();

	for (unsigned int p = 0; p < UV_ARRAY_SIZE(posts); p++) {
		for (unsigned int i = 0; i < UV_ARRAY_SIZE(sizes); i++) {
			struct ib_uverbs_post_send in = { .qp_handle = bed.qp.handle,
							  .wr_count = sizes[i].wr_count,
							  .sge_count = sizes[i].sge_count,
							  .wqe_size = sizes[i].wqe_size };
			struct ib_uverbs_post_send_resp resp;
			struct uv_cmd cmd = { posts[p], &in, sizeof(in), &resp, sizeof(resp) };

			if (p)
				expect_choice("post-recv", uv_cmd(bed.fd, _i, &cmd), ENOSPC);
			else
				expect(uv_cmd(bed.fd, _i, &cmd), ENOSPC);
		}
	}
}
END_TEST

/* ---- a channel that is closed while CQs are created on it -------------------------------------------------------- */

struct race {
	int fd;
	atomic_int channel, stop;
};

static void *make_and_close(void *arg)
{
	struct race *race = arg;
	int channel;

	while (!race->stop) {
		if (uv_create_channel(race->fd, UV_WRITE, &channel))
			break;
		race->channel = channel;
		usleep(50);
		close(channel);
	}
	return NULL;
}

START_TEST(test_regression_07_channel_closed_while_it_is_used)
{
	struct race race = { .fd = open_context(NULL), .channel = 900 };
	struct uv_cq_attr attr = uv_cq_default;
	time_t began = time(NULL);
	pthread_t thread;
	uint32_t cq;

	pthread_create(&thread, NULL, make_and_close, &race);
	for (int i = 0; i < 1000 && time(NULL) - began < 3; i++) {
		int ret;

		attr.channel = race.channel;
		ret = uv_create_cq(race.fd, i % 2 ? UV_METHOD : UV_WRITE, &attr, &cq, NULL);
		ck_assert_msg(!ret || ret == -EBADF, "create: %s", answer(ret));
		if (!ret)
			expect_ok(uv_destroy_cq(race.fd, UV_WRITE, cq, NULL));
	}
	race.stop = 1;
	pthread_join(thread, NULL);
	ck_assert_uint_eq(next_handle(race.fd), 0);
}
END_TEST

START_TEST(test_regression_08_channel_of_another_open_file_is_ebadf)
{
	int fd = open_context(NULL), other = open_context(NULL);
	struct uv_cq_attr attr = uv_cq_default;
	uint32_t cq;

	expect_ok(uv_create_channel(other, UV_WRITE, &attr.channel));
	expect(uv_create_cq(fd, _i, &attr, &cq, NULL), EBADF);
	ck_assert_uint_eq(next_handle(fd), 0);
}
END_TEST

START_TEST(test_regression_09_duplicate_handle_attribute_releases_the_first)
{
	struct bed bed = make_bed();
	struct uv_qp_attr attr = uv_qp_attr(bed.pd, bed.cq);
	struct uv_tree tree;
	struct uv_qp qp;

	uv_tree_create_qp(&tree, &attr, &qp);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, bed.pd);
	expect(uv_ioctl(bed.fd, &tree), EINVAL);
	ck_assert_uint_eq(next_handle(bed.fd), 3); /* the new QP's handle is free again */
	expect_ok(uv_destroy_qp(bed.fd, UV_WRITE, bed.qp.handle, NULL));
	expect_ok(uv_destroy_cq(bed.fd, UV_WRITE, bed.cq, NULL)); /* neither CQ nor PD is still locked */
	expect_ok(uv_dealloc_pd(bed.fd, UV_WRITE, bed.pd));
}
END_TEST

START_TEST(test_regression_10_command_mask_does_not_overflow)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint64_t rest[8];
	} msg = {};
	int fd = open_context(NULL);

	for (uint32_t number = 64; number < 256; number++) {
		msg.hdr = (struct ib_uverbs_cmd_hdr){ number, sizeof(msg) / 4, 2 };
		expect(uv_write(fd, &msg, sizeof(msg)), EOPNOTSUPP);
		msg.hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		expect(uv_write(fd, &msg, sizeof(msg)), EOPNOTSUPP);
	}
}
END_TEST

START_TEST(test_regression_12_numbers_are_not_cut_to_32_bits)
{
	struct uv_tree tree;
	int fd = open_context(NULL), channel;
	uint32_t pd, cqe;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	uv_tree_init(&tree, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_PD_HANDLE, 1ll << 32 | pd);
	expect(uv_ioctl(fd, &tree), ENOENT);
	expect_ok(uv_create_channel(fd, UV_WRITE, &channel));
	uv_tree_create_cq(&tree, &uv_cq_default, &cqe);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 1ll << 32 | channel);
	expect(uv_ioctl(fd, &tree), EINVAL);
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

TCase *case_regression(void)
{
	TCase *tc = tcase_create("regression");

	tcase_add_loop_test(tc, test_regression_01_poll_of_a_huge_number, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_regression_02_reserved_bytes_of_the_poll_reply_are_zero, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_regression_03_wrapping_registration_is_einval, 0, UV_PLAIN_FRONTS);
	add_test_unless("transport", tc, test_regression_04_command_by_splice_does_nothing);
	add_test_unless("exec", tc, test_regression_04_another_program_s_stdout_is_eacces);
	tcase_add_loop_test(tc, test_regression_06_overflowing_work_request_sizes_are_enospc, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_regression_07_channel_closed_while_it_is_used);
	tcase_add_loop_test(tc, test_regression_08_channel_of_another_open_file_is_ebadf, 0, UV_FRONTS);
	tcase_add_test(tc, test_regression_09_duplicate_handle_attribute_releases_the_first);
	tcase_add_test(tc, test_regression_10_command_mask_does_not_overflow);
	tcase_add_test(tc, test_regression_12_numbers_are_not_cut_to_32_bits);
	return tc;
}
