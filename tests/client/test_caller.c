/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"

#define PAGE 4096

/* Three pages that a child inherits, so at the same address: writable, read-only, unmapped. */
static char *pages;

static void make_pages(void)
{
	pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(pages != MAP_FAILED);
	memset(pages, 'a', 3 * PAGE);
	ck_assert(!mprotect(pages + PAGE, PAGE, PROT_READ));
	ck_assert(!munmap(pages + 2 * PAGE, PAGE));
}

static void idle(void *arg)
{
	memset(pages, 'b', PAGE);
	tell(0);
	for (uint64_t at; (at = listen_for_order());)
		tell(*(unsigned char *)(uintptr_t)at);
}

static struct child idle_child(void)
{
	struct child child;

	make_pages();
	child = child_start(idle, NULL);
	child_says(&child);
	return child;
}

static unsigned int byte_at(struct child *child, char *at)
{
	child_order(child, (uintptr_t)at);
	return child_says(child);
}

/* The ways to access the other process's memory; the loop tests have them in _i. */
enum way { BY_PID, BY_PROC, WAYS };

static int open_proc(pid_t tid, const char *name, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	fd = open(path, flags | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static struct uvd_caller caller_by(enum way way, pid_t tid)
{
	struct uvd_caller c = caller_of(tid);

	if (way == BY_PID)
		return c;
	c.memfd = open_proc(tid, "mem", O_RDWR);
	c.mapsfd = open_proc(tid, "maps", O_RDONLY);
	c.mem = &uvd_mem_procfd;
	return c;
}

#define AT(p) ((uint64_t)(uintptr_t)(p))

START_TEST(test_memory_is_the_clients)
{
	struct child child = idle_child();
	struct uvd_caller c = caller_by(_i, child.pid);
	char got[8];

	ck_assert(!uvd_caller_read(&c, got, AT(pages), 8));
	ck_assert(!memcmp(got, "bbbbbbbb", 8));
	ck_assert(!uvd_caller_write(&c, AT(pages + 3), "z", 1));
	ck_assert_uint_eq(byte_at(&child, pages + 3), 'z');
	ck_assert_uint_eq(byte_at(&child, pages + 4), 'b');
	ck_assert_int_eq(pages[3], 'a');
	child_end(&child);
}
END_TEST

START_TEST(test_torn_read_is_efault)
{
	struct child child = idle_child();
	struct uvd_caller c = caller_by(_i, child.pid);
	char got[16];

	ck_assert(!uvd_caller_read(&c, got, AT(pages + 2 * PAGE - 8), 8));
	ck_assert_int_eq(uvd_caller_read(&c, got, AT(pages + 2 * PAGE - 8), 16), -EFAULT);
	ck_assert_int_eq(uvd_caller_read(&c, got, 0, 8), -EFAULT);
	ck_assert_int_eq(uvd_caller_read(&c, got, UINT64_MAX - 3, 8), -EFAULT);
	ck_assert_int_eq(uvd_caller_read(&c, got, 1ull << 63, 8), -EFAULT);
	child_end(&child);
}
END_TEST

START_TEST(test_write_to_readonly_page_is_efault)
{
	struct child child = idle_child();
	struct uvd_caller c = caller_by(_i, child.pid);

	ck_assert_int_eq(uvd_caller_write(&c, AT(pages + PAGE), "zz", 2), -EFAULT);
	ck_assert_int_eq(uvd_caller_write(&c, AT(pages + PAGE - 1), "zz", 2), -EFAULT);
	ck_assert_int_eq(uvd_caller_write(&c, AT(pages + 2 * PAGE), "zz", 2), -EFAULT);
	ck_assert_int_eq(uvd_caller_write(&c, UINT64_MAX, "zz", 2), -EFAULT);
	ck_assert_uint_eq(byte_at(&child, pages + PAGE), 'a');
	child_end(&child);
}
END_TEST

#define PIECES 70 /* more than we pass to one system call */

START_TEST(test_writev_puts_every_piece)
{
	struct child child = idle_child();
	struct uvd_caller c = caller_by(_i, child.pid);
	struct uvd_write_vec v[PIECES];
	char src[PIECES];

	for (int i = 0; i < PIECES; i++) {
		src[i] = i + 1;
		v[i] = (struct uvd_write_vec){ AT(pages + i * 7), i == 3 ? NULL : &src[i], i == 3 ? 0 : 1 };
	}
	ck_assert(!uvd_caller_writev(&c, v, PIECES));
	for (int i = 0; i < PIECES; i++)
		ck_assert_uint_eq(byte_at(&child, pages + i * 7), i == 3 ? 'b' : i + 1);
	ck_assert_uint_eq(byte_at(&child, pages + 1), 'b');
	ck_assert(!uvd_caller_writev(&c, v, 0));
	v[PIECES - 1].addr = AT(pages + PAGE);
	ck_assert_int_eq(uvd_caller_writev(&c, v, PIECES), -EFAULT);
	child_end(&child);
}
END_TEST

START_TEST(test_own_memory_needs_no_system)
{
	struct uvd_caller c = { .mem = &uvd_mem_self, .proc = &uvd_proc_local };
	char from[4] = "abc", to[8] = "";
	struct uvd_write_vec v[2] = { { AT(to), "x", 1 }, { AT(to + 1), from, 4 } };

	ck_assert(!uvd_caller_read(&c, to, AT(from), 4));
	ck_assert_str_eq(to, "abc");
	ck_assert(!uvd_caller_writev(&c, v, 2));
	ck_assert_str_eq(to, "xabc");
	ck_assert_int_eq(uvd_caller_tgid(&c), getpid());
}
END_TEST

START_TEST(test_caller_out_of_reach_is_an_error_everywhere)
{
	struct uvd_caller c = caller_of(0);
	struct uvd_write_vec v = { AT(&c), "x", 1 };
	struct uvd_identity id;
	struct stat st;
	uint64_t limit;
	char byte;

	ck_assert_int_eq(uvd_caller_read(&c, &byte, AT(&c), 1), -EFAULT);
	ck_assert_int_eq(uvd_caller_write(&c, AT(&c), "x", 1), -EFAULT);
	ck_assert_int_eq(uvd_caller_writev(&c, &v, 1), -EFAULT);
	ck_assert_int_eq(uvd_caller_tgid(&c), -ESRCH);
	ck_assert_int_eq(uvd_caller_identity(&c, &id), -ESRCH);
	ck_assert_int_eq(uvd_caller_memlock(&c, &limit), -ESRCH);
	ck_assert_int_eq(uvd_caller_fstat(&c, 0, &st), -EBADF);
	ck_assert(!uvd_caller_capable(&c, CAP_IPC_LOCK));
}
END_TEST

START_TEST(test_dead_client_is_efault_and_esrch)
{
	struct child child = idle_child();
	struct uvd_caller c = caller_of(child.pid);
	uint64_t limit;
	char byte;

	child_end(&child);
	ck_assert_int_eq(uvd_caller_read(&c, &byte, AT(pages), 1), -EFAULT);
	ck_assert_int_eq(uvd_caller_tgid(&c), -ESRCH);
	ck_assert_int_eq(uvd_caller_memlock(&c, &limit), -ESRCH);
}
END_TEST

static void *thread_says_tid(void *arg)
{
	tell(syscall(SYS_gettid));
	for (;;)
		pause();
	return NULL;
}

static void run_thread(void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, thread_says_tid, NULL))
		_exit(1);
	for (;;)
		pause();
}

