/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The end of every request: outputs, then commit or abort, then one line in the log if it failed. */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/log.h>

#include "dispatch/internal.h"

static void context_drop(struct uvd_req *req)
{
	if (!req->new_context)
		return;
	uvd_trees_context_exit(req->file->trees, req->new_context, req->new_plugin_data);
	req->dev->ib.ops->dealloc_context(req->new_context);
	free(req->new_context);
	req->new_context = NULL;
}

/* Gives the file its context, unless another call was first (context-03). */
static int context_publish(struct uvd_req *req)
{
	struct uvd_file *file = req->file;
	int err = 0;

	if (!req->new_context)
		return 0;
	pthread_mutex_lock(&file->context_lock);
	if (atomic_load(&file->context))
		err = uvd_bad(req, -EINVAL, "context", 1);
	else {
		if (req->new_tree)
			atomic_store(&file->tree, req->new_tree);
		file->plugin_data = req->new_plugin_data;
		uvd_file_allow_context(file, req->new_context->ucaps);
		atomic_store(&file->context, req->new_context);
	}
	pthread_mutex_unlock(&file->context_lock);
	if (!err)
		req->new_context = NULL;
	return err;
}

/* There is an observer, or the device is gone. */
static __attribute__((cold, noinline)) void req_leave_watched(struct uvd_req *req, long result)
{
	if (req->observation && req->front != UVD_FRONT_WRITE)
		uvd_observe_size(req->observation,
				 sizeof(struct ib_uverbs_ioctl_hdr) + req->num_uattrs * sizeof(struct ib_uverbs_attr));
	if (req->observation)
		uvd_observe_end(req->observation, req->name, result);
	uvd_file_leave(req->file, req->entered_watched);
}

/* Commits or aborts, logs a failure, and returns the result of the call. */
static long req_end(struct uvd_req *req, int err, long result)
{
	void **block, **next;

	/* Commit only if the client will be told: claim() fails if the transport has already answered the call. */
	if (!err && req->caller->claim && !req->caller->claim(req->caller))
		err = -EINTR;
	if (!err)
		err = context_publish(req);
	uvd_objects_release(req, !err, false);
	context_drop(req);
	for (block = req->allocated; block; block = next) {
		next = *block;
		free(block);
	}
	req->allocated = NULL;
	if (err)
		uvd_req_log_failure(req, err);
	if (__builtin_expect(req->entered, 1))
		uvd_file_leave(req->file, true);
	else
		req_leave_watched(req, err ? err : result);
	if (!req->call->works_later)
		uvd_call_work(req->call, NULL);
	uvd_req_left();
	return err ? err : result;
}

struct uvd_work uvd_call_take_work(struct uvd_call *call)
{
	const struct uvd_work work = call->work;

	call->work.run = NULL;
	return work;
}

void uvd_call_work(struct uvd_call *call, struct uvd_worker *worker)
{
	const struct uvd_work work = uvd_call_take_work(call);

	if (work.run)
		work.run(work.arg, worker);
}

long uvd_req_finish(struct uvd_req *req, int err, long result)
{
	struct uvd_call *call = req->call;
	int fault = uvd_out_flush(req);

	if (fault)
		err = fault;
	if (!err && req->new_context && atomic_load(&req->file->context))
		err = uvd_bad(req, -EINVAL, "context", 1);
	req->grant.replaces = req->new_context && atomic_load_explicit(&req->file->unmapped, memory_order_relaxed);
	if (err || !(req->has_grant || req->grant.replaces))
		return req_end(req, err, result);
	/* The new FD object waits for its fd. Release all other objects of the request now. */
	uvd_objects_release(req, true, true);
	call->grant = req->grant;
	call->result = result;
	call->not_replaced = -EPERM;
	uvd_req_left();
	return result;
}

static int write_number(struct uvd_req *req, int64_t number)
{
	const struct uvd_grant *g = &req->grant;
	int32_t narrow = number;
	int err = g->wide ? uvd_caller_write(req->caller, g->addr, &number, sizeof(number))
			  : uvd_caller_write(req->caller, g->addr, &narrow, sizeof(narrow));

	uvd_observe_written(req->observation, g->addr, &number, g->wide ? sizeof(number) : sizeof(narrow), err);
	return err ? uvd_bad(req, -EFAULT, "response", g->addr) : 0;
}

/* The errno for a client whose descriptor could not be replaced: it would not be able to map its queues. */
static int not_replaced(const struct uvd_call *call)
{
	const int err = call->grant.replaces ? call->not_replaced : 0;

	/* EINVAL: another call makes the context at this moment. */
	return !err || err == -EMFILE || err == -ENFILE || err == -EINVAL ? err : -EOPNOTSUPP;
}

long uvd_call_granted(struct uvd_call *call, int64_t fd)
{
	struct uvd_req *req = &call->req;
	int err = not_replaced(call);

	call->grant.uobj = NULL;
	call->grant.replaces = false;
	if (err || !req->grant.uobj)
		return req_end(req, err ? uvd_bad(req, err, "mapped queues", 0) : 0, call->result);
	if (req->grant.registration) {
		err = req->grant.end(req, fd);
		return req_end(req, err ? err : uvd_out_flush(req), call->result);
	}
	if (fd == -EMFILE || fd == -ENFILE) {
		err = fd;
	} else if (fd < 0 && !req->grant.may_fall_back) {
		err = -EOPNOTSUPP;
	} else {
		err = write_number(req, fd >= 0 ? fd : -2);
		/*
		 * No fd in the client: to libibverbs -2 means that there are no asynchronous events. Drop the object.
		 */
		req->grant.uobj->dropped = fd < 0;
	}
	return req_end(req, err, call->result);
}
