/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads from a call's text and from the schema what is known about the call before it is made. */
#include <stdlib.h>
#include <string.h>
#include "model_call.h"

bool uvd_model_call_is_whole(const struct uvd_prog_call *call)
{
	for (unsigned int i = 0; i < call->num_items; i++)
		if (strchr("!@#", call->items[i][0]) || strchr(call->items[i], ':') ||
		    !strncmp(call->items[i], "in=", 3) || !strncmp(call->items[i], "out=", 4) ||
		    !strncmp(call->items[i], "uhw_", 4))
			return false;
	return true;
}

bool uvd_model_call_is_short(const struct uvd_prog_call *call, const struct uvd_shape_command *shape)
{
	const char *in = uvd_prog_item(call, "in");
	const struct uvd_write_row *row = shape ? uvd_shape_write(shape->number, shape->ex) : NULL;
	long long least;

	if (uvd_prog_item(call, "!command"))
		return false;
	if (call->front == UVD_PROG_WRITE && (uvd_prog_item(call, "!in_words") || uvd_prog_item(call, "!len")))
		return !uvd_prog_item(call, "in") && !uvd_prog_item(call, "uhw_in") &&
		       !(uvd_prog_item(call, "!in_words") && uvd_prog_item(call, "!len"));
	/* In a write() the driver's part follows, as if it were the command's. */
	least = row ? row->req_size - (call->front == UVD_PROG_WRITE ? shape->uhw_in : 0) : 0;
	return in && row && (long long)strtoull(in, NULL, 0) < least && !shape->ex && !uvd_prog_item(call, "uhw_in") &&
	       !uvd_prog_item(call, "!core_in");
}

/* Does the item give its attribute of `size` bytes less than `least`? */
static bool item_is_short(const char *item, unsigned int size, unsigned int least)
{
	const char *len = strstr(item, ":len=");
	long given;

	if (!len || strstr(item, ":id="))
		return false;
	given = strtol(len + 5, NULL, 0);
	if (strchr("+-", len[5]))
		given += size;
	return given >= 0 && given < least;
}

bool uvd_model_method_is_short(const struct uvd_prog_call *call, const struct uvd_method_row *row)
{
	for (unsigned int i = 0; i < call->num_items; i++) {
		char name[UVD_PROG_MAX_ITEM];
		const struct uvd_attr_row *attr;

		if (strchr("!@#", call->items[i][0]))
			return false;
		snprintf(name, sizeof(name), "%s", call->items[i]);
		name[strcspn(name, "=:")] = 0;
		attr = uvd_shape_attr_row(row, name);
		if (attr && (attr->type == UVD_ATTR_PTR_IN || attr->type == UVD_ATTR_CONST) &&
		    attr->len != UVD_LEN_ANY && attr->min_len <= attr->len &&
		    item_is_short(call->items[i], attr->len, attr->min_len))
			return true;
	}
	return false;
}

bool uvd_model_method_is_complete(const struct uvd_prog_call *call, const struct uvd_method_row *row)
{
	if (!uvd_model_call_is_whole(call))
		return false;
	for (unsigned int a = 0; a < row->num_attrs; a++) {
		const char *name = uvd_shape_attr_name(&row->attrs[a]);
		const size_t len = strlen(name);
		unsigned int given = 0;

		for (unsigned int i = 0; i < call->num_items; i++)
			given += !strncmp(call->items[i], name, len) && strchr("=", call->items[i][len]);
		if (given > 1 || (!given && row->attrs[a].flags & UVD_MANDATORY))
			return false;
	}
	return true;
}

bool uvd_model_call_ends(const struct uvd_prog_call *call)
{
	const struct uvd_shape_command *shape;
	struct uvd_shape_method ref;

	if (call->front == UVD_PROG_CLOSE)
		return true;
	if (call->front == UVD_PROG_METHOD)
		return uvd_shape_method(call->target, &ref) && ref.row && uvd_shape_method_end(ref.row);
	shape = call->front <= UVD_PROG_INVOKE ? uvd_shape_command(call->target) : NULL;
	return shape && shape->ends;
}

bool uvd_model_call_may_make(const struct uvd_prog_call *call)
{
	const struct uvd_shape_command *shape;
	struct uvd_shape_method ref;

	if (call->front > UVD_PROG_METHOD)
		return false;
	if (!uvd_model_call_is_whole(call))
		return true;
	if (call->front == UVD_PROG_METHOD)
		return !uvd_shape_method(call->target, &ref) || !ref.row || uvd_shape_method_makes(ref.row);
	shape = uvd_shape_command(call->target);
	return !shape || shape->makes;
}
