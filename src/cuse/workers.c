/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The threads that read the node's channel. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "cuse/internal.h"
#include "util/util.h"

enum {
	WORKER_STACK = 512 << 10,
	STOP_MS = 3000, /* for all threads that do not come back */
	WAKE_SIGNAL = SIGUSR2, /* ends a worker's read() */
	LEAST_KEPT = 2, /* threads: one to carry out a call, and one to read meanwhile */
	IDLE_TICKS = 10, /* without work before a thread is ended */
};

/* ---- readers ----------------------------------------------------------------------------------------------------- */

static int workers_start_one(struct uvd_cuse *c);

/* The calling worker leaves the readers. Returns false if fewer than `least` others would remain. */
static bool workers_leave(struct uvd_cuse *c, unsigned int least)
{
	unsigned int readers = atomic_load_explicit(&c->readers, memory_order_relaxed);

	do {
		if (readers <= least)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&c->readers, &readers, readers - 1, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

bool uvd_cuse_leave_readers(struct uvd_cuse *c, unsigned int most)
{
	if (atomic_load_explicit(&c->num_workers, memory_order_relaxed) >=
	    most + atomic_load_explicit(&c->readers, memory_order_relaxed)) {
		uvd_log_limited(c->config.log, UVD_WARN,
				"%s: %u threads are in calls, which is the limit; further calls wait", c->node.path,
				most);
		return false;
	}
	while (!workers_leave(c, 1))
		if (workers_start_one(c))
			return false;
	return true;
}

void uvd_cuse_join_readers(struct uvd_cuse *c)
{
	atomic_fetch_add_explicit(&c->readers, 1, memory_order_relaxed);
}

/* Was the worker told to exit, and does another reader remain? Then it leaves the readers. */
static bool worker_may_exit(struct worker *w)
{
	if (!w->leaves)
		return false;
	w->leaves = false;
	return workers_leave(w->cuse, 1);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

void uvd_cuse_wake(struct uvd_cuse *c)
{
	/* It cannot fail: there are never as many parked calls as the counter has room for. */
	eventfd_write(c->wake, 1);
}

/* Waits until the channel has a request, and returns true; or until there may be a waiting one, and returns false. */
static bool worker_wait(struct uvd_cuse *c)
{
	struct pollfd p[] = { { .fd = c->wake, .events = POLLIN }, { .fd = fuse_session_fd(c->se), .events = POLLIN } };
	eventfd_t one;

	if (c->wake < 0)
		return true;
	if (poll(p, 2, -1) <= 0)
		return false;
	if (p[0].revents && !eventfd_read(c->wake, &one))
		return false;
	return p[1].revents;
}

static void *worker_run(void *arg)
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
		if (worker_may_exit(w))
			goto out;
		if (uvd_cuse_serve_next(w) || !worker_wait(c))
			continue;
		n = fuse_session_receive_buf(c->se, &w->buf);
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			break;
		uvd_cuse_serve(w);
	}
	if (!c->stopping) {
		/* Other workers may be in calls. Their clients run on, so they must not be written to any more. */
		c->aborted = true;
		c->config.lost(c->config.arg);
	}
out:
	w->exited = true;
	return NULL;
}

/* Resets the worker. Other threads may read its atomic members at any time. */
static int worker_init(struct worker *w, struct uvd_cuse *c)
{
	w->cuse = c;
	w->seen = w->seen_write = 0;
	w->nice = 0;
	w->cpu_ns = 0;
	w->buf = (struct fuse_buf){ 0 };
	w->turn = NULL;
	w->waits = false;
	atomic_store(&w->unique, 0);
	atomic_store(&w->served, 0);
	w->exited = w->leaves = false;
	w->call = uvd_cuse_call_new(c);
	return w->call ? 0 : -ENOMEM;
}

/* Caller holds c->starting. The worker counts as a reader at once, as it waits for no client before it reads. */
static int worker_start(struct uvd_cuse *c)
{
	struct worker *w = c->workers;
	int err;

	while (w < c->workers + MAX_WORKERS && w->used)
		w++;
	if (w == c->workers + MAX_WORKERS || c->stopping)
		return -EAGAIN;
	err = worker_init(w, c);
	if (err)
		return err;
	uvd_cuse_join_readers(c);
	c->num_workers++;
	err = uvd_thread_start(&w->thread, WORKER_STACK, worker_run, w);
	if (!err) {
		w->used = true;
		return 0;
	}
	c->num_workers--;
	atomic_fetch_sub(&c->readers, 1);
	free(w->call);
	return err;
}

static int workers_start_one(struct uvd_cuse *c)
{
	int err;

	uvd_lock(&c->starting);
	err = worker_start(c);
	uvd_unlock(&c->starting);
	if (err)
		uvd_log_limited(c->config.log, UVD_WARN, "%s: cannot start another thread: %s; further calls wait",
				c->node.path, uvd_errno_name(err));
	return err;
}

static void on_wake(int sig)
{
}

int uvd_cuse_start(struct uvd_cuse *c, struct uvd_engine *engine, struct uvd_device *dev)
{
	struct sigaction sa = { .sa_handler = on_wake }; /* without SA_RESTART */
	unsigned int i;
	int err = 0;

	c->engine = engine;
	c->dev = dev;
	sigaction(WAKE_SIGNAL, &sa, NULL);
	for (i = 0; i < c->config.workers && !err; i++)
		err = workers_start_one(c);
	if (err)
		uvd_logf(c->config.log, UVD_ERR, "%s: no threads: %s", c->node.path, uvd_errno_name(err));
	return err;
}

static void join_worker(struct worker *w)
{
	struct uvd_cuse *c = w->cuse;

	pthread_join(w->thread, NULL);
	free(w->buf.mem);
	free(w->call);
	uvd_lock(&c->starting);
	c->served_before += w->served;
	c->num_workers--;
	w->used = false;
	uvd_unlock(&c->starting);
}

/*
 * Has the worker been blocked in the same write to its client since the last tick? Then the kernel has long since
 * found the client's address space. (Before that the kernel only reads the worker's own memory, and takes the
 * exec_update_lock of the client. No exec holds that lock: it would take it after all other threads of the client have
 * ended, and one waits for us.)
 */
static bool is_in_write(struct worker *w, uint64_t claim)
{
	uint64_t before = w->seen_write;
	char path[64], line[64] = "";
	FILE *f;

	w->seen_write = 0;
	if (uvd_claim_state(claim) != UVD_CLAIM_WRITES)
		return false;
	if (w->cuse->config.clients->writes_by_descriptor)
		return true;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)w->tid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && strtol(line, NULL, 10) == SYS_process_vm_writev)
		w->seen_write = claim;
	if (f)
		fclose(f);
	return w->seen_write && w->seen_write == before;
}

