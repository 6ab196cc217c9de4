/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * counter: an object with handles, structs as input and output, an asynchronous event, a method that needs a User
 * Capability, an option, and counted contexts. counter.h is its ABI.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uverbsd/plugin.h>

#include "counter.h"

#define COUNTER_UCAP "counter_reset"

struct counter_engine {
	uint64_t initial;
};

struct counter_device {
	const struct counter_engine *engine;
	atomic_uint contexts;
};

/* The object behind a handle. Calls that share the handle run in parallel. */
struct counter {
	struct uvd_context *context;
	_Atomic uint64_t value;
	uint64_t threshold, user_handle; /* constant */
};

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static int counter_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	struct counter_engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -ENOMEM;
	ret = uvd_plugin_number(values, "initial", 0, UINT64_MAX, &engine->initial);
	if (ret)
		free(engine);
	else
		*data = engine;
	return ret;
}

/* Creates the capability on every device. Its node is /dev/infiniband/counter_reset. */
static int counter_device_init(struct uvd_ibdev *dev, void *engine, void **data)
{
	struct counter_device *device = calloc(1, sizeof(*device));
	int ret;

	if (!device)
		return -ENOMEM;
	device->engine = engine;
	ret = dev->create_ucap(dev, COUNTER_UCAP);
	if (ret < 0) {
		free(device);
		return ret;
	}
	*data = device;
	return 0;
}

static void counter_device_exit(struct uvd_ibdev *dev, void *device)
{
	dev->remove_ucap(dev, COUNTER_UCAP);
	free(device);
}

static int counter_context_init(struct uvd_context *context, void *device, void **data)
{
	atomic_fetch_add(&((struct counter_device *)device)->contexts, 1);
	*data = device;
	return 0;
}

static void counter_context_exit(struct uvd_context *context, void *device)
{
	atomic_fetch_sub(&((struct counter_device *)device)->contexts, 1);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static int counter_create(struct uvd_req *req)
{
	const struct counter_device *device = uvd_plugin_device_data(req, &uverbsd_plugin);
	struct counter_create in = {};
	struct counter *counter;
	int ret = uvd_attr_copy_from(req, UVERBS_ATTR_COUNTER_CREATE_IN, &in);

	if (ret && ret != -ENOENT)
		return ret;
	ret = uvd_uobject_charge(uvd_attr_uobj(req, UVERBS_ATTR_COUNTER_CREATE_HANDLE), sizeof(*counter));
	if (ret)
		return ret;
	counter = calloc(1, sizeof(*counter));
	if (!counter)
		return -ENOMEM;
	counter->context = uvd_req_ucontext(req);
	counter->threshold = in.threshold;
	counter->user_handle = in.user_handle;
	atomic_init(&counter->value, device->engine->initial);
	uvd_attr_set_object(req, UVERBS_ATTR_COUNTER_CREATE_HANDLE, counter);
	return 0;
}

static int counter_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	free(uvd_uobject_object(uobj));
	return 0;
}

static int counter_add(struct uvd_req *req)
{
	struct counter *counter = uvd_attr_object(req, UVERBS_ATTR_COUNTER_ADD_HANDLE);
	uint64_t amount, old = atomic_load(&counter->value), sum;
	struct counter_add in;
	int ret = uvd_attr_copy_from(req, UVERBS_ATTR_COUNTER_ADD_IN, &in);

	if (ret)
		return ret;
	if (in.reserved)
		return uvd_bad(req, -EINVAL, "reserved", in.reserved);
	if (__builtin_mul_overflow(in.amount, in.times, &amount))
		return uvd_bad(req, -EOVERFLOW, "amount", in.amount);
	do {
		if (__builtin_add_overflow(old, amount, &sum))
			return uvd_bad(req, -EOVERFLOW, "amount", in.amount);
	} while (!atomic_compare_exchange_weak(&counter->value, &old, sum));
	/* A context without an asynchronous event file, or a full one, loses the event, as with every event. */
	if (old < counter->threshold && sum >= counter->threshold)
		uvd_context_event(counter->context, COUNTER_EVENT_THRESHOLD, counter->user_handle);
	return 0;
}

static int counter_read(struct uvd_req *req)
{
	struct counter_device *device = uvd_plugin_device_data(req, &uverbsd_plugin);
	struct counter *counter = uvd_attr_object(req, UVERBS_ATTR_COUNTER_READ_HANDLE);
	struct counter_state state = {
		.value = atomic_load(&counter->value),
		.threshold = counter->threshold,
		.contexts = atomic_load(&device->contexts),
	};

	return uvd_attr_copy_to_or_zero(req, UVERBS_ATTR_COUNTER_READ_OUT, &state);
}

