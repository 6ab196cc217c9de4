/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Asynchronous event files (struct ib_uverbs_async_event_desc). An open file's first one is made by GET_CONTEXT of the
 * write() ABI (device.c), or by the method below.
 */
#include "objects/internal.h"

static int alloc_async_event(struct uvd_req *req)
{
	struct uvd_uobject *uobj = uvd_attr_uobj(req, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
	int ret;

	uobj->event_file = uvd_event_file_new(sizeof(struct ib_uverbs_async_event_desc), req->file->account, &ret);
	if (!uobj->event_file)
		return ret;
	/* The number of the new fd is written to the attribute itself. */
	uvd_req_grant(req, uobj, uvd_attr_addr(req, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE), true, true);
	return 0;
}

/* Closing the device file leaves the event file open; removal of the device posts DEVICE_FATAL (event-09, event-10). */
static int async_event_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	if (why == UVD_REMOVE_DRIVER_REMOVE)
		uvd_object_event(uobj, IBV_EVENT_DEVICE_FATAL);
	return 0;
}

static const uvd_step async_event_alloc_steps[] = { alloc_async_event, NULL };

static const struct uvd_attr_row async_event_alloc_attrs[] = {
	UVD_FD(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, UVERBS_OBJECT_ASYNC_EVENT, UVD_UOBJ_NEW, UVD_MANDATORY),
};

static const struct uvd_method_row async_event_methods[] = {
	UVD_METHOD(UVERBS_METHOD_ASYNC_EVENT_ALLOC, async_event_alloc_attrs, async_event_alloc_steps),
};

const struct uvd_object_row uvd_object_async_event = {
	.name = "UVERBS_OBJECT_ASYNC_EVENT",
	.id = UVERBS_OBJECT_ASYNC_EVENT,
	.cls = UVD_CLASS_FD,
	.destroy = async_event_destroy_uobj,
	UVD_ROWS(methods, async_event_methods),
};
