/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl replay: a number of the device belongs to one object at a time, and stands for the recorded one. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay/replay.h"
#include "../suite.h"

enum { FIRST = 5, SECOND = 6 }; /* recorded handles */

static struct uvd_replay r;
static struct uvd_replay_file file, other_file;
static struct uvd_trace_open client;
static struct uvd_trace_decoded was;
static struct uvd_replay_call call;

static void setup(void)
{
	r = (struct uvd_replay){};
	file = (struct uvd_replay_file){ .file = 1 };
	other_file = (struct uvd_replay_file){ .file = 2 };
	client = (struct uvd_trace_open){};
	was = (struct uvd_trace_decoded){ .open = &client };
	call = (struct uvd_replay_call){ .r = &r, .f = &file, .was = &was };
}

static void teardown(void)
{
	uvd_prog_numbers_clear(&r.numbers);
}

/* Is `now` the answer to a call that gives its object no number, where the trace has `was`? */
static bool number_is(enum uvd_role role, uint64_t was, uint64_t now)
{
	const struct uvd_prog_answers a = uvd_replay_answers(&call);
	const struct uvd_prog_output o = {
		.name = uvd_role_name(role), .role = role, .is_number = true, .theirs = was, .ours = now
	};

	return uvd_prog_numbers_agree(&a, &o);
}

START_TEST(test_two_objects_that_exist_do_not_have_one_number)
{
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 100, 7, FIRST));
	ck_assert(!uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 101, 7, SECOND));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_RKEY, 101, 7, SECOND)); /* another kind */
}
END_TEST

START_TEST(test_the_number_of_an_object_that_is_gone_is_free)
{
	const uint32_t first = FIRST, second = SECOND;

	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_QPN, 100, 7, FIRST));
	uvd_replay_numbers_end(&r, file.file, &second);
	uvd_replay_numbers_end(&r, other_file.file, &first);
	ck_assert(!uvd_replay_number_bind(&call, UVD_ROLE_QPN, 101, 7, SECOND));
	uvd_replay_numbers_end(&r, file.file, NULL);
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_QPN, 102, 7, FIRST));
	uvd_replay_numbers_end(&r, file.file, &first);
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_QPN, 103, 7, SECOND));
}
END_TEST

START_TEST(test_a_number_is_the_one_that_stands_for_the_recorded_one)
{
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 100, 7, FIRST));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 7, 100, SECOND));
	ck_assert(number_is(UVD_ROLE_LKEY, 100, 7));
	ck_assert(number_is(UVD_ROLE_LKEY, 7, 100));
	ck_assert(!number_is(UVD_ROLE_LKEY, 100, 100));
	ck_assert(!number_is(UVD_ROLE_LKEY, 100, 8));
	ck_assert(!number_is(UVD_ROLE_LKEY, 99, 7));
	ck_assert(number_is(UVD_ROLE_LKEY, 99, 99)); /* of no object of the trace */
}
END_TEST

/* A region without remote access can have the rkey 0, on one of the devices or on both. */
START_TEST(test_several_objects_can_have_the_number_0)
{
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_RKEY, 0, 7, FIRST));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_RKEY, 0, 8, SECOND));
	ck_assert(number_is(UVD_ROLE_RKEY, 0, 7));
	ck_assert(number_is(UVD_ROLE_RKEY, 0, 8));
	ck_assert(!number_is(UVD_ROLE_RKEY, 0, 9));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_RKEY, 100, 0, FIRST));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_RKEY, 101, 0, SECOND));
	ck_assert(number_is(UVD_ROLE_RKEY, 100, 0));
}
END_TEST

/* A trace can lack the call that destroyed the object: records can be lost. */
START_TEST(test_a_number_that_the_recorded_device_uses_again_is_its_new_objects)
{
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 100, 7, FIRST));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 100, 8, SECOND));
	ck_assert(number_is(UVD_ROLE_LKEY, 100, 8));
	ck_assert(!number_is(UVD_ROLE_LKEY, 100, 7));
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 101, 7, FIRST));
}
END_TEST

START_TEST(test_a_number_that_two_objects_have_stands_for_both_recorded_ones)
{
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 100, 7, FIRST));
	ck_assert(!uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 101, 7, SECOND));
	ck_assert_uint_eq(uvd_replay_number(&call, UVD_ROLE_LKEY, 100), 7);
	ck_assert_uint_eq(uvd_replay_number(&call, UVD_ROLE_LKEY, 101), 7);
}
END_TEST

START_TEST(test_each_device_has_numbers_of_its_own)
{
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 100, 7, FIRST));
	client.file.number = 1;
	ck_assert(uvd_replay_number_bind(&call, UVD_ROLE_LKEY, 101, 7, SECOND));
	ck_assert_uint_eq(uvd_replay_number(&call, UVD_ROLE_LKEY, 100), 100);
}
END_TEST

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(test_a_descriptor_is_closed_with_its_file_or_when_its_number_is_used_again)
{
	const int first = dup(STDERR_FILENO), second = dup(STDERR_FILENO), other = dup(STDERR_FILENO);

	uvd_replay_learn(&call, UVD_ROLE_FD, 100, first);
	ck_assert_uint_eq(uvd_replay_number(&call, UVD_ROLE_FD, 100), (uint64_t)first);
	uvd_replay_learn(&call, UVD_ROLE_FD, 100, second);
	ck_assert(!is_open(first));
	call.f = &other_file;
	ck_assert_uint_eq(uvd_replay_number(&call, UVD_ROLE_FD, 100), 100);
	uvd_replay_learn(&call, UVD_ROLE_FD, 100, other);
	uvd_replay_forget(&r, file.file);
	ck_assert(!is_open(second));
	ck_assert(is_open(other));
	uvd_replay_forget(&r, other_file.file);
	ck_assert(!is_open(other));
}
END_TEST

START_TEST(test_a_call_on_an_object_that_was_not_created_again_is_not_made)
{
	uint64_t now;

	uvd_replay_learn_lost(&call, UVD_ROLE_HANDLE, 3);
	ck_assert(!uvd_replay_number_known(&call, UVD_ROLE_HANDLE, 3, &now));
	uvd_replay_number(&call, UVD_ROLE_HANDLE, 3);
	ck_assert_ptr_nonnull(call.skip);
	call.skip = NULL;
	uvd_replay_learn(&call, UVD_ROLE_HANDLE, 3, 4);
	ck_assert_uint_eq(uvd_replay_number(&call, UVD_ROLE_HANDLE, 3), 4);
	ck_assert_ptr_null(call.skip);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("numbers");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_two_objects_that_exist_do_not_have_one_number);
	tcase_add_test(tc, test_the_number_of_an_object_that_is_gone_is_free);
	tcase_add_test(tc, test_a_number_is_the_one_that_stands_for_the_recorded_one);
	tcase_add_test(tc, test_several_objects_can_have_the_number_0);
	tcase_add_test(tc, test_a_number_that_the_recorded_device_uses_again_is_its_new_objects);
	tcase_add_test(tc, test_a_number_that_two_objects_have_stands_for_both_recorded_ones);
	tcase_add_test(tc, test_each_device_has_numbers_of_its_own);
	tcase_add_test(tc, test_a_descriptor_is_closed_with_its_file_or_when_its_number_is_used_again);
	tcase_add_test(tc, test_a_call_on_an_object_that_was_not_created_again_is_not_made);
	return run_suite("trace numbers", tc);
}
