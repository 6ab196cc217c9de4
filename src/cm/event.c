/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events of a file: struct ucma_event. */
#include <stdlib.h>
#include "account/account.h"
#include "cm/internal.h"

struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type event, int status)
{
	struct cm_event *ev;

	if (uvd_account_charge(id->file->account, UVD_RES_BYTES, sizeof(*ev)))
		return NULL;
	ev = calloc(1, sizeof(*ev));
	if (!ev) {
		uvd_account_uncharge(id->file->account, UVD_RES_BYTES, sizeof(*ev));
		return NULL;
	}
	ev->account = id->file->account ? uvd_account_ref(id->file->account) : NULL;
	ev->id = id;
	list_add_tail(&ev->of_id, &id->events);
	ev->resp = (struct rdma_ucm_event_resp){ .uid = id->uid, .id = id->number, .event = event, .status = status };
	return ev;
}

static void event_free(struct cm_event *ev)
{
	list_del_init(&ev->of_id);
	if (ev->made)
		ev->made->made_by = NULL;
	uvd_account_uncharge(ev->account, UVD_RES_BYTES, sizeof(*ev));
	uvd_account_put(ev->account);
	free(ev);
}

static void events_changed(struct uvd_cm_file *file, bool added)
{
	if (file->ops && file->ops->events)
		file->ops->events(file->owner, file->num_events, added);
}

/* All of them: as with the kernel's wake-up, each looks for an event itself. */
static void wake_waiters(struct uvd_cm_file *file)
{
	struct uvd_cm_waiter *waiter;

	while (!list_empty(&file->waiters)) {
		waiter = list_first_entry(&file->waiters, struct uvd_cm_waiter, of_file);
		list_del_init(&waiter->of_file);
		waiter->ready(waiter);
	}
}

static void event_enter(struct uvd_cm_file *file, struct cm_event *ev, bool first)
{
	if (first)
		list_add(&ev->of_file, &file->events);
	else
		list_add_tail(&ev->of_file, &file->events);
	file->num_events++;
	events_changed(file, true);
	wake_waiters(file);
}

static void event_leave(struct uvd_cm_file *file, struct cm_event *ev)
{
	list_del_init(&ev->of_file);
	file->num_events--;
	events_changed(file, false);
}

void cm_event_post(struct cm_event *ev)
{
	event_enter(ev->id->file, ev, false);
}

void cm_event_tell(struct cm_id *id, enum cm_event_type event, int status)
{
	struct cm_event *ev = id->uid ? cm_event_new(id, event, status) : NULL;

	if (ev)
		cm_event_post(ev);
}

/* ---- GET_EVENT --------------------------------------------------------------------------------------------------- */

static void event_count(struct cm_event *ev, int n)
{
	ev->id->reported += n;
	if (ev->mcast)
		ev->mcast->reported += n;
	if (ev->resp.event == CM_EVENT_CONNECT_REQUEST)
		ev->id->backlog += n;
}

/*
 * The event counts as reported from here on: were its identifier destroyed now, the owner of that would have to wait for the thread
 * that has this event, and so DESTROY_ID must count it.
 */
struct cm_event *cm_event_take(struct uvd_cm_file *file)
{
	struct cm_event *ev;

	if (list_empty(&file->events))
		return NULL;
	ev = list_first_entry(&file->events, struct cm_event, of_file);
	event_leave(file, ev);
	ev->reporting = true;
	event_count(ev, 1);
	return ev;
}

void cm_event_reported(struct cm_event *ev)
{
	event_free(ev);
}

/* The client's memory could not be written. If the identifier is gone meanwhile, so is the event. */
void cm_event_give_back(struct cm_event *ev)
{
	if (!ev->id) {
		event_free(ev);
		return;
	}
	event_count(ev, -1);
	ev->reporting = false;
	event_enter(ev->id->file, ev, true);
}

/* ---- events are dropped ------------------------------------------------------------------------------------------ */

/* A connection that was not reported ends with its event: nobody knows its identifier (ucma_cleanup_ctx_events()). */
static void event_drop(struct cm_event *ev)
{
	struct cm_id *made = ev->made;

	event_leave(ev->id->file, ev);
	event_free(ev);
	if (made)
		cm_id_destroy(made);
}

void cm_events_drop_id(struct cm_id *id)
{
	struct cm_event *ev;

	if (id->made_by)
		id->made_by->made = NULL;
	while (!list_empty(&id->events)) {
		ev = list_first_entry(&id->events, struct cm_event, of_id);
		if (!ev->reporting) {
			event_drop(ev);
			continue;
		}
		list_del_init(&ev->of_id);
		ev->id = NULL;
		ev->mcast = NULL;
	}
}

void cm_events_drop_mcast(struct cm_mcast *mcast)
{
	struct cm_event *ev, *next;

	list_for_each_entry_safe(ev, next, &mcast->id->events, of_id) {
		if (ev->mcast != mcast)
			continue;
		if (ev->reporting)
			ev->mcast = NULL;
		else
			event_drop(ev);
	}
}

void cm_events_move(struct cm_id *id, struct uvd_cm_file *to)
{
	struct cm_event *ev;

	list_for_each_entry(ev, &id->events, of_id) {
		if (ev->reporting)
			continue;
		event_leave(id->file, ev);
		event_enter(to, ev, false);
	}
}
