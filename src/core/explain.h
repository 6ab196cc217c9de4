/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explanations reach the user: as lines of the log, and through observers. */
#ifndef UVD_CORE_EXPLAIN_H
#define UVD_CORE_EXPLAIN_H

#include <sys/types.h>
#include <uverbsd/reason.h>

struct uvd_caller;
struct uvd_device;
struct uvd_file;

/*
 * Explains something to the opener of the file (NULL: to nobody in particular). user: to whom the line in the log is attributed.
 * Caller holds no lock of the core but the file's destroy_lock, and keeps the file open.
 */
void uvd_file_explain(struct uvd_device *dev, struct uvd_file *file, uid_t user, const struct uvd_explained *explained);
/*
 * Explains to the opener of the file that an allow-list or a quota has refused a call, which is not explained again. verb: the name of
 * its row; the explanation has that of allow-lists. Caller holds no lock of the core but destroy_lock, mcast_lock or the object's.
 */
void uvd_file_explain_rule(struct uvd_file *file, struct uvd_caller *caller, const char *verb, int err,
			   const struct uvd_why *why);
/* struct uvd_ibdev.explain of every device. */
void uvd_device_explain(struct uvd_ibdev *ib, struct uvd_context *context, const struct uvd_explained *explained);

#endif
