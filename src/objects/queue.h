/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Mapped queues, if the persona's provider uses them: made before the backend's object, and freed after it. */
#ifndef UVD_OBJECTS_QUEUE_H
#define UVD_OBJECTS_QUEUE_H

#include <uverbsd/queue.h>
#include "objects/internal.h"

/*
 * Make the queues of a new object, and set the sizes that the backend will create it with to the sizes of the queues.
 * They make none on a device without mapped queues, for an XRC initiator, and if a size exceeds the device's limits:
 * the backend then reports the error. Even after an error the caller calls uvd_queue_end() for the queues in the
 * object. Return 0, -EINVAL (no room for the driver's part of the response), -EOPNOTSUPP (the client cannot map the
 * file), -ENOMEM.
 */
int uvd_queues_for_cq(struct uvd_req *req, struct uvd_cq *cq);
int uvd_queues_for_qp(struct uvd_req *req, struct uvd_qp *qp, struct uvd_qp_init_attr *init);
int uvd_queues_for_srq(struct uvd_req *req, struct uvd_srq *srq, struct ibv_srq_attr *attr);
/*
 * Carry out RESIZE_CQ, or a MODIFY_SRQ that changes max_wr (and srq_limit, if mask has it), on an object with a mapped
 * queue, and write the driver's part of the response. Return 0 or a negative errno; -EINVAL: the size exceeds the
 * device's limits, or is too small for the entries in the queue or for srq_limit.
 */
int uvd_queue_resize_cq(struct uvd_req *req, struct uvd_cq *cq, uint32_t cqe);
int uvd_queue_resize_srq(struct uvd_req *req, struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask);
/* The number of entries that the client can use. */
static inline uint32_t uvd_queue_size(const struct uvd_queue *q)
{
	return q->shape.entries - 1;
}

/* Frees a queue that no object of the backend uses, and uncharges it. q may be NULL. */
void uvd_queue_end(struct uvd_queue *q);

/* queue_trace.c: tells the observers of what uvd_queue's tell() was called for. Caller holds the backend's lock of q. */
void uvd_queue_trace(const struct uvd_queue *q, struct uvd_file *file, const struct uvd_uobject *owner,
		     const void *what);

/* Write the driver's part of a create's response. Do nothing on a device without mapped queues. */
int uvd_queues_answer_cq(struct uvd_req *req, const struct uvd_cq *cq);
int uvd_queues_answer_qp(struct uvd_req *req, const struct uvd_qp *qp);
int uvd_queues_answer_srq(struct uvd_req *req, const struct uvd_srq *srq);

#endif
