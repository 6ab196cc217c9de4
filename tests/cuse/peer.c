/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * cuse-peer rc|ud: one end of a connection between two users. Prints its QP number, an address and the R_Key of it; reads "QPN ACTION
 * RKEY QKEY", whose numbers are the peer's; then it connects and does as the action says:
 *
 *	init	stays in INIT
 *	ready	is ready to receive
 *	write	writes to the R_Key, and prints the status of its completion
 *	send	sends, to that Q_Key, and prints the status
 *
 * It ends when its input does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../distribution/side.h"

enum { OWN_QKEY = 0x11 };

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_port_attr port;
static char bytes[4096];

static void begin(enum ibv_qp_type type)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = type, .cap = { 4, 4, 1, 1, 0 }, .sq_sig_all = 1 };

	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	CHECK(ctx && !ibv_query_port(ctx, 1, &port));
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cq = init.send_cq = init.recv_cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	CHECK(pd && mr && cq);
	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
}

static void to_init(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = OWN_QKEY, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
	};
	const int mask = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | mask));
}

/* The way to a QP of this port: by LID, or by GID where there are none. */
static struct ibv_ah_attr way(void)
{
	struct ibv_ah_attr av = { .port_num = 1, .dlid = port.lid, .is_global = !port.lid };

	CHECK(!ibv_query_gid(pd->context, 1, 0, &av.grh.dgid));
	return av;
}

static void to_rts(uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.max_rd_atomic = 1,
		.ah_attr = way(),
	};
	const bool is_ud = qp->qp_type == IBV_QPT_UD;
	const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER,
		  rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | (is_ud ? 0 : rtr)));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (is_ud ? 0 : rts)));
}

static void request(bool is_write, uint32_t dest, uint32_t rkey, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)bytes, 64, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_ah_attr av = way();
	struct ibv_wc wc;

	wr.opcode = is_write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
	if (is_write) {
		wr.wr.rdma.remote_addr = (uintptr_t)bytes;
		wr.wr.rdma.rkey = rkey;
	} else if (qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = ibv_create_ah(pd, &av);
		CHECK(wr.wr.ud.ah);
		wr.wr.ud.remote_qpn = dest;
		wr.wr.ud.remote_qkey = qkey;
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
	while (!ibv_poll_cq(cq, 1, &wc))
		usleep(1000);
	printf("%s\n", ibv_wc_status_str(wc.status));
}

int main(int argc, char **argv)
{
	char action[16];
	uint32_t dest, rkey, qkey;

	CHECK(argc == 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	begin(strcmp(argv[1], "ud") ? IBV_QPT_RC : IBV_QPT_UD);
	printf("%u %" PRIuPTR " %u\n", qp->qp_num, (uintptr_t)bytes, mr->rkey);
	CHECK(scanf("%u %15s %u %u", &dest, action, &rkey, &qkey) == 4);
	to_init();
	if (strcmp(action, "init"))
		to_rts(dest);
	printf("is %s\n", action);
	if (!strcmp(action, "write") || !strcmp(action, "send"))
		request(!strcmp(action, "write"), dest, rkey, qkey);
	CHECK(scanf("%15s", action) == EOF);
	/* Not exit(): a sanitizer would report the address handle. */
	fflush(stdout);
	_exit(0);
}
