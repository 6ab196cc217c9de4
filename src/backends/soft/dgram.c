/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The transports that promise nothing: UC, UD and raw frames. A message that the peer cannot take is lost, and its sender
 * never knows.
 */
#include <arpa/inet.h>
#include <string.h>
#include "backends/soft/soft.h"

struct message {
	struct soft_request *req;
	struct soft_send_wqe *wqe;
	struct soft_qp *peer;
	struct soft_due due; /* the peer's */
	struct soft_span src;
	struct soft_seg target; /* of an RDMA write */
	int num_target, num_recv;
};

static const struct soft_outcome sent = { .kind = SOFT_DONE, .status = IBV_WC_SUCCESS };
static const struct soft_outcome bad_memory = { .kind = SOFT_DONE, .status = IBV_WC_LOC_PROT_ERR };

static bool is_write(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The receive for `length` bytes, with its memory if it takes data. */
static bool take_receive(struct message *msg, uint32_t length, bool data)
{
	struct soft_qp *peer = msg->peer;
	struct soft_recv_wqe *recv = peer->r_wqe;

	if (!soft_recv_take(peer, &msg->due))
		return false;
	if (!data)
		return true;
	if (length > soft_sge_length(recv->sge, recv->num_sge))
		return false;
	msg->num_recv =
		soft_segs_get(soft_recv_pd(peer), recv->sge, recv->num_sge, IBV_ACCESS_LOCAL_WRITE, peer->r_segs);
	if (msg->num_recv >= 0)
		return true;

	/* Its owner's mistake, so its owner is told. */
	struct ibv_wc wc = { .status = IBV_WC_LOC_PROT_ERR, .opcode = IBV_WC_RECV };

	msg->num_recv = 0;
	soft_recv_complete(peer, &wc, true, &msg->due);
	soft_qp_error(peer, &msg->due);
	return false;
}

static void end(struct message *msg)
{
	soft_segs_put(msg->peer->r_segs, msg->num_recv);
	soft_segs_put(&msg->target, msg->num_target);
	soft_recv_release(msg->peer, &msg->due);
	pthread_mutex_unlock(&msg->peer->lock);
	soft_due_run(&msg->due);
}

/* ---- UC ---------------------------------------------------------------------------------------------------------- */

static bool uc_prepare(struct message *msg)
{
	struct soft_send_wqe *wqe = msg->wqe;
	struct soft_qp *peer = msg->peer;

	if (is_write(wqe)) {
		if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
			return false;
		if (wqe->length) {
			if (soft_target_get(peer, wqe->rkey, wqe->remote_addr, wqe->length, IBV_ACCESS_REMOTE_WRITE,
					    &msg->target))
				return false;
			msg->num_target = 1;
		}
	}
	if (wqe->opcode == IBV_WR_RDMA_WRITE)
		return true;
	return take_receive(msg, wqe->length, !is_write(wqe));
}

/* With the peer's lock held, and its r_busy. */
static enum soft_copy_error uc_deliver(struct message *msg)
{
	struct soft_send_wqe *wqe = msg->wqe;
	struct soft_qp *peer = msg->peer;
	struct soft_span dst = { .segs = &msg->target, .num_segs = 1 };
	enum soft_copy_error err;

	if (!soft_recv_admits(peer, msg->req))
		return SOFT_COPY_OK;
	soft_recv_established(peer, &msg->due);
	if (!uc_prepare(msg))
		return SOFT_COPY_OK;
	if (!is_write(wqe))
		dst = (struct soft_span){ .segs = peer->r_segs, .num_segs = msg->num_recv };
	pthread_mutex_unlock(&peer->lock);
	err = soft_copy(dst, msg->src, wqe->length, msg->req->qp, peer);
	pthread_mutex_lock(&peer->lock);
	if (err || soft_gone(peer))
		return err;
	/* Not checked: a UC receiver accepts the first packet of any message, and goes on from there. */
	peer->r_psn = (msg->req->psn + msg->req->packets) & 0xffffff;
	if (wqe->opcode != IBV_WR_RDMA_WRITE) {
		struct ibv_wc wc = soft_recv_wc(peer, wqe, wqe->length);

		soft_recv_complete(peer, &wc, wqe->send_flags & IBV_SEND_SOLICITED, &msg->due);
	}
	soft_count_arrival(peer, msg->req);
	return SOFT_COPY_OK;
}

/* ---- UD ---------------------------------------------------------------------------------------------------------- */

enum { GRH_BYTES = 40, UD_MOST = 4096 };

static void make_grh(uint8_t grh[GRH_BYTES], const struct soft_request *req)
{
	const struct ibv_global_route *route = &req->ah.grh;
	uint32_t first = htonl(6u << 28 | (uint32_t)route->traffic_class << 20 | (route->flow_label & 0xfffff));
	const uint32_t imm = req->wqe->opcode == IBV_WR_SEND_WITH_IMM ? 4 : 0;
	/* The payload with its BTH, DETH, ImmDt and ICRC. */
	uint16_t payload = htons(((req->wqe->length + 3) & ~3u) + 12 + 8 + imm + 4);

	memcpy(grh, &first, 4);
	memcpy(grh + 4, &payload, 2);
	grh[6] = 0x1b; /* IBA transport */
	grh[7] = route->hop_limit;
	memcpy(grh + 8, &req->port->gids[route->sgid_index % UVD_MAX_GIDS], 16);
	memcpy(grh + 24, &route->dgid, 16);
}

static struct ibv_wc ud_wc(struct message *msg)
{
	struct soft_request *req = msg->req;
	struct ibv_wc wc = soft_recv_wc(msg->peer, msg->wqe, msg->wqe->length + GRH_BYTES);

	wc.src_qp = req->qp->qp.qp_num;
	wc.slid = req->port->lid | req->ah.src_path_bits;
	wc.sl = req->ah.sl;
	if (!req->is_multicast)
		wc.dlid_path_bits = req->ah.dlid - soft_qp_port(msg->peer)->lid;
	if (req->ah.is_global)
		wc.wc_flags |= IBV_WC_GRH;
	return wc;
}

/* With the peer's lock held, and its r_busy. */
static void ud_deliver(struct message *msg, const uint8_t *bytes)
{
	struct soft_qp *peer = msg->peer;
	struct soft_span dst = { .segs = peer->r_segs };
	enum soft_copy_error err = SOFT_COPY_OK;
	uint8_t grh[GRH_BYTES];
	struct ibv_wc wc;

	if (!soft_recv_admits(peer, msg->req) || !take_receive(msg, msg->wqe->length + GRH_BYTES, true))
		return;
	dst.num_segs = msg->num_recv;
	wc = ud_wc(msg);
	pthread_mutex_unlock(&peer->lock);
	/* Without a GRH the first 40 bytes of the receive stay what they were. */
	if (msg->req->ah.is_global) {
		make_grh(grh, msg->req);
		err = soft_copy(dst, (struct soft_span){ .bytes = grh }, GRH_BYTES, msg->req->qp, peer);
	}
	dst.offset = GRH_BYTES;
	if (!err)
		err = soft_copy(dst, (struct soft_span){ .bytes = bytes }, msg->wqe->length, msg->req->qp, peer);
	pthread_mutex_lock(&peer->lock);
	if (!err && !soft_gone(peer)) {
		soft_recv_complete(peer, &wc, msg->wqe->send_flags & IBV_SEND_SOLICITED, &msg->due);
		soft_count_arrival(peer, msg->req);
	}
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* With the peer's lock held, and its r_busy: a frame reaches every RAW_PACKET QP of its port. */
static void raw_deliver(struct message *msg, const uint8_t *bytes)
{
	struct soft_qp *peer = msg->peer;
	struct soft_span dst = { .segs = peer->r_segs };
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = msg->wqe->length };
	enum soft_copy_error err;

	if (!soft_can_receive(peer->state) || soft_qp_port(peer) != msg->req->port ||
	    uvd_config_port_down(msg->req->port) || !take_receive(msg, msg->wqe->length, true))
		return;
	dst.num_segs = msg->num_recv;
	pthread_mutex_unlock(&peer->lock);
	err = soft_copy(dst, (struct soft_span){ .bytes = bytes }, msg->wqe->length, msg->req->qp, peer);
	pthread_mutex_lock(&peer->lock);
	if (!err && !soft_gone(peer))
		soft_recv_complete(peer, &wc, msg->wqe->send_flags & IBV_SEND_SOLICITED, &msg->due);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void claim(struct message *msg, struct soft_qp *peer)
{
	msg->peer = peer;
	pthread_mutex_lock(&peer->lock);
	soft_recv_claim(peer);
}

struct soft_outcome soft_uc_send(struct soft_request *req)
{
	struct message msg = { .req = req, .wqe = req->wqe };
	enum soft_copy_error err = SOFT_COPY_OK;
	struct soft_qp *peer;
	int n = soft_segs_get(req->qp->qp.pd, req->wqe->sge, req->wqe->num_sge, 0, req->qp->s_segs);

	if (n < 0)
		return bad_memory;
	msg.src.bytes = req->wqe->is_inline ? req->wqe->data : NULL;
	msg.src.segs = req->qp->s_segs;
	msg.src.num_segs = n;
	peer = soft_fabric_get_qp(req->qp->dev->ibdev->fabric, req->dest_qpn);
	if (peer) {
		claim(&msg, peer);
		err = uc_deliver(&msg);
		end(&msg);
		soft_ref_put(&peer->ref);
	}
	soft_segs_put(req->qp->s_segs, n);
	return err == SOFT_COPY_SRC ? bad_memory : sent;
}

static void ud_send_to(struct soft_request *req, struct soft_qp *peer, const uint8_t *bytes)
{
	struct message msg = { .req = req, .wqe = req->wqe };

	claim(&msg, peer);
	ud_deliver(&msg, bytes);
	end(&msg);
}

/* To all of the group but the sender. */
static void ud_multicast(struct soft_request *req, const uint8_t *bytes)
{
	struct uvd_fabric *fabric = req->qp->dev->ibdev->fabric;
	struct soft_qp *peers[16];
	unsigned int max = sizeof(peers) / sizeof(peers[0]), n;
	uint64_t last = 0;

	do {
		n = soft_mcast_members(fabric, &req->ah, &last, peers, max);
		for (unsigned int i = 0; i < n; i++) {
			if (peers[i] != req->qp)
				ud_send_to(req, peers[i], bytes);
			soft_ref_put(&peers[i]->ref);
		}
	} while (n == max);
}

static void ud_unicast(struct soft_request *req, const uint8_t *bytes)
{
	struct soft_qp *peer = soft_fabric_get_qp(req->qp->dev->ibdev->fabric, req->dest_qpn);

	if (!peer)
		return;
	ud_send_to(req, peer, bytes);
	soft_ref_put(&peer->ref);
}

/* To all of the port but the sender. */
static void raw_send_to_all(struct soft_request *req, const uint8_t *bytes)
{
	struct soft_qp *peers[16];
	unsigned int max = sizeof(peers) / sizeof(peers[0]), n;
	uint64_t last = 0;

	do {
		n = soft_raw_members(&req->qp->dev->raw, &last, peers, max);
		for (unsigned int i = 0; i < n; i++) {
			struct message msg = { .req = req, .wqe = req->wqe };

			if (peers[i] != req->qp) {
				claim(&msg, peers[i]);
				raw_deliver(&msg, bytes);
				end(&msg);
			}
			soft_ref_put(&peers[i]->ref);
		}
	} while (n == max);
}

/*
 * The bytes of a request, inline or copied, or NULL: the client has no such memory. A receiver of datagrams has many
 * senders: none of them may hold it up with memory that is slow to read.
 */
static const uint8_t *gather(struct soft_request *req, uint8_t *copy)
{
	int n, err;

	if (req->wqe->is_inline)
		return req->wqe->data;
	n = soft_segs_get(req->qp->qp.pd, req->wqe->sge, req->wqe->num_sge, 0, req->qp->s_segs);
	if (n < 0)
		return NULL;
	err = soft_gather(copy, req->qp->s_segs, n);
	soft_segs_put(req->qp->s_segs, n);
	return err ? NULL : copy;
}

struct soft_outcome soft_raw_send(struct soft_request *req)
{
	uint8_t copy[UD_MOST + SOFT_RAW_MORE];
	const uint8_t *bytes = gather(req, copy);

	if (!bytes)
		return bad_memory;
	raw_send_to_all(req, bytes);
	return sent;
}

struct soft_outcome soft_ud_send(struct soft_request *req)
{
	uint8_t copy[UD_MOST];
	const uint8_t *bytes = gather(req, copy);

	if (!bytes)
		return bad_memory;
	if (req->is_multicast)
		ud_multicast(req, bytes);
	else
		ud_unicast(req, bytes);
	return sent;
}
