/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sandboxes of the engine process and of the children for questions, tested from inside. `--print` prints the table
 * of their system calls.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/sandbox.h"
#include "broker/serve.h"
#include "cpu/cpu.h"
#include "../suite.h"

enum { USER = 65534, GROUP = 65533, BAD_SETUP = 99, THREAD = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND };

static const char *const soft[] = { "soft", NULL };
static void *page;
static int null_fd, pair[2];
enum { SLOT = 64, AFTER_SLOTS = 128 };
static pid_t parent;

/* With broker_ends, setgroups() below kills the broker while uvd_engine_sandbox() runs, and waits until it is dead. */
static bool broker_ends;

/* Replaces libc's function, which uvd_engine_sandbox() calls. */
int setgroups(size_t num, const gid_t *groups)
{
	const pid_t broker = getppid();

	if (broker_ends)
		kill(broker, SIGKILL);
	while (broker_ends && getppid() == broker)
		usleep(1000);
	return syscall(SYS_setgroups, num, groups);
}

static void enter_engine(void)
{
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);

	if (uvd_engine_sandbox(USER, GROUP, soft, log))
		_exit(BAD_SETUP);
}

static void enter_with_adapters(void)
{
	static const char *const verbs[] = { "verbs", NULL };
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);

	if (uvd_engine_sandbox(USER, GROUP, verbs, log))
		_exit(BAD_SETUP);
}

static void enter_questions(void)
{
	if (!uvd_process_role_take(UVD_PROCESS_QUESTIONS))
		_exit(BAD_SETUP);
}

