/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The threads that read the node's channel. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "cuse/internal.h"
#include "util/util.h"

enum {
	STACK = 512 << 10,
	STOP_MS = 3000, /* for a thread that does not come back */
	WAKE_SIGNAL = SIGUSR2, /* ends a worker's read() */
};

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

	w->tid = gettid();
	sigemptyset(&wake);
	sigaddset(&wake, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	while (!c->stopping && !fuse_session_exited(c->se)) {
		n = fuse_session_receive_buf(c->se, &w->buf);
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			break;
		atomic_fetch_add_explicit(&w->begun, 1, memory_order_relaxed);
		atomic_store_explicit(&w->busy, true, memory_order_release);
		uvd_cuse_process(w);
		atomic_fetch_add_explicit(&w->served, 1, memory_order_relaxed);
		atomic_store_explicit(&w->busy, false, memory_order_relaxed);
		if (w->extra && have_idle(c, w))
			goto out;
	}
	if (!c->stopping) {
		/* The others may be in calls: an answer written now would be written over what the client does next. */
		c->aborted = true;
		c->config.lost(c->config.arg);
	}
out:
	w->exited = true;
	return NULL;
}

static int start_worker(struct uvd_cuse *c, bool extra)
{
	struct worker *w = c->workers;
	int err;

	while (w < c->workers + MAX_WORKERS && w->used)
		w++;
	if (w == c->workers + MAX_WORKERS)
		return -EAGAIN;
	memset(w, 0, sizeof(*w));
	w->cuse = c;
	w->extra = extra;
	w->call = uvd_cuse_call_new(c);
	if (!w->call)
		return -ENOMEM;
	err = uvd_thread_start(&w->thread, STACK, work, w);
	if (err)
		free(w->call);
	else
		w->used = true;
	return err;
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
 * Has the worker been blocked in the same write to its client since the last tick? Then the kernel has long since found the
 * client's address space. (Before it does, the kernel reads the worker's own memory, and waits for an exec that is going on
 * in the client: there is none, as it could not begin before the thread that waits for us is gone.)
 */
static bool is_in_write(struct worker *w)
{
	unsigned long write = atomic_load(&w->writes), seen = w->seen_write;
	char path[64], line[64] = "";
	FILE *f;

	w->seen_write = 0;
	if (atomic_load(&w->claim.state) != UVD_CLAIM_WRITES)
		return false;
	if (w->cuse->config.link)
		return true; /* by a descriptor, which is the address space's */
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)w->tid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && strtol(line, NULL, 10) == SYS_process_vm_writev)
		w->seen_write = write;
	if (f)
		fclose(f);
	return w->seen_write && w->seen_write == seen;
}

/*
 * A client can make its memory wait for ever (userfaultfd, a FUSE file system of its own), and nothing but our own end
 * ends that wait. Killed, it could not die before its call is answered, and so not close what holds us up: answer.
 */
static void let_go(struct worker *w)
{
	if (!w->interrupted || !uvd_claim_let_go(&w->claim, is_in_write(w)))
		return;
	/* It can close the file now; the worker puts this reference when it comes back. */
	atomic_fetch_add(&w->file->ref, 1);
	w->call->call.caller.let_go = true;
	fuse_reply_err(w->req, EINTR);
	uvd_claim_gone(&w->claim);
}

void uvd_cuse_tick(struct uvd_cuse *c)
{
	bool stuck = true, busy;
	unsigned long begun;
	struct worker *w;

	for (w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		if (!w->used)
			continue;
		if (w->exited) {
			join_worker(w);
			continue;
		}
		busy = w->busy; /* first: what is busy with a new request has counted it */
		begun = w->begun;
		if (!busy || begun != w->seen)
			stuck = false;
		else
			let_go(w);
		w->seen = begun;
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
bool uvd_cuse_stop_workers(struct uvd_cuse *c)
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
