/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Wraps ALLOC_PD, QUERY_PORT and the method that destroys a PD. NAME: the plug-in's; WHEN: enum uvd_when. */
#include "toys.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

struct wrap_data {
	struct trace *trace;
	uint64_t fail, fail_destroy;
};

static int wrap_step(struct uvd_req *req, const char *what)
{
	const struct wrap_data *d = uvd_plugin_engine_data(req, &uverbsd_plugin);

	/* This may run on a device that is gone, whose contexts have ended. */
	trace_add(d->trace, TEXT(NAME), uvd_plugin_context_data(req, &uverbsd_plugin) ? what : "without_context");
	return -(int)d->fail;
}

static int wrap_alloc(struct uvd_req *req)
{
	return wrap_step(req, "alloc");
}

static int wrap_port(struct uvd_req *req)
{
	return wrap_step(req, "port");
}

/* Does the handle's object still exist? */
static int wrap_destroy(struct uvd_req *req)
{
	const struct wrap_data *d = uvd_plugin_engine_data(req, &uverbsd_plugin);

	return wrap_step(req, uvd_attr_uobj(req, UVERBS_ATTR_DESTROY_PD_HANDLE)->object ? "alive" : "gone")
		       ?: -(int)d->fail_destroy;
}

static const uvd_step alloc_steps[] = { wrap_alloc, NULL }, port_steps[] = { wrap_port, NULL },
		      destroy_steps[] = { wrap_destroy, NULL };
static const struct uvd_write_row pd_writes[] = { { .name = "IB_USER_VERBS_CMD_ALLOC_PD",
						    .number = IB_USER_VERBS_CMD_ALLOC_PD,
						    .steps = alloc_steps,
						    .when = WHEN } };
static const struct uvd_method_row pd_methods[] = {
	{ .name = "UVERBS_METHOD_PD_DESTROY", .id = UVERBS_METHOD_PD_DESTROY, .steps = destroy_steps, .when = WHEN }
};
static const struct uvd_object_row pd_object = {
	.name = "UVERBS_OBJECT_PD",
	.id = UVERBS_OBJECT_PD,
	UVD_ROWS(writes, pd_writes),
	UVD_ROWS(methods, pd_methods),
};
static const struct uvd_method_row port_methods[] = {
	{ .name = "UVERBS_METHOD_QUERY_PORT", .id = UVERBS_METHOD_QUERY_PORT, .steps = port_steps, .when = WHEN }
};
static const struct uvd_object_row device_object = {
	.name = "UVERBS_OBJECT_DEVICE",
	.id = UVERBS_OBJECT_DEVICE,
	UVD_ROWS(methods, port_methods),
};
static const struct uvd_object_row *const objects[] = { &pd_object, &device_object, NULL };
static const struct uvd_feature feature = { .name = TEXT(NAME) " feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

static int wrap_fails(const struct uvd_plugin_values *values, struct wrap_data *d)
{
	return uvd_plugin_number(values, "fail", 0, 4095, &d->fail)
		       ?: uvd_plugin_number(values, "fail-destroy", 0, 4095, &d->fail_destroy);
}

static int wrap_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	struct wrap_data *d = calloc(1, sizeof(*d));
	void *trace;
	int ret = d ? toy_init(values, &trace) ?: wrap_fails(values, d) : -ENOMEM;

	if (ret) {
		free(d);
		return ret;
	}
	d->trace = trace;
	*data = d;
	return 0;
}

static int wrap_context(struct uvd_context *context, void *device_data, void **data)
{
	*data = context;
	return 0;
}

static const struct uvd_plugin_option options[] = {
	TRACE_OPTION, { .name = "fail", .value = "0" }, { .name = "fail-destroy" }, { .name = NULL }
};

UVD_PLUGIN(.name = TEXT(NAME), .features = features, .options = options, .init = wrap_init, .exit = free,
	   .context_init = wrap_context);
