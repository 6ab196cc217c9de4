/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's work queues, indirection tables, and the use that QPs make of them. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "fake_internal.h"

enum { FAKE_TABLE_MOST = 1 << 13 };

struct fake_table {
	struct ibv_rwq_ind_table table;
	unsigned int users; /* QPs */
	size_t num;
	struct fake_wq *wqs[];
};

static struct list_head fake_wqs;

void fake_wq_begin(void)
{
	INIT_LIST_HEAD(&fake_wqs);
}

/* ---- work queues ------------------------------------------------------------------------------------------------- */

static struct ibv_wq *fake_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct fake_wq *wq = fake_new(FAKE_CREATE_WQ, sizeof(*wq));

	if (!wq)
		return NULL;
	fake.wq_request = *attr;
	attr->max_wr = 64; /* it rounds up */
	attr->max_sge = 4;
	wq->wq = (struct ibv_wq){ .context = context, .pd = attr->pd, .cq = attr->cq, .wq_type = attr->wq_type };
	pthread_mutex_lock(&fake_lock);
	wq->wq.wq_num = ++fake_numbers;
	list_add_tail(&wq->link, &fake_wqs);
	pthread_mutex_unlock(&fake_lock);
	return &wq->wq;
}

static int fake_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	const int ret = fake_result(FAKE_MODIFY_WQ);

	fake.wq_change = *attr;
	if (!ret && attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return ret;
}

static int fake_destroy_wq(struct ibv_wq *wq)
{
	struct fake_wq *w = (struct fake_wq *)wq;
	const int ret = fake_result(FAKE_DESTROY_WQ);

	if (ret)
		return ret;
	if (w->users)
		return EBUSY;
	pthread_mutex_lock(&fake_lock);
	fake_async_end(wq->context, wq, &w->unacked);
	list_del_init(&w->link);
	pthread_mutex_unlock(&fake_lock);
	fake_free(wq);
	return 0;
}

/* Caller holds fake_lock. */
struct fake_wq *fake_wq_find(uint32_t wq_num)
{
	struct fake_wq *wq;

	list_for_each_entry(wq, &fake_wqs, link)
		if (wq->wq.wq_num == wq_num)
			return wq;
	return NULL;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static struct ibv_rwq_ind_table *fake_create_table(struct ibv_context *context,
						   struct ibv_rwq_ind_table_init_attr *attr)
{
	const size_t num = (size_t)1 << attr->log_ind_tbl_size;
	struct fake_table *t = fake_new(FAKE_CREATE_TABLE, sizeof(*t) + num * sizeof(*t->wqs));

	if (!t)
		return NULL;
	if (attr->comp_mask || num > FAKE_TABLE_MOST)
		abort();
	t->table.context = context;
	t->num = num;
	pthread_mutex_lock(&fake_lock);
	t->table.ind_tbl_num = ++fake_numbers;
	for (size_t i = 0; i < num; i++) {
		t->wqs[i] = (struct fake_wq *)attr->ind_tbl[i];
		t->wqs[i]->users++;
	}
	pthread_mutex_unlock(&fake_lock);
	return &t->table;
}

static int fake_destroy_table(struct ibv_rwq_ind_table *table)
{
	struct fake_table *t = (struct fake_table *)table;
	const int ret = fake_result(FAKE_DESTROY_TABLE);

	if (ret)
		return ret;
	if (t->users)
		return EBUSY;
	for (size_t i = 0; i < t->num; i++)
		t->wqs[i]->users--;
	fake_free(table);
	return 0;
}

uint32_t fake_table_entry(const struct ibv_rwq_ind_table *table, size_t i)
{
	const struct fake_table *t = (const struct fake_table *)table;

	return i < t->num ? t->wqs[i]->wq.wq_num : 0;
}

void fake_table_use(struct ibv_rwq_ind_table *table, int n)
{
	if (table)
		((struct fake_table *)table)->users += n;
}

void fake_wq_ops(struct verbs_context *verbs)
{
	verbs->create_wq = fake_create_wq;
	verbs->modify_wq = fake_modify_wq;
	verbs->destroy_wq = fake_destroy_wq;
	verbs->create_rwq_ind_table = fake_create_table;
	verbs->destroy_rwq_ind_table = fake_destroy_table;
}
