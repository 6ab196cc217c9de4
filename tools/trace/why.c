/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --why: remembers the calls of each QP, and prints them with the explanations of that QP: those of both ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* QPS: that are remembered. SETTINGS, POSTS: calls of each, the latest, and the one that has created it. */
enum { QPS = 1024, SETTINGS = 16, POSTS = 8 };

struct qp_history {
	struct qp_history *next;
	uint64_t file;
	uint32_t handle, qpn;
	int64_t peer; /* the QP number that it is connected to; -1: none */
	char device[sizeof(((struct uvd_trace_file *)NULL)->ibdev)];
	json_t *calls; /* [{"post": bool, "line": text or object}], in their order */
};

struct uvd_trace_history {
	bool as_json;
	struct qp_history *qps; /* the newest first */
};

struct uvd_trace_history *uvd_trace_history_new(bool as_json)
{
	struct uvd_trace_history *h = calloc(1, sizeof(*h));

	if (h)
		h->as_json = as_json;
	return h;
}

static void qp_history_free(struct qp_history *qp)
{
	json_decref(qp->calls);
	free(qp);
}

void uvd_trace_history_free(struct uvd_trace_history *h)
{
	struct qp_history *qp;

	while (h && (qp = h->qps)) {
		h->qps = qp->next;
		qp_history_free(qp);
	}
	free(h);
}

/* ---- taking calls ------------------------------------------------------------------------------------------------ */

/* Forgets the QP of this handle, which is another one now, and the oldest of too many. */
static void history_forget(struct uvd_trace_history *h, uint64_t file, uint32_t handle)
{
	struct qp_history **at = &h->qps, *qp;
	unsigned int num = 0;

	while ((qp = *at)) {
		if ((qp->file != file || qp->handle != handle) && ++num < QPS) {
			at = &qp->next;
			continue;
		}
		*at = qp->next;
		qp_history_free(qp);
	}
}

static void history_begin(struct uvd_trace_history *h, const struct uvd_trace_decoded *d)
{
	struct qp_history *qp;
	const char *name;
	json_t *value;

	history_forget(h, d->call->file, d->created);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return;
	qp->file = d->call->file;
	qp->handle = d->created;
	qp->peer = -1;
	qp->calls = json_array();
	if (d->open)
		memcpy(qp->device, d->open->file.ibdev, sizeof(qp->device));
	json_object_foreach(d->out, name, value)
		if (uvd_trace_output_role(d, name) == UVD_ROLE_QPN)
			qp->qpn = json_integer_value(value);
	qp->next = h->qps;
	h->qps = qp;
}

static struct qp_history *history_of(struct uvd_trace_history *h, const struct uvd_trace_decoded *d)
{
	struct qp_history *qp = h->qps;
	uint32_t handle = d->created;

	if (!(d->creates && d->created_object == UVERBS_OBJECT_QP) && !uvd_trace_uses(d, UVERBS_OBJECT_QP, &handle))
		return NULL;
	while (qp && (qp->file != d->call->file || qp->handle != handle))
		qp = qp->next;
	return qp;
}

/* Drops the oldest call of this kind if there are `most`, but not the first call of all. */
static void calls_shorten(json_t *calls, bool post, size_t most)
{
	size_t i, num = 0, oldest = 0;
	json_t *call;

	json_array_foreach(calls, i, call)
		if (i && json_is_true(json_object_get(call, "post")) == post) {
			num++;
			oldest = oldest ?: i;
		}
	if (num >= most)
		json_array_remove(calls, oldest);
}

static json_t *call_line(const struct uvd_trace_history *h, const struct uvd_trace_decoded *d)
{
	char *text = NULL;
	size_t len = 0;
	json_t *line;
	FILE *to;

	if (h->as_json)
		return uvd_trace_json(d);
	to = open_memstream(&text, &len);
	if (!to)
		return NULL;
	uvd_trace_print(to, d);
	fclose(to);
	line = json_stringn(text, len);
	free(text);
	return line;
}

