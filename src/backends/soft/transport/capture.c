/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tells a capture of requests and answers, in the words of capture/capture.h. */
#include <endian.h>
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "capture/capture.h"

enum { LOCAL_HOPS = 64 }; /* of an address without a route */

/* The address of a port that is known by its LID: fe80::LID. */
static union ibv_gid gid_of_lid(uint16_t lid)
{
	union ibv_gid gid = { .global = { htobe64(UINT64_C(0xfe80) << 48), htobe64(lid) } };

	return gid;
}

static void capture_route(struct uvd_capture_message *m, const struct soft_request *req)
{
	const struct ibv_global_route *route = &req->arrival.ah.grh;

	if (!req->arrival.ah.is_global) {
		m->from = gid_of_lid(req->arrival.port->lid | req->arrival.ah.src_path_bits);
		m->to = gid_of_lid(req->arrival.ah.dlid);
		m->hop_limit = LOCAL_HOPS;
		return;
	}
	m->from = req->arrival.port->gids[route->sgid_index % UVD_MAX_GIDS];
	m->to = route->dgid;
	m->flow_label = route->flow_label;
	m->traffic_class = route->traffic_class;
	m->hop_limit = route->hop_limit;
}

static struct uvd_capture_message capture_request_of(const struct soft_request *req)
{
	const struct soft_arrival *a = &req->arrival;
	struct uvd_capture_message m = {
		.kind = a->qp_type == IBV_QPT_RAW_PACKET ? UVD_CAPTURE_FRAME : UVD_CAPTURE_REQUEST,
		.type = a->qp_type,
		.opcode = a->opcode,
		.pkey = a->pkey,
		.from_qpn = req->qp->qp.qp_num,
		.to_qpn = a->is_multicast ? 0xffffff : req->dest_qpn,
		.psn = a->psn,
		.mtu = 128u << a->mtu,
		.length = a->length,
		.qkey = a->qkey,
		.srqn = a->remote_srqn,
		.remote_addr = a->remote_addr,
		.rkey = a->rkey,
		.compare_add = a->compare_add,
		.swap = a->swap,
		.solicited = a->is_solicited,
	};

	if (a->opcode == IBV_WR_SEND_WITH_INV)
		m.invalidate_rkey = a->invalidate_rkey;
	else
		m.imm_data = a->imm_data;
	capture_route(&m, req);
	return m;
}

/* Returns what goes from the responder to the requester, by the same way. */
static struct uvd_capture_message capture_response_of(const struct soft_request *req, enum uvd_capture_kind kind,
						      uint32_t msn)
{
	struct uvd_capture_message m = capture_request_of(req);
	const union ibv_gid requester = m.from;

	m.kind = kind;
	m.from = m.to;
	m.to = requester;
	m.from_qpn = req->dest_qpn;
	m.to_qpn = req->qp->qp.qp_num;
	m.syndrome = UVD_AETH_ACK;
	m.msn = msn;
	return m;
}

static void capture_tell(const struct soft_request *req, const struct uvd_capture_message *m, const void *bytes,
			 uint32_t len)
{
	uvd_capture_add(req->qp->dev->fabric->capture, m, bytes, len);
}

void soft_capture_request(const struct soft_request *req, uint32_t offset, const void *bytes, uint32_t len)
{
	struct uvd_capture_message m = capture_request_of(req);

	m.offset = offset;
	capture_tell(req, &m, bytes, len);
}

/* ---- RC ---------------------------------------------------------------------------------------------------------- */

static bool capture_is_atomic(const struct soft_request *req)
{
	return req->arrival.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || req->arrival.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool capture_is_read(const struct soft_request *req)
{
	return req->arrival.opcode == IBV_WR_RDMA_READ;
}

static void capture_read(const struct soft_request *req, uint32_t msn, uint32_t offset, const void *bytes, uint32_t len)
{
	struct uvd_capture_message m = capture_response_of(req, UVD_CAPTURE_READ_RESPONSE, msn);

	/* An atomic write is answered as a READ of no bytes would be. */
	if (!capture_is_read(req))
		m.length = 0;
	m.offset = offset;
	capture_tell(req, &m, bytes, len);
}

static void capture_atomic(const struct soft_request *req, uint32_t msn, const void *value)
{
	struct uvd_capture_message m = capture_response_of(req, UVD_CAPTURE_ATOMIC_RESPONSE, msn);

	memcpy(&m.value, value, sizeof(m.value));
	capture_tell(req, &m, NULL, 0);
}

static void capture_ack(const struct soft_request *req, uint32_t msn, uint32_t psn, uint8_t syndrome)
{
	struct uvd_capture_message m = capture_response_of(req, UVD_CAPTURE_ACK, msn);

	m.psn = psn;
	m.syndrome = syndrome;
	capture_tell(req, &m, NULL, 0);
}

void soft_capture_chunk(const struct soft_request *req, struct soft_qp *peer, uint32_t offset, const void *bytes,
			uint32_t len)
{
	/* An answer has the number of its own request, which is not counted yet. */
	const uint32_t msn = peer->r_msn + 1;

	if (capture_is_atomic(req)) {
		soft_capture_request(req, 0, NULL, 0);
		capture_atomic(req, msn, bytes);
	} else if (capture_is_read(req)) {
		if (!offset)
			soft_capture_request(req, 0, NULL, 0);
		capture_read(req, msn, offset, bytes, len);
	} else {
		soft_capture_request(req, offset, bytes, len);
	}
}

void soft_capture_end(const struct soft_request *req, struct soft_qp *peer)
{
	peer->r_msn++;
	if (req->arrival.opcode == IBV_WR_ATOMIC_WRITE)
		capture_read(req, peer->r_msn, 0, NULL, 0);
	else if (!capture_is_read(req) && !capture_is_atomic(req))
		capture_ack(req, peer->r_msn, req->arrival.psn + req->arrival.packets - 1, UVD_AETH_ACK);
}

/* Returns the syndrome of the NAK with this outcome, or 0. */
static uint8_t capture_syndrome_of(struct soft_outcome outcome)
{
	if (outcome.kind == SOFT_RNR)
		return UVD_AETH_RNR | (outcome.rnr_timer & 0x1f);
	if (outcome.kind != SOFT_DONE)
		return 0;
	switch (outcome.status) {
	case IBV_WC_REM_INV_REQ_ERR:
		return UVD_AETH_INVALID_REQUEST;
	case IBV_WC_REM_ACCESS_ERR:
		return UVD_AETH_ACCESS_ERROR;
	case IBV_WC_REM_OP_ERR:
		return UVD_AETH_OPERATION_ERROR;
	default:
		return 0;
	}
}

void soft_capture_dropped(const struct soft_request *req, uint32_t offset, const void *bytes, uint32_t len)
{
	const bool has_payload = !capture_is_read(req) && !capture_is_atomic(req);

	if (!uvd_config_port_down(req->arrival.port) && (has_payload || !offset))
		soft_capture_request(req, offset, bytes, has_payload ? len : 0);
}

void soft_capture_refusal(const struct soft_request *req, struct soft_qp *peer, uint32_t offset, const void *bytes,
			  uint32_t len, struct soft_outcome outcome)
{
	const uint8_t syndrome = capture_syndrome_of(outcome);

	if (!syndrome)
		return;
	/* The request of a READ is one packet, which is in the file if a part of the answer is. */
	soft_capture_dropped(req, offset, bytes, len);
	capture_ack(req, peer->r_msn, req->arrival.psn + offset / (128u << req->arrival.mtu), syndrome);
}
