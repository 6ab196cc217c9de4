/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks send work requests and copies them. The errors are those of the kernel's rdmavt. */
#include <errno.h>
#include <string.h>
#include "backends/soft/endpoint/endpoint.h"
#include "explain/explain.h"
#include "util/util.h"

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)
#define RAW (1u << IBV_QPT_RAW_PACKET)
#define XRC (1u << IBV_QPT_XRC_SEND)

static const struct {
	unsigned int types; /* of QPs that have this operation */
	bool reads; /* returns data: refused if max_rd_atomic is 0 */
	bool atomic;
} operations[] = {
	[IBV_WR_RDMA_WRITE] = { RC | UC | XRC },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { RC | UC | XRC },
	[IBV_WR_SEND] = { RC | UC | UD | XRC | RAW },
	[IBV_WR_SEND_WITH_IMM] = { RC | UC | UD | XRC },
	[IBV_WR_RDMA_READ] = { RC | XRC, .reads = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RC | XRC, .reads = true, .atomic = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RC | XRC, .reads = true, .atomic = true },
	[IBV_WR_LOCAL_INV] = { RC | UC | XRC },
	[IBV_WR_BIND_MW] = { RC | UC | XRC },
	[IBV_WR_SEND_WITH_INV] = { RC | XRC }, /* UC has no packet for it */
	[IBV_WR_ATOMIC_WRITE] = { RC | XRC },
};

void soft_carry_message(struct uvd_message *message)
{
}

uint32_t soft_packets(enum ibv_mtu mtu, uint32_t length)
{
	/* An MTU is 128 << mtu bytes. */
	return length ? ((length - 1) >> (7 + mtu)) + 1 : 1;
}

/* By the timer code of an RNR NAK: how long the receiver asks the sender to wait, in units of 10 us (IBTA table 45). */
static const uint32_t rnr_timer[32] = {
	65536, 1,   2,	 3,   4,    6,	  8,	12,   16,   24,	  32,	48,    64,    96,    128,   192,
	256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t soft_rnr_ns(unsigned int code)
{
	return rnr_timer[code % 32] * UINT64_C(10000);
}

static uint32_t packets_of(enum ibv_qp_type qp_type, enum ibv_mtu mtu, const struct soft_send_wqe *wqe)
{
	if (qp_type == IBV_QPT_RAW_PACKET || soft_is_local(wqe->opcode))
		return 0;
	return qp_type == IBV_QPT_UD ? 1 : soft_packets(mtu, wqe->length);
}

void soft_arrival_set(struct soft_arrival *arrival, const struct soft_send_wqe *wqe)
{
	arrival->packets = packets_of(arrival->qp_type, arrival->mtu, wqe);
	arrival->is_solicited = wqe->send_flags & IBV_SEND_SOLICITED;
	arrival->opcode = wqe->opcode;
	arrival->length = wqe->length;
	arrival->rkey = wqe->rkey;
	arrival->remote_srqn = wqe->remote_srqn;
	if (wqe->opcode == IBV_WR_SEND_WITH_INV)
		arrival->invalidate_rkey = wqe->invalidate_rkey;
	else
		arrival->imm_data = wqe->imm_data;
	arrival->remote_addr = wqe->remote_addr;
	arrival->compare_add = wqe->compare_add;
	arrival->swap = wqe->swap;
}

/* As rdmavt. The provider of a mapped queue posts such an SGE, and the kernel's rxe stores the answer there. */
static bool atomic_sge_is_ok(const struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	return qp->qp.sq ||
	       (wr->num_sge && wr->sg_list[0].length >= sizeof(uint64_t) && !(wr->sg_list[0].addr % sizeof(uint64_t)));
}

enum send_fault {
	SEND_OK,
	SEND_SGES,
	SEND_OPCODE,
	SEND_RD_ATOMIC,
	SEND_INLINE,
	SEND_ENTRY,
	SEND_MAPPED, /* of an operation that only mapped queues have */
	SEND_AH,
	SEND_INLINE_LENGTH,
	SEND_LENGTH,
};

static enum send_fault check_operation(struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= sizeof(operations) / sizeof(operations[0]) ||
	    !(operations[wr->opcode].types & (1u << qp->qp.qp_type)))
		return SEND_OPCODE;
	if (operations[wr->opcode].reads && !qp->attr.max_rd_atomic)
		return SEND_RD_ATOMIC;
	if (operations[wr->opcode].reads && wr->inline_data)
		return SEND_INLINE;
	if (operations[wr->opcode].atomic && !atomic_sge_is_ok(qp, wr))
		return SEND_ENTRY;
	/* The eight bytes of an atomic write are always inline, also if the QP allows no inline data. */
	if (wr->opcode == IBV_WR_ATOMIC_WRITE && (!wr->inline_data || wr->inline_len != sizeof(uint64_t)))
		return SEND_MAPPED;
	if (soft_is_local(wr->opcode) && (wr->num_sge || wr->inline_data))
		return SEND_MAPPED;
	if (wr->opcode == IBV_WR_BIND_MW && !wr->bind.mw && !wr->bind.mw_rkey)
		return SEND_MAPPED;
	if (qp->qp.qp_type == IBV_QPT_UD && (!wr->ah || wr->ah->pd != qp->qp.pd))
		return SEND_AH;
	return SEND_OK;
}

