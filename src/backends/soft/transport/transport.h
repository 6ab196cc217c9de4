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
struct soft_outcome soft_uc_send(struct soft_mover *m, struct soft_request *req);
/* UD and raw frames. */
struct soft_outcome soft_datagram_send(struct soft_mover *m, struct soft_request *req);
/* Binds and local invalidations: requests that stay at home. */
struct soft_outcome soft_local_send(struct soft_request *req);

#endif
