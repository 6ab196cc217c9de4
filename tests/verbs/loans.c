/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * loans MODE [NUMBER]: a client that registers memory while it does what could disturb the loan of its thread. An error
 * of a registration ends it with status 1 and a message. By MODE:
 *
 *   once         registers memory for peers, and other memory; says how that ends
 *   often N      N threads register memory for peers until stdin ends; says how often
 *   local N      the same with memory that is not for peers
 *   page         a child registers a page of a file that a FUSE file system of ours serves; says "asks". A letter on
 *                stdin says what happens before the page comes:
 *                  a  nothing
 *                  w  we register, and the page comes 2.5 seconds later
 *                  k  we kill the child, register, and wait for another letter
 *                  u  we send the child a signal
 *                  t  we try to trace the child, which must fail
 *                  s  we stop the child, and continue it when it has stopped and has no tracer
 *                  S  the same, and then we kill it
 *   signals N    N registrations of a thread that gets a signal each millisecond, and others
 *   exec         the first thread is in a loan that waits for the page of a file, when another one executes a shell
 *   first        the first thread registers until another one executes a shell. The shell says "executed"
 *   other        the same, but the first thread executes the shell
 *   exit N       the first thread registers until another one ends the process with status N
 *   fork N       N registrations, while another thread forks all the time, in both ways
 *   namespaces   as once, in a child that has a user, pid and mount namespace of its own
 *   undumpable   as once, when no other process of its user may trace it any more
 *   nobody       as once, when it has given up root's ids
 *
 * All but `page` say "begun" when they have opened the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "attacks/slow.h"
#include "uv.h"

enum {
	PAGE = 4096,
	MAX_THREADS = 64,
	NOBODY = 65534,
	REMOTE = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE
};

static int device;
static uint32_t pd;
static enum uv_front front = UV_WRITE;
static unsigned int access_wanted = REMOTE;
static atomic_bool stop;
static atomic_uint registered;

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void open_device(void)
{
	uint32_t vectors;
	int async;

	device = uv_open();
	MUST(device >= 0 && !uv_get_context(device, front, &async, &vectors) && !uv_alloc_pd(device, front, &pd));
}

/*
 * Registers a page, and ends that. EINTR: a signal whose handler has no SA_RESTART came before the engine had the call,
 * which was not executed (docs/abi-differences.md).
 */
static void register_page(void *page)
{
	struct uv_mr mr;
	int ret;

	do {
		ret = uv_reg_mr(device, front, pd, page, PAGE, access_wanted, &mr);
	} while (ret == -EINTR);
	if (ret)
		goto out;
	do {
		ret = uv_dereg_mr(device, front, mr.handle);
	} while (ret == -EINTR);
out:
	if (ret) {
		printf("errno %d after %u registrations\n", -ret, atomic_load(&registered));
		fflush(stdout);
		_exit(1);
	}
	atomic_fetch_add(&registered, 1);
}

static void *new_page(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED);
	return page;
}

static void *register_until_stop(void *arg)
{
	void *page = new_page();

	while (!atomic_load(&stop))
		register_page(page);
	return arg;
}

static void register_times(unsigned long times)
{
	void *page = new_page();

	while (times--)
		register_page(page);
}

static pthread_t start_thread(void *(*body)(void *arg), void *arg)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, body, arg));
	return thread;
}

/* Within 10 ms: somewhere in one of the registrations. */
static void wait_a_moment(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	srandom((unsigned int)now.tv_nsec);
	usleep(random() % 10000);
}

static int register_and_say(void)
{
	struct uv_mr mr;
	int ret = uv_reg_mr(device, front, pd, new_page(), PAGE, REMOTE, &mr);

	printf("remote %d\n", -ret);
	ret = uv_reg_mr(device, front, pd, new_page(), PAGE, IB_UVERBS_ACCESS_LOCAL_WRITE, &mr);
	printf("local %d\n", -ret);
	return 0;
}

/* ---- often ------------------------------------------------------------------------------------------------------- */

