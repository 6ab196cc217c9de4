/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/broker.h"
#include "client/client.h"
#include "cuse/cuse.h"
#include "cuse/grant.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "util/util.h"

enum {
	TICK_MS = 20,
	/*
	 * A client waits a second at most. On a busy machine a grant can take a good part of that, and a program that gets
	 * EINTR from GET_CONTEXT gives up; those who really wait for us are few (see watchdog()).
	 */
	LATE_TICKS = 50,
	MAX_UNDER_WAY = 64,
	STACK = 256 << 10,
	/* i386 numbers of what we let clients execute */
	I386_CLOSE = 6,
	I386_SOCKETPAIR = 360,
};

struct uvd_grants {
	struct uvd_log *log;
	bool enabled;
	pthread_t watchdog;
	pthread_mutex_t lock; /* what follows, and the jobs on the list */
	pthread_cond_t changed;
	bool draining, watching, stop;
	struct list_head jobs; /* that the watchdog looks after */
	unsigned int under_way; /* on the list: their clients wait */
	unsigned int num_jobs; /* not done yet */
	atomic_ulong granted, fell_back, gone, late;
};

/* ---- the client's side of the socket pair ------------------------------------------------------------------------ */

static void close_in_client(struct uvd_borrow *b, int fd)
{
	uvd_borrow_call(b, SYS_close, I386_CLOSE, (long[4]){ fd });
}

/* Lets the client make the pair. */
static int make_pair(struct uvd_borrow *b, struct uvd_caller *c, int pair[2])
{
	uint64_t at = uvd_borrow_scratch(b);
	int saved[2], err;
	long r;

	if (!at)
		return -ENOSYS;
	err = uvd_caller_read(c, saved, at, sizeof(saved));
	if (err)
		return err;
	r = uvd_borrow_call(b, SYS_socketpair, I386_SOCKETPAIR,
			    (long[4]){ AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, at });
	if (r)
		return r;
	err = uvd_caller_read(c, pair, at, 2 * sizeof(int));
	uvd_caller_write(c, at, saved, sizeof(saved));
	return err;
}

