/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts the machine instructions that a function takes: unlike a time, the number does not depend on the machine's load. */
#ifndef UVD_TEST_STEPS_H
#define UVD_TEST_STEPS_H

/* ThreadSanitizer's run-time library takes locks, and the handler of a step, which it wraps, would take them again. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TEST_HAS_STEPS
#include <signal.h>
#include <stdatomic.h>
#include <x86intrin.h>

enum { STEPS_TRAP_FLAG = 1 << 8 };

static volatile unsigned long steps_counted;

static inline void steps_on_trap(int sig)
{
	steps_counted++;
}

static inline unsigned long steps_once(void (*fn)(void *arg), void *arg)
{
	steps_counted = 0;
	/* The compiler must not move what the handler uses across the flag. */
	atomic_signal_fence(memory_order_seq_cst);
	__writeeflags(__readeflags() | STEPS_TRAP_FLAG);
	atomic_signal_fence(memory_order_seq_cst);
	fn(arg);
	atomic_signal_fence(memory_order_seq_cst);
	__writeeflags(__readeflags() & ~(unsigned long long)STEPS_TRAP_FLAG);
	atomic_signal_fence(memory_order_seq_cst);
	return steps_counted;
}

/* Returns the least of some calls: malloc() takes more now and then. */
static inline unsigned long steps_of(void (*fn)(void *arg), void *arg)
{
	const struct sigaction on_trap = { .sa_handler = steps_on_trap };
	unsigned long least = -1ul, n;
	struct sigaction was;

	sigaction(SIGTRAP, &on_trap, &was);
	for (int i = 0; i < 5; i++) {
		n = steps_once(fn, arg);
		least = n < least ? n : least;
	}
	sigaction(SIGTRAP, &was, NULL);
	return least;
}
#endif

#endif
