/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "util/util.h"

static _Thread_local sigjmp_buf *volatile on_fault; /* where the copy in progress returns to; NULL: there is none */
static _Thread_local bool accepts; /* this thread has SIGBUS unblocked */

static void guard_fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *was = context;

	if (on_fault) {
		/*
		 * A jump out of the handler leaves SIGBUS blocked, so restore the mask here. If sigsetjmp() saved it
		 * instead, each copy would cost a system call.
		 */
		pthread_sigmask(SIG_SETMASK, &was->uc_sigmask, NULL);
		siglongjmp(*on_fault, 1);
	}
	uvd_crash_tell(sig, context);
	/* The fault is our own bug: the instruction runs again at once, and now ends the process. */
	signal(sig, SIG_DFL);
}

int uvd_guard_start(void)
{
	struct sigaction sa = { .sa_sigaction = guard_fault, .sa_flags = SA_SIGINFO };

	return sigaction(SIGBUS, &sa, NULL) ? -errno : 0;
}

/*
 * Unblocks SIGBUS: our threads start with all signals blocked (uvd_thread_start()), and a fault whose signal is blocked
 * ends the process.
 */
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
