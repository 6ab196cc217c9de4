/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft backend with many threads: both directions at once, destruction and state changes under load. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/backends/bed.h"
#include "../suite.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

enum { MESSAGES = 3000, SIZE = 512 };

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
}

static void teardown(void)
{
	bed_close(&bed);
}

/* Each message carries its number. Receives are used in order, so wr_id tells the buffer and the expected number. */
static void *pump(void *arg)
{
	struct end *end = arg;
	unsigned int sent = 0, received = 0, posted = 0, outstanding = 0;
	uint64_t deadline = now_us() + 60000000;

	while ((received < MESSAGES || sent < MESSAGES || outstanding) && now_us() < deadline) {
		struct ibv_wc wc;

		for (; posted < MESSAGES && posted - received < 16; posted++)
			ck_assert_int_eq(post_recv_at(end, posted, 65536 + posted % 16 * SIZE, SIZE), 0);
		if (sent < MESSAGES && outstanding < 16) {
			struct ibv_sge sge = sge_at(end, sent % 16 * SIZE, SIZE);

			*(unsigned int *)(end->buf + sent % 16 * SIZE) = sent;
			ck_assert_int_eq(send_wr(end, .wr_id = sent, .opcode = IBV_WR_SEND, .sg_list = &sge,
						 .num_sge = 1, .send_flags = IBV_SEND_SIGNALED),
					 0);
			sent++;
			outstanding++;
		}
		while (poll_cq(end->scq, &wc)) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			outstanding--;
		}
		while (poll_cq(end->rcq, &wc)) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.wr_id, received);
			ck_assert_uint_eq(*(unsigned int *)(end->buf + 65536 + received % 16 * SIZE), received);
			received++;
		}
		uvd_backend_soft.req_notify_cq(end->rcq, false);
	}
	ck_assert_uint_eq(received, MESSAGES);
	ck_assert_uint_eq(sent, MESSAGES);
	return NULL;
}

