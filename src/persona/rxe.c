/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Soft RoCE. Its stock provider (librxe) maps all queues (rdma/rdma_user_rxe.h), and posts and polls without a call.
 * The exception is the doorbell of a send queue, a POST_SEND command without work requests. rxe_queue.c handles the
 * entries.
 */
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include "persona/internal.h"

static uint32_t round_up(uint32_t n)
{
	return n < 2 ? n : 1u << (32 - __builtin_clz(n - 1));
}

/* As rxe_queue_init(): an entry is at least a cache line, and one entry stays unused, to tell full from empty. */
static struct uvd_queue_shape rxe_shape(uint32_t entries, size_t entry_size, uint32_t max_sge)
{
	return (struct uvd_queue_shape){
		.entries = round_up(entries + 1),
		.entry_size = round_up(entry_size < 64 ? 64 : entry_size),
		.max_sge = max_sge,
	};
}

/* The room behind a request holds its entries or its inline data: the larger of the two limits raises the other one. */
static struct uvd_queue_shape shape_sq(struct ibv_qp_cap *cap)
{
	uint32_t room = cap->max_send_sge * sizeof(struct rxe_sge);

	if (room < cap->max_inline_data)
		room = cap->max_inline_data;
	cap->max_inline_data = room;
	cap->max_send_sge = room / sizeof(struct rxe_sge);
	return rxe_shape(cap->max_send_wr, sizeof(struct rxe_send_wqe) + room, cap->max_send_sge);
}

static struct uvd_queue_shape shape_rq(uint32_t max_wr, uint32_t max_sge)
{
	return rxe_shape(max_wr, sizeof(struct rxe_recv_wqe) + max_sge * sizeof(struct rxe_sge), max_sge);
}

static struct uvd_queue_shape shape_cq(uint32_t cqe)
{
	return rxe_shape(cqe, UVD_RXE_CQE, 0);
}

static struct mminfo rxe_mminfo(const struct uvd_queue *q)
{
	return q ? (struct mminfo){ .offset = q->offset, .size = q->length } : (struct mminfo){ 0 };
}

static size_t cq_response(void *buf, const struct uvd_queue *cq)
{
	struct rxe_create_cq_resp resp = { .mi = rxe_mminfo(cq) };

	memcpy(buf, &resp, sizeof(resp));
	return sizeof(resp);
}

static size_t qp_response(void *buf, const struct uvd_queue *sq, const struct uvd_queue *rq)
{
	struct rxe_create_qp_resp resp = { .rq_mi = rxe_mminfo(rq), .sq_mi = rxe_mminfo(sq) };

	memcpy(buf, &resp, sizeof(resp));
	return sizeof(resp);
}

static size_t srq_response(void *buf, const struct uvd_queue *rq, uint32_t srq_num)
{
	struct rxe_create_srq_resp resp = { .mi = rxe_mminfo(rq), .srq_num = srq_num };

	memcpy(buf, &resp, sizeof(resp));
	return sizeof(resp);
}

static uint64_t srq_modify_place(const void *in)
{
	struct rxe_modify_srq_cmd cmd;

	_Static_assert(sizeof(cmd) == UVD_PERSONA_SRQ_MODIFY, "driver data of MODIFY_SRQ");
	memcpy(&cmd, in, sizeof(cmd));
	return cmd.mmap_info_addr;
}

static size_t srq_modify_response(void *buf, const struct uvd_queue *rq)
{
	struct mminfo resp = rxe_mminfo(rq);

	memcpy(buf, &resp, sizeof(resp));
	return sizeof(resp);
}

static const struct uvd_persona_queues queues = {
	.ops = &uvd_rxe_queue_ops,
	.header = sizeof(struct rxe_queue_buf),
	.shape_sq = shape_sq,
	.shape_rq = shape_rq,
	.shape_cq = shape_cq,
	.cq_response = cq_response,
	.qp_response = qp_response,
	.srq_response = srq_response,
	.srq_modify_place = srq_modify_place,
	.srq_modify_response = srq_modify_response,
};

/* All of the driver's, in its order (rxe_hw_counters.c). */
static const struct uvd_counter_file rxe_hw_counters[] = {
	{ "sent_pkts", 1u << UVD_PORT_UNICAST_XMIT | 1u << UVD_PORT_MULTICAST_XMIT },
	{ "rcvd_pkts", 1u << UVD_PORT_UNICAST_RCV | 1u << UVD_PORT_MULTICAST_RCV },
	{ "duplicate_request", 1u << UVD_PORT_DUPLICATES },
	{ "out_of_seq_request", 1u << UVD_PORT_OUT_OF_SEQUENCE },
	{ "rcvd_rnr_err", 1u << UVD_PORT_RNR_RCVD },
	{ "send_rnr_err", 1u << UVD_PORT_RNR_SENT },
	{ "rcvd_seq_err", 1u << UVD_PORT_SEQUENCE_NAKS },
	{ "ack_deferred", 1u << UVD_PORT_ANSWERS_DEFERRED },
	{ "retry_exceeded_err", 1u << UVD_PORT_RETRY_EXCEEDED },
	{ "retry_rnr_exceeded_err", 1u << UVD_PORT_RNR_RETRY_EXCEEDED },
	{ "completer_retry_err", 1u << UVD_PORT_RETRIES },
	{ "send_err", 1u << UVD_PORT_XMIT_DISCARDS },
	{ "link_downed", 1u << UVD_PORT_LINK_DOWNED },
	{ "rdma_sends", 1u << UVD_PORT_SENDS },
	{ "rdma_recvs", 1u << UVD_PORT_RECEIVES },
	{ NULL },
};

const struct uvd_persona uvd_persona_rxe = {
	.name = "rxe",
	.ibdev_prefix = "rxe",
	.driver_id = RDMA_DRIVER_RXE,
	.abi_version = 2,
	.modalias = "", /* no bus device */
	.board_id = "",
	.fw_ver = "",
	.node_desc = "rxe",
	.vendor_id = 0xffffff,
	.vendor_part_id = 0,
	.hw_ver = 0,
	.hw_counters = rxe_hw_counters,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.unusable_caps = IBV_DEVICE_XRC,
	.has_ip_gid = true,
	.queues = &queues,
};
