/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A child for questions looks at a thread before and after it opens the thread's files. What if the thread changes in
 * between? This program's open() replaces libc's: when the child opens a given file of the thread, a hook changes the
 * thread or gives its tid to another process. So the races are deterministic.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "broker/child.h"
#include "broker/waiting.h"
#include "util/util.h"
#include "../suite.h"

enum { USER = 65534, GROUP = 65533, NR_PAUSE = 34, STUCK_MS = 20000 };

static int node, questions, go[2];
static struct uvd_nodes nodes;
static struct uvd_wire_fds fds;
static struct uvd_wire_answer answer;
static pid_t client;
static volatile uint64_t secret = 1;
static char folder[] = "/dev/shm/uverbsd-looks-XXXXXX";

/* ---- hooks ---------------------------------------------------------------------------------------------------------- */

static char hooked[64];
static void (*before_open)(void), (*after_open)(void);

int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;
	bool hook = hooked[0] && !strcmp(path, hooked);
	int fd;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (hook && before_open)
		before_open();
	fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (hook && after_open)
		after_open();
	return fd;
}

/* Makes openat2() fail with EAGAIN below a root, as with RESOLVE_CACHED where that is a network file system. */
static bool never_cached;

/*
 * Replaces libc's function. It reads six arguments also where its caller passed fewer, which AddressSanitizer reports.
 */
__attribute__((no_sanitize("address"))) long syscall(long nr, ...)
{
	long arg[6], ret;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == 437 /* openat2 */ && never_cached && ((struct open_how *)arg[2])->resolve & RESOLVE_IN_ROOT) {
		errno = EAGAIN;
		return -1;
	}
	register long r10 asm("r10") = arg[3], r8 asm("r8") = arg[4], r9 asm("r9") = arg[5];
	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(nr), "D"(arg[0]), "S"(arg[1]), "d"(arg[2]), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	if (ret >= -4095 && ret < 0) {
		errno = -ret;
		return -1;
	}
	return ret;
}

static void hook_at(const char *name, void (*before)(void), void (*after)(void))
{
	snprintf(hooked, sizeof(hooked), "/proc/%d/%s", client, name);
	before_open = before;
	after_open = after;
}

/* ---- a child for questions, as a thread of this process, so that the hooks apply to it --------------------------- */

static void *serve(void *arg)
{
	uvd_questions_serve((int)(intptr_t)arg, &nodes);
	return NULL;
}

static void set_up(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct stat st;

	ck_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
	node = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert(node >= 0 && !fstat(node, &st) && !tcflow(node, TCOOFF));
	nodes.rdev[0] = st.st_rdev;
	nodes.root_clients = UVD_ROOT_ALLOW;
	ck_assert(!pipe(go));
	ck_assert(mkdtemp(folder) && !chmod(folder, 0755));
}

static void tear_down(void)
{
	char path[128];
	const char *const names[] = { "fifo", "node", "dev/infiniband/fifo", "dev/infiniband", "dev", "fifo2" };

	if (client > 0)
		kill(client, SIGKILL);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		remove(path);
	}
	rmdir(folder);
}

/* Not before the first question: a client forked from a process with threads could inherit a lock that nobody releases. */
static void start_serving(void)
{
	pthread_t thread;
	int pair[2];

	if (questions)
		return;
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	ck_assert(!pthread_create(&thread, NULL, serve, (void *)(intptr_t)pair[1]));
	questions = pair[0];
}

static int ask_about(pid_t tid, enum uvd_wire_op op, enum uvd_wire_file file, int64_t value)
{
	struct uvd_wire_request r = {
		.version = UVD_WIRE_VERSION, .op = op, .tid = tid, .index = file, .value = value
	};
	struct pollfd p = { .fd = questions, .events = POLLIN };

	start_serving();
	fds = uvd_wire_no_fds;
	ck_assert(!uvd_wire_ask(questions, &r, &uvd_wire_no_fds));
	ck_assert_int_eq(poll(&p, 1, STUCK_MS), 1);
	return uvd_wire_answered(questions, op, &answer, &fds) ? -EPIPE : answer.result;
}

