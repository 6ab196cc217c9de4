/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One loan of a client's thread, in a process of its own. The engine process sends SEIZE while the thread waits for
 * the engine, TAKE or REGISTER after the engine has answered the thread's call, then RELEASE. If the engine process goes away in
 * between, this process releases the thread unchanged. If the client stalls the loan, the broker kills this process
 * after 10 s, and PTRACE_O_EXITKILL kills the thread if it has stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "broker/borrow.h"
#include "broker/child.h"
#include "broker/queues.h"
#include "broker/register.h"
#include "broker/waiting.h"
#include "broker/way.h"
#include "util/util.h"

static bool yama_is_off(void)
{
	char c = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	bool off = fd < 0 ? errno == ENOENT : read(fd, &c, 1) == 1 && c == '0';

	if (fd >= 0)
		close(fd);
	return off;
}

/* Has the client neither a seccomp filter nor capabilities? Otherwise we need capabilities to borrow its thread. */
static bool is_plain(pid_t tid)
{
	char status[UVD_STATUS_MAX];
	const char *seccomp, *caps;

	if (!uvd_read_status(tid, status))
		return false;
	seccomp = strstr(status, "\nSeccomp:\t");
	caps = strstr(status, "\nCapPrm:\t");
	return seccomp && seccomp[10] == '0' && caps && !strtoull(caps + 9, NULL, 16);
}

/*
 * Becomes the client's user, if that is enough to borrow the thread: then this process has only that user's rights.
 * Otherwise keeps the capabilities of a loan. Returns false if that fails.
 */
static bool become_client(pid_t tid, bool hidden)
{
	struct stat st;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	if (hidden || stat(path, &st) || !st.st_uid || !is_plain(tid) || !yama_is_off())
		return uvd_process_role_take(UVD_PROCESS_LOAN);
	return !setgroups(0, NULL) && !setresgid(st.st_gid, st.st_gid, st.st_gid) &&
	       !setresuid(st.st_uid, st.st_uid, st.st_uid) && uvd_process_role_take(UVD_PROCESS_ENGINE);
}

/* *fd: the descriptor that the thread's call is on. */
static int loan_seize(struct uvd_borrow *b, pid_t asked, const struct uvd_borrower *borrower,
		      const struct uvd_nodes *nodes, int *fd)
{
	const pid_t tid = borrower->tid;
	struct uvd_wait before, after;
	struct uvd_owners owners;
	int err = asked == tid ? uvd_waits(tid, nodes, UVD_WAITS_IN_CALL, &before) : -ESRCH;

	if (!err && !become_client(tid, before.hidden))
		err = -EPERM;
	if (!err)
		err = uvd_borrow_seize(b, tid);
	/* The number may have become another thread's before the seizure: check again. */
	if (!err && (uvd_waits(tid, nodes, UVD_WAITS_IN_CALL, &after) || after.nr != before.nr ||
		     after.arg[0] != before.arg[0]))
		err = -ESRCH;
	/* Its users must be those who were charged. */
	if (!err && (uvd_owners_of(tid, &owners) || !uvd_owners_are(&owners, &borrower->owners)))
		err = -ESRCH;
	*fd = err ? -1 : (int)before.arg[0];
	return err;
}

/* The descriptor goes to a client: the engine process may pass only the type that the operation is for. fd -1: no. */
static bool fd_is_socket(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

/* Stops the thread and passes fd to it. fd is -1 if the engine process has none to pass. Stores the result in *a. */
static void loan_take(struct uvd_borrow *b, struct uvd_ways *ways, int fd, struct uvd_wire_answer *a)
{
	long ret = uvd_borrow_stop(b);

	if (!ret)
		ret = fd_is_socket(fd) ? uvd_way_pass(ways, UVD_WAY_OWN, b, fd) : -EPERM;
	a->values[0] = ret;
	a->values[1] = b->dead || ret == -ESRCH;
}

/* Is it the node of an adapter that a device forwards to? The engine process has other devices open: nodes' channels. */
static bool fd_is_adapter(int fd, const struct uvd_nodes *nodes)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISCHR(st.st_mode))
		return false;
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		if (nodes->adapters[i] && nodes->adapters[i] == st.st_rdev)
			return true;
	return false;
}

/* The thread has the adapter's fd as `number`. Tells the broker when it registers, and afterwards how long that has taken. */
static int64_t loan_execute(struct uvd_borrow *b, long number, const struct uvd_reg_order *order, bool *executed,
			    _Atomic uint32_t *registers)
{
	const uint64_t mib = order->length >> 20, began = uvd_now_ns();
	int64_t result;

	atomic_store(registers, UVD_LOAN_PASSED | (mib < UVD_LOAN_MIB ? mib : UVD_LOAN_MIB));
	result = uvd_borrow_register_by(b, number, order, executed);
	atomic_store(registers, UVD_LOAN_PASSED | uvd_loan_mib((uvd_now_ns() - began) / 1000000));
	return result;
}

/* Stops the thread, which registers memory by the adapter's fd. Stores the result in *a. */
static void loan_register(struct uvd_borrow *b, struct uvd_ways *ways, const struct uvd_nodes *nodes,
			  _Atomic uint32_t *registers, int fd, const struct uvd_reg_order *order,
			  struct uvd_wire_answer *a)
{
	bool executed = false;
	int64_t result = uvd_borrow_stop(b);

	if (!result)
		result = fd_is_adapter(fd, nodes) ? uvd_way_pass(ways, UVD_WAY_OWN, b, fd) : -EPERM;
	if (result >= 0)
		result = loan_execute(b, result, order, &executed, registers);
	a->values[0] = result;
	a->values[1] = executed ? UVD_WIRE_EXECUTED : 0;
	if (b->dead || (result == -ESRCH && !executed))
		a->values[1] |= UVD_WIRE_DEAD;
}

