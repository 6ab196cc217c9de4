/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Plug-ins that must be refused, and one that is older. BAD says what is wrong. */
#include "toys.h"

static int bad_step(struct uvd_req *req)
{
	return 0;
}

static int bad_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	return 0;
}

static int bad_init(const struct uvd_plugin_values *values, struct uvd_log *log, void **data)
{
	return -EXDEV;
}

static int bad_device_init(struct uvd_ibdev *dev, void *engine_data, void **data)
{
	return -EXDEV;
}

static const uvd_step steps[] = { bad_step, NULL };
static const struct uvd_attr_row attrs[] = { {
	.name = "A_BAD",
	.id = 0x1300,
	.type = UVD_ATTR_PTR_IN,
	.min_len = BAD == 4 ? 9 : 4,
	.len = 8,
} };
static const struct uvd_method_row methods[] = { {
	.name = BAD == 15 ? NULL : "M_BAD",
	.id = 0x1300,
	.attrs = attrs,
	.num_attrs = BAD == 3 ? 0 : 1,
	.steps = BAD == 3 || BAD == 8 ? NULL : steps,
	.when = BAD == 9 ? UVD_STEPS_BEFORE : UVD_STEPS_OWN,
} };
static const struct uvd_write_row writes[] = { { .name = "", .steps = steps } };
static const struct uvd_object_row object = {
	.name = "OBJ_BAD",
	.id = BAD == 7 ? OBJ_KV : 0x1300,
	.cls = BAD == 13 ? UVD_CLASS_FD : UVD_CLASS_IDR,
	.destroy = BAD == 2 ? NULL : bad_destroy,
	.size = BAD == 5 ? UINT16_MAX - 7 : 0,
	UVD_ROWS(methods, methods),
	.writes = writes,
	.num_writes = BAD == 16,
};
static const struct uvd_object_row *const objects[] = { &object, NULL };
static const struct uvd_feature feature = { .name = "bad feature", .objects = objects };
static const struct uvd_feature *const features[] = { &feature, NULL };

static const struct uvd_backend backend = { .name = BAD == 6 ? "toy" : "null" };
static const struct uvd_backend *const backends[] = { &backend, NULL };

/* Compiled when struct uvd_persona ended with the queues of before. */
static const struct uvd_counter_file no_counters[] = { {} };
static const struct uvd_persona persona = {
	.name = "bad",
	.ibdev_prefix = "bad",
	.modalias = "",
	.board_id = "",
	.fw_ver = "",
	.node_desc = "",
	.hw_counters = no_counters,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.queues_before = &persona,
};
static const struct uvd_persona *const personas[] = { &persona, NULL };

UVD_API const struct uvd_plugin uverbsd_plugin = {
	.api_version = BAD == 1 ? UVD_API_VERSION + 1 : UVD_API_VERSION,
	.struct_size = BAD == 0 ? offsetof(struct uvd_plugin, init) : sizeof(struct uvd_plugin),
	.backend_size = sizeof(struct uvd_backend),
	.name = BAD == 12  ? "a name"
		: BAD == 0 ? "old"
			   : "bad",
	.features = features,
	.backends = BAD == 6 ? backends : NULL,
	.personas = BAD == 14 ? personas : NULL,
	.persona_size = offsetof(struct uvd_persona, queues),
	.init = BAD == 0 || BAD == 10 ? bad_init : NULL,
	.device_init = BAD == 11 ? bad_device_init : NULL,
};
