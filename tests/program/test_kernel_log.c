/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The reader of the kernel's log, on a pipe that returns one record a read, as /dev/kmsg does. */
#include "program/kernel_log.h"
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../suite.h"

enum { PIPE_SIZE = 1 << 20 }; /* a page for each record */

static struct uvd_kernel_log kernel_log;
static int ends[2];

static void make_log(void)
{
	char path[32];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_DIRECT), 0);
	ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE), PIPE_SIZE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	ck_assert_int_eq(uvd_kernel_log_open(&kernel_log, path), 0);
}

static void remove_log(void)
{
	uvd_kernel_log_close(&kernel_log);
	close(ends[0]);
	close(ends[1]);
}

/* The kernel's record of a line, with the lines that name a device. */
static void say(const char *text)
{
	char record[2048];
	int len = snprintf(record, sizeof(record), "4,812,5140900,-,caller=T7;%s\n SUBSYSTEM=infiniband\n", text);

	ck_assert_int_eq(write(ends[1], record, len), len);
}

/* Lines with which reports of Linux begin, and the beginning of each in the table. */
static const char *const reports[][2] = {
	{ "BUG: KASAN: slab-use-after-free in ib_uverbs_write+0x1/0x2", "BUG:" },
	{ "BUG: kernel NULL pointer dereference, address: 0000000000000008", "BUG:" },
	{ "BUG kmalloc-64 (Not tainted): Poison overwritten", "BUG " },
	{ "WARNING: CPU: 1 PID: 7 at drivers/infiniband/core/rdma_core.c:42 f+0x1/0x2", "WARNING:" },
	{ "WARNING: possible circular locking dependency detected", "WARNING:" },
	{ "UBSAN: shift-out-of-bounds in drivers/infiniband/core/umem.c:5:1", "UBSAN:" },
	{ "Oops: 0000 [#1] PREEMPT SMP KASAN", "Oops" },
	{ "general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
	  "general protection fault" },
	{ "kernel BUG at mm/slub.c:435!", "kernel BUG at" },
	{ "INFO: task uverbsctl:7 blocked for more than 120 seconds.", "INFO: task" },
	{ "INFO: rcu_preempt detected stalls on CPUs/tasks:", "INFO: rcu" },
	{ "rcu: INFO: rcu_preempt self-detected stall on CPU", "rcu: INFO:" },
	{ "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [uverbsctl:7]", "watchdog: BUG:" },
	{ "refcount_t: underflow; use-after-free.", "refcount_t:" },
	{ "kmemleak: unreferenced object 0xffff888104f0d000 (size 64):", "kmemleak: unreferenced object" },
};

START_TEST(test_a_record_that_begins_as_a_report_does_is_one)
{
	make_log();
	say("rdma_rxe: loaded");
	say(reports[_i][0]);
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_pstr_eq(kernel_log.begins, reports[_i][1]);
	ck_assert_str_eq(kernel_log.report, reports[_i][0]);
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_msg(!kernel_log.begins, "a report is found once");
	remove_log();
}
END_TEST

START_TEST(test_other_records_are_no_report)
{
	static const char *const others[] = {
		"rdma_rxe: max_sge(-1) > max_srq_sge(27)",
		"[Firmware Bug]: TSC not synchronous to P0",
		"systemd[1]: x.service: BUG: it says so",
		"kmemleak: Kernel memory leak detector initialized",
		"INFO: lockdep is turned off.",
		"DEBUG: nothing",
		"",
	};

	make_log();
	for (unsigned int i = 0; i < sizeof(others) / sizeof(*others); i++) {
		say(others[i]);
		uvd_kernel_log_look(&kernel_log, 0);
		ck_assert_msg(!kernel_log.begins, "%s", others[i]);
	}
	ck_assert_int_eq(write(ends[1], "BUG: no record", 14), 14);
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_ptr_null(kernel_log.begins);
	remove_log();
}
END_TEST

START_TEST(test_a_report_is_kept_with_the_lines_around_it)
{
	char copy[] = "/tmp/uverbsd-kernel-log-XXXXXX", text[256];
	int fd = mkstemp(copy);
	ssize_t len;

	make_log();
	say("------------[ cut here ]------------");
	say("WARNING: CPU: 1");
	say("Call Trace:");
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_int_eq(uvd_kernel_log_write(&kernel_log, copy), 0);
	len = read(fd, text, sizeof(text) - 1);
	ck_assert_int_gt(len, 0);
	text[len] = 0;
	ck_assert_str_eq(text, "------------[ cut here ]------------\nWARNING: CPU: 1\nCall Trace:\n");
	close(fd);
	unlink(copy);
	ck_assert_int_eq(uvd_kernel_log_write(&kernel_log, "/tmp/uverbsd/no/such/folder"), -ENOENT);
	remove_log();
}
END_TEST

START_TEST(test_a_look_waits_for_a_report_that_comes_late)
{
	enum { LONG = 3600000, LATE_US = 20000 };
	pid_t child;

	make_log();
	child = fork();
	if (!child) {
		usleep(LATE_US);
		say("BUG: late");
		_exit(0);
	}
	uvd_kernel_log_look(&kernel_log, LONG);
	ck_assert_str_eq(kernel_log.report, "BUG: late");
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	remove_log();
}
END_TEST

START_TEST(test_a_report_behind_many_records_has_room)
{
	char line[1024] = "";

	make_log();
	memset(line, 'x', sizeof(line) - 1);
	for (int i = 0; i < 100; i++)
		say(line);
	say("BUG: late");
	for (int i = 0; i < 100; i++)
		say(line);
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_str_eq(kernel_log.report, "BUG: late");
	ck_assert_uint_le(kernel_log.len, sizeof(kernel_log.lines));
	ck_assert_ptr_nonnull(
		memmem(kernel_log.lines, sizeof(kernel_log.lines) / 2 + sizeof(line), "\nBUG: late\nxxx", 14));
	remove_log();
}
END_TEST

START_TEST(test_what_the_log_already_has_is_ignored)
{
	static const char old[] = "3,1,1,-;BUG: old\n", new[] = "3,2,2,-;BUG: new\n";
	char file[] = "/tmp/uverbsd-kernel-log-XXXXXX";
	int fd = mkstemp(file);

	ck_assert_int_eq(write(fd, old, strlen(old)), strlen(old));
	ck_assert_int_eq(uvd_kernel_log_open(&kernel_log, file), 0);
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_ptr_null(kernel_log.begins);
	ck_assert_int_eq(write(fd, new, strlen(new)), strlen(new));
	uvd_kernel_log_look(&kernel_log, 0);
	ck_assert_str_eq(kernel_log.report, "BUG: new");
	uvd_kernel_log_close(&kernel_log);
	close(fd);
	unlink(file);
	ck_assert_int_eq(uvd_kernel_log_open(&kernel_log, file), -ENOENT);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("kernel log");

	tcase_add_loop_test(t, test_a_record_that_begins_as_a_report_does_is_one, 0,
			    sizeof(reports) / sizeof(*reports));
	tcase_add_test(t, test_other_records_are_no_report);
	tcase_add_test(t, test_a_report_is_kept_with_the_lines_around_it);
	tcase_add_test(t, test_a_look_waits_for_a_report_that_comes_late);
	tcase_add_test(t, test_a_report_behind_many_records_has_room);
	tcase_add_test(t, test_what_the_log_already_has_is_ignored);
	return run_suite("kernel log", t);
}
