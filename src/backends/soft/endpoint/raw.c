/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The list of a device's RAW_PACKET QPs, from which the receivers of a frame are taken. */
#include "backends/soft/endpoint/endpoint.h"

void soft_raw_init(struct soft_raw_list *list)
{
	pthread_mutex_init(&list->lock, NULL);
}

void soft_raw_destroy(struct soft_raw_list *list)
{
	pthread_mutex_destroy(&list->lock);
}

/* The list ascends by raw_nr, so that soft_raw_members() can continue after the number that it returned last. */
void soft_raw_join(struct soft_qp *qp)
{
	struct soft_raw_list *list = &qp->dev->endpoints->raw;

	pthread_mutex_lock(&list->lock);
	qp->raw_nr = ++list->last_nr;
	qp->raw_prev = list->last;
	if (list->last)
		list->last->raw_next = qp;
	else
		list->first = qp;
	list->last = qp;
	pthread_mutex_unlock(&list->lock);
}

void soft_raw_leave(struct soft_qp *qp)
{
	struct soft_raw_list *list = &qp->dev->endpoints->raw;

	if (!qp->raw_nr)
		return;
	pthread_mutex_lock(&list->lock);
	if (qp->raw_prev)
		qp->raw_prev->raw_next = qp->raw_next;
	else
		list->first = qp->raw_next;
	if (qp->raw_next)
		qp->raw_next->raw_prev = qp->raw_prev;
	else
		list->last = qp->raw_prev;
	pthread_mutex_unlock(&list->lock);
}

unsigned int soft_raw_members(struct soft_raw_list *list, uint64_t *last, uint32_t *qpns, unsigned int max)
{
	unsigned int n = 0;

	pthread_mutex_lock(&list->lock);
	for (struct soft_qp *qp = list->first; qp && n < max; qp = qp->raw_next) {
		if (qp->raw_nr <= *last)
			continue;
		qpns[n++] = qp->qp.qp_num;
		*last = qp->raw_nr;
	}
	pthread_mutex_unlock(&list->lock);
	return n;
}
