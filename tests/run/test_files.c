/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Opens that are refused, and files that are closed while another open waits at the limit (run/file.c). */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness.h"
#include "run/file.h"
#include "../suite.h"

/* The file's memfd, and its opener's address space and pidfd. */
enum { DESCRIPTORS_OF_FILE = 3 };

static struct harness h;
static struct uvd_run_files files;
static struct uvd_caller caller;

/* A client of its own: for a client that is this process we keep no descriptors. */
static pid_t client_start(void)
{
	const pid_t parent = getpid(), pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

static void files_begin(enum uvd_resource res, uint64_t most)
{
	struct uvd_account_limits limits;

	harness_no_limits(&limits);
	limits.max[res] = most;
	harness_init_limited(&h, "null", &limits);
	harness_start(&h, &uvd_mem_process);
	ck_assert_int_eq(uvd_run_files_init(&files), 0);
	caller = (struct uvd_caller){ .mem = &uvd_mem_process,
				      .proc = &uvd_proc_local,
				      .tid = client_start(),
				      .memfd = -1,
				      .account = h.account };
}

static void files_end(void)
{
	/* As the engine: threads that close files still use `files`. */
	ck_assert(uvd_run_files_settle(&files, 60000));
	uvd_run_files_fini(&files);
	kill(caller.tid, SIGKILL);
	waitpid(caller.tid, NULL, 0);
	harness_close(&h);
}

static int file_open(int *fd)
{
	bool direct;

	return uvd_run_file_open(&files, NULL, h.dev, &caller, O_RDWR, fd, &direct);
}

/* As the engine's loop: does what `inotify` and `look` tell it. Returns whether they told anything. */
static bool main_loop_wakes(void)
{
	struct pollfd p[] = { { .fd = files.inotify, .events = POLLIN }, { .fd = files.look, .events = POLLIN } };
	eventfd_t looks;
	int wait;

	if (poll(p, 2, 0) <= 0)
		return false;
	eventfd_read(files.look, &looks);
	while ((wait = uvd_run_files_closed(&files)) >= 0)
		poll(NULL, 0, wait);
	return true;
}

/* Reaped files end on a thread. */
static void wait_for_used(uint64_t used)
{
	while (uvd_account_used(h.account, UVD_RES_DESCRIPTORS) != used)
		sched_yield();
}

/* ---- refused opens ----------------------------------------------------------------------------------------------- */

static const struct {
	enum uvd_resource res;
	unsigned int enough;
} scarce[] = {
	{ UVD_RES_DESCRIPTORS, DESCRIPTORS_OF_FILE }, { UVD_RES_FILES, 2 }, /* the harness has one */
};

START_TEST(open_that_an_account_refuses_leaves_no_descriptor)
{
	for (unsigned int most = scarce[_i].res == UVD_RES_FILES; most <= scarce[_i].enough; most++) {
		unsigned int before;
		uint64_t used;
		int fd;

		files_begin(scarce[_i].res, most);
		before = suite_num_fds();
		used = uvd_account_used(h.account, scarce[_i].res);
		for (int i = 0; i < 3 && most < scarce[_i].enough; i++) {
			ck_assert_int_eq(file_open(&fd), -EMFILE);
			ck_assert_uint_eq(suite_num_fds(), before);
			ck_assert_uint_eq(uvd_account_used(h.account, scarce[_i].res), used);
		}
		if (most == scarce[_i].enough) {
			ck_assert_int_eq(file_open(&fd), 0);
			close(fd);
		}
		files_end();
	}
}
END_TEST

/* One more descriptor at a time: each system call of an open fails in turn. */
START_TEST(open_that_runs_out_of_descriptors_leaves_none)
{
	struct rlimit was, few;
	unsigned int before, refused = 0;
	int fd, err;

	files_begin(UVD_RES_FILES, 2);
	/* The lowest free number: below it nothing is free, and above it nothing is open. */
	fd = dup(0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert(!getrlimit(RLIMIT_NOFILE, &was));
	few = was;
	before = suite_num_fds();
	for (few.rlim_cur = fd;; few.rlim_cur++) {
		ck_assert(!setrlimit(RLIMIT_NOFILE, &few));
		err = file_open(&fd);
		ck_assert(!setrlimit(RLIMIT_NOFILE, &was));
		if (!err)
			break;
		refused++;
		ck_assert_uint_eq(suite_num_fds(), before);
		ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_DESCRIPTORS), 0);
		ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_FILES), 1);
	}
	ck_assert_uint_ge(refused, 2);
	close(fd);
	ck_assert(main_loop_wakes());
	wait_for_used(0);
	ck_assert_uint_eq(suite_num_fds(), before);
	files_end();
}
END_TEST

/* One more descriptor at a time, too. The program's own descriptors, of which 0 is the first, stay open. */
START_TEST(files_that_cannot_begin_close_only_their_own_descriptors)
{
	struct rlimit was, few;
	unsigned int before;
	int err, refused = 0, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (!fd)
		fd = dup(0);
	ck_assert_int_gt(fd, 0);
	before = suite_num_fds();
	ck_assert(!close(fd) && !getrlimit(RLIMIT_NOFILE, &was));
	before--;
	few = was;
	for (few.rlim_cur = fd;; few.rlim_cur++) {
		ck_assert(!setrlimit(RLIMIT_NOFILE, &few));
		err = uvd_run_files_init(&files);
		ck_assert(!setrlimit(RLIMIT_NOFILE, &was));
		uvd_run_files_fini(&files);
		ck_assert_uint_eq(suite_num_fds(), before);
		if (!err)
			break;
		ck_assert_int_eq(err, -EMFILE);
		refused++;
	}
	ck_assert_int_eq(refused, 2);
}
END_TEST

