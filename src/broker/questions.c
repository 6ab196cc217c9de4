/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's answers to questions about clients. Each socket has a process: a client can delay an answer at will. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "broker/child.h"
#include "broker/owners.h"
#include "broker/waiting.h"
#include "cpu/cpu.h"
#include "util/util.h"

static const struct file_row {
	const char *name;
	int flags;
	bool numbered, everybody;
} file_rows[UVD_WIRE_FILES] = {
	[UVD_WIRE_MEM] = { "mem", O_RDONLY },
	[UVD_WIRE_MAPS] = { "maps", O_RDONLY },
	[UVD_WIRE_PAGEMAP] = { "pagemap", O_RDONLY },
	[UVD_WIRE_AUXV] = { "auxv", O_RDONLY },
	[UVD_WIRE_LIMITS] = { "limits", O_RDONLY },
	[UVD_WIRE_USER_NS] = { "ns/user", O_PATH },
	[UVD_WIRE_FD] = { "fd/", O_PATH, .numbered = true },
	[UVD_WIRE_FDINFO] = { "fdinfo/", O_RDONLY, .numbered = true },
	[UVD_WIRE_STATUS] = { "status", O_RDONLY, .everybody = true },
	[UVD_WIRE_STAT] = { "stat", O_RDONLY, .everybody = true },
	[UVD_WIRE_COMM] = { "comm", O_RDONLY, .everybody = true },
	[UVD_WIRE_STATM] = { "statm", O_RDONLY, .everybody = true },
	[UVD_WIRE_OWNERS] = { .everybody = true },
};

/* Returns a memfd with the owners, or a negative errno: an answer has no room for them. */
static int tell_owners(pid_t tid)
{
	uid_t uids[UVD_WIRE_OWNERS_MAX];
	char path[48];
	int num, fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	num = uvd_ns_owners(fd, uids, UVD_WIRE_OWNERS_MAX);
	return num < 0 ? num : uvd_owners_pack(uids, num);
}

