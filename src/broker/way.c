/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/way.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/borrow.h"

enum {
	ROOM_STACK = 16 << 10,
	CHILD_MS = 5000, /* a sender takes about a millisecond */
	I386_CLOSE = 6,
	I386_DUP3 = 330,
	I386_SOCKET = 359,
	I386_RECVMSG = 372,
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

/*
 * Returns the root of a tmpfs that is mounted nowhere, or -1. It has no limit of files: a client keeps the file of its socket for
 * as long as it keeps a duplicate of the socket, and must not take the files of other clients.
 */
static int private_dir(void)
{
	int fs = syscall(SYS_fsopen, "tmpfs", 1 /* FSOPEN_CLOEXEC */), dir = -1;

	if (fs < 0)
		return -1;
	if (!syscall(SYS_fsconfig, fs, 1 /* FSCONFIG_SET_STRING */, "nr_inodes", "0", 0) &&
	    !syscall(SYS_fsconfig, fs, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0))
		dir = syscall(SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, 0);
	close(fs);
	return dir;
}

void uvd_ways_init(struct uvd_ways *ways)
{
	*ways = (struct uvd_ways){ .dir = private_dir() };
	pthread_mutex_init(&ways->lock, NULL);
}

void uvd_ways_fini(struct uvd_ways *ways)
{
	if (ways->dir >= 0)
		close(ways->dir);
	for (int i = 0; i < UVD_WAY_CHILDREN; i++)
		if (!ways->children[i].pid)
			free(ways->children[i].room);
	pthread_mutex_destroy(&ways->lock);
}

/* Returns the address's length. If the name is abstract, only clients in our network namespace can be reached. */
static socklen_t make_name(struct uvd_ways *ways, struct sockaddr_un *sa)
{
	unsigned int n = atomic_fetch_add(&ways->next, 1);

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (ways->dir >= 0) {
		snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%u", ways->dir, n);
		return sizeof(*sa);
	}
	snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "uverbsd-%d-%u", (int)getpid(), n);
	return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(sa->sun_path + 1);
}

/* ---- the sender -------------------------------------------------------------------------------------------------- */

union one_fd {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr h;
};

/*
 * All memory that the sender reads and writes. The sender shares our address space: after a fork() every thread of
 * ours would take a fault for each page that it writes, and one user's grants would slow all users down. The room
 * must not be freed or reused before the sender has been reaped.
 */
struct uvd_way_room {
	int pidfd, way; /* the client's process, and the number of its socket */
	ino_t ino; /* the socket's */
	int fd; /* to be sent */
	int dir;
	struct sockaddr_un name;
	union one_fd control;
	struct iovec byte;
	struct msghdr message;
	char stack[ROOM_STACK] __attribute__((aligned(16)));
};

/*
 * The sender shares errno, and a sanitizer's data about the thread, with the thread of ours that started it. So it
 * calls no function of the C library. in_call() returns what the kernel returns.
 */
#define IN_PROCESS __attribute__((no_sanitize("address", "thread", "undefined")))

IN_PROCESS static inline long in_call(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

IN_PROCESS static void close_all_but(int a, int b, int c)
{
	int keep[] = { a, b, c }, from = 3;

	for (;;) {
		int least = -1;

		for (int i = 0; i < 3; i++)
			if (keep[i] >= from && (least < 0 || keep[i] < least))
				least = keep[i];
		if (least < 0)
			break;
		if (least > from)
			in_call(SYS_close_range, from, least - 1, 0, 0, 0);
		from = least + 1;
	}
	in_call(SYS_close_range, from, ~0u, 0, 0, 0);
}

IN_PROCESS static bool is_the_socket(const struct uvd_way_room *e, int s)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);
	struct stat st;

	return !in_call(SYS_fstat, s, (long)&st, 0, 0, 0) && S_ISSOCK(st.st_mode) && st.st_ino == e->ino &&
	       !in_call(SYS_getsockopt, s, SOL_SOCKET, SO_DOMAIN, (long)&domain, (long)&len) && domain == AF_UNIX &&
	       !in_call(SYS_getsockopt, s, SOL_SOCKET, SO_TYPE, (long)&type, (long)&len) && type == SOCK_DGRAM;
}

IN_PROCESS static bool send_fd(const struct uvd_way_room *e)
{
	long s = in_call(SYS_socket, AF_UNIX, SOCK_DGRAM, 0, 0, 0);

	return s >= 0 && in_call(SYS_sendmsg, s, (long)&e->message, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0) == 1;
}

/*
 * pidfd_getfd() looks in the table of the process's first thread. If that has exited, or the threads have tables of
 * their own, it fails or finds another file, which is_the_socket() rejects.
 */
