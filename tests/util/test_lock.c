/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <signal.h>
#include "util/util.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

START_TEST(test_memory_of_a_client_is_not_waited_for_with_a_shared_lock)
{
	uvd_might_fault();
	uvd_lock(&lock);
	uvd_unlock(&lock);
	uvd_might_fault();
	uvd_lock(&lock);
	uvd_might_fault();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("util lock");
	TCase *t = tcase_create("lock");
	SRunner *r = srunner_create(s);
	int failed;

#ifndef NDEBUG
	tcase_add_test_raise_signal(t, test_memory_of_a_client_is_not_waited_for_with_a_shared_lock, SIGABRT);
#endif
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