/* Returns the wait status of a process that calls enter(), which enters a sandbox, and then what(). */
static int status_of(void (*enter)(void), void (*what)(void))
{
	int status;
	pid_t pid;

	parent = getpid();
	null_fd = open("/dev/null", O_RDWR);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(dup2(memfd_create("slot", MFD_CLOEXEC), SLOT) == SLOT && !ftruncate(SLOT, 4096));
	ck_assert(null_fd >= 0 && page != MAP_FAILED && !socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	pid = fork();
	if (!pid) {
		enter();
		what();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	munmap(page, 4096);
	close(null_fd);
	close(pair[0]);
	close(pair[1]);
	return status;
}

/* ---- forbidden ----------------------------------------------------------------------------------------------------- */

#define FORBIDDEN(name, code) \
	static void name(void) \
	{ \
		(void)!(code); \
	}

/* clang-format off */
FORBIDDEN(forks, syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
FORBIDDEN(vforks, syscall(SYS_vfork))
FORBIDDEN(shares_memory_with_a_process, syscall(SYS_clone, CLONE_VM | CLONE_SIGHAND | SIGCHLD, (char *)page + 4096, 0, 0, 0))
FORBIDDEN(starts_a_thread_in_a_namespace, syscall(SYS_clone, THREAD | CLONE_NEWNS, 0, 0, 0, 0))
FORBIDDEN(starts_a_thread_in_a_user_namespace, syscall(SYS_clone, THREAD | CLONE_NEWUSER, 0, 0, 0, 0))
FORBIDDEN(makes_code, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == page)
FORBIDDEN(makes_data_code, mprotect(page, 4096, PROT_READ | PROT_EXEC))
FORBIDDEN(makes_anothers_file_code, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, null_fd, 0) == page)
FORBIDDEN(makes_code_of_a_file_before_the_slots, mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE, SLOT - 1, 0) == page)
FORBIDDEN(makes_code_of_a_file_beyond_the_slots, mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE, AFTER_SLOTS, 0) == page)
FORBIDDEN(makes_code_that_it_can_write_to, mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, SLOT, 0) == page)
FORBIDDEN(makes_code_that_others_can_write_to, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, SLOT, 0) == page)
FORBIDDEN(makes_code_of_memory_in_the_name_of_a_slot, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, SLOT, 0) == page)
FORBIDDEN(fills_a_slot, dup3(null_fd, SLOT, O_CLOEXEC))
FORBIDDEN(fills_a_slot_by_an_old_call, dup2(null_fd, SLOT))
FORBIDDEN(closes_many, syscall(SYS_close_range, SLOT, SLOT, 0))
FORBIDDEN(loads_filters, syscall(SYS_seccomp, 1, 0, page))
FORBIDDEN(executes, execl("/bin/true", "true", NULL))
FORBIDDEN(traces, syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, parent, 0, 0))
FORBIDDEN(signals_others, kill(parent, 0))
FORBIDDEN(signals_threads_of_others, syscall(SYS_tgkill, parent, parent, SIGCONT))
FORBIDDEN(queues_signals, syscall(SYS_rt_sigqueueinfo, parent, SIGCONT, page))
FORBIDDEN(duplicates, dup(null_fd))
FORBIDDEN(duplicates_to_a_number, fcntl(null_fd, F_DUPFD, 100))
FORBIDDEN(asks_for_signals_of_a_file, fcntl(null_fd, F_SETOWN, parent))
FORBIDDEN(seals, fcntl(null_fd, F_ADD_SEALS, 1))
FORBIDDEN(makes_a_memfd, memfd_create("x", 0))
FORBIDDEN(makes_a_pipe, pipe((int[2]){ 0 }))
FORBIDDEN(makes_a_pair_of_datagrams, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, (int[2]){ 0 }))
FORBIDDEN(makes_a_pair_that_is_not_unix, socketpair(AF_TIPC, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, (int[2]){ 0 }))
FORBIDDEN(sends_to_an_address, sendto(pair[0], "x", 1, 0, (struct sockaddr *)&(struct sockaddr_un){ AF_UNIX, "x" }, 4))
FORBIDDEN(filters_a_socket, setsockopt(pair[0], SOL_SOCKET, SO_ATTACH_FILTER, page, sizeof(struct sock_fprog)))
FORBIDDEN(asks_a_socket_for_pidfds, setsockopt(pair[0], SOL_SOCKET, 76 /* SO_PASSPIDFD */, &null_fd, sizeof(null_fd)))
FORBIDDEN(takes_a_socket_filter, getsockopt(pair[0], SOL_SOCKET, SO_GET_FILTER, page, &(socklen_t){ 4 }))
FORBIDDEN(connects, connect(pair[0], (struct sockaddr *)&(struct sockaddr_un){ AF_UNIX, "x" }, 4))
FORBIDDEN(binds, bind(pair[0], (struct sockaddr *)&(struct sockaddr_un){ AF_UNIX, "x" }, 4))
FORBIDDEN(types_into_a_terminal, ioctl(null_fd, 0x5412 /* TIOCSTI */, "x"))
FORBIDDEN(controls_a_file, ioctl(null_fd, FIONREAD, page))
FORBIDDEN(raises_a_limit, syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, page, 0))
FORBIDDEN(becomes_dumpable, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
FORBIDDEN(forgets_the_broker, prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0))
FORBIDDEN(becomes_root, syscall(SYS_setuid, 0))
FORBIDDEN(unshares, unshare(CLONE_NEWUSER))
FORBIDDEN(enters_a_namespace, setns(null_fd, 0))
FORBIDDEN(mounts, mount("x", "/", "tmpfs", 0, NULL))
FORBIDDEN(takes_a_descriptor, syscall(SYS_pidfd_getfd, null_fd, 0, 0))
FORBIDDEN(signals_a_pidfd, syscall(SYS_pidfd_send_signal, null_fd, 0, 0, 0))
FORBIDDEN(handles_faults, syscall(SYS_userfaultfd, 0))
FORBIDDEN(uses_io_uring, syscall(SYS_io_uring_setup, 1, page))
FORBIDDEN(uses_bpf, syscall(SYS_bpf, 0, page, 4))
FORBIDDEN(counts_events, syscall(SYS_perf_event_open, page, 0, 0, -1, 0))
FORBIDDEN(splices, splice(null_fd, NULL, null_fd, NULL, 1, 0))
FORBIDDEN(uses_keys, syscall(SYS_keyctl, 0, 0, 0, 0, 0))
FORBIDDEN(changes_anothers_priority, setpriority(PRIO_PROCESS, parent, 1))
FORBIDDEN(makes_a_folder, mkdir("/x", 0700))
FORBIDDEN(makes_a_file, open("/tmp/uverbsd-test-sandbox", O_RDWR | O_CREAT, 0600))
FORBIDDEN(empties_a_file, open("/dev/null", O_RDWR | O_TRUNC))
FORBIDDEN(makes_a_socket, socket(AF_UNIX, SOCK_STREAM, 0))
FORBIDDEN(compares_files, syscall(SYS_kcmp, parent, parent, 0 /* KCMP_FILE */, 0, 0))
FORBIDDEN(removes_a_file, unlink("/tmp/uverbsd-test-sandbox"))
FORBIDDEN(writes_memory, process_vm_writev(parent, NULL, 0, NULL, 0, 0))
/* clang-format on */

