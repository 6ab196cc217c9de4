/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define FUSE_USE_VERSION 31
#include "cuse_dev.h"
#include "cuse_node.h"
#include "cuse_write.h"
#include "dispatch/dispatch.h"
#include "grant.h"
#include <cuse_lowlevel.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uverbsd/log.h>

enum {
	MAX_WORKERS = 32, /* with those that uvd_cuse_tick() adds */
	STACK = 512 << 10,
	STOP_MS = 3000, /* for a thread that does not come back */
	WAKE_SIGNAL = SIGUSR2, /* ends a worker's read() */
};

/* One open of the node. */
struct cuse_file {
	struct cuse_file *prev, *next;
	struct uvd_cuse *cuse;
	atomic_int ref; /* the client's open, and each grant under way */
	struct uvd_file *file;
	struct uvd_opener opener;
	struct uvd_cuse_writes writes;
};

/* Who answers the call that a worker carries out: see uvd_cuse_tick(). */
enum answer { NOBODY, WORKER, TICK_BEGINS, TICK_DID };

struct worker {
	struct uvd_cuse *cuse;
	pthread_t thread;
	struct cuse_file *file; /* of the call, while answer is WORKER */
	fuse_req_t req;
	atomic_int answer; /* enum answer */
	atomic_bool interrupted; /* the client has a signal, or was killed */
	struct fuse_buf buf; /* the request */
	struct uvd_call *call;
	bool extra; /* exits when it is not needed any more */
	atomic_bool used, busy, exited;
	atomic_ulong served;
	unsigned long seen; /* uvd_cuse_tick(): `served` then */
};

struct uvd_cuse {
	struct uvd_cuse_config config;
	struct uvd_cuse_node node;
	struct uvd_device *dev;
	struct fuse_session *se;
	atomic_bool stopping;
	pthread_mutex_t lock; /* files */
	struct cuse_file *files;
	unsigned int num_files;
	struct worker workers[MAX_WORKERS]; /* set up and cleared by the main thread alone */
};

/* libfuse's operations do not say which thread's request they get. */
static __thread struct worker *self;

static struct cuse_file *file_of(struct fuse_file_info *fi)
{
	return (struct cuse_file *)(uintptr_t)fi->fh;
}

