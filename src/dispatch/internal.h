/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the dispatcher share. */
#ifndef UVD_DISPATCH_INTERNAL_H
#define UVD_DISPATCH_INTERNAL_H

#include <rdma/rdma_user_ioctl_cmds.h>

#include "dispatch/dispatch.h"

struct uvd_req *uvd_req_init(struct uvd_call *call, enum uvd_front front);
/* The one end of all requests: writes outputs, commits or aborts, logs. result: of a call that succeeds. */
long uvd_req_finish(struct uvd_req *req, int err, long result);
int uvd_run_steps(struct uvd_req *req, const uvd_step *steps);
/* Like uvd_req_alloc(), but from the request's own buffer where there is room, and not zeroed. */
void *uvd_req_in_buffer(struct uvd_req *req, size_t len);

/* What the client's memory holds at src; an address of 0 is never valid. */
int uvd_req_read(struct uvd_req *req, void *dst, uint64_t src, size_t len);

static inline void uvd_mark_written(struct uvd_req *req, unsigned int index)
{
	req->written[index / 64] |= 1ULL << index % 64;
}

/* Writes all that was staged, with handles and flags; nothing is staged afterwards. -EFAULT. */
int uvd_out_flush(struct uvd_req *req);

/* uapi_get_method(): *out's row may be NULL. -EINVAL, -EOPNOTSUPP. */
int uvd_write_find(const struct uvd_tree *tree, uint32_t command, const struct uvd_tree_write **out);

/* Puts or aborts everything; commit: commits what was begun. keep_new: leaves what was begun alone. */
void uvd_objects_release(struct uvd_req *req, bool commit, bool keep_new);
int uvd_req_lookup(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_access access, struct uvd_uobject **out);

#endif
