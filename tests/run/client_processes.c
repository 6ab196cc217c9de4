/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Processes and threads that use the device. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

void client_fork(void)
{
	int fd = client_open_context();
	pid_t pid;

	IS(client_alloc_pd(fd) == 0);
	pid = fork();
	if (!pid) {
		FAILS(client_alloc_pd(fd), EACCES);
		IS(client_count_pds(fd) == 1);
		FAILS(client_alloc_pd(dup(fd)), EACCES);
		fd = client_open_context();
		IS(client_alloc_pd(fd) == 0);
		_exit(0);
	}
	client_wait_for(pid);
	IS(client_alloc_pd(fd) == 1);
}

void client_vfork(void)
{
	int fd = client_open_context();
	pid_t pid;

	IS(client_alloc_pd(fd) == 0);
	pid = vfork();
	if (!pid) {
		if (client_alloc_pd(fd) == -1 && errno == EACCES && client_count_pds(fd) == 1)
			execl(client_self, client_self, "nothing", NULL);
		_exit(1);
	}
	client_wait_for(pid);
	IS(client_alloc_pd(fd) == 1);
}

/* The engine reads the paths of a vfork()'s child in the memory of its parent, and after its exec in its own. */
void client_vfork_opens_before_its_exec(void)
{
	pid_t pid = vfork();

	if (!pid) {
		if (!access(NODE, F_OK))
			execl(client_self, client_self, "of_vfork", NULL);
		_exit(1);
	}
	client_wait_for(pid);
}

static int exec_of_vfork(void *arg)
{
	char *argv[] = { (char *)client_self, "of_vfork", NULL };

	syscall(SYS_execve, client_self, argv, environ);
	return 1;
}

/*
 * The exec of another thread gives the child's number to a thread with other memory. Until then the child calls all the time,
 * also while the exec is under way.
 */
void client_vfork_has_a_thread_that_execs(void)
{
	enum { TIMES = 30, STACK = 65536, FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD };
	char *stack = malloc(STACK);

	IS(stack);
	for (int i = 0; i < TIMES; i++) {
		pid_t pid = vfork();

		if (!pid) {
			if (clone(exec_of_vfork, stack + STACK, FLAGS, NULL) < 0)
				_exit(1);
			for (;;)
				syscall(SYS_access, NODE, F_OK);
		}
		client_wait_for(pid);
	}
	free(stack);
}

void client_exec(void)
{
	char number[16];
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	IS(!fcntl(fd, F_SETFD, 0));
	snprintf(number, sizeof(number), "%d", fd);
	execl(client_self, client_self, "after_exec", number, NULL);
	IS(!"exec");
}

static int exec_fd;

static void *exec_thread(void *arg)
{
	char number[16];

	IS(client_alloc_pd(exec_fd) >= 1 && !fcntl(exec_fd, F_SETFD, 0));
	snprintf(number, sizeof(number), "%d", exec_fd);
	execl(client_self, client_self, "after_exec", number, NULL);
	IS(!"exec");
	return NULL;
}

/* By exec the calling thread gets the id of the first thread. */
void client_exec_by_a_thread(void)
{
	pthread_t t;

	exec_fd = client_open_context();
	IS(client_alloc_pd(exec_fd) == 0);
	IS(!pthread_create(&t, NULL, exec_thread, NULL));
	for (;;) {
		/* Some of these calls coincide with the exec. */
		int pd = client_alloc_pd(exec_fd);

		/* Free each PD: before a slow thread starts, they could reach the user's limit. */
		IS(pd >= 0 && !client_dealloc_pd(exec_fd, pd));
	}
}

void client_failed_exec_changes_nothing(void)
{
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	FAILS(execl("/does/not/exist", "x", NULL), ENOENT);
	IS(client_alloc_pd(fd) == 1 && client_alloc_pd(fd) == 2);
}

void client_set_id(void)
{
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	if (geteuid()) {
		FAILS(setresuid(0, 0, 0), EPERM);
		IS(client_alloc_pd(fd) == 1);
		return;
	}
	IS(!setresuid(65534, 65534, 65534));
	FAILS(client_alloc_pd(fd), EACCES);
	IS(client_count_pds(fd) == 1);
}

enum { THREADS = 4, ROUNDS = 300 };

static void *churn(void *arg)
{
	int fd = *(int *)arg, pd;

	for (int i = 0; i < ROUNDS; i++) {
		pd = client_alloc_pd(fd);
		IS(pd >= 0 && !client_dealloc_pd(fd, pd));
		if (i % 50)
			continue;
		pd = client_open_context();
		IS(client_alloc_pd(pd) == 0 && !close(pd));
	}
	return NULL;
}

void client_threads(void)
{
	int fd = client_open_context();
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		IS(!pthread_create(&t[i], NULL, churn, &fd));
	for (int i = 0; i < THREADS; i++)
		IS(!pthread_join(t[i], NULL));
	IS(client_count_pds(fd) == 0);
}

static void send_fd(int sock, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { "x", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	IS(sendmsg(sock, &m, 0) == 1);
}

static int receive_fd(int sock)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
	int fd;

	IS(recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

void client_scm_rights(void)
{
	int pair[2], fd;
	pid_t pid;

	IS(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid) {
		fd = receive_fd(pair[1]);
		IS(client_count_pds(fd) == 3);
		IS(client_alloc_pd(fd) == -1 && (errno == EACCES || errno == EPERM));
		_exit(0);
	}
	fd = client_open_context();
	for (int i = 0; i < 3; i++)
		IS(client_alloc_pd(fd) == i);
	send_fd(pair[0], fd);
	IS(!close(fd)); /* the other process keeps it open */
	client_wait_for(pid);
}
