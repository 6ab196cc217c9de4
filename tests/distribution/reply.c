/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * reply: a UD QP answers each message at the address that the message came from, which libibverbs reads from the
 * completion and the header in the receive (ibv_create_ah_from_wc()). For each GID of the port, and by LID if it has one.
 */
#include "side.h"
#include <string.h>

#define ARENA 16384
#define GRH 40
#define LENGTH 100
#define QKEY 0x11111111

static struct side side;

static void post_recv_to(int which)
{
	struct ibv_sge sge = { (uintptr_t)side.arena + 4096 * which, GRH + LENGTH, side.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = which, .sg_list = &sge, .num_sge = 1 };

	memset(side.arena + 4096 * which, 0, 4096);
	CHECK(!ibv_post_recv(side.qp[which], &wr, &bad));
}

/* Sends a message from one QP to the other, and returns the completion of the receive. */
static struct ibv_wc send_from(int from, struct ibv_ah *ah, uint32_t qpn, int byte)
{
	struct ibv_sge sge = { (uintptr_t)side.arena + 8192, LENGTH, side.mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_wc wc, received = { .wr_id = 9 };

	memset(side.arena + 8192, byte, LENGTH);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	CHECK(!ibv_post_send(side.qp[from], &wr, &bad));
	for (int n = 0; n < 2; n++) {
		CHECK(next_wc(&side, &wc, 20) && wc.status == IBV_WC_SUCCESS);
		if (wc.wr_id != 9)
			received = wc;
	}
	CHECK(received.wr_id == (uint64_t)!from && received.byte_len == GRH + LENGTH);
	CHECK(!memcmp(side.arena + 4096 * !from + GRH, side.arena + 8192, LENGTH));
	return received;
}

/* Returns false if the host has no route to the GID, which providers for Ethernet require. */
static bool ask_and_answer(struct ibv_ah_attr *to, int nr)
{
	struct ibv_ah *there = ibv_create_ah(side.pd, to), *back;
	struct ibv_wc wc;

	if (!there)
		return false;
	post_recv_to(0);
	post_recv_to(1);
	wc = send_from(0, there, side.qp[1]->qp_num, 2 * nr);
	CHECK(!(wc.wc_flags & IBV_WC_GRH) == !to->is_global && wc.src_qp == side.qp[0]->qp_num);
	back = ibv_create_ah_from_wc(side.pd, &wc, (struct ibv_grh *)(side.arena + 4096), 1);
	CHECK(back);
	send_from(1, back, wc.src_qp, 2 * nr + 1);
	CHECK(!ibv_destroy_ah(back) && !ibv_destroy_ah(there));
	return true;
}

int main(void)
{
	struct ibv_port_attr port;
	int answered = 0;

	side_init(&side, arena_new(ARENA), ARENA, false);
	side_open(&side, NULL);
	for (int i = 0; i < 2; i++) {
		side.qp[i] = side_qp(&side, IBV_QPT_UD, false);
		qp_connect(side.qp[i], (struct address){}, NULL);
	}
	CHECK(!ibv_query_port(side.context, 1, &port));
	if (port.lid)
		answered += ask_and_answer(&(struct ibv_ah_attr){ .dlid = port.lid, .port_num = 1 }, 0);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		struct ibv_ah_attr to = { .dlid = port.lid, .port_num = 1, .is_global = 1 };
		static const union ibv_gid none;

		CHECK(!ibv_query_gid(side.context, 1, i, &to.grh.dgid));
		if (!memcmp(&to.grh.dgid, &none, sizeof(none)))
			continue;
		to.grh.sgid_index = i;
		to.grh.hop_limit = 7;
		answered += ask_and_answer(&to, i + 1);
	}
	printf("%d answered\n", answered);
	return 0;
}
