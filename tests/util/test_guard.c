/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uvd_guarded_copy(): copies of memory that may be lost meanwhile. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util/util.h"
#include "../suite.h"

enum { PAGE = 4096, SIZE = 16 * PAGE };

static char *map_file(int *fd)
{
	void *at;

	*fd = memfd_create("guard", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(*fd, SIZE), 0);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

/* Repeats the fault: if the first one left its signal blocked, the second would kill the process. */
static void *copy_and_lose(void *unused)
{
	char *bytes = malloc(SIZE), *file;
	int fd;

	file = map_file(&fd);
	for (int i = 0; i < 10; i++) {
		memset(file, i + 1, SIZE);
		ck_assert_int_eq(uvd_guarded_copy(bytes, file, SIZE), 0);
		ck_assert_mem_eq(bytes, file, SIZE);
		ck_assert_int_eq(ftruncate(fd, 3 * PAGE), 0);
		ck_assert_int_eq(uvd_guarded_copy(bytes, file, SIZE), -EFAULT);
		ck_assert_int_eq(uvd_guarded_copy(file, bytes, SIZE), -EFAULT);
		ck_assert_int_eq(uvd_guarded_copy(bytes, file, 3 * PAGE), 0);
		ck_assert_int_eq(ftruncate(fd, SIZE), 0);
	}
	munmap(file, SIZE);
	close(fd);
	free(bytes);
	return NULL;
}

START_TEST(test_a_file_that_is_shorter_is_efault)
{
	ck_assert_int_eq(uvd_guard_start(), 0);
	copy_and_lose(NULL);
}
END_TEST

START_TEST(test_each_thread_has_its_own_fault)
{
	pthread_t threads[4];

	ck_assert_int_eq(uvd_guard_start(), 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, copy_and_lose, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(test_a_thread_that_blocks_all_signals_has_faults)
{
	pthread_t thread;

	ck_assert_int_eq(uvd_guard_start(), 0);
	ck_assert_int_eq(uvd_thread_start(&thread, 0, copy_and_lose, NULL), 0);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(test_signals_are_as_they_were)
{
	sigset_t before, after;

	ck_assert_int_eq(uvd_guard_start(), 0);
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	copy_and_lose(NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	ck_assert_int_eq(sigismember(&after, SIGUSR2), 1);
	ck_assert_int_eq(sigismember(&after, SIGBUS), 0);
	ck_assert_int_eq(sigismember(&after, SIGTERM), 0);
}
END_TEST

/* Under a sanitizer the process may exit with a status instead. */
START_TEST(test_a_fault_of_ours_ends_the_process)
{
	int status, fd;
	pid_t child = fork();

	if (!child) {
		uvd_guard_start();
		copy_and_lose(NULL);
		volatile char *file = map_file(&fd);
		ftruncate(fd, 0);
		*file = 1;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(!WIFEXITED(status) || WEXITSTATUS(status));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("guard");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_a_file_that_is_shorter_is_efault);
	tcase_add_test(t, test_each_thread_has_its_own_fault);
	tcase_add_test(t, test_a_thread_that_blocks_all_signals_has_faults);
	tcase_add_test(t, test_signals_are_as_they_were);
	tcase_add_test(t, test_a_fault_of_ours_ends_the_process);
	return run_suite("util: guard", t);
}