IN_PROCESS static void run_errand(const struct uvd_way_room *e)
{
	bool sent = false;
	long s;

	close_all_but(e->pidfd, e->fd, e->dir);
	s = in_call(SYS_pidfd_getfd, e->pidfd, e->way, 0, 0, 0);
	if (s >= 0 && is_the_socket(e, s) && !in_call(SYS_bind, s, (long)&e->name, e->message.msg_namelen, 0, 0)) {
		sent = send_fd(e);
		if (e->dir >= 0)
			in_call(SYS_unlink, (long)e->name.sun_path, 0, 0, 0, 0);
	}
	in_call(SYS_exit_group, !sent, 0, 0, 0, 0);
}

/*
 * Replaces clone(): the sanitizers' clone() has a child that still needs the caller's stack. The sender has no exit
 * signal, because that would wake another thread of ours. Returns the sender's PID or a negative errno.
 */
IN_PROCESS static long start_process(struct uvd_way_room *e)
{
	void **top = (void **)(e->stack + sizeof(e->stack));
	long ret;

	*--top = run_errand;
	*--top = e;
	__asm__ volatile("xor %%r10d, %%r10d\n\t"
			 "xor %%r8d, %%r8d\n\t"
			 "syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rdi\n\t"
			 "pop %%rax\n\t"
			 "call *%%rax\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "D"((long)CLONE_VM), "S"(top), "d"(0L)
			 : "rcx", "r8", "r10", "r11", "memory", "cc");
	return ret;
}

static void fill_room(struct uvd_ways *ways, const struct uvd_borrow *b, long way, ino_t ino, int fd,
		      struct uvd_way_room *e)
{
	e->pidfd = b->pidfd;
	e->way = way;
	e->ino = ino;
	e->fd = fd;
	e->dir = ways->dir;
	e->control = (union one_fd){
		.h = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
	};
	memcpy(CMSG_DATA(&e->control.h), &fd, sizeof(int));
	e->byte = (struct iovec){ "x", 1 };
	e->message = (struct msghdr){
		.msg_name = &e->name,
		.msg_namelen = make_name(ways, &e->name),
		.msg_iov = &e->byte,
		.msg_iovlen = 1,
		.msg_control = &e->control,
		.msg_controllen = sizeof(e->control),
	};
}

/* Caller holds ways->lock. Reaps senders that were given up and have ended since. Returns a free place, or -1. */
static int find_place(struct uvd_ways *ways)
{
	int place = -1;

	for (int i = 0; i < UVD_WAY_CHILDREN; i++) {
		if (ways->children[i].left &&
		    waitpid(ways->children[i].pid, NULL, WNOHANG | __WALL) == ways->children[i].pid)
			ways->children[i].pid = ways->children[i].left = 0;
		if (!ways->children[i].pid && (place < 0 || !ways->children[place].room))
			place = i;
	}
	if (place >= 0 && !ways->children[place].room)
		ways->children[place].room = malloc(sizeof(*ways->children[place].room));
	return place >= 0 && ways->children[place].room ? place : -1;
}

