/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One request carried out, or refused as its peer would refuse it. The caller has claimed the requester's send queue for the mover,
 * and holds no lock. SOFT_LOST: the requester was taken away, and nothing of it, nor of the request, is to be touched.
 */
#ifndef UVD_SOFT_TRANSPORT_H
#define UVD_SOFT_TRANSPORT_H

#include "backends/soft/endpoint/endpoint.h"

/* RC, and XRC. */
struct soft_outcome soft_rc_send(struct soft_mover *m, struct soft_request *req);
/* Would the peer take the request now? Looks, and moves nothing. */
struct soft_outcome soft_rc_probe(struct soft_request *req);
/* With the responder's lock held: is this the request that it expects? */
bool soft_rc_admits(struct soft_qp *peer, const struct soft_request *req);

/* Requests at the head of a queue, to be carried out together. */
struct soft_burst {
	struct soft_request req; /* the first */
	enum ibv_mtu mtu;
	unsigned int num;
	struct soft_send_wqe *wqes[SOFT_BURST];
};

/* With the lock held: the requests that a burst could have. */
void soft_burst_collect(struct soft_qp *qp, struct soft_burst *burst);
/* The first burst->num were carried out; 0: none was, and each is to be tried by itself. False: as SOFT_LOST. */
bool soft_rc_burst(struct soft_mover *m, struct soft_burst *burst);

struct soft_outcome soft_uc_send(struct soft_mover *m, struct soft_request *req);
/* UD and raw frames. */
struct soft_outcome soft_datagram_send(struct soft_mover *m, struct soft_request *req);
/* Binds and local invalidations: requests that stay at home. */
struct soft_outcome soft_local_send(struct soft_request *req);

#endif
