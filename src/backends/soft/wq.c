/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings of work requests, and what posting checks. The errors are those of the kernel's rdmavt. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/soft.h"

static uint64_t ring_bytes(const struct soft_ring *ring)
{
	return (uint64_t)(ring->size ? ring->size : 1) * ring->entry_size;
}

int soft_ring_init(struct soft_ring *ring, struct uvd_account *account, unsigned int size, size_t entry_size)
{
	int ret;

	ring->entry_size = (entry_size + 7) & ~(size_t)7;
	ring->size = size;
	ring->account = account;
	ret = uvd_charge_bytes(account, ring_bytes(ring));
	if (ret)
		return ret;
	/* Untouched entries of a large queue cost no memory, but the client may touch all of them at any time. */
	ring->entries = calloc(1, ring_bytes(ring));
	if (ring->entries)
		return 0;
	uvd_uncharge_bytes(account, ring_bytes(ring));
	return -ENOMEM;
}

void soft_ring_destroy(struct soft_ring *ring)
{
	if (ring->entries)
		uvd_uncharge_bytes(ring->account, ring_bytes(ring));
	free(ring->entries);
}

/* nr: at most the ring's size. */
static void *entry(struct soft_ring *ring, unsigned int nr)
{
	size_t place = (size_t)ring->head + nr;

	/* A division here would be a good part of a small request. */
	if (place >= ring->size)
		place -= ring->size;
	return ring->entries + place * ring->entry_size;
}

void *soft_ring_peek(struct soft_ring *ring)
{
	return ring->count ? entry(ring, 0) : NULL;
}

void soft_ring_pop(struct soft_ring *ring)
{
	ring->head = ring->head + 1 == ring->size ? 0 : ring->head + 1;
	ring->count--;
}

void *soft_ring_next(struct soft_ring *ring)
{
	return ring->count < ring->size ? entry(ring, ring->count) : NULL;
}

void soft_ring_push(struct soft_ring *ring)
{
	ring->count++;
}

void soft_ring_clear(struct soft_ring *ring)
{
	ring->head = ring->count = 0;
}

/* An empty list may have no address. */
static void copy_sges(struct ibv_sge *dst, const struct ibv_sge *src, int n)
{
	if (n)
		memcpy(dst, src, n * sizeof(*dst));
}

/* ---- send queue -------------------------------------------------------------------------------------------------- */

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)
#define RAW (1u << IBV_QPT_RAW_PACKET)
#define XRC (1u << IBV_QPT_XRC_SEND)

static const struct {
	unsigned int types; /* of QPs that have this operation */
	bool reads; /* brings data back: counts against max_rd_atomic */
	bool atomic;
} operations[] = {
	[IBV_WR_RDMA_WRITE] = { RC | UC | XRC },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { RC | UC | XRC },
	[IBV_WR_SEND] = { RC | UC | UD | XRC | RAW },
	[IBV_WR_SEND_WITH_IMM] = { RC | UC | UD | XRC },
	[IBV_WR_RDMA_READ] = { RC | XRC, .reads = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RC | XRC, .reads = true, .atomic = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RC | XRC, .reads = true, .atomic = true },
	[IBV_WR_LOCAL_INV] = { RC | UC },
	[IBV_WR_BIND_MW] = { RC | UC },
	[IBV_WR_SEND_WITH_INV] = { RC },
};

static int check_operation(struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= sizeof(operations) / sizeof(operations[0]) ||
	    !(operations[wr->opcode].types & (1u << qp->qp.qp_type)))
		return -EINVAL;
	if (operations[wr->opcode].reads && (!qp->attr.max_rd_atomic || wr->inline_data))
		return -EINVAL;
	if (operations[wr->opcode].atomic &&
	    (wr->num_sge < 1 || wr->sg_list[0].length < sizeof(uint64_t) || wr->sg_list[0].addr % sizeof(uint64_t)))
		return -EINVAL;
	if (soft_is_local(wr->opcode) && (wr->num_sge || wr->inline_data))
		return -EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW && !wr->bind.mw)
		return -EINVAL;
	if (qp->qp.qp_type == IBV_QPT_UD && (!wr->ah || wr->ah->pd != qp->qp.pd))
		return -EINVAL;
	return 0;
}

