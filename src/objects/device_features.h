/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device's features, from its making to its end: for engine.c. */
#ifndef UVD_DEVICE_FEATURES_H
#define UVD_DEVICE_FEATURES_H

struct uvd_device;
struct uvd_feature;

void uvd_device_features_init(struct uvd_device *dev);
/* One more; before merge(). 0 or -ENOSPC. */
int uvd_device_features_add(struct uvd_device *dev, const struct uvd_feature *feature);
/*
 * Makes dev->tree. dev->ib.ops is set. 0, or as uvd_tree_new(): features that only some contexts see must fit together, too.
 */
int uvd_device_features_merge(struct uvd_device *dev);
void uvd_device_features_fini(struct uvd_device *dev);

#endif
