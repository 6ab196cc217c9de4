/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/util.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void uvd_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool uvd_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end)
{
	const struct timespec ts = { .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };

	return !pthread_cond_timedwait(cond, lock, &ts);
}

/* A thread runs fn once it has a stack for the handlers of crashes: its own may have overflowed. */
struct thread_start {
	void *(*fn)(void *arg);
	void *arg;
};

static void *thread_start_routine(void *arg)
{
	const struct thread_start start = *(struct thread_start *)arg;
	void *stack = uvd_crash_stack_size() ? __builtin_alloca(uvd_crash_stack_size()) : NULL;

	free(arg);
	uvd_crash_stack_set(stack);
	return start.fn(start.arg);
}

int uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg)
{
	struct thread_start *start = malloc(sizeof(*start));
	pthread_t detached;
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	if (!start)
		return -ENOMEM;
	*start = (struct thread_start){ fn, arg };
	sigfillset(&all);
	uvd_crash_unblock(&all);
	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack + uvd_crash_stack_size());
	if (!thread)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread ? thread : &detached, &attr, thread_start_routine, start);
	if (err)
		free(start);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

bool uvd_thread_set_nice(int nice)
{
	return !setpriority(PRIO_PROCESS, 0, nice); /* 0: on Linux the calling thread, not the process */
}

/* <linux/sched/types.h> cannot be included beside <sched.h>. */
struct thread_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

bool uvd_thread_set_slice(uint64_t ns)
{
	struct thread_sched_attr attr = {};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return false;
	attr.size = sizeof(attr);
	attr.runtime = ns;
	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

pid_t uvd_thread_id(void)
{
	static __thread pid_t id;

	if (!id)
		id = gettid();
	return id;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

uint64_t uvd_thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t uvd_thread_cpu_since(uint64_t *last)
{
	const uint64_t now = uvd_thread_cpu_ns(), used = now - *last;

	*last = now;
	return used;
}

uint64_t uvd_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