enum { ENGINE = 1, QUESTIONS = 2, BOTH = 3 };

static const struct {
	void (*what)(void);
	int where;
	bool adapters_may; /* an engine process with adapters may do it */
} forbidden[] = {
	{ forks, BOTH },
	{ vforks, BOTH },
	{ shares_memory_with_a_process, BOTH },
	{ starts_a_thread_in_a_namespace, BOTH },
	{ starts_a_thread_in_a_user_namespace, BOTH },
	{ makes_code, BOTH },
	{ makes_data_code, BOTH },
	{ makes_anothers_file_code, BOTH },
	{ makes_code_of_a_file_before_the_slots, BOTH },
	{ makes_code_of_a_file_beyond_the_slots, BOTH },
	{ makes_code_that_it_can_write_to, BOTH },
	{ makes_code_that_others_can_write_to, BOTH },
	{ makes_code_of_memory_in_the_name_of_a_slot, BOTH },
	{ fills_a_slot, BOTH },
	{ fills_a_slot_by_an_old_call, BOTH },
	{ closes_many, BOTH },
	{ loads_filters, BOTH },
	{ executes, BOTH },
	{ traces, BOTH },
	{ signals_others, BOTH },
	{ signals_threads_of_others, BOTH },
	{ queues_signals, BOTH },
	{ duplicates, BOTH },
	{ duplicates_to_a_number, BOTH },
	{ asks_for_signals_of_a_file, BOTH },
	{ seals, BOTH },
	{ makes_a_memfd, ENGINE },
	{ makes_a_pipe, BOTH },
	{ makes_a_pair_of_datagrams, BOTH },
	{ makes_a_pair_that_is_not_unix, BOTH },
	{ sends_to_an_address, BOTH, true },
	{ filters_a_socket, BOTH },
	{ asks_a_socket_for_pidfds, BOTH },
	{ takes_a_socket_filter, BOTH },
	{ connects, BOTH },
	{ binds, BOTH, true },
	{ types_into_a_terminal, BOTH },
	{ controls_a_file, BOTH },
	{ raises_a_limit, BOTH },
	{ becomes_dumpable, BOTH },
	{ forgets_the_broker, BOTH },
	{ becomes_root, BOTH },
	{ unshares, BOTH },
	{ enters_a_namespace, BOTH },
	{ mounts, BOTH },
	{ takes_a_descriptor, BOTH },
	{ signals_a_pidfd, BOTH },
	{ handles_faults, BOTH },
	{ uses_io_uring, BOTH },
	{ uses_bpf, BOTH },
	{ counts_events, BOTH },
	{ splices, BOTH },
	{ uses_keys, BOTH },
	{ changes_anothers_priority, BOTH },
	{ makes_a_folder, BOTH },
	{ makes_a_file, QUESTIONS },
	{ empties_a_file, QUESTIONS },
	{ makes_a_socket, QUESTIONS },
	{ compares_files, QUESTIONS },
	{ removes_a_file, QUESTIONS },
	{ writes_memory, QUESTIONS },
};

