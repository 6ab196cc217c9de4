/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The count and the waiter's mark share one word, and FUTEX_WAKE needs nothing but its address. So after its decrement
 * the last put does not access the object, which the waiter may have freed.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backends/soft/memory/memory.h"

static const unsigned int WAITED_FOR = 1u << 31;

void soft_ref_get(struct soft_ref *ref)
{
	atomic_fetch_add_explicit(&ref->word, 1, memory_order_relaxed);
}

void soft_ref_put(struct soft_ref *ref)
{
	atomic_uint *word = &ref->word;

	if (atomic_fetch_sub_explicit(word, 1, memory_order_release) == WAITED_FOR + 1)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void soft_ref_wait(struct soft_ref *ref)
{
	unsigned int now = atomic_fetch_or(&ref->word, WAITED_FOR) | WAITED_FOR;

	while (now != WAITED_FOR) {
		syscall(SYS_futex, &ref->word, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		now = atomic_load_explicit(&ref->word, memory_order_acquire);
	}
	/* Acquire even if there was no wait: all that the users did happens before what the caller does next. */
	atomic_load_explicit(&ref->word, memory_order_acquire);
}
