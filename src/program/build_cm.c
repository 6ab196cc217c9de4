/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Builds the bytes of a command of rdma_cm. Its items are those of write() (build.c), without the driver's. Knobs: command, in and
 * out (of the header, while `in=N` and `out=N` change the sizes themselves), response, len, edge.
 */
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "cm.h"
#include "record.h"

enum { CM_HEADER = sizeof(struct rdma_ucm_cmd_hdr), CM_NAMED = 1024 };

/* Sets the sizes of socket addresses that the program does not give. */
static void cm_fill_sizes(const struct uvd_prog_call *call, const struct uvd_shape_command *shape, uint8_t *core)
{
	char preset[UVD_PROG_MAX_ITEM];
	uint8_t room[128];

	for (unsigned int f = 0; f < shape->in.n; f++) {
		const struct uvd_field *addr = shape->in.f[f].field,
				       *size = uvd_shape_field_role(&shape->in.f[f]) == UVD_ROLE_SOCKADDR
						       ? uvd_field_beside(shape->request, addr)
						       : NULL;
		const char *word = uvd_build_given(call, &shape->in.f[f]);

		if (!size || uvd_prog_item(call, size->name))
			continue;
		uvd_field_put(
			size,
			uvd_sockaddr_parse(word ? word : uvd_build_preset(&shape->in.f[f], preset), room, sizeof(room)),
			core);
	}
}

const char *uvd_prog_build_cm(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
			      struct uvd_prog_built *b)
{
	static uint8_t msg[UVD_PROG_MSG_SIZE];
	const struct uvd_prog_call *call = &p->calls[i];
	const struct uvd_shape_cm *cm = uvd_shape_cm(call->target);
	const struct uvd_shape_command *shape = cm ? &cm->command : NULL;
	const char *wrong = uvd_build_items_check(call, shape), *edge = uvd_prog_item(call, "!edge");
	struct rdma_ucm_cmd_hdr hdr;
	size_t in, out, len, readable;

	if (!cm && call->target[0] != '#')
		return "no such command";
	if (wrong)
		return wrong;
	memset(msg, 0, sizeof(msg));
	in = uvd_build_size(run, p, i, "in", shape ? shape->in_size : 0);
	out = uvd_build_size(run, p, i, "out", shape ? shape->out_size : 0);
	if (shape) {
		uvd_build_fill(run, p, i, shape, msg + CM_HEADER);
		cm_fill_sizes(call, shape, msg + CM_HEADER);
	}
	if (shape && shape->response) {
		const uint64_t at = uvd_build_knob(run, p, i, "!response", UVD_PROG_OUT(run));

		memcpy(msg + CM_HEADER + cm->response_at, &at, sizeof(at));
	}
	hdr.cmd = uvd_build_knob(run, p, i, "!command", shape ? shape->number : strtoull(call->target + 1, NULL, 0));
	hdr.in = uvd_build_knob(run, p, i, "!in", in);
	hdr.out = uvd_build_knob(run, p, i, "!out", out);
	memcpy(msg, &hdr, sizeof(hdr));
	len = CM_HEADER + in;
	/* The whole struct is read, whatever the header says. */
	readable = CM_HEADER + (shape && shape->in_size > in ? shape->in_size : in);
	uvd_build_spoil(call, msg, readable);
	b->len = uvd_build_size(run, p, i, "!len", len);
	readable = edge ? strtoull(edge, NULL, 0) : b->len > readable ? b->len : readable;
	uvd_build_place(run, i, b, msg, readable);
	out = hdr.out < CM_NAMED ? hdr.out : CM_NAMED;
	uvd_prog_region_add(&run->records[i], "", 0, out,
			    cm ? uvd_shape_cm_out(cm, msg + CM_HEADER, shape->in_size) : (struct uvd_shape_fields){});
	return NULL;
}
