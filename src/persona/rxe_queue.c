/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The entries of rxe's queues. Producer and consumer each have an index that only they write: the producer when it has
 * completed an entry, the consumer when it no longer needs one.
 */
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include "call/call.h"
#include "persona/internal.h"

_Static_assert(sizeof(struct rxe_queue_buf) == 384, "queue header");
_Static_assert(sizeof(struct rxe_send_wqe) == 208, "send work request");
_Static_assert(sizeof(struct rxe_recv_wqe) == 40, "receive work request");
_Static_assert(sizeof(struct ib_uverbs_wc) <= UVD_RXE_CQE, "completion");
/* The backend gets the client's lists unconverted, so the layouts must match. */
_Static_assert(sizeof(struct rxe_sge) == sizeof(struct ibv_sge) &&
		       offsetof(struct rxe_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "scatter-gather entry");
/* uvd_send_wr_take() reads these of the one as of the other. */
#define SAME(member) (offsetof(struct rxe_send_wr, member) == offsetof(struct ib_uverbs_send_wr, member))
_Static_assert(SAME(opcode) && SAME(ex.imm_data) && SAME(ex.invalidate_rkey), "send work request");
_Static_assert(SAME(wr.rdma.remote_addr) && SAME(wr.rdma.rkey), "RDMA");
_Static_assert(SAME(wr.atomic.remote_addr) && SAME(wr.atomic.compare_add) && SAME(wr.atomic.swap) &&
		       SAME(wr.atomic.rkey),
	       "atomics");
#undef SAME

static struct rxe_queue_buf *rxe_queue_header(const struct uvd_queue *q)
{
	return (struct rxe_queue_buf *)q->memory;
}

static uint8_t *entry_at(const struct uvd_queue *q, uint32_t index)
{
	return rxe_queue_header(q)->data + (size_t)index * q->shape.entry_size;
}

static uint32_t rxe_queue_mask(const struct uvd_queue *q)
{
	return q->shape.entries - 1;
}

static void rxe_queue_write_header(struct uvd_queue *q)
{
	static const unsigned int nobody;

	if (!q->watched)
		q->watched = &nobody;
	rxe_queue_header(q)->log2_elem_size = __builtin_ctz(q->shape.entry_size);
	rxe_queue_header(q)->index_mask = rxe_queue_mask(q);
}

/* Returns how many entries from q->index on the client has added. */
static uint32_t rxe_queue_added(const struct uvd_queue *q)
{
	return (__atomic_load_n(&rxe_queue_header(q)->producer_index, __ATOMIC_ACQUIRE) - q->index) & rxe_queue_mask(q);
}

/* Returns how many entries from q->index on doorbells have handed over to the engine: of a send queue, with those that it dropped. */
static uint32_t rxe_queue_handed_over(const struct uvd_queue *q)
{
	return (q->accepted - q->index) & rxe_queue_mask(q);
}

static uint32_t rxe_queue_count(const struct uvd_queue *q)
{
	return q->kind == UVD_QUEUE_SEND ? rxe_queue_handed_over(q) - q->num_dropped : rxe_queue_added(q);
}

/* Returns the first entry from `index` on that was not dropped. */
static uint32_t rxe_queue_skip(const struct uvd_queue *q, uint32_t index)
{
	while (q->dropped[index / 64] >> index % 64 & 1) {
		const bool whole = !(index % 64) && q->dropped[index / 64] == UINT64_MAX;

		index = (index + (whole ? 64 : 1)) & rxe_queue_mask(q);
	}
	return index;
}

/* Returns the entry after the n oldest ones, which exists. */
static uint32_t rxe_queue_nth(const struct uvd_queue *q, uint32_t n)
{
	uint32_t index = q->index;

	if (!q->num_dropped)
		return (index + n) & rxe_queue_mask(q);
	while (n--)
		index = rxe_queue_skip(q, (index + 1) & rxe_queue_mask(q));
	return index;
}

/* Copies the entry after the n oldest ones to q->entry. Returns the copy, or NULL if there is no such entry. */
static void *copy_entry(struct uvd_queue *q, uint32_t n)
{
	if (rxe_queue_count(q) <= n)
		return NULL;
	memcpy(q->entry, entry_at(q, rxe_queue_nth(q, n)), q->shape.entry_size);
	/* The compiler must not read the client's entry again: the client may change it at any time. */
	__asm__ volatile("" : : "r"(q->entry) : "memory");
	return q->entry;
}

/* Gives the entries before `index` back to the client. Its provider compares this with its own index: is the queue full? */
static void rxe_queue_consume(struct uvd_queue *q, uint32_t index)
{
	uint32_t shown = index;

	q->index = index;
	if (q->looks_full)
		shown = (__atomic_load_n(&rxe_queue_header(q)->producer_index, __ATOMIC_RELAXED) + 1) &
			rxe_queue_mask(q);
	__atomic_store_n(&rxe_queue_header(q)->consumer_index, shown, __ATOMIC_RELEASE);
}

static void rxe_queue_take_posts(struct uvd_queue *q, bool takes)
{
	q->looks_full = q->unanswered && !takes;
	rxe_queue_consume(q, q->index);
}

/* After this the oldest entry, if there is one, was not dropped. */
static void rxe_queue_pop(struct uvd_queue *q)
{
	uint32_t next = (q->index + 1) & rxe_queue_mask(q);

	for (; q->num_dropped && q->dropped[next / 64] >> next % 64 & 1; next = (next + 1) & rxe_queue_mask(q)) {
		q->dropped[next / 64] &= ~(UINT64_C(1) << next % 64);
		q->num_dropped--;
	}
	rxe_queue_consume(q, next);
}

/* A client may also move its index back. That adds nothing, and takes nothing from what was handed over. */
static void rxe_queue_accept(struct uvd_queue *q)
{
	const uint32_t added = rxe_queue_added(q);

	if (added > rxe_queue_handed_over(q))
		q->accepted = (q->index + added) & rxe_queue_mask(q);
}

static void rxe_queue_drop(struct uvd_queue *q)
{
	const uint32_t before = q->accepted;

	rxe_queue_accept(q);
	if (before == q->index) {
		rxe_queue_consume(q, q->accepted);
		return;
	}
	/* Older requests are not done: the entries stay the client's only after these. */
	for (uint32_t i = before; i != q->accepted; i = (i + 1) & rxe_queue_mask(q)) {
		q->dropped[i / 64] |= UINT64_C(1) << i % 64;
		q->num_dropped++;
	}
}

/* ---- work requests ----------------------------------------------------------------------------------------------- */

/* Decodes the provider's address vector to q->ah. Returns false if the device lacks its port or its GID index. */
static bool decode_av(struct uvd_queue *q, const struct rxe_av *av)
{
	const struct uvd_device_config *config = q->config;

	if (av->port_num < 1 || av->port_num > config->num_ports ||
	    av->grh.sgid_index >= config->ports[av->port_num - 1].gid_tbl_len)
		return false;
	q->ah = (struct uvd_ah){
		.pd = q->pd,
		.attr = {
			.is_global = 1,
			.port_num = av->port_num,
			.grh = {
				.flow_label = av->grh.flow_label,
				.sgid_index = av->grh.sgid_index,
				.hop_limit = av->grh.hop_limit,
				.traffic_class = av->grh.traffic_class,
			},
		},
	};
	memcpy(q->ah.attr.grh.dgid.raw, av->grh.dgid.raw, sizeof(av->grh.dgid.raw));
	return true;
}

static void decode_ud(struct uvd_queue *q, const struct rxe_send_wr *in, struct uvd_send_wr *wr)
{
	wr->remote_qpn = in->wr.ud.remote_qpn;
	wr->remote_qkey = in->wr.ud.remote_qkey;
	if (decode_av(q, &in->wr.ud.av))
		wr->ah = &q->ah;
}

static void rxe_queue_decode_operation(struct uvd_queue *q, const struct rxe_send_wr *in, bool is_ud,
				       struct uvd_send_wr *wr)
{
	if (uvd_send_wr_take(wr, (const struct ib_uverbs_send_wr *)in)) {
		if (is_ud && (in->opcode == IBV_WR_SEND || in->opcode == IBV_WR_SEND_WITH_IMM))
			decode_ud(q, in, wr);
		return;
	}
	/* Operations that POST_SEND does not have. */
	switch (in->opcode) {
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = in->ex.invalidate_rkey;
		break;
	case IBV_WR_ATOMIC_WRITE:
		wr->remote_addr = in->wr.rdma.remote_addr;
		wr->rkey = in->wr.rdma.rkey;
		break;
	case IBV_WR_BIND_MW:
		wr->rkey = in->wr.mw.rkey;
		wr->bind.mw_rkey = in->wr.mw.mw_rkey;
		wr->bind.mr_lkey = in->wr.mw.mr_lkey;
		wr->bind.addr = in->wr.mw.addr;
		wr->bind.length = in->wr.mw.length;
		wr->bind.access = in->wr.mw.access;
		break;
	default:
		break;
	}
}

/*
 * Do the request's bytes follow it in its entry? ibv_wr_set_inline_data() needs no IBV_SEND_INLINE: the provider then
 * sets a length and leaves the list empty, which no other request does.
 */
static bool send_is_inline(const struct rxe_send_wqe *wqe)
{
	switch (wqe->wr.opcode) {
	case IBV_WR_ATOMIC_WRITE: /* its operand */
		return true;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return (wqe->wr.send_flags & IBV_SEND_INLINE) || (!wqe->dma.num_sge && wqe->dma.length);
	default:
		return wqe->wr.send_flags & IBV_SEND_INLINE;
	}
}

static void rxe_queue_decode_send(struct uvd_queue *q, const struct rxe_send_wqe *wqe, struct uvd_send_wr *wr)
{
	*wr = (struct uvd_send_wr){
		.wr_id = wqe->wr.wr_id,
		.opcode = wqe->wr.opcode,
		.send_flags = wqe->wr.send_flags,
		.num_sge = wqe->dma.num_sge <= q->shape.max_sge ? (int)wqe->dma.num_sge : -1,
		.sg_list = (const struct ibv_sge *)wqe->dma.sge,
	};
	rxe_queue_decode_operation(q, &wqe->wr, q->is_ud, wr);
	if (!send_is_inline(wqe))
		return;
	if (wr->opcode != IBV_WR_ATOMIC_WRITE)
		wr->send_flags |= IBV_SEND_INLINE;
	/* num_sge -1: the data is too long. */
	wr->num_sge = wqe->dma.length <= q->shape.entry_size - sizeof(*wqe) ? 0 : -1;
	wr->inline_data = wqe->dma.inline_data;
	wr->inline_len = wqe->dma.length;
}

static bool peek_send(struct uvd_queue *q, uint32_t n, struct uvd_send_wr *wr)
{
	const struct rxe_send_wqe *wqe = copy_entry(q, n);

	if (!wqe)
		return false;
	rxe_queue_decode_send(q, wqe, wr);
	if (uvd_queue_is_watched(q))
		q->tell(q, wr);
	return true;
}

static bool peek_recv(struct uvd_queue *q, uint32_t n, struct uvd_recv_wr *wr)
{
	const struct rxe_recv_wqe *wqe = copy_entry(q, n);

	if (!wqe)
		return false;
	*wr = (struct uvd_recv_wr){
		.wr_id = wqe->wr_id,
		.num_sge = wqe->dma.num_sge <= q->shape.max_sge ? (int)wqe->dma.num_sge : -1,
		.sg_list = (const struct ibv_sge *)wqe->dma.sge,
	};
	if (uvd_queue_is_watched(q))
		q->tell(q, wr);
	return true;
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

static bool push_wc(struct uvd_queue *q, const struct ibv_wc *wc)
{
	const uint32_t consumer = __atomic_load_n(&rxe_queue_header(q)->consumer_index, __ATOMIC_ACQUIRE);
	struct ib_uverbs_wc out;

	if (((consumer - q->index - 1) & rxe_queue_mask(q)) == 0)
		return false;
	uvd_wc_put(&out, wc);
	out.wc_flags = wc->wc_flags; /* the provider takes them as flags of libibverbs */
	out.port_num = 1;
	memcpy(entry_at(q, q->index), &out, sizeof(out));
	q->index = (q->index + 1) & rxe_queue_mask(q);
	/* Before the client can see the completion: a trace has it before what the client does then. */
	if (uvd_queue_is_watched(q))
		q->tell(q, wc);
	__atomic_store_n(&rxe_queue_header(q)->producer_index, q->index, __ATOMIC_RELEASE);
	return true;
}

/* ---- replacing a queue ------------------------------------------------------------------------------------------- */

/* The client can change the entries during the copy. That affects only the client itself. */
static bool rxe_queue_move(struct uvd_queue *from, struct uvd_queue *to)
{
	const bool ours = from->kind == UVD_QUEUE_CQ; /* we are the producer */
	uint32_t *other = ours ? &rxe_queue_header(from)->consumer_index : &rxe_queue_header(from)->producer_index;
	const uint32_t theirs = __atomic_load_n(other, __ATOMIC_ACQUIRE) & rxe_queue_mask(from);
	const uint32_t first = ours ? theirs : from->index, end = ours ? from->index : theirs;
	uint32_t n = (end - first) & rxe_queue_mask(from);

	if (n > rxe_queue_mask(to))
		return false;
	for (uint32_t i = 0; i < n; i++)
		memcpy(entry_at(to, i), entry_at(from, (first + i) & rxe_queue_mask(from)), to->shape.entry_size);
	if (ours)
		to->index = n;
	__atomic_store_n(&rxe_queue_header(to)->producer_index, n, __ATOMIC_RELEASE);
	return true;
}

const struct uvd_queue_ops uvd_rxe_queue_ops = {
	.init = rxe_queue_write_header,
	.count = rxe_queue_count,
	.peek_send = peek_send,
	.peek_recv = peek_recv,
	.pop = rxe_queue_pop,
	.accept = rxe_queue_accept,
	.drop = rxe_queue_drop,
	.push_wc = push_wc,
	.move = rxe_queue_move,
	.take_posts = rxe_queue_take_posts,
};
