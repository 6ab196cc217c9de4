/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pairs of numbers that two devices chose for the same objects. */
#include "program/numbers.h"
#include "../suite.h"

enum { FIRST = 1, SECOND }; /* handles of the objects that have the numbers */

static struct uvd_prog_numbers numbers;

static bool binds(uint64_t kernel, uint64_t ours, uint64_t owner)
{
	return uvd_prog_numbers_bind(&numbers, "lkey", kernel, ours, owner);
}

START_TEST(test_two_objects_do_not_have_one_number_on_either_side)
{
	ck_assert(binds(10, 100, FIRST));
	ck_assert(!binds(10, 101, SECOND));
	ck_assert(!binds(11, 100, SECOND));
	ck_assert(binds(11, 101, SECOND));
	/* Another kind of number has numbers of its own. */
	ck_assert(uvd_prog_numbers_bind(&numbers, "qpn", 10, 102, FIRST));
}
END_TEST

START_TEST(test_a_number_that_was_refused_stands_for_nothing)
{
	ck_assert(binds(10, 100, FIRST));
	ck_assert(!binds(10, 101, SECOND));
	ck_assert(!uvd_prog_numbers_has(&numbers, 10, 101));
	ck_assert(binds(12, 101, SECOND));
}
END_TEST

START_TEST(test_a_query_answers_the_number_that_the_object_has)
{
	ck_assert(binds(10, 100, FIRST));
	ck_assert(uvd_prog_numbers_check(&numbers, "lkey", 10, 100));
	ck_assert(!uvd_prog_numbers_check(&numbers, "lkey", 10, 101));
	ck_assert(!uvd_prog_numbers_check(&numbers, "lkey", 11, 100));
	ck_assert(uvd_prog_numbers_check(&numbers, "lkey", 11, 101)); /* of an object that no call has shown */
}
END_TEST

START_TEST(test_a_number_is_free_after_its_object)
{
	ck_assert(binds(10, 100, FIRST));
	uvd_prog_numbers_end(&numbers, SECOND);
	ck_assert(!binds(10, 101, SECOND));
	uvd_prog_numbers_end(&numbers, FIRST);
	ck_assert(binds(10, 101, SECOND));
	uvd_prog_numbers_end(&numbers, UVD_PROG_NUMBERS_ALL);
	ck_assert(binds(10, 102, FIRST));
	/* An answer can still have the old number. */
	ck_assert(uvd_prog_numbers_has(&numbers, 10, 100));
}
END_TEST

START_TEST(test_0_is_no_number_and_a_noted_one_is_taken_by_nobody)
{
	ck_assert(binds(0, 100, FIRST));
	ck_assert(binds(0, 101, SECOND));
	uvd_prog_numbers_note(&numbers, "lkey", 20, 200);
	ck_assert(uvd_prog_numbers_has(&numbers, 20, 200));
	ck_assert(binds(20, 201, FIRST));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("numbers");

	tcase_add_test(t, test_two_objects_do_not_have_one_number_on_either_side);
	tcase_add_test(t, test_a_number_that_was_refused_stands_for_nothing);
	tcase_add_test(t, test_a_query_answers_the_number_that_the_object_has);
	tcase_add_test(t, test_a_number_is_free_after_its_object);
	tcase_add_test(t, test_0_is_no_number_and_a_noted_one_is_taken_by_nobody);
	return run_suite("numbers of programs", t);
}
