/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device of the soft backend is removed while its QP is connected to another device of the same engine. */
#include <pthread.h>
#include <time.h>
#define BACKEND "soft"
#include "tests.h"
#include "../suite.h"

/* One end of a connection: a QP and the objects that it needs, on its own device. */
struct end {
	struct harness *h;
	uint32_t pd, cq;
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_reg_mr_resp mr;
	char mem[4096] __attribute__((aligned(4096)));
};

static struct harness second;
static struct end ends[2] = { { .h = &h }, { .h = &second } };

/* Makes another device of the fixture's engine, and opens it. */
static void second_open(void)
{
	int err;

	second = h;
	uvd_config_default(&second.config, &uvd_persona_hfi1, 1);
	second.dev = uvd_device_new(&h.engine, &second.config, &err);
	ck_assert_ptr_nonnull(second.dev);
	second.call = calloc(1, sizeof(*second.call));
	second.call->caller = h.call->caller;
	second.file = second.call->file = uvd_file_open(second.dev, h.account, &err);
	ck_assert_ptr_nonnull(second.file);
}

static void second_close(void)
{
	harness_close_file(&second);
	uvd_device_put(second.dev);
	free(second.call);
}

static void end_open(struct end *e)
{
	uint32_t between;

	ck_assert_int_eq(harness_begin(e->h, &e->pd, &e->cq), 0);
	ck_assert_int_eq(harness_create_qp(e->h, IBV_QPT_RC, e->pd, e->cq, &e->qp), 0);
	/* A removal destroys the newest objects first: the MR, then these PDs, and the QP after them. */
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(harness_alloc_pd(e->h, &between), 0);
	ck_assert_int_eq(harness_reg_mr(e->h, e->pd, e->mem, sizeof(e->mem), IBV_ACCESS_LOCAL_WRITE, &e->mr), 0);
}