static uint64_t send_length(const struct uvd_send_wr *wr)
{
	return wr->inline_data ? wr->inline_len : soft_sge_length(wr->sg_list, wr->num_sge);
}

static uint64_t least_length(const struct soft_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_RAW_PACKET ? SOFT_RAW_LEAST : 0;
}

static uint64_t most_length(struct soft_qp *qp)
{
	if (qp->qp.qp_type == IBV_QPT_RAW_PACKET)
		return (UINT64_C(128) << soft_qp_port(qp)->active_mtu) + SOFT_RAW_MORE;
	return UINT64_C(1) << 31;
}

static enum send_fault check_length(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length)
{
	const uint64_t sum = send_length(wr);

	if (wr->inline_data && wr->inline_len > qp->cap.max_inline_data && wr->opcode != IBV_WR_ATOMIC_WRITE)
		return SEND_INLINE_LENGTH;
	if (sum < least_length(qp) || sum > most_length(qp))
		return SEND_LENGTH;
	*length = sum;
	return SEND_OK;
}

static enum send_fault send_check(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length)
{
	enum send_fault fault;

	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > qp->cap.max_send_sge)
		return SEND_SGES;
	fault = check_operation(qp, wr);
	return fault ? fault : check_length(qp, wr, length);
}

int soft_check_send(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length)
{
	return send_check(qp, wr, length) ? -EINVAL : 0;
}

struct uvd_why soft_check_why(struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	const char *opcode = uvd_name_of(uvd_wr_opcode_names, wr->opcode);
	const struct ibv_sge *first = wr->num_sge > 0 ? wr->sg_list : &(struct ibv_sge){ 0 };
	uint32_t length;

	switch (send_check(qp, wr, &length)) {
	case SEND_SGES:
		return uvd_why(RANGE, { .word = "num_sge" }, { wr->num_sge }, { 0 }, { qp->cap.max_send_sge });
	case SEND_OPCODE:
		return uvd_why(SEND_OPCODE, { .word = uvd_name_of(uvd_qp_type_names, qp->qp.qp_type) },
			       { .word = opcode });
	case SEND_RD_ATOMIC:
		return uvd_why(SEND_NO_RD_ATOMIC, { .word = opcode });
	case SEND_INLINE:
		return uvd_why(SEND_NOT_INLINE, { .word = opcode });
	case SEND_ENTRY:
		return uvd_why(SEND_ATOMIC_ENTRY, { .word = opcode }, { first->length }, { first->addr });
	case SEND_MAPPED:
		return uvd_why(SEND_REFUSED);
	case SEND_AH:
		return uvd_why(SEND_AH);
	case SEND_INLINE_LENGTH:
		return uvd_why(RANGE, { .word = "inline data" }, { wr->inline_len }, { 0 },
			       { qp->cap.max_inline_data });
	case SEND_LENGTH:
		return uvd_why(RANGE, { .word = "the length" }, { send_length(wr) }, { least_length(qp) },
			       { most_length(qp) });
	default:
		return (struct uvd_why){ NULL };
	}
}

