/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs, as features of the parse tree. One file an object type, each with its handlers, then its rows. */
#ifndef UVD_OBJECTS_H
#define UVD_OBJECTS_H

#include <uverbsd/schema.h>

/* What uverbsd's devices accept: the three below; ends with NULL. For uvd_engine_init(). */
extern const struct uvd_feature *const uvd_features[];
/* All common verbs. */
extern const struct uvd_feature uvd_feature_common;
/* What uverbsd's devices answer beyond the kernel's ABI: include/uverbsd/abi.h. */
extern const struct uvd_feature uvd_feature_own;
/* The same, behind a User Capability. */
extern const struct uvd_feature uvd_feature_port_state;

#endif
