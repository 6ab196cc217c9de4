/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node of a User Capability over CUSE: it can be opened, and that is all. */
#ifndef UVD_CUSE_UCAP_H
#define UVD_CUSE_UCAP_H

#include <stdbool.h>
#include <sys/types.h>

struct uvd_cuse_ucap;
struct uvd_log;

/* The node, mode 0600 and root's, with a thread that serves it. NULL: *err is negative, and the log says why. */
struct uvd_cuse_ucap *uvd_cuse_ucap_new(const char *name, struct uvd_log *log, int *err);
dev_t uvd_cuse_ucap_rdev(const struct uvd_cuse_ucap *u);
/* The node goes. Who has it open keeps a file that stands for nothing. */
void uvd_cuse_ucap_free(struct uvd_cuse_ucap *u);

#endif
