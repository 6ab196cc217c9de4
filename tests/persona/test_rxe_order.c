/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who may read which entry of rxe's mapped queues when: a provider posts or polls on one thread, as the stock one does,
 * and the engine works on another. Nothing but the queue's two indexes orders their accesses, neither a doorbell nor
 * another queue. So ThreadSanitizer finds an index that is loaded without acquire or stored without release. Without it
 * the tests check the values, which x86-64 keeps in order anyway.
 *
 * The provider is written for struct rxe_queue_buf of the kernel's header: producer and consumer each write one index, in
 * cache lines of their own. One entry of a queue stays unused, so that the indexes are equal only if it is empty.
 */
#include <check.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "persona/persona.h"
#include "../suite.h"

enum { REQUESTS = 20000, MAX_WR = 6, BYTES = 32 };

static struct uvd_device_config config;
static struct uvd_queue queue;
static pthread_t provider;

static const struct uvd_persona_queues *rxe(void)
{
	return uvd_persona_find("rxe")->queues;
}

static void queue_init(struct uvd_queue *q, enum uvd_queue_kind kind, struct uvd_queue_shape shape)
{
	*q = (struct uvd_queue){ .ops = rxe()->ops, .kind = kind, .shape = shape, .config = &config };
	q->memory = calloc(1, rxe()->header + (size_t)shape.entries * shape.entry_size);
	q->entry = calloc(1, shape.entry_size);
	q->dropped = calloc(1, uvd_queue_dropped_size(kind, &shape) ?: 1);
	ck_assert(q->memory && q->entry && q->dropped);
	q->ops->init(q);
}

static void queue_fini(struct uvd_queue *q)
{
	free(q->memory);
	free(q->entry);
	free(q->dropped);
}

/* ---- the provider, which knows the shared memory alone ----------------------------------------------------------- */

static void *provider_entry(struct rxe_queue_buf *b, uint32_t index)
{
	return b->data + ((size_t)index << b->log2_elem_size);
}

/* Returns the entry for the next request, once the engine has given it back. */
static void *provider_slot(struct rxe_queue_buf *b)
{
	while (((__atomic_load_n(&b->consumer_index, __ATOMIC_ACQUIRE) - b->producer_index - 1) & b->index_mask) == 0)
		sched_yield();
	return provider_entry(b, b->producer_index);
}

static void provider_post(struct rxe_queue_buf *b)
{
	__atomic_store_n(&b->producer_index, (b->producer_index + 1) & b->index_mask, __ATOMIC_RELEASE);
}

static void provider_post_send(struct rxe_queue_buf *b, uint64_t id)
{
	struct rxe_send_wqe *wqe = provider_slot(b);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = id;
	wqe->wr.opcode = IBV_WR_SEND;
	wqe->wr.send_flags = IBV_SEND_INLINE;
	wqe->dma.length = BYTES;
	memset(wqe->dma.inline_data, (uint8_t)id, BYTES);
	provider_post(b);
}

static void provider_post_recv(struct rxe_queue_buf *b, uint64_t id)
{
	struct rxe_recv_wqe *wqe = provider_slot(b);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = id;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ .addr = id, .length = BYTES };
	provider_post(b);
}

static uint64_t provider_poll(struct rxe_queue_buf *b)
{
	const struct ib_uverbs_wc *wc;
	uint64_t id;

	while (__atomic_load_n(&b->producer_index, __ATOMIC_ACQUIRE) == b->consumer_index)
		sched_yield();
	wc = provider_entry(b, b->consumer_index);
	id = wc->wr_id;
	__atomic_store_n(&b->consumer_index, (b->consumer_index + 1) & b->index_mask, __ATOMIC_RELEASE);
	return id;
}

static void *provider_sends(void *arg)
{
	for (uint64_t id = 0; id < REQUESTS; id++)
		provider_post_send((struct rxe_queue_buf *)queue.memory, id);
	return NULL;
}

static void *provider_receives(void *arg)
{
	for (uint64_t id = 0; id < REQUESTS; id++)
		provider_post_recv((struct rxe_queue_buf *)queue.memory, id);
	return NULL;
}

/* Returns what is wrong, or NULL: libcheck's assertions are for the main thread. */
static void *provider_polls(void *arg)
{
	void *wrong = NULL;

	for (uint64_t id = 0; id < REQUESTS; id++)
		if (provider_poll((struct rxe_queue_buf *)queue.memory) != id)
			wrong = "a completion has another number";
	return wrong;
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

static void provider_start(enum uvd_queue_kind kind, struct uvd_queue_shape shape, void *(*run)(void *arg))
{
	queue_init(&queue, kind, shape);
	ck_assert_int_eq(pthread_create(&provider, NULL, run, NULL), 0);
}

static void provider_end(void)
{
	void *wrong;

	ck_assert_int_eq(pthread_join(provider, &wrong), 0);
	ck_assert_msg(!wrong, "%s", (const char *)wrong);
	queue_fini(&queue);
}

START_TEST(test_indexes_of_a_send_queue_order_all_accesses)
{
	struct ibv_qp_cap cap = { .max_send_wr = MAX_WR, .max_send_sge = 1, .max_inline_data = BYTES };
	uint8_t expected[BYTES];
	struct uvd_send_wr wr;

	provider_start(UVD_QUEUE_SEND, rxe()->shape_sq(&cap), provider_sends);
	for (uint64_t id = 0; id < REQUESTS; id++) {
		for (queue.ops->accept(&queue); !queue.ops->peek_send(&queue, 0, &wr); queue.ops->accept(&queue))
			sched_yield();
		memset(expected, (uint8_t)id, BYTES);
		ck_assert(wr.wr_id == id && wr.inline_len == BYTES && !memcmp(wr.inline_data, expected, BYTES));
		queue.ops->pop(&queue);
	}
	provider_end();
}
END_TEST

START_TEST(test_indexes_of_a_receive_queue_order_all_accesses)
{
	struct uvd_recv_wr wr;

	provider_start(UVD_QUEUE_RECV, rxe()->shape_rq(MAX_WR, 1), provider_receives);
	for (uint64_t id = 0; id < REQUESTS; id++) {
		while (!queue.ops->peek_recv(&queue, 0, &wr))
			sched_yield();
		ck_assert(wr.wr_id == id && wr.num_sge == 1 && wr.sg_list[0].addr == id);
		queue.ops->pop(&queue);
	}
	provider_end();
}
END_TEST

START_TEST(test_indexes_of_a_completion_queue_order_all_accesses)
{
	provider_start(UVD_QUEUE_CQ, rxe()->shape_cq(MAX_WR), provider_polls);
	for (uint64_t id = 0; id < REQUESTS; id++)
		while (!queue.ops->push_wc(&queue, &(struct ibv_wc){ .wr_id = id }))
			sched_yield();
	provider_end();
}
END_TEST

static void set_up(void)
{
	uvd_config_default(&config, uvd_persona_find("rxe"), 0);
}

int main(void)
{
	TCase *t = tcase_create("rxe_order");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, test_indexes_of_a_send_queue_order_all_accesses);
	tcase_add_test(t, test_indexes_of_a_receive_queue_order_all_accesses);
	tcase_add_test(t, test_indexes_of_a_completion_queue_order_all_accesses);
	return run_suite("rxe_order", t);
}