START_TEST(test_thread_belongs_to_its_process)
{
	struct child child = child_start(run_thread, NULL);
	struct uvd_caller c = caller_of(child_says(&child));

	ck_assert_int_ne(c.tid, child.pid);
	ck_assert_int_eq(uvd_caller_tgid(&c), child.pid);
	child_end(&child);
}
END_TEST

static void tricky_name(void *arg)
{
	prctl(PR_SET_NAME, "x\\\nUid:\t0");
	drop_rights();
	tell(0);
	listen_for_order();
}

START_TEST(test_identity_cannot_be_forged_by_the_name)
{
	struct child child = child_start(tricky_name, NULL);
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_identity id;

	child_says(&child);
	ck_assert(!uvd_caller_identity(&c, &id));
	ck_assert_int_eq(id.tgid, child.pid);
	ck_assert_uint_eq(id.uid, 65534);
	ck_assert_uint_eq(id.euid, 65534);
	ck_assert_uint_eq(id.fsuid, 65534);
	ck_assert_uint_eq(id.fsgid, 65534);
	ck_assert_uint_eq(id.cap_eff, 0);
	ck_assert_str_eq(id.comm, "x\\\nUid:\t0");
	ck_assert(!uvd_caller_capable(&c, CAP_IPC_LOCK));
	child_end(&child);
}
END_TEST

static void in_many_groups(void *arg)
{
	static gid_t groups[3000];

	for (int i = 0; i < 3000; i++)
		groups[i] = 1000000000 + i;
	tell(setgroups(3000, groups));
	listen_for_order();
}

