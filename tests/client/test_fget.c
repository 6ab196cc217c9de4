/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uvd_caller_fget() accepts a descriptor as proof that the client could open the file, so it refuses O_PATH. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "../suite.h"

/* Descriptor numbers in the client. */
enum { OPENED = 200, BY_PATH, DUPLICATE, CLOSED, SWAPPED };

static char secret[] = "/tmp/uverbsd-test-fget-XXXXXX", other[] = "/tmp/uverbsd-test-fget-XXXXXX";
static atomic_bool *swapping;

static void hold_files(void *arg)
{
	dup2(open(secret, O_RDONLY), OPENED);
	dup2(open(secret, O_PATH), BY_PATH);
	dup2(OPENED, DUPLICATE);
	tell(0);
	listen_for_order();
}

/* The same number is in turn an O_PATH descriptor of the secret and an ordinary one of another file. */
static void swap_files(void *arg)
{
	int path = open(secret, O_PATH), own = open(other, O_RDONLY);

	dup2(path, SWAPPED);
	tell(0);
	while (*swapping) {
		dup2(own, SWAPPED);
		dup2(path, SWAPPED);
	}
}

static void make_files(void)
{
	close(mkstemp(secret));
	close(mkstemp(other));
}

static void remove_files(void)
{
	unlink(secret);
	unlink(other);
}

START_TEST(test_opened_file_is_seen_and_one_by_o_path_is_ebadf)
{
	struct child child;
	struct stat mine, st;
	struct uvd_caller c;

	ck_assert(!stat(secret, &mine));
	if (_i)
		drop_rights(); /* the child can then open the secret, of root and mode 0600, only with O_PATH */
	child = child_start(hold_files, NULL);
	c = caller_of(child.pid);
	child_says(&child);
	if (!_i) {
		ck_assert_int_eq(uvd_caller_fget(&c, OPENED, &st), 0);
		ck_assert(st.st_ino == mine.st_ino && st.st_dev == mine.st_dev);
		ck_assert_int_eq(uvd_caller_fget(&c, DUPLICATE, &st), 0);
		ck_assert_uint_eq(st.st_ino, mine.st_ino);
	}
	ck_assert_int_eq(uvd_caller_fstat(&c, BY_PATH, &st), 0);
	ck_assert_int_eq(uvd_caller_fget(&c, BY_PATH, &st), -EBADF);
	ck_assert_int_eq(uvd_caller_fget(&c, CLOSED, &st), -EBADF);
	ck_assert_int_eq(uvd_caller_fget(&c, -1, &st), -EBADF);
	child_end(&child);
}
END_TEST

START_TEST(test_own_descriptors_are_judged_alike)
{
	struct uvd_caller c = { .mem = &uvd_mem_self, .proc = &uvd_proc_local, .tid = getpid(), .memfd = -1 };
	struct stat st;

	ck_assert_int_eq(uvd_caller_fget(&c, open(secret, O_RDONLY | O_CLOEXEC), &st), 0);
	ck_assert_int_eq(uvd_caller_fget(&c, open(secret, O_PATH | O_CLOEXEC), &st), -EBADF);
	ck_assert_int_eq(uvd_caller_fget(&c, 987, &st), -EBADF);
}
END_TEST

START_TEST(test_files_that_change_places_prove_nothing)
{
	const int rounds = suite_is_long() ? 1000000 : 30000;
	unsigned int changed = 0, seen = 0;
	struct stat mine, st;
	struct child child;
	struct uvd_caller c;

	ck_assert(!stat(secret, &mine));
	swapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*swapping = true;
	child = child_start(swap_files, NULL);
	c = caller_of(child.pid);
	child_says(&child);
	for (int i = 0; i < rounds; i++) {
		if (uvd_caller_fget(&c, SWAPPED, &st)) {
			changed++;
			continue;
		}
		ck_assert_uint_ne(st.st_ino, mine.st_ino);
		seen++;
	}
	*swapping = false;
	ck_assert(changed && seen);
	child_end(&child);
}
END_TEST

/* fd/N leads to /sys, fdinfo/N is that of /proc, as if the client had replaced the descriptor in between. */
static int open_as_sys(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return strncmp(name, "fd/", 3) ? uvd_proc_local.open(proc, tid, name, flags) : open("/sys", flags | O_CLOEXEC);
}

START_TEST(test_files_of_two_mounts_with_one_inode_number_are_two)
{
	struct uvd_proc swapped = { .open = open_as_sys };
	struct uvd_caller c = caller_of(getpid());
	int fd = open("/proc", O_RDONLY | O_CLOEXEC);
	struct stat proc, sys, st;

	ck_assert(!fstat(fd, &proc) && !stat("/sys", &sys) && proc.st_ino == sys.st_ino && proc.st_dev != sys.st_dev);
	ck_assert_int_eq(uvd_caller_fget(&c, fd, &st), 0);
	c.proc = &swapped;
	ck_assert_int_eq(uvd_caller_fget(&c, fd, &st), -EBADF);
}
END_TEST

START_TEST(test_caller_out_of_reach_or_dead_has_no_descriptors)
{
	struct uvd_caller c = caller_of(0);
	struct child child;
	struct stat st;

	ck_assert_int_eq(uvd_caller_fget(&c, 0, &st), -EBADF);
	child = child_start(hold_files, NULL);
	c = caller_of(child.pid);
	child_says(&child);
	child_end(&child);
	ck_assert_int_lt(uvd_caller_fget(&c, OPENED, &st), 0);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("fget");
	TCase *t = tcase_create("fget");

	tcase_set_timeout(t, 120);
	tcase_add_unchecked_fixture(t, make_files, remove_files); /* before rights are dropped: /tmp is sticky */
	tcase_add_loop_test(t, test_opened_file_is_seen_and_one_by_o_path_is_ebadf, 0, 2);
	tcase_add_test(t, test_own_descriptors_are_judged_alike);
	tcase_add_test(t, test_files_that_change_places_prove_nothing);
	tcase_add_test(t, test_files_of_two_mounts_with_one_inode_number_are_two);
	tcase_add_test(t, test_caller_out_of_reach_or_dead_has_no_descriptors);
	suite_add_tcase(s, t);
	return run_client_tests(argc, argv, s);
}
