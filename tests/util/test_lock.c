/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util/util.h"
#include "../suite.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A child calls it: what ended the child? */
static int signal_of_might_fault(void)
{
	const pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		uvd_might_fault();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(test_memory_of_a_client_is_not_waited_for_with_a_shared_lock)
{
#ifdef NDEBUG
	SKIP("a build with NDEBUG does not check it");
#endif
	ck_assert_int_eq(signal_of_might_fault(), 0);
	uvd_lock(&lock);
	ck_assert_int_eq(signal_of_might_fault(), SIGABRT);
	uvd_unlock(&lock);
	ck_assert_int_eq(signal_of_might_fault(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("lock");

	tcase_add_test(t, test_memory_of_a_client_is_not_waited_for_with_a_shared_lock);
	return run_suite("util lock", t);
}