/* A process with adapters may not do this either. The exceptions are in opens_only_what_it_was_given(). */
FORBIDDEN(makes_a_stream, socket(AF_INET, SOCK_STREAM, 0))
FORBIDDEN(makes_a_raw_socket, socket(AF_INET, SOCK_RAW, 1))
FORBIDDEN(makes_a_ping_socket, socket(AF_INET, SOCK_DGRAM, 1))
FORBIDDEN(makes_a_packet_socket, socket(AF_PACKET, SOCK_DGRAM, 0))
FORBIDDEN(makes_another_netlink_socket, socket(AF_NETLINK, SOCK_RAW, 9 /* NETLINK_AUDIT */))
FORBIDDEN(makes_a_node, mknod("/dev/infiniband/x", S_IFCHR | 0600, 0))
FORBIDDEN(goes_elsewhere, chdir("/sys"))
FORBIDDEN(goes_to_a_descriptor, fchdir(null_fd))
FORBIDDEN(has_another_root, chroot("/sys"))
FORBIDDEN(renames, rename("/dev/infiniband", "/x"))
FORBIDDEN(asks_for_an_address, ioctl(null_fd, 0x8915 /* SIOCGIFADDR */, page))

static void (*const forbidden_with_adapters[])(void) = {
	makes_a_stream,
	makes_a_raw_socket,
	makes_a_ping_socket,
	makes_a_packet_socket,
	makes_another_netlink_socket,
	makes_a_node,
	goes_elsewhere,
	goes_to_a_descriptor,
	has_another_root,
	renames,
	asks_for_an_address,
};

static void check_kills(void (*enter)(void), int where)
{
	for (unsigned int i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		const bool may =
			!(forbidden[i].where & where) || (enter == enter_with_adapters && forbidden[i].adapters_may);
		int status = may ? SIGSYS : status_of(enter, forbidden[i].what);

		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "forbidden[%u]: status %x", i, status);
	}
}

START_TEST(test_forbidden_call_kills_the_engine_process)
{
	check_kills(enter_engine, ENGINE);
}
END_TEST

START_TEST(test_forbidden_call_kills_the_engine_process_with_adapters)
{
	check_kills(enter_with_adapters, ENGINE);
	for (unsigned int i = 0; i < sizeof(forbidden_with_adapters) / sizeof(forbidden_with_adapters[0]); i++) {
		const int status = status_of(enter_with_adapters, forbidden_with_adapters[i]);

		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "number %u: status %x", i, status);
	}
}
END_TEST

START_TEST(test_forbidden_call_kills_the_child_for_questions)
{
	check_kills(enter_questions, QUESTIONS);
}
END_TEST

/* ---- allowed ------------------------------------------------------------------------------------------------------- */

static void need(bool yes, int code)
{
	if (!yes)
		_exit(code);
}

static void *in_thread(void *arg)
{
	*(pid_t *)arg = gettid();
	return NULL;
}

static void does_what_an_engine_does(void)
{
	struct rlimit limit;
	pthread_t thread;
	pid_t tid = 0;
	int ends[2];

	need(!pthread_create(&thread, NULL, in_thread, &tid) && !pthread_join(thread, NULL) && tid, 1);
	need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) && send(ends[0], "x", 1, 0) == 1, 2);
	need(!syscall(SYS_tgkill, getpid(), gettid(), SIGCONT), 3);
	/* The filter allows signal 0. The kernel returns EPERM because the thread exists. */
	need(syscall(SYS_tgkill, parent, parent, 0) == -1 && errno == EPERM, 4);
	need(!prlimit(0, RLIMIT_NOFILE, NULL, &limit), 5);
	need(prlimit(parent, RLIMIT_NOFILE, NULL, &limit) == -1 && errno == EPERM, 6);
	need(open("/", O_RDONLY) == -1 && errno == EACCES, 7);
	need(socket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EACCES, 8);
	need(ioctl(null_fd, 0x5401 /* TCGETS */, page) == -1 && errno == ENOTTY, 9);
	need(fcntl(null_fd, F_DUPFD_CLOEXEC, 0) > 0 && (fcntl(null_fd, F_GETFL) & O_ACCMODE) == O_RDWR, 10);
	/* The filter allows this query of a mapping. ENOTTY comes from the kernel: the file is not /proc/PID/maps. */
	need(ioctl(null_fd, 0xc0686611 /* PROCMAP_QUERY */, page) == -1 && errno == ENOTTY, 11);
	need(syscall(SYS_clone3, page, 88) == -1 && errno == ENOSYS, 12);
	need(!close(fcntl(null_fd, F_DUPFD_CLOEXEC, AFTER_SLOTS)), 13);
	need(close(-1) == -1 && errno == EBADF, 14);
}

