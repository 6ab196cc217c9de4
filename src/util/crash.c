/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Says which plug-in a crash is in. The handler runs on the thread that crashed, calls only what a signal handler may,
 * writes one line, and lets the signal end the process as it would have without it.
 */
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "util/util.h"

enum { MAX_CODES = 128, MAX_FRAMES = 64, ALT_STACK = 32 << 10 };

static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
enum { NUM_SIGNALS = sizeof(crash_signals) / sizeof(crash_signals[0]) };

/* The code of each plug-in. A signal handler reads it, so it has no lock: an entry is valid while end is not 0. */
static struct {
	char name[64];
	atomic_uintptr_t begin, end;
} codes[MAX_CODES];
static pthread_mutex_t codes_lock = PTHREAD_MUTEX_INITIALIZER; /* changes of codes */
static const char *program = "uverbsd"; /* how lines begin */
static const char *(*call_site)(pid_t *thread);

/* ---- the code of plug-ins ------------------------------------------------------------------------------------------ */

struct code_range {
	uintptr_t at, begin, end;
};

static int code_range_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct code_range *range = arg;
	uintptr_t begin = UINTPTR_MAX, end = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		begin = at < begin ? at : begin;
		end = at + p->p_memsz > end ? at + p->p_memsz : end;
	}
	if (range->at < begin || range->at >= end)
		return 0;
	range->begin = begin;
	range->end = end;
	return 1;
}

void uvd_crash_add(const char *name, const void *symbol)
{
	struct code_range range = { .at = (uintptr_t)symbol };

	if (!dl_iterate_phdr(code_range_find, &range))
		return;
	pthread_mutex_lock(&codes_lock);
	for (unsigned int i = 0; i < MAX_CODES; i++) {
		if (atomic_load(&codes[i].end))
			continue;
		strncpy(codes[i].name, name, sizeof(codes[i].name) - 1);
		atomic_store(&codes[i].begin, range.begin);
		atomic_store(&codes[i].end, range.end);
		break;
	}
	pthread_mutex_unlock(&codes_lock);
}

void uvd_crash_remove(const void *symbol)
{
	const uintptr_t at = (uintptr_t)symbol;

	pthread_mutex_lock(&codes_lock);
	for (unsigned int i = 0; i < MAX_CODES; i++)
		if (at >= atomic_load(&codes[i].begin) && at < atomic_load(&codes[i].end))
			atomic_store(&codes[i].end, 0);
	pthread_mutex_unlock(&codes_lock);
}

static const char *code_owner(uintptr_t at)
{
	for (unsigned int i = 0; i < MAX_CODES; i++)
		if (at >= atomic_load(&codes[i].begin) && at < atomic_load(&codes[i].end))
			return codes[i].name;
	return NULL;
}

static bool code_is_any(void)
{
	for (unsigned int i = 0; i < MAX_CODES; i++)
		if (atomic_load(&codes[i].end))
			return true;
	return false;
}

/* ---- in the handler ------------------------------------------------------------------------------------------------ */

/* Returns the plug-in that crashed: that of the innermost function that is a plug-in's. NULL: none. */
static const char *crash_owner(const ucontext_t *context)
{
	const uintptr_t at = uvd_cpu_signal_pc(context);
	void *frames[MAX_FRAMES];
	const char *owner = code_owner(at);
	int num;

	/* Without plug-ins do nothing: the first backtrace() of a process may allocate. */
	if (!code_is_any())
		return NULL;
	/* A backtrace cannot begin at a call to no function at all. */
	if (!owner && at < UVD_CPU_PAGE_MIN)
		owner = code_owner(uvd_cpu_signal_caller(context));
	num = owner ? 0 : backtrace(frames, MAX_FRAMES);
	for (int i = 0; i < num && !owner; i++)
		owner = code_owner((uintptr_t)frames[i]);
	return owner;
}

struct crash_line {
	char text[512];
	size_t len;
};

static void crash_put(struct crash_line *line, const char *text)
{
	while (*text && line->len < sizeof(line->text) - 1)
		line->text[line->len++] = *text++;
}

static void crash_put_number(struct crash_line *line, unsigned int number)
{
	char digits[16];
	int i = sizeof(digits);

	digits[--i] = 0;
	do
		digits[--i] = '0' + number % 10;
	while (number /= 10);
	crash_put(line, digits + i);
}

static const char *crash_signal_name(int sig)
{
	switch (sig) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGABRT:
		return "SIGABRT";
	case SIGFPE:
		return "SIGFPE";
	default:
		return "SIGILL";
	}
}

void uvd_crash_tell(int sig, const void *context)
{
	const char *owner = crash_owner(context), *method;
	struct crash_line line = { .len = 0 };
	pid_t thread = 0;

	if (!owner)
		return;
	method = call_site ? call_site(&thread) : NULL;
	crash_put(&line, program);
	crash_put(&line, ": error: plug-in ");
	crash_put(&line, owner);
	crash_put(&line, " crashed with ");
	crash_put(&line, crash_signal_name(sig));
	if (method) {
		crash_put(&line, " in ");
		crash_put(&line, method);
		crash_put(&line, ", called by thread ");
		crash_put_number(&line, thread);
	} else {
		crash_put(&line, " outside a call");
	}
	line.text[line.len++] = '\n';
	if (write(STDERR_FILENO, line.text, line.len) < 0)
		return;
}

static void crash_on_signal(int sig, siginfo_t *info, void *context)
{
	/* A signal that a process sent is not the plug-in's fault. abort() sends SI_TKILL. */
	if (info->si_code != SI_USER && info->si_code != SI_QUEUE)
		uvd_crash_tell(sig, context);
	signal(sig, SIG_DFL);
	/* A fault happens again when the handler returns. A signal that was sent does not: send it again. */
	if (info->si_code <= 0)
		raise(sig);
}

/* ---- the start ----------------------------------------------------------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { HANDLES_CRASHES = 1 };
#else
enum { HANDLES_CRASHES = 0 /* a sanitizer does, with stacks of its own */ };
#endif

void uvd_crash_start(const char *name, const char *(*site)(pid_t *thread))
{
	struct sigaction sa = { .sa_sigaction = crash_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	void *frame;

	program = name;
	call_site = site;
	if (!HANDLES_CRASHES)
		return;
	backtrace(&frame, 1); /* loads a library the first time */
	for (unsigned int i = 0; i < NUM_SIGNALS; i++)
		sigaction(crash_signals[i], &sa, NULL);
}

void uvd_crash_unblock(sigset_t *set)
{
	for (unsigned int i = 0; i < NUM_SIGNALS; i++)
		sigdelset(set, crash_signals[i]);
}

size_t uvd_crash_stack_size(void)
{
	return HANDLES_CRASHES ? ALT_STACK : 0;
}

void uvd_crash_stack_set(void *stack)
{
	const stack_t ss = { .ss_sp = stack, .ss_size = ALT_STACK };

	if (HANDLES_CRASHES)
		sigaltstack(&ss, NULL);
}
