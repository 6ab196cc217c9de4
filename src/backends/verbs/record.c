/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of the work requests that the adapter has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/verbs/verbs.h"

enum { CHUNK_BYTES = HCA_CHUNK_RECORDS * sizeof(struct hca_record), TABLE_BYTES = HCA_MAX_CHUNKS * sizeof(void *) };

void hca_queue_init(struct hca_queue *queue, unsigned int max)
{
	INIT_LIST_HEAD(&queue->records);
	queue->num = 0;
	queue->max = max;
	queue->cq = NULL;
}

static int records_make_table(struct hca_context *context)
{
	if (context->chunks)
		return 0;
	if (uvd_charge_bytes(context->context.account, TABLE_BYTES))
		return -ENOMEM;
	context->chunks = uvd_zalloc(TABLE_BYTES);
	if (context->chunks)
		return 0;
	uvd_uncharge_bytes(context->context.account, TABLE_BYTES);
	return -ENOMEM;
}

static int records_grow(struct hca_context *context)
{
	struct hca_record *chunk;

	if (records_make_table(context) || context->num_chunks == HCA_MAX_CHUNKS)
		return -ENOMEM;
	if (uvd_charge_bytes(context->context.account, CHUNK_BYTES))
		return -ENOMEM;
	chunk = uvd_zalloc(CHUNK_BYTES);
	if (!chunk) {
		uvd_uncharge_bytes(context->context.account, CHUNK_BYTES);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < HCA_CHUNK_RECORDS; i++) {
		chunk[i].index = context->num_chunks * HCA_CHUNK_RECORDS + i;
		list_add_tail(&chunk[i].of_queue, &context->free_records);
	}
	context->chunks[context->num_chunks++] = chunk;
	return 0;
}

/* Takes the buffers of a record: one for the data, and one for a long list of entries. */
static int record_take_buffers(struct hca_record *r, const struct ibv_sge *sges)
{
	r->sges = r->few;
	if (r->length && hca_buffer_take(r->pd, r->length, &r->buffer))
		return -ENOMEM;
	if (r->num_sge > HCA_FEW_SGES) {
		if (hca_buffer_take(r->pd, r->num_sge * sizeof(*sges), &r->more))
			return -ENOMEM;
		r->sges = (struct ibv_sge *)r->more.data;
	}
	if (r->num_sge)
		memcpy(r->sges, sges, r->num_sge * sizeof(*sges));
	return 0;
}

struct hca_record *hca_record_new(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sges,
				  uint32_t num_sge, uint32_t length)
{
	struct hca_record *r;

	if (list_empty(&context->free_records) && records_grow(context))
		return NULL;
	r = list_first_entry(&context->free_records, struct hca_record, of_queue);
	list_del_init(&r->of_queue);
	r->queue = NULL;
	r->arrives = false;
	r->receives = false;
	r->refused = false;
	r->num_sge = num_sge;
	r->length = length;
	r->pd = pd;
	r->pool = pd->pool;
	r->pool->refs++;
	if (!record_take_buffers(r, sges))
		return r;
	hca_record_free(context, r);
	return NULL;
}

void hca_record_free(struct hca_context *context, struct hca_record *r)
{
	hca_record_dequeue(r);
	hca_buffer_give(r->pool, &r->buffer);
	hca_buffer_give(r->pool, &r->more);
	hca_pool_put(r->pool);
	r->pool = NULL;
	r->uses++;
	/* The record that was freed first is reused first, so a stale tag stays unknown for long. */
	list_add_tail(&r->of_queue, &context->free_records);
}

uint64_t hca_record_tag(const struct hca_record *r)
{
	return (uint64_t)r->uses << 32 | r->index;
}

void hca_record_enqueue(struct hca_queue *queue, struct hca_record *r)
{
	r->queue = queue;
	queue->num++;
	list_add_tail(&r->of_queue, &queue->records);
}

void hca_record_dequeue(struct hca_record *r)
{
	if (!r->queue)
		return;
	list_del_init(&r->of_queue);
	r->queue->num--;
	r->queue = NULL;
}

struct hca_record *hca_record_find(struct hca_context *context, uint64_t tag)
{
	const uint32_t index = tag, chunk = index / HCA_CHUNK_RECORDS;
	struct hca_record *r;

	if (chunk >= context->num_chunks)
		return NULL;
	r = &context->chunks[chunk][index % HCA_CHUNK_RECORDS];
	return r->queue && hca_record_tag(r) == tag ? r : NULL;
}

void hca_records_free(struct hca_context *context, struct list_head *records)
{
	struct hca_record *r;

	while (!list_empty(records)) {
		r = list_first_entry(records, struct hca_record, of_queue);
		if (!r->queue)
			list_del_init(&r->of_queue);
		hca_record_free(context, r);
	}
}

void hca_queue_drop(struct hca_context *context, struct hca_queue *queue)
{
	hca_records_free(context, &queue->records);
}

void hca_records_end(struct hca_context *context)
{
	if (!context->chunks)
		return;
	while (context->num_chunks) {
		free(context->chunks[--context->num_chunks]);
		uvd_uncharge_bytes(context->context.account, CHUNK_BYTES);
	}
	free(context->chunks);
	uvd_uncharge_bytes(context->context.account, TABLE_BYTES);
}