static int often(unsigned long threads)
{
	pthread_t started[MAX_THREADS];
	char c;

	MUST(threads <= MAX_THREADS);
	for (unsigned long i = 0; i < threads; i++)
		started[i] = start_thread(register_until_stop, NULL);
	MUST(read(STDIN_FILENO, &c, 1) >= 0);
	atomic_store(&stop, true);
	for (unsigned long i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
	printf("registered %u\n", atomic_load(&registered));
	return 0;
}

/* ---- page -------------------------------------------------------------------------------------------------------- */

static struct slow slow;

static void touch_page(const char *page)
{
	if (!fork()) {
		(void)*(volatile const char *)page;
		_exit(0);
	}
	MUST(slow_asked(&slow, 60000));
	slow_answer(&slow);
	MUST(wait(NULL) > 0);
}

static volatile sig_atomic_t usr1;

static void on_usr1(int sig)
{
	usr1++;
}

static __attribute__((noreturn)) void register_file(const char *pages)
{
	struct uv_mr mr;
	int ret;

	signal(SIGUSR1, on_usr1);
	ret = uv_reg_mr(device, front, pd, pages, 2 * PAGE, REMOTE, &mr);
	printf("registered, %s, signals %d\n",
	       ret		 ? strerror(-ret)
	       : pages[0] == 'x' ? "as the file"
				 : "other bytes",
	       (int)usr1);
	exit(0);
}

static bool is_traced(pid_t pid)
{
	char path[64], line[128];
	bool traced = true;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strcmp(line, "TracerPid:\t0\n"))
			traced = false;
	if (f)
		fclose(f);
	return traced;
}

/* The child is in a loan that waits for the page. */
static void disturb(pid_t child, char how)
{
	int status;
	char c;

	MUST(is_traced(child));
	if (how == 'w') {
		if (!fork()) {
			nap(2500);
			slow_open_gate(&slow);
			_exit(0);
		}
		open_device();
		register_and_say();
		return;
	}
	if (how == 'k') {
		kill(child, SIGKILL);
		open_device();
		register_and_say();
		say("registered beside");
		MUST(read(STDIN_FILENO, &c, 1) == 1);
	}
	if (how == 'u')
		kill(child, SIGUSR1);
	if (how == 't')
		MUST(ptrace(PTRACE_SEIZE, child, 0, 0) && errno == EPERM);
	if (how == 's' || how == 'S')
		kill(child, SIGSTOP);
	slow_open_gate(&slow);
	if (how != 's' && how != 'S')
		return;
	MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	for (int i = 0; is_traced(child); i++, nap(10))
		MUST(i < 500);
	kill(child, how == 's' ? SIGCONT : SIGKILL);
}

/* Two pages of the file. The last one is in memory, as the engine looks at that one itself. */
static char *map_file(void)
{
	char *pages;

	slow_start(&slow);
	memset(slow.content, 'x', 2 * PAGE);
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, slow.file, 0);
	MUST(pages != MAP_FAILED);
	touch_page(pages + PAGE);
	return pages;
}

/* The file system outlives the process that registers, so its end is no answer. */
static int page_of_a_file(void)
{
	const char *pages = map_file();
	pid_t child;
	int status;
	char c;

	child = fork();
	MUST(child >= 0);
	if (!child) {
		open_device();
		register_file(pages);
	}
	MUST(slow_asked(&slow, 60000));
	say("asks");
	MUST(read(STDIN_FILENO, &c, 1) == 1);
	disturb(child, c);
	MUST(waitpid(child, &status, 0) == child);
	printf("ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* To the thread that registers, and to the process: each with its number as value. */
enum { TO_THREAD, TO_PROCESS, KINDS };
static atomic_int sent[KINDS], seen[KINDS], alarms;
static atomic_bool disorder;

static void on_alarm(int sig)
{
	alarms++;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const int kind = sig - SIGRTMIN;

	if (info->si_value.sival_int != seen[kind])
		disorder = true;
	seen[kind]++;
}

static void *send_signals(void *arg)
{
	const pthread_t *to = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!atomic_load(&stop)) {
		/* A queue that is full is no loss. */
		if (!pthread_sigqueue(*to, SIGRTMIN + TO_THREAD, (union sigval){ .sival_int = sent[TO_THREAD] }))
			sent[TO_THREAD]++;
		if (!sigqueue(getpid(), SIGRTMIN + TO_PROCESS, (union sigval){ .sival_int = sent[TO_PROCESS] }))
			sent[TO_PROCESS]++;
		usleep(1000);
	}
	return NULL;
}

static int signals(unsigned long times)
{
	struct sigaction alarm = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigaction queued = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } }, never = {};
	pthread_t self = pthread_self(), sender;

	sigaction(SIGALRM, &alarm, NULL);
	sigaction(SIGRTMIN + TO_THREAD, &queued, NULL);
	queued.sa_flags |= SA_RESTART;
	sigaction(SIGRTMIN + TO_PROCESS, &queued, NULL);
	sender = start_thread(send_signals, &self);
	MUST(!setitimer(ITIMER_REAL, &each_ms, NULL));
	register_times(times);
	setitimer(ITIMER_REAL, &never, NULL);
	atomic_store(&stop, true);
	pthread_join(sender, NULL);
	printf("registered %u, alarms %s, sent %d %d, seen %d %d%s\n", atomic_load(&registered),
	       alarms > 50 ? "many" : "few", sent[0], sent[1], seen[0], seen[1], disorder ? " in disorder" : "");
	return sent[0] == seen[0] && sent[1] == seen[1] && alarms > 50 && !disorder ? 0 : 1;
}

