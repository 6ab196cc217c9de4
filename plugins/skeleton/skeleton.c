/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skeleton: one object without handles and two methods. SET stores a number in the caller's context, GET returns it.
 *
 *   uverbsctl run --plugin ./skeleton.so -- uverbsctl call SKELETON GET
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uverbsd/plugin.h>

/* Ids from 0x1000 on are for drivers. A device refuses a plug-in whose ids another one has. */
enum { UVERBS_OBJECT_SKELETON = 0x1100 };
enum { UVERBS_METHOD_SKELETON_SET = 0x1100, UVERBS_METHOD_SKELETON_GET };
enum { UVERBS_ATTR_SKELETON_SET_VALUE = 0x1100 }; /* CONST */
enum { UVERBS_ATTR_SKELETON_GET_VALUE = 0x1100 }; /* PTR_OUT, u64 */

enum { SKELETON_MOST = 1000 };

/* The plug-in's data of an open context. Calls of one context can run in parallel. */
struct skeleton_context {
	_Atomic uint64_t value;
};

static int skeleton_context_init(struct uvd_context *context, void *device_data, void **data)
{
	*data = calloc(1, sizeof(struct skeleton_context));
	return *data ? 0 : -ENOMEM;
}

static void skeleton_context_exit(struct uvd_context *context, void *data)
{
	free(data);
}

static int skeleton_set(struct uvd_req *req)
{
	struct skeleton_context *context = uvd_plugin_context_data(req, &uverbsd_plugin);
	uint64_t value;
	int ret = uvd_attr_const(req, UVERBS_ATTR_SKELETON_SET_VALUE, SKELETON_MOST, &value);

	if (ret)
		return ret;
	if (!context) /* the device was removed */
		return -EIO;
	atomic_store(&context->value, value);
	return 0;
}

static int skeleton_get(struct uvd_req *req)
{
	struct skeleton_context *context = uvd_plugin_context_data(req, &uverbsd_plugin);
	uint64_t value;

	if (!context)
		return -EIO;
	value = atomic_load(&context->value);
	return uvd_attr_copy_to(req, UVERBS_ATTR_SKELETON_GET_VALUE, &value);
}

static const uvd_step skeleton_set_steps[] = { uvd_step_context, skeleton_set, NULL };
static const uvd_step skeleton_get_steps[] = { uvd_step_context, skeleton_get, NULL };

static const struct uvd_attr_row skeleton_set_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_SKELETON_SET_VALUE, UVD_MANDATORY),
};

static const struct uvd_attr_row skeleton_get_attrs[] = {
	UVD_PTR_OUT(UVERBS_ATTR_SKELETON_GET_VALUE, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_method_row skeleton_methods[] = {
	UVD_METHOD(UVERBS_METHOD_SKELETON_SET, skeleton_set_attrs, skeleton_set_steps),
	UVD_METHOD(UVERBS_METHOD_SKELETON_GET, skeleton_get_attrs, skeleton_get_steps),
};

static const struct uvd_object_row skeleton_object = {
	.name = "UVERBS_OBJECT_SKELETON",
	.id = UVERBS_OBJECT_SKELETON,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, skeleton_methods),
};

static const struct uvd_object_row *const skeleton_objects[] = { &skeleton_object, NULL };
static const struct uvd_feature skeleton_feature = { .name = "skeleton", .objects = skeleton_objects };
static const struct uvd_feature *const skeleton_features[] = { &skeleton_feature, NULL };

/* These roles tell `uverbsctl trace`, `fuzz` and others what the values mean: see UVD_ROLE_* in uverbsd/roles.h. */
static const struct uvd_attr_fields skeleton_roles[] = {
	{ .attr = "UVERBS_ATTR_SKELETON_SET_VALUE", .role = UVD_ROLE_NUMBER },
	{ .attr = "UVERBS_ATTR_SKELETON_GET_VALUE", .role = UVD_ROLE_NUMBER },
	{ .attr = NULL },
};

UVD_PLUGIN(.name = "skeleton", .version = "1", .description = "stores a number", .features = skeleton_features,
	   .context_init = skeleton_context_init, .context_exit = skeleton_context_exit, .attrs = skeleton_roles);
