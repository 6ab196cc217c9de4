/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface for transports: they pass an open file, a caller and a request, and get the result of the system call.
 */
#ifndef UVD_DISPATCH_H
#define UVD_DISPATCH_H

#include <stddef.h>
#include <stdint.h>
#include "client/client.h"
#include "dispatch/req.h"

/*
 * One call. The transport fills in file and caller, and owns the memory; it may reuse one for every call of a thread.
 * Before the first call, works_later must be set and work.run must be NULL. The dispatch functions set the rest.
 */
struct uvd_call {
	struct uvd_file *file;
	struct uvd_caller caller;
	struct uvd_grant grant; /* after dispatch: an fd that must be granted before the client goes on */
	long result; /* after dispatch, where a grant is pending: what the call returns when it succeeds */
	int not_replaced; /* before uvd_call_granted(), if grant.replaces: 0, or why the client's descriptor was not replaced */
	struct uvd_req req; /* the dispatcher's, with its buffers */
	struct uvd_req_buffers buffers;
	/*
	 * True: the transport answers the client first, and then runs the work of each call, by uvd_call_work() or
	 * after uvd_call_take_work(). False: the dispatcher runs it at the end of the call.
	 */
	bool works_later;
	struct uvd_work work;
};

/* After dispatch: must something be granted before the client goes on? Then uvd_call_granted() follows. */
static inline bool uvd_call_is_pending(const struct uvd_call *call)
{
	return call->grant.uobj || call->grant.replaces;
}

/*
 * Runs the work that a call has left, if any, on the calling thread. worker: that thread; NULL: no other thread can
 * replace it meanwhile. The work uses neither the call nor its file. The close of the file may wait for the work, so
 * the calling thread must not close the file first.
 */
void uvd_call_work(struct uvd_call *call, struct uvd_worker *worker);
/* Takes the work out of a call, for a transport that reuses the call before the work is done. run may be NULL. */
struct uvd_work uvd_call_take_work(struct uvd_call *call);

/*
 * write(fd, buf, len). buf is our private copy of the client's data, len bytes, aligned to 8 bytes. The transport has
 * checked that the writer is the opener (EACCES). Returns len, or a negative errno. If uvd_call_is_pending(), the
 * transport must call uvd_call_granted(), whatever has become of the client: the open file cannot be closed before.
 * rdma-core 18 and 19 write only 16 of the 24 bytes of DESTROY_CQ. That is -ENOSPC here: the missing bytes hold the
 * handle, and only uvd_dispatch_write_from() can read them.
 */
long uvd_dispatch_write(struct uvd_call *call, const void *buf, size_t len);
/* The same for data that is still in the client's memory, at addr: reads it once. */
long uvd_dispatch_write_from(struct uvd_call *call, uint64_t addr, size_t len);
/*
 * Returns the name of the method or command that this thread carries out, and its client's thread; NULL: none. For
 * uvd_crash_start().
 */
const char *uvd_dispatch_site(pid_t *thread);
/* ioctl(fd, cmd, arg). -ENOTTY: not RDMA_VERBS_IOCTL, or the device is configured without it (write_abi). */
long uvd_dispatch_ioctl(struct uvd_call *call, unsigned int cmd, uint64_t arg);

/*
 * Ends a grant, or a registration by the client's thread: then fd is its result, see uvd_req_register(). Else fd: the number that the client's end of call->grant.file has in the client, or the negative errno of
 * the attempt (-EMFILE and -ENFILE reach the client; others mean that granting is impossible here). Writes the number
 * or the fallback, commits or aborts the object, and returns the final result of the call. The client must not have
 * returned to its code yet. If the result is negative, the transport must take the fd away from the client again.
 */
long uvd_call_granted(struct uvd_call *call, int64_t fd);

#endif
