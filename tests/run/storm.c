/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A QP that is connected to itself, under a storm of signals: each post gives exactly one completion. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

static char buf[4096];

struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
};

static void connect_to_itself(struct ibv_context *context, struct ibv_qp *qp)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	IS(!ibv_query_port(context, 1, &port));
	IS(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .dlid = port.lid, .port_num = 1 },
	};
	IS(!ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};
	IS(!ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC));
}

static void make_objects(struct objects *o)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	IS(list && list[0]);
	context = o->context = ibv_open_device(list[0]);
	IS(context);
	ibv_free_device_list(list);
	IS((o->pd = ibv_alloc_pd(context)));
	IS((o->mr = ibv_reg_mr(o->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
	IS((o->cq = ibv_create_cq(context, 128, NULL, NULL, 0)));
	init.send_cq = init.recv_cq = o->cq;
	IS((o->qp = ibv_create_qp(o->pd, &init)));
	connect_to_itself(context, o->qp);
}

static void post_and_wait(struct objects *o, uint64_t id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = 8, .lkey = o->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = (uintptr_t)buf + 64, .rkey = o->mr->rkey },
	}, *bad;
	struct ibv_wc wc = { 0 };
	int n;

	IS(!ibv_post_send(o->qp, &wr, &bad));
	while (!(n = ibv_poll_cq(o->cq, 1, &wc)))
		;
	IS(n == 1 && wc.status == IBV_WC_SUCCESS &&
	   wc.wr_id == id); /* a second completion of the previous post would come first */
}

static void destroy_objects(struct objects *o)
{
	IS(!ibv_destroy_qp(o->qp) && !ibv_destroy_cq(o->cq) && !ibv_dereg_mr(o->mr) && !ibv_dealloc_pd(o->pd));
	IS(!ibv_close_device(o->context));
}

void client_storm_post_send(void)
{
	struct objects o;
	struct ibv_wc wc;

	make_objects(&o);
	client_storm(true);
	for (int i = 0; i < 2000; i++)
		post_and_wait(&o, i);
	client_storm(false);
	IS(ibv_poll_cq(o.cq, 1, &wc) == 0);
	destroy_objects(&o);
}

struct post_send {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send cmd;
	struct ib_uverbs_send_wr wr;
	struct ib_uverbs_sge sge;
	struct ib_uverbs_post_send_resp resp;
};

enum { POST_SEND_BYTES = offsetof(struct post_send, resp) };

static void post_send_command(struct post_send *p, const struct objects *o, uint64_t id)
{
	*p = (struct post_send){
		.hdr = { IB_USER_VERBS_CMD_POST_SEND, POST_SEND_BYTES / 4, sizeof(p->resp) / 4 },
		.cmd = { .response = (uintptr_t)&p->resp,
			 .qp_handle = o->qp->handle,
			 .wr_count = 1,
			 .sge_count = 1,
			 .wqe_size = sizeof(p->wr) },
		.wr = { .wr_id = id,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)buf + 64, .rkey = o->mr->rkey } },
		.sge = { .addr = (uintptr_t)buf, .length = 8, .lkey = o->mr->lkey },
	};
}

/* A writev() of two commands executes only the first. No request is lost, or ibv_destroy_qp() would hang. */
void client_writev_post_send(void)
{
	struct post_send p[2];
	struct iovec v[] = { { &p[0], POST_SEND_BYTES }, { &p[1], POST_SEND_BYTES } };
	struct objects o;
	struct ibv_wc wc;

	make_objects(&o);
	post_send_command(&p[0], &o, 0);
	post_send_command(&p[1], &o, 1);
	IS(writev(o.context->cmd_fd, v, 2) == POST_SEND_BYTES);
	IS(writev(o.context->cmd_fd, v + 1, 1) == POST_SEND_BYTES);
	for (int i = 0, n; i < 2; i++) {
		while (!(n = ibv_poll_cq(o.cq, 1, &wc)))
			;
		IS(n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i);
	}
	destroy_objects(&o);
}

/* The child of a vfork() has its parent's memory: for the engine it is one address space. */
void client_registers_in_a_vfork(void)
{
	struct objects parent, child;
	char line[8];
	pid_t pid;

	make_objects(&parent);
	pid = vfork();
	if (!pid) {
		make_objects(&child);
		if (write(1, "ready\n", 6) != 6 || read(0, line, sizeof(line)) <= 0)
			_exit(1);
		destroy_objects(&child);
		_exit(0);
	}
	IS(pid > 0 && waitpid(pid, NULL, 0) == pid);
	destroy_objects(&parent);
}
