/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC SRQs by number. A message to an XRC target names an SRQ of the same domain. For this one message the target uses
 * the SRQ's receives, PD and CQ, in place of its own.
 */
#include <errno.h>
#include "backends/soft/endpoint/endpoint.h"

enum { LAST_SRQN = (1 << 24) - 1 }; /* from 1 on: a front without SRQ numbers passes 0 */

void soft_srqn_table_init(struct soft_srqn_table *table)
{
	pthread_mutex_init(&table->lock, NULL);
	table->next = 1;
	table->seed = soft_hash_seed();
}

void soft_srqn_table_destroy(struct soft_srqn_table *table)
{
	pthread_mutex_destroy(&table->lock);
}

/* Caller holds the table's lock. Returns the link that points to the SRQ, or the NULL link at the bucket's end. */
static struct soft_srq **srqn_find(struct soft_srqn_table *table, uint32_t srqn)
{
	struct soft_srq **p = &table->buckets[soft_hash(table->seed, srqn, SOFT_SRQN_HASH)];

	while (*p && (*p)->srq.srq_num != srqn)
		p = &(*p)->next;
	return p;
}

int soft_srqn_add(struct soft_srq *srq)
{
	struct soft_srqn_table *table = &srq->dev->endpoints->srqns;
	struct soft_srq **p = NULL;

	/* Numbers ascend until they wrap, as for QPs: a late message must not reach a new SRQ. */
	pthread_mutex_lock(&table->lock);
	for (uint32_t tries = 0; tries < LAST_SRQN && !srq->srq.srq_num; tries++) {
		p = srqn_find(table, table->next);
		if (!*p)
			srq->srq.srq_num = table->next;
		table->next = table->next == LAST_SRQN ? 1 : table->next + 1;
	}
	if (srq->srq.srq_num)
		*p = srq;
	pthread_mutex_unlock(&table->lock);
	return srq->srq.srq_num ? 0 : -ENOMEM;
}

void soft_srqn_remove(struct soft_srq *srq)
{
	struct soft_srqn_table *table = &srq->dev->endpoints->srqns;
	struct soft_srq **p;

	pthread_mutex_lock(&table->lock);
	p = srqn_find(table, srq->srq.srq_num);
	*p = srq->next;
	pthread_mutex_unlock(&table->lock);
	soft_ref_wait(&srq->ref);
}

struct soft_srq *soft_srqn_get(struct soft_device *dev, const struct uvd_xrcd *xrcd, uint32_t srqn)
{
	struct soft_srq *srq;

	pthread_mutex_lock(&dev->endpoints->srqns.lock);
	srq = *srqn_find(&dev->endpoints->srqns, srqn);
	if (srq && srq->srq.xrcd != xrcd)
		srq = NULL;
	if (srq)
		soft_ref_get(&srq->ref);
	pthread_mutex_unlock(&dev->endpoints->srqns.lock);
	return srq;
}