static int ask(enum uvd_wire_op op, enum uvd_wire_file file, int64_t value)
{
	return ask_about(client, op, file, value);
}

/* ---- clients -------------------------------------------------------------------------------------------------------- */

/*
 * By system calls alone: a client with a certain number is a copy of one of our threads (restart_with_number()), for which the C
 * library's locks, and ThreadSanitizer's, are as another thread has left them.
 */
static void be_user(uid_t real, uid_t effective, uid_t saved)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, GROUP, GROUP, GROUP) ||
	    syscall(SYS_setresuid, real, effective, saved))
		syscall(SYS_exit_group, 1);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static long nr_of(pid_t pid)
{
	char path[32], line[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
	(void)!read(fd, line, sizeof(line) - 1);
	close(fd);
	return line[0] >= '0' && line[0] <= '9' ? atol(line) : -1;
}

/* A thread can sleep in a call for a moment before it waits there: for a page, or for a lock of the terminal. */
static void wait_until_in(pid_t pid, long nr)
{
	int in_a_row = 0;

	for (int ms = 0; ms < STUCK_MS && in_a_row < 5; ms++) {
		in_a_row = nr_of(pid) == nr ? in_a_row + 1 : 0;
		usleep(1000);
	}
	ck_assert_msg(in_a_row == 5, "%d does not wait in call %ld: %ld", (int)pid, nr, nr_of(pid));
}

static void start(void (*what)(void), long nr)
{
	client = fork();
	if (!client) {
		be_user(USER, USER, USER);
		what();
		pause();
		_exit(0);
	}
	wait_until_in(client, nr);
}

static void writes(void)
{
	(void)!syscall(SYS_write, node, "x", 1);
}

static void writes_twice(void)
{
	int copy = dup(node);
	char c;

	(void)!write(node, "x", 1);
	(void)!read(go[0], &c, 1);
	if (c == 'd')
		(void)!write(copy, "x", 1);
	else
		(void)!writev(node, &(struct iovec){ &c, 1 }, 1);
}

static void let_it_go(void)
{
	hooked[0] = 0;
	tcflow(node, TCOON);
	wait_until_in(client, NR_PAUSE);
}

static void move_on(char how, long nr)
{
	hooked[0] = 0;
	tcflow(node, TCOON);
	wait_until_in(client, SYS_read);
	tcflow(node, TCOOFF);
	ck_assert(write(go[1], &how, 1) == 1);
	wait_until_in(client, nr);
}

static void move_on_to_another_descriptor(void)
{
	move_on('d', SYS_write);
}

static void move_on_to_another_call(void)
{
	move_on('v', SYS_writev);
}

START_TEST(test_thread_that_waits_no_more_gives_nothing)
{
	start(writes, SYS_write);
	hook_at("mem", let_it_go, NULL);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), -ESRCH);
	ck_assert_int_eq(fds.fd[0], -1);
}
END_TEST

START_TEST(test_thread_that_waits_in_another_call_gives_nothing)
{
	start(writes_twice, SYS_write);
	hook_at("mem", NULL, _i ? move_on_to_another_descriptor : move_on_to_another_call);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), -ESRCH);
	ck_assert_int_eq(fds.fd[0], -1);
}
END_TEST

/* ---- the tid is reused ------------------------------------------------------------------------------------------- */

static void restart_with_number(uint64_t word, long nr)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&client, .set_tid_size = 1 };
	pid_t pid;

	kill(client, SIGKILL);
	waitpid(client, NULL, 0);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		secret = word;
		be_user(USER, USER, USER);
		if (nr == SYS_write)
			writes();
		syscall(NR_PAUSE);
		syscall(SYS_exit_group, 0);
	}
	ck_assert_msg(pid == client, "no process can be given a number: %s", strerrorname_np(errno));
	wait_until_in(client, nr);
}

static void become_bystander(void)
{
	restart_with_number(2, NR_PAUSE);
}

static void become_client(void)
{
	hooked[0] = 0;
	restart_with_number(1, SYS_write);
}

