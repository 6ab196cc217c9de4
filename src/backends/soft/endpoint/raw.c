/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The list of a device's RAW_PACKET QPs, from which the receivers of a frame are taken. */
#include "backends/soft/endpoint/endpoint.h"

void soft_raw_init(struct soft_raw_list *list)
{
	pthread_mutex_init(&list->lock, NULL);
	INIT_LIST_HEAD(&list->qps);
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
	list_add_tail(&qp->of_raw, &list->qps);
	pthread_mutex_unlock(&list->lock);
}

void soft_raw_leave(struct soft_qp *qp)
{
	struct soft_raw_list *list = &qp->dev->endpoints->raw;

	if (!qp->raw_nr)
		return;
	pthread_mutex_lock(&list->lock);
	list_del_init(&qp->of_raw);
	pthread_mutex_unlock(&list->lock);
}

unsigned int soft_raw_members(struct soft_raw_list *list, uint64_t *last, uint32_t *qpns, unsigned int max)
{
	unsigned int n = 0;
	struct soft_qp *qp;

	pthread_mutex_lock(&list->lock);
	list_for_each_entry(qp, &list->qps, of_raw) {
		if (n == max)
			break;
		if (qp->raw_nr <= *last)
			continue;
		qpns[n++] = qp->qp.qp_num;
		*last = qp->raw_nr;
	}
	pthread_mutex_unlock(&list->lock);
	return n;
}
