/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/loader.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "broker/sandbox.h"
#include "cpu/cpu.h"
#include "util/util.h"

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* si_code of a trapped system call, which older glibc lacks */
#endif

/* Of the process, as its sandbox and its signal handlers are. */
static struct {
	pthread_mutex_t lock; /* one file at a time */
	sem_t begun, wanted, done;
	const char *const *rows;
	int err; /* of the start */
	/* The file that is being mapped: the asker's until `wanted`, the thread's until `done`. */
	int fd;
	const char *name;
	char *text;
	size_t size;
	void *handle;
} loader = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static _Thread_local volatile bool is_loader;

/* ---- openat() ------------------------------------------------------------------------------------------------------ */

/* A thread that a plug-in's constructor has started inherits the filter, but not the slot. */
static void loader_on_trap(int sig, siginfo_t *info, void *context)
{
	bool mine;

	/* Another process of the engine's user has sent it: there is no call to answer. */
	if (info->si_code != SYS_SECCOMP)
		return;
	mine = is_loader && loader.fd >= 0 &&
	       !strcmp((const char *)uvd_cpu_signal_arg(context, info->si_syscall == SYS_openat), loader.name);

	uvd_cpu_signal_return(context, mine ? loader.fd : -EACCES);
}

/* The most restrictive filter decides: this one traps what the sandbox's lets fail. */
static int loader_trap(void)
{
	static const char *const names[] = { "open", "openat" };
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int ret = ctx ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]) && !ret; i++) {
		const int nr = seccomp_syscall_resolve_name(names[i]);

		ret = nr < 0 ? 0 : seccomp_rule_add(ctx, SCMP_ACT_TRAP, nr, 0);
	}
	if (!ret)
		ret = seccomp_load(ctx);
	seccomp_release(ctx);
	return ret;
}

/* ---- the thread ---------------------------------------------------------------------------------------------------- */

static void loader_wait(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static void loader_open(void)
{
	const char *why;

	lseek(loader.fd, 0, SEEK_SET); /* the last plug-in in this slot has left it elsewhere */
	loader.handle = dlopen(loader.name, RTLD_NOW | RTLD_LOCAL);
	why = loader.handle ? "" : dlerror() ?: "cannot be loaded";
	snprintf(loader.text, loader.size, "%s", why);
}

static void *loader_thread(void *arg)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
	loader.err = loader_trap() ?: uvd_sandbox_load(loader.rows, SCMP_ACT_KILL_PROCESS);
	is_loader = true;
	sem_post(&loader.begun);
	while (!loader.err) {
		loader_wait(&loader.wanted);
		loader_open();
		sem_post(&loader.done);
	}
	return NULL;
}

int uvd_loader_start(const char *const *rows)
{
	struct sigaction sa = { .sa_sigaction = loader_on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	int err;

	sem_init(&loader.begun, 0, 0);
	sem_init(&loader.wanted, 0, 0);
	sem_init(&loader.done, 0, 0);
	loader.rows = rows;
	err = sigaction(SIGSYS, &sa, NULL) ? -errno : uvd_thread_start(NULL, 0, loader_thread, NULL);
	if (err)
		return err;
	loader_wait(&loader.begun);
	loader.rows = NULL;
	return loader.err;
}

void *uvd_loader_map(int fd, const char *name, char *text, size_t size)
{
	void *handle;

	pthread_mutex_lock(&loader.lock);
	loader.name = name;
	loader.text = text;
	loader.size = size;
	loader.fd = fd;
	sem_post(&loader.wanted);
	loader_wait(&loader.done);
	loader.fd = -1;
	handle = loader.handle;
	pthread_mutex_unlock(&loader.lock);
	return handle;
}
