/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The objects that a request uses: recorded when they are begun or looked up, and released in one place. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "dispatch/internal.h"

enum { MORE = 64, ANY_OBJECT = 0xffff /* UVERBS_IDR_ANY_OBJECT */ };

/* Objects beyond UVD_REQ_MAX_OBJECTS: the address handles of a long list of sends. */
struct uvd_req_objects {
	struct uvd_req_objects *next;
	unsigned int num;
	struct uvd_req_object objects[MORE];
};

/* Finds a slot before the object is begun or looked up, so that recording it cannot fail. NULL: no memory. */
static struct uvd_req_object *req_object_reserve(struct uvd_req *req, unsigned int **count)
{
	struct uvd_req_objects *more = req->more_objects;

	if (req->num_objects < UVD_REQ_MAX_OBJECTS) {
		*count = &req->num_objects;
		return &uvd_buffers(req)->objects[req->num_objects];
	}
	if (!more || more->num == MORE) {
		more = uvd_req_alloc(req, sizeof(*more));
		if (!more)
			return NULL;
		more->next = req->more_objects;
		req->more_objects = more;
	}
	*count = &more->num;
	return &more->objects[more->num];
}

int uvd_req_new(struct uvd_req *req, uint16_t object, struct uvd_uobject **out)
{
	const struct uvd_tree_object *to = uvd_tree_object(req->tree, object);
	struct uvd_req_object *slot;
	unsigned int *count;
	int err;

	if (!to)
		return uvd_bad(req, -EINVAL, "object", object);
	err = uvd_file_check_object(req->file, req->caller, req->name, to->row->name);
	if (err)
		return err;
	slot = req_object_reserve(req, &count);
	if (!slot)
		return -ENOMEM;
	err = uvd_uobject_begin_by(req->file, to->row, &(struct uvd_asker){ req->caller, req->name, req->new_context },
				   out);
	if (err)
		return err;
	*slot = (struct uvd_req_object){ .uobj = *out, .access = UVD_UOBJ_NEW };
	++*count;
	return 0;
}

int uvd_req_lookup(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_uobj_access access,
		   struct uvd_uobject **out)
{
	const struct uvd_tree_object *to = uvd_tree_object(req->tree, object);
	const struct uvd_object_row *row = to ? to->row : NULL;
	struct uvd_req_object *slot;
	unsigned int *count;
	int err;

	if (!row && object != ANY_OBJECT)
		return -EINVAL;
	slot = req_object_reserve(req, &count);
	if (!slot)
		return -ENOMEM;
	if (row && row->cls == UVD_CLASS_FD) {
		if (id != (int)id)
			return -EINVAL;
		if (access != UVD_UOBJ_READ)
			return -EOPNOTSUPP;
		err = uvd_uobject_get_fd(req->file, req->caller, row, id, out);
	} else {
		err = uvd_uobject_get(req->file, row, id, access, out);
	}
	if (err)
		return err;
	*slot = (struct uvd_req_object){ .uobj = *out, .access = access };
	++*count;
	return 0;
}

static int name_bad_object(struct uvd_req *req, int err, uint16_t object, int64_t id)
{
	const struct uvd_tree_object *to = uvd_tree_object(req->tree, object);

	if (!err)
		return 0;
	uvd_bad(req, err, to ? to->row->name : "object", id);
	req->bad_type = object;
	return err;
}

int uvd_req_get(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_uobj_access access, struct uvd_uobject **out)
{
	return name_bad_object(req, uvd_req_lookup(req, object, id, access, out), object, id);
}

int uvd_req_get_fd(struct uvd_req *req, uint16_t object, int64_t fd, struct uvd_uobject **out)
{
	return uvd_req_get(req, object, fd, UVD_UOBJ_READ, out);
}

int uvd_req_destroy(struct uvd_req *req, uint16_t object, int64_t id, struct uvd_uobject **out)
{
	struct uvd_uobject *uobj;
	int err = uvd_req_lookup(req, object, id, UVD_UOBJ_DESTROY, &uobj);

	if (!err)
		err = uvd_uobject_destroy(uobj);
	if (err)
		return name_bad_object(req, err, object, id);
	if (out)
		*out = uobj;
	return 0;
}

void uvd_req_grant(struct uvd_req *req, struct uvd_uobject *uobj, uint64_t addr, bool wide, bool may_fall_back)
{
	req->has_grant = true;
	req->grant = (struct uvd_grant){
		.uobj = uobj,
		.file = uobj->event_file,
		.addr = addr,
		.wide = wide,
		.may_fall_back = may_fall_back,
	};
}

void uvd_req_register(struct uvd_req *req, struct uvd_uobject *uobj, struct uvd_registration *registration,
		      int (*end)(struct uvd_req *req, int64_t result))
{
	req->has_grant = true;
	req->grant = (struct uvd_grant){ .uobj = uobj, .registration = registration, .end = end };
}

void uvd_req_context(struct uvd_req *req, struct uvd_context *context, struct uvd_tree *tree, void **plugin_data)
{
	req->new_context = context;
	req->new_plugin_data = plugin_data;
	req->new_tree = tree;
}

static void req_object_release(struct uvd_req_object *o, bool commit, bool keep_new)
{
	if (!o->uobj)
		return;
	if (o->access != UVD_UOBJ_NEW)
		uvd_uobject_put(o->uobj, o->access);
	else if (keep_new)
		return;
	else if (commit && !o->uobj->dropped)
		uvd_uobject_commit(o->uobj);
	else
		uvd_uobject_abort(o->uobj, o->uobj->made);
	o->uobj = NULL;
}

void uvd_objects_release(struct uvd_req *req, bool commit, bool keep_new)
{
	for (struct uvd_req_objects *more = req->more_objects; more; more = more->next)
		for (unsigned int i = more->num; i-- > 0;)
			req_object_release(&more->objects[i], commit, keep_new);
	for (unsigned int i = req->num_objects; i-- > 0;)
		req_object_release(&uvd_buffers(req)->objects[i], commit, keep_new);
}
