/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Mistakes of a handler that no reply shows: told by name in the log, once for each kind. */
#include <stdio.h>
#include <uverbsd/log.h>

#include "dispatch/internal.h"

static void check_tell(struct uvd_req *req, const struct uvd_attr *attr, const char *mistake)
{
	struct uvd_log *log = req->dev->engine->log;
	char kind[192];

	snprintf(kind, sizeof(kind), "%s: %s: %s", req->name, attr->row->name, mistake);
	if (uvd_log_shows(log, UVD_WARN) && uvd_log_first(log, 0, kind))
		uvd_log_limited(log, UVD_WARN, "%s: %s: the handler %s %s: a mistake of its plug-in, or of uverbsd",
				req->dev->config.ibdev, req->name, mistake, attr->row->name);
}

static bool check_lacks_object(const struct uvd_attr *attr)
{
	const struct uvd_attr_row *row = attr->row;

	if ((row->type != UVD_ATTR_IDR && row->type != UVD_ATTR_FD) || row->access != UVD_UOBJ_NEW)
		return false;
	return !attr->uobj->object && !attr->uobj->event_file;
}

/* The dispatcher writes a staged output later. It has written an output that made room in the stage. */
static bool check_lacks_output(const struct uvd_req *req, const struct uvd_attr *attr)
{
	const bool staged = req->written[attr->index / 64] & UINT64_C(1) << attr->index % 64;

	return attr->row->type == UVD_ATTR_PTR_OUT && attr->row->flags & UVD_MANDATORY && !staged &&
	       !(req->uattrs[attr->index].flags & UVERBS_ATTR_F_VALID_OUTPUT);
}

void uvd_check_method(struct uvd_req *req)
{
	for (unsigned int i = 0; i < req->tree_method->num_slots; i++) {
		const struct uvd_attr *attr = &req->attrs[i];

		if (!attr->present)
			continue;
		if (check_lacks_object(attr))
			check_tell(req, attr, "has not set the object of");
		else if (check_lacks_output(req, attr))
			check_tell(req, attr, "has not written");
	}
}
