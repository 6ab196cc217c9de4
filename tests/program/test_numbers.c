/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pairs of numbers that two devices chose for the same objects. */
#include <string.h>
#include "program/numbers.h"
#include "../suite.h"

enum { FIRST = 1, SECOND }; /* handles of the objects that have the numbers */

static struct uvd_prog_numbers numbers;

static void clear(void)
{
	uvd_prog_numbers_clear(&numbers);
}

static struct uvd_prog_number pair_of(enum uvd_role kind, uint64_t kernel, uint64_t ours, uint64_t handle)
{
	return (struct uvd_prog_number){ .kind = kind, .theirs = kernel, .ours = ours, .of.handle = handle };
}

static bool binds_of(enum uvd_role kind, uint64_t kernel, uint64_t ours, uint64_t owner)
{
	const struct uvd_prog_number pair = pair_of(kind, kernel, ours, owner);

	return uvd_prog_numbers_bind(&numbers, &pair);
}

static bool binds(uint64_t kernel, uint64_t ours, uint64_t owner)
{
	return binds_of(UVD_ROLE_LKEY, kernel, ours, owner);
}

static bool checks(uint64_t kernel, uint64_t ours)
{
	return uvd_prog_numbers_check(&numbers, UVD_ROLE_LKEY, 0, kernel, ours);
}

static void ends(uint64_t handle)
{
	uvd_prog_numbers_end(&numbers, (struct uvd_prog_object){ .handle = handle });
}

static const struct uvd_prog_number *found(enum uvd_role kind, uint64_t scope, uint64_t kernel)
{
	return uvd_prog_numbers_find(&numbers, kind, scope, kernel);
}

START_TEST(test_two_objects_do_not_have_one_number_on_either_side)
{
	ck_assert(binds(10, 100, FIRST));
	ck_assert(!binds(10, 101, SECOND));
	ck_assert(!binds(11, 100, SECOND));
	ck_assert(binds(11, 101, SECOND));
	/* Another kind of number has numbers of its own. */
	ck_assert(binds_of(UVD_ROLE_QPN, 10, 102, FIRST));
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
	ck_assert(checks(10, 100));
	ck_assert(!checks(10, 101));
	ck_assert(!checks(11, 100));
	ck_assert(checks(11, 101)); /* of an object that no call has shown */
}
END_TEST

START_TEST(test_a_number_is_free_after_its_object)
{
	ck_assert(binds(10, 100, FIRST));
	ends(SECOND);
	ck_assert(!binds(10, 101, SECOND));
	ends(FIRST);
	ck_assert(binds(10, 101, SECOND));
	ends(UVD_PROG_ALL_OBJECTS);
	ck_assert(binds(10, 102, FIRST));
	/* An answer can still have the old number. */
	ck_assert(uvd_prog_numbers_has(&numbers, 10, 100));
}
END_TEST

START_TEST(test_0_is_no_number_and_a_noted_one_is_taken_by_nobody)
{
	struct uvd_prog_number noted = pair_of(UVD_ROLE_LKEY, 20, 200, FIRST);

	ck_assert(binds(0, 100, FIRST));
	ck_assert(binds(0, 101, SECOND));
	noted.state = UVD_PROG_NUMBER_GONE;
	uvd_prog_numbers_note(&numbers, &noted);
	ck_assert(uvd_prog_numbers_has(&numbers, 20, 200));
	ck_assert(binds(20, 201, FIRST));
}
END_TEST

START_TEST(test_the_newest_pair_of_a_number_is_found_in_its_scope)
{
	struct uvd_prog_number pair = pair_of(UVD_ROLE_FD, 5, 50, FIRST);

	pair.state = UVD_PROG_NUMBER_GONE;
	uvd_prog_numbers_note(&numbers, &pair);
	pair.ours = 51;
	uvd_prog_numbers_note(&numbers, &pair);
	pair.scope = 1;
	pair.ours = 52;
	uvd_prog_numbers_note(&numbers, &pair);
	ck_assert_uint_eq(found(UVD_ROLE_FD, 0, 5)->ours, 51);
	ck_assert_uint_eq(found(UVD_ROLE_FD, 1, 5)->ours, 52);
	ck_assert_ptr_null(found(UVD_ROLE_FD, 2, 5));
	ck_assert_ptr_null(found(UVD_ROLE_LKEY, 0, 5));
	uvd_prog_numbers_forget(&numbers, UVD_ROLE_FD, 0);
	ck_assert_ptr_null(found(UVD_ROLE_FD, 0, 5));
	ck_assert_uint_eq(found(UVD_ROLE_FD, 1, 5)->ours, 52);
}
END_TEST

START_TEST(test_a_forgotten_number_is_free)
{
	ck_assert(binds(10, 100, FIRST));
	uvd_prog_numbers_forget(&numbers, UVD_ROLE_LKEY, 0);
	ck_assert(!uvd_prog_numbers_are_bound(&numbers, UVD_ROLE_LKEY, 0, 10, 100));
	ck_assert(binds(10, 101, SECOND));
	ck_assert(binds(11, 100, FIRST));
}
END_TEST

START_TEST(test_a_number_that_the_other_device_uses_again_is_free_on_both_sides)
{
	ck_assert(binds(10, 100, FIRST));
	ck_assert(binds(11, 101, FIRST));
	uvd_prog_numbers_reuse(&numbers, UVD_ROLE_LKEY, 0, 10);
	ck_assert(!uvd_prog_numbers_are_bound(&numbers, UVD_ROLE_LKEY, 0, 10, 100));
	ck_assert(uvd_prog_numbers_are_bound(&numbers, UVD_ROLE_LKEY, 0, 11, 101));
	ck_assert(binds(10, 102, SECOND));
	ck_assert(binds(12, 100, SECOND));
	/* 0 belongs to nobody. */
	ck_assert(binds(0, 103, FIRST));
	uvd_prog_numbers_reuse(&numbers, UVD_ROLE_LKEY, 0, 0);
	ck_assert(uvd_prog_numbers_are_bound(&numbers, UVD_ROLE_LKEY, 0, 0, 103));
}
END_TEST

START_TEST(test_objects_of_another_file_keep_their_numbers)
{
	struct uvd_prog_number pair = pair_of(UVD_ROLE_LKEY, 10, 100, FIRST);

	pair.of.file = 1;
	ck_assert(uvd_prog_numbers_bind(&numbers, &pair));
	ends(FIRST);
	ends(UVD_PROG_ALL_OBJECTS);
	ck_assert(!binds(11, 100, FIRST));
	uvd_prog_numbers_end(&numbers, (struct uvd_prog_object){ 1, FIRST });
	ck_assert(binds(11, 100, FIRST));
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
	tcase_add_test(t, test_the_newest_pair_of_a_number_is_found_in_its_scope);
	tcase_add_test(t, test_a_forgotten_number_is_free);
	tcase_add_test(t, test_a_number_that_the_other_device_uses_again_is_free_on_both_sides);
	tcase_add_test(t, test_objects_of_another_file_keep_their_numbers);
	tcase_add_checked_fixture(t, NULL, clear);
	return run_suite("numbers of programs", t);
}
