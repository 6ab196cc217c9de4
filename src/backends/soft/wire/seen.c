/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shows the traffic on the wire: packets for a capture, counts of dropped packets, and one line of the log for each destination that the
 * network cannot reach. Nothing here changes what a QP does.
 */
#include <errno.h>
#include <string.h>
#include "backends/soft/wire/internal.h"
#include "capture/capture.h"

/* ---- the capture ------------------------------------------------------------------------------------------------- */

static void seen_capture(void *user, const struct uvd_udp_flow *flow, const struct iovec *iov, unsigned int num)
{
	uvd_capture_add_datagram(user, flow, iov, num);
}

void wire_capture(struct uvd_socket *socket, struct uvd_capture *capture)
{
	if (capture)
		uvd_socket_set_tap(socket, seen_capture, capture);
}

/* ---- packets that are dropped ------------------------------------------------------------------------------------ */

static unsigned int seen_index(const struct soft_wire *wire, const struct uvd_socket *socket)
{
	unsigned int i = 0;

	while (i < SOFT_WIRE_ADDRESSES - 1 && wire->sockets[i] != socket)
		i++;
	return i;
}

void wire_count_drop(struct soft_wire *wire, const struct uvd_socket *socket, unsigned int reason)
{
	atomic_fetch_add_explicit(&wire->drops[seen_index(wire, socket)][reason], 1, memory_order_relaxed);
}

static const char *seen_drop_name(unsigned int reason)
{
	switch (reason) {
	case WIRE_DROP_ICRC:
		return "wrong ICRC";
	case WIRE_DROP_NO_QP:
		return "no such QP";
	case WIRE_DROP_OTHER_TRANSPORT:
		return "other transport";
	case WIRE_DROP_OTHER_ADDRESS:
		return "other address";
	case WIRE_DROP_INBOX_FULL:
		return "inbox full";
	case WIRE_DROP_NO_MEMORY:
		return "no memory";
	default:
		return uvd_packet_fault_name(reason);
	}
}

const char *soft_wire_drops(const struct soft_wire *wire, unsigned int i, unsigned int reason, uint64_t *packets)
{
	if (!wire || i >= SOFT_WIRE_ADDRESSES || reason >= WIRE_DROPS)
		return NULL;
	*packets = atomic_load_explicit(&wire->drops[i][reason], memory_order_relaxed);
	return seen_drop_name(reason);
}

/* ---- what the log says of a destination -------------------------------------------------------------------------- */

/* Has the log a line of this destination and reason that is younger than a minute? is_told: it has one from now on. */
static bool seen_was_told(struct soft_wire *wire, const union ibv_gid *to, int err, bool is_told)
{
	const uint64_t now = uvd_now_ns();
	struct wire_told *oldest = wire->told;
	bool was_told = false;

	pthread_mutex_lock(&wire->told_lock);
	for (struct wire_told *t = wire->told; t < wire->told + WIRE_TOLD; t++) {
		was_told |= t->until > now && t->err == err && !memcmp(&t->to, to, sizeof(*to));
		if (t->until < oldest->until)
			oldest = t;
	}
	if (is_told && !was_told)
		*oldest = (struct wire_told){ *to, err, now + WIRE_TOLD_NS };
	pthread_mutex_unlock(&wire->told_lock);
	return was_told;
}

static void seen_log_size(struct uvd_log *log, const char *to, uint32_t bytes, uint32_t mtu)
{
	if (mtu)
		uvd_log_limited(
			log, UVD_WARN,
			"wire: %s: EMSGSIZE: the path carries IP packets of %u bytes: use a path MTU of %u, or a "
			"larger MTU of the interfaces",
			to, bytes, mtu);
	else
		uvd_log_limited(
			log, UVD_WARN,
			"wire: %s: EMSGSIZE: the path carries IP packets of %u bytes, less than RoCE needs: use a "
			"larger MTU of the interfaces",
			to, bytes);
}

static const char *seen_remedy(int err)
{
	switch (err) {
	case -ECONNREFUSED:
		return "no program receives on UDP port 4791 there: is its engine running?";
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		return "no packets reach it: `ip route get` shows the route";
	case -EPERM:
	case -EACCES:
		return "this machine forbids the packets: a firewall must let UDP port 4791 pass";
	default:
		return "packets to it are lost";
	}
}

/* Caller holds no lock, or those under which a log may be written. mtu: of IP packets, with -EMSGSIZE. */
static void seen_tell(struct soft_wire *wire, const struct uvd_socket *socket, const union ibv_gid *to, int err,
		      uint32_t mtu)
{
	const struct uvd_socket_address a = { .gid = *to, .scope = uvd_socket_address(socket)->scope };
	struct uvd_log *log = wire->fabric->log;
	char text[UVD_SOCKET_ADDRESS_TEXT];

	if (seen_was_told(wire, to, err, true))
		return;
	uvd_socket_address_text(&a, text);
	if (err == -EMSGSIZE)
		seen_log_size(log, text, mtu, uvd_wire_mtu(mtu, uvd_gid_is_ipv4(to)));
	else
		uvd_log_limited(log, UVD_WARN, "wire: %s: %s: %s", text, uvd_errno_name(err), seen_remedy(err));
}

/* ---- errors that the network tells ------------------------------------------------------------------------------- */

/* A search for the QP whose packet an ICMP message quotes. */
struct seen_quote {
	const struct uvd_socket *socket;
	const union ibv_gid *to;
	uint32_t dest_qpn, psn, src_qpn; /* src_qpn: UD */
	uint8_t transport;
	bool is_sent;
};

