/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Mapped queues of a persona whose provider has them: made before the backend's object, and ended after it. */
#ifndef UVD_OBJECTS_QUEUE_H
#define UVD_OBJECTS_QUEUE_H

#include <uverbsd/queue.h>
#include "objects/internal.h"

/*
 * Each sets the object's queues, and what the object is to be created with to what there will be. On a device without
 * mapped queues, and where the sizes are beyond the device's limits, they do nothing: the backend says what is wrong. Whether or
 * not they succeed, the caller ends the queues that it finds in the object.
 * 0, -EINVAL (no room for the driver's part of the response), -EOPNOTSUPP (the client cannot map the file), -ENOMEM.
 */
int uvd_queues_for_cq(struct uvd_req *req, struct uvd_cq *cq);
int uvd_queues_for_qp(struct uvd_req *req, struct uvd_qp *qp, struct uvd_qp_init_attr *init);
int uvd_queues_for_srq(struct uvd_req *req, struct uvd_srq *srq, struct ibv_srq_attr *attr);
/*
 * RESIZE_CQ and MODIFY_SRQ (its length, and what else attr and mask say) of an object with a mapped queue, with the driver's
 * part of their responses. -EINVAL: beyond the device's limits, or less than what waits there.
 */
int uvd_queue_resize_cq(struct uvd_req *req, struct uvd_cq *cq, uint32_t cqe);
int uvd_queue_resize_srq(struct uvd_req *req, struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask);
/* How many entries the client may use. */
static inline uint32_t uvd_queue_size(const struct uvd_queue *q)
{
	return q->shape.entries - 1;
}

/* The backend's object is gone, or was not made. q may be NULL. */
void uvd_queue_end(struct uvd_queue *q);

/* The driver's part of the responses. Nothing on a device without mapped queues. */
int uvd_queues_answer_cq(struct uvd_req *req, const struct uvd_cq *cq);
int uvd_queues_answer_qp(struct uvd_req *req, const struct uvd_qp *qp);
int uvd_queues_answer_srq(struct uvd_req *req, const struct uvd_srq *srq);

#endif