START_TEST(test_both_directions_at_once_in_order)
{
	pthread_t threads[2];

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, pump, &bed.end[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

static atomic_bool stop;
/* Stands for the exchange of QP numbers outside the device: held while b has no QP, and while a reads b's QP number. */
static pthread_mutex_t exchange = PTHREAD_MUTEX_INITIALIZER;

/* Posts whatever it can, while the peer is repeatedly reset or destroyed. */
static void *hammer(void *arg)
{
	struct end *end = arg;
	struct ibv_wc wc;

	while (!stop) {
		struct ibv_sge sge = sge_at(end, 0, 100000);

		post_recv_at(end, 1, 100000, 100000);
		send_wr(end, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED);
		uvd_backend_soft.req_notify_cq(end->rcq, false);
		while (poll_cq(end->scq, &wc) || poll_cq(end->rcq, &wc))
			;
		if (state_of(end) == IBV_QPS_ERR) {
			/* Connect again, as a restarted program does. */
			to_state(end, IBV_QPS_RESET);
			to_init(end);
			pthread_mutex_lock(&exchange);
			to_rtr(end, &bed.end[1]);
			pthread_mutex_unlock(&exchange);
			to_rts(end);
		}
	}
	return NULL;
}

START_TEST(test_peer_is_destroyed_during_traffic)
{
	struct uvd_qp *old = NULL;
	pthread_t thread;

	a->timeout = 1;
	a->retry_cnt = 1;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(pthread_create(&thread, NULL, hammer, a), 0);
	for (int i = 0; i < 100; i++) {
		struct ibv_sge sge = sge_at(b, 0, 100000);
		struct ibv_wc wc;

		for (int j = 0; j < 8; j++) {
			post_recv_at(b, 1, 100000, 100000);
			send_wr(b, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1);
			while (poll_cq(b->rcq, &wc) || poll_cq(b->scq, &wc))
				;
		}
		switch (i % 3) {
		case 0:
			to_state(b, IBV_QPS_ERR);
			/* fall through */
		case 1:
			to_state(b, IBV_QPS_RESET);
			break;
		default:
			/* The core frees the QP after destroy_qp(), so the backend must not access it any more. */
			pthread_mutex_lock(&exchange);
			old = b->qp;
			ck_assert_int_eq(uvd_backend_soft.destroy_qp(old), 0);
			memset(old, 0, uvd_backend_soft.size_qp);
			old->pd = b->side->pd;
			old->send_cq = b->scq;
			old->recv_cq = b->rcq;
			old->qp_type = IBV_QPT_RC;
			old->owner = b;
			ck_assert_int_eq(
				uvd_backend_soft.create_qp(old, &(struct uvd_qp_init_attr){ .cap = bed.cap }, NULL), 0);
			pthread_mutex_unlock(&exchange);
		}
		to_init(b);
		to_rtr(b, a);
		to_rts(b);
	}
	stop = true;
	pthread_join(thread, NULL);
}
END_TEST

static void *write_for_ever(void *arg)
{
	struct uvd_send_wr wr = *(struct uvd_send_wr *)arg;
	struct ibv_wc wc;

	while (!stop) {
		post_send_wr(a, &wr);
		poll_cq(a->scq, &wc);
		if (state_of(a) == IBV_QPS_ERR)
			break;
	}
	return NULL;
}

START_TEST(test_dereg_waits_for_the_transfer)
{
	size_t size = 8 << 20;

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 10; i++) {
		char *src = calloc(1, size), *dst = calloc(1, size);
		struct uvd_mr *from = make_mr(a, src, size, a->access), *to = make_mr(b, dst, size, b->access);
		struct ibv_sge sge = { (uintptr_t)src, size, from->lkey };
		struct uvd_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.remote_addr = (uintptr_t)dst,
			.rkey = to->rkey,
		};
		pthread_t thread;

		ck_assert_int_eq(pthread_create(&thread, NULL, write_for_ever, &wr), 0);
		usleep(1000 * i);
		free_mr(to);
		free(dst); /* a sanitizer would report a write after this */
		pthread_join(thread, NULL);
		free_mr(from);
		free(src);
		for (int j = 0; j < 2; j++)
			to_state(&bed.end[j], IBV_QPS_RESET);
		bed_connect(&bed, IBV_QPT_RC);
	}
}
END_TEST

/* Several threads of one client post on one QP, and all requests are carried out. */
static void *post_some(void *arg)
{
	for (int i = 0; i < 500;) {
		struct ibv_wc wc;

		i += !send_wr(a, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED);
		while (poll_cq(a->scq, &wc)) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			(*(atomic_int *)arg)++;
		}
	}
	return NULL;
}

START_TEST(test_threads_that_share_a_qp)
{
	pthread_t threads[4];
	atomic_int completed = 0;

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, post_some, &completed), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	while (completed < 2000) {
		ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_SUCCESS);
		completed++;
	}
	ck_assert_int_eq(a->cq_event, 0);
}
END_TEST

static void *add_for_ever(void *arg)
{
	struct end *end = arg;
	struct ibv_sge sge = sge_at(end, 8, 8);

	for (int i = 0; i < 1000; i++) {
		struct uvd_send_wr wr = {
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.remote_addr = (uintptr_t)b->buf,
			.rkey = b->mr->rkey,
			.compare_add = 1,
		};

		ck_assert_int_eq(post_send_wr(end, &wr), 0);
		ck_assert_int_eq(wait_wc(end->scq).status, IBV_WC_SUCCESS);
	}
	return NULL;
}

START_TEST(test_atomics_of_two_qps_lose_nothing)
{
	struct end self = *b;
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	pthread_t threads[2];
	int err;

	bed_connect(&bed, IBV_QPT_RC);
	/* A second path to the same word: a QP of b that is connected to itself. */
	self.scq = self.rcq = make_cq(&self, 64);
	self.qp = make_qp(&self, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(&self) | to_rtr(&self, &self) | to_rts(&self), 0);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, add_for_ever, a), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, add_for_ever, &self), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	ck_assert_uint_eq(*(uint64_t *)b->buf, 2000);
	free_qp(&self);
	ck_assert_int_eq(uvd_backend_soft.destroy_cq(self.scq), 0);
	free(self.scq);
}
END_TEST

