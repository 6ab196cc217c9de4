/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions. A POLL_CQ of the trace found what there was at that time; now there may be less, or it comes in another
 * order. So what is compared is which completions a CQ has given, of those that the trace has.
 */
#include <rdma/ib_user_verbs.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "replay.h"
#include "util/util.h"

/* The time that a poll waits for completions that the trace has, and the last poll before the CQ goes. */
enum { POLL_MS = 200, LAST_MS = 10000, PAUSE_US = 500, MOST = 1024 };

struct uvd_replay_cq {
	struct uvd_replay_cq *next;
	uint64_t file;
	uint32_t handle; /* recorded */
	json_t *was, *now; /* completions that the other side does not have, as text */
	bool late; /* the last poll has waited in vain: they depend on later calls, and polls before those need not wait */
	struct uvd_replay_call *poll; /* the last one, to make it again */
};

static struct uvd_replay_cq *cq_of(struct uvd_replay *r, uint64_t file, uint32_t handle)
{
	struct uvd_replay_cq *cq = r->cqs;

	while (cq && (cq->file != file || cq->handle != handle))
		cq = cq->next;
	if (cq)
		return cq;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	*cq = (struct uvd_replay_cq){ .next = r->cqs, .file = file, .handle = handle };
	cq->was = json_array();
	cq->now = json_array();
	r->cqs = cq;
	return cq;
}

/*
 * Writes the compared part of a completion as text. After an error only the status, the work request and the QP are
 * defined. qpn: the QP's number now.
 */
static json_t *completion_text(const struct ib_uverbs_wc *wc, uint32_t qpn)
{
	char text[160];

	if (wc->status)
		snprintf(text, sizeof(text), "wr_id %llu: %s, QP %u", (unsigned long long)wc->wr_id,
			 uvd_name_of(uvd_wc_status_names, wc->status), qpn);
	else if (wc->opcode & IBV_WC_RECV)
		snprintf(text, sizeof(text), "wr_id %llu: opcode %u, %u bytes, QP %u", (unsigned long long)wc->wr_id,
			 wc->opcode, wc->byte_len, qpn);
	else
		snprintf(text, sizeof(text), "wr_id %llu: opcode %u, QP %u", (unsigned long long)wc->wr_id, wc->opcode,
			 qpn);
	return json_string(text);
}

/*
 * Adds the completions in a response to those that the other side does not have, or removes them there. recorded: the
 * call of the trace that has the response; NULL: it is the device's.
 */
static void completions_add(const struct uvd_replay_call *recorded, json_t *mine, json_t *other,
			    const uint8_t *response, size_t len)
{
	const struct ib_uverbs_poll_cq_resp *resp = (const void *)response;
	struct ib_uverbs_wc wc;
	json_t *text, *there;
	uint64_t qpn;
	size_t i;

	if (len < sizeof(*resp))
		return;
	for (uint32_t n = 0; n < resp->count && sizeof(*resp) + (n + (size_t)1) * sizeof(wc) <= len; n++) {
		memcpy(&wc, response + sizeof(*resp) + n * sizeof(wc), sizeof(wc));
		if (!recorded || !uvd_replay_number_known(recorded, UVD_ROLE_QPN, wc.qp_num, &qpn))
			qpn = wc.qp_num;
		text = completion_text(&wc, qpn);
		json_array_foreach(other, i, there)
			if (json_equal(text, there))
				break;
		if (i < json_array_size(other)) {
			json_array_remove(other, i);
			json_decref(text);
		} else {
			json_array_append_new(mine, text);
		}
	}
}

/* Returns the field of the request that says how many completions may come, or NULL. */
static const struct uvd_field *poll_count(const struct uvd_replay_call *c)
{
	const struct uvd_command_fields *fields = uvd_view_command(c->row);
	const struct uvd_field *f = uvd_struct_counter(fields->request, fields->response->tail, UVD_ROLE_COUNT);

	return f && uvd_field_end(f) <= c->request_len ? f : NULL;
}

