/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "slow.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MAX_WAITING = 256, OPENS = 3 };
enum { NODE_FOLDER = 1, NODE_FILE = 2 };

void nap(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

void give_up(const char *why)
{
	printf("FAIL: %s: %s\n", why, strerror(errno));
	fflush(stdout);
	_exit(2);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

struct server {
	int dev, gate, asked;
	const char *content;
	bool open;
	unsigned int opens, num;
	struct {
		uint64_t unique, offset;
		uint32_t size;
	} waiting[MAX_WAITING];
};

static void reply(struct server *s, uint64_t unique, int err, const void *data, size_t len)
{
	struct fuse_out_header h = { .len = sizeof(h) + len, .error = err, .unique = unique };
	struct iovec v[] = { { &h, sizeof(h) }, { (void *)data, len } };

	if (writev(s->dev, v, len ? 2 : 1) < 0 && errno != ENOENT)
		_exit(0);
}

static struct fuse_attr attr_of(uint64_t node)
{
	if (node == NODE_FOLDER)
		return (struct fuse_attr){ .ino = node, .mode = S_IFDIR | 0777, .nlink = 2, .blksize = PAGE };
	return (struct fuse_attr){
		.ino = node, .size = SLOW_PAGES * PAGE, .mode = S_IFREG | 0666, .nlink = 1, .blksize = PAGE
	};
}

static void answer_read(struct server *s, uint64_t unique, uint64_t offset, uint32_t size)
{
	const uint64_t end = SLOW_PAGES * PAGE, from = offset < end ? offset : end, left = end - from;

	reply(s, unique, 0, s->content + from, size < left ? size : left);
}

static void answer_all(struct server *s)
{
	while (s->num) {
		s->num--;
		answer_read(s, s->waiting[s->num].unique, s->waiting[s->num].offset, s->waiting[s->num].size);
	}
}

static void serve_request(struct server *s, const struct fuse_in_header *h)
{
	const void *arg = h + 1;

	switch (h->opcode) {
	case FUSE_INIT: {
		struct fuse_init_out out = { .major = 7, .minor = 31, .max_write = PAGE, .max_background = 64 };

		return reply(s, h->unique, 0, &out, sizeof(out));
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = {
			.nodeid = NODE_FILE, .entry_valid = 3600, .attr_valid = 3600, .attr = attr_of(NODE_FILE)
		};

		return reply(s, h->unique, 0, &out, sizeof(out));
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = { .attr_valid = 3600, .attr = attr_of(h->nodeid) };

		return reply(s, h->unique, 0, &out, sizeof(out));
	}
	case FUSE_OPEN: {
		struct fuse_open_out out = { .fh = ++s->opens,
					     .open_flags = s->opens == 2 ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE };

		return reply(s, h->unique, 0, &out, sizeof(out));
	}
	case FUSE_READ:
		if (write(s->asked, "r", 1) < 0)
			_exit(0);
		s->waiting[s->num].unique = h->unique;
		s->waiting[s->num].offset = ((const struct fuse_read_in *)arg)->offset;
		s->waiting[s->num++].size = ((const struct fuse_read_in *)arg)->size;
		if (s->open || s->num == MAX_WAITING)
			answer_all(s);
		return;
	case FUSE_FLUSH:
		/*
		 * The server does not answer the daemon. Root has no uid in this namespace, so the uid differs from
		 * ours; with two processes the daemon's process has our uid, but another session.
		 */
		if (((const struct fuse_flush_in *)arg)->fh == 3 &&
		    (h->uid != getuid() || getsid(h->pid) != getsid(0))) {
			if (write(s->asked, "f", 1) < 0)
				_exit(0);
			return;
		}
		return reply(s, h->unique, 0, NULL, 0);
	case FUSE_RELEASE:
		return reply(s, h->unique, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return reply(s, h->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(struct server *s)
{
	static char buf[256 * 1024] __attribute__((aligned(8)));
	struct pollfd p[] = { { .fd = s->dev, .events = POLLIN }, { .fd = s->gate, .events = POLLIN } };

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents) {
			char c;

			if (read(s->gate, &c, 1) != 1)
				_exit(0);
			s->open = s->open || c == 'g';
			answer_all(s);
		}
		if (p[0].revents) {
			ssize_t n = read(s->dev, buf, sizeof(buf));

			if (n > 0)
				serve_request(s, (const struct fuse_in_header *)buf);
			else if (errno != EINTR && errno != EAGAIN && errno != ENOENT)
				_exit(0);
		}
	}
}

/* ---- its mount --------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int mounted = -1; /* /dev/fuse, set by slow_mount_for() */

static void mount_at_mnt(int dev, uid_t uid, gid_t gid)
{
	char text[128];

	snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", dev, (int)uid, (int)gid);
	MUST(!mount("slow", "/mnt", "fuse", MS_NOSUID | MS_NODEV, text));
}

void slow_mount_for(uid_t user)
{
	mounted = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	MUST(mounted >= 0 && !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	mount_at_mnt(mounted, user, user);
	MUST(!setgroups(0, NULL) && !setresgid(user, user, user) && !setresuid(user, user, user));
	MUST(!prctl(PR_SET_DUMPABLE, 1));
}

static int mount_fuse(void)
{
	char text[128];
	int uid = getuid(), gid = getgid(), dev;

	if (mounted >= 0)
		return mounted;
	MUST(!unshare(CLONE_NEWUSER | CLONE_NEWNS));
	write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %d 1", uid);
	write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %d 1", gid);
	write_file("/proc/self/gid_map", text);
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	MUST(dev >= 0);
	mount_at_mnt(dev, 0, 0);
	return dev;
}

static void send_fds(int sock, const int *fds)
{
	union {
		char room[CMSG_SPACE(OPENS * sizeof(int))];
		struct cmsghdr h;
	} u = { .h = { .cmsg_len = CMSG_LEN(OPENS * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec v = { "x", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };

	memcpy(CMSG_DATA(&u.h), fds, OPENS * sizeof(int));
	MUST(sendmsg(sock, &m, 0) == 1);
}

static void receive_fds(int sock, int *fds)
{
	union {
		char room[CMSG_SPACE(OPENS * sizeof(int))];
		struct cmsghdr h;
	} u;
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };

	MUST(recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == 1 && m.msg_controllen >= CMSG_LEN(OPENS * sizeof(int)));
	memcpy(fds, CMSG_DATA(&u.h), OPENS * sizeof(int));
}

/* Runs in a process of its own, because the server has to answer the opens. */
static void open_files(int sock)
{
	int fds[OPENS];

	for (int i = 0; i < OPENS; i++) {
		fds[i] = open("/mnt/file", O_RDWR | O_CLOEXEC);
		MUST(fds[i] >= 0);
	}
	send_fds(sock, fds);
	_exit(0);
}

void slow_start(struct slow *slow)
{
	int gate[2], asked[2], pass[2], fds[OPENS];
	struct server s = {};

	slow->content = mmap(NULL, SLOW_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(slow->content != MAP_FAILED);
	s.content = slow->content;

	MUST(!pipe2(gate, O_CLOEXEC) && !pipe2(asked, O_CLOEXEC) &&
	     !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pass));
	slow->server = fork();
	MUST(slow->server >= 0);
	if (!slow->server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(gate[1]);
		s.gate = gate[0];
		s.asked = asked[1];
		s.dev = mount_fuse();
		if (!fork()) {
			/* Only the server keeps the file system alive: else the flush of this process's exit waits for itself. */
			close(s.dev);
			open_files(pass[1]);
		}
		serve(&s);
	}
	close(gate[0]);
	close(asked[1]);
	if (mounted >= 0)
		close(mounted);
	receive_fds(pass[0], fds);
	close(pass[0]);
	close(pass[1]);
	slow->gate = gate[1];
	slow->asked = asked[0];
	slow->file = fds[0];
	slow->direct = fds[1];
	slow->never_flush = fds[2];
}

bool slow_asked(struct slow *slow, int ms)
{
	struct pollfd p = { .fd = slow->asked, .events = POLLIN };
	char c;

	return poll(&p, 1, ms) == 1 && read(slow->asked, &c, 1) == 1;
}

void slow_answer(struct slow *slow)
{
	MUST(write(slow->gate, "a", 1) == 1);
}

void slow_open_gate(struct slow *slow)
{
	MUST(write(slow->gate, "g", 1) == 1);
}

/* ---- the lock of our address space ------------------------------------------------------------------------------- */

static __attribute__((noreturn)) int hold(void *arg)
{
	struct slow *slow = arg;
	char c;

	MUST(read(slow->go[0], &c, 1) == 1);
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, slow->direct, 0);
	for (;;)
		syscall(SYS_exit, 0); /* this process has a copy of all our descriptors: exit */
}

static __attribute__((noinline)) void touch_stack(void)
{
	volatile char below[65536];

	for (size_t i = 0; i < sizeof(below); i += 512)
		below[i] = 1;
}

static int open_syscall(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	return fd;
}

/* Does the process sleep in mmap()? */
static bool sleeps_in_mmap(int syscall_fd)
{
	char number[2];

	MUST(pread(syscall_fd, number, sizeof(number), 0) == sizeof(number));
	return !memcmp(number, "9 ", sizeof(number));
}

void slow_hold_mmap_lock(struct slow *slow)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t holder;
	int doing;

	/* The server leaves the read of this page unanswered, so the page stays locked. */
	if (!fork()) {
		volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, slow->file, 0);

		(void)page[0];
		_exit(0);
	}
	MUST(slow_asked(slow, 60000));
	/*
	 * Once the lock is held our page faults wait for it. After a fork the first write to nearly every page is a
	 * fault, so fault in all pages now.
	 */
	MUST(!pipe2(slow->go, O_CLOEXEC));
	touch_stack();
	MUST(!mlockall(MCL_CURRENT));
	holder = clone(hold, stack + sizeof(stack), CLONE_VM | SIGCHLD, slow);
	MUST(holder > 0);
	/* Open before the lock is held: under `uverbsctl run` the engine reads the path from our memory. */
	doing = open_syscall(holder);
	MUST(write(slow->go[1], "g", 1) == 1);
	for (int seen = 0; seen < 3; nap(100))
		seen = sleeps_in_mmap(doing) ? seen + 1 : 0;
}
