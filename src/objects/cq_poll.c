/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* POLL_CQ and REQ_NOTIFY_CQ. Their rows are in cq.c. */
#include "call/call.h"
#include "objects/internal.h"

/* A poll handles this many completions at a time: the client may ask for any number (regression-01). */
enum { POLL_CHUNK = 64 };

/* The response, as the client gets it: a header, then the completions. */
struct poll_chunk {
	struct ib_uverbs_poll_cq_resp resp;
	struct ib_uverbs_wc wc[POLL_CHUNK];
};

/* Polls and converts at most one chunk of completions. Returns their number, or a negative errno. */
static int take_chunk(struct uvd_req *req, struct uvd_cq *cq, uint32_t left, struct poll_chunk *chunk)
{
	struct ibv_wc wc[POLL_CHUNK];
	int n = uvd_ops(req)->poll_cq(cq, left < POLL_CHUNK ? left : POLL_CHUNK, wc);

	for (int i = 0; i < n; i++)
		uvd_wc_put(&chunk->wc[i], &wc[i]);
	return n;
}

static int poll_cq(struct uvd_req *req)
{
	struct ib_uverbs_poll_cq cmd;
	struct poll_chunk chunk;
	struct uvd_cq *cq;
	uint32_t count = 0;
	int n, ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_CQ, cmd.cq_handle, &cq);
	if (ret)
		return ret;
	chunk.resp = (struct ib_uverbs_poll_cq_resp){};
	while (count < cmd.ne) {
		n = take_chunk(req, cq, cmd.ne - count, &chunk);
		if (n < 0)
			return n;
		count += n;
		if (count == (uint32_t)n && (n < POLL_CHUNK || count == cmd.ne)) {
			/* Usually all fit into the first chunk: one write is enough for header and completions. */
			chunk.resp.count = count;
			return uvd_core_out_at(req, 0, &chunk, sizeof(chunk.resp) + n * sizeof(chunk.wc[0]));
		}
		ret = uvd_core_out_at(req, sizeof(chunk.resp) + (size_t)(count - n) * sizeof(chunk.wc[0]), chunk.wc,
				      n * sizeof(chunk.wc[0]));
		if (ret)
			return ret;
		if (n < POLL_CHUNK)
			break;
	}
	chunk.resp.count = count;
	return uvd_core_out_at(req, 0, &chunk.resp, sizeof(chunk.resp));
}

static int req_notify_cq(struct uvd_req *req)
{
	struct ib_uverbs_req_notify_cq cmd;
	struct uvd_cq *cq;
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_req_object(req, UVERBS_OBJECT_CQ, cmd.cq_handle, &cq);
	if (ret)
		return ret;
	/* The kernel ignores the driver's return value, too. */
	uvd_ops(req)->req_notify_cq(cq, cmd.solicited_only);
	return 0;
}

const uvd_step uvd_poll_cq_steps[] = { poll_cq, NULL };
const uvd_step uvd_req_notify_cq_steps[] = { req_notify_cq, NULL };