static int root_fd; /* the host's root, as a client can have it open */

static bool cannot_open(const char *path, int flags, int err)
{
	errno = 0;
	return open(path, flags, 0600) == -1 && errno == err;
}

/* An engine process that an attacker controls. What was opened before the sandbox stays what it was. */
static void opens_only_what_it_was_given(void)
{
	static const char *const elsewhere[] = {
		"/etc/passwd", "/proc/self/mem",    "/proc/self/fd",	  "/dev/null",
		"/dev/cuse",   "/dev/infiniband/x", "/../../etc/passwd",  "/sys/kernel",
		"/sys/module", "/sys/class/net",    "/sys/devices/../fs", "/sys/class/cuse",
		"/run",	       "/usr/lib",	    "etc/passwd",	  "../../proc"
	};
	const char *const created[] = { "/x", "/sys/x", "/sys/devices/x", "/dev/x", "/dev/infiniband/uverbs0" };
	int fd;

	for (unsigned int i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		need(cannot_open(elsewhere[i], O_RDONLY, ENOENT) && cannot_open(elsewhere[i], O_PATH, ENOENT), 20 + i);
	for (unsigned int i = 0; i < sizeof(created) / sizeof(created[0]); i++)
		need(open(created[i], O_RDWR | O_CREAT, 0600) == -1 && (errno == EACCES || errno == EROFS), 40 + i);
	need(open("/dev/infiniband", O_RDWR | O_TMPFILE, 0600) == -1, 50);
	/* Not even beneath a folder of the host that it has open. */
	need(openat(root_fd, "etc/passwd", O_RDONLY) == -1 && errno == EACCES, 51);
	need(openat(root_fd, "/sys/devices", O_RDONLY) == -1 && errno == EACCES, 52);
	need(syscall(SYS_openat2, root_fd, "etc/passwd", page, 24) == -1 && errno == EACCES, 53);
	need(syscall(SYS_openat, (1ul << 32) + root_fd, "etc/passwd", O_RDONLY) == -1 && errno == EACCES, 54);
	fd = open("/sys/devices/system/cpu/possible", O_RDONLY);
	need(fd >= 0 && read(fd, page, 64) > 0, 55);
	need(cannot_open("/sys/devices/system/cpu/possible", O_WRONLY, EACCES) ||
		     cannot_open("/sys/devices/system/cpu/possible", O_WRONLY, EROFS),
	     56);
	/* Files do not become code, and the network stays as it is. */
	need(socket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EACCES, 57);
	need(socket(AF_INET, SOCK_DGRAM, 0) >= 0 && socket(AF_NETLINK, SOCK_RAW, 0) >= 0, 58);
}

START_TEST(test_engine_process_with_adapters_opens_only_what_it_was_given)
{
	root_fd = open("/", O_PATH | O_DIRECTORY);
	ck_assert_int_eq(status_of(enter_with_adapters, opens_only_what_it_was_given), 0);
	close(root_fd);
}
END_TEST

/* A slot's number stays that slot's file, whatever the engine process does: else it could map another one as code. */
static void keeps_its_slots(void)
{
	struct stat before, after;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, SLOT, 0);

	need(code != MAP_FAILED, 1);
	need(mprotect(code, 4096, PROT_READ | PROT_WRITE) == 0, 2);
	need(!fstat(SLOT, &before), 3);
	need(!syscall(SYS_close, SLOT) && !syscall(SYS_close, SLOT + 63), 4);
	/* The kernel looks at the lower half. */
	need(syscall(SYS_close, (1ul << 32) + SLOT) == -1 && errno == EBADF, 5);
	need(syscall(SYS_close, (1ul << 63) + SLOT) == -1 && errno == EBADF, 6);
	need(!fstat(SLOT, &after) && before.st_ino == after.st_ino, 7);
	need(fcntl(null_fd, F_DUPFD_CLOEXEC, SLOT) > SLOT, 8);
}

