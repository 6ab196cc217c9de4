/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The layers and actions of a flow, as they come in CREATE_FLOW (flow_spec.c). */
#ifndef UVD_OBJECTS_FLOW_H
#define UVD_OBJECTS_FLOW_H

#include "objects/internal.h"

enum {
	UVD_FLOW_MAX_SPECS = 10, /* IB_FLOW_SPEC_SUPPORT_LAYERS */
	UVD_FLOW_MAX_SPEC_SIZE = 88, /* struct ib_uverbs_flow_spec: that of IPv6 is the longest */
};

/*
 * Checks exactly num specs that fill exactly len bytes, and looks the objects of actions up, for shared use until the
 * request ends. specs: zeroed. 0, or what the first bad one deserves (flow-02); -EINVAL where number and length do not
 * agree.
 */
int uvd_flow_parse_specs(struct uvd_req *req, const void *buf, size_t len, struct uvd_flow_spec *specs,
			 unsigned int num);

#endif
