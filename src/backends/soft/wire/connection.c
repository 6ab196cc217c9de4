/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A QP's end on the wire: how it begins and ends, and the packets that wait for its thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "backends/soft/wire/internal.h"

bool wire_has_way(const struct soft_wire_qp *w)
{
	const struct uvd_port_config *port = soft_qp_port(w->qp);

	return !uvd_config_port_down(port) && uvd_config_has_gid(port, w->qp->attr.ah_attr.grh.sgid_index);
}

/* ---- packets that wait ------------------------------------------------------------------------------------------- */

void wire_letters_free(struct soft_qp *qp, struct wire_letters *letters)
{
	uint64_t num = 0;

	for (const struct wire_letter *letter = letters->first; letter; letter = letter->next)
		num++;
	if (!num)
		return;
	uvd_uncharge_bytes(qp->qp.account, num * WIRE_LETTER_BYTES);
	uvd_account_uncharge(qp->qp.account, UVD_RES_INBOX, num);
	wire_letters_put(qp->dev->fabric->wire, letters->first);
	letters->first = NULL;
	letters->last = &letters->first;
	letters->num = letters->bytes = 0;
}

static struct wire_letter *letter_new(struct soft_qp *qp, const struct uvd_socket *socket,
				      const struct uvd_socket_in *in, const struct uvd_packet *packet)
{
	struct wire_letter *letter;

	if (uvd_account_charge(qp->qp.account, UVD_RES_INBOX, 1))
		return NULL;
	if (uvd_charge_bytes(qp->qp.account, WIRE_LETTER_BYTES)) {
		uvd_account_uncharge(qp->qp.account, UVD_RES_INBOX, 1);
		return NULL;
	}
	letter = wire_letter_get(qp->dev->fabric->wire);
	if (!letter) {
		uvd_uncharge_bytes(qp->qp.account, WIRE_LETTER_BYTES);
		uvd_account_uncharge(qp->qp.account, UVD_RES_INBOX, 1);
		return NULL;
	}
	letter->next = NULL;
	letter->from = in->from;
	letter->to = uvd_socket_address(socket)->gid;
	letter->packet = *packet;
	letter->packet.payload = letter->payload;
	memcpy(letter->payload, packet->payload, packet->payload_len);
	return letter;
}

/*
 * Is the packet one of the QP's connection? Its source port means nothing: rxe changes it. Returns 0, or a reason of enum wire_drop.
 * Caller holds qp->lock.
 */
static unsigned int check_connection(const struct soft_wire_qp *w, const struct uvd_socket *socket,
				     const struct uvd_socket_in *in, const struct uvd_packet *packet)
{
	if (!w || !soft_can_receive(w->qp->state))
		return WIRE_DROP_NO_QP;
	if ((packet->opcode & UVD_TRANSPORT_MASK) != w->connection.transport)
		return WIRE_DROP_OTHER_TRANSPORT;
	if (w->qp->qp.qp_type == IBV_QPT_UD ||
	    (w->socket == socket && wire_has_way(w) && !memcmp(&in->from, &w->peer, sizeof(w->peer))))
		return 0;
	return WIRE_DROP_OTHER_ADDRESS;
}

/* Bytes that the letters and this packet make us move. */
static uint32_t letters_bytes_plus(const struct wire_letters *letters, const struct uvd_packet *packet)
{
	const uint32_t is = uvd_opcode_info(packet->opcode)->is;
	const uint64_t bytes = is & UVD_IS_READ && is & UVD_IS_REQUEST ? packet->length : packet->payload_len;

	return letters->bytes + bytes < UINT32_MAX ? letters->bytes + bytes : UINT32_MAX;
}

bool wire_deliver(struct soft_qp *qp, const struct uvd_socket *socket, const struct uvd_socket_in *in,
		  const struct uvd_packet *packet)
{
	struct wire_letter *letter = NULL;
	bool needs_thread = false;
	struct soft_wire_qp *w;
	unsigned int drop;

	pthread_mutex_lock(&qp->lock);
	w = qp->wire;
	drop = check_connection(w, socket, in, packet);
	if (!drop) {
		wire_count_received(qp, packet, w->inbox.num);
		letter = w->inbox.num < WIRE_INBOX ? letter_new(qp, socket, in, packet) : NULL;
		/* A packet beyond what may wait is lost, as one that the socket has no room for is. */
		if (!letter)
			drop = w->inbox.num < WIRE_INBOX ? WIRE_DROP_NO_MEMORY : WIRE_DROP_INBOX_FULL;
		needs_thread = !qp->s_busy && !qp->s_deferred;
	}
	if (letter) {
		*w->inbox.last = letter;
		w->inbox.last = &letter->next;
		w->inbox.num++;
		w->inbox.bytes = letters_bytes_plus(&w->inbox, packet);
	}
	pthread_mutex_unlock(&qp->lock);
	if (drop)
		wire_count_drop(qp->dev->fabric->wire, socket, drop);
	return needs_thread;
}

