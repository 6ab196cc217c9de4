/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine caches for a moment which file a descriptor number stands for. These tests change that in every way, right
 * after calls that filled the cache: the next write must reach the file that the number stands for now.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

enum { ROUNDS = 50 };

static int pipes[2];

/* Makes the engine cache the file of fd. */
static void use(int fd)
{
	for (int i = 0; i < 5; i++)
		IS(client_alloc_pd(fd) >= 0);
}

static void leads_to_the_pipe(int fd)
{
	char byte = 0;

	IS(write(fd, "x", 1) == 1);
	IS(read(pipes[0], &byte, 1) == 1 && byte == 'x');
}

static void by_dup2(int fd)
{
	IS(dup2(pipes[1], fd) == fd);
}

static void by_dup3(int fd)
{
	IS(dup3(pipes[1], fd, O_CLOEXEC) == fd);
}

static void by_close(int fd)
{
	IS(!close(fd));
	IS(fcntl(pipes[1], F_DUPFD, fd) == fd);
}

static void by_close_range(int fd)
{
	IS(!syscall(SYS_close_range, fd, fd, 0));
	IS(fcntl(pipes[1], F_DUPFD, fd) == fd);
}

static int relative(void *arg)
{
	return syscall(SYS_close, *(int *)arg) || fcntl(pipes[1], F_DUPFD, *(int *)arg) != *(int *)arg;
}

