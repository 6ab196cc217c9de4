/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The features of uverbsd's devices, whose objects are merged into the parse trees. */
#include "objects/internal.h"

static const struct uvd_object_row *const common_objects[] = {
	&uvd_object_device,	  &uvd_object_device_comp_cntr,
	&uvd_object_pd,		  &uvd_object_comp_channel,
	&uvd_object_cq,		  &uvd_object_qp,
	&uvd_object_qp_comp_cntr, &uvd_object_srq,
	&uvd_object_ah,		  &uvd_object_mr,
	&uvd_object_mr_methods,	  &uvd_object_mw,
	&uvd_object_dm,		  &uvd_object_counters,
	&uvd_object_async_event,  &uvd_object_wq,
	&uvd_object_rwq_ind_tbl,  &uvd_object_dmah,
	&uvd_object_dmabuf,	  &uvd_object_comp_cntr,
	&uvd_object_xrcd,	  &uvd_object_flow,
	&uvd_object_flow_action,  NULL,
};

const struct uvd_feature uvd_feature_common = { .name = "common verbs", .objects = common_objects };

static const struct uvd_object_row *const own_objects[] = { &uvd_object_tree, &uvd_object_counters_bind, NULL };

const struct uvd_feature uvd_feature_own = { .name = "uverbsd", .objects = own_objects };

static const struct uvd_feature *const verbs_features[] = { &uvd_feature_common, &uvd_feature_own, NULL };
static const struct uvd_feature *const port_state_features[] = { &uvd_feature_port_state, NULL };

#define BUILTIN .api_version = UVD_API_VERSION, .struct_size = sizeof(struct uvd_plugin)
static const struct uvd_plugin verbs_plugin = {
	BUILTIN,
	.name = "verbs",
	.description = "the kernel's verbs and uverbsd's own",
	.features = verbs_features,
};
static const struct uvd_plugin port_state_plugin = {
	BUILTIN,
	.name = "port_state",
	.description = "takes ports down and up",
	.features = port_state_features,
};

const struct uvd_plugin *const uvd_object_plugins[] = { &verbs_plugin, &port_state_plugin, NULL };

const struct uvd_feature *const uvd_features[] = { &uvd_feature_common, &uvd_feature_own, &uvd_feature_port_state,
						   NULL };
