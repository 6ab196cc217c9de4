/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A hostile member of --join: connects to the engine's socket without `uverbsctl run`, and sends what no guardian sends.
 * `member SOCKET CASE` prints "ready" when its attack is in place, and ends after a line on its standard input.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../attacks/slow.h"
#include "run/launch.h"

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static struct uvd_run_window windows[UVD_RUN_WINDOWS];

/* Returns a connection that the engine has greeted, or -1: it has ended it. */
static int member_connect(void)
{
	const int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS];

	MUST(sock >= 0 && !connect(sock, (const void *)&address, sizeof(address)));
	if (!uvd_run_receive(sock, &msg, fds) && msg.kind == UVD_RUN_READY)
		return sock;
	close(sock);
	return -1;
}

/* Waits until the engine has closed its end. */
static void member_wait_for_end(int sock)
{
	char byte;

	MUST(sock < 0 || recv(sock, &byte, sizeof(byte), 0) <= 0);
}

/* ---- a process under a filter ------------------------------------------------------------------------------------ */

struct tree {
	pid_t pid;
	int listener;
	int go; /* a byte tells the process to make its call */
};

static void tree_call(int go, const char *path)
{
	char byte;

	MUST(read(go, &byte, 1) == 1);
	syscall(SYS_openat, AT_FDCWD, path, O_RDWR);
	pause();
	_exit(1);
}

/* Starts a process that opens `path`, when it is told to, under a filter like that of a run. */
static struct tree tree_start(const char *path)
{
	struct rlimit limit = { 1024, 4096 };
	struct uvd_run_msg msg = { .kind = UVD_RUN_LISTENER };
	int pair[2], go[2], fds[UVD_RUN_LINK_FDS];
	struct sock_fprog prog;
	struct tree tree = {};

	uvd_run_windows(windows, &limit, false);
	MUST(!uvd_run_filter_make(windows, false, &prog) && !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && !pipe(go));
	tree.pid = fork();
	if (!tree.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fds[0] = uvd_run_filter_install(&prog);
		MUST(fds[0] >= 0 && !uvd_run_send(pair[0], &msg, fds, 1));
		syscall(SYS_dup3, pair[0], fds[0], 0); /* close() would be trapped in a window */
		tree_call(go[0], path);
	}
	MUST(tree.pid > 0 && !uvd_run_receive(pair[1], &msg, fds));
	free(prog.filter);
	tree.listener = fds[0];
	tree.go = go[1];
	close(pair[0]);
	close(pair[1]);
	return tree;
}

static void tree_go(const struct tree *tree)
{
	MUST(write(tree->go, "", 1) == 1);
}

static void tree_kill(const struct tree *tree)
{
	MUST(!kill(tree->pid, SIGKILL) && waitpid(tree->pid, NULL, 0) == tree->pid);
}

/* A memfd for notifications, as the launcher makes it. */
static int notif_new(unsigned int seals)
{
	const int fd = memfd_create("uverbsd-notif", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, sizeof(struct uvd_run_notif)) && (!seals || !fcntl(fd, F_ADD_SEALS, seals)));
	return fd;
}

static bool receives; /* the agent is to receive the calls */

static void listener_send(int sock, int listener, int notif, int agent)
{
	struct uvd_run_msg msg = { .kind = UVD_RUN_LISTENER, .status = getpid(), .receives = receives };

	memcpy(msg.windows, windows, sizeof(windows));
	MUST(!uvd_run_send(sock, &msg, (int[]){ listener, notif, agent }, agent >= 0 ? 3 : 2));
}

/* ---- the attacks ------------------------------------------------------------------------------------------------- */

/* Descriptors in messages that carry none. */
static void attack_descriptors(void)
{
	const struct uvd_run_msg msg = { .kind = UVD_RUN_READY };
	int pair[2];

	for (int i = 0; i < 100; i++) {
		const int sock = member_connect();

		MUST(!pipe(pair));
		for (int j = 0; j < 8; j++)
			if (uvd_run_send(sock, &msg, (int[]){ pair[0], pair[1], sock }, 3))
				break;
		close(pair[0]);
		close(pair[1]);
		close(sock);
	}
}

/* More connections than there is room for, none of which says a word. */
static void attack_silence(void)
{
	for (int i = 0; i < 300; i++)
		member_connect();
}

static void attack_half_a_message(void)
{
	const int sock = member_connect();

	MUST(send(sock, "x", 1, 0) == 1);
	member_wait_for_end(sock);
}

/* Sends files that are no listeners: an engine that took them would ask them for calls without end. */
static void attack_no_listener(void)
{
	const int sock = member_connect(), path = open("/proc/self/mem", O_PATH);

	listener_send(sock, eventfd(0, 0), notif_new(UVD_RUN_NOTIF_SEALS), -1);
	member_wait_for_end(sock);
	MUST(path >= 0);
	listener_send(member_connect(), path, notif_new(UVD_RUN_NOTIF_SEALS), -1);
}

/* The memory of notifications becomes shorter while the engine uses it. */
static void attack_short_notif(void)
{
	struct tree tree = tree_start("/etc/passwd");
	const int sock = member_connect(), notif = notif_new(0);

	listener_send(sock, tree.listener, notif, -1);
	nap(100); /* until the engine may have mapped it */
	MUST(!ftruncate(notif, 0));
	tree_go(&tree);
	nap(300);
}

