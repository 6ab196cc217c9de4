/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "list.h"
#include "model.h"
#include "model_call.h"
#include "object.h"

enum { MAX_OBJECTS = UVD_PROG_MAX_CALLS, MAX_REFS = 8 };

struct object {
	char type[16];
	uint32_t handle;
	bool alive;
	int refs; /* objects that certainly refer to it */
	int maybe; /* what may refer to it: the model makes no statement about its destruction */
	struct {
		struct object *to;
		bool sure;
	} to[MAX_REFS];
	unsigned int num_to;
};

struct model {
	const struct uvd_prog *p;
	const struct uvd_prog_run *run;
	struct uvd_prog_difference *found;
	unsigned int call;
	bool alone; /* no call is made beside this one */
	bool making; /* this call, or one beside it, may make an object */
	bool early; /* a call of the group names an object that the model does not know yet */
	bool context; /* there is one */
	bool closed, closing; /* the device, by an earlier call; by this call or one beside it */
	uint64_t device_fd; /* of the device; known when it is closed */
	bool lost; /* a call did what the model does not understand: it makes no more statements */
	unsigned int num;
	struct object objects[MAX_OBJECTS];
};

/* The types whose references are certain in every driver. */
static bool type_is_certain(const char *type)
{
	return uvd_prog_list_match("pd mr cq qp srq ah", type);
}

static bool type_is_fd(const char *type)
{
	return uvd_prog_list_match("channel async", type);
}

static struct object *model_find(struct model *m, uint32_t number, bool fd)
{
	for (unsigned int i = 0; i < m->num; i++)
		if (m->objects[i].alive && m->objects[i].handle == number && type_is_fd(m->objects[i].type) == fd)
			return &m->objects[i];
	return NULL;
}

static struct object *object_find(struct model *m, uint32_t handle)
{
	return model_find(m, handle, false);
}

static struct object *fd_find(struct model *m, uint32_t fd)
{
	return model_find(m, fd, true);
}

static const struct uvd_prog_record *model_record(const struct model *m)
{
	return &m->run->records[m->call];
}

static bool model_ok(const struct model *m)
{
	return model_record(m)->done && model_record(m)->ret >= 0;
}

/* EFAULT can mean that the call did its work, and that its response could not be written. */
static bool model_may_have_acted(const struct model *m)
{
	return model_ok(m) || model_record(m)->err == EFAULT;
}

static void model_wrong(struct model *m, const char *item, const char *expected)
{
	struct uvd_prog_difference *d = m->found;

	if (d->found)
		return;
	d->found = true;
	d->call = m->call;
	snprintf(d->target, sizeof(d->target), "%s", m->p->calls[m->call].target);
	snprintf(d->item, sizeof(d->item), "%s", item);
	snprintf(d->kernel, sizeof(d->kernel), "%s", expected);
	snprintf(d->ours, sizeof(d->ours), "%s",
		 model_record(m)->done ? uvd_prog_result(model_record(m)) : "no answer");
}

/* ---- what a call refers to --------------------------------------------------------------------------------------- */

/* An object that a call names. */
struct named {
	char type[16];
	uint32_t handle;
	bool sure; /* the call needs it whatever its other fields are */
};

static uint64_t record_field(const struct uvd_prog_record *r, const char *name)
{
	uint64_t value = 0;

	uvd_prog_input(r, name, &value);
	return value;
}

/* Is the QP of one of the types that need a PD and two CQs? */
static bool qp_is_plain(const struct uvd_prog_record *r, const char *type_field)
{
	uint64_t type = record_field(r, type_field);

	return type >= 2 && type <= 4;
}

/*
 * Does the call read the field, as far as its values say? Those of a flexible array's elements are not of this struct: they may
 * be read.
 */
static bool field_is_read(const struct uvd_prog_record *r, const struct uvd_shape_command *shape,
			  const struct uvd_shape_field *f)
{
	const struct uvd_struct *of = shape->request;
	uint8_t data[512] = {};
	uint64_t value;

	if (f->at >= of->size)
		return true;
	for (unsigned int n = 0; n < shape->in.n; n++) {
		const struct uvd_shape_field *other = &shape->in.f[n];

		if (other->size <= sizeof(value) && other->at + other->size <= of->size && of->size <= sizeof(data) &&
		    uvd_prog_input(r, other->name, &value))
			memcpy(data + other->at, &value, other->size);
	}
	return uvd_field_is_read(of, f->field, data, sizeof(data));
}

