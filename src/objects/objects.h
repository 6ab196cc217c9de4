/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs, as features of the parse tree. Each object type has a file with its handlers, then its rows. */
#ifndef UVD_OBJECTS_H
#define UVD_OBJECTS_H

#include <uverbsd/plugin.h>
#include <uverbsd/schema.h>

struct uvd_object_facts;
struct uvd_uobject;

/* The plug-ins of the verbs, for uvd_engine_init(); ends with NULL. */
extern const struct uvd_plugin *const uvd_object_plugins[];
/* The features that they bring: the three below, then NULL. */
extern const struct uvd_feature *const uvd_features[];
/* All common verbs. */
extern const struct uvd_feature uvd_feature_common;
/* uverbsd's extensions of the kernel's ABI (include/uverbsd/abi.h) that need no User Capability. */
extern const struct uvd_feature uvd_feature_own;
/* The extension that requires a User Capability: UVERBSD_OBJECT_PORT. */
extern const struct uvd_feature uvd_feature_port_state;

/* The engine's take_facts(), for the objects above. */
void uvd_object_take_facts(const struct uvd_uobject *uobj, struct uvd_object_facts *facts);

#endif