/* Both looks see a thread that waits in the same call, but `mem` is that of a bystander that had the tid in between. */
START_TEST(test_number_that_is_a_bystanders_between_two_looks_gives_nothing)
{
	start(writes, SYS_write);
	hook_at("mem", become_bystander, become_client);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), -ESRCH);
	ck_assert_int_eq(fds.fd[0], -1);
	/* The new client that now has the tid is served. */
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), 0);
	uvd_wire_close(&fds);
}
END_TEST

/* ---- what is answered ------------------------------------------------------------------------------------------------ */

START_TEST(test_files_have_no_number_but_descriptors)
{
	start(writes, SYS_write);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_MAPS, 0), 0);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_MAPS, 1), -EINVAL);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_MEM, 2), -EINVAL);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_FD, -1), -EINVAL);
}
END_TEST

START_TEST(test_answers_are_about_the_call)
{
	static const char c = 'x';

	client = fork();
	if (!client) {
		be_user(USER, USER, USER);
		_exit(write(node, &c, 1));
	}
	wait_until_in(client, SYS_write);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), 0);
	ck_assert(answer.values[0] == client && fds.fd[2] >= 0 && (fcntl(fds.fd[0], F_GETFL) & O_ACCMODE) == O_RDWR);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(UVD_WIRE_WRITE, 0, 0), 0);
	ck_assert(answer.values[0] == (intptr_t)&c && answer.values[1] == 1);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_FD, node), 0);
	ck_assert(fcntl(fds.fd[0], F_GETFL) & O_PATH);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_MEM, 0), 0);
	ck_assert((fcntl(fds.fd[0], F_GETFL) & O_ACCMODE) == O_RDONLY);
	uvd_wire_close(&fds);
	ck_assert_int_eq(ask(UVD_WIRE_SAME_MEMORY, 0, client), 1);
	ck_assert_int_eq(ask(UVD_WIRE_SAME_MEMORY, 0, getpid()), 0);
	ck_assert_int_eq(ask(UVD_WIRE_SAME_MEMORY, 0, (1ll << 32) + client), 0);
}
END_TEST

static pid_t *writer; /* in shared memory */

static void *writes_in_thread(void *arg)
{
	*writer = gettid();
	writes();
	return NULL;
}

static void outlived_by_a_writer(void)
{
	pthread_t thread;

	be_user(USER, USER, USER);
	if (pthread_create(&thread, NULL, writes_in_thread, NULL))
		_exit(1);
	syscall(SYS_exit, 0);
}

/* Files of the first thread can be opened after its exit, but are empty. */
START_TEST(test_maps_and_statm_are_those_of_a_thread_that_lives)
{
	unsigned long pages = 0;
	char text[256] = "";

	writer = mmap(NULL, sizeof(*writer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	client = fork();
	if (!client)
		outlived_by_a_writer();
	for (int ms = 0; ms < STUCK_MS && !*writer; ms++)
		usleep(1000);
	for (int ms = 0; ms < STUCK_MS && uvd_process_lives(client, NULL); ms++)
		usleep(1000);
	wait_until_in(*writer, SYS_write);
	ck_assert_int_eq(ask_about(*writer, UVD_WIRE_PEER, 0, 0), 0);
	ck_assert_int_eq(answer.values[0], client);
	ck_assert(read(fds.fd[1], text, sizeof(text) - 1) > 0 && strchr(text, '-'));
	memset(text, 0, sizeof(text));
	ck_assert(read(fds.fd[3], text, sizeof(text) - 1) > 0 && sscanf(text, "%lu", &pages) == 1 && pages > 0);
	uvd_wire_close(&fds);
}
END_TEST

/* Blocks in ioctl() on the terminal's lock, which another process's blocked write() holds. */
static void controls(void)
{
	ioctl(node, TCXONC, TCIOFF);
}

static void writes_pieces(void)
{
	(void)!writev(node, &(struct iovec){ "x", 1 }, 1);
}

START_TEST(test_pieces_are_no_write)
{
	start(writes_pieces, SYS_writev);
	ck_assert_int_eq(ask(UVD_WIRE_WRITE, 0, 0), -EINVAL);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), 0);
	uvd_wire_close(&fds);
}
END_TEST

