/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests of a queue pair. */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include "abi.h"

/* POST_SEND or POST_RECV with this struct and len zero bytes behind it. */
static int post(int fd, enum uv_front front, uint32_t command, struct ib_uverbs_post_send *cmd, size_t len)
{
	struct ib_uverbs_post_send_resp resp;
	uint8_t *in = calloc(1, sizeof(*cmd) + len);
	int ret;

	memcpy(in, cmd, sizeof(*cmd));
	ret = uv_cmd(fd, front, &(struct uv_cmd){ command, in, sizeof(*cmd) + len, &resp, sizeof(resp) });
	free(in);
	return ret;
}

static const uint32_t posts[] = { IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV };
static const char *const post_choices[] = { "post-send", "post-recv" };

START_TEST(test_qp_16_work_requests_must_fit)
{
	struct bed bed = make_bed();

	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	for (int i = 0; i < 2; i++) {
		uint32_t size = i ? sizeof(struct ib_uverbs_recv_wr) : sizeof(struct ib_uverbs_send_wr);
		struct ib_uverbs_post_send cmd = { .qp_handle = bed.qp.handle, .wr_count = 1, .wqe_size = size - 4 };

		expect_choice(post_choices[i], post(bed.fd, _i, posts[i], &cmd, size - 4), EINVAL);
		cmd.wqe_size = size;
		expect_choice(post_choices[i], post(bed.fd, _i, posts[i], &cmd, size - 4), ENOSPC);
		cmd.sge_count = 1;
		expect_choice(post_choices[i], post(bed.fd, _i, posts[i], &cmd, size + 12), ENOSPC);
		cmd.wr_count = 2;
		cmd.sge_count = 0;
		expect_choice(post_choices[i], post(bed.fd, _i, posts[i], &cmd, size), ENOSPC);
	}
}
END_TEST

START_TEST(test_qp_16_tail_must_be_zero)
{
	struct {
		struct ib_uverbs_post_send cmd;
		uint32_t tail[2];
	} in = { .cmd.wqe_size = sizeof(struct ib_uverbs_send_wr), .tail = { 0, 1 } };
	struct ib_uverbs_post_send_resp resp;
	struct bed bed = make_bed();

	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	in.cmd.qp_handle = bed.qp.handle;
	for (int i = 0; i < 2; i++) {
		struct uv_cmd cmd = { posts[i], &in, sizeof(in), &resp, sizeof(resp) };

		in.tail[1] = 1;
		expect_choice(post_choices[i], uv_cmd(bed.fd, _i, &cmd), EOPNOTSUPP);
	}
}
END_TEST

START_TEST(test_qp_16_scatter_list_must_hold_what_the_requests_say)
{
	struct ib_uverbs_send_wr send[2] = { { .num_sge = 1 }, { .num_sge = 2 } };
	struct ib_uverbs_recv_wr recv[2] = { { .num_sge = 1 }, { .num_sge = 2 } };
	struct ib_uverbs_sge sge[2] = {};
	struct bed bed = make_bed();

	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	send[0].opcode = send[1].opcode = IBV_WR_SEND;
	expect(uv_post_send(bed.fd, _i, bed.qp.handle, send, 2, sge, 2, NULL), EINVAL);
	expect_choice("post-recv", uv_post_recv(bed.fd, _i, bed.qp.handle, recv, 2, sge, 2, NULL), EINVAL);
	recv[0].num_sge = UINT32_MAX;
	expect_choice("post-recv", uv_post_recv(bed.fd, _i, bed.qp.handle, recv, 1, sge, 2, NULL), EINVAL);
}
END_TEST

/* Each call has two errors. The errno shows which one is checked first. */
START_TEST(test_qp_16_send_checks_in_the_kernels_order)
{
	struct ib_uverbs_send_wr wr = { .opcode = 100 };
	struct ib_uverbs_post_send cmd = { .qp_handle = 77, .wr_count = 5, .wqe_size = 8 };
	struct {
		struct ib_uverbs_post_send cmd;
		uint32_t tail[2];
	} in = { .cmd = { .qp_handle = 77, .wqe_size = 8 }, .tail = { 0, 1 } };
	struct ib_uverbs_post_send_resp resp;
	struct bed bed = make_bed();

	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect(post(bed.fd, _i, IB_USER_VERBS_CMD_POST_SEND, &cmd, 0), ENOSPC);
	expect(uv_cmd(bed.fd, _i,
		      &(struct uv_cmd){ IB_USER_VERBS_CMD_POST_SEND, &in, sizeof(in), &resp, sizeof(resp) }),
	       EOPNOTSUPP);
	cmd.wr_count = 0;
	expect(post(bed.fd, _i, IB_USER_VERBS_CMD_POST_SEND, &cmd, 0), EINVAL);
	expect(uv_post_send(bed.fd, _i, 77, &wr, 1, NULL, 0, NULL), ENOENT);
	expect(uv_post_send(bed.fd, _i, bed.qp.handle, &wr, 1, NULL, 0, NULL), EINVAL);
}
END_TEST

