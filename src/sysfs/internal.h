/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of this room share: what a device's entries contain (ibdev.c). */
#ifndef UVD_SYSFS_INTERNAL_H
#define UVD_SYSFS_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include "util/util.h"

struct uvd_persona;

/* What class/infiniband/IBDEV and class/infiniband_verbs/uverbsN contain. */
int uvd_sysfs_fill_ibdev(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona);
/* The files of a port (from 1) that tell its state. */
int uvd_sysfs_fill_state(int dir, unsigned int port, bool up);
int uvd_sysfs_fill_uverbs(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona,
			  dev_t node);

#endif
