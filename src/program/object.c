/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "object.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <string.h>

const struct uvd_shape_command *uvd_prog_command_of(const struct uvd_prog *p, unsigned int i)
{
	return p->calls[i].front <= UVD_PROG_INVOKE ? uvd_shape_command(p->calls[i].target) : NULL;
}

bool uvd_prog_method_of(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i,
			struct uvd_shape_method *ref)
{
	const struct uvd_prog_record *r = &run->records[i];
	const struct uvd_prog_call *call = &p->calls[i];
	uint64_t object, method;

	if (call->front == UVD_PROG_METHOD && uvd_prog_input(r, "object", &object) &&
	    uvd_prog_input(r, "method", &method))
		for (unsigned int n = 0; uvd_shape_method_at(n, ref); n++)
			if (ref->object == object && ref->method == method)
				return true;
	return uvd_shape_method(call->front == UVD_PROG_INVOKE ? "INVOKE_WRITE" : call->target, ref) && ref->row;
}

const char *uvd_prog_makes(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i)
{
	const struct uvd_shape_command *command = uvd_prog_command_of(p, i);
	struct uvd_shape_method ref;

	if (command)
		return command->makes;
	return p->calls[i].front == UVD_PROG_METHOD && uvd_prog_method_of(p, run, i, &ref)
		       ? uvd_shape_method_makes(ref.row)
		       : NULL;
}

static bool command_handle(const struct uvd_shape_command *command, const struct uvd_prog_record *r, uint16_t object,
			   uint64_t *handle)
{
	for (unsigned int f = 0; f < command->in.n; f++)
		if (uvd_field_is_of(command->in.f[f].field, object))
			return uvd_prog_input(r, command->in.f[f].name, handle);
	return false;
}

static bool method_handle(const struct uvd_method_row *row, const struct uvd_prog_record *r, uint16_t object,
			  uint64_t *handle)
{
	for (unsigned int a = 0; a < row->num_attrs; a++)
		if (row->attrs[a].type == UVD_ATTR_IDR && row->attrs[a].access != UVD_UOBJ_NEW &&
		    row->attrs[a].object == object)
			return uvd_prog_input(r, uvd_shape_attr_name(&row->attrs[a]), handle);
	return false;
}

bool uvd_prog_handle(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i, uint16_t object,
		     uint64_t *handle)
{
	const struct uvd_shape_command *command = uvd_prog_command_of(p, i);
	struct uvd_shape_method ref;

	if (command)
		return command_handle(command, &run->records[i], object, handle);
	return p->calls[i].front == UVD_PROG_METHOD && uvd_prog_method_of(p, run, i, &ref) &&
	       method_handle(ref.row, &run->records[i], object, handle);
}

bool uvd_prog_made(const struct uvd_prog_record *r, uint64_t *handle)
{
	return uvd_prog_output(r, "handle", handle) || uvd_prog_output(r, "fd", handle) ||
	       uvd_prog_input(r, "handle", handle);
}

bool uvd_prog_object_of(const struct uvd_prog *p, const struct uvd_prog_run *run, unsigned int i, uint64_t *handle)
{
	const struct uvd_shape_command *command = uvd_prog_command_of(p, i);
	struct uvd_shape_method ref;

	if (uvd_prog_made(&run->records[i], handle))
		return true;
	if (command)
		return uvd_prog_handle(p, run, i, command->object, handle);
	return p->calls[i].front == UVD_PROG_METHOD && uvd_prog_method_of(p, run, i, &ref) &&
	       uvd_prog_handle(p, run, i, ref.object, handle);
}
