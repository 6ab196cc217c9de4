/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mapped queue of the persona rxe. The first byte chooses a queue; then there are steps: the client writes to the queue's
 * memory, or the engine uses the queue.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/target.h"
#include "persona/persona.h"

enum { QUEUES = 6, MAX_POKE = 64 };

/* Pairs of queues with entries of one size: a resize moves entries between them. */
static struct uvd_queue queues[QUEUES];
static struct uvd_device_config queue_config;
static volatile uint64_t queue_seen; /* the sum of what was decoded, so that it is read */

static void queue_make(struct uvd_queue *q, enum uvd_queue_kind kind, struct uvd_queue_shape shape)
{
	const struct uvd_persona_queues *rxe = uvd_persona_find("rxe")->queues;

	*q = (struct uvd_queue){ .ops = rxe->ops, .kind = kind, .shape = shape, .config = &queue_config };
	q->length = rxe->header + (size_t)shape.entries * shape.entry_size;
	q->memory = malloc(q->length);
	q->entry = malloc(shape.entry_size);
	q->dropped = malloc(uvd_queue_dropped_size(kind, &shape) ?: 1);
	if (!q->memory || !q->entry || !q->dropped)
		abort();
}

static void queue_init(void)
{
	const struct uvd_persona_queues *rxe = uvd_persona_find("rxe")->queues;
	struct ibv_qp_cap few = { .max_send_wr = 3, .max_send_sge = 2, .max_inline_data = 40 };
	struct ibv_qp_cap more = { .max_send_wr = 15, .max_send_sge = 2, .max_inline_data = 40 };

	uvd_config_default(&queue_config, uvd_persona_find("rxe"), 0);
	queue_make(&queues[0], UVD_QUEUE_SEND, rxe->shape_sq(&few));
	queue_make(&queues[1], UVD_QUEUE_SEND, rxe->shape_sq(&more));
	queue_make(&queues[2], UVD_QUEUE_RECV, rxe->shape_rq(3, 2));
	queue_make(&queues[3], UVD_QUEUE_RECV, rxe->shape_rq(15, 2));
	queue_make(&queues[4], UVD_QUEUE_CQ, rxe->shape_cq(3));
	queue_make(&queues[5], UVD_QUEUE_CQ, rxe->shape_cq(15));
	queues[1].is_ud = true;
}

static void queue_reset(struct uvd_queue *q)
{
	memset(q->memory, 0, q->length);
	memset(q->dropped, 0, uvd_queue_dropped_size(q->kind, &q->shape));
	q->index = q->accepted = q->num_dropped = 0;
	q->ops->init(q);
}

static void read_bytes(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		queue_seen += ((const uint8_t *)bytes)[i];
}

static void read_sges(const struct uvd_queue *q, const struct ibv_sge *list, int num)
{
	if (num > (int)q->shape.max_sge)
		abort();
	if (num > 0)
		read_bytes(list, num * sizeof(*list));
}

/* Reads all that a request points to. */
static void queue_peek(struct uvd_queue *q, uint32_t n)
{
	struct uvd_send_wr send = {};
	struct uvd_recv_wr recv = {};

	if (q->kind == UVD_QUEUE_RECV && q->ops->peek_recv(q, n, &recv))
		read_sges(q, recv.sg_list, recv.num_sge);
	if (q->kind != UVD_QUEUE_SEND || !q->ops->peek_send(q, n, &send))
		return;
	if (send.inline_data && send.num_sge == 0)
		read_bytes(send.inline_data, send.inline_len);
	else
		read_sges(q, send.sg_list, send.num_sge);
	if (send.ah)
		read_bytes(&send.ah->attr, sizeof(send.ah->attr));
}

/* Carries out a write of the client: an offset of two bytes, a length, and the bytes. Returns how many were used. */
static size_t queue_poke(struct uvd_queue *q, const uint8_t *data, size_t size)
{
	size_t at, len;

	if (size < 3)
		return size;
	at = (data[0] | data[1] << 8) % q->length;
	len = data[2] % MAX_POKE;
	if (len > size - 3)
		len = size - 3;
	if (len > q->length - at)
		len = q->length - at;
	memcpy(q->memory + at, data + 3, len);
	return 3 + len;
}

static void queue_move(struct uvd_queue *q, struct uvd_queue *twin)
{
	queue_reset(twin);
	if (q->ops->move(q, twin) && twin->ops->count(twin) >= twin->shape.entries)
		abort();
}

/* A doorbell, which is accepted or refused. */
static void queue_ring(struct uvd_queue *q, bool accepted)
{
	if (q->kind != UVD_QUEUE_SEND)
		return;
	if (accepted)
		q->ops->accept(q);
	else
		q->ops->drop(q);
	if (q->accepted >= q->shape.entries || q->num_dropped >= q->shape.entries)
		abort();
}

static void queue_step(struct uvd_queue *q, uint8_t step)
{
	static const struct ibv_wc wc = { .wr_id = 1 };

	if (step < 154)
		queue_ring(q, true);
	if (step < 180)
		queue_peek(q, step % 8);
	else if (step < 210 && q->kind != UVD_QUEUE_CQ && q->ops->count(q))
		q->ops->pop(q);
	else if (step < 240 && q->kind == UVD_QUEUE_CQ)
		q->ops->push_wc(q, &wc);
	else if (step < 240)
		queue_ring(q, step < 225);
}

static void queue_run(const uint8_t *data, size_t size)
{
	const unsigned int which = size ? data[0] % QUEUES : 0;
	struct uvd_queue *q = &queues[which];

	queue_reset(q);
	for (size_t at = 1; at < size;) {
		const uint8_t step = data[at++];

		if (q->ops->count(q) >= q->shape.entries || q->index >= q->shape.entries)
			abort();
		if (step < 128)
			at += queue_poke(q, data + at, size - at);
		else if (step < 240)
			queue_step(q, step);
		else
			queue_move(q, &queues[which ^ 1]);
	}
}

const struct fuzz_target fuzz_target = { .name = "fuzz_queue", .init = queue_init, .run = queue_run };
