/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion channels: event files for completion events (struct ib_uverbs_comp_event_desc). */
#include "objects/internal.h"

static int comp_channel_decode_create(struct uvd_req *req)
{
	struct ib_uverbs_create_comp_channel cmd;

	return uvd_core_in(req, &cmd);
}

/* A channel is useless without an fd in the client, so the call fails where none can be granted. */
static int create_comp_channel(struct uvd_req *req)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct uvd_uobject *uobj;
	int ret = uvd_req_new(req, UVERBS_OBJECT_COMP_CHANNEL, &uobj);

	if (ret)
		return ret;
	uobj->event_file = uvd_event_file_new(sizeof(struct ib_uverbs_comp_event_desc), req->file->account, &ret);
	if (!uobj->event_file)
		return ret;
	uvd_req_grant(req, uobj, req->core_out.addr + offsetof(struct ib_uverbs_create_comp_channel_resp, fd), false,
		      false);
	return uvd_core_out(req, &resp);
}

/* Wakes threads that wait on the channel when the file is closed or the device is removed (event-09, event-10). */
static int comp_channel_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	if (uobj->event_file && why != UVD_REMOVE_ABORT)
		uvd_event_file_hang_up(uobj->event_file);
	return 0;
}

static const uvd_step comp_channel_create_steps[] = { comp_channel_decode_create, create_comp_channel, NULL };

static const struct uvd_write_row comp_channel_writes[] = {
	UVD_WRITE(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, UVD_WRITE_RESP, sizeof(struct ib_uverbs_create_comp_channel),
		  sizeof(struct ib_uverbs_create_comp_channel_resp), comp_channel_create_steps),
};

const struct uvd_object_row uvd_object_comp_channel = {
	.name = "UVERBS_OBJECT_COMP_CHANNEL",
	.id = UVERBS_OBJECT_COMP_CHANNEL,
	.cls = UVD_CLASS_FD,
	.destroy = comp_channel_destroy_uobj,
	UVD_ROWS(writes, comp_channel_writes),
	.needs = { UVD_OP(dealloc_pd) },
};