START_TEST(test_ioctl_is_no_write)
{
	pid_t writer;

	start(writes, SYS_write);
	writer = client;
	start(controls, SYS_ioctl);
	ck_assert_int_eq(ask(UVD_WIRE_WRITE, 0, 0), -EINVAL);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), 0);
	uvd_wire_close(&fds);
	kill(writer, SIGKILL);
}
END_TEST

/* ---- rights ---------------------------------------------------------------------------------------------------------- */

START_TEST(test_each_user_id_counts)
{
	const uid_t ids[][3] = { { USER, USER, USER - 1 }, { USER, USER - 1, USER }, { USER - 1, USER, USER } };

	client = fork();
	if (!client) {
		be_user(ids[_i][0], ids[_i][1], ids[_i][2]);
		writes();
		_exit(0);
	}
	wait_until_in(client, SYS_write);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), -EPERM);
}
END_TEST

static void makes_a_namespace(void)
{
	if (unshare(CLONE_NEWUSER))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	writes();
}

START_TEST(test_capabilities_in_a_namespace_of_its_own_do_not_count)
{
	/* In the child of a process without further threads ThreadSanitizer starts its own, and unshare() fails then. */
	start_serving();
	start(makes_a_namespace, SYS_write);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), 0);
	uvd_wire_close(&fds);
}
END_TEST

static void in_many_groups(void)
{
	static gid_t groups[3000];

	for (int i = 0; i < 3000; i++)
		groups[i] = 1000000000 + i;
	if (setgroups(3000, groups) || setresgid(GROUP, GROUP, GROUP) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	writes();
	_exit(0);
}

/* The kernel writes the groups before the capabilities, to a status file of 33 KB. */
START_TEST(test_client_in_many_groups_is_served)
{
	client = fork();
	if (!client)
		in_many_groups();
	wait_until_in(client, SYS_write);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), 0);
	uvd_wire_close(&fds);
}
END_TEST

/* ---- opens: a thread blocks in the open of a FIFO, then another file replaces the FIFO --------------------------- */

static const char *opened; /* the path that the client opens */
static int dirfd_of_client;
static enum { OPEN, OPENAT, OPENAT_CWD, OPENAT2 } how_opened;

static char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void opens(void)
{
	struct open_how {
		uint64_t flags, mode, resolve;
	} how = { O_RDONLY };

	if (how_opened == OPEN)
		syscall(SYS_open, opened, O_RDONLY);
	else if (how_opened == OPENAT2)
		syscall(SYS_openat2, dirfd_of_client, opened, &how, sizeof(how));
	else
		syscall(SYS_openat, how_opened == OPENAT ? dirfd_of_client : AT_FDCWD, opened, O_RDONLY);
}

static void opens_in_folder(void)
{
	if (chdir(folder))
		_exit(1);
	opens();
}

static void make_fifo(const char *name)
{
	ck_assert(!mknod(in_folder(name), S_IFIFO | 0666, 0) && !chmod(in_folder(name), 0666));
}

static void replace(const char *name, mode_t type, dev_t rdev)
{
	ck_assert(!unlink(in_folder(name)) && !mknod(in_folder(name), type | 0666, rdev));
	ck_assert(!access(in_folder(name), F_OK));
}

START_TEST(test_open_of_a_node_gives_pagemap_and_nothing_else)
{
	static const long nrs[] = { SYS_open, SYS_openat, SYS_openat, 437 };

	how_opened = _i;
	make_fifo("fifo");
	dirfd_of_client = open(folder, O_PATH);
	opened = _i == OPEN ? strdup(in_folder("fifo")) : "fifo";
	start(opens_in_folder, nrs[_i]);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), -ESRCH);
	replace("fifo", S_IFCHR, nodes.rdev[0]);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), 0);
	uvd_wire_close(&fds);
	/* The client waits in an open, not in a call on the node. */
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), -ESRCH);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_MEM, 0), -ESRCH);
	replace("fifo", S_IFCHR, nodes.rdev[0] + 1);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), -ESRCH);
	replace("fifo", S_IFBLK, nodes.rdev[0]);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), -ESRCH);
	/* rdev 0 marks a free row of the table of nodes, so it must match no file. */
	replace("fifo", S_IFCHR, 0);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), -ESRCH);
}
END_TEST