uint64_t soft_sge_length(const struct ibv_sge *sge, int num_sge)
{
	uint64_t length = 0;

	for (int i = 0; i < num_sge; i++)
		length += sge[i].length;
	return length;
}

static int check_length(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length)
{
	uint64_t sum = wr->inline_data ? wr->inline_len : soft_sge_length(wr->sg_list, wr->num_sge);
	uint64_t least = 0, most = UINT64_C(1) << 31;

	if (wr->inline_data && wr->inline_len > qp->cap.max_inline_data)
		return -EINVAL;
	if (qp->qp.qp_type == IBV_QPT_UD)
		most = UINT64_C(128) << qp->dev->ibdev->config.ports[wr->ah->attr.port_num - 1].active_mtu;
	if (qp->qp.qp_type == IBV_QPT_RAW_PACKET) {
		least = SOFT_RAW_LEAST;
		most = (UINT64_C(128) << soft_qp_port(qp)->active_mtu) + SOFT_RAW_MORE;
	}
	if (sum < least || sum > most)
		return -EINVAL;
	*length = sum;
	return 0;
}

static struct soft_bind bind_of(const struct uvd_send_wr *wr)
{
	const struct soft_mw *mw = (const struct soft_mw *)wr->bind.mw;

	return (struct soft_bind){
		.mw_serial = mw->serial,
		.mw_index = mw->index,
		.mr_key = wr->bind.mr ? wr->bind.mr->lkey : 0,
		.addr = wr->bind.addr,
		.length = wr->bind.length,
		.access = wr->bind.access,
	};
}

static int queue_send(struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	struct soft_send_wqe *wqe;
	uint32_t length;
	int err;

	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	err = check_operation(qp, wr);
	if (err)
		return err;
	err = check_length(qp, wr, &length);
	if (err)
		return err;
	wqe = soft_ring_next(&qp->sq);
	if (!wqe)
		return -ENOMEM;

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
	if (wqe->is_inline) {
		wqe->num_sge = 0;
		memcpy(wqe->data, wr->inline_data, length);
	} else {
		copy_sges(wqe->sge, wr->sg_list, wr->num_sge);
		wqe->num_sge = wr->num_sge;
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		wqe->bind = bind_of(wr);
	if (qp->qp.qp_type == IBV_QPT_UD) {
		wqe->ah = wr->ah->attr;
		wqe->remote_qpn = wr->remote_qpn;
		wqe->remote_qkey = wr->remote_qkey;
	}
	soft_ring_push(&qp->sq);
	return 0;
}

int soft_post_send(struct uvd_qp *base, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(base);
	bool queued = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD && qp->state != IBV_QPS_SQE &&
	    qp->state != IBV_QPS_ERR)
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = queue_send(qp, wr);
		if (err)
			break;
		queued = true;
	}
	pthread_mutex_unlock(&qp->lock);
	if (err)
		*bad = wr;
	if (queued)
		soft_send_run(qp);
	return err;
}

/* ---- receive queue ----------------------------------------------------------------------------------------------- */

int soft_queue_recv(struct soft_ring *ring, uint32_t max_sge, const struct uvd_recv_wr *wr)
{
	struct soft_recv_wqe *wqe;

	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > max_sge)
		return -EINVAL;
	wqe = soft_ring_next(ring);
	if (!wqe)
		return -ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	copy_sges(wqe->sge, wr->sg_list, wr->num_sge);
	soft_ring_push(ring);
	return 0;
}

int soft_post_recv(struct uvd_qp *base, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	struct soft_qp *qp = soft_qp(base);
	struct soft_budget budget = { 0 };
	struct soft_due due = { 0 };
	bool kick = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	/* Neither end of an XRC connection has receives of its own, as no QP with an SRQ has. */
	if (qp->state == IBV_QPS_RESET || base->srq || !base->recv_cq)
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = soft_queue_recv(&qp->rq, qp->cap.max_recv_sge, wr);
		if (err)
			break;
		kick = qp->r_nak;
	}
	if (err)
		*bad = wr;
	if (kick)
		qp->r_nak = false;
	if (qp->state == IBV_QPS_ERR && !qp->r_busy)
		soft_recv_flush(qp, &due);
	pthread_mutex_unlock(&qp->lock);

	soft_due_run(&due);
	if (kick)
		soft_kick_peer(qp, &budget);
	return err;
}