static int counter_reset(struct uvd_req *req)
{
	const struct counter_device *device = uvd_plugin_device_data(req, &uverbsd_plugin);
	struct counter *counter = uvd_attr_object(req, UVERBS_ATTR_COUNTER_RESET_HANDLE);

	atomic_store(&counter->value, device->engine->initial);
	return 0;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step counter_create_steps[] = { counter_create, NULL };
static const uvd_step counter_add_steps[] = { counter_add, NULL };
static const uvd_step counter_read_steps[] = { counter_read, NULL };
static const uvd_step counter_reset_steps[] = { counter_reset, NULL };

static const struct uvd_attr_row counter_create_attrs[] = {
	UVD_IDR(UVERBS_ATTR_COUNTER_CREATE_HANDLE, UVERBS_OBJECT_COUNTER, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_COUNTER_CREATE_IN, sizeof(struct counter_create), 0),
};

static const struct uvd_attr_row counter_add_attrs[] = {
	UVD_IDR(UVERBS_ATTR_COUNTER_ADD_HANDLE, UVERBS_OBJECT_COUNTER, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_COUNTER_ADD_IN, sizeof(struct counter_add), UVD_MANDATORY),
};

static const struct uvd_attr_row counter_read_attrs[] = {
	UVD_IDR(UVERBS_ATTR_COUNTER_READ_HANDLE, UVERBS_OBJECT_COUNTER, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_COUNTER_READ_OUT, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row counter_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_COUNTER_DESTROY_HANDLE, UVERBS_OBJECT_COUNTER, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_attr_row counter_reset_attrs[] = {
	UVD_IDR(UVERBS_ATTR_COUNTER_RESET_HANDLE, UVERBS_OBJECT_COUNTER, UVD_UOBJ_WRITE, UVD_MANDATORY),
};

static const struct uvd_method_row counter_methods[] = {
	UVD_METHOD(UVERBS_METHOD_COUNTER_CREATE, counter_create_attrs, counter_create_steps),
	UVD_METHOD(UVERBS_METHOD_COUNTER_ADD, counter_add_attrs, counter_add_steps),
	UVD_METHOD(UVERBS_METHOD_COUNTER_READ, counter_read_attrs, counter_read_steps),
	UVD_METHOD(UVERBS_METHOD_COUNTER_DESTROY, counter_destroy_attrs, NULL),
};

static const struct uvd_method_row counter_reset_methods[] = {
	UVD_METHOD(UVERBS_METHOD_COUNTER_RESET, counter_reset_attrs, counter_reset_steps),
};

static const struct uvd_object_row counter_object = {
	.name = "UVERBS_OBJECT_COUNTER",
	.id = UVERBS_OBJECT_COUNTER,
	.cls = UVD_CLASS_IDR,
	.destroy = counter_destroy,
	UVD_ROWS(methods, counter_methods),
};

/* The same id and name, without a class: its methods are added to those above. */
static const struct uvd_object_row counter_reset_object = {
	.name = "UVERBS_OBJECT_COUNTER",
	.id = UVERBS_OBJECT_COUNTER,
	UVD_ROWS(methods, counter_reset_methods),
};

static const struct uvd_object_row *const counter_objects[] = { &counter_object, NULL };
static const struct uvd_object_row *const counter_reset_objects[] = { &counter_reset_object, NULL };
static const struct uvd_feature counter_feature = { .name = "counter", .objects = counter_objects };
static const struct uvd_feature counter_reset_feature = {
	.name = "counter reset",
	.ucap = COUNTER_UCAP,
	.objects = counter_reset_objects,
};
static const struct uvd_feature *const counter_features[] = { &counter_feature, &counter_reset_feature, NULL };

/* ---- what the fields mean ---------------------------------------------------------------------------------------- */

static const struct uvd_field counter_create_fields[] = { UVD_FIELD(struct counter_create, threshold, UVD_ROLE_NUMBER),
							  UVD_FIELD(struct counter_create, user_handle,
								    UVD_ROLE_COOKIE),
							  {} };
static const struct uvd_field counter_add_fields[] = { UVD_FIELD(struct counter_add, amount, UVD_ROLE_NUMBER),
						       UVD_FIELD(struct counter_add, times, UVD_ROLE_NUMBER),
						       {} };
static const struct uvd_field counter_add_reserved[] = { UVD_FIELD(struct counter_add, reserved, UVD_ROLE_RESERVED),
							 {} };
static const struct uvd_field counter_state_fields[] = { UVD_FIELD(struct counter_state, value, UVD_ROLE_NUMBER),
							 UVD_FIELD(struct counter_state, threshold, UVD_ROLE_NUMBER),
							 UVD_FIELD(struct counter_state, contexts, UVD_ROLE_NUMBER),
							 {} };
static const struct uvd_struct counter_create_struct = { .name = "counter_create",
							 .size = sizeof(struct counter_create),
							 .fields = counter_create_fields };
static const struct uvd_struct counter_add_struct = { .name = "counter_add",
						      .size = sizeof(struct counter_add),
						      .fields = counter_add_fields,
						      .reserved = counter_add_reserved };
static const struct uvd_struct counter_state_struct = { .name = "counter_state",
							.size = sizeof(struct counter_state),
							.fields = counter_state_fields };
static const struct uvd_attr_fields counter_roles[] = {
	{ "UVERBS_ATTR_COUNTER_CREATE_IN", UVD_ROLE_STRUCT, .of = &counter_create_struct },
	{ "UVERBS_ATTR_COUNTER_ADD_IN", UVD_ROLE_STRUCT, .of = &counter_add_struct },
	{ "UVERBS_ATTR_COUNTER_READ_OUT", UVD_ROLE_STRUCT, .of = &counter_state_struct },
	{ .attr = NULL }
};

static const struct uvd_plugin_option counter_options[] = {
	{ "initial", "0", "NUMBER", "the value of a new counter" },
	{ .name = NULL },
};

UVD_PLUGIN(.name = "counter", .version = "1", .description = "counters with a threshold", .features = counter_features,
	   .options = counter_options, .init = counter_init, .exit = free, .device_init = counter_device_init,
	   .device_exit = counter_device_exit, .context_init = counter_context_init,
	   .context_exit = counter_context_exit, .attrs = counter_roles);