START_TEST(test_engine_process_keeps_its_slots)
{
	ck_assert_int_eq(status_of(enter_engine, keeps_its_slots), 0);
}
END_TEST

START_TEST(test_engine_process_can_do_its_work)
{
	ck_assert_int_eq(status_of(enter_engine, does_what_an_engine_does), 0);
}
END_TEST

/* ---- credentials, namespaces and lifetime ------------------------------------------------------------------------ */

static char text[8192];
static const char *const file_start = text;

static bool has_line(const char *file, const char *line)
{
	FILE *f = fopen(file, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return strstr(text, line);
}

static char proc_path[64];

static const char *proc(pid_t pid, const char *name)
{
	snprintf(proc_path, sizeof(proc_path), "/proc/%d/%s", (int)pid, name);
	return proc_path;
}

static bool same_link(pid_t pid, const char *name)
{
	char ours[64] = "", theirs[64] = "";

	ck_assert(readlink(proc(getpid(), name), ours, sizeof(ours) - 1) > 0);
	ck_assert(readlink(proc(pid, name), theirs, sizeof(theirs) - 1) > 0);
	return !strcmp(ours, theirs);
}

/* Returns the pid of an engine process. Its parent, the broker, exits when a byte is written to *parents_end. */
static pid_t start_engine(int *parents_end)
{
	int pids[2], ends[2];
	pid_t pid = 0;

	ck_assert(!pipe(pids) && !pipe(ends) && !setgroups(1, (gid_t[]){ 12345 }));
	if (!fork()) {
		char c;

		if (!fork()) {
			enter_engine();
			pid = getpid();
			(void)!write(pids[1], &pid, sizeof(pid));
			for (;;)
				poll(NULL, 0, -1);
		}
		(void)!read(ends[0], &c, 1);
		_exit(0);
	}
	ck_assert(read(pids[0], &pid, sizeof(pid)) == sizeof(pid));
	*parents_end = ends[1];
	return pid;
}

START_TEST(test_engine_process_has_no_rights_and_ends_with_its_parent)
{
	static const char *const lines[] = {
		"\nUid:\t65534\t65534\t65534\t65534\n",
		"\nGid:\t65533\t65533\t65533\t65533\n",
		"\nGroups:\t \n",
		"\nCapInh:\t0000000000000000\n",
		"\nCapPrm:\t0000000000000000\n",
		"\nCapEff:\t0000000000000000\n",
		"\nCapBnd:\t0000000000000000\n",
		"\nCapAmb:\t0000000000000000\n",
		"\nNoNewPrivs:\t1\n",
		"\nSeccomp:\t2\n",
	};
	static const char *const namespaces[] = { "ns/mnt", "ns/net", "ns/ipc" };
	int end, fd;
	pid_t pid = start_engine(&end);
	struct stat st;

	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_msg(has_line(proc(pid, "status"), lines[i]), "%s", lines[i]);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_msg(!same_link(pid, namespaces[i]), "%s", namespaces[i]);
	ck_assert(!stat(proc(pid, "mem"), &st) && !st.st_uid);
	ck_assert(has_line(proc(pid, "mounts"), " / tmpfs ro,nosuid,nodev,noexec,"));
	ck_assert_msg(!has_line(proc_path, "\nuverbsd") && strchr(file_start, '\n')[1] == 0, "it has other mounts: %s",
		      file_start);
	fd = open(proc(pid, "root/dev"), O_PATH);
	ck_assert_msg(fd < 0 && errno == ENOENT, "it sees the host's files");
	ck_assert(write(end, "x", 1) == 1);
	for (int i = 0; i < 500 && !kill(pid, 0) && !has_line(proc(pid, "status"), "State:\tZ"); i++)
		usleep(10000);
	ck_assert_msg(kill(pid, 0) || has_line(proc(pid, "status"), "State:\tZ"), "it outlives the broker");
}
END_TEST

START_TEST(test_engine_process_ends_where_the_broker_has_ended_before_it_could_tell)
{
	struct uvd_log *log = uvd_log_new(null_fd, "test", UVD_ERR);
	int out[2], ret = 0;

	ck_assert(!pipe(out));
	if (!fork()) {
		if (!fork()) {
			broker_ends = true;
			ret = uvd_engine_sandbox(USER, GROUP, soft, log);
			(void)!write(out[1], &ret, sizeof(ret));
			_exit(0);
		}
		for (;;)
			poll(NULL, 0, -1);
	}
	ck_assert(read(out[0], &ret, sizeof(ret)) == sizeof(ret));
	ck_assert_int_eq(ret, -ESRCH);
	uvd_log_free(log);
}
END_TEST

static const struct {
	enum uvd_process_role role;
	const char *caps;
	int filters;
} roles[] = {
	/* CHOWN DAC_OVERRIDE FOWNER KILL SETGID SETUID SETPCAP SYS_PTRACE SYS_ADMIN MKNOD */
	{ UVD_PROCESS_BROKER, "00000000082801eb", 0 },
	{ UVD_PROCESS_QUESTIONS, "0000000000080002", 1 }, /* DAC_OVERRIDE SYS_PTRACE */
	{ UVD_PROCESS_LOAN, "0000000000280002", 0 }, /* DAC_OVERRIDE SYS_PTRACE SYS_ADMIN */
};

/* The number of seccomp filters on the process. This process may have inherited some, for example in a container. */
static int num_filters(pid_t pid)
{
	ck_assert(has_line(proc(pid, "status"), "\nSeccomp_filters:\t"));
	return atoi(strstr(text, "\nSeccomp_filters:\t") + strlen("\nSeccomp_filters:\t"));
}

START_TEST(test_each_role_has_its_capabilities)
{
	static const char *const sets[] = { "CapPrm", "CapEff", "CapBnd" };
	char line[64];
	int sock[2];
	pid_t pid;
	char c;

	ck_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid) {
		close(sock[0]);
		if (!uvd_process_role_take(roles[_i].role))
			_exit(1);
		(void)!write(sock[1], "x", 1);
		(void)!read(sock[1], &c, 1);
		_exit(0);
	}
	ck_assert(read(sock[0], &c, 1) == 1);
	for (int i = 0; i < 3; i++) {
		snprintf(line, sizeof(line), "\n%s:\t%s\n", sets[i], roles[_i].caps);
		ck_assert_msg(has_line(proc(pid, "status"), line), "%s%s", line, text);
	}
	ck_assert(has_line(proc(pid, "status"), "\nNoNewPrivs:\t1\n"));
	/* Loans use PTRACE_O_SUSPEND_SECCOMP, which the kernel refuses to a process that has a filter. */
	ck_assert_int_eq(num_filters(pid), num_filters(getpid()) + roles[_i].filters);
	close(sock[0]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* ---- the table ------------------------------------------------------------------------------------------------------ */

START_TEST(test_backend_without_a_row_is_refused)
{
	const char *const unknown[] = { "null", "adapter", NULL };
	struct uvd_log *log = uvd_log_new(null_fd, "test", UVD_ERR);
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(-uvd_engine_sandbox(USER, GROUP, unknown, log));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EOPNOTSUPP);
	uvd_log_free(log);
}
END_TEST

START_TEST(test_any_number_of_devices_of_a_backend_is_one_row)
{
	const char *many[100] = { NULL };
	struct uvd_log *log = uvd_log_new(null_fd, "test", UVD_ERR);
	pid_t pid;
	int status;

	for (int i = 0; i < 99; i++)
		many[i] = i & 1 ? "soft" : "null";
	pid = fork();
	if (!pid)
		_exit(-uvd_engine_sandbox(USER, GROUP, many, log));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	uvd_log_free(log);
}
END_TEST

START_TEST(test_every_name_is_a_system_call)
{
	const struct uvd_sandbox_row *r;

	for (unsigned int i = 0; (r = uvd_sandbox_row_at(i)); i++)
		for (unsigned int n = 0; n < r->num_calls; n++)
			ck_assert_msg(seccomp_syscall_resolve_name(r->calls[n].name) != __NR_SCMP_ERROR, "%s: %s",
				      r->name, r->calls[n].name);
}
END_TEST

static bool row_has(const struct uvd_sandbox_row *row, const char *name)
{
	for (unsigned int n = 0; name && n < row->num_calls; n++)
		if (!row->calls[n].err && !strcmp(row->calls[n].name, name))
			return true;
	return false;
}

/* The C library of AArch64 makes another call, which the row has too, or which takes the place of the one that is missing. */
START_TEST(test_aarch64_has_a_call_for_each_that_it_lacks)
{
	static const char *const others[][2] = {
		{ "open", "openat" },	      { "stat", "newfstatat" }, { "readlink", "readlinkat" },
		{ "lstat", "newfstatat" },    { "unlink", "unlinkat" }, { "epoll_wait", "epoll_pwait" },
		{ "getdents", "getdents64" },
	};
	const struct uvd_sandbox_row *r;

	for (unsigned int i = 0; (r = uvd_sandbox_row_at(i)); i++)
		for (unsigned int n = 0; n < r->num_calls; n++) {
			const char *name = r->calls[n].name, *instead = uvd_cpu_call_instead(UVD_CPU_AARCH64, name);
			bool has = r->calls[n].err || seccomp_syscall_resolve_name_arch(SCMP_ARCH_AARCH64, name) >= 0;

			has = has || (instead && !r->calls[n].num_cmp);
			for (unsigned int o = 0; !has && o < sizeof(others) / sizeof(others[0]); o++)
				has = !strcmp(others[o][0], name) && row_has(r, others[o][1]);
			ck_assert_msg(has, "%s: %s", r->name, name);
		}
}
END_TEST

static char *file_text(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	ck_assert(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

START_TEST(test_docs_show_the_table)
{
	char *table = NULL, *docs = file_text(SECURITY_MD);
	size_t size;
	FILE *f = open_memstream(&table, &size);

	uvd_sandbox_print(f);
	fclose(f);
	ck_assert_msg(strstr(docs, table),
		      "docs/security-processes.md has another table than `test-broker-sandbox --print`");
	free(table);
	free(docs);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *t = tcase_create("sandbox");

	if (argc > 1 && !strcmp(argv[1], "--print")) {
		uvd_sandbox_print(stdout);
		return 0;
	}
	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_forbidden_call_kills_the_engine_process);
	tcase_add_test(t, test_forbidden_call_kills_the_child_for_questions);
	tcase_add_test(t, test_engine_process_can_do_its_work);
	tcase_add_test(t, test_engine_process_keeps_its_slots);
	tcase_add_test(t, test_forbidden_call_kills_the_engine_process_with_adapters);
	tcase_add_test(t, test_engine_process_with_adapters_opens_only_what_it_was_given);
	tcase_add_test(t, test_engine_process_has_no_rights_and_ends_with_its_parent);
	tcase_add_test(t, test_engine_process_ends_where_the_broker_has_ended_before_it_could_tell);
	tcase_add_loop_test(t, test_each_role_has_its_capabilities, 0, sizeof(roles) / sizeof(roles[0]));
	tcase_add_test(t, test_backend_without_a_row_is_refused);
	tcase_add_test(t, test_any_number_of_devices_of_a_backend_is_one_row);
	tcase_add_test(t, test_every_name_is_a_system_call);
	tcase_add_test(t, test_aarch64_has_a_call_for_each_that_it_lacks);
	tcase_add_test(t, test_docs_show_the_table);
	return run_suite("sandbox", t);
}
