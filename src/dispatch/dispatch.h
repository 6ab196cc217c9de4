/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a transport calls: an open file, a caller and a request go in, the result of the system call comes out.
 */
#ifndef UVD_DISPATCH_H
#define UVD_DISPATCH_H

#include <stddef.h>
#include <stdint.h>
#include "client/client.h"
#include "dispatch/req.h"

/*
 * One call. The transport fills in file and caller, and owns the memory; it may reuse one for every call of a thread.
 * It need not be zeroed: the dispatch functions set what they use.
 */
struct uvd_call {
	struct uvd_file *file;
	struct uvd_caller caller;
	struct uvd_grant grant; /* after dispatch: an fd that must be granted before the client goes on */
	long result; /* after dispatch, where a grant is pending: what the call returns when it succeeds */
	struct uvd_req req; /* the dispatcher's */
	/*
	 * Set by a transport that answers the client first, and then calls uvd_call_work(), after each call. For other transports
	 * the dispatcher does so.
	 */
	bool works_later;
	struct uvd_work work;
};

/*
 * Does the rest of a call, if there is one, on the thread `worker` (NULL: nobody can take its place). The rest needs nothing of the
 * call, nor of its file, whose end waits for it where it has to: so that must not be the same thread's to end, before this.
 */
void uvd_call_work(struct uvd_call *call, struct uvd_worker *worker);
/* For a transport whose call is another's by the time that it is done. run may be NULL. */
struct uvd_work uvd_call_take_work(struct uvd_call *call);

/*
 * write(fd, buf, len). buf is our private copy of the client's data, len bytes; 8-byte aligned. Whether the writer is the
 * opener has been checked by the transport (EACCES).
 * Returns len, or a negative errno. Where call->grant.uobj is set, the transport must call uvd_call_granted(), whatever
 * became of the client: the open file cannot be closed before.
 * The DESTROY_CQ of rdma-core 18 and 19, 16 bytes that mean 24, is -ENOSPC here: what it leaves out is the handle, and
 * only uvd_dispatch_write_from() can read it.
 */
long uvd_dispatch_write(struct uvd_call *call, const void *buf, size_t len);
/* The same for a client whose data is still in its own memory: reads it once. */
long uvd_dispatch_write_from(struct uvd_call *call, uint64_t addr, size_t len);
/* ioctl(fd, cmd, arg). -ENOTTY: not RDMA_VERBS_IOCTL, or the device poses as one without it. */
long uvd_dispatch_ioctl(struct uvd_call *call, unsigned int cmd, uint64_t arg);

/*
 * The end of a grant. fd: the number that the client's end of call->grant.file has in the client, or the negative errno
 * of the attempt (-EMFILE and -ENFILE reach the client; others mean that granting is impossible here). Writes the number
 * or the fallback, commits or aborts the object, and returns the final result of the call. The client must still be held:
 * it has not returned to its code yet. If the result is negative the fd that the client has must be taken away again.
 */
long uvd_call_granted(struct uvd_call *call, int fd);

#endif