/* Makes the poll for up to `num` completions. Returns what it returned. */
static long poll_make(struct uvd_replay_cq *cq, struct uvd_replay_call *c, uint32_t num)
{
	const struct uvd_field *ne = poll_count(c);
	const uint32_t room = (c->response_len - sizeof(struct ib_uverbs_poll_cq_resp)) / sizeof(struct ib_uverbs_wc);
	long ret;

	uvd_field_put(ne, num < room ? num : room, c->request);
	memset(c->response, 0, sizeof(struct ib_uverbs_poll_cq_resp));
	ret = uvd_replay_make(c);
	if (ret >= 0)
		completions_add(NULL, cq->now, cq->was, c->response, c->response_len);
	return ret;
}

/* Polls until the CQ has given as many completions as for the trace, for `ms` at most. Returns the last result. */
static long poll_until(struct uvd_replay_cq *cq, struct uvd_replay_call *c, unsigned int ms)
{
	const uint64_t end = uvd_now_ns() + ms * UINT64_C(1000000);
	const struct timespec pause = { .tv_nsec = PAUSE_US * 1000 };
	size_t was, now;
	long ret;

	for (;;) {
		was = json_array_size(cq->was);
		now = json_array_size(cq->now);
		ret = poll_make(cq, c, was > now ? was - now : 0);
		if (ret < 0 || json_array_size(cq->was) <= json_array_size(cq->now) || uvd_now_ns() >= end)
			return ret;
		nanosleep(&pause, NULL);
	}
}

bool uvd_replay_is_poll(const struct uvd_replay_call *c)
{
	return c->row && uvd_replay_is_command(c, IB_USER_VERBS_CMD_POLL_CQ) && c->was->call->result >= 0 &&
	       c->response && c->response != c->r->none && c->response_len >= sizeof(struct ib_uverbs_poll_cq_resp) &&
	       c->request && c->request != c->r->none && poll_count(c);
}

static void call_drop(struct uvd_replay_call *c)
{
	if (!c)
		return;
	uvd_replay_call_free(c);
	free(c);
}

bool uvd_replay_poll(struct uvd_replay_call *c)
{
	struct uvd_replay_cq *cq;
	uint32_t handle = 0;
	uint8_t *was = calloc(1, c->response_len);
	long ret;

	uvd_trace_uses(c->was, UVERBS_OBJECT_CQ, &handle);
	cq = cq_of(c->r, c->f->file, handle);
	if (cq && was) {
		size_t len = uvd_image_get(&c->was->image, UVD_PIECE_WRITTEN, c->response_was, was, c->response_len);

		completions_add(c, cq->was, cq->now, was, len);
		ret = poll_until(cq, c, c->f->partial || cq->late ? 0 : POLL_MS);
		cq->late = json_array_size(cq->was) > json_array_size(cq->now);
		if (ret < 0)
			uvd_replay_differs(c->r, c->was, "result", "ok", uvd_errno_name(-ret));
	}
	free(was);
	if (!cq || !was)
		return false;
	call_drop(cq->poll);
	cq->poll = c;
	c->was = NULL; /* it is the caller's */
	return true;
}

static void cq_compare(struct uvd_replay *r, struct uvd_replay_cq *cq, const struct uvd_trace_decoded *was)
{
	json_t *text;
	size_t i;

	if (cq->poll && json_array_size(cq->was) > json_array_size(cq->now))
		poll_until(cq, cq->poll, LAST_MS);
	json_array_foreach(cq->was, i, text)
		uvd_replay_differs(r, was, "completion", json_string_value(text), "missing");
	json_array_foreach(cq->now, i, text)
		uvd_replay_differs(r, was, "completion", "none", json_string_value(text));
}

static void cq_free(struct uvd_replay_cq *cq)
{
	call_drop(cq->poll);
	json_decref(cq->was);
	json_decref(cq->now);
	free(cq);
}

void uvd_replay_cq_end(struct uvd_replay *r, const struct uvd_replay_file *f, const uint32_t *handle,
		       const struct uvd_trace_decoded *was)
{
	struct uvd_replay_cq **p = &r->cqs, *cq;

	while ((cq = *p)) {
		if (cq->file != f->file || (handle && cq->handle != *handle)) {
			p = &cq->next;
			continue;
		}
		*p = cq->next;
		if (!r->given_up && !f->partial)
			cq_compare(r, cq, was);
		cq_free(cq);
	}
}