/* With its last 0 it has PATH_MAX bytes. */
START_TEST(test_longest_path_that_the_kernel_takes_is_read)
{
	static char path[PATH_MAX];

	how_opened = OPEN;
	make_fifo("fifo");
	memset(path, '/', sizeof(path) - 1);
	memcpy(path + sizeof(path) - sizeof("fifo"), "fifo", sizeof("fifo"));
	memcpy(path, folder, strlen(folder));
	ck_assert_uint_eq(strlen(path), PATH_MAX - 1);
	opened = path;
	start(opens, SYS_open);
	replace("fifo", S_IFCHR, nodes.rdev[0]);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), 0);
	uvd_wire_close(&fds);
}
END_TEST

/* The client's root is the test's folder. Outside, no /fifo exists. */
START_TEST(test_path_is_looked_up_in_the_threads_root)
{
	char name[64] = "/fifo";

	how_opened = OPEN;
	make_fifo("fifo");
	opened = name;
	client = fork();
	if (!client) {
		if (chroot(folder))
			_exit(1);
		be_user(USER, USER, USER);
		opens();
		_exit(0);
	}
	wait_until_in(client, SYS_open);
	replace("fifo", S_IFCHR, nodes.rdev[0]);
	ck_assert_int_eq(ask(UVD_WIRE_OPENER, 0, 0), 0);
	uvd_wire_close(&fds);
}
END_TEST

/* The first argument of openat() is a descriptor of a node, but openat() is no call on that node. */
START_TEST(test_open_with_a_node_as_its_folder_is_no_call)
{
	how_opened = OPENAT;
	make_fifo("fifo");
	dirfd_of_client = node;
	opened = in_folder("fifo");
	start(opens, SYS_openat);
	ck_assert_int_eq(ask(UVD_WIRE_PEER, 0, 0), -ESRCH);
	ck_assert_int_eq(ask(UVD_WIRE_OPEN, UVD_WIRE_MEM, 0), -ESRCH);
}
END_TEST

static char device[64];
static const char *root_of_client;

static bool has_own_mounts; /* the client */

static void opens_below_root(void)
{
	if (has_own_mounts && (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)))
		_exit(1);
	if (root_of_client && chroot(root_of_client))
		_exit(1);
	be_user(USER, USER, USER);
	opens();
	_exit(0);
}

/* Mounts the file in the client's mount namespace. */
static void bind_for_client(const char *from, const char *to)
{
	char path[64];
	int status;
	pid_t pid = fork();

	if (!pid) {
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", client);
		_exit(setns(open(path, O_RDONLY), CLONE_NEWNS) || mount(from, to, NULL, MS_BIND, NULL));
	}
	ck_assert(waitpid(pid, &status, 0) == pid && !status);
}

/*
 * Starts a client whose root is `root` (NULL: ours), and which blocks in the open of `path`. `fifo` is that file in our
 * root. Then makes `device` a node, and returns the answer to OPENER while openat2() fails with EAGAIN.
 */
static int opens_where_nothing_is_cached(const char *root, const char *path, const char *fifo)
{
	int ret;

	how_opened = OPEN;
	never_cached = false;
	opened = path;
	root_of_client = root;
	ck_assert(!mknod(fifo, S_IFIFO | 0666, 0) && !chmod(fifo, 0666));
	client = fork();
	if (!client)
		opens_below_root();
	wait_until_in(client, SYS_open);
	unlink(device);
	ck_assert(!mknod(device, S_IFCHR | 0666, nodes.rdev[0]));
	if (has_own_mounts)
		bind_for_client(device, path);
	never_cached = true;
	ret = ask(UVD_WIRE_OPENER, 0, 0);
	uvd_wire_close(&fds);
	never_cached = false;
	kill(client, SIGKILL);
	waitpid(client, NULL, 0);
	unlink(fifo);
	unlink(device);
	return ret;
}