/* Waits CHILD_MS at most for the sender. Returns 0, or -EPERM if it has not sent the descriptor. */
static int way_wait_for_sender(struct uvd_ways *ways, int place)
{
	const pid_t child = ways->children[place].pid;
	struct pollfd p = { .fd = syscall(SYS_pidfd_open, child, 0), .events = POLLIN };
	int status = 0, n;
	bool ended;

	do {
		n = poll(&p, 1, p.fd < 0 ? 0 : CHILD_MS);
	} while (n < 0 && errno == EINTR);
	if (p.fd >= 0)
		close(p.fd);
	/*
	 * The sender may wait unkillably for a FUSE server of the client's. It keeps its room, and its copies of our
	 * descriptors.
	 */
	if (n <= 0)
		kill(child, SIGKILL);
	pthread_mutex_lock(&ways->lock);
	ended = n > 0 && waitpid(child, &status, __WALL) == child;
	ways->children[place].left = !ended;
	if (ended)
		ways->children[place].pid = 0;
	pthread_mutex_unlock(&ways->lock);
	return ended && WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

static int send_in_child(struct uvd_ways *ways, const struct uvd_borrow *b, long way, ino_t ino, int fd)
{
	struct uvd_way_room *room;
	pid_t child = -1;
	int place;

	pthread_mutex_lock(&ways->lock);
	place = find_place(ways);
	if (place >= 0) {
		room = ways->children[place].room;
		fill_room(ways, b, way, ino, fd, room);
		child = start_process(room);
		if (child > 0)
			ways->children[place].pid = child;
	}
	pthread_mutex_unlock(&ways->lock);
	return child < 0 ? -EPERM : way_wait_for_sender(ways, place);
}

/* ---- the client's side ------------------------------------------------------------------------------------------- */

/* The thread reads its recvmsg() arguments from this struct, which has the thread's own layout and lies on its stack. */
struct message64 {
	uint64_t name;
	uint32_t name_len, pad;
	uint64_t iov, iov_len, control, control_len;
	uint32_t flags, pad2;
	uint64_t base, len; /* iov[0] */
	struct {
		uint64_t len;
		int32_t level, type, fd, pad;
	} cmsg;
	char data[8];
};

struct message32 {
	uint32_t name, name_len, iov, iov_len, control, control_len, flags;
	uint32_t base, len; /* iov[0] */
	struct {
		uint32_t len;
		int32_t level, type, fd;
	} cmsg;
	char data[4];
};

union message {
	struct message64 m64;
	struct message32 m32;
};

_Static_assert(sizeof(union message) <= UVD_BORROW_SCRATCH, "the message does not fit");

static size_t make_message(const struct uvd_borrow *b, uint64_t at, union message *m)
{
	memset(m, 0, sizeof(*m));
	if (b->compat) {
		m->m32.iov = at + offsetof(struct message32, base);
		m->m32.iov_len = 1;
		m->m32.control = at + offsetof(struct message32, cmsg);
		m->m32.control_len = sizeof(m->m32.cmsg);
		m->m32.base = at + offsetof(struct message32, data);
		m->m32.len = 1;
		return sizeof(m->m32);
	}
	m->m64.iov = at + offsetof(struct message64, base);
	m->m64.iov_len = 1;
	m->m64.control = at + offsetof(struct message64, cmsg);
	m->m64.control_len = sizeof(m->m64.cmsg);
	m->m64.base = at + offsetof(struct message64, data);
	m->m64.len = 1;
	return sizeof(m->m64);
}

static int way_receive(struct uvd_borrow *b, long way)
{
	uint64_t at = uvd_borrow_scratch(b);
	union message saved, m;
	size_t len;
	long n;

	if (!at)
		return -EPERM;
	len = make_message(b, at, &m);
	if (!uvd_borrow_read(b, at, &saved, len) || !uvd_borrow_write(b, at, &m, len))
		return -EFAULT;
	n = uvd_borrow_call(b, SYS_recvmsg, I386_RECVMSG, (long[3]){ way, (long)at, MSG_CMSG_CLOEXEC | MSG_DONTWAIT });
	if (n == 1 && !uvd_borrow_read(b, at, &m, len))
		n = -EFAULT;
	uvd_borrow_write(b, at, &saved, len);
	if (n != 1)
		return n < 0 ? n : -EPERM;
	if (b->compat)
		return m.m32.cmsg.type == SCM_RIGHTS && m.m32.cmsg.fd >= 0 ? m.m32.cmsg.fd : -EMFILE;
	return m.m64.cmsg.type == SCM_RIGHTS && m.m64.cmsg.fd >= 0 ? m.m64.cmsg.fd : -EMFILE;
}

/*
 * Returns the inode number of the thread's socket fd; 0: it is not a socket, or we no longer have the thread stopped.
 * Reads the name below /proc only: fstat() could ask a FUSE server of the client's.
 */
static ino_t socket_ino(const struct uvd_borrow *b, long fd)
{
	char path[64], link[64];
	unsigned long ino;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", b->tid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return 0;
	link[n] = 0;
	return sscanf(link, "socket:[%lu]", &ino) == 1 && uvd_borrow_holds(b) ? ino : 0;
}

/*
 * Moves the received descriptor from the number `got` to the number `way`. `got` was read from the client's memory,
 * so it may be false. `way` comes from a register, so its inode is checked at the end if the descriptor is a socket,
 * with inode `ino`; 0: it is none. Returns way or a negative errno.
 */
static int take_place(struct uvd_borrow *b, long way, int got, ino_t ino)
{
	long ret = uvd_borrow_call(b, SYS_dup3, I386_DUP3, (long[3]){ got, way, O_CLOEXEC });

	if (ret == way)
		uvd_borrow_call(b, SYS_close, I386_CLOSE, (long[3]){ got });
	if (ret != way || (ino && socket_ino(b, way) != ino))
		return ret < 0 ? ret : -EPERM;
	return way;
}

int uvd_way_pass(struct uvd_ways *ways, struct uvd_borrow *b, int fd)
{
	struct stat st;
	long way;
	ino_t ino;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	way = uvd_borrow_call(b, SYS_socket, I386_SOCKET, (long[3]){ AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0 });
	if (way < 0)
		return way;
	ino = socket_ino(b, way);
	ret = ino ? send_in_child(ways, b, way, ino, fd) : -EPERM;
	if (!ret)
		ret = way_receive(b, way);
	if (ret >= 0)
		ret = take_place(b, way, ret, S_ISSOCK(st.st_mode) ? st.st_ino : 0);
	if (ret < 0)
		uvd_borrow_call(b, SYS_close, I386_CLOSE, (long[3]){ way });
	return b->dead ? -ESRCH : ret;
}