START_TEST(open_of_a_removed_device_leaves_no_descriptor)
{
	unsigned int before;
	int fd;

	files_begin(UVD_RES_FILES, 9);
	harness_close_file(&h);
	uvd_device_remove(h.dev);
	before = suite_num_fds();
	ck_assert_int_lt(file_open(&fd), 0);
	ck_assert_uint_eq(suite_num_fds(), before);
	files_end();
}
END_TEST

/* A user can use up its inotify watches. */
START_TEST(open_that_gets_no_watch_leaves_no_descriptor)
{
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC), fd;
	unsigned int before;

	files_begin(UVD_RES_FILES, 9);
	ck_assert_int_eq(dup3(none, files.inotify, O_CLOEXEC), files.inotify);
	before = suite_num_fds();
	ck_assert_int_eq(file_open(&fd), -EINVAL);
	ck_assert_uint_eq(suite_num_fds(), before);
	files_end();
	close(none);
}
END_TEST

/* ---- files that are closed at the limit -------------------------------------------------------------------------- */

START_TEST(open_at_the_limit_has_what_a_closed_file_had)
{
	int first, second;

	files_begin(UVD_RES_DESCRIPTORS, DESCRIPTORS_OF_FILE);
	ck_assert_int_eq(file_open(&first), 0);
	ck_assert_int_eq(file_open(&second), -EMFILE);
	close(first);
	/* The engine's loop has not heard of the close. */
	ck_assert_int_eq(file_open(&second), 0);
	close(second);
	files_end();
}
END_TEST

static void open_again_and_close(int fd)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert(again >= 0 && !close(again));
}

/*
 * The kernel reports a close just before the lock of the file is dropped. An open that settles in between takes the
 * event, and sees a file that is still locked. Here an event of another struct file is taken in its place, and the lock
 * is dropped by flock(), of which inotify reports nothing.
 */
START_TEST(file_closed_while_another_open_settles_is_reaped_with_no_further_close)
{
	int fd, refused;

	files_begin(UVD_RES_DESCRIPTORS, DESCRIPTORS_OF_FILE);
	ck_assert_int_eq(file_open(&fd), 0);
	ck_assert(!main_loop_wakes());
	open_again_and_close(fd);
	ck_assert_int_eq(file_open(&refused), -EMFILE);
	ck_assert(!flock(fd, LOCK_UN));
	ck_assert(main_loop_wakes());
	wait_for_used(0);
	close(fd);
	files_end();
}
END_TEST

/* A second struct file of the memfd was closed, and the first one stays open for as long as its client wants. */
START_TEST(looks_at_a_file_that_stays_open_become_rare)
{
	int fd;

	files_begin(UVD_RES_DESCRIPTORS, DESCRIPTORS_OF_FILE);
	ck_assert_int_eq(file_open(&fd), 0);
	open_again_and_close(fd);
	for (int ms = 1; ms < 1024; ms *= 2)
		ck_assert_int_eq(uvd_run_files_closed(&files), ms);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(uvd_run_files_closed(&files), 1024);
	close(fd);
	files_end();
}
END_TEST

static unsigned int most_queued_events(void)
{
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	unsigned int most;

	ck_assert(f && fscanf(f, "%u", &most) == 1);
	fclose(f);
	return most;
}

/* A client that opens its files again and closes these fills the queue of events, and the kernel drops those that follow. */
START_TEST(file_closed_while_the_kernel_drops_events_is_reaped)
{
	const unsigned int events = most_queued_events();
	struct pollfd p;
	int fds[3];

	files_begin(UVD_RES_DESCRIPTORS, UVD_COUNT(fds) * DESCRIPTORS_OF_FILE);
	for (unsigned int i = 0; i < UVD_COUNT(fds); i++)
		ck_assert_int_eq(file_open(&fds[i]), 0);
	/* By turns: an event that equals the last one is not queued. */
	for (unsigned int i = 0; i <= events; i++)
		open_again_and_close(fds[i % 2]);
	close(fds[2]);
	p = (struct pollfd){ .fd = files.inotify, .events = POLLIN };
	while (poll(&p, 1, 0) > 0)
		uvd_run_files_closed(&files);
	ck_assert(uvd_run_files_settle(&files, 60000));
	ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_DESCRIPTORS), 2 * DESCRIPTORS_OF_FILE);
	close(fds[0]);
	close(fds[1]);
	files_end();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("files");

	tcase_set_timeout(t, 100);
	tcase_add_loop_test(t, open_that_an_account_refuses_leaves_no_descriptor, 0, UVD_COUNT(scarce));
	tcase_add_test(t, open_that_runs_out_of_descriptors_leaves_none);
	tcase_add_test(t, files_that_cannot_begin_close_only_their_own_descriptors);
	tcase_add_test(t, open_of_a_removed_device_leaves_no_descriptor);
	tcase_add_test(t, open_that_gets_no_watch_leaves_no_descriptor);
	tcase_add_test(t, open_at_the_limit_has_what_a_closed_file_had);
	tcase_add_test(t, file_closed_while_another_open_settles_is_reaped_with_no_further_close);
	tcase_add_test(t, looks_at_a_file_that_stays_open_become_rare);
	tcase_add_test(t, file_closed_while_the_kernel_drops_events_is_reaped);
	return run_suite("run files", t);
}