START_TEST(test_where_nothing_is_cached_our_own_name_counts_for_our_own_root)
{
	bool made = !mkdir("/dev/infiniband", 0755);
	char path[128], detour[64];

	snprintf(device, sizeof(device), "/dev/infiniband/uverbsd-test-%d", getpid());
	ck_assert_int_eq(opens_where_nothing_is_cached(NULL, device, device), 0);
	/* The name is that of another node in the client's mount namespace only: `uverbsctl exec` mounts one on rdma_cm. */
	snprintf(path, sizeof(path), "%s-2", device);
	ck_assert_int_eq(opens_where_nothing_is_cached(NULL, path, path), -ESRCH);
	has_own_mounts = true;
	ck_assert_int_eq(opens_where_nothing_is_cached(NULL, path, path), 0);
	has_own_mounts = false;
	/* In another root the same path means another file. */
	ck_assert(!mkdir(in_folder("dev"), 0755) && !mkdir(in_folder("dev/infiniband"), 0755));
	snprintf(path, sizeof(path), "%s%s", folder, device);
	ck_assert_int_eq(opens_where_nothing_is_cached(folder, device, path), -ESRCH);
	/* Refused: a path with `..`, and a path outside /dev/infiniband. */
	snprintf(detour, sizeof(detour), "/dev/infiniband/../infiniband/uverbsd-test-%d", getpid());
	ck_assert_int_eq(opens_where_nothing_is_cached(NULL, detour, device), -ESRCH);
	snprintf(device, sizeof(device), "/dev/shm/uverbsd-test-node-%d", getpid());
	ck_assert_int_eq(opens_where_nothing_is_cached(NULL, device, device), -ESRCH);
	client = 0;
	if (made)
		rmdir("/dev/infiniband");
}
END_TEST

/* ---- the table of nodes ---------------------------------------------------------------------------------------------- */

START_TEST(test_node_takes_the_place_of_none_that_exists)
{
	static struct uvd_nodes table;
	const dev_t exists = makedev(1, 3), gone = makedev(0, 77);

	ck_assert_ptr_eq(uvd_nodes_place(&table), &table.rdev[0]);
	for (int i = 0; i < UVD_NODES_MAX; i++)
		table.rdev[i] = i == UVD_NODES_MAX - 2 ? gone : exists;
	ck_assert_ptr_eq(uvd_nodes_place(&table), &table.rdev[UVD_NODES_MAX - 2]);
	table.rdev[UVD_NODES_MAX - 1] = 0;
	ck_assert_ptr_eq(uvd_nodes_place(&table), &table.rdev[UVD_NODES_MAX - 1]);
	table.rdev[UVD_NODES_MAX - 2] = table.rdev[UVD_NODES_MAX - 1] = exists;
	ck_assert_ptr_null(uvd_nodes_place(&table));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("looks");

	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_thread_that_waits_no_more_gives_nothing);
	tcase_add_loop_test(t, test_thread_that_waits_in_another_call_gives_nothing, 0, 2);
	tcase_add_test(t, test_number_that_is_a_bystanders_between_two_looks_gives_nothing);
	tcase_add_test(t, test_files_have_no_number_but_descriptors);
	tcase_add_test(t, test_answers_are_about_the_call);
	tcase_add_test(t, test_maps_and_statm_are_those_of_a_thread_that_lives);
	tcase_add_test(t, test_ioctl_is_no_write);
	tcase_add_test(t, test_pieces_are_no_write);
	tcase_add_loop_test(t, test_each_user_id_counts, 0, 3);
	tcase_add_test(t, test_capabilities_in_a_namespace_of_its_own_do_not_count);
	tcase_add_test(t, test_client_in_many_groups_is_served);
	tcase_add_loop_test(t, test_open_of_a_node_gives_pagemap_and_nothing_else, OPEN, OPENAT2 + 1);
	tcase_add_test(t, test_longest_path_that_the_kernel_takes_is_read);
	tcase_add_test(t, test_path_is_looked_up_in_the_threads_root);
	tcase_add_test(t, test_open_with_a_node_as_its_folder_is_no_call);
	tcase_add_test(t, test_where_nothing_is_cached_our_own_name_counts_for_our_own_root);
	tcase_add_test(t, test_node_takes_the_place_of_none_that_exists);
	return run_suite("looks", t);
}