/* Reads the flags O_* of a descriptor of the thread, which we have stopped: its number stays its own. Returns them, or a negative errno. */
static long loan_flags(pid_t tid, int fd)
{
	char path[48], line[64];
	long flags = -EBADF;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)tid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "flags:", strlen("flags:")))
			flags = strtol(line + strlen("flags:"), NULL, 8);
	if (f)
		fclose(f);
	return flags;
}

/*
 * Opens a file of queues and puts it in the place of the thread's descriptor fd. The engine process answers the open, once, as it has
 * ordered it for this process. position: the file's is 1 << position; 0: it is 0. Another thread of the client can have replaced the descriptor meanwhile: then it loses that file.
 */
static long loan_replace(struct uvd_borrow *b, const struct uvd_child_files *files, int fd, int64_t number,
			 unsigned int position)
{
	const long flags = loan_flags(b->tid, fd);
	long way, ret;
	int file;

	if (flags < 0 || files->ways->held >= 0 || !uvd_is_of_node(b->tid, fd, files->nodes))
		return -EPERM;
	file = uvd_queue_files_open(files->queues, files->nodes->queues, number, O_RDWR | (flags & O_NONBLOCK));
	if (file < 0)
		return file;
	if (position)
		lseek(file, (off_t)1 << position, SEEK_SET);
	way = uvd_way_pass(files->ways, UVD_WAY_OWN, b, file);
	close(file);
	if (way < 0)
		return way;
	ret = uvd_borrow_call(b, UVD_SYSCALL_DUP3, (long[3]){ way, fd, flags & O_CLOEXEC });
	uvd_borrow_call(b, UVD_SYSCALL_CLOSE, (long[3]){ way });
	return b->dead ? -ESRCH : ret < 0 ? ret : 0;
}

/* REGISTER is allowed where TAKE is, REPLACE where RELEASE is. */
static bool loan_may(enum uvd_wire_op next, enum uvd_wire_op op)
{
	return op == next || (next == UVD_WIRE_TAKE && op == UVD_WIRE_REGISTER) ||
	       (next == UVD_WIRE_RELEASE && op == UVD_WIRE_REPLACE);
}

static enum uvd_wire_op loan_next(enum uvd_wire_op op)
{
	return op == UVD_WIRE_SEIZE ? UVD_WIRE_TAKE : UVD_WIRE_RELEASE;
}

/* The thread's memory, for the engine process; none if the thread was not stopped. */
static struct uvd_wire_fds loan_memory(const struct uvd_borrow *b)
{
	struct uvd_wire_fds fds = uvd_wire_no_fds;

	if (b->memfd >= 0 && b->mapsfd >= 0) {
		fds.fd[0] = b->memfd;
		fds.fd[1] = b->mapsfd;
	}
	return fds;
}

static int loan_release(struct uvd_borrow *b, const struct uvd_wire_request *r, long way)
{
	const long result = r->value;

	if (r->index && way >= 0)
		uvd_borrow_call(b, UVD_SYSCALL_CLOSE, (long[3]){ way });
	return uvd_borrow_release(b, r->flag ? &result : NULL);
}

void uvd_loan_serve(int sock, const struct uvd_borrower *borrower, const struct uvd_child_files *files,
		    _Atomic uint32_t *registers)
{
	const struct uvd_nodes *nodes = files->nodes;
	struct uvd_ways *ways = files->ways;
	struct uvd_borrow b = { .pidfd = -1, .memfd = -1, .mapsfd = -1 };
	enum uvd_wire_op next = UVD_WIRE_SEIZE;
	struct uvd_wire_fds in, none = uvd_wire_no_fds;
	struct uvd_wire_request r;
	long way = -1;
	int fd = -1;

	while (!uvd_wire_asked(sock, UVD_WIRE_LOAN, &r, &in) && loan_may(next, r.op)) {
		struct uvd_wire_answer a = { .version = UVD_WIRE_VERSION, .op = r.op };
		struct uvd_wire_fds out = none;

		if (r.op == UVD_WIRE_SEIZE) {
			if (r.index)
				uvd_thread_set_nice((int)r.index);
			a.result = loan_seize(&b, r.tid, borrower, nodes, &fd);
		} else if (r.op == UVD_WIRE_TAKE) {
			loan_take(&b, ways, r.index ? -1 : in.fd[0], &a);
			way = a.values[0];
			out = loan_memory(&b);
		} else if (r.op == UVD_WIRE_REGISTER) {
			loan_register(&b, ways, nodes, registers, in.fd[0], &r.reg, &a);
			out = loan_memory(&b);
		} else if (r.op == UVD_WIRE_REPLACE) {
			a.values[0] = loan_replace(&b, files, fd, r.value, r.index);
			a.values[1] = b.dead;
		} else {
			a.result = loan_release(&b, &r, way);
			a.values[0] = (int64_t)uvd_thread_cpu_ns();
		}
		uvd_wire_close(&in);
		a.num_fds = out.fd[0] >= 0 ? 2 : 0;
		next = a.result ? UVD_WIRE_NONE : loan_next(r.op);
		if (uvd_wire_answer(sock, &a, &out) || r.op == UVD_WIRE_RELEASE)
			break;
	}
	/* The engine process is gone, or broke the order of requests: release the thread unchanged. */
	if (next == UVD_WIRE_RELEASE)
		uvd_borrow_release(&b, NULL);
	atomic_fetch_or(registers, UVD_LOAN_OVER);
}