/* The kernel writes the groups before the capabilities. */
START_TEST(test_groups_do_not_hide_the_capabilities)
{
	struct child child = child_start(in_many_groups, NULL);
	struct uvd_caller c = caller_of(child.pid);
	struct uvd_identity id;

	ck_assert_uint_eq(child_says(&child), 0);
	ck_assert(!uvd_caller_identity(&c, &id));
	ck_assert(id.tgid == child.pid && id.cap_eff >> CAP_IPC_LOCK & 1);
	ck_assert(uvd_caller_capable(&c, CAP_IPC_LOCK));
	child_end(&child);
}
END_TEST

START_TEST(test_each_capability_is_its_own)
{
	struct uvd_caller c = caller_of(getpid());
	struct uvd_identity id = { .cap_eff = UINT64_C(1) << CAP_IPC_LOCK };

	ck_assert(uvd_caller_capable_as(&c, &id, CAP_IPC_LOCK));
	for (int cap = 0; cap < 64; cap++)
		ck_assert(cap == CAP_IPC_LOCK || !uvd_caller_capable_as(&c, &id, cap));
}
END_TEST

START_TEST(test_root_is_capable)
{
	struct child child = idle_child();
	struct uvd_caller c = caller_of(child.pid);

	ck_assert(uvd_caller_capable(&c, CAP_IPC_LOCK));
	child_end(&child);
}
END_TEST

/* Not unshare(CLONE_NEWUSER): it fails in a process with several threads, and a sanitizer may have started one. */
static void root_of_a_namespace(void *arg)
{
	pid_t pid;

	drop_rights();
	pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			syscall(SYS_pause);
	}
	tell(pid);
	listen_for_order();
}

START_TEST(test_capability_in_a_namespace_of_its_own_does_not_count)
{
	struct child child = child_start(root_of_a_namespace, NULL);
	struct uvd_caller c = caller_of(child_says(&child));
	struct uvd_identity id;

	ck_assert(!uvd_caller_identity(&c, &id));
	ck_assert(id.cap_eff >> CAP_IPC_LOCK & 1); /* the client has it in its own namespace */
	ck_assert(!uvd_caller_capable(&c, CAP_IPC_LOCK));
	child_end(&child);
}
END_TEST

static void limit_itself(void *arg)
{
	struct rlimit limit = { 123 * 1024, 123 * 1024 };

	tell(setrlimit(RLIMIT_MEMLOCK, &limit));
	listen_for_order();
}

START_TEST(test_memlock_limit_is_the_clients_own)
{
	struct child child = child_start(limit_itself, NULL);
	struct uvd_caller c = caller_of(child.pid);
	uint64_t limit;

	ck_assert_uint_eq(child_says(&child), 0);
	ck_assert(!uvd_caller_memlock(&c, &limit));
	ck_assert_uint_eq(limit, 123 * 1024);
	drop_rights(); /* now prlimit() is refused, and /proc/TID/limits is not */
	limit = 0;
	ck_assert(prlimit(child.pid, RLIMIT_MEMLOCK, NULL, &(struct rlimit){}) && errno == EPERM);
	ck_assert(!uvd_caller_memlock(&c, &limit));
	ck_assert_uint_eq(limit, 123 * 1024);
}
END_TEST

static int pair[2];

static void hold_socket(void *arg)
{
	dup2(pair[1], 200);
	tell(0);
	listen_for_order();
}

START_TEST(test_fstat_sees_the_clients_descriptor)
{
	struct stat mine, theirs;
	struct uvd_caller c;
	struct child child;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	child = child_start(hold_socket, NULL);
	c = caller_of(child.pid);
	child_says(&child);
	ck_assert(!fstat(pair[1], &mine));
	ck_assert(!uvd_caller_fstat(&c, 200, &theirs));
	ck_assert_uint_eq(mine.st_ino, theirs.st_ino);
	ck_assert_uint_eq(mine.st_dev, theirs.st_dev);
	ck_assert_int_eq(uvd_caller_fstat(&c, 201, &theirs), -EBADF);
	ck_assert_int_eq(uvd_caller_fstat(&c, -1, &theirs), -EBADF);
	child_end(&child);
}
END_TEST

