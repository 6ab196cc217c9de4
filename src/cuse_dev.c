/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls on a node of any kind: libfuse's operations, and the answers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "account/account.h"
#include "cpu/cpu.h"
#include "cuse/internal.h"
#include "util/util.h"

enum { KERNEL_ERRNOS = 512 };
#define REPLACE_TURN_NS UINT64_C(60000000000)

/* The worker of this thread: libfuse's operations have no parameter for it. */
static __thread struct worker *self;

struct worker *uvd_cuse_self(void)
{
	return self;
}

static struct cuse_file *file_of(struct fuse_file_info *fi)
{
	return (struct cuse_file *)(uintptr_t)fi->fh;
}

static void init_caller(struct uvd_caller *caller, pid_t tid, const struct uvd_mem_ops *mem, struct uvd_proc *proc)
{
	*caller = (struct uvd_caller){ .mem = mem, .proc = proc, .tid = tid, .memfd = -1 };
}

struct cuse_call *uvd_cuse_call_new(struct uvd_cuse *c)
{
	struct cuse_call *call = calloc(1, sizeof(*call));

	if (call) {
		call->cuse = c;
		call->call.works_later = true;
	}
	return call;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* The FUSE side of a grant. */
struct grant_job {
	struct uvd_grant_job job;
	struct cuse_call *call;
	struct cuse_file *file;
	fuse_req_t req;
	size_t written; /* 0: an ioctl */
	bool replaces; /* it makes a context that needs mapped queues */
	struct list_head of_node;
	uint64_t unique;
	void *buf; /* the request's memory: the call may point into it */
};

/* Returns 0, or a negative errno: the kernel did not take the answer. */
static int cuse_reply(fuse_req_t req, long result, size_t written)
{
	/* FUSE takes no errno from 512 on, which the kernel has for itself: it would end the session. */
	if (result <= -KERNEL_ERRNOS)
		result = -EOPNOTSUPP;
	if (result < 0)
		return fuse_reply_err(req, -result);
	/* Each piece of a split write is answered with its own size. */
	return written ? fuse_reply_write(req, written) : fuse_reply_ioctl(req, result, NULL, 0);
}

static struct cuse_file *file_new(struct uvd_cuse *c)
{
	struct cuse_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->cuse = c;
	f->ref = 1;
	f->opener.mmfd = f->opener.pidfd = f->memory.memfd = -1;
	pthread_mutex_init(&f->writes.lock, NULL);
	pthread_mutex_init(&f->peer_lock, NULL);
	pthread_mutex_init(&f->poll_lock, NULL);
	pthread_mutex_init(&f->memory.lock, NULL);
	return f;
}

/* Frees a file that has no reference left, or that was never listed. */
static void cuse_file_free(struct cuse_file *f)
{
	uvd_cuse_memory_end_log(f);
	if (f->priv)
		f->cuse->config.kind->close(f);
	uvd_cuse_memory_fini(f);
	uvd_cuse_poll_end(f);
	uvd_opener_drop(&f->opener);
	uvd_peer_put(f->peer);
	pthread_mutex_destroy(&f->memory.lock);
	pthread_mutex_destroy(&f->poll_lock);
	pthread_mutex_destroy(&f->peer_lock);
	pthread_mutex_destroy(&f->writes.lock);
	free(f);
}

void uvd_cuse_file_put(struct cuse_file *f)
{
	struct uvd_cuse *c = f->cuse;

	if (atomic_fetch_sub(&f->ref, 1) != 1)
		return;
	uvd_lock(&c->lock);
	list_del_init(&f->of_node);
	uvd_unlock(&c->lock);
	cuse_file_free(f);
	/* Last: a removed node without files is freed by the main thread, which does not wait for a grant or for the channel of queues. */
	uvd_lock(&c->lock);
	c->num_files--;
	uvd_unlock(&c->lock);
}

static int grant_reply(struct uvd_grant_job *job, long result)
{
	struct grant_job *j = (struct grant_job *)job;

	return cuse_reply(j->req, result, j->written);
}

/* The channel that the request came by: of the file's node, or of files of queues. */
static void grant_unlist(struct grant_job *j)
{
	struct uvd_cuse *c = j->call->cuse;

	uvd_lock(&c->lock);
	list_del_init(&j->of_node);
	uvd_unlock(&c->lock);
}

static void grant_tell(const struct grant_job *j)
{
	struct uvd_file *file = j->file->priv;
	const int err = j->job.call->not_replaced;

	if (j->replaces && atomic_load(&file->unmapped) && err != -ESRCH)
		uvd_cuse_log_not_replaced(j->file, &j->job.call->caller, err);
}

static void grant_ended(struct uvd_grant_job *job)
{
	struct grant_job *j = (struct grant_job *)job;

	grant_tell(j);
	grant_unlist(j);
	uvd_cuse_file_put(j->file);
}

bool uvd_cuse_is_granting(struct uvd_cuse *c, uint64_t unique)
{
	struct grant_job *j;
	bool found = false;

	uvd_lock(&c->lock);
	list_for_each_entry(j, &c->grants, of_node)
		found |= j->unique == unique;
	uvd_unlock(&c->lock);
	return found;
}

static int grant_replace(struct uvd_grant_job *job, struct uvd_privilege *p, struct uvd_loan *l)
{
	return uvd_cuse_replace(((struct grant_job *)job)->file, &job->call->caller, p, l);
}

static void grant_done(struct uvd_grant_job *job)
{
	struct grant_job *j = (struct grant_job *)job;

	uvd_account_put(job->account);
	uvd_cuse_drop_peer(j->call);
	free(j->call);
	free(j->buf);
	free(j);
}

struct uvd_account *uvd_cuse_open_account(struct uvd_cuse *c, pid_t tid, int *err)
{
	struct uvd_caller caller;

