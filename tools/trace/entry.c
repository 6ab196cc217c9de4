/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decodes entries of mapped queues: the work requests that the engine took, and the completions that it wrote. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <uverbsd/queue.h>

#include "reader.h"

/* The commands that carry such structs in their requests or responses. */
static const struct uvd_struct *entry_struct(unsigned int kind)
{
	switch (kind) {
	case UVD_QUEUE_SEND:
		return uvd_command_fields("IB_USER_VERBS_CMD_POST_SEND")->request->tail_of;
	case UVD_QUEUE_RECV:
		return uvd_command_fields("IB_USER_VERBS_CMD_POST_RECV")->request->tail_of;
	case UVD_QUEUE_CQ:
		return uvd_command_fields("IB_USER_VERBS_CMD_POLL_CQ")->response->tail_of;
	default:
		return NULL;
	}
}

/* Adds "qp_handle", and names the object. */
static void entry_add_handle(struct uvd_trace_decoded *d, const struct uvd_trace_entry *e)
{
	const char *object = d->script ? uvd_view_object(&d->script->view, e->object) : NULL;
	char name[UVD_SHORT_NAME + sizeof("_handle")];
	size_t i;

	if (object)
		uvd_short_object(object, d->object);
	else
		snprintf(d->object, sizeof(d->object), "object_0x%x", e->object);
	for (i = 0; d->object[i]; i++)
		name[i] = tolower((unsigned char)d->object[i]);
	strcpy(name + i, "_handle");
	json_object_set_new(d->in, name, json_integer(e->handle));
	uvd_trace_handle(d, name, e->object, e->handle);
}

static void entry_add_request(struct uvd_trace_decoded *d, const struct uvd_trace_entry *e, const struct uvd_struct *of)
{
	const uint8_t *bytes = (const uint8_t *)(e + 1), *sges;
	size_t left, used;

	snprintf(d->verb, sizeof(d->verb), e->kind == UVD_QUEUE_SEND ? "send_wr" : "recv_wr");
	sges = bytes + (e->bytes < of->size ? e->bytes : of->size);
	left = bytes + e->bytes - sges;
	used = uvd_trace_work_request(d, "wr", of, bytes, e->bytes, sges, left);
	/* The address is in the entry, and not in an AH. */
	json_object_del(d->in, "wr.wr.ud.ah");
	if (left > used)
		uvd_result_set_hex(d->in, "wr.inline", sges + used, left - used);
}

void uvd_trace_decode_entry(struct uvd_trace_reader *r, const struct uvd_trace_entry *e, struct uvd_trace_decoded *d)
{
	const struct uvd_struct *of = entry_struct(e->kind);

	*d = (struct uvd_trace_decoded){ .entry = true };
	uvd_trace_decoded_start(d);
	d->open = uvd_trace_find(r, e->file);
	d->script = d->open && d->open->names ? &d->open->names->script : NULL;
	d->stand_in = (struct uvd_trace_call){ .file = e->file, .begin = e->time };
	d->stand_in.pid = d->stand_in.tid = d->open ? d->open->file.pid : 0;
	d->call = &d->stand_in;
	entry_add_handle(d, e);
	snprintf(d->verb, sizeof(d->verb), "wc");
	if (of && e->kind != UVD_QUEUE_CQ)
		entry_add_request(d, e, of);
	else if (of)
		uvd_trace_struct(d, d->out, "wc", of, (const uint8_t *)(e + 1), e->bytes);
}
