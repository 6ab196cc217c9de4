/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The common verbs: one file for each object type, each with its handlers, then its rows. */
#ifndef UVD_OBJECTS_H
#define UVD_OBJECTS_H

#include <uverbsd/schema.h>

extern const struct uvd_object_row uvd_object_device, uvd_object_pd, uvd_object_comp_channel, uvd_object_async_event,
	uvd_object_cq, uvd_object_qp, uvd_object_mr, uvd_object_mw, uvd_object_ah, uvd_object_srq,
	uvd_object_wq, uvd_object_rwq_ind_tbl, uvd_object_xrcd, uvd_object_flow, uvd_object_flow_action,
	uvd_object_mr_methods, uvd_object_dm, uvd_object_dmah, uvd_object_dmabuf, uvd_object_counters,
	uvd_object_comp_cntr, uvd_object_qp_comp_cntr, uvd_object_device_comp_cntr;

/* All of them. */
extern const struct uvd_feature uvd_feature_common;
/* What uverbsd's devices answer beyond the kernel's ABI: include/uverbsd/abi.h. */
extern const struct uvd_feature uvd_feature_own;
/* The same, behind a User Capability. */
extern const struct uvd_feature uvd_feature_port_state;

#endif