static uint32_t seen_be24(const uint8_t *bytes)
{
	return bytes[0] << 16 | bytes[1] << 8 | bytes[2];
}

/* Has the QP sent a packet of about this PSN lately? */
static bool seen_is_near(const struct soft_wire_qp *w, uint32_t psn)
{
	enum { NEAR = 256 };

	for (unsigned int i = 0; i < WIRE_SENT_PSNS; i++) {
		const uint32_t sent = atomic_load_explicit(&w->sent_psn[i], memory_order_relaxed);
		const int32_t diff = uvd_psn_diff(psn, sent);

		if (sent != WIRE_NO_PSN && diff > -NEAR && diff < NEAR)
			return true;
	}
	return false;
}

static void seen_compare(struct soft_qp *qp, void *user)
{
	struct seen_quote *q = user;
	const struct soft_wire_qp *w;

	pthread_mutex_lock(&qp->lock);
	w = qp->wire;
	if (w && w->connection.transport == q->transport && seen_is_near(w, q->psn))
		q->is_sent |= q->transport == UVD_TRANSPORT_UD
				      ? qp->qp.qp_num == q->src_qpn
				      : w->socket == q->socket && w->connection.dest_qpn == q->dest_qpn &&
						!memcmp(&w->peer, q->to, sizeof(w->peer));
	pthread_mutex_unlock(&qp->lock);
}

/* Does the error quote a packet that a QP has sent? Anybody can send ICMP messages, so this looks only a few times a second. */
static bool seen_is_ours(struct soft_wire *wire, const struct uvd_socket *socket, const struct uvd_socket_error *e)
{
	struct seen_quote q = { .socket = socket, .to = &e->to };
	const uint64_t now = uvd_now_ns();

	if (e->quote_len < UVD_BTH_BYTES + UVD_DETH_BYTES || e->to_port != uvd_socket_address(socket)->port)
		return false;
	/* Only the receiver's thread reads errors. */
	if (now >= wire->looks_until) {
		wire->looks_until = now + UINT64_C(1000000000);
		wire->looks = 0;
	}
	if (wire->looks++ >= WIRE_LOOKS)
		return false;
	q.transport = e->quote[0] & UVD_TRANSPORT_MASK;
	q.dest_qpn = seen_be24(e->quote + 5);
	q.psn = seen_be24(e->quote + 9);
	q.src_qpn = seen_be24(e->quote + UVD_BTH_BYTES + 5);
	soft_fabric_each_qp(wire->fabric, seen_compare, &q);
	return q.is_sent;
}

void wire_take_errors(struct soft_wire *wire, struct uvd_socket *socket)
{
	struct uvd_socket_error e;

	while (uvd_socket_error(socket, &e) > 0)
		if (!seen_was_told(wire, &e.to, e.err, false) && (e.is_local || seen_is_ours(wire, socket, &e)))
			seen_tell(wire, socket, &e.to, e.err, e.mtu);
}

/* ---- packets that were sent -------------------------------------------------------------------------------------- */

/* The kernel has refused a packet. Of -EMSGSIZE the socket's error queue tells the size, too. */
static void seen_refused(struct soft_wire *wire, const struct uvd_socket *socket, const struct uvd_socket_out *out)
{
	switch (out->err) {
	case -EPERM:
	case -EACCES:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		seen_tell(wire, socket, &out->to, out->err, 0);
		break;
	default:
		break;
	}
}

void wire_count_sent(struct soft_qp *qp, const struct uvd_socket *socket, const struct wire_sender *sender,
		     unsigned int handled)
{
	struct soft_traffic t = { 0 };

	for (const struct uvd_socket_out *out = sender->out; out < sender->out + handled; out++) {
		if (out->err)
			seen_refused(qp->dev->fabric->wire, socket, out);
		else
			soft_traffic_add(&t, out->num_iov ? out->iov[0].iov_len : 0, 1);
	}
	if (t.packets)
		soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_UNICAST_XMIT, t.packets);
	if (t.words)
		soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_XMIT_WORDS, t.words);
	if (t.packets < sender->num)
		soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_XMIT_DISCARDS, sender->num - t.packets);
}

void wire_count_kept(struct soft_qp *qp, const struct uvd_socket_out *out)
{
	const uint32_t bytes = out->num_iov ? out->iov[0].iov_len : 0;

	soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_UNICAST_XMIT, 1);
	if (bytes)
		soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_XMIT_WORDS, (bytes + 3) / 4);
}

void wire_count_received(struct soft_qp *qp, const struct uvd_packet *packet, unsigned int waiting)
{
	const struct uvd_port_config *port = soft_qp_port(qp);

	soft_count_at_port(qp->dev, port, UVD_PORT_UNICAST_RCV, 1);
	if (packet->payload_len)
		soft_count_at_port(qp->dev, port, UVD_PORT_RCV_WORDS, (packet->payload_len + 3) / 4);
	if (waiting && uvd_opcode_info(packet->opcode)->is & UVD_IS_RESPONSE)
		soft_count_at_port(qp->dev, port, UVD_PORT_ANSWERS_DEFERRED, 1);
}

void wire_complete(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_due *due)
{
	if (soft_op_is_send(wqe->opcode))
		soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_SENDS, 1);
	soft_send_complete(qp, wqe, IBV_WC_SUCCESS, due);
}
