/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hca DEVICE GID_INDEX [local]: times verbs on one device with the distribution's libibverbs, transfers between two of its own
 * QPs included. bench.py has it on an adapter itself and on a device that forwards to it. local: no region has remote access,
 * and the cases that need it fail.
 */
#include <infiniband/verbs.h>
#include "clock.h"

enum { WINDOW = 16, LARGE = 1 << 20 };

struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	char *memory; /* LARGE bytes to send, and as many to receive */
	int access;
};

static unsigned int hca_pd(void *arg, unsigned long count)
{
	struct objects *o = arg;

	while (count--) {
		struct ibv_pd *pd = ibv_alloc_pd(o->context);

		if (!pd || ibv_dealloc_pd(pd))
			return 0;
	}
	return 2;
}

static unsigned int register_bytes(struct objects *o, unsigned long count, size_t length)
{
	while (count--) {
		struct ibv_mr *mr = ibv_reg_mr(o->pd, o->memory, length, o->access);

		if (!mr || ibv_dereg_mr(mr))
			return 0;
	}
	return 2;
}

static unsigned int hca_mr_4k(void *arg, unsigned long count)
{
	return register_bytes(arg, count, 4096);
}

static unsigned int hca_mr_1m(void *arg, unsigned long count)
{
	return register_bytes(arg, count, LARGE);
}

static unsigned int hca_cq(void *arg, unsigned long count)
{
	struct objects *o = arg;

	while (count--) {
		struct ibv_cq *cq = ibv_create_cq(o->context, 64, NULL, NULL, 0);

		if (!cq || ibv_destroy_cq(cq))
			return 0;
	}
	return 2;
}

static struct ibv_qp *create_qp(struct objects *o)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = o->cq, .recv_cq = o->cq, .cap = { WINDOW, WINDOW, 1, 1, 0 }
	};

	return ibv_create_qp(o->pd, &init);
}

static unsigned int hca_qp(void *arg, unsigned long count)
{
	struct objects *o = arg;

	while (count--) {
		struct ibv_qp *qp = create_qp(o);

		if (!qp || ibv_destroy_qp(qp))
			return 0;
	}
	return 2;
}

static unsigned int hca_poll(void *arg, unsigned long count)
{
	struct objects *o = arg;
	struct ibv_wc wc;

	while (count--)
		if (ibv_poll_cq(o->cq, 1, &wc) < 0)
			return 0;
	return 1;
}

/* Polls until a completion is there. Returns its opcode, or -1: it failed. */
static int hca_wait(struct objects *o)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(o->cq, 1, &wc);
	while (!n);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? (int)wc.opcode : -1;
}

static int post(struct objects *o, enum ibv_wr_opcode opcode, uint32_t size)
{
	struct ibv_sge from = { (uintptr_t)o->memory, size, o->mr->lkey };
	struct ibv_sge to = { (uintptr_t)o->memory + LARGE, size, o->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	send.wr.rdma.remote_addr = to.addr;
	send.wr.rdma.rkey = o->mr->rkey;
	if (opcode == IBV_WR_SEND && ibv_post_recv(o->qp[1], &recv, &bad_recv))
		return -1;
	return ibv_post_send(o->qp[0], &send, &bad);
}

/* Keeps `window` messages under way. The time is that of one message. */
static unsigned int transfer(struct objects *o, unsigned long count, enum ibv_wr_opcode opcode, uint32_t size,
			     unsigned int window)
{
	unsigned long posted = 0, done = 0;

	while (done < count) {
		int what;

		for (; posted < count && posted - done < window; posted++)
			if (post(o, opcode, size))
				return 0;
		what = hca_wait(o);
		if (what < 0)
			return 0;
		done += what != IBV_WC_RECV;
	}
	/* The receives of the last messages may complete after the sends. */
	for (struct ibv_wc wc; ibv_poll_cq(o->cq, 1, &wc) > 0;)
		;
	return 1;
}

static unsigned int hca_send_64(void *arg, unsigned long count)
{
	return transfer(arg, count, IBV_WR_SEND, 64, 1);
}

static unsigned int hca_send_64k(void *arg, unsigned long count)
{
	return transfer(arg, count, IBV_WR_SEND, 65536, WINDOW / 2);
}

static unsigned int hca_write_64(void *arg, unsigned long count)
{
	return transfer(arg, count, IBV_WR_RDMA_WRITE, 64, 1);
}

static unsigned int hca_write_64k(void *arg, unsigned long count)
{
	return transfer(arg, count, IBV_WR_RDMA_WRITE, 65536, WINDOW / 2);
}

static const struct bench all[] = {
	{ "pd", hca_pd },
	{ "mr_4k", hca_mr_4k },
	{ "mr_1m", hca_mr_1m },
	{ "cq", hca_cq },
	{ "qp", hca_qp },
	{ "poll", hca_poll },
	{ "send_64", hca_send_64 },
	{ "send_64k", hca_send_64k },
	{ "write_64", hca_write_64 },
	{ "write_64k", hca_write_64k },
	{ NULL, NULL },
};

static int connect_qp(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, int index)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = peer,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 1,
				   .ah_attr = { .port_num = 1,
						.is_global = 1,
						.grh = { .dgid = *gid, .sgid_index = index, .hop_limit = 1 } } };
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

static int open_objects(struct objects *o, const char *name, int index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid gid;

	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			o->context = ibv_open_device(*d);
	if (!o->context || ibv_query_gid(o->context, 1, index, &gid))
		return -1;
	o->pd = ibv_alloc_pd(o->context);
	o->cq = ibv_create_cq(o->context, 4 * WINDOW, NULL, NULL, 0);
	o->memory = aligned_alloc(4096, 2 * LARGE);
	if (!o->pd || !o->cq || !o->memory)
		return -1;
	memset(o->memory, 1, 2 * LARGE);
	o->mr = ibv_reg_mr(o->pd, o->memory, 2 * LARGE, o->access);
	for (int i = 0; i < 2; i++)
		o->qp[i] = create_qp(o);
	if (!o->mr || !o->qp[0] || !o->qp[1])
		return -1;
	return connect_qp(o->qp[0], o->qp[1]->qp_num, &gid, index) ||
	       connect_qp(o->qp[1], o->qp[0]->qp_num, &gid, index);
}

int main(int argc, char **argv)
{
	struct objects o = { .access = IBV_ACCESS_LOCAL_WRITE | (argc == 3 ? IBV_ACCESS_REMOTE_WRITE : 0) };

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: hca DEVICE GID_INDEX [local]\n");
		return 2;
	}
	if (open_objects(&o, argv[1], atoi(argv[2]))) {
		perror("hca: setting up two QPs");
		return 1;
	}
	return bench_serve(all, &o);
}
