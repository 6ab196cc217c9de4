/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files and folders below a folder that is held open: for the rooms' own use. */
#ifndef UVD_SYSFS_TREE_H
#define UVD_SYSFS_TREE_H

#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/config.h>

struct uvd_persona;

/* Writes one file, 0444, below dir, with the folders that its path needs (0755). 0 or a negative errno. */
int uvd_tree_put(int dir, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, in the place of a file that readers may be reading. */
int uvd_tree_replace(int dir, const char *path, const char *text);
int uvd_tree_mkdir(int dir, const char *path);
int uvd_tree_link(int dir, const char *path, const char *target);
/* Removes name and all below it; follows no link. What is not there is no error. */
int uvd_tree_remove(int dir, const char *name);
/* Removes everything in dir. */
int uvd_tree_clear(int dir);
/* 1: dir has nothing in it; 0; or a negative errno. */
int uvd_tree_empty(int dir);

/* What class/infiniband/IBDEV and class/infiniband_verbs/uverbsN contain (device.c). */
int uvd_sysfs_fill_ibdev(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona);
/* The files of a port (from 1) that tell its state. */
int uvd_sysfs_fill_state(int dir, unsigned int port, bool up);
int uvd_sysfs_fill_uverbs(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona,
			  dev_t node);

#endif
