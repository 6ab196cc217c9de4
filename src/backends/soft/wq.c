/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting, and its checks. The errors are those of the kernel's rdmavt. */
#include <errno.h>
#include <string.h>
#include "backends/soft/soft.h"

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
	[IBV_WR_ATOMIC_WRITE] = { RC | XRC },
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
	/* Its eight bytes are in the request, whatever the QP has for inline data. */
	if (wr->opcode == IBV_WR_ATOMIC_WRITE && (!wr->inline_data || wr->inline_len != sizeof(uint64_t)))
		return -EINVAL;
	if (soft_is_local(wr->opcode) && (wr->num_sge || wr->inline_data))
		return -EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW && !wr->bind.mw && !wr->bind.mw_rkey)
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

	if (wr->inline_data && wr->inline_len > qp->cap.max_inline_data && wr->opcode != IBV_WR_ATOMIC_WRITE)
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

static int check_send(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length)
{
	int err;

	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	err = check_operation(qp, wr);
	return err ? err : check_length(qp, wr, length);
}

int soft_fill_send(struct soft_qp *qp, const struct uvd_send_wr *wr, struct soft_send_wqe *wqe)
{
	uint32_t length;
	int err = check_send(qp, wr, &length);

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
	return 0;
}

static int queue_send(struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	struct soft_send_wqe *wqe = soft_ring_next(&qp->sq);
	uint32_t length;
	int err;

	/* A request that is wrong is told so, also where the queue has no room for it. */
	if (!wqe)
		return check_send(qp, wr, &length) ?: -ENOMEM;
	err = soft_fill_send(qp, wr, wqe);
	if (!err)
		soft_ring_push(&qp->sq);
	return err;
}

static bool takes_requests(const struct soft_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE || qp->state == IBV_QPS_ERR;
}

static void run_work(void *arg, struct uvd_worker *worker)
{
	soft_send_run(arg, worker);
}

/* With the lock held. */
static struct uvd_work work_of(struct soft_qp *qp)
{
	soft_ref_get(&qp->ref);
	return (struct uvd_work){ run_work, qp };
}

int soft_post_send(struct uvd_qp *base, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad, struct uvd_work *work)
{
	struct soft_qp *qp = soft_qp(base);
	bool queued = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (!takes_requests(qp))
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = queue_send(qp, wr);
		if (err)
			break;
		queued = true;
	}
	if (queued)
		*work = work_of(qp);
	pthread_mutex_unlock(&qp->lock);
	if (err)
		*bad = wr;
	return err;
}

int soft_ring_doorbell(struct uvd_qp *base, struct uvd_work *work)
{
	struct soft_qp *qp = soft_qp(base);
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (!takes_requests(qp))
		err = -EINVAL;
	else
		*work = work_of(qp);
	pthread_mutex_unlock(&qp->lock);
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
	struct soft_due due = { 0 };
	bool kick = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	/* Neither end of an XRC connection has receives of its own, as no QP with an SRQ has. */
	if (qp->state == IBV_QPS_RESET || base->srq || !base->recv_cq || base->rq)
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = soft_queue_recv(&qp->rq.ring, qp->cap.max_recv_sge, wr);
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
		soft_kick_peer(qp);
	return err;
}
