/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Entries of mapped queues for a trace, as structs of the kernel's ABI: work requests as POST_SEND has them, completions as
 * POLL_CQ has.
 */
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "call/call.h"
#include "core/core.h"
#include "objects/queue.h"

struct entry {
	uint8_t bytes[UVD_PIECE_MAX] __attribute__((aligned(8)));
	size_t len;
};

/* Adds what there is room for. */
static void entry_add(struct entry *e, const void *bytes, size_t len)
{
	const size_t room = sizeof(e->bytes) - e->len, n = len < room ? len : room;

	if (n)
		memcpy(e->bytes + e->len, bytes, n);
	e->len += n;
}

/* num_sge is -1 if the request is malformed. */
static void entry_add_sges(struct entry *e, const struct ibv_sge *sges, int num_sge)
{
	if (num_sge > 0)
		entry_add(e, sges, num_sge * sizeof(*sges));
}

/* The address of a UD request is in the entry, and no AH has a handle for it. */
static void entry_add_send(struct entry *e, const struct uvd_queue *q, const struct uvd_send_wr *wr)
{
	struct ib_uverbs_send_wr out;

	uvd_send_wr_put(&out, wr, q->is_ud);
	entry_add(e, &out, sizeof(out));
	entry_add_sges(e, wr->sg_list, wr->num_sge);
	if (wr->inline_data && wr->num_sge >= 0)
		entry_add(e, wr->inline_data, wr->inline_len);
}

static void entry_add_recv(struct entry *e, const struct uvd_recv_wr *wr)
{
	const struct ib_uverbs_recv_wr out = { .wr_id = wr->wr_id, .num_sge = wr->num_sge };

	entry_add(e, &out, sizeof(out));
	entry_add_sges(e, wr->sg_list, wr->num_sge);
}

static void entry_add_wc(struct entry *e, const struct ibv_wc *wc)
{
	struct ib_uverbs_wc out;

	uvd_wc_put(&out, wc);
	out.port_num = 1;
	entry_add(e, &out, sizeof(out));
}

void uvd_queue_trace(const struct uvd_queue *q, struct uvd_file *file, const struct uvd_uobject *owner,
		     const void *what)
{
	struct uvd_observed_entry told = {
		.file = &file->watched,
		.tree = uvd_file_tree(file),
		.object = owner->row->id,
		.handle = owner->id,
		.kind = q->kind,
	};
	struct entry e;

	e.len = 0;
	if (q->kind == UVD_QUEUE_SEND)
		entry_add_send(&e, q, what);
	else if (q->kind == UVD_QUEUE_RECV)
		entry_add_recv(&e, what);
	else
		entry_add_wc(&e, what);
	told.bytes = e.bytes;
	told.len = e.len;
	uvd_observe_entry(&told);
}
