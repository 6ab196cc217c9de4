/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Raw packets: a frame that a RAW_PACKET QP sends is received by all other such QPs of its port. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;

enum { MANY = 20 };

/* More QPs on a's device; each has a CQ of its own. */
static struct end more[MANY];

static void add(struct end *end)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	memcpy(end, a, sizeof(*end));
	end->scq = end->rcq = make_cq(end, 64);
	end->qp = make_qp(end, IBV_QPT_RAW_PACKET, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(end) | to_rtr(end, end) | to_rts(end), 0);
}

static void drop(struct end *end)
{
	free_qp(end);
	ck_assert_int_eq(ops->destroy_cq(end->scq), 0);
	free(end->scq);
}

/* a and b are on different devices, so b receives none of a's frames. */
static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_ETHERNET);
	memset(a->buf, 0x11, 8192);
	bed_connect(&bed, IBV_QPT_RAW_PACKET);
	add(&more[0]);
	add(&more[1]);
}

static void teardown(void)
{
	drop(&more[0]);
	drop(&more[1]);
	bed_close(&bed);
}

static int send_frame(struct end *from, uint32_t length)
{
	struct ibv_sge sge[2] = { sge_at(from, 0, length / 2), sge_at(from, 4096, length - length / 2) };

	return send_wr(from, .wr_id = 0xa, .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2,
		       .send_flags = IBV_SEND_SIGNALED);
}

START_TEST(test_frame_reaches_all_of_the_port_but_its_sender)
{
	struct ibv_wc wc;

	ck_assert_int_eq(post_recv_at(a, 9, 60000, 100), 0);
	ck_assert_int_eq(post_recv_at(b, 9, 60000, 100), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(post_recv_at(&more[i], i, 10000 + i * 1000, 100), 0);
	ck_assert_int_eq(send_frame(a, 61), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		wc = expect(more[i].rcq, i, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, 61);
		ck_assert_uint_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.wc_flags, 0);
		ck_assert_uint_eq(wc.qp_num, more[i].qp->qp_num);
		ck_assert_int_eq(memcmp(a->buf + 10000 + i * 1000, a->buf, 61), 0);
		ck_assert_int_eq(a->buf[10061 + i * 1000], 0);
	}
	expect_nothing(a->rcq);
	expect_nothing(b->rcq);
}
END_TEST