START_TEST(test_ordinary_user_serves_its_own_children)
{
	struct uvd_identity id;
	struct child child;
	struct uvd_caller c;
	uint64_t limit;
	char byte;

	drop_rights();
	child = idle_child();
	c = caller_by(_i, child.pid);
	ck_assert(!uvd_caller_read(&c, &byte, AT(pages), 1));
	ck_assert_int_eq(byte, 'b');
	ck_assert(!uvd_caller_write(&c, AT(pages), "q", 1));
	ck_assert_uint_eq(byte_at(&child, pages), 'q');
	ck_assert(!uvd_caller_identity(&c, &id) && id.uid == 65534);
	ck_assert(!uvd_caller_memlock(&c, &limit));
	ck_assert(!uvd_caller_capable(&c, CAP_IPC_LOCK));
	child_end(&child);
}
END_TEST

/* ---- numbers of another pid namespace ---------------------------------------------------------------------------- */

enum { BASE = UVD_PROC_NUMBERS };

static const char *status_text; /* the next status of the process; NULL: its own */

static int based_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	int pair[2];

	if (!status_text || strcmp(name, "status"))
		return uvd_proc_local.open(&uvd_proc_local, tid - BASE, name, flags);
	ck_assert(!pipe(pair));
	ck_assert_int_eq(write(pair[1], status_text, strlen(status_text)), strlen(status_text));
	close(pair[1]);
	return pair[0];
}

static struct uvd_proc based_proc = { .open = based_open, .base = BASE };

static struct uvd_caller based_caller(pid_t tid)
{
	struct uvd_caller c = caller_of(tid + BASE);

	c.proc = &based_proc;
	return c;
}

START_TEST(test_process_of_another_pid_namespace_has_its_base_added)
{
	struct child child = idle_child();
	struct uvd_caller c = based_caller(child.pid);
	uint64_t limit;

	ck_assert_int_eq(uvd_caller_tgid(&c), child.pid + BASE);
	ck_assert(!uvd_caller_memlock(&c, &limit));
	child_end(&child);
}
END_TEST

/* Whoever opens the files could name a process of another base. */
START_TEST(test_process_number_that_the_kernel_does_not_have_is_esrch)
{
	static const char *const texts[] = { "Name:\tx\nTgid:\t4194304\n", "Name:\tx\nTgid:\t-4194303\n" };
	struct uvd_caller c = based_caller(getpid());
	struct uvd_identity id;

	status_text = texts[_i];
	ck_assert_int_eq(uvd_caller_identity(&c, &id), -ESRCH);
}
END_TEST

START_TEST(test_affinity_is_that_of_the_thread_in_another_pid_namespace)
{
	struct child child = idle_child();
	struct uvd_caller c = based_caller(child.pid);
	cpu_set_t set;

	ck_assert(!sched_getaffinity(child.pid, sizeof(set), &set));
	for (unsigned int cpu = 0; cpu < (unsigned int)sysconf(_SC_NPROCESSORS_CONF); cpu++)
		ck_assert_int_eq(uvd_caller_may_run_on(&c, cpu), CPU_ISSET(cpu, &set) ? 0 : -EPERM);
	status_text = "Name:\tx\nCpus_allowed_list:\t1-2,5\n";
	ck_assert_int_eq(uvd_caller_may_run_on(&c, 0), -EPERM);
	child_end(&child);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("caller");
	TCase *t = tcase_create("caller");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_memory_is_the_clients, 0, WAYS);
	tcase_add_loop_test(t, test_torn_read_is_efault, 0, WAYS);
	tcase_add_loop_test(t, test_write_to_readonly_page_is_efault, 0, WAYS);
	tcase_add_loop_test(t, test_writev_puts_every_piece, 0, WAYS);
	tcase_add_test(t, test_own_memory_needs_no_system);
	tcase_add_test(t, test_caller_out_of_reach_is_an_error_everywhere);
	tcase_add_test(t, test_dead_client_is_efault_and_esrch);
	tcase_add_test(t, test_thread_belongs_to_its_process);
	tcase_add_test(t, test_identity_cannot_be_forged_by_the_name);
	tcase_add_test(t, test_groups_do_not_hide_the_capabilities);
	tcase_add_test(t, test_each_capability_is_its_own);
	tcase_add_test(t, test_root_is_capable);
	tcase_add_test(t, test_capability_in_a_namespace_of_its_own_does_not_count);
	tcase_add_test(t, test_memlock_limit_is_the_clients_own);
	tcase_add_test(t, test_fstat_sees_the_clients_descriptor);
	tcase_add_loop_test(t, test_ordinary_user_serves_its_own_children, 0, 2);
	tcase_add_test(t, test_process_of_another_pid_namespace_has_its_base_added);
	tcase_add_loop_test(t, test_process_number_that_the_kernel_does_not_have_is_esrch, 0, 2);
	tcase_add_test(t, test_affinity_is_that_of_the_thread_in_another_pid_namespace);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
