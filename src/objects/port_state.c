/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UVERBSD_OBJECT_PORT (include/uverbsd/abi.h): a client sets the state of a port. This affects every client of the
 * device, so the feature requires a User Capability. It also serves as an example of such a feature.
 */
#include <errno.h>
#include <uverbsd/abi.h>
#include <uverbsd/backend.h>
#include <uverbsd/request.h>
#include <uverbsd/schema.h>

static int set_state(struct uvd_req *req)
{
	uint64_t port, up;
	int ret = uvd_attr_const(req, UVERBSD_ATTR_PORT_SET_STATE_PORT, UINT32_MAX, &port);

	ret = ret ?: uvd_attr_const(req, UVERBSD_ATTR_PORT_SET_STATE_UP, 1, &up);
	if (ret)
		return ret;
	ret = uvd_ibdev_set_port(uvd_req_ibdev(req), port, up);
	if (ret == -EINVAL)
		return uvd_bad(req, ret, "UVERBSD_ATTR_PORT_SET_STATE_PORT", port);
	return ret < 0 ? ret : 0;
}

static const uvd_step set_state_steps[] = { uvd_step_context, set_state, NULL };

static const struct uvd_attr_row set_state_attrs[] = {
	UVD_CONST_IN(UVERBSD_ATTR_PORT_SET_STATE_PORT, UVD_MANDATORY),
	UVD_CONST_IN(UVERBSD_ATTR_PORT_SET_STATE_UP, UVD_MANDATORY),
};

static const struct uvd_method_row port_state_methods[] = {
	UVD_METHOD(UVERBSD_METHOD_PORT_SET_STATE, set_state_attrs, set_state_steps),
};

static const struct uvd_object_row port_object = {
	.name = "UVERBSD_OBJECT_PORT",
	.id = UVERBSD_OBJECT_PORT,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, port_state_methods),
};

static const struct uvd_object_row *const objects[] = { &port_object, NULL };

const struct uvd_feature uvd_feature_port_state = {
	.name = "uverbsd port state",
	.ucap = UVERBSD_UCAP_PORT_STATE,
	.objects = objects,
};
