/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs of soft devices. */
#ifndef UVD_SOFT_H
#define UVD_SOFT_H

#include "backends/soft/schedule/schedule.h"

/* ---- qp.c -------------------------------------------------------------------------------------------------------- */

int soft_create_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata);
int soft_modify_qp(struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata);
int soft_query_qp(struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init);
int soft_destroy_qp(struct uvd_qp *qp);
void soft_query_qp_work(struct uvd_qp *qp, struct uvd_qp_work *work);

/* ---- srq.c ------------------------------------------------------------------------------------------------------- */

int soft_alloc_xrcd(struct uvd_xrcd *xrcd, struct uvd_udata *udata);
int soft_dealloc_xrcd(struct uvd_xrcd *xrcd);
int soft_create_srq(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata);
int soft_modify_srq(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata);
int soft_replace_srq_queue(struct uvd_srq *srq, struct uvd_queue **queue);
int soft_query_srq(struct uvd_srq *srq, struct ibv_srq_attr *attr);
int soft_destroy_srq(struct uvd_srq *srq);
int soft_post_srq_recv(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);

/* ---- post.c ------------------------------------------------------------------------------------------------------ */

int soft_post_send(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
		   struct uvd_work *work);
void soft_send_why(struct uvd_qp *qp, const struct uvd_send_wr *wr, struct uvd_why *why);
int soft_post_recv(struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);

#endif