/* The agent never answers, and the process whose memory it should have opened dies. */
static void attack_silent_agent(void)
{
	struct tree tree = tree_start("/dev/infiniband/uverbs0");
	const int sock = member_connect();
	int pair[2];
	char request[64];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	listener_send(sock, tree.listener, notif_new(UVD_RUN_NOTIF_SEALS), pair[1]);
	close(tree.listener);
	tree_go(&tree);
	MUST(recv(pair[0], request, sizeof(request), 0) > 0);
	tree_kill(&tree);
}

/* The agent answers with numbers of the engine's own descriptors in the place of descriptors. */
static void attack_lying_agent(void)
{
	const struct timeval patience = { .tv_usec = 50000 };

	for (int number = 3; number < 24; number++) {
		struct tree tree = tree_start("/dev/infiniband/uverbs0");
		const int sock = member_connect();
		struct uvd_run_msg reply = { .status = receives ? 0 : number };
		char request[64];
		int pair[2];

		MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
		MUST(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
		listener_send(sock, tree.listener, notif_new(UVD_RUN_NOTIF_SEALS), pair[1]);
		close(pair[1]);
		tree_go(&tree);
		for (int i = 0; i < 4 && recv(pair[0], request, sizeof(request), 0) > 0; i++)
			if (uvd_run_send(pair[0], &reply, (int[]){ sock, sock, sock }, 3))
				break;
		tree_kill(&tree);
		close(tree.listener);
		close(pair[0]);
		close(sock);
	}
}

/* The same with an agent that should receive the calls: it never says that it has, or says so without having done it. */
static void attack_silent_receiver(void)
{
	receives = true;
	attack_silent_agent();
}

static void attack_lying_receiver(void)
{
	receives = true;
	attack_lying_agent();
}

/* Nobody receives the calls. */
static void attack_no_receiver(void)
{
	struct tree tree = tree_start("/dev/infiniband/uverbs0");
	const int sock = member_connect();

	receives = true;
	listener_send(sock, tree.listener, notif_new(UVD_RUN_NOTIF_SEALS), -1);
	member_wait_for_end(sock);
	tree_kill(&tree);
}

/* A window of 2^32 numbers, in which the engine looks for one that is free. */
static void attack_wide_window(void)
{
	struct tree tree = tree_start("/dev/infiniband/uverbs0");
	const int sock = member_connect();

	for (int i = 0; i < UVD_RUN_WINDOWS; i++)
		windows[i] = (struct uvd_run_window){ .base = 0, .size = ~0u };
	listener_send(sock, tree.listener, notif_new(UVD_RUN_NOTIF_SEALS), -1);
	member_wait_for_end(sock);
}

/* Files of a file system that does not answer. */
static void attack_fuse(void)
{
	struct slow slow;
	struct tree tree;

	slow_start(&slow);
	tree = tree_start("/etc/passwd");
	listener_send(member_connect(), slow.file, notif_new(UVD_RUN_NOTIF_SEALS), -1);
	listener_send(member_connect(), slow.never_flush, slow.never_flush, slow.never_flush);
	listener_send(member_connect(), tree.listener, slow.file, -1);
	listener_send(member_connect(), tree.listener, notif_new(UVD_RUN_NOTIF_SEALS), slow.never_flush);
}

/* A path in memory that does not answer, and the process that names it dies. */
static void attack_fuse_path(void)
{
	struct slow slow;
	struct tree tree;
	char *memory;

	slow_start(&slow);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, slow.file, 0);
	MUST(memory != MAP_FAILED);
	tree = tree_start(memory);
	listener_send(member_connect(), tree.listener, notif_new(UVD_RUN_NOTIF_SEALS), -1);
	close(tree.listener);
	tree_go(&tree);
	MUST(slow_asked(&slow, 60000));
	tree_kill(&tree);
}

/* Under a run: the same with the engine's own tree. Another process says "ready", as this one never returns. */
static void attack_path(void)
{
	struct slow slow;
	char *memory;

	slow_start(&slow);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, slow.file, 0);
	MUST(memory != MAP_FAILED);
	if (!fork()) {
		MUST(slow_asked(&slow, 60000));
		puts("ready");
		fflush(stdout);
		_exit(0);
	}
	syscall(SYS_openat, AT_FDCWD, memory, O_RDWR);
}

static const struct {
	const char *name;
	void (*attack)(void);
} attacks[] = {
	{ "descriptors", attack_descriptors },	     { "silence", attack_silence },
	{ "half_a_message", attack_half_a_message }, { "no_listener", attack_no_listener },
	{ "short_notif", attack_short_notif },	     { "silent_agent", attack_silent_agent },
	{ "lying_agent", attack_lying_agent },	     { "silent_receiver", attack_silent_receiver },
	{ "lying_receiver", attack_lying_receiver }, { "no_receiver", attack_no_receiver },
	{ "wide_window", attack_wide_window },	     { "fuse", attack_fuse },
	{ "fuse_path", attack_fuse_path },	     { "path", attack_path },
};

int main(int argc, char **argv)
{
	if (argc != 3 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	strcpy(address.sun_path, argv[1]);
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		if (strcmp(argv[2], attacks[i].name))
			continue;
		attacks[i].attack();
		puts("ready");
		fflush(stdout);
		getchar();
		return 0;
	}
	return 2;
}
