/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order of completions at the sender, which an adapter's programs rely on: the completion of a send comes before
 * what its receiver answers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_ah *to[2]; /* to the port of each end */
static pthread_t answering;
static atomic_bool answers, answered;

static struct uvd_ah *ah_to(struct end *from, struct end *end)
{
	struct uvd_ah *ah = calloc(1, uvd_backend_soft.size_ah);

	ah->pd = from->side->pd;
	ah->attr = bed_address_of(end);
	ck_assert_int_eq(uvd_backend_soft.create_ah(ah, NULL), 0);
	return ah;
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	bed.one_cq = true;
	to[0] = ah_to(b, a);
	to[1] = ah_to(a, b);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(uvd_backend_soft.destroy_ah(to[i]), 0);
		free(to[i]);
	}
	bed_close(&bed);
}

static struct uvd_send_wr send_to(struct end *end, struct ibv_sge *sge)
{
	return (struct uvd_send_wr){ .opcode = IBV_WR_SEND,
				     .send_flags = IBV_SEND_SIGNALED,
				     .sg_list = sge,
				     .num_sge = 1,
				     .ah = to[end == b],
				     .remote_qpn = end->qp->qp_num,
				     .remote_qkey = 0x1234 };
}

static void *answer(void *arg)
{
	struct ibv_sge sge = sge_at(b, 0, 4);
	struct uvd_send_wr wr = send_to(a, &sge);

	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	answered = true;
	return NULL;
}

/* b's receive has completed, and a's thread is still in this handler: b answers now. */
static void answer_at_once(struct uvd_cq *cq)
{
	const uint64_t end = now_us() + 200000;

	if (atomic_exchange(&answers, true))
		return;
	ck_assert_int_eq(pthread_create(&answering, NULL, answer, NULL), 0);
	while (!answered && now_us() < end)
		usleep(1000);
}

/* num 2: sent in a burst. */
static void check_order(enum ibv_qp_type type, unsigned int num)
{
	struct uvd_send_wr wrs[2];
	struct ibv_sge sge;
	struct ibv_wc wc;

	bed_connect(&bed, type);
	sge = sge_at(a, 0, 64);
	for (unsigned int i = 0; i < num; i++) {
		ck_assert_int_eq(post_recv_at(b, i, 65536 + i * 4096, 4096), 0);
		wrs[i] = send_to(b, &sge);
		wrs[i].next = i + 1 < num ? &wrs[i + 1] : NULL;
	}
	ck_assert_int_eq(post_recv_at(a, 9, 65536, 4096), 0);
	b->rcq->comp_handler = answer_at_once;
	uvd_backend_soft.req_notify_cq(b->rcq, false);
	ck_assert_int_eq(post_send_wr(a, &wrs[0]), 0);
	pthread_join(answering, NULL);
	for (unsigned int i = 0; i < num; i++)
		ck_assert_int_eq(wait_wc(a->rcq).opcode, IBV_WC_SEND);
	wc = wait_wc(a->rcq);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wr_id, 9);
}

START_TEST(test_rc_send_completes_before_the_answer_arrives)
{
	check_order(IBV_QPT_RC, 1);
}
END_TEST

START_TEST(test_burst_of_sends_completes_before_the_answer_arrives)
{
	check_order(IBV_QPT_RC, 2);
}
END_TEST

START_TEST(test_uc_send_completes_before_the_answer_arrives)
{
	check_order(IBV_QPT_UC, 1);
}
END_TEST

START_TEST(test_ud_send_completes_before_the_answer_arrives)
{
	check_order(IBV_QPT_UD, 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("order");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_rc_send_completes_before_the_answer_arrives);
	add_local_test(t, test_burst_of_sends_completes_before_the_answer_arrives,
		       "one acknowledgement serves several messages, and comes after the first of them");
	tcase_add_test(t, test_uc_send_completes_before_the_answer_arrives);
	tcase_add_test(t, test_ud_send_completes_before_the_answer_arrives);
	return run_suite("backends: soft, order of completions", t);
}