/* Reads the objects of a command's fields. Returns their number. */
static unsigned int command_objects(const struct model *m, const struct uvd_shape_command *shape, struct named *named)
{
	const struct uvd_prog_record *r = model_record(m);
	const bool qp = shape->makes && !strcmp(shape->makes, "qp");
	const bool plain = !qp || qp_is_plain(r, "qp_type");
	unsigned int n = 0;

	for (unsigned int f = 0; f < shape->in.n && n < MAX_REFS; f++) {
		const struct uvd_shape_field *field = &shape->in.f[f];
		uint64_t value;

		if (uvd_shape_field_role(field) != UVD_ROLE_HANDLE || !field_is_read(r, shape, field) ||
		    !uvd_prog_input(r, field->name, &value))
			continue;
		snprintf(named[n].type, sizeof(named[n].type), "%.15s", uvd_shape_object_name(field->field->object));
		named[n].handle = value;
		/* The other fields of a call decide which further objects it needs. */
		named[n].sure = plain && (!n || qp) && type_is_certain(named[n].type);
		n++;
	}
	return n;
}

static unsigned int method_objects(const struct model *m, const struct uvd_method_row *row, struct named *named)
{
	const char *makes = uvd_shape_method_makes(row);
	const bool plain_qp = makes && !strcmp(makes, "qp") && qp_is_plain(model_record(m), "create_qp_type");
	unsigned int n = 0;

	for (unsigned int a = 0; a < row->num_attrs && n < MAX_REFS; a++) {
		const struct uvd_attr_row *attr = &row->attrs[a];
		const char *name = uvd_shape_attr_name(attr);
		uint64_t value;

		if (attr->type != UVD_ATTR_IDR || attr->access == UVD_UOBJ_NEW ||
		    !uvd_prog_input(model_record(m), name, &value))
			continue;
		snprintf(named[n].type, sizeof(named[n].type), "%.15s", uvd_shape_object_name(attr->object));
		named[n].handle = value;
		named[n].sure = (attr->flags & UVD_MANDATORY || plain_qp) && type_is_certain(named[n].type);
		n++;
	}
	return n;
}

/* ---- changes of the table ---------------------------------------------------------------------------------------- */

static struct object *object_add(struct model *m, const char *type, uint32_t handle)
{
	struct object *o = &m->objects[m->num];

	if (m->num == MAX_OBJECTS) {
		m->lost = true;
		return NULL;
	}
	m->num++;
	memset(o, 0, sizeof(*o));
	snprintf(o->type, sizeof(o->type), "%s", type);
	o->handle = handle;
	o->alive = true;
	return o;
}

static void object_refer(struct object *o, struct object *to, bool sure)
{
	if (!to || o->num_to == MAX_REFS)
		return;
	o->to[o->num_to].to = to;
	o->to[o->num_to++].sure = sure;
	*(sure ? &to->refs : &to->maybe) += 1;
}

static void object_end(struct object *o)
{
	o->alive = false;
	for (unsigned int i = 0; i < o->num_to; i++)
		*(o->to[i].sure ? &o->to[i].to->refs : &o->to[i].to->maybe) -= 1;
	o->num_to = 0;
}

/* From now on the model says nothing about the object's references. */
static void object_doubt(struct object *o)
{
	if (o)
		o->maybe += 1000;
}

static void model_doubt_all(struct model *m)
{
	for (unsigned int i = 0; i < m->num; i++)
		object_doubt(&m->objects[i]);
}

/* A successful call has returned a descriptor. A negative one stands for none. */
static void model_made_fd(struct model *m, const char *type)
{
	const struct uvd_prog_record *r = model_record(m);
	uint64_t fd;

	if (!uvd_prog_made(r, &fd)) {
		m->lost = true;
		return;
	}
	if ((int)fd < 0)
		return;
	/* Made beside the close of the device, whose number it has: the program refuses to use it as a descriptor. */
	if (m->closing && fd == m->device_fd) {
		m->lost = true;
		return;
	}
	if (fd_find(m, fd))
		model_wrong(m, "new descriptor", "one that is not open");
	object_add(m, type, fd);
}