	init_caller(&caller, tid, &uvd_mem_process, c->opens);
	return uvd_caller_account(&caller, c->engine->accounts, err);
}

/* A caller of another user pays, if it can be asked. Otherwise the opener pays: it gave the descriptor away. */
struct uvd_account *uvd_cuse_call_account(struct cuse_file *f, uid_t by, pid_t tid)
{
	struct uvd_account *account = NULL;
	int err;

	if (by != f->opener.fsuid)
		account = uvd_cuse_open_account(f->cuse, tid, &err);
	return account ? account : uvd_account_ref(f->opener.account);
}

/* Hands the worker's call and buffer over to a grant. If that is refused, returns a negative errno, and nothing has changed but the turn. */
static int start_grant(struct worker *w, struct cuse_file *f, fuse_req_t req, size_t written,
		       struct uvd_grant_turn *turn)
{
	struct grant_job *j = calloc(1, sizeof(*j));
	struct cuse_call *fresh = uvd_cuse_call_new(w->cuse);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct uvd_account *account = uvd_cuse_call_account(f, ctx->uid, ctx->pid);
	int err = -ENOMEM;

	if (!j || !fresh || !account)
		goto refused;
	*j = (struct grant_job){
		.job = { .call = &w->call->call,
			 .reply = grant_reply,
			 .ended = grant_ended,
			 .done = grant_done,
			 .replace = grant_replace,
			 .account = account,
			 .turn = turn },
		.call = w->call,
		.file = f,
		.req = req,
		.written = written,
		.replaces = w->call->call.grant.replaces,
		.unique = uvd_cuse_unique(w),
		.buf = *w->memory,
	};
	w->cuse->config.clients->keep_process(w->call);
	atomic_fetch_add(&f->ref, 1);
	uvd_lock(&w->cuse->lock);
	list_add(&j->of_node, &w->cuse->grants);
	uvd_unlock(&w->cuse->lock);
	/* The tick does not let go of a call in a grant: a grant has a time limit of its own. */
	w->call->worker = NULL;
	/* Before the start: after it the job belongs to grant.c. */
	w->call = fresh;
	*w->memory = NULL;
	err = uvd_grants_start(w->cuse->config.grants, &j->job);
	if (!err)
		return 0;
	w->call = j->call;
	*w->memory = j->buf;
	w->call->worker = w;
	grant_unlist(j);
	atomic_fetch_sub(&f->ref, 1);
refused:
	uvd_account_put(account);
	free(fresh);
	free(j);
	return err;
}

/* A call that waits for its turn cannot end early, so one whose client has a signal waits a second at most, a killed one not at all. */
static bool turn_may_come(struct worker *w, uint64_t begun)
{
	struct uvd_grants *g = w->cuse->config.grants;
	const uint64_t waited = uvd_now_ns() - begun;
	const bool has_signal = uvd_cuse_has_signal(w);
	/* Without its loan a context cannot be made, while others fall back or fail alone: so it waits for longer. */
	const uint64_t most = w->call->call.grant.replaces ? REPLACE_TURN_NS : UVD_GRANT_TURN_NS;

	return waited < (has_signal ? UINT64_C(1000000000) : most) && uvd_grants_can_wait(g) &&
	       !(has_signal && uvd_grants_is_killed(g, &w->call->call.caller));
}

/* A user's programs may start, or register, all at once, more than the user has places for senders: each waits for its turn. */
static bool start_grant_in_time(struct worker *w, struct cuse_file *f, fuse_req_t req, size_t written)
{
	struct uvd_grants *g = w->cuse->config.grants;
	const uint64_t begun = uvd_now_ns();
	struct uvd_grant_turn turn = {};
	int err;

	while ((err = start_grant(w, f, req, written, &turn))) {
		if (err != -EAGAIN || !turn_may_come(w, begun)) {
			uvd_grants_turn_end(g, &turn);
			return false;
		}
		uvd_grants_wait(g);
	}
	return true;
}

/*
 * Begins every call and every open. As soon as the claim has begun the tick may answer the request, which frees it: so
 * the caller reads what it needs of req before.
 */
static void cuse_call_begin(struct cuse_file *f, fuse_req_t req)
{
	struct uvd_cuse *c = f->cuse;
	struct worker *w = self;

	w->file = f;
	w->req = req;
	w->call->worker = w;
	w->call->no_peer = 0;
	init_caller(&w->call->call.caller, fuse_req_ctx(req)->pid, c->config.clients->mem, c->calls);
	w->call->call.caller.log_user = uvd_account_person(w->account);
	w->call->call.caller.waits = uvd_cuse_call_waits;
	w->call->call.caller.claim = uvd_cuse_call_claim;
	uvd_claim_begin(&w->claim);
}

/* The reason for uvd_call_granted(): a registration that could not wait any longer fails, and is not copied for its whole life. */
static int refused_grant(const struct uvd_call *call, struct uvd_cuse *c)
{
	return (call->grant.registration || call->grant.replaces) && uvd_grants_can_wait(c->config.grants) ? -EAGAIN
													   : -EPERM;
}

/* Ends a call that cannot have what it needs from a loan. */
static long refuse_grant(struct cuse_file *f, struct uvd_call *call, int err)
{
	if (call->grant.replaces) {
		uvd_cuse_log_not_replaced(f, &call->caller, err);
		call->not_replaced = err;
	}
	return uvd_call_granted(call, err);
}

/* A call that could not access the client's memory fails with EFAULT. Is there a reason that is not the client's? */
static long call_result(const struct cuse_call *call, long result)
{
	return result == -EFAULT && !call->peer && uvd_remote_is_short(call->no_peer) ? call->no_peer : result;
}

/* Ends every call: answers it, or hands it to a grant. written: the result of a write(); 0: it is an ioctl. */
static void cuse_call_finish(struct cuse_file *f, fuse_req_t req, long result, size_t written)
{
	struct uvd_call *call = &self->call->call;
	bool grant = result >= 0 && uvd_call_is_pending(call);
	int refused;

	result = call_result(self->call, result);
	refused = grant && call->grant.replaces ? uvd_cuse_may_replace(&call->caller) : 0;
	if (grant && uvd_claim_take(&self->claim)) {
		if (!refused && start_grant_in_time(self, f, req, written))
			return;
		/* Writing "no fd" to the client's memory can stall, so the tick must be able to let the call go. */
		uvd_claim_give_back(&self->claim);
		result = refuse_grant(f, call, refused ? refused : refused_grant(call, self->cuse));
		grant = false;
	}
	uvd_cuse_drop_peer(self->call);
	if (uvd_claim_end(&self->claim)) {
		cuse_reply(req, result, written);
		uvd_call_work(call, &self->worker);
		return;
	}
	/* The tick has answered EINTR, but the call may have had an effect: its work is done all the same. */
	uvd_call_work(call, &self->worker);
	if (grant)
		uvd_grant_give_up(call);
	uvd_cuse_file_put(f);
}

/*
 * Ends a call that has no answer, as it waits for an event: serve.c parks its request, which libfuse processes anew later. libfuse has
 * kept nothing of it: fuse_reply_none() frees the fuse_req_t, and sends nothing.
 */
static void cuse_call_suspend(struct cuse_file *f, fuse_req_t req)
{
	uvd_cuse_drop_peer(self->call);
	self->waits = uvd_claim_end(&self->claim);
	if (self->waits)
		fuse_reply_none(req);
	else
		uvd_cuse_file_put(f); /* the tick has answered EINTR */
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Opens the node for the caller, whose users are charged for the file. Refuses a caller whose users are unknown. */
static int open_for(struct uvd_cuse *c, struct cuse_file *f, struct uvd_caller *caller)
{
	int err = 0;

	caller->account =
		self->account ? uvd_account_ref(self->account) : uvd_caller_account(caller, c->engine->accounts, &err);
	if (err)
		return err;
	err = uvd_opener_take(&f->opener, caller);
	/* Without mmfd an exec of the opener would go unnoticed, and the new program's write() would be accepted. */
	if (!err && c->config.clients->opener_has_mm && f->opener.mmfd < 0)
		err = c->config.kind->is_gone && c->config.kind->is_gone(c) ? -EIO : -EACCES;
	if (err == -EACCES && f->opener.refused)
		uvd_opener_log_refused(caller, c->config.log, c->dev ? c->dev->config.ibdev : c->node.path);
	if (!err)
		err = c->config.kind->open(f, caller->account);
	uvd_cuse_spend(self, caller->account);
	uvd_account_put(caller->account);
	caller->account = NULL;
	return err;
}

/* Answers an open. Returns nonzero if the kernel did not take the answer, and so sends no release. */
static int reply_open(fuse_req_t req, struct fuse_file_info *fi, struct cuse_file *f)
{
	fi->fh = (uintptr_t)f;
	fi->direct_io = 1;
	fi->nonseekable = 1;
	return fuse_reply_open(req, fi);
}

static void dev_open(fuse_req_t req, struct fuse_file_info *fi)
{
	struct uvd_cuse *c = fuse_req_userdata(req);
	struct uvd_caller *caller = &self->call->call.caller;
	struct cuse_file *f;
	bool ours;
	int err;

	if (!c->config.kind->open) {
		reply_open(req, fi, NULL);
		return;
	}
	f = file_new(c);
	if (!f) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	cuse_call_begin(f, req);
	caller->proc = c->opens;
	err = open_for(c, f, caller);
	ours = uvd_claim_end(&self->claim);
	if (err || !ours) {
		cuse_file_free(f);
		if (ours)
			fuse_reply_err(req, -err);
		return;
	}
	uvd_lock(&c->lock);
	list_add(&f->of_node, &c->files);
	c->num_files++;
	uvd_unlock(&c->lock);
	if (reply_open(req, fi, f))
		uvd_cuse_file_put(f);
}

/* Closes the file before the answer: as in the kernel, its objects are gone when close() returns. */
static void dev_release(fuse_req_t req, struct fuse_file_info *fi)
{
	if (fi->fh)
		uvd_cuse_file_put(file_of(fi));
	fuse_reply_err(req, 0);
}

static void dev_read(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EINVAL);
}

/* A long write(), of which `data` may be only the first piece. */
static long write_long(struct cuse_file *f, struct uvd_call *call, const char *data, size_t size)
{
	uint64_t addr;
	size_t total;
	long result = uvd_caller_confirm(
		&call->caller, f->cuse->config.clients->write_whole(f->cuse, call->caller.tid, &addr, &total));

	if (result)
		return result;
	if (total <= size)
		return f->cuse->config.kind->write(f, call, data, size);
	result = f->cuse->config.kind->write_from(f, call, addr, total);
	if (result >= 0)
		uvd_cuse_write_begun(&f->writes, call->caller.tid, size, total);
	return result;
}

static void dev_write(fuse_req_t req, const char *data, size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct uvd_cuse_kind *kind = self->cuse->config.kind;
	const struct fuse_ctx ctx = *fuse_req_ctx(req);
	struct cuse_file *f = file_of(fi);
	struct uvd_call *call = &self->call->call;
	long result;

	if (!kind->write) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	cuse_call_begin(f, req);
	call->grant = (struct uvd_grant){};
	if (!uvd_opener_is(&f->opener, &call->caller, ctx.uid, ctx.gid))
		result = -EACCES;
	else if (off)
		result = uvd_cuse_write_rest(&f->writes, ctx.pid, off, size);
	else if (size <= UVD_CUSE_WHOLE)
		result = kind->write(f, call, data, size);
	else
		result = write_long(f, call, data, size);
	if (result == UVD_CM_WAITS && fi->flags & O_NONBLOCK)
		result = -EAGAIN;
	if (result == UVD_CM_WAITS)
		cuse_call_suspend(f, req);
	else
		cuse_call_finish(f, req, result, size);
}

/*
 * in: the kernel's copy of what the command's number encodes, for RDMA_VERBS_IOCTL the header. It stays unused: the engine reads the
 * header with the attributes behind it in one access, and a trace has what it has read. No bytes are answered, see
 * docs/security-processes.md.
 */
static void dev_ioctl(fuse_req_t req, int cmd, void *arg, struct fuse_file_info *fi, unsigned int flags, const void *in,
		      size_t in_size, size_t out_size)
{
	struct cuse_file *f = file_of(fi);
	const struct uvd_cuse_kind *kind = self->cuse->config.kind;
	uint64_t addr = (uintptr_t)arg;

	if (!kind->ioctl) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	/* As in compat_ptr_ioctl(): 32-bit programs have the same structs, but a shorter pointer. */
	if (flags & FUSE_IOCTL_COMPAT)
		addr = (uint32_t)addr;
	if ((flags & FUSE_IOCTL_COMPAT) && uvd_cpu_lacks(uvd_cpu, UVD_CPU_COMPAT)) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	cuse_call_begin(f, req);
	cuse_call_finish(f, req, kind->ioctl(f, &self->call->call, cmd, addr), 0);
}

/* The handle is kept before the file's events are read: so either this answer has an event, or it is notified. */
static void dev_poll(fuse_req_t req, struct fuse_file_info *fi, struct fuse_pollhandle *handle)
{
	const struct uvd_cuse_kind *kind = self->cuse->config.kind;
	struct cuse_file *f = file_of(fi);

	if (!kind->poll) { /* the kernel then reports the file as ready, as the real one is */
		if (handle)
			fuse_pollhandle_destroy(handle);
		fuse_reply_err(req, ENOSYS);
		return;
	}
	uvd_cuse_poll_keep(f, handle);
	fuse_reply_poll(req, kind->poll(f));
}

const struct cuse_lowlevel_ops uvd_cuse_operations = {
	.open = dev_open,
	.release = dev_release,
	.read = dev_read,
	.write = dev_write,
	.ioctl = dev_ioctl,
	.poll = dev_poll,
};

void uvd_cuse_process(struct worker *w, const struct fuse_buf *buf)
{
	self = w;
	fuse_session_process_buf(w->cuse->se, buf);
}
