/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * verbs DEVICE: times verbs on one device with the distribution's libibverbs. The device's answer to libibverbs' probe
 * decides which ABI they use. The device should have the null backend, so that only the path to the backend is timed.
 */
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>
#include "clock.h"

struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static unsigned int verbs_alloc_pd(void *arg, unsigned long count)
{
	struct objects *o = arg;

	while (count--) {
		struct ibv_pd *p = ibv_alloc_pd(o->context);

		if (!p || ibv_dealloc_pd(p))
			return 0;
	}
	return 2;
}

static unsigned int poll_cq(void *arg, unsigned long count)
{
	struct objects *o = arg;
	struct ibv_wc wc;

	while (count--)
		if (ibv_poll_cq(o->cq, 1, &wc) < 0)
			return 0;
	return 1;
}

/* The same command without libibverbs, which allocates and copies: the device's part of poll_cq. */
static unsigned int poll_cq_raw(void *arg, unsigned long count)
{
	struct objects *o = arg;
	struct {
		struct ib_uverbs_poll_cq_resp hdr;
		struct ib_uverbs_wc wc[1];
	} resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_poll_cq cmd;
	} poll = { { IB_USER_VERBS_CMD_POLL_CQ, sizeof(poll) / 4, sizeof(resp) / 4 },
		   { (uintptr_t)&resp, o->cq->handle, 1 } };

	while (count--)
		if (write(o->context->cmd_fd, &poll, sizeof(poll)) != sizeof(poll))
			return 0;
	return 1;
}

/* An unsignalled, empty work request: the cost of passing it to the backend. */
static unsigned int post_send(void *arg, unsigned long count)
{
	struct objects *o = arg;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	while (count--)
		if (ibv_post_send(o->qp, &wr, &bad))
			return 0;
	return 1;
}

static const struct bench all[] = {
	{ "pd", verbs_alloc_pd },   { "poll_cq", poll_cq }, { "poll_cq_raw", poll_cq_raw },
	{ "post_send", post_send }, { NULL, NULL },
};

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = qp->qp_num,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = { .dlid = 1, .port_num = 1 } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};

	return ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	       ibv_modify_qp(qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
	       ibv_modify_qp(qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 0 } };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct objects o = { NULL };

	for (struct ibv_device **d = list; d && *d; d++)
		if (argc == 2 && !strcmp(ibv_get_device_name(*d), argv[1]))
			o.context = ibv_open_device(*d);
	if (!o.context) {
		fprintf(stderr, "verbs: cannot open %s\n", argc == 2 ? argv[1] : "(usage: verbs DEVICE)");
		return 2;
	}
	o.pd = ibv_alloc_pd(o.context);
	o.cq = ibv_create_cq(o.context, 16, NULL, NULL, 0);
	init.send_cq = init.recv_cq = o.cq;
	o.qp = o.pd && o.cq ? ibv_create_qp(o.pd, &init) : NULL;
	if (!o.qp || to_rts(o.qp)) {
		perror("verbs: setting up a QP");
		return 1;
	}
	return bench_serve(all, &o);
}
