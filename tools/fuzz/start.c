/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Starts workers and waits for them, or for a signal that ends fuzzing. The signals are blocked, so none is lost between two
 * waits. A worker has a process group of its own: a ^C reaches this process alone, which lets its workers end in order.
 */
#include "fuzz.h"
#include "util/util.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGS = 128, ARG = 96, GRACE_SECONDS = 5 };

static int stopped; /* the signal that ends fuzzing; 0: none yet */

static sigset_t wanted; /* the signals to wait for */

void uvd_fuzz_signals_block(void)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	signal(SIGCHLD, SIG_DFL); /* if it is ignored, nobody can wait for a worker */
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	/* Not what nohup, or a shell's background, ignores. */
	for (unsigned int i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!sigaction(ending[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&wanted, ending[i]);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
}

int uvd_fuzz_stopped(void)
{
	return stopped;
}

/* Waits for a signal. Returns it, or 0 after a second without one. */
static int signal_wait(void)
{
	const struct timespec second = { .tv_sec = 1 };
	const int sig = sigtimedwait(&wanted, NULL, &second);

	if (sig > 0 && sig != SIGCHLD)
		stopped = sig;
	return sig < 0 ? 0 : sig;
}

/* Sends the signal to all workers that are left; those of a DEVICE are processes of this program, with children. */
static void workers_kill(const struct uvd_fuzz *f, const pid_t *pids, unsigned int n, int sig)
{
	for (unsigned int i = 0; i < n; i++)
		if (pids[i] > 0)
			kill(f->device ? -pids[i] : pids[i], sig);
}

/* Takes the status of one of the workers that has ended. Returns its index, or -1. */
static int worker_reap(pid_t *pids, unsigned int n, int *status)
{
	for (unsigned int i = 0; i < n; i++)
		if (pids[i] > 0 && waitpid(pids[i], status, WNOHANG) == pids[i]) {
			pids[i] = -1;
			*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : 2;
			return i;
		}
	return -1;
}

static bool workers_left(const pid_t *pids, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (pids[i] > 0)
			return true;
	return false;
}

int uvd_fuzz_wait(const struct uvd_fuzz *f, pid_t *pids, unsigned int n, bool patient, int *status)
{
	const int was = stopped;
	int i;

	for (unsigned int ticks = 0; workers_left(pids, n);) {
		i = worker_reap(pids, n, status);
		if (i >= 0)
			return i;
		if (stopped && (!patient || ticks >= GRACE_SECONDS))
			workers_kill(f, pids, n, ticks < 2 * GRACE_SECONDS ? SIGTERM : SIGKILL);
		if (!signal_wait() && stopped)
			ticks++;
		if (stopped && !was && patient)
			return -1;
	}
	return -1;
}

/* ---- the command line of a worker -------------------------------------------------------------------------------- */

struct args {
	char text[MAX_ARGS][ARG];
	char *argv[MAX_ARGS + 1];
	unsigned int n;
};

static void __attribute__((format(printf, 2, 3))) args_add(struct args *a, const char *format, ...)
{
	va_list ap;

	if (a->n == MAX_ARGS)
		return;
	va_start(ap, format);
	vsnprintf(a->text[a->n], ARG, format, ap);
	va_end(ap);
	a->argv[a->n] = a->text[a->n];
	a->n++;
}

static void run_options_add(const struct uvd_fuzz *f, struct args *a)
{
	for (int i = 0; i < f->num_run_options && a->n < MAX_ARGS - 24; i++)
		a->argv[a->n++] = f->run_options[i];
}

/* Returns how many programs one of the jobs runs; 0: any number. */
static unsigned long programs_share(const struct uvd_fuzz *f)
{
	return (f->programs + f->jobs - 1) / f->jobs;
}

/* The command line of a worker; without a device of its own it is under a run of its own. */
static void worker_args(const struct uvd_fuzz *f, struct args *a, const char *folder, const char *mode,
			const char *emit)
{
	static char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len > 0 ? len : 0] = 0;
	a->n = 0;
	a->argv[a->n++] = self;
	if (!f->in_process) {
		args_add(a, "run");
		args_add(a, "--log-level");
		args_add(a, "error");
		run_options_add(f, a);
		args_add(a, "--");
		a->argv[a->n++] = self;
	}
	args_add(a, "fuzz");
	args_add(a, "--internal-%s", mode);
	a->argv[a->n++] = (char *)folder;
	args_add(a, "--seconds");
	args_add(a, "%f", f->seconds);
	args_add(a, "--programs");
	args_add(a, "%lu", programs_share(f));
	args_add(a, "--seed");
	args_add(a, "%llu", (unsigned long long)f->seed);
	args_add(a, "--internal-step");
	args_add(a, "%llu", (unsigned long long)f->step);
	args_add(a, "--hang");
	args_add(a, "%u", f->hang);
	if (f->cm)
		args_add(a, "--rdma-cm");
	if (emit) {
		args_add(a, "--internal-emit");
		a->argv[a->n++] = (char *)emit;
	}
	if (f->in_process) {
		args_add(a, "--in-process");
		args_add(a, "--");
		run_options_add(f, a);
	}
	a->argv[a->n] = NULL;
}

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

static void worker_signals_restore(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* In the new process: becomes the worker. */
static void __attribute__((noreturn)) worker_exec(struct args *a, const char *folder)
{
	char log[PATH_MAX + 8];
	int fd;

	snprintf(log, sizeof(log), "%s/log", folder);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
	/* A sanitizer's report ends the engine, so that it is a finding of the call that caused it. */
	setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 0);
	execv(a->argv[0], a->argv);
	_exit(127);
}

pid_t uvd_fuzz_start(const struct uvd_fuzz *f, const char *folder, const char *mode, const char *emit)
{
	struct args *a = calloc(1, sizeof(*a));
	struct uvd_fuzz one = *f;
	pid_t pid;

	if (!a)
		return -1;
	worker_args(f, a, folder, mode, emit);
	one.folder = folder;
	one.programs = programs_share(f);
	one.trial = !strcmp(mode, "trial");
	one.emit = emit;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		worker_signals_restore();
		if (f->device)
			_exit(uvd_fuzz_worker(&one));
		worker_exec(a, folder);
	}
	free(a);
	return pid;
}

int uvd_fuzz_run(const struct uvd_fuzz *f, const char *folder, const char *mode, const char *emit)
{
	pid_t pid = stopped ? -1 : uvd_fuzz_start(f, folder, mode, emit);
	int status = 2;

	if (pid > 0)
		uvd_fuzz_wait(f, &pid, 1, false, &status);
	return status;
}
