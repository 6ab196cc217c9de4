/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Actions of flows. The kernel has removed its methods that create and modify them (ESP). The common ABI can only
 * destroy one and name it in a flow (flow_spec.c); drivers have methods that create them.
 */
#include "objects/internal.h"

static int flow_action_destroy_uobj(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct uvd_flow_action *action = uobj->object;
	int ret = uvd_destroy_unused(uobj, action, destroy_flow_action);

	return ret ? ret : uvd_object_free(uobj);
}

static const struct uvd_attr_row flow_action_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, UVERBS_OBJECT_FLOW_ACTION, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row flow_action_methods[] = {
	UVD_METHOD(UVERBS_METHOD_FLOW_ACTION_DESTROY, flow_action_destroy_attrs, NULL),
};

const struct uvd_object_row uvd_object_flow_action = {
	.name = "UVERBS_OBJECT_FLOW_ACTION",
	.id = UVERBS_OBJECT_FLOW_ACTION,
	.cls = UVD_CLASS_IDR,
	.destroy = flow_action_destroy_uobj,
	UVD_ROWS(methods, flow_action_methods),
	.needs = { UVD_OP(destroy_flow_action) },
};