/*
 * If the worker is stuck in a call whose client has a signal, answers EINTR. A client can make an access to its memory
 * wait for ever (userfaultfd, a FUSE file system of its own). If the client is killed, it cannot exit before its call
 * is answered, and so does not close what the worker waits for.
 */
static void let_go(struct worker *w, uint64_t claim)
{
	if (!uvd_cuse_has_signal(w) || !uvd_claim_let_go(&w->claim, claim, is_in_write(w, claim)))
		return;
	/* The client can close the file now. The worker puts this reference at the end of the call. */
	atomic_fetch_add(&w->file->ref, 1);
	w->call->call.caller.let_go = true;
	fuse_reply_err(w->req, EINTR);
	uvd_claim_gone(&w->claim);
}

/*
 * Wakes up to `most` idle workers, which then look for waiting requests. No worker does so by itself if a request waits
 * for another reason than its user's share, for example because no thread could be started.
 */
static void tick_wake_readers(struct uvd_cuse *c, unsigned int most)
{
	for (struct worker *w = c->workers; w < c->workers + MAX_WORKERS && most; w++) {
		if (!w->used || w->exited || w->unique)
			continue;
		pthread_kill(w->thread, WAKE_SIGNAL);
		most--;
	}
}

/* Ends threads that had nothing to do for IDLE_TICKS, but keeps as many as there were at the start. */
static void tick_end_surplus(struct uvd_cuse *c)
{
	unsigned int readers = c->readers, keep = c->config.workers > LEAST_KEPT ? c->config.workers : LEAST_KEPT;
	unsigned int surplus;

	if (!c->ticks || readers < c->least_readers)
		c->least_readers = readers;
	if (++c->ticks < IDLE_TICKS)
		return;
	c->ticks = 0;
	surplus = c->least_readers > keep ? c->least_readers - keep : 0;
	for (struct worker *w = c->workers + MAX_WORKERS; w-- > c->workers && surplus;) {
		if (!w->used || w->exited || w->unique)
			continue;
		w->leaves = true;
		pthread_kill(w->thread, WAKE_SIGNAL);
		surplus--;
	}
}

static void tick_look_at_memory(struct uvd_cuse *c)
{
	struct cuse_file *f;

	uvd_lock(&c->lock);
	list_for_each_entry(f, &c->files, of_node)
		uvd_cuse_memory_look(f);
	uvd_unlock(&c->lock);
}

void uvd_cuse_tick(struct uvd_cuse *c)
{
	uint64_t unique, claim;
	struct worker *w;

	for (w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		if (!w->used)
			continue;
		if (w->exited) {
			join_worker(w);
			continue;
		}
		claim = atomic_load(&w->claim.state); /* read first: it belongs to no later request than `unique` */
		unique = uvd_cuse_unique(w);
		if (unique && unique == w->seen)
			let_go(w, claim);
		w->seen = unique;
	}
	if (c->config.queues)
		tick_look_at_memory(c);
	if (uvd_turns_any(&c->turns))
		tick_wake_readers(c, 1);
	tick_end_surplus(c);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* A signal that arrives just before a worker's read() is lost, so this function repeats the signal. */
bool uvd_cuse_stop_workers(struct uvd_cuse *c)
{
	struct worker *w;
	long ms = 0;

	/* Under the lock: no worker is started after this. */
	uvd_lock(&c->starting);
	c->stopping = true;
	uvd_unlock(&c->starting);
	uvd_cuse_answer_waiting(c);
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
