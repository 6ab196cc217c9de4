/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * mcast: three processes and a multicast group. Each attached QP receives a message once; one that is detached, or that
 * only sends, does not.
 */
#include "side.h"
#include <string.h>

#define ARENA 16384
#define GRH 40
#define LENGTH 1000
#define QKEY 0x11111111
#define SIDES 3
#define GROUP_LID 0xc001

/* The second is 224.0.1.190: on Ethernet the provider requires an address that the host has a route for. */
static const union ibv_gid groups[] = { { .raw = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [14] = 0xbe, [15] = 0xef } },
					{ .raw = { [10] = 0xff, 0xff, 224, 0, 1, 190 } } };

static const union ibv_gid *group(struct side *s)
{
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(s->context, 1, &port));
	return &groups[port.link_layer == IBV_LINK_LAYER_ETHERNET];
}

static int open_ud(struct side *s, void *unused)
{
	side_open(s, NULL);
	s->qp[0] = side_qp(s, IBV_QPT_UD, false);
	qp_connect(s->qp[0], (struct address){}, NULL);
	return 0;
}

static int attach(struct side *s, void *unused)
{
	return ibv_attach_mcast(s->qp[0], group(s), GROUP_LID);
}

static int detach(struct side *s, void *unused)
{
	return ibv_detach_mcast(s->qp[0], group(s), GROUP_LID);
}

static int post_recv(struct side *s, void *unused)
{
	struct ibv_sge sge = { (uintptr_t)s->arena, GRH + LENGTH, s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	memset(s->arena, 0, ARENA);
	return ibv_post_recv(s->qp[0], &wr, &bad);
}

static int send_to_group(struct side *s, void *unused)
{
	struct ibv_ah_attr a = {
		.dlid = GROUP_LID, .port_num = 1, .is_global = 1, .grh = { .dgid = *group(s), .hop_limit = 1 }
	};
	struct ibv_sge sge = { (uintptr_t)s->arena + 8192, LENGTH, s->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_wc wc;

	memset(s->arena + 8192, 0x5a, LENGTH);
	wr.wr.ud.ah = ibv_create_ah(s->pd, &a);
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = QKEY;
	CHECK(wr.wr.ud.ah);
	CHECK(!ibv_post_send(s->qp[0], &wr, &bad));
	CHECK(next_wc(s, &wc, 20) && wc.status == IBV_WC_SUCCESS && wc.wr_id == 2);
	return ibv_destroy_ah(wr.wr.ud.ah);
}

/* Returns how many messages arrived. The sender's completion came after all deliveries, so a short wait is enough. */
static int received(struct side *s, void *unused)
{
	struct ibv_wc wc;
	int n;

	for (n = 0; next_wc(s, &wc, 0.05); n++) {
		const int bytes = s->arena[20] == 0x45 ? 4 : 16; /* of the destination: an IPv4 header, or a GRH */

		CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == GRH + LENGTH);
		CHECK(wc.wc_flags & IBV_WC_GRH);
		CHECK(!memcmp(s->arena + GRH - bytes, group(s)->raw + 16 - bytes, bytes));
		for (int i = 0; i < LENGTH; i++)
			CHECK(s->arena[GRH + i] == 0x5a);
		CHECK(!s->arena[GRH + LENGTH]);
	}
	return n;
}

int main(void)
{
	static struct side s[SIDES];

	for (int i = 0; i < SIDES; i++)
		side_init(&s[i], arena_new(ARENA), ARENA, i);
	for (int i = 0; i < SIDES; i++)
		CHECK(!side_call(&s[i], open_ud, NULL, 0));
	for (int i = 1; i < SIDES; i++) {
		CHECK(!side_call(&s[i], attach, NULL, 0));
		CHECK(!side_call(&s[i], attach, NULL, 0)); /* attaching twice changes nothing */
		CHECK(!side_call(&s[i], post_recv, NULL, 0));
		CHECK(!side_call(&s[i], post_recv, NULL, 0));
	}
	CHECK(!side_call(&s[0], post_recv, NULL, 0)); /* could take a message, but is not attached */
	CHECK(!side_call(&s[0], send_to_group, NULL, 0));
	CHECK(side_call(&s[0], received, NULL, 0) == 0);
	CHECK(side_call(&s[1], received, NULL, 0) == 1);
	CHECK(side_call(&s[2], received, NULL, 0) == 1);

	CHECK(!side_call(&s[1], detach, NULL, 0));
	CHECK(side_call(&s[1], detach, NULL, 0)); /* already detached */
	CHECK(!side_call(&s[0], send_to_group, NULL, 0));
	CHECK(side_call(&s[1], received, NULL, 0) == 0);
	CHECK(side_call(&s[2], received, NULL, 0) == 1);

	/* A killed member must not prevent delivery to the others. */
	side_kill(&s[2]);
	CHECK(!side_call(&s[1], attach, NULL, 0));
	CHECK(!side_call(&s[0], send_to_group, NULL, 0));
	CHECK(side_call(&s[1], received, NULL, 0) == 1);
	side_end(&s[1]);
	return 0;
}
