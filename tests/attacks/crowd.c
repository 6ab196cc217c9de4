/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * crowd MODE N: one process with N threads, each in a call that waits for the process's memory.
 *
 *   lock    another process holds its mmap_lock; the calls return when a line comes on stdin
 *   open    the same, but the calls open the node: the broker's child that reads the path waits for that memory
 *   fault   the calls' attributes are in a page that is never filled (userfaultfd; start as root)
 *   objects no threads: this process makes N memory registrations
 *
 * Prints "stuck" when the threads are in their calls. When a line comes on stdin, "lock" and "open" print how many
 * calls have returned. At end of file on stdin the program exits without that count.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "request.h"
#include "slow.h"

static struct uv_tree tree;
static const void *asked = &tree;
static int device, go[2], done[2];
static bool opens;

static void call(void)
{
	if (opens)
		uv_open();
	else
		uv_ioctl_raw(device, RDMA_VERBS_IOCTL, asked);
}

static void *caller(void *arg)
{
	char c;

	if (read(go[0], &c, 1) == 1) {
		call();
		if (write(done[1], "d", 1) != 1)
			_exit(1);
	}
	for (;;)
		pause();
}

static const void *request_that_waits(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	uint8_t *pages = mmap(NULL, 2 * REQUEST_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { { (uintptr_t)pages + REQUEST_PAGE, REQUEST_PAGE },
					 UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	MUST(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api) && !ioctl(uffd, UFFDIO_REGISTER, &range));
	return request_across(pages);
}

static void crowd(struct slow *slow, unsigned int n, int ready)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (unsigned int i = 0; i < n; i++)
		MUST(!pthread_create(&thread, &attr, caller, NULL));
	nap(500);
	if (slow)
		slow_hold_mmap_lock(slow);
	else
		asked = request_that_waits();
	for (unsigned int i = 0; i < n; i++)
		MUST(write(go[1], "g", 1) == 1);
	MUST(write(ready, "r", 1) == 1);
	for (;;)
		pause();
}

static void make_objects(unsigned int n)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct uv_mr mr;
	uint32_t pd;

	MUST(!uv_alloc_pd(device, UV_INVOKE, &pd));
	while (n--)
		MUST(!uv_reg_mr(device, UV_INVOKE, pd, page, sizeof(page), IB_UVERBS_ACCESS_LOCAL_WRITE, &mr));
}

static unsigned int count_done(unsigned int n)
{
	unsigned int i = 0;
	char c;

	alarm(60);
	while (i < n && read(done[0], &c, 1) == 1)
		i++;
	return i;
}

int main(int argc, char **argv)
{
	bool lock = argc > 2 && (!strcmp(argv[1], "lock") || !strcmp(argv[1], "open")), end;
	unsigned int n = argc > 2 ? atoi(argv[2]) : 0;
	static struct slow slow;
	int async, ready[2];
	uint32_t vectors;
	pid_t child;
	char c;

	device = uv_open();
	MUST(n && device >= 0 && !uv_get_context(device, UV_INVOKE, &async, &vectors));
	if (!strcmp(argv[1], "objects")) {
		make_objects(n);
		printf("stuck\n");
		fflush(stdout);
		return read(0, &c, 1) < 0;
	}
	opens = !strcmp(argv[1], "open");
	MUST(!pipe(ready) && !pipe(go) && !pipe(done));
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	if (lock)
		slow_start(&slow);
	child = fork();
	if (!child)
		crowd(lock ? &slow : NULL, n, ready[1]);
	MUST(read(ready[0], &c, 1) == 1);
	nap(1000);
	printf("stuck\n");
	fflush(stdout);
	end = read(0, &c, 1) != 1;
	if (lock)
		slow_open_gate(&slow);
	else
		kill(child, SIGKILL);
	if (lock && !end)
		printf("%u returned\n", count_done(n));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
