// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A client with one mistake, for test_report.py: the first argument names it. It is compiled with -g. */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 8192, ENTRIES = 16 };

static char buffer[SIZE];
static const char *mistake;

static void *need(void *object)
{
	if (!object)
		exit(4);
	return object;
}

static void need_ok(int err)
{
	if (err)
		exit(5);
}

static int is(const char *name)
{
	return !strcmp(mistake, name);
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = need(ibv_get_device_list(NULL));
	struct ibv_context *c = need(ibv_open_device(need(list[0])));

	ibv_free_device_list(list);
	return c;
}

static __attribute__((noinline)) struct ibv_mr *register_buffer(struct ibv_pd *pd)
{
	return need(ibv_reg_mr(pd, buffer, SIZE, IBV_ACCESS_LOCAL_WRITE)); /* the leak */
}

/* Has frames of its own, which the compiler must not make a loop of. */
static __attribute__((noinline)) int register_deeply(struct ibv_pd *pd, int depth)
{
	volatile int more = depth ? register_deeply(pd, depth - 1) : (register_buffer(pd), 0);

	return more + 1;
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	need_ok(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .min_rnr_timer = 1
	};
	attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	need_ok(ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid));
	need_ok(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	need_ok(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC));
}

static void post(struct ibv_qp *from, struct ibv_qp *to, uint32_t lkey, int receives, int sends)
{
	struct ibv_sge sge = { (uintptr_t)buffer, 64, lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad_send;

	for (int i = 0; i < receives; i++)
		need_ok(ibv_post_recv(to, &recv, &bad_recv));
	sge.lkey += is("wrong-key") ? 0x100 : 0;
	for (int i = 0; i < sends; i++)
		need_ok(ibv_post_send(from, &send, &bad_send));
}

static void wait_for(struct ibv_cq *cq, int completions)
{
	struct ibv_wc wc;

	while (completions)
		completions -= ibv_poll_cq(cq, 1, &wc);
}

/* Sends between two QPs of this process, and destroys all of them. */
static void send_messages(struct ibv_context *c, struct ibv_pd *pd, struct ibv_mr *mr)
{
	struct ibv_cq *cq = need(ibv_create_cq(c, is("overrun") ? 1 : 2 * ENTRIES + 2 * ENTRIES, NULL, NULL, 0));
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_qp *qp[2];

	for (int i = 0; i < 2; i++) {
		init.cap = (struct ibv_qp_cap){ ENTRIES, ENTRIES, 1, 1, 0 };
		qp[i] = need(ibv_create_qp(pd, &init));
	}
	connect_qp(qp[0], qp[1]->qp_num);
	connect_qp(qp[1], qp[0]->qp_num);
	if (is("leak-served"))
		return;
	if (is("stuck")) {
		post(qp[0], qp[1], mr->lkey, 0, 3);
	} else if (is("last-in-flight")) {
		post(qp[0], qp[1], mr->lkey, 1, 3);
		wait_for(cq, 2);
	} else if (is("overrun")) {
		struct ibv_async_event event;

		post(qp[0], qp[1], mr->lkey, 4, 4);
		need_ok(ibv_get_async_event(c, &event));
		ibv_ack_async_event(&event);
	} else if (is("wrong-key")) {
		post(qp[0], qp[1], mr->lkey, 1, 1);
		wait_for(cq, 1);
	} else {
		post(qp[0], qp[1], mr->lkey, 7, 5);
		wait_for(cq, 10);
	}
	if (is("leak-used"))
		return;
	need_ok(ibv_destroy_qp(qp[0]) | ibv_destroy_qp(qp[1]) | ibv_destroy_cq(cq));
}

static void leave_all(void)
{
	register_buffer(need(ibv_alloc_pd(open_device())));
}

/* Each of them is a process with a device of its own. */
static void many(int processes)
{
	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (!pid) {
			leave_all();
			exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	mistake = argc > 1 ? argv[1] : "none";
	if (argc > 2)
		prctl(PR_SET_NAME, argv[2]);
	if (is("many"))
		many(atoi(argv[3]));
	c = open_device();
	pd = need(ibv_alloc_pd(c));
	if (is("idle")) {
		need(ibv_create_cq(c, 1, NULL, NULL, 0));
		return 0;
	}
	if (is("leak-deeply"))
		return register_deeply(pd, 100) != 101;
	mr = register_buffer(pd);
	if (is("leak-regions"))
		for (int i = 0; i < 99; i++)
			register_buffer(pd);
	if (is("leak-and-fail"))
		return 3;
	if (is("leak-and-die"))
		raise(SIGKILL);
	if (is("close"))
		need_ok(ibv_close_device(c));
	if (is("leak-used") || is("leak-served")) {
		send_messages(c, pd, mr);
	} else if (strncmp(mistake, "leak", 4) && !is("close")) {
		send_messages(c, pd, mr);
		need_ok(ibv_dereg_mr(mr) | ibv_dealloc_pd(pd) | ibv_close_device(c));
	}
	return 0;
}
