/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs with the soft backend: a message from one QP to another, its completions, errors and limits. */
#include <poll.h>
#include <time.h>
#define BACKEND "soft"
#include "tests.h"

static uint32_t pd, cq;
static int channel;
static struct ib_uverbs_create_qp_resp qps[2];
static char mem[2][4096] __attribute__((aligned(4096)));
static struct ib_uverbs_reg_mr_resp mrs[2];

static void begin(void)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct ib_uverbs_create_comp_channel cmd = {};
	struct ib_uverbs_get_context_resp context = {};

	ck_assert_int_eq(harness_get_context(&h, &context), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	ck_assert_int_eq(WRITE(&h, CREATE_COMP_CHANNEL, &cmd, &resp), 0);
	channel = resp.fd;
	ck_assert_int_eq(harness_create_cq(&h, 0xc0c0, 64, channel, &cq), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qps[i]), 0);
		ck_assert_int_eq(harness_reg_mr(&h, pd, mem[i], sizeof(mem[i]), IBV_ACCESS_LOCAL_WRITE, &mrs[i]), 0);
	}
}

static void connect_qp(int i)
{
	struct ib_uverbs_modify_qp init = {
		.qp_handle = qps[i].qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};
	struct ib_uverbs_modify_qp rtr = {
		.qp_handle = qps[i].qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qps[!i].qpn,
		.rq_psn = 100 + !i,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.dest = { .dlid = h.config.ports[0].lid, .port_num = 1 },
	};
	struct ib_uverbs_modify_qp rts = {
		.qp_handle = qps[i].qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC,
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 100 + i,
		.max_rd_atomic = 1,
	};

	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &init), 0);
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &rtr), 0);
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &rts), 0);
}

static void post_recv(int i)
{
	struct {
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr;
		struct ib_uverbs_sge sge;
	} list = {
		.cmd = { .qp_handle = qps[i].qp_handle, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(list.wr) },
		.wr = { .wr_id = 1000 + i, .num_sge = 1 },
		.sge = { .addr = (uintptr_t)mem[i], .length = sizeof(mem[i]), .lkey = mrs[i].lkey },
	};
	struct ib_uverbs_post_recv_resp resp;

	ck_assert_int_eq(WRITE(&h, POST_RECV, &list, &resp), 0);
}

static void post_send(int i, uint32_t length)
{
	struct {
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} list = {
		.cmd = { .qp_handle = qps[i].qp_handle, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(list.wr) },
		.wr = { .wr_id = 2000 + i,
			.num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED,
			.ex.imm_data = htobe32(0x12345678) },
		.sge = { .addr = (uintptr_t)mem[i], .length = length, .lkey = mrs[i].lkey },
	};
	struct ib_uverbs_post_send_resp resp;

	ck_assert_int_eq(WRITE(&h, POST_SEND, &list, &resp), 0);
}

struct polled {
	struct ib_uverbs_poll_cq_resp resp;
	struct ib_uverbs_wc wc[16];
};

/* Polls until there are n completions, for about a second at most. */
static void poll_for(unsigned int n, struct ib_uverbs_wc *wc)
{
	struct ib_uverbs_poll_cq cmd = { .cq_handle = cq };
	struct polled polled;

	for (int tries = 0; n && tries < 1000; tries++) {
		cmd.ne = n;
		ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_POLL_CQ, &cmd, sizeof(cmd), &polled, 8), 0);
		memcpy(wc, polled.wc, polled.resp.count * sizeof(*wc));
		wc += polled.resp.count;
		n -= polled.resp.count;
		if (n)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	ck_assert_uint_eq(n, 0);
}

START_TEST(test_a_message_arrives_and_the_channel_tells)
{
	struct pollfd pfd = { .events = POLLIN };
	struct ib_uverbs_req_notify_cq notify = {};
	struct ib_uverbs_comp_event_desc event;
	struct ib_uverbs_wc wc[2], *recv;

	begin();
	notify.cq_handle = cq;
	pfd.fd = channel;
	connect_qp(0);
	connect_qp(1);
	strcpy(mem[0], "a message");
	post_recv(1);
	ck_assert_int_eq(WRITE_IN(&h, REQ_NOTIFY_CQ, &notify), 0);
	post_send(0, 10);
	ck_assert_int_eq(poll(&pfd, 1, 1000), 1);
	ck_assert_int_eq(read(channel, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.cq_handle, 0xc0c0);
	poll_for(2, wc);
	recv = wc[0].opcode & 1 << 7 ? &wc[0] : &wc[1];
	ck_assert_uint_eq(wc[0].status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc[1].status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(recv->wr_id, 1001);
	ck_assert_uint_eq(recv->byte_len, 10);
	ck_assert_uint_eq(recv->qp_num, qps[1].qpn);
	ck_assert_uint_eq(recv->wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(recv->ex.imm_data, htobe32(0x12345678));
	ck_assert_str_eq(mem[1], "a message");
}
END_TEST

/* The client closes the file with requests posted: they are freed with their QPs. */
START_TEST(test_close_with_requests_posted)
{
	begin();
	connect_qp(0);
	connect_qp(1);
	post_recv(1);
	for (int i = 0; i < 10; i++)
		post_send(0, 4096);
	harness_close_file(&h);
}
END_TEST

START_TEST(test_error_flushes_the_receives)
{
	struct ib_uverbs_modify_qp err = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_ERR };
	struct ib_uverbs_query_qp cmd = { .attr_mask = IBV_QP_STATE };
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_wc wc[3];

	begin();
	connect_qp(1);
	for (int i = 0; i < 3; i++)
		post_recv(1);
	cmd.qp_handle = err.qp_handle = qps[1].qp_handle;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_QP, &err), 0);
	poll_for(3, wc);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(wc[i].status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(WRITE(&h, QUERY_QP, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_ERR);
}
END_TEST

START_TEST(test_the_backends_limits_reach_the_client)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ib_uverbs_create_qp cmd = { .max_send_wr = h.config.limits.max_qp_wr + 1,
					   .max_send_sge = 1,
					   .qp_type = IBV_QPT_RC };
	uint32_t handle;

	begin();
	cmd.pd_handle = pd;
	cmd.send_cq_handle = cmd.recv_cq_handle = cq;
	ck_assert_int_eq(harness_create_cq(&h, 0, 0, -1, &handle), -EINVAL);
	ck_assert_int_eq(harness_create_cq(&h, 0, h.config.limits.max_cqe + 1, -1, &handle), -EINVAL);
	ck_assert_int_eq(harness_create_cq(&h, 0, ~0u, -1, &handle), -EINVAL);
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), -EINVAL);
}
END_TEST

TEST_LIST(test_a_message_arrives_and_the_channel_tells, test_close_with_requests_posted,
	  test_error_flushes_the_receives, test_the_backends_limits_reach_the_client)
