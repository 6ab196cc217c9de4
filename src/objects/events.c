/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events of CQs, QPs, SRQs and WQs: posts and counts them, and removes the unread ones of a destroyed object. */
#include <uverbsd/log.h>
#include "objects/internal.h"

struct uvd_event_file *uvd_req_async_file(struct uvd_req *req, uint16_t attr)
{
	struct uvd_uobject *uobj = req->front == UVD_FRONT_IOCTL ? uvd_attr_uobj(req, attr) : NULL;

	if (uobj)
		return uobj->event_file ? uvd_event_file_ref(uobj->event_file) : NULL;
	return uvd_file_default_async(req->file);
}

/*
 * Counts the event first: a client that reads it may destroy the object at once, and gets the count. Subtracts it again
 * if the file drops it. Returns 0, -EPIPE or -EAGAIN, as uvd_event_file_post().
 */
static int events_post(struct uvd_event_file *file, const void *event, atomic_uint *count)
{
	int ret;

	atomic_fetch_add(count, 1);
	ret = uvd_event_file_post(file, event);
	if (ret)
		atomic_fetch_sub(count, 1);
	return ret;
}

void uvd_object_event(struct uvd_uobject *uobj, enum ibv_event_type type)
{
	struct ib_uverbs_async_event_desc event = { .element = uobj->user_handle, .event_type = type };

	if (uobj->event_file && events_post(uobj->event_file, &event, &uobj->async_events) == -EAGAIN)
		uvd_log_of_user(uobj->file->dev->engine->log, uvd_account_person(uobj->file->account), UVD_WARN,
				"an asynchronous event file is full: event %d of object %u is lost", type, uobj->id);
}

void uvd_object_completed(struct uvd_uobject *uobj)
{
	struct ib_uverbs_comp_event_desc event = { .cq_handle = uobj->user_handle };

	if (uobj->channel && events_post(uobj->channel, &event, &uobj->comp_events) == -EAGAIN)
		uvd_log_of_user(uobj->file->dev->engine->log, uvd_account_person(uobj->file->account), UVD_WARN,
				"a completion channel is full: an event of CQ %u is lost", uobj->id);
}

static bool comp_event_is(const void *event, void *arg)
{
	const struct ib_uverbs_comp_event_desc *desc = event;
	const struct uvd_uobject *uobj = arg;

	return desc->cq_handle == uobj->user_handle;
}

/* Is it an event of this object? A CQ, QP, SRQ and WQ may share a user_handle, so the event's type decides. */
static bool async_event_is(const void *event, void *arg)
{
	const struct ib_uverbs_async_event_desc *desc = event;
	const struct uvd_uobject *uobj = arg;
	uint16_t object;

	if (desc->element != uobj->user_handle)
		return false;
	switch (desc->event_type) {
	case IBV_EVENT_CQ_ERR:
		object = UVERBS_OBJECT_CQ;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		object = UVERBS_OBJECT_SRQ;
		break;
	case IBV_EVENT_WQ_FATAL:
		object = UVERBS_OBJECT_WQ;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		object = UVERBS_OBJECT_QP;
		break;
	default:
		return false; /* of the device, of a port, or a plug-in's own */
	}
	return uobj->row->id == object;
}

static void release_one(struct uvd_event_file **file, atomic_uint *count, bool (*match)(const void *event, void *arg),
			struct uvd_uobject *uobj)
{
	unsigned int unread;

	if (!*file)
		return;
	unread = uvd_event_file_take_back(*file, match, uobj);
	/* If another object has the same user_handle, this has removed the events of both. */
	if (unread > atomic_load(count))
		unread = atomic_load(count);
	atomic_fetch_sub(count, unread);
	uvd_event_file_put(*file);
	*file = NULL;
}

void uvd_uobject_release_events(struct uvd_uobject *uobj)
{
	release_one(&uobj->channel, &uobj->comp_events, comp_event_is, uobj);
	release_one(&uobj->event_file, &uobj->async_events, async_event_is, uobj);
}

int uvd_object_free(struct uvd_uobject *uobj)
{
	free(uobj->object);
	uobj->object = NULL;
	uvd_uobject_release_events(uobj);
	return 0;
}
