/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explanations reach the user: as lines of the log, and through observers. */
#ifndef UVD_CORE_EXPLAIN_H
#define UVD_CORE_EXPLAIN_H

#include <sys/types.h>
#include <uverbsd/reason.h>

struct uvd_device;
struct uvd_file;

/*
 * Explains something to the opener of the file (NULL: to nobody in particular). user: to whom the line in the log is attributed.
 * Caller holds no lock of the core but the file's destroy_lock, and keeps the file open.
 */
void uvd_file_explain(struct uvd_device *dev, struct uvd_file *file, uid_t user, const struct uvd_explained *explained);
/* struct uvd_ibdev.explain of every device. */
void uvd_device_explain(struct uvd_ibdev *ib, struct uvd_context *context, const struct uvd_explained *explained);

#endif
