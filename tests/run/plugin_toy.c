/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plug-in with an object that clients hold, and handlers with the mistakes that uverbsd tells by name. VERSION: 1 or 2. */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/persona.h>
#include <uverbsd/plugin.h>
#include <uverbsd/request.h>

enum {
	UVERBS_OBJECT_TOY = 0x1300,
	UVERBS_METHOD_TOY_NEW = 0x1300,
	UVERBS_METHOD_TOY_FREE,
	UVERBS_METHOD_TOY_ASK,
	UVERBS_METHOD_TOY_FORGET_OBJECT,
	UVERBS_METHOD_TOY_FORGET_OUTPUT,
	UVERBS_METHOD_TOY_CRASH,
	UVERBS_METHOD_TOY_ABORT,
	UVERBS_METHOD_TOY_RECURSE,
	UVERBS_METHOD_TOY_OVERFLOW,
	UVERBS_METHOD_TOY_LEAK,
	UVERBS_ATTR_TOY_HANDLE = 0x1300,
	UVERBS_ATTR_TOY_ANSWER,
};

static int toy_new(struct uvd_req *req)
{
	void *toy = malloc(1);

	if (!toy)
		return -ENOMEM;
	uvd_attr_set_object(req, UVERBS_ATTR_TOY_HANDLE, toy);
	return 0;
}

static int toy_free(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	free(uvd_uobject_object(uobj));
	return 0;
}

static int toy_ask(struct uvd_req *req)
{
	const uint64_t *answer = uvd_plugin_engine_data(req, &uverbsd_plugin);

	return uvd_attr_copy_to(req, UVERBS_ATTR_TOY_ANSWER, answer);
}

static int toy_forget(struct uvd_req *req)
{
	return 0;
}

static int toy_crash(struct uvd_req *req)
{
	int *volatile nowhere = (int *)8;

	*nowhere = 1;
	return 0;
}

static int toy_abort(struct uvd_req *req)
{
	abort();
}

static int toy_deeper(volatile char *above)
{
	volatile char frame[4096];

	frame[0] = above[0];
	return frame[0] ? 0 : toy_deeper(frame) + frame[0];
}

static int toy_recurse(struct uvd_req *req)
{
	volatile char begin = 0;

	return toy_deeper(&begin);
}

/* Faults that a sanitizer finds, and nobody else. */
static int toy_overflow(struct uvd_req *req)
{
	volatile char *volatile block = malloc(16); /* else the compiler leaves the write out, or refuses it */

	if (block)
		block[16] = 1;
	free((void *)block);
	return 0;
}

static int toy_leak(struct uvd_req *req)
{
	char *volatile block = malloc(123);

	return block ? 0 : -ENOMEM;
}

static const uvd_step new_steps[] = { toy_new, NULL }, ask_steps[] = { toy_ask, NULL },
		      forget_steps[] = { toy_forget, NULL }, crash_steps[] = { toy_crash, NULL },
		      abort_steps[] = { toy_abort, NULL }, recurse_steps[] = { toy_recurse, NULL },
		      overflow_steps[] = { toy_overflow, NULL }, leak_steps[] = { toy_leak, NULL };
static const struct uvd_attr_row new_attrs[] = { UVD_IDR(UVERBS_ATTR_TOY_HANDLE, UVERBS_OBJECT_TOY, UVD_UOBJ_NEW,
							 UVD_MANDATORY) };
static const struct uvd_attr_row free_attrs[] = { UVD_IDR(UVERBS_ATTR_TOY_HANDLE, UVERBS_OBJECT_TOY, UVD_UOBJ_DESTROY,
							  UVD_MANDATORY) };
static const struct uvd_attr_row ask_attrs[] = { UVD_PTR_OUT(UVERBS_ATTR_TOY_ANSWER, 8, UVD_MANDATORY) };
static const struct uvd_attr_row no_attrs[] = { UVD_PTR_OUT(UVERBS_ATTR_TOY_ANSWER, 8, 0) };
static const struct uvd_method_row methods[] = {
	UVD_METHOD(UVERBS_METHOD_TOY_NEW, new_attrs, new_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_FREE, free_attrs, NULL),
	UVD_METHOD(UVERBS_METHOD_TOY_ASK, ask_attrs, ask_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_FORGET_OBJECT, new_attrs, forget_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_FORGET_OUTPUT, ask_attrs, forget_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_CRASH, no_attrs, crash_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_ABORT, no_attrs, abort_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_RECURSE, no_attrs, recurse_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_OVERFLOW, no_attrs, overflow_steps),
	UVD_METHOD(UVERBS_METHOD_TOY_LEAK, no_attrs, leak_steps),
};
static const struct uvd_object_row toy_object = {
	.name = "UVERBS_OBJECT_TOY",
	.id = UVERBS_OBJECT_TOY,
	.cls = UVD_CLASS_IDR,
	.destroy = toy_free,
	UVD_ROWS(methods, methods),
};
static const struct uvd_object_row *const objects[] = { &toy_object, NULL };
static const struct uvd_feature feature = { .name = "toy feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

static int toy_context(struct uvd_context *context, struct uvd_udata *udata)
{
	return 0;
}

static void toy_context_end(struct uvd_context *context)
{
}

static const struct uvd_backend backend = {
	.name = "toyback",
	.size_context = sizeof(struct uvd_context),
	.query_device = uvd_config_query_device,
	.query_port = uvd_config_query_port,
	.query_gid = uvd_config_query_gid,
	.alloc_context = toy_context,
	.dealloc_context = toy_context_end,
};
static const struct uvd_backend *const backends[] = { &backend, NULL };

static const struct uvd_counter_file counters[] = { { NULL } };
static const struct uvd_persona persona = {
	.name = "toyface",
	.ibdev_prefix = "toy_",
	.driver_id = RDMA_DRIVER_HFI1,
	.abi_version = 1,
	.modalias = "pci:v00001077d00007220sv00sd00bc00sc00i00",
	.board_id = "toy",
	.fw_ver = "1.2.3",
	.node_desc = "toy",
	.hw_counters = counters,
	.link_layer = IBV_LINK_LAYER_INFINIBAND,
};
static const struct uvd_persona *const personas[] = { &persona, NULL };

static int toy_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	uint64_t *answer = malloc(sizeof(*answer));

	if (!answer)
		return -ENOMEM;
	*data = answer;
	*answer = VERSION;
	return uvd_plugin_number(values, "answer", 0, 1000, answer);
}

static const struct uvd_plugin_option options[] = {
	{ .name = "answer", .metavar = "N", .help = "what TOY_ASK answers" },
	{ .name = "colour", .value = "red", .help = "of the toy" },
	{ .name = NULL },
};

UVD_PLUGIN(.name = "toy", .version = "1.0", .description = "a toy", .features = features, .backends = backends,
	   .personas = personas, .options = options, .init = toy_init, .exit = free);
