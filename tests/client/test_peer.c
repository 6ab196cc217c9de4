/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A peer is a process whose memory we access through descriptors only. Mappings are looked up by query or in the text.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "client/client.h"
#include "../suite.h"

enum { PAGE = 4096, PAGES = 8 };

/* Pages of the client: w w r w - w w s. w: private, writable. r: readable. -: none. s: shared, read-only. */
static char *pages;
static pid_t client, client_thread;
static int to_client, from_client;

static void *sleep_in_thread(void *arg)
{
	pid_t tid = gettid();

	(void)!write(*(int *)arg, &tid, sizeof(tid));
	pause();
	return NULL;
}

static void be_client(int out, int in)
{
	pthread_t thread;
	pid_t pid;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, sleep_in_thread, &out))
		_exit(1);
	while (read(in, &c, 1) == 1 && c == 'x')
		execl("/bin/sleep", "sleep", "100", NULL);
	pid = clone_vm_sleeper();
	(void)!write(out, &pid, sizeof(pid));
	syscall(SYS_exit_group, 0);
}

static void set_up(void)
{
	int out[2], in[2];

	pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(pages != MAP_FAILED && !pipe2(out, O_CLOEXEC) && !pipe2(in, O_CLOEXEC));
	memset(pages, 'a', PAGES * PAGE);
	ck_assert(!mprotect(pages + 2 * PAGE, PAGE, PROT_READ) && !munmap(pages + 4 * PAGE, PAGE));
	ck_assert(mmap(pages + 7 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	client = fork();
	if (!client)
		be_client(out[1], in[0]);
	ck_assert(read(out[0], &client_thread, sizeof(client_thread)) == sizeof(client_thread));
	to_client = in[1];
	from_client = out[0];
}

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, flags | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

/* text: reads the mappings as text even if the kernel has PROCMAP_QUERY. */
static struct uvd_peer *peer_of(bool text)
{
	return uvd_peer_new(client,
			    &(struct uvd_peer_fds){ .mem = open_of(client, "mem", O_RDWR),
						    .maps = open_of(client, "maps", O_RDONLY),
						    .pagemap = open_of(client, "pagemap", O_RDONLY),
						    .statm = open_of(client, "statm", O_RDONLY) },
			    !text);
}

static uint64_t at(unsigned int page, int offset)
{
	return (uintptr_t)pages + (uint64_t)page * PAGE + offset;
}

static char client_has(struct uvd_peer *p, uint64_t addr)
{
	char c;

	ck_assert_int_eq(uvd_peer_read(p, &c, addr, 1), 0);
	return c;
}

static int write_at(struct uvd_peer *p, uint64_t addr, size_t len)
{
	static char data[3 * PAGE];

	memset(data, 'b', sizeof(data));
	return uvd_peer_writev(p, &(struct uvd_write_vec){ .addr = addr, .src = data, .len = len }, 1);
}

START_TEST(test_what_may_be_written_is)
{
	struct uvd_peer *p = peer_of(_i);

	ck_assert_int_eq(write_at(p, at(0, 1), 4), 0);
	ck_assert(client_has(p, at(0, 0)) == 'a' && client_has(p, at(0, 1)) == 'b' && client_has(p, at(0, 4)) == 'b');
	ck_assert(client_has(p, at(0, 5)) == 'a');
	/* Writes up to the last byte before an unwritable page. */
	ck_assert_int_eq(write_at(p, at(0, PAGE), PAGE), 0);
	ck_assert_int_eq(write_at(p, at(3, 0), PAGE), 0);
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_what_may_not_be_written_is_not)
{
	struct uvd_peer *p = peer_of(_i);

	ck_assert_int_eq(write_at(p, at(2, 0), 1), -EFAULT);
	ck_assert(client_has(p, at(2, 0)) == 'a');
	ck_assert_int_eq(write_at(p, at(7, 0), 1), -EFAULT);
	ck_assert_int_eq(write_at(p, at(4, 0), 1), -EFAULT);
	ck_assert_int_eq(write_at(p, at(4, PAGE - 1), 2), -EFAULT);
	ck_assert_int_eq(write_at(p, 0, 1), -EFAULT);
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_write_that_ends_where_it_may_not_changes_nothing)
{
	struct uvd_peer *p = peer_of(_i);

	ck_assert_int_eq(write_at(p, at(1, PAGE - 1), 2), -EFAULT);
	ck_assert(client_has(p, at(1, PAGE - 1)) == 'a' && client_has(p, at(2, 0)) == 'a');
	ck_assert_int_eq(write_at(p, at(3, PAGE - 1), 2), -EFAULT);
	ck_assert(client_has(p, at(3, PAGE - 1)) == 'a');
	/* The write begins and ends in writable pages, with the unwritable one in between. */
	ck_assert_int_eq(write_at(p, at(1, PAGE - 1), PAGE + 2), -EFAULT);
	ck_assert(client_has(p, at(1, PAGE - 1)) == 'a' && client_has(p, at(3, 0)) == 'a');
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_write_past_the_end_of_all_addresses_is_refused)
{
	struct uvd_peer *p = peer_of(_i);
	struct uvd_write_vec v = { .addr = at(0, 0), .src = "b", .len = -at(0, 0) + 1 };

	ck_assert_int_eq(uvd_peer_writev(p, &v, 1), -EFAULT);
	ck_assert(client_has(p, at(0, 0)) == 'a');
	uvd_peer_put(p);
}
END_TEST

/* The pieces need no order. If one of them is not writable, none is written. */
START_TEST(test_pieces_are_all_written_or_none)
{
	struct uvd_peer *p = peer_of(_i);
	struct uvd_write_vec v[] = {
		{ .addr = at(5, 9), .src = "bb", .len = 2 }, { .addr = at(0, 3), .src = "cc", .len = 2 },
		{ .addr = at(0, 9), .src = "dd", .len = 2 }, { .addr = 0, .src = "x", .len = 0 },
		{ .addr = at(3, 0), .src = "ee", .len = 2 }, { .addr = at(2, 0), .src = "ff", .len = 2 }
	};

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(uvd_peer_writev(p, v, 6), -EFAULT);
		ck_assert(client_has(p, at(5, 9)) == 'a' && client_has(p, at(0, 3)) == 'a' &&
			  client_has(p, at(3, 0)) == 'a');
	}
	/* The last piece begins in the unmapped page and ends in the writable page behind it. */
	v[5].addr = at(4, PAGE - 1);
	ck_assert_int_eq(uvd_peer_writev(p, v, 6), -EFAULT);
	ck_assert(client_has(p, at(5, 9)) == 'a' && client_has(p, at(0, 3)) == 'a');
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(uvd_peer_writev(p, v, 5), 0);
	ck_assert(client_has(p, at(5, 10)) == 'b' && client_has(p, at(0, 4)) == 'c' && client_has(p, at(0, 10)) == 'd');
	ck_assert(client_has(p, at(3, 1)) == 'e' && client_has(p, at(2, 0)) == 'a');
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_read_ahead_is_short_where_memory_ends)
{
	struct uvd_peer *p = peer_of(false);
	char data[2 * PAGE];

	ck_assert_int_eq(uvd_peer_read_ahead(p, data, at(0, 0), 8, PAGE), PAGE);
	ck_assert_int_eq(uvd_peer_read_ahead(p, data, at(3, PAGE - 8), 8, 100), 8);
	ck_assert_int_eq(uvd_peer_read_ahead(p, data, at(3, PAGE - 7), 8, 100), -EFAULT);
	ck_assert_int_eq(uvd_peer_read_ahead(p, data, at(4, 0), 1, 100), -EFAULT);
	ck_assert_int_eq(uvd_peer_read(p, data, at(3, PAGE - 7), 8), -EFAULT);
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_threads_of_the_process_belong_to_it_and_others_do_not)
{
	struct uvd_peer *p = peer_of(false);

	ck_assert(uvd_peer_has(p, client));
	ck_assert(uvd_peer_has(p, client_thread));
	ck_assert(!uvd_peer_has(p, getpid()));
	ck_assert(!uvd_peer_has(p, 1));
	ck_assert(!uvd_peer_has(p, INT32_MAX));
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_process_that_has_ended_has_no_thread)
{
	struct uvd_peer *p = peer_of(false);

	/* The zombie is not reaped yet, so its pid is still its own. */
	kill(client, SIGKILL);
	ck_assert(!waitid(P_PID, client, &(siginfo_t){ 0 }, WEXITED | WNOWAIT));
	ck_assert(!uvd_peer_has(p, client));
	waitpid(client, NULL, 0);
	ck_assert(!uvd_peer_has(p, client));
	uvd_peer_put(p);
}
END_TEST

/* The peer must not go by the address space alone: another process keeps that, and the pid can be reused. */
START_TEST(test_process_that_has_left_its_memory_to_another_has_no_thread)
{
	struct uvd_peer *p = peer_of(false);
	pid_t other;

	ck_assert(write(to_client, "v", 1) == 1 && read(from_client, &other, sizeof(other)) == sizeof(other) &&
		  other > 0);
	ck_assert(!waitid(P_PID, client, &(siginfo_t){ 0 }, WEXITED | WNOWAIT));
	ck_assert(client_has(p, at(0, 0)) == 'a');
	ck_assert(!uvd_peer_has(p, client));
	kill(other, SIGKILL);
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_process_that_has_called_exec_is_another)
{
	struct uvd_peer *p = peer_of(false);
	bool has = true;

	ck_assert(write(to_client, "x", 1) == 1);
	for (int i = 0; i < 1000 && has; i++) {
		usleep(10000);
		has = uvd_peer_has(p, client);
	}
	ck_assert(!has && !kill(client, 0));
	uvd_peer_put(p);
}
END_TEST

START_TEST(test_descriptors_have_high_numbers_and_end_with_the_last_reference)
{
	unsigned int before = suite_num_fds();
	const unsigned int low = low_fds();
	struct uvd_peer *p = peer_of(false);

	ck_assert_uint_eq(low_fds(), low);

	ck_assert_ptr_eq(uvd_peer_ref(p), p);
	uvd_peer_put(p);
	ck_assert(client_has(p, at(0, 0)) == 'a');
	ck_assert_uint_eq(suite_num_fds(), before + 5);
	uvd_peer_put(p);
	ck_assert_uint_eq(suite_num_fds(), before);
	/* uvd_peer_new() closes the descriptors when it fails, too. It does because no process 0 exists. */
	ck_assert_ptr_null(uvd_peer_new(0,
					&(struct uvd_peer_fds){ open("/dev/null", O_RDWR), open("/dev/null", O_RDWR),
								open("/dev/null", O_RDWR), open("/dev/null", O_RDWR) },
					true));
	ck_assert_uint_eq(suite_num_fds(), before);
	uvd_peer_put(NULL);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("peer");

	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_what_may_be_written_is, 0, 2);
	tcase_add_loop_test(t, test_what_may_not_be_written_is_not, 0, 2);
	tcase_add_loop_test(t, test_write_that_ends_where_it_may_not_changes_nothing, 0, 2);
	tcase_add_loop_test(t, test_write_past_the_end_of_all_addresses_is_refused, 0, 2);
	tcase_add_loop_test(t, test_pieces_are_all_written_or_none, 0, 2);
	tcase_add_test(t, test_read_ahead_is_short_where_memory_ends);
	tcase_add_test(t, test_threads_of_the_process_belong_to_it_and_others_do_not);
	tcase_add_test(t, test_process_that_has_ended_has_no_thread);
	tcase_add_test(t, test_process_that_has_left_its_memory_to_another_has_no_thread);
	tcase_add_test(t, test_process_that_has_called_exec_is_another);
	tcase_add_test(t, test_descriptors_have_high_numbers_and_end_with_the_last_reference);
	return run_suite("peer", t);
}
