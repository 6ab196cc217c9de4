/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Senders: their errand, and with one process their places and their processes. */
#include "broker/sender.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "broker/way.h"
#include "cpu/cpu.h"

enum {
	ROOM_STACK = 16 << 10,
	SENDER_MS = 5000, /* a sender takes about a millisecond */
	SENDER_LOOK_MS = 50, /* how soon a loan notices that uvd_ways_end() was called */
};

/*
 * All memory that the sender reads and writes. The sender shares our address space: after a fork() every thread of
 * ours would take a fault for each page that it writes, and one user's grants would slow all users down. The room
 * must not be freed or reused before the sender has been reaped.
 */
struct uvd_way_room {
	struct uvd_errand errand;
	char stack[ROOM_STACK] __attribute__((aligned(16)));
};

/* ---- the errand -------------------------------------------------------------------------------------------------- */

/*
 * The sender shares errno, and a sanitizer's data about the thread, with the thread of ours that started it. So it
 * calls no function of the C library, and makes its system calls itself.
 */
#define IN_PROCESS __attribute__((no_sanitize("address", "thread", "undefined")))

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
			uvd_cpu_syscall(SYS_close_range, from, least - 1, 0, 0, 0);
		from = least + 1;
	}
	uvd_cpu_syscall(SYS_close_range, from, ~0u, 0, 0, 0);
}

/* Asks fstat() only of a socket: that of another file may wait for the client's file system. */
IN_PROCESS static bool is_the_socket(const struct uvd_errand *e, int s)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);
	struct stat st;

	return !uvd_cpu_syscall(SYS_getsockopt, s, SOL_SOCKET, SO_DOMAIN, (long)&domain, (long)&len) &&
	       domain == AF_UNIX && !uvd_cpu_syscall(SYS_getsockopt, s, SOL_SOCKET, SO_TYPE, (long)&type, (long)&len) &&
	       type == SOCK_DGRAM && !uvd_cpu_syscall(SYS_fstat, s, (long)&st, 0, 0, 0) && S_ISSOCK(st.st_mode) &&
	       st.st_ino == e->ino;
}

IN_PROCESS static bool send_fd(const struct uvd_errand *e)
{
	long s = uvd_cpu_syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0, 0, 0);
	bool sent =
		s >= 0 && uvd_cpu_syscall(SYS_sendmsg, s, (long)&e->message, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0) == 1;

	if (s >= 0)
		uvd_cpu_syscall(SYS_close, s, 0, 0, 0, 0);
	return sent;
}

/*
 * pidfd_getfd() looks in the table of the process's first thread. If that has exited, or the threads have tables of
 * their own, it fails or finds another file, which is_the_socket() rejects.
 */
IN_PROCESS bool uvd_errand_carry_out(struct uvd_errand *e)
{
	long s = uvd_cpu_syscall(SYS_pidfd_getfd, e->pidfd, e->way, 0, 0, 0);
	bool sent = false;

	if (s < 0)
		return false;
	if (!is_the_socket(e, s)) {
		e->held = s;
		return false;
	}
	if (!uvd_cpu_syscall(SYS_bind, s, (long)&e->name, e->message.msg_namelen, 0, 0)) {
		sent = send_fd(e);
		if (e->dir >= 0)
			uvd_cpu_syscall(SYS_unlinkat, AT_FDCWD, (long)e->name.sun_path, 0, 0, 0);
	}
	uvd_cpu_syscall(SYS_close, s, 0, 0, 0, 0);
	return sent;
}

/* ---- its process ------------------------------------------------------------------------------------------------- */

IN_PROCESS static void sender_main(void *arg)
{
	struct uvd_errand *e = arg;

	close_all_but(e->pidfd, e->fd, e->dir);
	uvd_cpu_syscall(SYS_exit_group, !uvd_errand_carry_out(e), 0, 0, 0, 0);
}

/*
 * Waits for the sender. Returns 0, or -EPERM if it has not sent the descriptor. If the sender does not end, it keeps its
 * place, its room, and its copies of our descriptors: it may wait unkillably for a FUSE server of the client's.
 */
static int sender_wait(struct uvd_ways *ways, struct uvd_way_place *p)
{
	struct pollfd poll_fd = { .fd = syscall(SYS_pidfd_open, p->pid, 0), .events = POLLIN };
	int status = 0, n = 0;
	bool ended;

	for (int ms = 0; poll_fd.fd >= 0 && n <= 0 && ms < SENDER_MS && !ways->ending; ms += SENDER_LOOK_MS)
		n = poll(&poll_fd, 1, SENDER_LOOK_MS);
	if (poll_fd.fd >= 0)
		close(poll_fd.fd);
	if (n <= 0)
		kill(p->pid, SIGKILL);
	ended = n > 0 && waitpid(p->pid, &status, __WALL) == p->pid;
	if (ended)
		p->pid = 0;
	return ended && WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

struct uvd_errand *uvd_sender_errand(struct uvd_ways *ways, int place)
{
	return &ways->places[place].room->errand;
}

int uvd_sender_run(struct uvd_ways *ways, int place)
{
	struct uvd_way_place *p = &ways->places[place];
	struct uvd_way_room *room = p->room;
	long pid = uvd_cpu_spawn(sender_main, &room->errand, room->stack + sizeof(room->stack));

	if (pid < 0)
		return -EPERM;
	p->pid = pid;
	return sender_wait(ways, p);
}

/* ---- its place --------------------------------------------------------------------------------------------------- */

static const struct uvd_owners *place_owners(const void *table, unsigned int i)
{
	const struct uvd_ways *ways = table;

	return ways->places[i].owners.num ? &ways->places[i].owners : NULL;
}

/* Caller holds ways->lock. Returns a free place, if possible one with a room; NULL: all are taken. */
static struct uvd_way_place *place_find(struct uvd_ways *ways)
{
	struct uvd_way_place *found = NULL;

	for (struct uvd_way_place *p = ways->places; p < ways->places + UVD_WAY_CHILDREN; p++)
		if (!p->owners.num && (!found || !found->room))
			found = p;
	return found;
}

int uvd_ways_take(struct uvd_ways *ways, const struct uvd_owners *owners)
{
	struct uvd_way_place *p = NULL;
	int ret = -EAGAIN;

	pthread_mutex_lock(&ways->lock);
	if (uvd_owners_may_take(owners, UVD_WAY_SHARE, UVD_WAY_CHILDREN, place_owners, ways))
		p = place_find(ways);
	if (p && !p->room)
		p->room = malloc(sizeof(*p->room));
	if (p && !p->room)
		ret = -ENOMEM;
	else if (p)
		ret = p - ways->places;
	if (ret >= 0)
		p->owners = *owners;
	pthread_mutex_unlock(&ways->lock);
	return ret;
}

bool uvd_ways_put(struct uvd_ways *ways, int place)
{
	struct uvd_way_place *p = &ways->places[place];

	if (p->pid && !waitpid(p->pid, NULL, WNOHANG | __WALL))
		return false;
	pthread_mutex_lock(&ways->lock);
	p->pid = 0;
	p->owners.num = 0;
	pthread_mutex_unlock(&ways->lock);
	return true;
}

void uvd_ways_close_all_but_held(const struct uvd_ways *ways)
{
	close_all_but(ways->held, -1, -1);
}

void uvd_ways_end(struct uvd_ways *ways)
{
	ways->ending = true;
}

void uvd_senders_fini(struct uvd_ways *ways)
{
	for (int i = 0; i < UVD_WAY_CHILDREN; i++)
		if (!ways->places[i].pid)
			free(ways->places[i].room);
}
