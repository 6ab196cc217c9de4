/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doorbells of mapped send queues. A doorbell that is accepted hands over what the client has put into the queue by then; no thread
 * carries out what lies behind it. The exception is a look-ahead, where no doorbell can be refused.
 */
#include <errno.h>
#include "backends/soft/schedule/schedule.h"

static void doorbell_run(void *arg, struct uvd_worker *worker)
{
	soft_send_run(arg, worker);
}

struct uvd_work soft_send_work(struct soft_qp *qp)
{
	soft_ref_get(&qp->ref);
	return (struct uvd_work){ doorbell_run, qp };
}

int soft_ring_doorbell(struct uvd_qp *base, struct uvd_work *work)
{
	struct soft_qp *qp = soft_qp(base);
	struct soft_due due = { 0 };
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (soft_takes_requests(qp)) {
		base->sq->ops->accept(base->sq);
		*work = soft_send_work(qp);
	} else {
		err = -EINVAL;
	}
	/* A client that drains the QP may have posted a receive first, and wait for both. */
	if (qp->state == IBV_QPS_ERR && !qp->r_busy)
		soft_recv_flush(qp, &due);
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	return err;
}

void soft_drop_posts(struct uvd_qp *base)
{
	struct soft_qp *qp = soft_qp(base);

	pthread_mutex_lock(&qp->lock);
	base->sq->ops->drop(base->sq);
	pthread_mutex_unlock(&qp->lock);
}

bool soft_look_ahead(struct soft_qp *qp)
{
	const struct uvd_backend *ops = atomic_load_explicit(&qp->dev->ibdev->ops, memory_order_acquire);

	/* A filter may refuse the doorbell, or delay it: then its requests must not be carried out before. */
	if (qp->qp.sq && ops->ring_doorbell == soft_ring_doorbell && soft_takes_requests(qp))
		qp->qp.sq->ops->accept(qp->qp.sq);
	return soft_sq_count(qp);
}