static int open_row(pid_t tid, enum uvd_wire_file file, int64_t value)
{
	const struct file_row *row = &file_rows[file];
	int flags = row->flags, fd;
	char path[80];

	if (file == UVD_WIRE_OWNERS)
		return tell_owners(tid);
	if (file == UVD_WIRE_MEM && value == 1)
		flags = O_RDWR;
	else if (value < 0 || value > INT32_MAX || (value && !row->numbered))
		return -EINVAL;
	if (row->numbered)
		snprintf(path, sizeof(path), "/proc/%d/%s%d", (int)tid, row->name, (int)value);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, row->name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Opens maps and statm by the process's first thread, unless that has exited: such a descriptor is of no use any more
 * once the thread that it was opened by has exited. The files of a thread that has exited can be opened, but are empty.
 */
static int open_peer(pid_t tid, pid_t tgid, struct uvd_wire_fds *out)
{
	static const struct {
		enum uvd_wire_file file;
		int value;
	} files[UVD_WIRE_FDS] = {
		{ UVD_WIRE_MEM, 1 },
		{ UVD_WIRE_MAPS },
		{ UVD_WIRE_PAGEMAP },
		{ UVD_WIRE_STATM },
	};
	const bool first_lives = uvd_process_lives(tgid, NULL);

	for (int i = 0; i < UVD_WIRE_FDS; i++) {
		const bool by_first =
			first_lives && (files[i].file == UVD_WIRE_MAPS || files[i].file == UVD_WIRE_STATM);
		int fd = by_first ? open_row(tgid, files[i].file, 0) : -ESRCH;

		if (fd < 0)
			fd = open_row(tid, files[i].file, files[i].value);
		if (fd < 0)
			return fd;
		out->fd[i] = fd;
	}
	return 0;
}

static int question_ask_kernel(const struct uvd_wire_request *r, pid_t tgid, struct uvd_wire_fds *out)
{
	switch (r->op) {
	case UVD_WIRE_PEER:
		return open_peer(r->tid, tgid, out);
	case UVD_WIRE_OPENER:
		out->fd[0] = open_row(r->tid, UVD_WIRE_PAGEMAP, 0);
		break;
	case UVD_WIRE_OPEN:
		out->fd[0] = open_row(r->tid, r->index, r->value);
		break;
	case UVD_WIRE_SAME_MEMORY:
		return r->value > 0 && r->value <= INT32_MAX &&
		       !syscall(SYS_kcmp, r->tid, (pid_t)r->value, KCMP_VM, 0, 0);
	default:
		return 0;
	}
	return out->fd[0] < 0 ? out->fd[0] : 0;
}

/* Checks once more after a file was opened: the thread must still wait in the same call. */
static int answer_about_waiter(const struct uvd_wire_request *r, const struct uvd_nodes *nodes,
			       struct uvd_wire_answer *a, struct uvd_wire_fds *out)
{
	const enum uvd_wait_for what = r->op == UVD_WIRE_OPENER ? UVD_WAITS_IN_OPEN : UVD_WAITS_IN_CALL;
	struct uvd_wait before, after;
	int ret = uvd_waits(r->tid, nodes, what, &before), err;

	if (ret)
		return ret;
	ret = question_ask_kernel(r, before.tgid, out);
	if (ret < 0)
		return ret;
	err = uvd_waits(r->tid, nodes, what, &after);
	if (err || after.nr != before.nr || after.arg[0] != before.arg[0])
		return err ? err : -ESRCH;
	if (r->op == UVD_WIRE_PEER)
		a->values[0] = after.tgid;
	/* The argument of writev() is an array of pieces, not the command itself. */
	if (r->op == UVD_WIRE_WRITE && uvd_cpu_call_of(after.nr) != UVD_CPU_CALL_WRITE)
		return -EINVAL;
	if (r->op == UVD_WIRE_WRITE) {
		a->values[0] = after.arg[1];
		a->values[1] = after.arg[2];
	}
	return ret;
}

/*
 * The checks, and the opens between them, name the thread by its number, which could be reused meanwhile. A directory
 * below /proc is empty once its thread is gone: if the one that was opened first still has its files, the number was
 * the same thread's all the time.
 */
static int answer_about(const struct uvd_wire_request *r, const struct uvd_nodes *nodes, struct uvd_wire_answer *a,
			struct uvd_wire_fds *out)
{
	char path[32];
	int thread, ret;

	if (r->op == UVD_WIRE_OPEN && file_rows[r->index].everybody)
		return question_ask_kernel(r, 0, out);
	snprintf(path, sizeof(path), "/proc/%d", (int)r->tid);
	thread = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (thread < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	ret = answer_about_waiter(r, nodes, a, out);
	if (ret >= 0 && faccessat(thread, "stat", F_OK, 0))
		ret = -ESRCH;
	close(thread);
	return ret;
}

/*
 * The numbers and the answers go over a socket of their own, as no message has room for them. The engine process may send
 * any descriptor: this function does not wait for what arrives there, nor for room.
 */
static int tell_sockets(const struct uvd_wire_request *r, int sock, struct uvd_wire_answer *a)
{
	uint64_t inos[UVD_WIRE_SOCKETS_MAX], cpu_ns = uvd_thread_cpu_ns();
	bool used[UVD_WIRE_SOCKETS_MAX];
	struct iovec iov = { .iov_base = inos, .iov_len = sizeof(inos) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	const ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT);
	const size_t num = n > 0 ? n / sizeof(*inos) : 0;
	int ret;

	if (!num)
		return -EINVAL;
	ret = uvd_sockets_in_use(r->tid, inos, num, used);
	iov = (struct iovec){ .iov_base = used, .iov_len = num };
	if (!ret && sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)num)
		ret = -EINVAL;
	a->values[0] = (int64_t)uvd_thread_cpu_since(&cpu_ns);
	return ret;
}

void uvd_questions_serve(int sock, const struct uvd_nodes *nodes)
{
	struct uvd_wire_request r;
	struct uvd_wire_fds in, out;

	while (!uvd_wire_asked(sock, UVD_WIRE_QUESTIONS, &r, &in)) {
		struct uvd_wire_answer a = { .version = UVD_WIRE_VERSION, .op = r.op };

		out = uvd_wire_no_fds;
		a.result =
			r.op == UVD_WIRE_SOCKETS ? tell_sockets(&r, in.fd[0], &a) : answer_about(&r, nodes, &a, &out);
		uvd_wire_close(&in);
		if (a.result < 0)
			uvd_wire_close(&out);
		for (int i = 0; i < UVD_WIRE_FDS; i++)
			a.num_fds += out.fd[i] >= 0;
		if (uvd_wire_answer(sock, &a, &out))
			break;
		uvd_wire_close(&out);
	}
}
