/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of rdma_cm. Those of one identifier come in one order; which identifier of a file comes first depends on time. So a
 * GET_EVENT takes the first event of the identifier that the recorded one is about, and the others wait for theirs.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay.h"

enum { FAILS_MS = 200 };

/* Of enum rdma_cm_event_type, which librdmacm has. */
enum { EVENT_CONNECT_REQUEST = 4, EVENT_MULTICAST_JOIN = 12, EVENT_MULTICAST_ERROR = 13 };

struct uvd_replay_event {
	struct uvd_replay_event *next;
	struct rdma_ucm_event_resp resp;
};

struct get_event {
	struct rdma_ucm_cmd_hdr hdr;
	struct rdma_ucm_get_event cmd;
};

/* ---- what the trace has ------------------------------------------------------------------------------------------ */

static bool image_has_event(const struct uvd_trace_image *image, struct rdma_ucm_event_resp *was)
{
	const struct uvd_piece *first = uvd_image_first(image);
	struct get_event get = {};

	if (!first)
		return false;
	if (first->kind == UVD_PIECE_COMMAND)
		memcpy(&get, first + 1, first->kept < sizeof(get) ? first->kept : sizeof(get));
	else
		uvd_image_get(image, UVD_PIECE_READ, first->addr, &get, sizeof(get));
	return get.hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT &&
	       uvd_image_get(image, UVD_PIECE_WRITTEN, get.cmd.response, was, sizeof(*was)) >=
		       offsetof(struct rdma_ucm_event_resp, param);
}

bool uvd_replay_gets_event(const struct uvd_trace_call *call, struct rdma_ucm_event_resp *was)
{
	struct uvd_trace_image image = { .pieces = (const uint8_t *)(call + 1), .len = call->pieces };
	bool has;

	if (call->flags & UVD_TRACE_CALL_IOCTL || call->result <= 0 || !uvd_image_ok(&image))
		return false;
	memset(was, 0, sizeof(*was));
	has = uvd_image_index(&image) && image_has_event(&image, was);
	uvd_image_index_free(&image);
	return has;
}

/* ---- what the device has ----------------------------------------------------------------------------------------- */

static enum uvd_role event_kind(const struct rdma_ucm_event_resp *resp)
{
	const bool group = resp->event == EVENT_MULTICAST_JOIN || resp->event == EVENT_MULTICAST_ERROR;

	return group ? UVD_REPLAY_GROUP : UVD_ROLE_HANDLE;
}

static const struct uvd_prog_number *event_id(const struct uvd_replay *r, const struct rdma_ucm_event_resp *was)
{
	return uvd_prog_numbers_find(&r->numbers, event_kind(was), UVD_REPLAY_CM_SCOPE, was->id);
}

/* The identifier of a request is new: it is of the listener, whose cookie the event has. */
static bool event_stands_for(const struct uvd_replay *r, const struct rdma_ucm_event_resp *now,
			     const struct rdma_ucm_event_resp *was)
{
	const struct uvd_prog_number *id = event_id(r, was);

	if (was->event == EVENT_CONNECT_REQUEST || now->event == EVENT_CONNECT_REQUEST)
		return was->event == now->event && was->uid == now->uid;
	return event_kind(was) == event_kind(now) && now->id == (id ? id->ours : was->id);
}

static struct uvd_replay_event **event_find(const struct uvd_replay *r, struct uvd_replay_file *f,
					    const struct rdma_ucm_event_resp *was)
{
	struct uvd_replay_event **p = &f->events;

	while (*p && !event_stands_for(r, &(*p)->resp, was))
		p = &(*p)->next;
	return *p ? p : NULL;
}