static void init_caller(struct uvd_caller *caller, pid_t tid)
{
	*caller = (struct uvd_caller){ .mem = &uvd_mem_process, .proc = &uvd_proc_local, .tid = tid, .memfd = -1 };
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* The FUSE side of a grant. */
struct grant_job {
	struct uvd_grant_job job;
	struct cuse_file *file;
	fuse_req_t req;
	size_t written; /* 0: an ioctl */
	void *buf; /* the request's: the call may point into it */
};

/* 0, or negative: nobody takes the answer. */
static int reply(fuse_req_t req, long result, size_t written)
{
	if (result < 0)
		return fuse_reply_err(req, -result);
	/* A write that arrived in pieces is answered in pieces. */
	return written ? fuse_reply_write(req, written) : fuse_reply_ioctl(req, result, NULL, 0);
}

static void file_put(struct cuse_file *f)
{
	struct uvd_cuse *c = f->cuse;

	if (atomic_fetch_sub(&f->ref, 1) != 1)
		return;
	pthread_mutex_lock(&c->lock);
	*(f->prev ? &f->prev->next : &c->files) = f->next;
	if (f->next)
		f->next->prev = f->prev;
	c->num_files--;
	pthread_mutex_unlock(&c->lock);
	uvd_file_close(f->file);
	uvd_opener_drop(&f->opener);
	pthread_mutex_destroy(&f->writes.lock);
	free(f);
}

static int grant_reply(struct uvd_grant_job *job, long result)
{
	struct grant_job *j = (struct grant_job *)job;

	return reply(j->req, result, j->written);
}

static void grant_done(struct uvd_grant_job *job)
{
	struct grant_job *j = (struct grant_job *)job;

	file_put(j->file);
	free(job->call);
	free(j->buf);
	free(j);
}

/* Hands the worker's call and buffer over to a grant. false: refused, nothing has changed. */
static bool start_grant(struct worker *w, struct cuse_file *f, fuse_req_t req, size_t written)
{
	struct grant_job *j = calloc(1, sizeof(*j));
	struct uvd_call *fresh = calloc(1, sizeof(*fresh));

	if (!j || !fresh)
		goto refused;
	*j = (struct grant_job){ { .call = w->call, .reply = grant_reply, .done = grant_done }, f, req, written, w->buf.mem };
	atomic_fetch_add(&f->ref, 1);
	/* Before the start: the job is not ours from then on. */
	w->call = fresh;
	w->buf.mem = NULL;
	if (uvd_grants_start(w->cuse->config.grants, &j->job))
		return true;
	w->call = j->job.call;
	w->buf.mem = j->buf;
	atomic_fetch_sub(&f->ref, 1);
refused:
	free(fresh);
	free(j);
	return false;
}

static void on_interrupt(fuse_req_t req, void *arg)
{
	((struct worker *)arg)->interrupted = true;
}

/* The beginning of every call. */
static void begin(struct cuse_file *f, fuse_req_t req)
{
	struct worker *w = self;

	w->file = f;
	w->req = req;
	w->interrupted = false;
	w->answer = WORKER;
	fuse_req_interrupt_func(req, on_interrupt, w);
	w->call->file = f->file;
	init_caller(&w->call->caller, fuse_req_ctx(req)->pid);
}

/* false: uvd_cuse_tick() has answered, and the client is gone or elsewhere. */
static bool still_ours(struct worker *w)
{
	int mine = WORKER;

	if (atomic_compare_exchange_strong(&w->answer, &mine, NOBODY))
		return true;
	while (w->answer != TICK_DID)
		sched_yield();
	w->answer = NOBODY;
	return false;
}

/* The end of every call. written: what to answer to a write(); 0: it is an ioctl. */
static void finish(struct cuse_file *f, fuse_req_t req, long result, size_t written)
{
	struct uvd_call *call = self->call;

	if (!still_ours(self)) {
		if (result >= 0 && call->grant.uobj)
			uvd_grant_give_up(call);
		file_put(f);
		return;
	}
	if (result >= 0 && call->grant.uobj) {
		if (start_grant(self, f, req, written))
			return;
		result = uvd_call_granted(call, -EPERM);
	}
	reply(req, result, written);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void dev_open(fuse_req_t req, struct fuse_file_info *fi)
{
	struct uvd_cuse *c = fuse_req_userdata(req);
	struct cuse_file *f = calloc(1, sizeof(*f));
	struct uvd_caller caller;
	int err = -ENOMEM;

	if (!f)
		goto failed;
	init_caller(&caller, fuse_req_ctx(req)->pid);
	err = uvd_opener_take(&f->opener, &caller);
	if (err)
		goto failed;
	f->file = uvd_file_open(c->dev, &err);
	if (!f->file) {
		uvd_opener_drop(&f->opener);
		goto failed;
	}
	f->cuse = c;
	f->ref = 1;
	pthread_mutex_init(&f->writes.lock, NULL);
	pthread_mutex_lock(&c->lock);
	f->next = c->files;
	if (f->next)
		f->next->prev = f;
	c->files = f;
	c->num_files++;
	pthread_mutex_unlock(&c->lock);
	fi->fh = (uintptr_t)f;
	fi->direct_io = 1;
	fi->nonseekable = 1;
	if (fuse_reply_open(req, fi))
		file_put(f); /* nobody took it, so no release follows */
	return;
failed:
	free(f);
	fuse_reply_err(req, -err);
}

/* What it closes is gone when close() returns, as in the kernel. */
static void dev_release(fuse_req_t req, struct fuse_file_info *fi)
{
	file_put(file_of(fi));
	fuse_reply_err(req, 0);
}

static void dev_read(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EINVAL);
}

/* Perhaps only the beginning. */
static long write_long(struct cuse_file *f, struct uvd_call *call, const char *data, size_t size)
{
	uint64_t addr;
	size_t total;
	long result = uvd_cuse_write_whole(call->caller.tid, &addr, &total);

	if (result)
		return result;
	if (total <= size)
		return uvd_dispatch_write(call, data, size);
	result = uvd_dispatch_write_from(call, addr, total);
	if (result >= 0)
		uvd_cuse_write_begun(&f->writes, call->caller.tid, size, total);
	return result;
}

static void dev_write(fuse_req_t req, const char *data, size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct cuse_file *f = file_of(fi);
	struct uvd_call *call = self->call;
	long result;

	begin(f, req);
	call->grant.uobj = NULL;
	if (!uvd_opener_is(&f->opener, &call->caller, ctx->uid, ctx->gid))
		result = -EACCES;
	else if (off)
		result = uvd_cuse_write_rest(&f->writes, ctx->pid, off, size);
	else if (size <= UVD_CUSE_WHOLE)
		result = uvd_dispatch_write(call, data, size);
	else
		result = write_long(f, call, data, size);
	finish(f, req, result, size);
}

static void dev_ioctl(fuse_req_t req, int cmd, void *arg, struct fuse_file_info *fi, unsigned int flags, const void *in,
		      size_t in_size, size_t out_size)
{
	struct cuse_file *f = file_of(fi);
	uint64_t addr = (uintptr_t)arg;

	/* The structs are the same for 32-bit programs (compat_ptr_ioctl): only the pointer is shorter. */
	if (flags & FUSE_IOCTL_COMPAT)
		addr = (uint32_t)addr;
	begin(f, req);
	finish(f, req, uvd_dispatch_ioctl(self->call, cmd, addr), 0);
}

/* No poll: libfuse answers ENOSYS, and the kernel then does as for the real file, which is always ready. */
static const struct cuse_lowlevel_ops operations = {
	.open = dev_open,
	.release = dev_release,
	.read = dev_read,
	.write = dev_write,
	.ioctl = dev_ioctl,
};

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Is another thread waiting for requests? */
static bool have_idle(struct uvd_cuse *c, const struct worker *but)
{
	struct worker *w;

	for (w = c->workers; w < c->workers + MAX_WORKERS; w++)
		if (w != but && w->used && !w->busy && !w->exited)
			return true;
	return false;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct uvd_cuse *c = w->cuse;
	sigset_t wake;
	int n;

	self = w;
	sigemptyset(&wake);
	sigaddset(&wake, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	while (!c->stopping && !fuse_session_exited(c->se)) {
		n = fuse_session_receive_buf(c->se, &w->buf);
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			break;
		atomic_store_explicit(&w->busy, true, memory_order_relaxed);
		fuse_session_process_buf(c->se, &w->buf);
		atomic_fetch_add_explicit(&w->served, 1, memory_order_relaxed);
		atomic_store_explicit(&w->busy, false, memory_order_relaxed);
		if (w->extra && have_idle(c, w))
			goto out;
	}
	if (!c->stopping)
		c->config.lost(c->config.arg);
out:
	w->exited = true;
	return NULL;
}

static int start_worker(struct uvd_cuse *c, bool extra)
{
	struct worker *w = c->workers;
	pthread_attr_t attr;
	sigset_t all, old;
	int err = 0;

	while (w < c->workers + MAX_WORKERS && w->used)
		w++;
	if (w == c->workers + MAX_WORKERS)
		return -EAGAIN;
	memset(w, 0, sizeof(*w));
	w->cuse = c;
	w->extra = extra;
	w->call = calloc(1, sizeof(*w->call));
	if (!w->call)
		return -ENOMEM;
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, &attr, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		free(w->call);
	else
		w->used = true;
	return -err;
}

static void on_wake(int sig)
{
}

int uvd_cuse_start(struct uvd_cuse *c, struct uvd_device *dev)
{
	struct sigaction sa = { .sa_handler = on_wake }; /* without SA_RESTART */
	unsigned int i;
	int err = 0;

	c->dev = dev;
	sigaction(WAKE_SIGNAL, &sa, NULL);
	for (i = 0; i < c->config.workers && !err; i++)
		err = start_worker(c, false);
	if (err)
		uvd_logf(c->config.log, UVD_ERR, "%s: no threads: %s", c->node.path, strerror(-err));
	return err;
}

static void join_worker(struct worker *w)
{
	pthread_join(w->thread, NULL);
	free(w->buf.mem);
	free(w->call);
	w->used = false;
}

/*
 * A client can make its memory wait for ever (userfaultfd, a FUSE file system of its own), and nothing but our own end
 * ends that wait. Killed, it could not die before its call is answered, and so not close what holds us up: answer.
 */
static void let_go(struct worker *w)
{
	int its = WORKER;

	if (!w->interrupted || !atomic_compare_exchange_strong(&w->answer, &its, TICK_BEGINS))
		return;
	/* It can close the file now; the worker puts this reference when it comes back. */
	atomic_fetch_add(&w->file->ref, 1);
	w->call->caller.mem = &uvd_grant_no_memory;
	fuse_reply_err(w->req, EINTR);
	w->answer = TICK_DID;
}

void uvd_cuse_tick(struct uvd_cuse *c)
{
	bool stuck = true;
	struct worker *w;

	for (w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		if (!w->used)
			continue;
		if (w->exited) {
			join_worker(w);
			continue;
		}
		if (!w->busy || w->served != w->seen)
			stuck = false;
		else
			let_go(w);
		w->seen = w->served;
	}
	if (stuck && !start_worker(c, true))
		uvd_log_limited(c->config.log, UVD_WARN,
				"%s: every thread waits for some client's memory; one more was started", c->node.path);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* A signal that comes just before the read() is lost, so again and again. */
static bool stop_workers(struct uvd_cuse *c)
{
	struct worker *w;
	long ms = 0;

	c->stopping = true;
	for (w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		if (!w->used)
			continue;
		for (; !w->exited && ms < STOP_MS; ms += 2) {
			pthread_kill(w->thread, WAKE_SIGNAL);
			pause_ms(2);
		}
		if (!w->exited)
			return false;
		join_worker(w);
	}
	return true;
}

/* ---- the node ---------------------------------------------------------------------------------------------------- */

/* The session's first request is the kernel's greeting: when it is answered the device is there, or the session over. */
static int greet(struct uvd_cuse *c)
{
	struct fuse_buf buf = { 0 };
	struct pollfd p = { .fd = fuse_session_fd(c->se), .events = POLLIN };
	int n;

	do {
		n = fuse_session_receive_buf(c->se, &buf);
	} while (n == -EINTR);
	if (n > 0)
		fuse_session_process_buf(c->se, &buf);
	free(buf.mem);
	if (n <= 0)
		return n ? n : -EIO;
	return poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP) ? -EEXIST : 0;
}

/* libfuse writes to stderr, and without telling for what. Kept until somebody knows whether it matters. */
static __thread char fuse_message[256];

static void keep_message(enum fuse_log_level level, const char *fmt, va_list ap)
{
	vsnprintf(fuse_message, sizeof(fuse_message), fmt, ap);
	fuse_message[strcspn(fuse_message, "\n")] = 0;
}

static int set_up(struct uvd_cuse *c)
{
	char device[48];
	const char *info[] = { device };
	/* Unrestricted: the argument is the client's pointer, and commands need not tell sizes in their number. */
	struct cuse_info ci = { .dev_info_argc = 1, .dev_info_argv = info, .flags = CUSE_UNRESTRICTED_IOCTL };
	char *argv[] = { "uverbsd", "-f", NULL };
	int multithreaded, err;

	snprintf(device, sizeof(device), "DEVNAME=%s", c->node.name);
	c->se = cuse_lowlevel_setup(2, argv, &ci, &operations, &multithreaded, c);
	if (!c->se) {
		uvd_logf(c->config.log, UVD_ERR, "%s: no CUSE session: %s", c->node.path, fuse_message);
		return -EIO;
	}
	fcntl(fuse_session_fd(c->se), F_SETFD, FD_CLOEXEC);
	err = greet(c);
	if (!err)
		err = uvd_cuse_node_verify(&c->node, c->config.log);
	if (!err)
		err = uvd_cuse_node_permit(&c->node, c->config.mode, c->config.group, c->config.log);
	if (err) {
		uvd_cuse_node_remove(&c->node);
		cuse_lowlevel_teardown(c->se);
		c->se = NULL;
	}
	return err;
}

static int find_number(struct uvd_cuse *c)
{
	const char *taken;
	int n, err;

	for (n = c->config.number < 0 ? 0 : c->config.number; n < 1024; n++) {
		uvd_cuse_node_name(&c->node, n);
		taken = uvd_cuse_node_taken(&c->node);
		err = taken ? -EEXIST : set_up(c);
		if (err != -EEXIST)
			return err;
		if (!taken)
			taken = "something else has taken that name in this moment";
		if (c->config.number >= 0) {
			uvd_logf(c->config.log, UVD_ERR, "%s: %s; choose another number, or none", c->node.path, taken);
			return err;
		}
		uvd_logf(c->config.log, UVD_DEBUG, "%s: %s; trying the next number", c->node.path, taken);
	}
	uvd_logf(c->config.log, UVD_ERR, "no number below %d is free for a node", n);
	return -EEXIST;
}

struct uvd_cuse *uvd_cuse_new(const struct uvd_cuse_config *config, int *err)
{
	struct uvd_cuse *c;
	int fd = open("/dev/cuse", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		*err = -errno;
		uvd_logf(config->log, UVD_ERR, "/dev/cuse: %s (it needs root, and `modprobe cuse`; `uverbsctl run` needs neither)",
			 strerror(errno));
		return NULL;
	}
	close(fd);
	c = calloc(1, sizeof(*c));
	if (!c) {
		*err = -ENOMEM;
		return NULL;
	}
	c->config = *config;
	pthread_mutex_init(&c->lock, NULL);
	fuse_set_log_func(keep_message);
	*err = find_number(c);
	if (!*err)
		return c;
	uvd_cuse_free(c);
	return NULL;
}

int uvd_cuse_number(const struct uvd_cuse *c)
{
	return c->node.number;
}

dev_t uvd_cuse_rdev(const struct uvd_cuse *c)
{
	return c->node.rdev;
}

const char *uvd_cuse_path(const struct uvd_cuse *c)
{
	return c->node.path;
}

bool uvd_cuse_stop(struct uvd_cuse *c)
{
	if (!stop_workers(c))
		return false;
	uvd_cuse_node_remove(&c->node);
	cuse_lowlevel_teardown(c->se);
	c->se = NULL;
	/* No release comes any more. */
	while (c->files)
		file_put(c->files);
	return true;
}

void uvd_cuse_free(struct uvd_cuse *c)
{
	if (c->se) {
		uvd_cuse_node_remove(&c->node);
		cuse_lowlevel_teardown(c->se);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void uvd_cuse_count(struct uvd_cuse *c, struct uvd_cuse_counters *counters)
{
	struct worker *w;

	*counters = (struct uvd_cuse_counters){ 0 };
	for (w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		counters->workers += w->used && !w->exited;
		counters->requests += w->served;
	}
	pthread_mutex_lock(&c->lock);
	counters->files = c->num_files;
	pthread_mutex_unlock(&c->lock);
}

void uvd_cuse_each_file(struct uvd_cuse *c, void (*fn)(void *arg, const struct uvd_opener *opener, struct uvd_file *file),
			void *arg)
{
	struct cuse_file *f;

	pthread_mutex_lock(&c->lock);
	for (f = c->files; f; f = f->next)
		fn(arg, &f->opener, f->file);
	pthread_mutex_unlock(&c->lock);
}