/* A UD message has one packet. */
static bool exceeds_mtu(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t length)
{
	return qp->qp.qp_type == IBV_QPT_UD &&
	       length > 128u << qp->dev->ibdev->config.ports[wr->ah->attr.port_num - 1].active_mtu;
}

static bool has_wrong_length(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t length)
{
	return exceeds_mtu(qp, wr, length) || (operations[wr->opcode].atomic && length < sizeof(uint64_t));
}

static struct soft_bind bind_of(const struct uvd_send_wr *wr)
{
	const struct soft_mw *mw = (const struct soft_mw *)wr->bind.mw;
	struct soft_bind bind = {
		.mw_key = wr->bind.mw_rkey,
		.mw_index = wr->bind.mw_rkey >> SOFT_TAG_BITS,
		.mr_key = wr->bind.mr_lkey,
		.addr = wr->bind.addr,
		.length = wr->bind.length,
		.access = wr->bind.access,
	};

	if (mw) {
		bind.mw_serial = mw->serial;
		bind.mw_index = mw->index;
		bind.mr_key = wr->bind.mr ? wr->bind.mr->lkey : 0;
	}
	return bind;
}

int soft_fill_send(struct soft_qp *qp, const struct uvd_send_wr *wr, struct soft_send_wqe *wqe)
{
	uint32_t length;
	int err = soft_check_send(qp, wr, &length);

	if (err)
		return err;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->send_flags = wr->send_flags;
	wqe->imm_data = wr->imm_data;
	wqe->remote_addr = wr->remote_addr;
	wqe->rkey = wr->rkey;
	wqe->remote_srqn = wr->remote_srqn;
	wqe->compare_add = wr->compare_add;
	wqe->swap = wr->swap;
	wqe->length = operations[wr->opcode].atomic ? sizeof(uint64_t) : length;
	wqe->is_inline = wr->inline_data;
	wqe->refusal = has_wrong_length(qp, wr, length) ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
	if (wqe->is_inline) {
		wqe->num_sge = 0;
		memcpy(wqe->data, wr->inline_data, length);
	} else {
		soft_sges_copy(wqe->sge, wr->sg_list, wr->num_sge);
		wqe->num_sge = wr->num_sge;
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		wqe->bind = bind_of(wr);
	if (qp->qp.qp_type == IBV_QPT_UD) {
		wqe->ah = wr->ah->attr;
		wqe->remote_qpn = wr->remote_qpn;
		wqe->remote_qkey = wr->remote_qkey;
	}
	return 0;
}

void soft_refuse_send(const struct uvd_send_wr *wr, struct soft_send_wqe *wqe)
{
	wqe->wr_id = wr->wr_id;
	wqe->send_flags = wr->send_flags;
	wqe->opcode = IBV_WR_SEND;
	wqe->length = 0;
	wqe->num_sge = 0;
	wqe->refusal = IBV_WC_LOC_QP_OP_ERR;
}

struct soft_request soft_send_request(struct soft_qp *qp, struct soft_send_wqe *wqe)
{
	struct soft_request req = {
		.qp = qp,
		.wqe = wqe,
		.arrival = {
			.qp_type = qp->qp.qp_type,
			.src_qpn = qp->qp.qp_num,
			.psn = qp->s_psn,
			.port = soft_qp_port(qp),
			.ah = qp->attr.ah_attr,
			.pkey = soft_port_pkey(soft_qp_port(qp), qp->attr.pkey_index),
			.mtu = qp->attr.path_mtu,
		},
		.dest_qpn = qp->attr.dest_qp_num,
		.retry_cnt = qp->attr.retry_cnt,
	};

	soft_arrival_set(&req.arrival, wqe);
	if (qp->qp.qp_type == IBV_QPT_UD) {
		req.arrival.ah = wqe->ah;
		req.dest_qpn = wqe->remote_qpn;
		/* A Q_Key with the top bit set means the sender's own Q_Key. */
		req.arrival.qkey = wqe->remote_qkey & 0x80000000 ? qp->attr.qkey : wqe->remote_qkey;
		req.arrival.is_multicast = soft_is_multicast(req.arrival.port, &req.arrival.ah);
	}
	return req;
}