/* A successful call has made an object of this type. */
static void model_made(struct model *m, const char *type, const struct named *named, unsigned int n)
{
	const struct uvd_prog_record *r = model_record(m);
	struct object *o;
	uint64_t handle;

	if (type_is_fd(type)) {
		model_made_fd(m, type);
		return;
	}
	if (!uvd_prog_made(r, &handle)) {
		m->lost = true;
		return;
	}
	if (object_find(m, handle))
		model_wrong(m, "new handle", "one that no object has");
	o = object_add(m, type, handle);
	for (unsigned int i = 0; o && i < n; i++) {
		struct object *to = object_find(m, named[i].handle);

		m->early |= !to;
		object_refer(o, to, named[i].sure && type_is_certain(type));
	}
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* No object that a successful call names may be missing. */
static void model_check_named(struct model *m, const struct named *named, unsigned int n)
{
	char item[80];

	for (unsigned int i = 0; i < n; i++) {
		struct object *o = object_find(m, named[i].handle);

		if (!named[i].sure || (o && !strcmp(o->type, named[i].type)))
			continue;
		snprintf(item, sizeof(item), "result with %s %u, which does not exist", named[i].type, named[i].handle);
		model_wrong(m, item, "an error");
	}
}

/* The descriptor that a successful call names must be open. A negative one stands for none. */
static void model_check_fd(struct model *m, const char *name)
{
	char item[80];
	uint64_t fd;

	if (!uvd_prog_input(model_record(m), name, &fd) || (int)fd < 0 || fd_find(m, fd))
		return;
	snprintf(item, sizeof(item), "result with descriptor %d, which is not open", (int)fd);
	model_wrong(m, item, "an error");
}

/* Has the command that destroys objects of this type no other field that it checks? */
static bool type_ends_by_handle(const char *type)
{
	return type_is_certain(type) || uvd_prog_list_match("mw xrcd", type);
}

/* The result of a call that destroys one object and does nothing else. */
static void model_check_end(struct model *m, const struct named *named)
{
	struct object *o = object_find(m, named->handle);
	const struct uvd_prog_record *r = model_record(m);

	if (r->err == EOPNOTSUPP || r->err == EPROTONOSUPPORT)
		return;
	if (!o) {
		if (r->err != ENOENT)
			model_wrong(m, "result for an object that does not exist", "ENOENT");
		return;
	}
	if (strcmp(o->type, named->type)) {
		if (r->ret >= 0)
			model_wrong(m, "result for an object of another type", "an error");
		return;
	}
	if (o->maybe)
		return;
	if (o->refs && r->err != EBUSY)
		model_wrong(m, "result for an object that others refer to", "EBUSY");
	if (!o->refs && r->ret < 0)
		model_wrong(m, "result for an object that nothing refers to", "ok");
}

/*
 * A call has ended an object that the model does not know. Either a call beside it has made the object, and whether it
 * still exists is unknown, or another call has ended it, too.
 */
static void model_end_unknown(struct model *m, const char *item)
{
	if (m->making && !m->alone)
		m->lost = true;
	else
		model_wrong(m, item, "an error");
}

static void model_end(struct model *m, const struct named *named)
{
	struct object *o = object_find(m, named->handle);

	if (o)
		object_end(o);
	else
		model_end_unknown(m, "result for an object that another call has destroyed");
}

/* The result of a close, and of reading an event: of a descriptor, or of the device. */
static void model_close(struct model *m, const struct uvd_prog_call *call)
{
	const bool device = !strcmp(call->target, UVD_PROG_DEVICE);
	struct object *o = device ? NULL : fd_find(m, record_field(model_record(m), "fd"));

	if (m->alone && !model_ok(m) && (o || (device && !m->closed)))
		model_wrong(m, "result for a descriptor that is open", "ok");
	if (!model_ok(m))
		return;
	if (device) {
		/* A call beside the close may have got its number, which this one has closed then. */
		if (m->closed || (m->closing && !m->making))
			model_wrong(m, "result for a device that another call has closed", "EBADF");
		m->closing = true;
		m->device_fd = record_field(model_record(m), "fd");
	} else if (o)
		object_end(o);
	else
		model_end_unknown(m, "result for a descriptor that is not open");
}

static void model_event(struct model *m)
{
	const struct uvd_prog_record *r = model_record(m);
	struct object *o = fd_find(m, record_field(r, "fd"));

	if (!o && model_ok(m) && m->alone)
		model_wrong(m, "result for a descriptor that is not open", "EBADF");
	if (o && r->err == EBADF && m->alone)
		model_wrong(m, "result for a descriptor that is open", "an event, or EAGAIN");
	if (o && r->ret > 0 && r->ret != (strcmp(o->type, "channel") ? 16 : 8))
		model_wrong(m, "size of an event", "8 bytes of a channel, or 16");
}

/* Bytes of a successful call's outputs: nothing behind them is written, and the gaps between fields hold no data. */
static void model_check_bytes(struct model *m)
{
	const struct uvd_prog_record *r = model_record(m);
	static bool known[UVD_PROG_MAX_OUT];

	memset(known, 0, sizeof(known));
	for (unsigned int i = 0; i < r->num_regions; i++) {
		const struct uvd_prog_region *region = &r->regions[i];

		for (uint32_t at = 0; at < region->len; at++)
			known[region->at + at] = !region->fields.n || region->fields.stride;
		for (unsigned int f = 0; f < region->fields.n; f++)
			for (uint32_t at = 0; at < region->fields.f[f].size; at++)
				if (region->fields.f[f].at + at < region->len)
					known[region->at + region->fields.f[f].at + at] =
						uvd_shape_field_role(&region->fields.f[f]) != UVD_ROLE_RESERVED;
	}
	for (uint32_t at = 0; at < r->out_len; at++)
		if (!known[at] && r->out[at] != UVD_PROG_UNTOUCHED && r->out[at])
			model_wrong(m, "a byte that is no output", "untouched, or 0");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void model_command(struct model *m, const struct uvd_prog_call *call)
{
	const struct uvd_shape_command *shape = uvd_shape_command(call->target);
	struct named named[MAX_REFS] = {};
	unsigned int n = shape ? command_objects(m, shape, named) : 0;
	bool whole = shape && uvd_model_call_is_whole(call);

	if (model_ok(m) && shape && uvd_model_call_is_short(call, shape))
		model_wrong(m, "result of a command that is too short", "an error");
	if (!whole) {
		m->lost |= model_may_have_acted(m);
		return;
	}
	if (m->alone && shape->ends && n && m->context && type_ends_by_handle(named[0].type))
		model_check_end(m, &named[0]);
	if (!model_ok(m))
		return;
	if (m->alone && !shape->ends)
		model_check_named(m, named, n);
	for (unsigned int f = 0; m->alone && f < shape->in.n; f++)
		if (uvd_shape_field_role(&shape->in.f[f]) == UVD_ROLE_FD &&
		    shape->in.f[f].field->object != UVD_NO_OBJECT)
			model_check_fd(m, shape->in.f[f].name);
	if (m->alone)
		model_check_bytes(m);
	if (!strcmp(shape->name, "GET_CONTEXT")) {
		m->context = true;
		model_made_fd(m, "async");
	} else if (shape->makes)
		model_made(m, shape->makes, named, n);
	else if (shape->ends && n)
		model_end(m, &named[0]);
	else if (uvd_prog_list_match("REREG_MR POST_SEND ATTACH_MCAST DETACH_MCAST", shape->name))
		model_doubt_all(m);
}

/* Reads the object that the method destroys. Returns false if it has none, or the call does not name one. */
static bool method_end_object(const struct model *m, const struct uvd_method_row *row, struct named *named)
{
	const struct uvd_attr_row *attr = uvd_shape_method_end(row);
	uint64_t value;

	if (!attr || !uvd_prog_input(model_record(m), uvd_shape_attr_name(attr), &value) || value > INT32_MAX)
		return false;
	snprintf(named->type, sizeof(named->type), "%.15s", uvd_shape_object_name(attr->object));
	named->handle = value;
	return true;
}

/* The method has changed the objects that it names, in a way that the model does not follow. */
static void model_doubt_named(struct model *m, const struct uvd_method_row *row, const struct named *named,
			      unsigned int n)
{
	for (unsigned int a = 0; a < row->num_attrs; a++)
		if (row->attrs[a].type == UVD_ATTR_IDRS_ARRAY)
			model_doubt_all(m);
	for (unsigned int i = 0; i < n; i++)
		object_doubt(object_find(m, named[i].handle));
}

static void model_check_method(struct model *m, const struct uvd_method_row *row, const struct named *named,
			       unsigned int n)
{
	model_check_named(m, named, n);
	for (unsigned int a = 0; a < row->num_attrs; a++)
		if (row->attrs[a].type == UVD_ATTR_FD && row->attrs[a].access != UVD_UOBJ_NEW)
			model_check_fd(m, uvd_shape_attr_name(&row->attrs[a]));
}

static void model_method(struct model *m, const struct uvd_prog_call *call)
{
	struct uvd_shape_method ref;
	struct named named[MAX_REFS] = {}, end = {};
	const char *makes;
	unsigned int n;
	bool ends;

	if (!uvd_shape_method(call->target, &ref) || !ref.row) {
		m->lost |= model_may_have_acted(m);
		return;
	}
	if (model_ok(m) && uvd_model_method_is_short(call, ref.row))
		model_wrong(m, "result of a method with an attribute that is too short", "an error");
	ends = method_end_object(m, ref.row, &end);
	if (ends && m->alone && m->context && uvd_model_method_is_complete(call, ref.row))
		model_check_end(m, &end);
	if (!model_ok(m)) {
		m->lost |= model_may_have_acted(m);
		return;
	}
	if (!uvd_model_call_is_whole(call) && !uvd_prog_item(call, "uhw_out")) {
		m->lost = true;
		return;
	}
	n = method_objects(m, ref.row, named);
	if (m->alone && !ends)
		model_check_method(m, ref.row, named, n);
	makes = uvd_shape_method_makes(ref.row);
	if (!strcmp(uvd_shape_method_name(ref.row), "GET_CONTEXT"))
		m->context = true;
	else if (makes)
		model_made(m, makes, named, n);
	else if (ends)
		model_end(m, &end);
	else
		model_doubt_named(m, ref.row, named, n);
}

static void model_call(struct model *m)
{
	const struct uvd_prog_call *call = &m->p->calls[m->call];

	if (m->lost || !model_record(m)->done)
		m->lost = true;
	else if (call->front == UVD_PROG_CLOSE)
		model_close(m, call);
	else if (call->front == UVD_PROG_EVENT)
		model_event(m);
	else if (m->closed && call->front <= UVD_PROG_METHOD && model_ok(m))
		model_wrong(m, "result on a device that is closed", "EBADF");
	else if (m->closed)
		return;
	else if (call->front == UVD_PROG_METHOD)
		model_method(m, call);
	else if (call->front <= UVD_PROG_INVOKE)
		model_command(m, call);
}

/*
 * Calls that are made at the same time, from `first`. Those that destroy come first: another one may have got the handle of
 * an object that is gone. One that names an object may come before the one that has made it: who refers to the group's
 * objects is unknown then.
 */
static void model_group(struct model *m, unsigned int first, unsigned int n)
{
	const unsigned int known = m->num;

	m->alone = n == 1;
	m->making = m->early = false;
	for (unsigned int i = first; i < first + n; i++)
		m->making |= uvd_model_call_may_make(&m->p->calls[i]);
	for (int ends = 1; ends >= 0; ends--)
		for (m->call = first; m->call < first + n; m->call++)
			if (uvd_model_call_ends(&m->p->calls[m->call]) == ends)
				model_call(m);
	for (unsigned int i = known; m->early && !m->alone && i < m->num; i++)
		object_doubt(&m->objects[i]);
	m->closed |= m->closing;
}

void uvd_prog_model_check(const struct uvd_prog *p, const struct uvd_prog_run *run, struct uvd_prog_difference *found)
{
	static struct model m;
	unsigned int n;

	memset(&m, 0, sizeof(m));
	memset(found, 0, sizeof(*found));
	m.p = p;
	m.run = run;
	m.found = found;
	for (unsigned int i = 0; i < p->num_calls && !m.lost; i += n) {
		for (n = 1; i + n < p->num_calls && p->calls[i + n - 1].beside; n++)
			;
		model_group(&m, i, n);
	}
}
