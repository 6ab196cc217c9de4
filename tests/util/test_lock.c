/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <signal.h>
#include "util/util.h"
#include "../suite.h"

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
	TCase *t = tcase_create("lock");

#ifndef NDEBUG
	tcase_add_test_raise_signal(t, test_memory_of_a_client_is_not_waited_for_with_a_shared_lock, SIGABRT);
#endif
	return run_suite("util lock", t);
}
