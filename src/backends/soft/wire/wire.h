/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire as a carrier: connections of QPs to other engines and adapters, over RoCE v2 packets. docs/wire.md has its rules. A QP whose
 * destination GID is not one of this engine gets a struct soft_wire_qp when it goes to RTR.
 */
#ifndef UVD_SOFT_WIRE_H
#define UVD_SOFT_WIRE_H

#include "backends/soft/transport/transport.h"
#include "wire/wire.h"

struct soft_wire;

enum { SOFT_WIRE_ADDRESSES = 16 };

/* ---- link.c: the sockets of a fabric ------------------------------------------------------------------------------ */

/* Runs a QP for a little while: what exceeds that is left to a thread of its user. Takes over a reference. */
typedef void soft_wire_run_fn(struct soft_qp *qp, struct uvd_worker *worker);
/*
 * Adds a socket, which it takes over if it succeeds; the first one starts the receiver's thread, which calls `run` for QPs with little to do.
 * Returns 0 or a negative errno.
 */
int soft_wire_add(struct uvd_fabric *fabric, int fd, soft_wire_run_fn *run);
/* Why a packet that arrives is dropped, beside the reasons of enum uvd_packet_fault. */
enum wire_drop {
	WIRE_DROP_ICRC = UVD_PACKET_FAULTS, /* damaged */
	WIRE_DROP_NO_QP, /* no QP on the wire has the number, or it does not receive in its state */
	WIRE_DROP_OTHER_TRANSPORT, /* the QP has another type */
	WIRE_DROP_OTHER_ADDRESS, /* not from the QP's peer, or not to the QP's address */
	WIRE_DROP_INBOX_FULL, /* too many wait for the QP's thread */
	WIRE_DROP_NO_MEMORY, /* of the machine, or of the user's share */
	WIRE_DROPS
};
/*
 * Stores how many packets of the i-th socket were dropped for a reason: enum uvd_packet_fault or enum wire_drop. Returns the reason's name, or
 * NULL if there is no such reason, socket or wire.
 */
const char *soft_wire_drops(const struct soft_wire *wire, unsigned int i, unsigned int reason, uint64_t *packets);
/* Ends the receiver's threads, after the last QP. Returns false if one does not come back from a client's memory: then all stays. */
bool soft_wire_destroy(struct soft_wire *wire);

/* ---- carrier.c: a QP on the wire ---------------------------------------------------------------------------------- */

/*
 * The QP goes to RTR: connects it, if its address is beyond this engine. Caller holds qp->lock, and nobody has claimed the QP. Returns 0 or
 * -ENOMEM.
 */
int soft_wire_connect(struct soft_qp *qp);
/* Do the QP's requests go out as packets? Those of UD QPs are looked at one by one: see soft_wire_leads_to(). */
static inline bool soft_wire_is_connected(const struct soft_qp *qp)
{
	return qp->wire && qp->qp.qp_type != IBV_QPT_UD;
}
/* Has something arrived for it? Caller holds qp->lock. */
bool soft_wire_has_work(const struct soft_qp *qp);
/* Does this address lead from the port to beyond this engine? */
bool soft_wire_has_way(struct soft_device *dev, const struct uvd_port_config *port, const struct ibv_ah_attr *ah);
/* Is the destination of the UD message beyond this engine? Caller has s_busy. */
bool soft_wire_leads_to(const struct soft_request *req);
/* Does the network hold back a packet of the QP, until the next one? Caller has s_busy. */
bool soft_wire_holds(const struct soft_qp *qp);
/* Sends it there. As soft_datagram_send(). */
struct soft_outcome soft_wire_send_datagram(struct soft_mover *m, struct soft_request *req);
/* The QP goes to RTS: it begins to send with its PSN. Caller holds qp->lock. */
void soft_wire_start(struct soft_qp *qp);
/* The QP has gone into ERR: what waits for it, and what it has in flight, is no longer charged. Caller holds qp->lock. */
void soft_wire_error(struct soft_qp *qp);
/* Frees qp->wire, if it has one. Caller holds qp->lock; no thread has s_busy or r_busy. */
void soft_wire_disconnect(struct soft_qp *qp);

enum soft_wire_step {
	SOFT_WIRE_MORE, /* there is more to do at once */
	SOFT_WIRE_IDLE,
	SOFT_WIRE_LOST, /* the QP was taken from the mover; qp->lock is not held */
};
/*
 * Takes what has arrived for the QP, and sends what it may send, up to `budget` bytes. Caller holds qp->lock, which is released meanwhile,
 * and has s_busy.
 */
enum soft_wire_step soft_wire_run(struct soft_qp *qp, struct soft_mover *m, uint32_t budget);
/* The QP's port has come up. Returns true if the QP sends packets. Caller holds no lock. */
bool soft_wire_wake(struct soft_qp *qp);
/* The QP's timer has expired. Returns true if that was the wire's concern. Caller holds no lock. */
bool soft_wire_timeout(struct soft_qp *qp);

#endif
