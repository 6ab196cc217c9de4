/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* crash.c: which plug-in a crash is in. */
#ifndef UVD_UTIL_CRASH_H
#define UVD_UTIL_CRASH_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Installs handlers for SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL, which write a line to stderr if the crash is in the
 * code of a plug-in, or below it on the stack. name: how the line begins. site: returns the name of the call that the
 * crashed thread is in, or NULL, and its client's thread; a signal handler calls it.
 */
void uvd_crash_start(const char *name, const char *(*site)(pid_t *thread));
/* Tells the code of a plug-in, by any address in it; and that it is about to be unmapped. */
void uvd_crash_add(const char *name, const void *symbol);
void uvd_crash_remove(const void *symbol);
/* The handlers call this first, and another handler of such a signal can. context: the handler's third argument. */
void uvd_crash_tell(int sig, const void *context);
/* For uvd_thread_start(): removes these signals from a set; the size of a thread's stack for the handlers, and sets it. */
void uvd_crash_unblock(sigset_t *set);
size_t uvd_crash_stack_size(void);
void uvd_crash_stack_set(void *stack);

#endif
