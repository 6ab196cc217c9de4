/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work requests and completions: between the structs of POST_SEND and POLL_CQ, which mapped queues share, and those that
 * backends use. Inline functions, as they are on the way of each message.
 */
#ifndef UVD_CALL_WORK_H
#define UVD_CALL_WORK_H

#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <uverbsd/uapi_later.h>
#include <uverbsd/work.h>

/*
 * Sets what the operation in->opcode needs: immediate data, the key to invalidate, the remote memory, the operands. A
 * datagram's address is the caller's. Returns false if POST_SEND has no such operation.
 */
static inline bool uvd_send_wr_take(struct uvd_send_wr *wr, const struct ib_uverbs_send_wr *in)
{
	switch (in->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		wr->imm_data = in->ex.imm_data;
		/* fall through */
	case IBV_WR_SEND:
		return true;
	case IBV_WR_SEND_WITH_INV:
		wr->invalidate_rkey = in->ex.invalidate_rkey;
		return true;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wr->imm_data = in->ex.imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		wr->remote_addr = in->wr.rdma.remote_addr;
		wr->rkey = in->wr.rdma.rkey;
		return true;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->remote_addr = in->wr.atomic.remote_addr;
		wr->compare_add = in->wr.atomic.compare_add;
		wr->swap = in->wr.atomic.swap;
		wr->rkey = in->wr.atomic.rkey;
		return true;
	default:
		return false;
	}
}

/* The reverse, for all operations: those that POST_SEND does not have keep their remote memory. is_ud: the QP's type is UD. */
static inline void uvd_send_wr_put(struct ib_uverbs_send_wr *out, const struct uvd_send_wr *wr, bool is_ud)
{
	*out = (struct ib_uverbs_send_wr){
		.wr_id = wr->wr_id,
		.num_sge = wr->num_sge,
		.opcode = wr->opcode,
		.send_flags = wr->send_flags,
		.ex.imm_data = wr->imm_data, /* or invalidate_rkey, in the same place */
	};
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		out->wr.atomic.remote_addr = wr->remote_addr;
		out->wr.atomic.compare_add = wr->compare_add;
		out->wr.atomic.swap = wr->swap;
		out->wr.atomic.rkey = wr->rkey;
	} else if (is_ud) {
		out->wr.ud.remote_qpn = wr->remote_qpn;
		out->wr.ud.remote_qkey = wr->remote_qkey;
	} else {
		out->wr.rdma.remote_addr = wr->remote_addr;
		out->wr.rdma.rkey = wr->rkey;
	}
}

/* Converts flags of libibverbs to those of the ABI: they differ from bit 2 on. */
static inline uint32_t uvd_wc_flags_put(unsigned int flags)
{
	return (flags & IBV_WC_GRH ? UVD_WC_GRH : 0) | (flags & IBV_WC_WITH_IMM ? UVD_WC_WITH_IMM : 0) |
	       (flags & IBV_WC_WITH_INV ? UVD_WC_WITH_INVALIDATE : 0) |
	       (flags & IBV_WC_IP_CSUM_OK ? UVD_WC_IP_CSUM_OK : 0);
}

/* Sets all fields, the reserved ones too: no memory of ours may leak to the client (regression-02). */
static inline void uvd_wc_put(struct ib_uverbs_wc *to, const struct ibv_wc *wc)
{
	*to = (struct ib_uverbs_wc){
		.wr_id = wc->wr_id,
		.status = wc->status,
		.opcode = wc->opcode,
		.vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len,
		.ex.imm_data = wc->imm_data,
		.qp_num = wc->qp_num,
		.src_qp = wc->src_qp,
		.wc_flags = uvd_wc_flags_put(wc->wc_flags),
		.pkey_index = wc->pkey_index,
		.slid = wc->slid,
		.sl = wc->sl,
		.dlid_path_bits = wc->dlid_path_bits,
	};
}

#endif
