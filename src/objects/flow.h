/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parses the layers and actions of CREATE_FLOW (flow_spec.c). */
#ifndef UVD_OBJECTS_FLOW_H
#define UVD_OBJECTS_FLOW_H

#include "objects/internal.h"

enum {
	UVD_FLOW_MAX_SPECS = 10, /* IB_FLOW_SPEC_SUPPORT_LAYERS */
	UVD_FLOW_MAX_SPEC_SIZE = 88, /* sizeof(struct ib_uverbs_flow_spec): its longest member is the IPv6 spec */
};

/*
 * Parses and checks num specs, which must fill exactly len bytes, into specs, which the caller has zeroed. Looks up the
 * objects of actions; the request keeps them locked for shared use until it ends. Returns 0, the errno of the first bad
 * spec (flow-02), or -EINVAL if num and len do not agree.
 */
int uvd_flow_parse_specs(struct uvd_req *req, const void *buf, size_t len, struct uvd_flow_spec *specs,
			 unsigned int num);

#endif
