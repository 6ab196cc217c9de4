/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Steps that the dispatcher provides, for the rows of UVERBS_OBJECT_DEVICE. */
#ifndef UVD_STEPS_H
#define UVD_STEPS_H

struct uvd_req;

/* UVERBS_METHOD_INVOKE_WRITE: runs the row of a write() command. */
int uvd_step_invoke_write(struct uvd_req *req);
/* UVERBS_METHOD_INFO_HANDLES. */
int uvd_step_info_handles(struct uvd_req *req);

#endif
