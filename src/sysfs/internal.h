/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of this room: they fill the folders of a device (ibdev.c). Return 0 or a negative errno. */
#ifndef UVD_SYSFS_INTERNAL_H
#define UVD_SYSFS_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include "sysfs/sysfs.h"
#include "util/util.h"

struct uvd_persona;

/* Fills dir, which becomes class/infiniband/IBDEV. */
int uvd_sysfs_fill_ibdev(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona);
/* Replace the files that show the state of a port (from 1), or all of its files but counters. dir: class/infiniband/IBDEV. */
int uvd_sysfs_replace_state(int dir, unsigned int port, bool up);
int uvd_sysfs_replace_port(int dir, unsigned int port, const struct uvd_device_config *config);
/*
 * counters.c. Makes the files of a port's counters, which show 0. dir: as above; port: from 1. uvd_sysfs_update_counters()
 * is uvd_sysfs_set_counters() in dir.
 */
int uvd_sysfs_fill_counters(int dir, unsigned int port, const struct uvd_persona *persona);
int uvd_sysfs_update_counters(int dir, unsigned int port, const struct uvd_persona *persona,
			      struct uvd_sysfs_counters *shown, const uint64_t *values);
/* Fills dir, which becomes class/infiniband_verbs/uverbsN. node: st_rdev of the device node. */
int uvd_sysfs_fill_uverbs(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona,
			  dev_t node);

#endif