/* Gets one more event from the device. Returns false if there is none within `ms`. */
static bool event_fetch(const struct uvd_replay *r, struct uvd_replay_file *f, int ms)
{
	struct uvd_replay_event *e = calloc(1, sizeof(*e)), **end = &f->events;
	struct get_event get = { { RDMA_USER_CM_CMD_GET_EVENT, sizeof(get.cmd), sizeof(e->resp) } };
	struct pollfd pfd = { .fd = f->fd, .events = POLLIN };
	bool ok = e && poll(&pfd, 1, ms) == 1;

	if (ok) {
		get.cmd.response = (uintptr_t)&e->resp;
		uvd_replay_asks(r, "CM_ID.GET_EVENT");
		ok = write(f->fd, &get, sizeof(get)) == sizeof(get);
		uvd_replay_answered();
	}
	if (!ok) {
		free(e);
		return false;
	}
	while (*end)
		end = &(*end)->next;
	*end = e;
	return true;
}

bool uvd_replay_event_comes(const struct uvd_replay *r, struct uvd_replay_file *f,
			    const struct rdma_ucm_event_resp *was, int ms)
{
	const struct uvd_prog_number *id = event_id(r, was);

	/* No event comes of an identifier that is not there. */
	if (id && id->state == UVD_PROG_NUMBER_LOST && was->event != EVENT_CONNECT_REQUEST)
		return true;
	while (!event_find(r, f, was))
		if (!event_fetch(r, f, ms))
			return false;
	return true;
}

void uvd_replay_events_move(struct uvd_replay_file *from, struct uvd_replay_file *to, uint32_t id)
{
	struct uvd_replay_event **p = &from->events, **end = &to->events, *e;

	while (*end)
		end = &(*end)->next;
	while (from != to && (e = *p)) {
		if (e->resp.id != id || event_kind(&e->resp) != UVD_ROLE_HANDLE) {
			p = &e->next;
			continue;
		}
		*p = e->next;
		e->next = NULL;
		*end = e;
		end = &e->next;
	}
}

void uvd_replay_events_free(struct uvd_replay_file *f)
{
	struct uvd_replay_event *e;

	while ((e = f->events)) {
		f->events = e->next;
		free(e);
	}
}

/* ---- GET_EVENT --------------------------------------------------------------------------------------------------- */

/* Why the event need not come, or NULL. */
static const char *event_excuse(const struct uvd_replay_call *c, const struct rdma_ucm_event_resp *was)
{
	const struct uvd_prog_number *id = event_id(c->r, was);

	if (id && id->state == UVD_PROG_NUMBER_LOST && was->event != EVENT_CONNECT_REQUEST)
		return "it uses an object that was not created again";
	return c->r->cm_differs ? "a command of rdma_cm before it had another result" : NULL;
}

static void event_missing(struct uvd_replay_call *c, const struct rdma_ucm_event_resp *was)
{
	const char *name = json_string_value(json_object_get(c->was->out, "event"));

	c->skip = event_excuse(c, was);
	if (c->skip) {
		uvd_replay_skip(c);
		return;
	}
	uvd_replay_differs(c->r, c->was, "event", name ? name : "one", "missing");
	c->r->cm_differs = true;
	if (c->was->creates)
		uvd_replay_learn_lost(c, UVD_ROLE_HANDLE, c->was->created);
}

static void event_take(struct uvd_replay_call *c, struct uvd_replay_event **at)
{
	struct uvd_replay_event *e = *at;

	*at = e->next;
	if (c->response)
		memcpy(c->response, &e->resp, c->response_len < sizeof(e->resp) ? c->response_len : sizeof(e->resp));
	free(e);
	uvd_replay_compare(c, c->len);
}

bool uvd_replay_event(struct uvd_replay_call *c)
{
	struct pollfd pfd = { .fd = c->f->fd, .events = POLLIN };
	struct rdma_ucm_event_resp was;
	struct uvd_replay_event **at;

	if (!uvd_replay_is_cm(c, RDMA_USER_CM_CMD_GET_EVENT))
		return false;
	if (!uvd_replay_gets_event(c->was->call, &was)) {
		poll(&pfd, 1, c->was->call->result == -EFAULT ? FAILS_MS : 0);
		return false;
	}
	at = event_find(c->r, c->f, &was);
	if (at)
		event_take(c, at);
	else
		event_missing(c, &was);
	return true;
}