/* ---- exec and exit ----------------------------------------------------------------------------------------------- */

static void execute_shell(void)
{
	wait_a_moment();
	execl("/bin/sh", "sh", "-c", "echo executed; read line; exit 0", NULL);
	give_up("exec");
}

static void *execute_when_asked(void *arg)
{
	const int *go = arg;

	MUST(slow_asked(&slow, 60000) && write(go[1], "g", 1) == 1);
	execute_shell();
	return arg;
}

/* The page comes when the exec is killing the first thread, which waits for it with a lock that a fork would need. */
static void execute_in_a_loan(void)
{
	const char *pages = map_file();
	int go[2];
	char c;

	MUST(!pipe2(go, O_CLOEXEC));
	if (!fork()) {
		MUST(read(go[0], &c, 1) == 1);
		nap(300);
		slow_open_gate(&slow);
		_exit(0);
	}
	start_thread(execute_when_asked, go);
	register_file(pages);
}

static void *execute_later(void *arg)
{
	execute_shell();
	return arg;
}

static void *exit_later(void *arg)
{
	wait_a_moment();
	syscall(SYS_exit_group, (int)(uintptr_t)arg);
	return NULL;
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void *fork_all_the_time(void *arg)
{
	while (!atomic_load(&stop)) {
		int status = -1;
		pid_t child = fork();

		if (!child)
			_exit(3);
		MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
		child = vfork();
		if (!child)
			_exit(4);
		MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
	}
	return arg;
}

static int fork_meanwhile(unsigned long times)
{
	pthread_t thread = start_thread(fork_all_the_time, NULL);

	register_times(times);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("registered %u\n", atomic_load(&registered));
	return 0;
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

static int in_namespaces(void)
{
	pid_t child;
	int status;

	MUST(!unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS));
	child = fork();
	if (!child) {
		/* The device must be this process's own: only the opener may use it by write(), and its memory counts. */
		MUST(getpid() == 1);
		open_device();
		status = register_and_say();
		fflush(stdout);
		_exit(status);
	}
	return waitpid(child, &status, 0) == child ? status : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const unsigned long number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (!strcmp(mode, "page"))
		return page_of_a_file();
	open_device();
	say("begun");
	if (!strcmp(mode, "local"))
		access_wanted = IB_UVERBS_ACCESS_LOCAL_WRITE;
	if (!strcmp(mode, "often") || !strcmp(mode, "local"))
		return often(number);
	if (!strcmp(mode, "signals"))
		return signals(number);
	if (!strcmp(mode, "exec"))
		execute_in_a_loan();
	if (!strcmp(mode, "first")) {
		start_thread(execute_later, NULL);
		register_until_stop(NULL);
	}
	if (!strcmp(mode, "other")) {
		start_thread(register_until_stop, NULL);
		execute_shell();
	}
	if (!strcmp(mode, "exit")) {
		start_thread(exit_later, (void *)number);
		register_until_stop(NULL);
	}
	if (!strcmp(mode, "fork"))
		return fork_meanwhile(number);
	if (!strcmp(mode, "namespaces"))
		return in_namespaces();
	if (!strcmp(mode, "undumpable"))
		MUST(!prctl(PR_SET_DUMPABLE, 0));
	/* Only the user who has opened the device may use it by write(). */
	if (!strcmp(mode, "nobody"))
		front = UV_INVOKE;
	if (!strcmp(mode, "nobody"))
		MUST(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
	return register_and_say();
}