/* Is what we have the socket that the thread has under that number, and of the kind that it should be? */
static bool is_copy(struct uvd_caller *c, int theirs, int ours)
{
	int domain = 0, type = 0;
	struct stat a, b;
	socklen_t len = sizeof(int);

	return !uvd_caller_fstat(c, theirs, &a) && !fstat(ours, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
	       !getsockopt(ours, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX &&
	       !getsockopt(ours, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

/*
 * Copies both ends. pidfd_getfd() looks in the table of the process's first thread: where that has exited or the threads
 * have tables of their own, it finds nothing or something else, and the grant fails.
 */
static int copy_pair(struct uvd_caller *c, const int pair[2], int copies[2])
{
	pid_t tgid = uvd_caller_tgid(c);
	int pidfd, i, err = 0;

	if (tgid < 0)
		return tgid;
	pidfd = syscall(SYS_pidfd_open, tgid, 0);
	if (pidfd < 0)
		return -errno;
	for (i = 0; i < 2 && !err; i++) {
		copies[i] = syscall(SYS_pidfd_getfd, pidfd, pair[i], 0);
		if (copies[i] < 0)
			err = -errno;
		else if (!is_copy(c, pair[i], copies[i]))
			err = -EBADF;
	}
	close(pidfd);
	/* Our table being full is not the client's EMFILE. */
	return err == -EMFILE || err == -ENFILE ? -EPERM : err;
}

/* The number that the client has its end of `file` under, or a negative errno. */
static int grant_fd(struct uvd_borrow *b, struct uvd_caller *c, struct uvd_event_file *file)
{
	int pair[2], copies[2] = { -1, -1 }, err, i;

	err = make_pair(b, c, pair);
	if (err)
		return err;
	err = copy_pair(c, pair, copies);
	close_in_client(b, pair[1]);
	if (!err)
		err = uvd_event_file_adopt(file, copies[1], copies[0]);
	if (!err)
		return pair[0];
	for (i = 0; i < 2; i++)
		if (copies[i] >= 0)
			close(copies[i]);
	close_in_client(b, pair[0]);
	return err;
}

/* ---- one grant --------------------------------------------------------------------------------------------------- */

static int no_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	return -EFAULT;
}

static int no_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return -EFAULT;
}

static int no_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	return -EFAULT;
}

const struct uvd_mem_ops uvd_grant_no_memory = { .read = no_read, .write = no_write, .writev = no_writev };

void uvd_grant_give_up(struct uvd_call *call)
{
	call->caller.mem = &uvd_grant_no_memory;
	uvd_call_granted(call, -ESRCH);
}

/* Before the client runs on: whoever asks it, and then us, must find the grant over. */
static void end_job(struct uvd_grant_job *job)
{
	struct uvd_grants *g = job->grants;

	pthread_mutex_lock(&g->lock);
	list_del_init(&job->of_grants);
	g->under_way--;
	pthread_mutex_unlock(&g->lock);
	job->ended(job);
}

/* uvd_call_granted()'s. */
static long end_call(struct uvd_grant_job *job, int fd)
{
	long result = uvd_call_granted(job->call, fd);

	end_job(job);
	return result;
}

static void give_up(struct uvd_grant_job *job)
{
	uvd_grant_give_up(job->call);
	end_job(job);
}

static void borrow_client(struct uvd_grants *g, struct uvd_borrow *b, struct uvd_grant_job *job)
{
	struct uvd_call *call = job->call;
	long answered = call->result, result;
	atomic_ulong *counter;
	int fd, err;

	err = uvd_borrow_stop(b);
	fd = err ? err : grant_fd(b, &call->caller, call->grant.file);
	if (b->dead || err == -ESRCH) {
		give_up(job);
		g->gone++;
		uvd_borrow_release(b, NULL); /* now: its parent, once it hears of its death, may ask what is left of it */
		return;
	}
	result = end_call(job, fd);
	if (result < 0 && fd >= 0)
		close_in_client(b, fd);
	counter = fd >= 0 && result >= 0 ? &g->granted : &g->fell_back;
	(*counter)++;
	if (uvd_borrow_release(b, result == answered ? NULL : &result)) {
		(*counter)--;
		g->gone++;
	}
}

static void *grant_thread(void *arg)
{
	struct uvd_grant_job *job = arg;
	struct uvd_grants *g = job->grants;
	struct uvd_borrow b;
	bool held = !uvd_borrow_seize(&b, job->call->caller.tid), late;

	pthread_mutex_lock(&g->lock);
	late = job->answered;
	job->answered = true;
	while (late && !job->over)
		pthread_cond_wait(&g->changed, &g->lock);
	pthread_mutex_unlock(&g->lock);

	if (late) {
		/* The watchdog has done it all. */
	} else if (!held) {
		g->fell_back++;
		job->reply(job, end_call(job, -EPERM));
	} else if (job->reply(job, job->call->result)) {
		/* A reply that was not taken: the connection was aborted, and the client let go before. */
		g->gone++;
		give_up(job);
	} else {
		borrow_client(g, &b, job);
	}
	job->done(job);
	/* Now, not earlier: when a drain has ended, what the job used may go away. */
	pthread_mutex_lock(&g->lock);
	g->num_jobs--;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
	/* Where the client is still held (late, or not waiting) it goes on when this thread ends. */
	return NULL;
}

/*
 * PTRACE_SEIZE can wait: an exec in another thread of the client holds the mutex that it needs, and waits for this thread
 * to die, which it cannot before it is answered. So a thread that is dying is answered soon, and every other after a while.
 */
static bool has_waited(const struct uvd_grant_job *job)
{
	return !job->answered && (job->ticks > LATE_TICKS || uvd_borrow_dying(job->call->caller.tid));
}

/* With the lock. */
static struct uvd_grant_job *find_waiting(struct uvd_grants *g)
{
	struct uvd_grant_job *job;

	list_for_each_entry(job, &g->jobs, of_grants)
		if (has_waited(job))
			return job;
	return NULL;
}

/* In place of the job's thread, which only says that it is done. With the lock, but not all the time. */
static void end_instead(struct uvd_grants *g, struct uvd_grant_job *job)
{
	job->answered = true;
	job->ticks > LATE_TICKS ? g->late++ : g->gone++;
	pthread_mutex_unlock(&g->lock);
	give_up(job);
	job->reply(job, -EINTR);
	pthread_mutex_lock(&g->lock);
	job->over = true;
	pthread_cond_broadcast(&g->changed);
}

static void *watchdog(void *arg)
{
	struct uvd_grants *g = arg;
	struct uvd_grant_job *job;
	struct timespec tick = { .tv_nsec = TICK_MS * 1000000l };

	pthread_mutex_lock(&g->lock);
	while (!g->stop) {
		if (list_empty(&g->jobs)) {
			pthread_cond_wait(&g->changed, &g->lock);
			continue;
		}
		pthread_mutex_unlock(&g->lock);
		nanosleep(&tick, NULL);
		pthread_mutex_lock(&g->lock);
		list_for_each_entry(job, &g->jobs, of_grants)
			job->ticks++;
		while ((job = find_waiting(g)))
			end_instead(g, job);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* ---- all grants -------------------------------------------------------------------------------------------------- */

struct uvd_grants *uvd_grants_new(bool enabled, struct uvd_log *log)
{
	struct uvd_grants *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->log = log;
	g->enabled = enabled;
	INIT_LIST_HEAD(&g->jobs);
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	return g;
}

void uvd_grants_free(struct uvd_grants *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
	if (g->watching)
		pthread_join(g->watchdog, NULL);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

bool uvd_grants_start(struct uvd_grants *g, struct uvd_grant_job *job)
{
	bool ok = false;

	if (!g->enabled || job->call->caller.tid <= 0)
		return false;
	pthread_mutex_lock(&g->lock);
	if (g->draining || g->under_way >= MAX_UNDER_WAY)
		goto out;
	if (!g->watching && uvd_thread_start(&g->watchdog, STACK, watchdog, g))
		goto out;
	g->watching = true;
	job->grants = g;
	job->answered = job->over = false;
	job->ticks = 0;
	list_add(&job->of_grants, &g->jobs);
	g->under_way++;
	g->num_jobs++;
	/* With the lock: neither the watchdog nor the thread sees the job before it is certain that there is a thread. */
	ok = !uvd_thread_start(NULL, STACK, grant_thread, job);
	if (ok) {
		pthread_cond_broadcast(&g->changed);
	} else {
		list_del_init(&job->of_grants);
		g->under_way--;
		g->num_jobs--;
	}
out:
	pthread_mutex_unlock(&g->lock);
	return ok;
}

bool uvd_grants_drain(struct uvd_grants *g, unsigned int milliseconds)
{
	struct timespec until;
	bool none;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += milliseconds / 1000;
	until.tv_nsec += milliseconds % 1000 * 1000000l;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&g->lock);
	g->draining = true;
	while (g->num_jobs && pthread_cond_timedwait(&g->changed, &g->lock, &until) != ETIMEDOUT)
		;
	none = !g->num_jobs;
	pthread_mutex_unlock(&g->lock);
	return none;
}

void uvd_grants_count(struct uvd_grants *g, struct uvd_grant_counters *counters)
{
	pthread_mutex_lock(&g->lock);
	*counters = (struct uvd_grant_counters){
		.granted = g->granted, .fell_back = g->fell_back, .gone = g->gone, .late = g->late,
		.under_way = g->under_way,
	};
	pthread_mutex_unlock(&g->lock);
}
