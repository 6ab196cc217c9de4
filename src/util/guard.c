/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "util/util.h"

static _Thread_local sigjmp_buf *volatile on_fault;
static _Thread_local bool accepts;

static void fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *was = context;

	if (on_fault) {
		/* Leaving the handler by a jump leaves signals blocked. To save the mask would be a system call for each copy. */
		pthread_sigmask(SIG_SETMASK, &was->uc_sigmask, NULL);
		siglongjmp(*on_fault, 1);
	}
	/* It is ours, and comes again at once. */
	signal(sig, SIG_DFL);
}

int uvd_guard_start(void)
{
	struct sigaction sa = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };

	return sigaction(SIGBUS, &sa, NULL) ? -errno : 0;
}

/* Our threads start with all signals blocked (uvd_thread_start()), and a fault whose signal is blocked ends the process. */
static void accept_fault(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	accepts = true;
}

int uvd_guarded_copy(void *dst, const void *src, size_t len)
{
	sigjmp_buf here;

	if (!accepts)
		accept_fault();
	if (sigsetjmp(here, 0)) {
		on_fault = NULL;
		return -EFAULT;
	}
	on_fault = &here;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(dst, src, len);
	atomic_signal_fence(memory_order_seq_cst);
	on_fault = NULL;
	return 0;
}