void wire_defer(struct soft_qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	/* While a thread has s_busy, the work is that thread's. */
	if (!qp->s_busy && !qp->s_deferred && soft_wire_has_work(qp))
		soft_defer(qp, false);
	pthread_mutex_unlock(&qp->lock);
}

bool wire_is_short(struct soft_qp *qp)
{
	bool is_short;

	pthread_mutex_lock(&qp->lock);
	is_short = qp->wire && !qp->wire->is_long && qp->wire->inbox.bytes <= WIRE_SHORT_BYTES;
	pthread_mutex_unlock(&qp->lock);
	return is_short;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

struct uvd_socket *wire_way_out(struct soft_device *dev, const struct uvd_port_config *port,
				const struct ibv_ah_attr *ah)
{
	if (!dev->fabric->wire || port->link_layer != IBV_LINK_LAYER_ETHERNET || !ah->is_global ||
	    !uvd_config_has_gid(port, ah->grh.sgid_index) || soft_port_has_gid(port, &ah->grh.dgid))
		return NULL;
	return wire_socket_of(dev->fabric->wire, &port->gids[ah->grh.sgid_index]);
}

bool soft_wire_has_way(struct soft_device *dev, const struct uvd_port_config *port, const struct ibv_ah_attr *ah)
{
	return wire_way_out(dev, port, ah);
}

static void wire_set_connection(struct soft_wire_qp *w)
{
	struct soft_qp *qp = w->qp;

	w->connection = (struct wire_connection){
		.transport = uvd_transport_of(qp->qp.qp_type),
		.pkey = soft_port_pkey(soft_qp_port(qp), qp->attr.pkey_index),
		.dest_qpn = qp->attr.dest_qp_num,
		.mtu = 128u << qp->attr.path_mtu,
		.mtu_code = qp->attr.path_mtu,
	};
}

int soft_wire_connect(struct soft_qp *qp)
{
	const unsigned int most =
		qp->attr.max_dest_rd_atomic < WIRE_RECORDS ? qp->attr.max_dest_rd_atomic : WIRE_RECORDS;
	struct uvd_socket *socket = NULL;
	struct soft_wire_qp *w;

	if (!qp->dev->fabric->wire || qp->qp.qp_type == IBV_QPT_RAW_PACKET)
		return 0;
	if (qp->qp.qp_type != IBV_QPT_UD) {
		socket = wire_way_out(qp->dev, soft_qp_port(qp), &qp->attr.ah_attr);
		if (!socket)
			return 0;
	}
	if (uvd_charge_bytes(qp->qp.account, sizeof(*w)))
		return -ENOMEM;
	w = calloc(1, sizeof(*w));
	if (!w) {
		uvd_uncharge_bytes(qp->qp.account, sizeof(*w));
		return -ENOMEM;
	}
	w->qp = qp;
	w->wire = qp->dev->fabric->wire;
	w->socket = socket;
	w->peer = qp->attr.ah_attr.grh.dgid;
	w->inbox.last = &w->inbox.first;
	w->work.last = &w->work.first;
	atomic_init(&w->sent_psn[0], WIRE_NO_PSN);
	atomic_init(&w->sent_psn[1], WIRE_NO_PSN);
	wire_set_connection(w);
	wire_responder_init(&w->responder, &wire_responder_ops, w, &w->connection, qp->r_psn, w->records, most ?: 1);
	qp->wire = w;
	return 0;
}

void soft_wire_start(struct soft_qp *qp)
{
	struct soft_wire_qp *w = qp->wire;
	struct wire_requester *r = w ? &w->requester : NULL;

	if (!w || qp->qp.qp_type == IBV_QPT_UD)
		return;
	if (!w->sends)
		wire_requester_init(r, &wire_requester_ops, w, &w->connection, qp->s_psn, WIRE_WINDOW_MOST);
	r->timeout_ns = qp->attr.timeout ? UINT64_C(4096) << qp->attr.timeout : 0;
	r->retry_cnt = qp->attr.retry_cnt;
	r->rnr_retry = qp->attr.rnr_retry;
	r->max_rd_atomic = qp->attr.max_rd_atomic;
	/* The last: a thread that takes what arrives looks at it without the lock. */
	w->sends = true;
}

void wire_give_back(struct soft_wire_qp *w)
{
	wire_letters_free(w->qp, &w->work);
	wire_letters_free(w->qp, &w->inbox);
	wire_share_settle(w, 0, false);
}

void soft_wire_error(struct soft_qp *qp)
{
	if (qp->wire && !qp->s_busy)
		wire_give_back(qp->wire);
}

void soft_wire_disconnect(struct soft_qp *qp)
{
	struct soft_wire_qp *w = qp->wire;

	if (!w)
		return;
	qp->wire = NULL;
	wire_give_back(w);
	soft_timer_disarm(&qp->dev->fabric->timers, qp);
	uvd_uncharge_bytes(qp->qp.account, sizeof(*w));
	free(w);
}
