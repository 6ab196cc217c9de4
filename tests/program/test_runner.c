/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The order of what happens to calls that are made one by one, and at the same time. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program/runner.h"
#include "../suite.h"

/* The events so far: each is a letter and the number of its call. */
static char told[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int at_once; /* each call waits until as many have begun */
static atomic_int begun;
static atomic_int ready; /* threads that wait for each other */
static atomic_int released; /* calls with an odd number wait for it */

struct call {
	struct uvd_prog_step step;
	int number;
};

static void tell(char what, int number)
{
	pthread_mutex_lock(&lock);
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%c%d ", what, number);
	pthread_mutex_unlock(&lock);
}

static void wait_for(atomic_int *value, int least)
{
	for (int ms = 0; *value < least; ms++) {
		ck_assert_int_lt(ms, 20000);
		usleep(1000);
	}
}

static long fake(char what, int fd)
{
	ck_assert_int_eq(ready, at_once); /* no call begins before all of them can */
	begun++;
	wait_for(&begun, at_once);
	if (fd % 2)
		wait_for(&released, 1);
	tell(what, fd);
	errno = ENOTTY;
	return fd == 8 ? -1 : 100 + fd;
}

static ssize_t fake_write(int fd, const void *bytes, size_t len)
{
	ck_assert_str_eq(bytes, "bytes");
	ck_assert_uint_eq(len, 6);
	return fake('w', fd);
}

static int fake_ioctl(int fd, unsigned long cmd, uint64_t arg)
{
	ck_assert_uint_eq(cmd, 5);
	ck_assert_uint_eq(arg, 7);
	return fake('i', fd);
}

static int fake_close(int fd)
{
	return fake('c', fd);
}

static int creations_left; /* the next ones fail */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return creations_left-- > 0 ? __real_pthread_create(thread, attr, fn, arg) : EAGAIN;
}

int __real_pthread_barrier_wait(pthread_barrier_t *barrier);
int __wrap_pthread_barrier_wait(pthread_barrier_t *barrier);

int __wrap_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	ready++;
	return __real_pthread_barrier_wait(barrier);
}

static const struct uvd_prog_node_ops ops = { .write = fake_write, .ioctl = fake_ioctl, .close = fake_close };

static int prepare(struct uvd_prog_step *step)
{
	const struct call *c = (struct call *)step;

	tell('p', c->number);
	return c->number == 9 ? -1 : 0;
}

static void answered(struct uvd_prog_step *step)
{
	const struct call *c = (struct call *)step;

	tell('a', c->number);
	if (c->number % 2 == 0)
		released = 1;
}

static void finish(struct uvd_prog_step *step)
{
	const struct call *c = (struct call *)step;

	tell('f', c->number);
}

static struct call call_of(int number, bool is_ioctl)
{
	return (struct call){
		.step = { .prepare = prepare,
			  .answered = answered,
			  .finish = finish,
			  .fd = number,
			  .call = { .is_ioctl = is_ioctl, .msg = (uint8_t *)"bytes", .len = 6, .cmd = 5, .arg = 7 } },
		.number = number
	};
}

static void setup(void)
{
	told[0] = 0;
	at_once = 0;
	begun = released = ready = 0;
	creations_left = UVD_PROG_MAX_BESIDE;
}

static int run(struct call *calls, unsigned int n)
{
	struct uvd_prog_step *steps[UVD_PROG_MAX_BESIDE];

	for (unsigned int k = 0; k < n; k++)
		steps[k] = &calls[k].step;
	return uvd_prog_steps_run(&ops, steps, n);
}

START_TEST(test_a_call_is_prepared_made_answered_and_finished)
{
	struct call w = call_of(2, false), i = call_of(4, true), c = call_of(6, false);

	c.step.is_close = true;
	ck_assert_int_eq(run(&w, 1) | run(&i, 1) | run(&c, 1), 0);
	ck_assert_str_eq(told, "p2 w2 a2 f2 p4 i4 a4 f4 p6 c6 a6 f6 ");
	ck_assert_int_eq(w.step.result, 102);
	ck_assert_int_eq(i.step.result, 104);
	ck_assert_int_eq(c.step.result, 106);
}
END_TEST

START_TEST(test_a_failed_call_has_its_errno_and_one_without_a_file_is_not_made)
{
	struct call failed = call_of(8, true), none = call_of(2, false);

	none.step.fd = -1;
	ck_assert_int_eq(run(&failed, 1) | run(&none, 1), 0);
	ck_assert_int_eq(failed.step.result, -ENOTTY);
	ck_assert_int_eq(none.step.result, -EBADF);
	ck_assert_str_eq(told, "p8 i8 a8 f8 p2 a2 f2 ");
}
END_TEST

START_TEST(test_calls_are_made_at_the_same_time_and_finished_in_their_order)
{
	struct call calls[] = { call_of(2, false), call_of(4, true), call_of(6, false), call_of(10, true) };
	const char *finished = "f2 f4 f6 f10 ";

	at_once = 4;
	ck_assert_int_eq(run(calls, 4), 0);
	ck_assert_mem_eq(told, "p2 p4 p6 p10 ", 13);
	ck_assert_str_eq(told + strlen(told) - strlen(finished), finished);
	for (int k = 0; k < 4; k++)
		ck_assert_int_eq(calls[k].step.result, 100 + calls[k].number);
}
END_TEST

/* A call that never returns hides no result of one beside it. */
START_TEST(test_a_call_is_answered_before_the_one_beside_it_returns)
{
	struct call calls[] = { call_of(3, false), call_of(4, true) };

	at_once = 2;
	ck_assert_int_eq(run(calls, 2), 0);
	ck_assert_str_eq(told, "p3 p4 i4 a4 w3 a3 f3 f4 ");
}
END_TEST

START_TEST(test_no_call_is_made_if_a_thread_cannot_be_started)
{
	struct call calls[] = { call_of(2, false), call_of(4, true) };

	creations_left = 1;
	ck_assert_int_eq(run(calls, 2), -EAGAIN);
	ck_assert_str_eq(told, "p2 p4 ");
}
END_TEST

START_TEST(test_no_call_is_made_if_one_cannot_be_prepared)
{
	struct call calls[] = { call_of(2, false), call_of(9, true) };

	ck_assert_int_eq(run(calls, 2), -1);
	ck_assert_str_eq(told, "p2 p9 ");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("runner");
	TCase *t = tcase_create("runner");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, test_a_call_is_prepared_made_answered_and_finished);
	tcase_add_test(t, test_a_failed_call_has_its_errno_and_one_without_a_file_is_not_made);
	tcase_add_test(t, test_calls_are_made_at_the_same_time_and_finished_in_their_order);
	tcase_add_test(t, test_a_call_is_answered_before_the_one_beside_it_returns);
	tcase_add_test(t, test_no_call_is_made_if_a_thread_cannot_be_started);
	tcase_add_test(t, test_no_call_is_made_if_one_cannot_be_prepared);
	suite_add_tcase(s, t);
	return run_cases(s);
}
