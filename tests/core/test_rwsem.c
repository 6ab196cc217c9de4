/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/rwsem.h"
#include "../suite.h"

static struct uvd_rwsem sem;
static atomic_int step;

static void *write_and_say(void *arg)
{
	atomic_store(&step, 1);
	uvd_rwsem_write(&sem);
	atomic_store(&step, 2);
	return NULL;
}

static void *read_and_say(void *arg)
{
	uvd_rwsem_read(&sem);
	atomic_store(&step, 3);
	uvd_rwsem_read_done(&sem);
	return NULL;
}

/* Waits until a writer waits: it has then made the count negative. */
static void until_writer_waits(void)
{
	while (atomic_load(&sem.count) >= 0)
		sched_yield();
}

START_TEST(test_a_waiting_writer_keeps_new_readers_out)
{
	pthread_t writer;

	uvd_rwsem_read(&sem);
	ck_assert(uvd_rwsem_try_read(&sem));
	pthread_create(&writer, NULL, write_and_say, NULL);
	until_writer_waits();
	ck_assert(!uvd_rwsem_try_read(&sem));
	uvd_rwsem_read_done(&sem);
	usleep(10000);
	ck_assert_int_eq(atomic_load(&step), 1);
	uvd_rwsem_read_done(&sem);
	pthread_join(writer, NULL);
	ck_assert_int_eq(atomic_load(&step), 2);
	ck_assert(!uvd_rwsem_try_read(&sem));
	uvd_rwsem_write_done(&sem); /* by another thread than the one that locked it */
	ck_assert(uvd_rwsem_try_read(&sem));
	uvd_rwsem_read_done(&sem);
}
END_TEST

START_TEST(test_a_reader_waits_for_the_writer)
{
	pthread_t reader;

	uvd_rwsem_write(&sem);
	pthread_create(&reader, NULL, read_and_say, NULL);
	usleep(10000);
	ck_assert_int_eq(atomic_load(&step), 0);
	uvd_rwsem_write_done(&sem);
	pthread_join(reader, NULL);
	ck_assert_int_eq(atomic_load(&step), 3);
}
END_TEST

/* ---- readers and writers in parallel ----------------------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = 3000 };

static long written; /* changed only under the write lock */
static atomic_long seen;

static void *mixed(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 8 == (int)(intptr_t)arg) {
			uvd_rwsem_write(&sem);
			written++;
			uvd_rwsem_write_done(&sem);
		} else if (i % 2) {
			uvd_rwsem_read(&sem);
			atomic_fetch_add(&seen, written >= 0);
			uvd_rwsem_read_done(&sem);
		} else if (uvd_rwsem_try_read(&sem)) {
			atomic_fetch_add(&seen, written >= 0);
			uvd_rwsem_read_done(&sem);
		}
	}
	return NULL;
}

START_TEST(test_writers_are_alone)
{
	pthread_t t[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, mixed, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert_int_eq(written, THREADS * (ROUNDS / 8));
	ck_assert_int_eq(atomic_load(&sem.count), 0);
}
END_TEST

static void setup(void)
{
	uvd_rwsem_init(&sem);
	atomic_store(&step, 0);
}

static void teardown(void)
{
	uvd_rwsem_fini(&sem);
}

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_a_waiting_writer_keeps_new_readers_out);
	tcase_add_test(tc, test_a_reader_waits_for_the_writer);
	tcase_add_test(tc, test_writers_are_alone);
	return run_suite("rwsem", tc);
}
