/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files of the dispatcher share these declarations. */
#ifndef UVD_DISPATCH_INTERNAL_H
#define UVD_DISPATCH_INTERNAL_H

#include <rdma/rdma_user_ioctl_cmds.h>

#include "dispatch/dispatch.h"
#include "util/util.h"

static inline struct uvd_req_buffers *uvd_buffers(struct uvd_req *req)
{
	return &container_of(req, struct uvd_call, req)->buffers;
}

/* Sets up the request of a call. uvd_req_finish() ends it. */
struct uvd_req *uvd_req_init(struct uvd_call *call, enum uvd_front front);
/* Ends every request: writes outputs, commits or aborts, logs. result: returned if the call succeeds. */
long uvd_req_finish(struct uvd_req *req, int err, long result);
/* This thread is in no request any more. */
void uvd_req_left(void);
/* Runs the steps until one fails, or the transport has let the call go (-EINTR). */
int uvd_run_steps(struct uvd_req *req, const uvd_step *steps);
/* Like uvd_req_alloc(), but from the request's own buffer if there is room, and not zeroed. */
void *uvd_req_in_buffer(struct uvd_req *req, size_t len);

/* Reads the client's memory at src, or our copy if it was read ahead. -EFAULT; address 0 is never valid. */
int uvd_req_read(struct uvd_req *req, void *dst, uint64_t src, size_t len);

static inline void uvd_mark_written(struct uvd_req *req, unsigned int index)
{
	req->written[index / 64] |= 1ULL << index % 64;
}

/* Writes everything staged, with the handle and the flags; nothing is staged afterwards. Returns 0 or -EFAULT. */
int uvd_out_flush(struct uvd_req *req);

/*
 * checks.c, if UVD_CHECKS: tells the log about what the handler of a method that succeeded has forgotten: the object of
 * a new handle, or an output that the client must send room for.
 */
void uvd_check_method(struct uvd_req *req);

/* Explains what was wrong with a request that failed with err, if anybody wants to know. Caller holds no lock. */
void uvd_req_log_failure(struct uvd_req *req, int err) __attribute__((cold));

/* Does the client's allow-list have this verb (of a row of the tree)? Returns 0 or -EPERM. */
static inline int uvd_req_check_verb(struct uvd_req *req, uint64_t verb)
{
	if (__builtin_expect(!uvd_file_allowed(req->file), 1))
		return 0;
	return uvd_file_check_verb(req->file, req->caller, req->name, verb);
}

/* uapi_get_method(): finds a write() command; its row may be NULL. Returns 0, -EINVAL or -EOPNOTSUPP. */
int uvd_write_find(const struct uvd_tree *tree, uint32_t command, const struct uvd_tree_write **out);

/*
 * Puts the objects that the request has looked up. Those that it has begun are left alone if keep_new, else committed
 * or aborted.
 */
void uvd_objects_release(struct uvd_req *req, bool commit, bool keep_new);
/* uvd_req_get(), but records no bad field for the log. */
int uvd_req_lookup(struct uvd_req *req, uint16_t object, int64_t id, enum uvd_uobj_access access,
		   struct uvd_uobject **out);

#endif
