/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/way.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/borrow.h"
#include "broker/sender.h"

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
	*ways = (struct uvd_ways){ .dir = private_dir(), .held = -1 };
	pthread_mutex_init(&ways->lock, NULL);
}

void uvd_ways_fini(struct uvd_ways *ways)
{
	if (ways->dir >= 0)
		close(ways->dir);
	uvd_senders_fini(ways);
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

static void fill_errand(struct uvd_ways *ways, const struct uvd_borrow *b, long way, ino_t ino, int fd,
			struct uvd_errand *e)
{
	*e = (struct uvd_errand){
		.pidfd = b->pidfd,
		.way = way,
		.ino = ino,
		.fd = fd,
		.dir = ways->dir,
		.held = -1,
		.control.h = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
		.byte = { "x", 1 },
	};
	memcpy(CMSG_DATA(&e->control.h), &fd, sizeof(int));
	e->message = (struct msghdr){
		.msg_name = &e->name,
		.msg_namelen = make_name(ways, &e->name),
		.msg_iov = &e->byte,
		.msg_iovlen = 1,
		.msg_control = &e->control,
		.msg_controllen = sizeof(e->control),
	};
}

/* Has fd sent to the thread's socket. Returns 0 or -EPERM. */
static int way_send(struct uvd_ways *ways, int place, const struct uvd_borrow *b, long way, ino_t ino, int fd)
{
	struct uvd_errand mine, *e = place < 0 ? &mine : uvd_sender_errand(ways, place);
	bool sent;

	fill_errand(ways, b, way, ino, fd, e);
	if (place >= 0)
		return uvd_sender_run(ways, place);
	sent = uvd_errand_carry_out(e);
	if (e->held >= 0)
		ways->held = e->held;
	return sent ? 0 : -EPERM;
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
	n = uvd_borrow_call(b, UVD_SYSCALL_RECVMSG, (long[3]){ way, (long)at, MSG_CMSG_CLOEXEC | MSG_DONTWAIT });
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
	long ret = uvd_borrow_call(b, UVD_SYSCALL_DUP3, (long[3]){ got, way, O_CLOEXEC });

	if (ret == way)
		uvd_borrow_call(b, UVD_SYSCALL_CLOSE, (long[3]){ got });
	if (ret != way || (ino && socket_ino(b, way) != ino))
		return ret < 0 ? ret : -EPERM;
	return way;
}

long uvd_way_pass(struct uvd_ways *ways, int place, struct uvd_borrow *b, int fd)
{
	struct stat st;
	long way, ret;
	ino_t ino;

	if (fstat(fd, &st))
		return -errno;
	way = uvd_borrow_call(b, UVD_SYSCALL_SOCKET, (long[3]){ AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0 });
	if (way < 0)
		return way;
	ino = socket_ino(b, way);
	ret = ino ? way_send(ways, place, b, way, ino, fd) : -EPERM;
	if (!ret)
		ret = way_receive(b, way);
	if (ret >= 0)
		ret = take_place(b, way, ret, S_ISSOCK(st.st_mode) ? st.st_ino : 0);
	if (ret < 0)
		uvd_borrow_call(b, UVD_SYSCALL_CLOSE, (long[3]){ way });
	return b->dead ? -ESRCH : ret;
}