/* ---- one target, many senders ------------------------------------------------------------------------------------ */

enum { SENDERS = 16, ENDS = 100 };

static atomic_uint target; /* the QP number of the target: senders have no pointer to a QP that may be freed */
static atomic_ulong num_sent;
static struct uvd_ah *to_target;

static void *send_to_target(void *arg)
{
	struct end *end = arg;
	struct ibv_wc wc;

	while (!stop) {
		struct ibv_sge sge = sge_at(end, 0, 4000);

		if (!send_wr(end, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			     .ah = to_target, .remote_qpn = target, .remote_qkey = 0x1234))
			num_sent++;
		while (poll_cq(end->scq, &wc))
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	return NULL;
}

static void open_target(bool make)
{
	struct ibv_wc wc;
	int err = 0;

	if (make)
		b->qp = make_qp(b, IBV_QPT_UD, &(struct uvd_qp_init_attr){ .cap = bed.cap }, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(b) | to_rtr(b, a) | to_rts(b), 0);
	while (poll_cq(b->rcq, &wc))
		;
	for (int i = 0; i < 16; i++)
		ck_assert_int_eq(post_recv_at(b, i, i * 5000, 5000), 0);
	target = b->qp->qp_num;
}

/* Destroying or resetting the target does not wait for messages that arrive after it began. */
START_TEST(test_target_of_many_threads_ends_soon)
{
	struct end senders[SENDERS];
	pthread_t threads[SENDERS];
	uint64_t longest = 0;
	int err;

	bed_connect(&bed, IBV_QPT_UD);
	to_target = calloc(1, uvd_backend_soft.size_ah);
	to_target->pd = a->side->pd;
	to_target->attr = bed_address_of(b);
	ck_assert_int_eq(uvd_backend_soft.create_ah(to_target, NULL), 0);
	target = b->qp->qp_num;
	stop = false;
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = *a;
		senders[i].scq = senders[i].rcq = make_cq(&senders[i], 64);
		senders[i].qp = make_qp(&senders[i], IBV_QPT_UD, &(struct uvd_qp_init_attr){ .cap = bed.cap }, &err);
		ck_assert_int_eq(err, 0);
		ck_assert_int_eq(to_init(&senders[i]) | to_rtr(&senders[i], b) | to_rts(&senders[i]), 0);
		ck_assert_int_eq(pthread_create(&threads[i], NULL, send_to_target, &senders[i]), 0);
	}
	for (int i = 0; i < ENDS; i++) {
		const unsigned long sent = num_sent;
		uint64_t start;

		while (num_sent < sent + SENDERS)
			usleep(100);
		start = now_us();
		if (i % 2)
			ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
		else
			free_qp(b);
		if (now_us() - start > longest)
			longest = now_us() - start;
		open_target(i % 2 == 0);
	}
	stop = true;
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(threads[i], NULL);
		free_qp(&senders[i]);
		ck_assert_int_eq(uvd_backend_soft.destroy_cq(senders[i].scq), 0);
		free(senders[i].scq);
	}
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(to_target), 0);
	free(to_target);
	/* On a busy machine threads can wait long for a CPU. An older engine once took 25 s. */
	ck_assert_uint_lt(longest, 10000000);
	printf("# the longest end took %lu us\n", longest);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("threads");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 90);
	tcase_add_test(t, test_both_directions_at_once_in_order);
	tcase_add_test(t, test_peer_is_destroyed_during_traffic);
	tcase_add_test(t, test_dereg_waits_for_the_transfer);
	tcase_add_test(t, test_threads_that_share_a_qp);
	tcase_add_test(t, test_atomics_of_two_qps_lose_nothing);
	tcase_add_test(t, test_target_of_many_threads_ends_soon);
	return run_suite("backends: soft, threads", t);
}
