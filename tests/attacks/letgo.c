/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * letgo PROGRAM: a call that was interrupted must not reach the next program of its thread.
 *
 * A thread calls REREG_MR for the whole address space, on demand, while another process holds its mmap_lock: the
 * daemon waits for the command. A signal arrives, the daemon answers EINTR, and the thread executes PROGRAM, which
 * belongs to a more privileged user. Then the daemon gets the command, and must not take PROGRAM for its client.
 *
 * Prints "reached" if the region was registered anew, else "not reached". Exit status 0 in both cases.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

static struct slow slow;
static char page[4096] __attribute__((aligned(4096)));

static void on_signal(int sig)
{
}

static uint32_t rkey_of(int fd, uint32_t mr)
{
	struct uv_tree tree;
	uint64_t length, iova;
	uint32_t lkey, rkey;

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	uv_attr_obj(&tree, UVERBS_ATTR_QUERY_MR_HANDLE, mr);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, sizeof(lkey));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, sizeof(rkey));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, sizeof(length));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, sizeof(iova));
	MUST(!uv_ioctl(fd, &tree));
	return rkey;
}

/* The command is contiguous, so that the daemon's first read gets all of it. */
static struct {
	struct uv_tree tree;
	struct ib_uverbs_rereg_mr in;
	struct ib_uverbs_rereg_mr_resp resp;
} command __attribute__((aligned(4096)));

static void client(int fd, uint32_t mr, char *program)
{
	enum { REREG_TRANS = 1, REREG_ACCESS = 4 };
	enum {
		ACCESS = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_WRITE |
			 IB_UVERBS_ACCESS_ON_DEMAND
	};
	char *args[] = { program, NULL }, *env[] = { NULL };
	struct sigaction sa = { .sa_handler = on_signal };
	struct uv_tree *tree = &command.tree;

	command.in = (struct ib_uverbs_rereg_mr){
		.mr_handle = mr,
		.flags = REREG_TRANS | REREG_ACCESS,
		.length = UINT64_MAX,
		.access_flags = ACCESS,
	};
	uv_tree_init(tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_REREG_MR);
	uv_attr_in(tree, UVERBS_ATTR_CORE_IN, (char *)tree + 256, sizeof(command.in));
	uv_attr_out(tree, UVERBS_ATTR_CORE_OUT, &command.resp, sizeof(command.resp));
	tree->hdr.length = sizeof(tree->hdr) + tree->hdr.num_attrs * sizeof(struct ib_uverbs_attr);
	memcpy((char *)tree + 256, &command.in, sizeof(command.in));
	memset(&command.resp, 1, sizeof(command.resp));
	sigaction(SIGUSR1, &sa, NULL);
	/* Fault in the pages of the code that runs after the lock is taken: page faults will wait then. */
	raise(SIGUSR1);
	syscall(SYS_getppid);
	slow_hold_mmap_lock(&slow);
	syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, tree);
	syscall(SYS_execve, program, args, env);
	_exit(3);
}

int main(int argc, char **argv)
{
	int fd = uv_open(), async, status;
	uint32_t vectors, pd, before, now;
	struct uv_mr mr;
	pid_t pid;

	MUST(fd >= 0 && argc > 1 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	MUST(!uv_alloc_pd(fd, UV_INVOKE, &pd));
	MUST(!uv_reg_mr(fd, UV_INVOKE, pd, page, sizeof(page), IB_UVERBS_ACCESS_LOCAL_WRITE, &mr));
	before = now = rkey_of(fd, mr.handle);
	slow_start(&slow);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		client(fd, mr.handle, argv[1]);
	/*
	 * After this nap the daemon waits for the command, and has done so long enough to interrupt a call with a
	 * signal.
	 */
	nap(4000);
	kill(pid, SIGUSR1);
	nap(4000);
	slow_open_gate(&slow);
	for (int i = 0; i < 30 && now == before; i++) {
		nap(100);
		now = rkey_of(fd, mr.handle);
	}
	waitpid(pid, &status, 0);
	printf("%s, the program ended with %d\n", now == before ? "not reached" : "reached", WEXITSTATUS(status));
	return 0;
}
