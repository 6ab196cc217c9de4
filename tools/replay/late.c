/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order of a replay. A trace has a call where it ended, and the GET_EVENT of a server can end before the CONNECT of its client,
 * which has caused the event. So a GET_EVENT whose event does not come waits, and what began before it ended is done first.
 */
#include <stdlib.h>
#include <string.h>

#include "replay.h"

/*
 * LATE_SHORT_MS: an event has this time before later records are read. LATE_LAST_MS: and this time if that does not help. LATE_BLOCKED: records
 * that are read until then. LATE_MOST: records that wait, of a trace with wrong times.
 */
enum { LATE_SHORT_MS = 100, LATE_LAST_MS = 10000, LATE_BLOCKED = 16, LATE_MOST = 256 };

struct uvd_replay_late {
	struct uvd_replay_late *next;
	struct uvd_trace_call *call; /* a copy of the record */
	unsigned int number;
	uint64_t begin, end;
	bool gets_event;
	struct rdma_ucm_event_resp event; /* that it got */
};

/* What keeps records from being replayed. */
struct blocked {
	struct uvd_replay_late *event; /* the first one that does not come, or NULL */
	unsigned int calls; /* that began after it */
	unsigned int all;
};

static bool late_gets_event(struct uvd_replay *r, const struct uvd_trace_call *call, struct rdma_ucm_event_resp *event)
{
	const struct uvd_trace_open *open_was = uvd_trace_find(&r->reader, call->file);

	return open_was && uvd_replay_opens_cm(open_was) && uvd_replay_gets_event(call, event);
}

/* Returns false without memory. */
static bool late_add(struct uvd_replay *r, const struct uvd_trace_call *call, const struct rdma_ucm_event_resp *event)
{
	struct uvd_replay_late *l = calloc(1, sizeof(*l)), **end = &r->late;

	if (l)
		l->call = malloc(call->record.len);
	if (!l || !l->call) {
		free(l);
		return false;
	}
	memcpy(l->call, call, call->record.len);
	l->number = r->calls;
	l->begin = call->begin;
	l->end = call->begin + call->duration;
	if (event) {
		l->gets_event = true;
		l->event = *event;
	}
	while (*end)
		end = &(*end)->next;
	*end = l;
	return true;
}

static void late_free(struct uvd_replay_late *l)
{
	free(l->call);
	free(l);
}

/* Replays the record at *p, and removes it. Returns false after a message. */
static bool late_replay(struct uvd_replay *r, struct uvd_replay_late **p)
{
	struct uvd_replay_late *l = *p;
	bool ok;

	*p = l->next;
	r->call = l->number;
	ok = uvd_replay_record(r, &l->call->record);
	late_free(l);
	return ok;
}

/* Has its event come? One on a file that cannot be opened is left to its call. */
static bool late_comes(struct uvd_replay *r, struct uvd_replay_late *l, int ms)
{
	struct uvd_replay_file *f = uvd_replay_file_of(r, uvd_trace_find(&r->reader, l->call->file));

	return !f || uvd_replay_event_comes(r, f, &l->event, ms);
}

/* Replays all that depends on no event that has not come. Returns false after a message. */
static bool late_pass(struct uvd_replay *r, struct blocked *b)
{
	struct uvd_replay_late **p = &r->late;
	uint64_t until = UINT64_MAX;

	*b = (struct blocked){};
	while (*p) {
		struct uvd_replay_late *l = *p;
		const bool blocked = l->begin >= until;

		if (blocked || (l->gets_event && !late_comes(r, l, 0))) {
			b->all++;
			b->calls += blocked;
			if (!blocked && l->end < until)
				until = l->end;
			if (!b->event)
				b->event = l;
			p = &l->next;
		} else if (!late_replay(r, p)) {
			return false;
		}
	}
	return true;
}

static bool late_give_up(struct uvd_replay *r, struct uvd_replay_late *event)
{
	struct uvd_replay_late **p = &r->late;

	while (*p != event)
		p = &(*p)->next;
	return late_replay(r, p);
}

/* last: no record follows that could help. */
static bool late_run(struct uvd_replay *r, bool last)
{
	struct blocked b;

	while (late_pass(r, &b)) {
		if (!b.event || (!last && !b.calls && b.all < LATE_MOST))
			return true;
		if (late_comes(r, b.event, LATE_SHORT_MS))
			continue;
		if (!last && b.calls < LATE_BLOCKED && b.all < LATE_MOST)
			return true;
		if (!r->cm_differs && late_comes(r, b.event, LATE_LAST_MS))
			continue;
		if (!late_give_up(r, b.event))
			return false;
	}
	return false;
}

bool uvd_replay_in_order(struct uvd_replay *r, const struct uvd_trace_record *record)
{
	const struct uvd_trace_call *call = (const void *)record;
	struct rdma_ucm_event_resp event;
	bool gets_event;

	if (record->kind == UVD_TRACE_CLOSE && !uvd_replay_late_end(r))
		return false;
	if (record->kind != UVD_TRACE_CALL)
		return uvd_replay_record(r, record);
	r->call = ++r->calls;
	gets_event = late_gets_event(r, call, &event);
	if (!r->late && !gets_event)
		return uvd_replay_record(r, record);
	/* Without memory it is replayed where it stands. */
	if (!late_add(r, call, gets_event ? &event : NULL))
		return uvd_replay_record(r, record);
	return late_run(r, false);
}

bool uvd_replay_late_end(struct uvd_replay *r)
{
	return late_run(r, true);
}

void uvd_replay_late_free(struct uvd_replay *r)
{
	struct uvd_replay_late *l;

	while ((l = r->late)) {
		r->late = l->next;
		late_free(l);
	}
}
