/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast: joining and leaving groups, and which QPs receive a datagram that is sent to a group. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static const union ibv_gid group = { .raw = { 0xff, 0x12, 0xa0, 0x1c, [15] = 9 } };
static struct uvd_ah *ah;

enum { LID = 0xc001 };

static void open_with(uint8_t link_layer)
{
	bed_open(&bed, ops, link_layer);
	memset(a->buf, 0x11, BUF_SIZE);
	ah = calloc(1, ops->size_ah);
	ah->pd = a->side->pd;
	ah->attr.port_num = 1;
	ah->attr.dlid = link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : LID;
	ah->attr.is_global = 1;
	ah->attr.grh.dgid = group;
	ck_assert_int_eq(ops->create_ah(ah, NULL), 0);
	bed_connect(&bed, IBV_QPT_UD);
}

/* InfiniBand. A test that needs Ethernet opens the bed again. */
static void setup(void)
{
	open_with(IBV_LINK_LAYER_INFINIBAND);
}

static void teardown(void)
{
	ck_assert_int_eq(ops->destroy_ah(ah), 0);
	free(ah);
	bed_close(&bed);
}

static int attach(struct end *end)
{
	return ops->attach_mcast(end->qp, &group, LID);
}

static int detach(struct end *end)
{
	return ops->detach_mcast(end->qp, &group, LID);
}

static void send_to_group(struct end *end)
{
	struct ibv_sge sge = sge_at(end, 0, 100);

	ck_assert_int_eq(send_wr(end, .wr_id = 0xa, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .ah = ah,
				 .send_flags = IBV_SEND_SIGNALED, .remote_qpn = 0xffffff, .remote_qkey = 0x1234),
			 0);
	expect(end->scq, 0xa, IBV_WC_SUCCESS);
}

/* Creates n more UD QPs on the device and the CQs of `like`. QP i has one receive, with wr_id 100 + i. */
static void add_qps(struct end *ends, int n, struct end *like)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	for (int i = 0; i < n; i++) {
		ends[i] = *like;
		ends[i].qp = make_qp(&ends[i], IBV_QPT_UD, &init, &err);
		ck_assert_int_eq(err, 0);
		ck_assert_int_eq(to_init(&ends[i]) | to_rtr(&ends[i], a) | to_rts(&ends[i]), 0);
		ck_assert_int_eq(post_recv_at(&ends[i], 100 + i, 1000 * (i + 1), 200), 0);
	}
}

START_TEST(test_all_members_but_the_sender_get_it)
{
	struct end more[3];
	struct ibv_wc wc;

	if (_i) {
		teardown();
		open_with(IBV_LINK_LAYER_ETHERNET);
	}
	add_qps(more, 2, b);
	add_qps(more + 2, 1, a);
	ck_assert_int_eq(post_recv_at(a, 0xb, 5000, 200) | post_recv_at(b, 0xb, 5000, 200), 0);
	ck_assert_int_eq(attach(a) | attach(b) | attach(&more[0]) | attach(&more[2]), 0);
	send_to_group(a);

	wc = expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 140);
	ck_assert_uint_eq(wc.src_qp, a->qp->qp_num);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH);
	ck_assert_int_eq(memcmp(b->buf + 5000 + 24, &group, 16), 0);
	ck_assert_int_eq(memcmp(b->buf + 5000 + 8, &a->side->dev.config.ports[0].gids[0], 16), 0);
	ck_assert_int_eq(memcmp(b->buf + 5040, a->buf, 100), 0);
	expect(b->rcq, 100, IBV_WC_SUCCESS);
	expect_nothing(b->rcq);
	/* The group's other member on the sender's port gets it too, but not the sender. */
	expect(a->rcq, 100, IBV_WC_SUCCESS);
	expect_nothing(a->rcq);
	for (int i = 0; i < 3; i++)
		free_qp(&more[i]);
}
END_TEST

START_TEST(test_more_members_than_one_batch)
{
	struct end more[20];

	bed.side[1].dev.config.limits.max_mcast_qp_attach = 32;
	add_qps(more, 20, b);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(attach(&more[i]), 0);
	send_to_group(a);
	for (int i = 0; i < 20; i++)
		expect(b->rcq, 100 + i, IBV_WC_SUCCESS);
	expect_nothing(b->rcq);
	for (int i = 0; i < 20; i++)
		free_qp(&more[i]);
}
END_TEST

