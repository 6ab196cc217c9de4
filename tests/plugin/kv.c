/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plug-in with an object and every hook. VERSION: 1 or 2. */
#include <stdlib.h>
#include "toys.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define WHO "kv" TEXT(VERSION)

struct kv_data {
	struct trace *trace;
};

static void *kv_data_new(struct trace *trace)
{
	struct kv_data *d = malloc(sizeof(*d));

	if (d)
		d->trace = trace;
	return d;
}

static int kv_create(struct uvd_req *req)
{
	struct kv_data *context = uvd_plugin_context_data(req, &uverbsd_plugin);
	struct kv_data *kv = kv_data_new(context ? context->trace : NULL);

	if (!kv)
		return -ENOMEM;
	uvd_attr_set_object(req, A_KV_HANDLE, kv);
	return 0;
}

static int kv_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct kv_data *kv = uvd_uobject_object(uobj);

	trace_add(kv->trace, WHO, "destroy");
	free(kv);
	return 0;
}

static int kv_ask(struct uvd_req *req)
{
	struct kv_answer answer = {
		.version = VERSION,
		.engine = !!uvd_plugin_engine_data(req, &uverbsd_plugin),
		.device = !!uvd_plugin_device_data(req, &uverbsd_plugin),
		.context = !!uvd_plugin_context_data(req, &uverbsd_plugin),
	};

	return uvd_attr_copy_to(req, A_KV_ANSWER, &answer);
}

static int kv_port(struct uvd_req *req)
{
	const uint64_t version = VERSION;
	int ret = uvd_attr_copy_to(req, A_KV_PORT, &version);

	return ret == -ENOENT ? 0 : ret;
}

/* Runs in the call that makes the context. */
static int kv_context(struct uvd_req *req)
{
	static const struct uvd_plugin other;

	if (uvd_plugin_engine_data(req, &other) || uvd_plugin_device_data(req, &other) ||
	    uvd_plugin_context_data(req, &other))
		return -EPROTO;
	return uvd_plugin_context_data(req, &uverbsd_plugin) ? 0 : -EPROTO;
}

static const uvd_step context_steps[] = { kv_context, NULL };
static const uvd_step create_steps[] = { kv_create, NULL }, ask_steps[] = { kv_ask, NULL },
		      port_steps[] = { kv_port, NULL };
static const struct uvd_attr_row create_attrs[] = { UVD_IDR(A_KV_HANDLE, OBJ_KV, UVD_UOBJ_NEW, UVD_MANDATORY) };
static const struct uvd_attr_row destroy_attrs[] = { UVD_IDR(A_KV_HANDLE, OBJ_KV, UVD_UOBJ_DESTROY, UVD_MANDATORY) };
static const struct uvd_attr_row ask_attrs[] = { UVD_PTR_OUT(A_KV_ANSWER, sizeof(struct kv_answer), UVD_MANDATORY) };
static const struct uvd_attr_row port_attrs[] = { UVD_PTR_OUT(A_KV_PORT, 8, 0) };
static const struct uvd_method_row methods[] = {
	UVD_METHOD(M_KV_CREATE, create_attrs, create_steps),
	UVD_METHOD(M_KV_DESTROY, destroy_attrs, NULL),
	UVD_METHOD(M_KV_ASK, ask_attrs, ask_steps),
};
static const struct uvd_object_row kv_object = {
	.name = "OBJ_KV",
	.id = OBJ_KV,
	.cls = UVD_CLASS_IDR,
	.destroy = kv_destroy,
	UVD_ROWS(methods, methods),
};
/* An attribute of a standard method, and the step that fills it in. */
static const struct uvd_method_row device_methods[] = { {
	.name = "UVERBS_METHOD_QUERY_PORT",
	.id = UVERBS_METHOD_QUERY_PORT,
	UVD_ROWS(attrs, port_attrs),
	.steps = port_steps,
	.when = UVD_STEPS_AFTER,
} };
static const struct uvd_write_row device_writes[] = { {
	.name = "IB_USER_VERBS_CMD_GET_CONTEXT",
	.number = IB_USER_VERBS_CMD_GET_CONTEXT,
	.steps = context_steps,
	.when = UVD_STEPS_AFTER,
} };
static const struct uvd_object_row device_object = {
	.name = "UVERBS_OBJECT_DEVICE",
	.id = UVERBS_OBJECT_DEVICE,
	UVD_ROWS(methods, device_methods),
	UVD_ROWS(writes, device_writes),
};
static const struct uvd_object_row *const objects[] = { &kv_object, &device_object, NULL };
static const struct uvd_feature feature = { .name = "kv feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

static int kv_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	int ret = toy_init(values, data);

	if (!ret)
		trace_add(*data, WHO, "init");
	return ret;
}

static void kv_exit(void *data)
{
	trace_add(data, WHO, "exit");
}

static int kv_device_init(struct uvd_ibdev *dev, void *engine_data, void **data)
{
	const struct trace *t = engine_data;

	trace_add(engine_data, WHO, "device_init");
	if (t && t->fail_device && !strcmp(dev->config.ibdev, t->fail_device))
		return -EXDEV;
	*data = kv_data_new(engine_data);
	return *data ? 0 : -ENOMEM;
}

static void kv_device_exit(struct uvd_ibdev *dev, void *data)
{
	trace_add(((struct kv_data *)data)->trace, WHO, "device_exit");
	free(data);
}

static int kv_context_init(struct uvd_context *context, void *device_data, void **data)
{
	trace_add(((struct kv_data *)device_data)->trace, WHO, "context_init");
	*data = kv_data_new(((struct kv_data *)device_data)->trace);
	return *data ? 0 : -ENOMEM;
}

static void kv_context_exit(struct uvd_context *context, void *data)
{
	trace_add(((struct kv_data *)data)->trace, WHO, "context_exit");
	free(data);
}

static const struct uvd_plugin_option options[] = { TRACE_OPTION, { .name = "other" }, { .name = NULL } };

UVD_PLUGIN(.name = "kv", .version = TEXT(VERSION), .description = "a toy", .features = features, .options = options,
	   .init = kv_init, .exit = kv_exit, .device_init = kv_device_init, .device_exit = kv_device_exit,
	   .context_init = kv_context_init, .context_exit = kv_context_exit);