START_TEST(test_frame_without_a_receive_or_room_is_lost)
{
	ck_assert_int_eq(post_recv_at(&more[0], 1, 10000, 59), 0);
	ck_assert_int_eq(post_recv_at(&more[0], 2, 11000, 60), 0);
	ck_assert_int_eq(send_frame(a, 60), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect_nothing(more[0].rcq);
	expect_nothing(more[1].rcq);
	ck_assert_int_eq(a->buf[10000], 0);
	/* The receive of 59 bytes is still queued. */
	ck_assert_int_eq(send_frame(a, 59), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(more[0].rcq, 1, IBV_WC_SUCCESS);
	/* A frame that found no receive is not delivered later. */
	ck_assert_int_eq(post_recv_at(&more[1], 3, 12000, 100), 0);
	expect_nothing(more[1].rcq);
}
END_TEST

START_TEST(test_frame_is_received_from_rtr_to_the_error_state)
{
	static const struct {
		enum ibv_qp_state state;
		bool receives;
	} rows[] = { { IBV_QPS_INIT, false }, { IBV_QPS_RTR, true }, { IBV_QPS_RTS, true }, { IBV_QPS_ERR, false } };

	ck_assert_int_eq(to_state(&more[0], IBV_QPS_RESET), 0);
	ck_assert_int_eq(to_init(&more[0]), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (i)
			ck_assert_int_eq(to_state(&more[0], rows[i].state), 0);
		ck_assert_int_eq(post_recv_at(&more[0], i, 10000, 100), 0);
		ck_assert_int_eq(send_frame(a, 60), 0);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
		if (rows[i].receives)
			wait_wc(more[0].rcq);
		else if (rows[i].state != IBV_QPS_ERR)
			expect_nothing(more[0].rcq);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(wait_wc(more[0].rcq).status, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(more[0].rcq);
}
END_TEST

START_TEST(test_frame_on_a_port_that_is_down_is_lost)
{
	struct uvd_port_config *port = &a->side->dev.config.ports[0];

	ck_assert_int_eq(post_recv_at(&more[0], 1, 10000, 100), 0);
	port->down = true;
	ck_assert_int_eq(send_frame(a, 60), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect_nothing(more[0].rcq);
	port->down = false;
	ck_assert_int_eq(send_frame(a, 60), 0);
	expect(more[0].rcq, 1, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_frame_stays_on_its_port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	struct uvd_device_config *config = &a->side->dev.config;

	config->ports[1] = config->ports[0];
	config->num_ports = 2;
	ck_assert_int_eq(to_state(&more[0], IBV_QPS_RESET), 0);
	ck_assert_int_eq(ops->modify_qp(more[0].qp, &attr, IBV_QP_STATE | IBV_QP_PORT, NULL), 0);
	ck_assert_int_eq(to_state(&more[0], IBV_QPS_RTR), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(post_recv_at(&more[i], i, 10000, 100), 0);
	ck_assert_int_eq(send_frame(a, 60), 0);
	expect(more[1].rcq, 1, IBV_WC_SUCCESS);
	expect_nothing(more[0].rcq);
}
END_TEST

START_TEST(test_frame_length)
{
	static const struct {
		uint32_t length;
		int err;
	} rows[] = { { 0, -EINVAL }, { 13, -EINVAL }, { 14, 0 }, { 4118, 0 }, { 4119, -EINVAL } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(post_recv_at(&more[0], i, 20000, 5000), 0);
		ck_assert_int_eq(send_frame(a, rows[i].length), rows[i].err);
		if (rows[i].err)
			continue;
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wait_wc(more[0].rcq).byte_len, rows[i].length);
	}
}
END_TEST

START_TEST(test_frame_is_all_that_such_a_qp_sends)
{
	struct ibv_sge sge = sge_at(a, 0, 60);

	for (int opcode = 0; opcode <= IBV_WR_SEND_WITH_INV; opcode++)
		if (opcode != IBV_WR_SEND)
			ck_assert_int_eq(send_wr(a, .opcode = opcode, .sg_list = &sge, .num_sge = 1), -EINVAL);
}
END_TEST

START_TEST(test_frame_inline_and_from_bad_memory)
{
	uint8_t bytes[60] = { 0x77 };
	struct ibv_sge sge = sge_at(a, 0, 60);

	ck_assert_int_eq(post_recv_at(&more[0], 1, 10000, 100), 0);
	ck_assert_int_eq(send_wr(a, .wr_id = 1, .opcode = IBV_WR_SEND, .inline_data = bytes, .inline_len = 60,
				 .send_flags = IBV_SEND_SIGNALED),
			 0);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(more[0].rcq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(a->buf[10000], 0x77);
	sge.lkey++;
	ck_assert_int_eq(send_wr(a, .wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	expect(a->scq, 2, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_SQE);
}
END_TEST

START_TEST(test_frame_reaches_more_qps_than_are_taken_at_once)
{
	for (int i = 2; i < MANY; i++)
		add(&more[i]);
	/* Destroy one in the middle. */
	drop(&more[7]);
	for (int i = 0; i < MANY; i++)
		if (i != 7)
			ck_assert_int_eq(post_recv_at(&more[i], i, 10000, 100), 0);
	ck_assert_int_eq(send_frame(a, 60), 0);
	for (int i = 0; i < MANY; i++)
		if (i != 7)
			expect(more[i].rcq, i, IBV_WC_SUCCESS);
	for (int i = 2; i < MANY; i++)
		if (i != 7)
			drop(&more[i]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("raw");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_frame_reaches_all_of_the_port_but_its_sender);
	tcase_add_test(t, test_frame_without_a_receive_or_room_is_lost);
	tcase_add_test(t, test_frame_is_received_from_rtr_to_the_error_state);
	tcase_add_test(t, test_frame_on_a_port_that_is_down_is_lost);
	tcase_add_test(t, test_frame_stays_on_its_port);
	tcase_add_test(t, test_frame_length);
	tcase_add_test(t, test_frame_is_all_that_such_a_qp_sends);
	tcase_add_test(t, test_frame_inline_and_from_bad_memory);
	tcase_add_test(t, test_frame_reaches_more_qps_than_are_taken_at_once);
	return run_suite("soft: raw", t);
}
