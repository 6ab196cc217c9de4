/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * stuck MODE: a client whose memory does not answer, while others work.
 *
 *   relative   the mmap_lock of a process that registered memory is held; its sibling, which looks like it, registers
 *              memory
 *   exec       the same, and the first process is in execve(), which waits for that lock: a query about the process
 *              waits for the exec, too
 *   call       a call waits for the caller's memory, whose mmap_lock another process holds
 *   page       a call waits for a file's page in the caller's memory; start as root, which becomes USER
 *
 * Prints "stuck" when this is set up. The memory answers when a line, or the end of file, comes on stdin.
 */
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "request.h"
#include "slow.h"

enum { USER = 1000 };

static struct slow slow;
static char page[4096] __attribute__((aligned(4096)));

static void first_process(int fd, uint32_t pd, int ready, bool exec)
{
	char *args[] = { "/bin/true", NULL }, *env[] = { NULL };
	struct uv_mr mr;

	MUST(!uv_reg_mr(fd, UV_INVOKE, pd, page, sizeof(page), IB_UVERBS_ACCESS_LOCAL_WRITE, &mr));
	slow_hold_mmap_lock(&slow);
	MUST(write(ready, "r", 1) == 1);
	if (exec)
		syscall(SYS_execve, args[0], args, env);
	for (;;)
		pause();
}

static void second_process(int fd, uint32_t pd, int ready, const char *mode)
{
	uint8_t *pages;
	struct uv_mr mr;

	if (!strcmp(mode, "call")) {
		/* This call faults in all pages that the next one needs: once the lock is held our page faults wait. */
		MUST(!uv_reg_mr(fd, UV_INVOKE, pd, page, sizeof(page), IB_UVERBS_ACCESS_LOCAL_WRITE, &mr));
		slow_hold_mmap_lock(&slow);
	}
	MUST(write(ready, "r", 1) == 1);
	if (!strcmp(mode, "page")) {
		pages = mmap(NULL, 2 * REQUEST_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(mmap(pages + REQUEST_PAGE, REQUEST_PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, slow.file, 0) !=
		     MAP_FAILED);
		uv_ioctl_raw(fd, RDMA_VERBS_IOCTL, request_across(pages));
	} else {
		uv_reg_mr(fd, UV_INVOKE, pd, page, sizeof(page), IB_UVERBS_ACCESS_LOCAL_WRITE, &mr);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool exec = !strcmp(mode, "exec"), relative = exec || !strcmp(mode, "relative");
	int fd, async, ready[2];
	pid_t first = 0, second;
	uint32_t vectors, pd;
	char c;

	if (!strcmp(mode, "page"))
		slow_mount_for(USER);
	fd = uv_open();
	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors) && !uv_alloc_pd(fd, UV_INVOKE, &pd));
	memset(page, 1, sizeof(page));
	slow_start(&slow);
	MUST(!pipe(ready));
	if (relative) {
		first = fork();
		if (!first)
			first_process(fd, pd, ready[1], exec);
		MUST(read(ready[0], &c, 1) == 1);
		nap(300);
	}
	second = fork();
	if (!second)
		second_process(fd, pd, ready[1], mode);
	MUST(read(ready[0], &c, 1) == 1);
	nap(500);
	printf("stuck\n");
	fflush(stdout);
	if (read(0, &c, 1) < 0)
		return 1;
	slow_open_gate(&slow);
	waitpid(second, NULL, 0);
	if (first)
		kill(first, SIGKILL);
	return 0;
}