/* Notes the QP number that a MODIFY_QP connects to. */
static void take_peer(struct qp_history *qp, const struct uvd_trace_decoded *d)
{
	static const char field[] = "dest_qp_num";
	const char *name;
	json_t *value;

	json_object_foreach(d->in, name, value) {
		const size_t len = strlen(name);

		if (len >= strlen(field) && !strcmp(name + len - strlen(field), field) && d->call->result >= 0)
			qp->peer = json_integer_value(value);
	}
}

void uvd_trace_history_add(struct uvd_trace_history *h, const struct uvd_trace_decoded *d)
{
	const bool post = strstr(d->verb, "POST_") || d->entry;
	struct qp_history *qp;

	if (d->creates && d->created_object == UVERBS_OBJECT_QP)
		history_begin(h, d);
	else if (!post && !strstr(d->verb, "MODIFY") && !strstr(d->verb, "DESTROY"))
		return;
	qp = history_of(h, d);
	if (!qp)
		return;
	take_peer(qp, d);
	calls_shorten(qp->calls, post, post ? POSTS : SETTINGS);
	json_array_append_new(qp->calls, json_pack("{s:b, s:o*}", "post", post, "line", call_line(h, d)));
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static struct qp_history *history_find(struct uvd_trace_history *h, uint64_t file, const char *device, uint32_t qpn)
{
	struct qp_history *qp, *found = NULL;

	for (qp = h->qps; qp; qp = qp->next)
		if (qp->qpn == qpn && !strcmp(qp->device, device)) {
			found = found ?: qp;
			if (qp->file == file)
				return qp;
		}
	return found;
}

/* The other end is the QP that is connected to this one, or one of the same device with that number. */
static struct qp_history *history_find_peer(struct uvd_trace_history *h, const struct qp_history *own)
{
	struct qp_history *qp;

	if (own->peer < 0)
		return NULL;
	for (qp = h->qps; qp; qp = qp->next)
		if (qp->qpn == own->peer && qp->peer == own->qpn)
			return qp;
	return history_find(h, own->file, own->device, own->peer);
}

static void calls_print(FILE *to, const struct qp_history *qp)
{
	size_t i;
	json_t *call;

	json_array_foreach(qp->calls, i, call)
		fprintf(to, "    %s", json_string_value(json_object_get(call, "line")) ?: "\n");
}

static json_t *calls_json(const struct qp_history *qp)
{
	json_t *lines = json_array(), *call;
	size_t i;

	json_array_foreach(qp->calls, i, call)
		json_array_append(lines, json_object_get(call, "line"));
	return lines;
}

static void history_print_json(FILE *to, json_t *o, const struct qp_history *own, const struct qp_history *peer)
{
	if (own)
		json_object_set_new(o, "calls", calls_json(own));
	if (own && own->peer >= 0)
		json_object_set_new(o, "peer", json_integer(own->peer));
	if (peer)
		json_object_set_new(o, "peer_calls", calls_json(peer));
	uvd_trace_print_line(to, o);
}

void uvd_trace_history_print(struct uvd_trace_history *h, FILE *to, struct uvd_trace_reader *r,
			     const struct uvd_trace_why *why)
{
	json_t *o = uvd_trace_why_json(r, why);
	const char *object = json_string_value(json_object_get(o, "object")),
		   *device = json_string_value(json_object_get(o, "device"));
	struct qp_history *own = NULL, *peer = NULL;

	if (object && device && !strcmp(object, "QP"))
		own = history_find(h, why->file, device, json_integer_value(json_object_get(o, "number")));
	if (own)
		peer = history_find_peer(h, own);
	if (h->as_json) {
		history_print_json(to, o, own, peer == own ? NULL : peer);
		return;
	}
	json_decref(o);
	uvd_trace_print_why(to, r, why, false);
	if (own)
		calls_print(to, own);
	if (peer && peer != own) {
		fprintf(to, "  the peer:\n");
		calls_print(to, peer);
	} else if (own && own->peer >= 0 && !peer) {
		fprintf(to, "  the peer, QP 0x%x, is not in this trace\n", (unsigned int)own->peer);
	}
}