/* Changes fd in another process, which shares our descriptor table but no memory, and makes no call afterwards. */
static void by_relative(int fd)
{
	size_t size = 65536;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status, child = clone(relative, stack + size, CLONE_FILES | SIGCHLD, &fd);

	IS(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	munmap(stack, size);
}

static void change(void (*how)(int fd))
{
	int fd = client_open_context(), keep = dup(fd);

	IS(!pipe(pipes));
	for (int i = 0; i < ROUNDS; i++) {
		use(fd);
		how(fd);
		leads_to_the_pipe(fd);
		IS(dup2(keep, fd) == fd);
	}
}

void client_number_dup2(void)
{
	change(by_dup2);
}

void client_number_dup3(void)
{
	change(by_dup3);
}

void client_number_close(void)
{
	change(by_close);
}

void client_number_close_range(void)
{
	change(by_close_range);
}

void client_number_closed_by_a_relative(void)
{
	change(by_relative);
}

/* ---- while the call that changes it is in flight ------------------------------------------------------------------ */

enum { CHANGES = 500 };

static atomic_int changes, seen; /* calls of dup2() that have returned; the last one that look() has checked */

static void *look(void *arg)
{
	struct stat st;

	while (seen < CHANGES) {
		int now = changes;

		IS(!syscall(SYS_fstat, *(int *)arg, &st));
		if (now == seen)
			continue; /* the next change may be in flight */
		IS(now & 1 ? S_ISFIFO(st.st_mode) : S_ISCHR(st.st_mode));
		seen = now;
	}
	return NULL;
}

/* Between the notification of a dup2() and its execution the engine must not cache what the number stands for. */
void client_number_looked_at_during_dup2(void)
{
	int fd = client_open_context(), keep = dup(fd);
	pthread_t t;

	IS(!pipe(pipes) && !pthread_create(&t, NULL, look, &fd));
	for (int i = 1; i <= CHANGES; i++) {
		IS(dup2(i & 1 ? pipes[1] : keep, fd) == fd);
		changes = i;
		while (seen < i)
			sched_yield();
	}
	IS(!pthread_join(t, NULL));
}

/* ---- closed without a system call close() ------------------------------------------------------------------------ */

struct ring {
	int fd;
	struct io_uring_params p;
	struct io_uring_sqe *sqes;
	char *rings;
};

static bool ring_open(struct ring *r)
{
	memset(r, 0, sizeof(*r));
	r->fd = syscall(SYS_io_uring_setup, 4, &r->p);
	if (r->fd < 0 && (errno == ENOSYS || errno == EPERM))
		return false; /* a kernel without io_uring */
	IS(r->fd >= 0 && r->p.features & IORING_FEAT_SINGLE_MMAP);
	r->rings = mmap(NULL, 4096 * 2, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	IS(r->rings != MAP_FAILED && r->sqes != MAP_FAILED);
	return true;
}

/* Carries out one operation and returns its result. */
static int ring_do(struct ring *r, const struct io_uring_sqe *sqe)
{
	unsigned int *tail = (unsigned int *)(r->rings + r->p.sq_off.tail), *head, at;
	unsigned int *array = (unsigned int *)(r->rings + r->p.sq_off.array);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(r->rings + r->p.cq_off.cqes);

	at = *tail & *(unsigned int *)(r->rings + r->p.sq_off.ring_mask);
	r->sqes[at] = *sqe;
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	IS(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	head = (unsigned int *)(r->rings + r->p.cq_off.head);
	at = *head & *(unsigned int *)(r->rings + r->p.cq_off.ring_mask);
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return cqes[at].res;
}

void client_number_closed_by_a_ring(void)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_CLOSE };
	struct ring ring;
	int fd, keep;

	if (!ring_open(&ring))
		return;
	IS(!pipe(pipes));
	fd = client_open_context();
	keep = dup(fd);
	sqe.fd = fd;
	for (int i = 0; i < 3; i++) {
		use(fd);
		IS(ring_do(&ring, &sqe) == 0);
		IS(fcntl(pipes[1], F_DUPFD, fd) == fd);
		leads_to_the_pipe(fd);
		IS(dup2(keep, fd) == fd);
	}
}

/* The filter cannot see what a ring does: it must fail, or do nothing (docs/abi-differences.md). */
void client_ring_reaches_no_device(void)
{
	uint64_t command[64] = { 0 };
	struct io_uring_sqe sqe = { .addr = (uintptr_t)command, .len = sizeof(command) };
	struct ring ring;

	if (!ring_open(&ring))
		return;
	sqe.fd = client_open_context();
	sqe.opcode = IORING_OP_WRITE;
	IS(ring_do(&ring, &sqe) == -EPERM);
	sqe.opcode = IORING_OP_READ;
	command[0] = 1;
	IS(ring_do(&ring, &sqe) == sizeof(command) && !command[0]);
	sqe.opcode = IORING_OP_URING_CMD;
	sqe.len = 0;
	IS(ring_do(&ring, &sqe) == -EOPNOTSUPP);
	IS(client_alloc_pd(sqe.fd) >= 0);
}

/* ---- another thread with the same id ----------------------------------------------------------------------------- */

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (pid) {
		args.set_tid = (uintptr_t)&pid;
		args.set_tid_size = 1;
	}
	return syscall(SYS_clone3, &args, sizeof(args));
}

/*
 * The first child writes to the device (the engine refuses, as it has not opened it) and exits. The second child gets
 * the same id, and has a pipe at the number. The engine sees no call that closes the number after the write: the
 * parent has changed its own table before.
 */
static bool recycle(int fd, int keep)
{
	int status, go[2];
	pid_t first, second;
	char byte;

	IS(dup2(keep, fd) == fd && !pipe(go));
	first = fork_as(0);
	IS(first >= 0);
	if (!first) {
		IS(read(go[0], &byte, 1) == 1);
		for (int i = 0; i < 3; i++)
			FAILS(client_alloc_pd(fd), EACCES);
		_exit(0);
	}
	by_dup2(fd);
	leads_to_the_pipe(fd);
	IS(write(go[1], "", 1) == 1 && waitpid(first, &status, 0) == first && !status);
	second = fork_as(first);
	if (second < 0)
		return false; /* set_tid needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE */
	if (!second) {
		leads_to_the_pipe(fd);
		_exit(0);
	}
	IS(second == first && waitpid(second, &status, 0) == second && !status);
	close(go[0]);
	close(go[1]);
	return true;
}

void client_number_of_a_recycled_thread(void)
{
	int fd = client_open_context(), keep = dup(fd);

	IS(!pipe(pipes));
	for (int i = 0; i < ROUNDS && recycle(fd, keep); i++)
		;
}
