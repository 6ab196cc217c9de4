/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "../suite.h"

#define ORDERS 100 /* fd numbers that survive exec */
#define ANSWERS 101

uint64_t exec_word;

void tell(uint64_t value)
{
	if (write(ANSWERS, &value, sizeof(value)) != sizeof(value))
		_exit(3);
}

uint64_t listen_for_order(void)
{
	uint64_t order;

	if (read(ORDERS, &order, sizeof(order)) != sizeof(order))
		_exit(0);
	return order;
}

struct child child_start(void (*run)(void *arg), void *arg)
{
	int to[2], from[2];
	struct child c;

	ck_assert(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
	c.pid = fork();
	ck_assert_int_ge(c.pid, 0);
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], ORDERS);
		dup2(from[1], ANSWERS);
		close(to[1]);
		close(from[0]);
		run(arg);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	return c;
}

uint64_t child_says(struct child *c)
{
	uint64_t value;

	ck_assert_int_eq(read(c->from, &value, sizeof(value)), sizeof(value));
	return value;
}

void child_order(struct child *c, uint64_t order)
{
	ck_assert_int_eq(write(c->to, &order, sizeof(order)), sizeof(order));
}

void child_end(struct child *c)
{
	kill(c->pid, SIGKILL);
	ck_assert_int_eq(waitpid(c->pid, NULL, 0), c->pid);
	close(c->to);
	close(c->from);
}

void exec_self(void)
{
	execl("/proc/self/exe", "test", "--client", NULL);
	_exit(4);
}

static void exec_client(void)
{
	exec_word = EXEC_WORD;
	tell((uintptr_t)&exec_word);
	for (;;)
		listen_for_order();
}

/* The sanitizers do not support a process that shares its memory with another one. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static int sleeper(void *arg)
{
	for (;;)
		syscall(SYS_pause);
	return 0;
}

/*
 * Not clone(): ThreadSanitizer's version passes the child a pointer into the parent's stack, which the parent meanwhile
 * overwrites.
 */
pid_t clone_vm_sleeper(void)
{
	size_t size = 65536;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	long ret = SYS_clone;

	asm volatile("mov %[start], %%r12\n\t"
		     "xor %%edx, %%edx\n\t"
		     "xor %%r10d, %%r10d\n\t"
		     "xor %%r8d, %%r8d\n\t"
		     "syscall\n\t"
		     "test %%rax, %%rax\n\t"
		     "jnz 1f\n\t"
		     "xor %%edi, %%edi\n\t"
		     "call *%%r12\n\t"
		     "hlt\n"
		     "1:"
		     : "+a"(ret)
		     : "D"((long)(CLONE_VM | SIGCHLD)), "S"(stack + size), [start] "r"(sleeper)
		     : "rcx", "rdx", "r8", "r10", "r11", "r12", "memory");
	return ret;
}

pid_t fork_with_pid(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1 };
	pid_t child = syscall(SYS_clone3, &args, sizeof(args));

	if (!child)
		for (;;)
			syscall(SYS_pause);
	return child;
}

void drop_rights(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(5);
}

int run_client_tests(int argc, char **argv, Suite *suite)
{
	if (argc > 1 && !strcmp(argv[1], "--client"))
		exec_client();
	return run_cases(suite);
}

unsigned int low_fds(void)
{
	unsigned int num = 0;

	for (int fd = 0; fd < FD_SETSIZE; fd++)
		num += fcntl(fd, F_GETFD) >= 0;
	return num;
}
