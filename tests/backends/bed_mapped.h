/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For bed.c: the same objects with mapped queues (bed_is_mapped()). */
#ifndef TESTS_BACKENDS_BED_MAPPED_H
#define TESTS_BACKENDS_BED_MAPPED_H

#include <uverbsd/queue.h>
#include "tests/backends/bed.h"

/* Create the queues of an object that is about to be created. They live until bed_queues_free(). */
void bed_queue_for_cq(struct end *end, struct uvd_cq *cq);
void bed_queues_for_qp(struct end *end, struct uvd_qp *qp, struct uvd_qp_init_attr *init);
void bed_queue_for_srq(struct end *end, struct uvd_srq *srq, struct ibv_srq_attr *attr);
void bed_queues_free(void);

/* Stand for the backend's operations post_send, post_recv and poll_cq (of one completion). */
int bed_mapped_post_send(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
			 struct uvd_work *work);
int bed_mapped_post_recv(struct uvd_queue *rq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
int bed_mapped_poll(struct uvd_queue *q, struct ibv_wc *wc);

#endif