START_TEST(test_attaching_twice_is_once)
{
	ck_assert_int_eq(attach(b) | attach(b), 0);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 200) | post_recv_at(b, 2, 0, 200), 0);
	send_to_group(a);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	expect_nothing(b->rcq);
	ck_assert_int_eq(detach(b), 0);
	ck_assert_int_eq(detach(b), -EINVAL);
	send_to_group(a);
	expect_nothing(b->rcq);
}
END_TEST

START_TEST(test_attach_and_detach_that_are_einval)
{
	ck_assert_int_eq(attach(b), 0);
	/* A group has one LID on a port. */
	ck_assert_int_eq(ops->attach_mcast(b->qp, &group, LID + 1), -EINVAL);
	ck_assert_int_eq(ops->detach_mcast(b->qp, &group, LID + 1), -EINVAL);
	ck_assert_int_eq(detach(a), -EINVAL);
	ck_assert_int_eq(detach(b), 0);
	ck_assert_int_eq(ops->attach_mcast(b->qp, &group, LID + 1), 0);
	ck_assert_int_eq(ops->detach_mcast(b->qp, &group, LID + 1), 0);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
	ck_assert_int_eq(attach(b), -EINVAL);
}
END_TEST

START_TEST(test_groups_and_members_are_limited)
{
	union ibv_gid gid = group;
	struct end more[4];

	for (int i = 0; i < 4; i++) {
		gid.raw[14] = i + 1;
		ck_assert_int_eq(ops->attach_mcast(b->qp, &gid, LID), 0);
	}
	ck_assert_int_eq(attach(b), -ENOMEM);
	ck_assert_int_eq(ops->detach_mcast(b->qp, &gid, LID), 0);
	ck_assert_int_eq(attach(b), 0);
	add_qps(more, 4, b);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(attach(&more[i]), 0);
	ck_assert_int_eq(attach(&more[3]), -ENOMEM);
	for (int i = 0; i < 4; i++)
		free_qp(&more[i]);
	/* Destroying the QPs has detached them. */
	add_qps(more, 3, b);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(attach(&more[i]), 0);
		free_qp(&more[i]);
	}
}
END_TEST

/* Each case breaks one thing: the datagram is lost, and the sender stays in RTS. */
START_TEST(test_datagrams_that_do_not_reach_the_group)
{
	ck_assert_int_eq(attach(b), 0);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 200), 0);
	switch (_i) {
	case 0:
		ah->attr.dlid = LID + 1;
		break;
	case 1:
		ah->attr.grh.dgid.raw[15]++;
		break;
	case 2:
		ah->attr.is_global = 0;
		break;
	case 3:
		b->side->dev.config.ports[0].down = true;
		break;
	case 4:
		b->side->dev.config.ports[0].link_layer = IBV_LINK_LAYER_ETHERNET;
		break;
	case 5:
		ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
		break;
	}
	send_to_group(a);
	expect_nothing(b->rcq);
	ck_assert_int_eq(state_of(a), IBV_QPS_RTS);
}
END_TEST

/* With a hash that clients know all of these GIDs could be in one bucket, and each datagram to a group there would search all. */
START_TEST(test_chosen_gids_are_in_many_buckets)
{
	enum { GROUPS = 64, FEW = 16 /* far from the 40 that chance gives */ };
	unsigned int used = 0;

	a->side->dev.config.limits.max_mcast_grp = GROUPS;
	for (int i = 0; i < GROUPS; i++) {
		/* Bytes that differ by multiples of 64 have the same sum modulo 64, whatever each is multiplied by. */
		const union ibv_gid gid = {
			.raw = { 0xff, 0x12, [13] = i % 4 * 64, [14] = i / 4 % 4 * 64, [15] = i / 16 * 64 }
		};

		ck_assert_int_eq(ops->attach_mcast(a->qp, &gid, LID), 0);
	}
	for (int i = 0; i < SOFT_MCAST_BUCKETS; i++)
		used += bed.fabric->mcast[i].first != NULL;
	ck_assert_uint_ge(used, FEW);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mcast");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, test_all_members_but_the_sender_get_it, 0, 2);
	tcase_add_test(t, test_more_members_than_one_batch);
	tcase_add_test(t, test_attaching_twice_is_once);
	tcase_add_test(t, test_attach_and_detach_that_are_einval);
	tcase_add_test(t, test_groups_and_members_are_limited);
	add_own_queue_loop_test(t, test_datagrams_that_do_not_reach_the_group, 0, 6,
				"all ports of mapped queues are Ethernet, where each packet has a GRH");
	tcase_add_test(t, test_chosen_gids_are_in_many_buckets);
	return run_suite("backends: soft multicast", t);
}