START_TEST(test_qp_16_receive_checks_in_the_kernels_order)
{
	struct ib_uverbs_post_send cmd = { .qp_handle = 77, .wr_count = 1000, .wqe_size = 8 };
	struct ib_uverbs_recv_wr wr = { .num_sge = 1 };
	struct ib_uverbs_sge sge = {};
	struct bed bed = make_bed();

	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect_choice("post-recv", post(bed.fd, _i, IB_USER_VERBS_CMD_POST_RECV, &cmd, 0), EINVAL);
	expect_choice("post-recv", uv_post_recv(bed.fd, _i, 77, &wr, 1, NULL, 0, NULL), EINVAL);
	expect_choice("post-recv", uv_post_recv(bed.fd, _i, 77, &wr, 1, &sge, 1, NULL), ENOENT);
}
END_TEST

START_TEST(test_qp_16_unknown_opcode_is_einval)
{
	static const uint32_t opcodes[] = { 7, 8, 10, 100, 0xf0, UINT32_MAX };
	struct ib_uverbs_send_wr wr = {};
	struct bed bed = make_bed();

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(opcodes); i++) {
		wr.opcode = opcodes[i];
		expect(uv_post_send(bed.fd, _i, bed.qp.handle, &wr, 1, NULL, 0, NULL), EINVAL);
	}
}
END_TEST

START_TEST(test_qp_16_ud_sends_only)
{
	static const uint32_t opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
					    IBV_WR_SEND_WITH_INV };
	struct bed bed = make_bed();
	struct uv_qp_attr attr = uv_qp_attr(bed.pd, bed.cq);
	struct ib_uverbs_send_wr wr = {};
	struct uv_qp qp;

	attr.type = IBV_QPT_UD;
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &attr, &qp));
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(opcodes); i++) {
		wr.opcode = opcodes[i];
		expect(uv_post_send(bed.fd, _i, qp.handle, &wr, 1, NULL, 0, NULL), EINVAL);
	}
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = 77;
	expect(uv_post_send(bed.fd, _i, qp.handle, &wr, 1, NULL, 0, NULL), ENOENT);
	wr.wr.ud.ah = bed.cq;
	expect(uv_post_send(bed.fd, _i, qp.handle, &wr, 1, NULL, 0, NULL), EINVAL);
}
END_TEST

/* In RESET the driver takes no request. The call fails, but the response names the first request as the bad one. */
START_TEST(test_qp_16_bad_wr_is_told_though_the_post_fails)
{
	struct ib_uverbs_send_wr send[2] = { { .opcode = IBV_WR_SEND }, { .opcode = IBV_WR_SEND } };
	struct ib_uverbs_recv_wr recv[2] = {};
	struct bed bed = make_bed();
	uint32_t bad = 77;

	expect(uv_post_send(bed.fd, _i, bed.qp.handle, send, 2, NULL, 0, &bad), EINVAL);
	ck_assert_uint_eq(bad, 1);
	bad = 77;
	expect_choice("post-recv", uv_post_recv(bed.fd, _i, bed.qp.handle, recv, 2, NULL, 0, &bad), EINVAL);
	if (!choice("post-recv"))
		ck_assert_uint_eq(bad, 1);
}
END_TEST

START_TEST(test_qp_16_full_queue_tells_which_request_did_not_fit)
{
	struct ib_uverbs_recv_wr wr[200] = {};
	struct bed bed = make_bed();
	uint32_t bad = 0, max = bed.qp.cap.max_recv_wr;

	ck_assert_uint_le(max, 190);
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect_choice("post-recv", uv_post_recv(bed.fd, _i, bed.qp.handle, wr, max + 5, NULL, 0, &bad), ENOMEM);
	if (choice("post-recv"))
		return;
	ck_assert_uint_eq(bad, max + 1);
	expect(uv_post_recv(bed.fd, _i, bed.qp.handle, wr, 1, NULL, 0, &bad), ENOMEM);
	ck_assert_uint_eq(bad, 1);
}
END_TEST

void add_post_tests(TCase *tc)
{
	tcase_add_loop_test(tc, test_qp_16_work_requests_must_fit, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_tail_must_be_zero, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_scatter_list_must_hold_what_the_requests_say, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_send_checks_in_the_kernels_order, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_receive_checks_in_the_kernels_order, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_unknown_opcode_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_ud_sends_only, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_bad_wr_is_told_though_the_post_fails, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_full_queue_tells_which_request_did_not_fit, 0, UV_PLAIN_FRONTS);
}