static void end_connect(struct end *e, const struct end *peer)
{
	struct ib_uverbs_modify_qp init = {
		.qp_handle = e->qp.qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};
	struct ib_uverbs_modify_qp rtr = {
		.qp_handle = e->qp.qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp.qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.dest = { .dlid = peer->h->config.ports[0].lid, .port_num = 1 },
	};
	struct ib_uverbs_modify_qp rts = {
		.qp_handle = e->qp.qp_handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC,
		.qp_state = IBV_QPS_RTS,
		.timeout = 16, /* over a second with 3 retries: a poll in flight at the removal ends before that */
		.retry_cnt = 3,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	ck_assert_int_eq(WRITE_IN(e->h, MODIFY_QP, &init), 0);
	ck_assert_int_eq(WRITE_IN(e->h, MODIFY_QP, &rtr), 0);
	ck_assert_int_eq(WRITE_IN(e->h, MODIFY_QP, &rts), 0);
}

static void setup_ends(void)
{
	second_open();
	end_open(&ends[0]);
	end_open(&ends[1]);
	end_connect(&ends[0], &ends[1]);
	end_connect(&ends[1], &ends[0]);
}

static int end_recv(struct end *e)
{
	struct {
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr;
		struct ib_uverbs_sge sge;
	} list = {
		.cmd = { .qp_handle = e->qp.qp_handle, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(list.wr) },
		.wr = { .num_sge = 1 },
		.sge = { .addr = (uintptr_t)e->mem, .length = sizeof(e->mem), .lkey = e->mr.lkey },
	};
	struct ib_uverbs_post_recv_resp resp;

	return WRITE(e->h, POST_RECV, &list, &resp);
}

static int end_send(struct end *e)
{
	struct {
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} list = {
		.cmd = { .qp_handle = e->qp.qp_handle, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(list.wr) },
		.wr = { .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED },
		.sge = { .addr = (uintptr_t)e->mem, .length = sizeof(e->mem), .lkey = e->mr.lkey },
	};
	struct ib_uverbs_post_send_resp resp;

	return WRITE(e->h, POST_SEND, &list, &resp);
}

/* 1: a completion, 0: none, or a negative errno. */
static int end_poll(struct end *e, struct ib_uverbs_wc *wc)
{
	struct ib_uverbs_poll_cq cmd = { .cq_handle = e->cq, .ne = 1 };
	struct {
		struct ib_uverbs_poll_cq_resp resp;
		struct ib_uverbs_wc wc;
	} polled = {};
	int ret = harness_write(e->h, IB_USER_VERBS_CMD_POLL_CQ, &cmd, sizeof(cmd), &polled, 8);

	*wc = polled.wc;
	return ret ? ret : (int)polled.resp.count;
}

static struct ib_uverbs_wc end_wait(struct end *e)
{
	struct ib_uverbs_wc wc;

	for (int ms = 0; ms < 10000; ms++) {
		int ret = end_poll(e, &wc);

		ck_assert_int_ge(ret, 0);
		if (ret)
			return wc;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	ck_abort_msg("no completion");
}

START_TEST(test_the_peer_of_an_unplugged_device_gets_retry_errors)
{
	setup_ends();
	ck_assert_int_eq(end_recv(&ends[1]), 0);
	ck_assert_int_eq(end_send(&ends[0]), 0);
	ck_assert_uint_eq(end_wait(&ends[0]).status, IBV_WC_SUCCESS);
	uvd_device_remove(second.dev);
	ck_assert_int_eq(end_send(&ends[0]), 0);
	ck_assert_uint_eq(end_wait(&ends[0]).status, IBV_WC_RETRY_EXC_ERR);
	second_close();
}
END_TEST

static int (*dereg_mr)(struct uvd_mr *mr);

static int dereg_and_send(struct uvd_mr *mr)
{
	const int ret = dereg_mr(mr);

	ck_assert_int_eq(end_send(&ends[0]), 0);
	return ret;
}

/* A message that arrives when the region of its receive is gone and the QP is not: the peer sees no error of that region. */
START_TEST(test_the_peer_gets_a_retry_error_although_the_region_goes_first)
{
	setup_ends();
	second.ops = *second.dev->ib.ops;
	second.dev->ib.ops = &second.ops;
	dereg_mr = second.ops.dereg_mr;
	second.ops.dereg_mr = dereg_and_send;
	ck_assert_int_eq(end_recv(&ends[1]), 0);
	uvd_device_remove(second.dev);
	ck_assert_uint_eq(end_wait(&ends[0]).status, IBV_WC_RETRY_EXC_ERR);
	second_close();
}
END_TEST

static atomic_uint num_received;

/* Receives from send_all() until the receiver's device is removed. send_all() ends when either device is. */
static void *receive(void *arg)
{
	struct end *e = arg;
	struct ib_uverbs_wc wc;
	int ret = 0;

	e->h->call->caller.tid = gettid();
	while (ret >= 0) {
		ret = end_recv(e);
		if (ret == -ENOMEM) /* full */
			ret = 0;
		while (ret >= 0 && (ret = end_poll(e, &wc)) > 0)
			num_received++;
	}
	return (void *)(intptr_t)ret;
}

static void *send_all(void *arg)
{
	struct end *e = arg;
	struct ib_uverbs_wc wc = {};
	int ret = 0;

	e->h->call->caller.tid = gettid();
	while (ret >= 0 && wc.status == IBV_WC_SUCCESS) {
		ret = end_send(e);
		if (ret == -ENOMEM)
			ret = 0;
		while (ret >= 0 && wc.status == IBV_WC_SUCCESS && (ret = end_poll(e, &wc)) > 0)
			;
	}
	return (void *)(intptr_t)(ret < 0 ? ret : (int)wc.status);
}

/* _i: the end whose device is removed: 0: the sender, 1: the receiver. Messages have arrived by then, and others follow. */
START_TEST(test_removal_under_traffic)
{
	enum { SOME = 100 };
	pthread_t sender, receiver;
	void *sent, *received;

	setup_ends();
	pthread_create(&receiver, NULL, receive, &ends[1]);
	pthread_create(&sender, NULL, send_all, &ends[0]);
	while (num_received < SOME)
		sched_yield();
	uvd_device_remove(ends[_i].h->dev);
	pthread_join(sender, &sent);
	ck_assert_int_eq((intptr_t)sent, _i ? IBV_WC_RETRY_EXC_ERR : -EIO);
	if (!_i)
		uvd_device_remove(second.dev);
	pthread_join(receiver, &received);
	ck_assert_int_eq((intptr_t)received, -EIO);
	second_close();
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_the_peer_of_an_unplugged_device_gets_retry_errors);
	tcase_add_test(tc, test_the_peer_gets_a_retry_error_although_the_region_goes_first);
	tcase_add_loop_test(tc, test_removal_under_traffic, 0, 2);
	return run_suite(__FILE__, tc);
}
