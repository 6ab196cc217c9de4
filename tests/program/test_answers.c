/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Do two devices give one call the same answer? */
#include <string.h>

#include "program/program.h"
#include "../suite.h"

static struct uvd_prog_list list;
static struct uvd_prog_numbers numbers;
static struct uvd_prog_answers answers;

static bool value_of_none(const void *of, const char *name, uint64_t *value)
{
	return false;
}

static void setup(void)
{
	answers = (struct uvd_prog_answers){
		.list = &list,
		.numbers = &numbers,
		.asked = { .call = "CREATE_CQ", .front = "write", .value = value_of_none },
	};
	ck_assert(uvd_prog_list_add(&list, "| numbers | * | qpn lkey key | * | * | | chosen by the driver |"));
	ck_assert(uvd_prog_list_add(&list, "| size | CREATE_CQ | cqe caps | 0x10 | * | cqe=16 | rounds up |"));
}

static void teardown(void)
{
	uvd_prog_list_free(&list);
	uvd_prog_numbers_clear(&numbers);
}

static struct uvd_prog_output output_of(const char *name, enum uvd_role role, uint64_t theirs, uint64_t ours)
{
	return (struct uvd_prog_output){
		.name = name, .role = role, .equal = theirs == ours, .is_number = true, .theirs = theirs, .ours = ours
	};
}

static bool outputs_agree(const char *name, enum uvd_role role, uint64_t theirs, uint64_t ours)
{
	const struct uvd_prog_output o = output_of(name, role, theirs, ours);

	return uvd_prog_outputs_agree(&answers, &o);
}

static bool numbers_agree(const char *name, enum uvd_role role, uint64_t theirs, uint64_t ours)
{
	const struct uvd_prog_output o = output_of(name, role, theirs, ours);

	return uvd_prog_numbers_agree(&answers, &o);
}

START_TEST(test_an_output_is_compared_if_the_devices_share_what_its_role_needs)
{
	static const unsigned int shared[] = { UVD_SAME_DRIVER, UVD_SAME_PEERS, UVD_SAME_MACHINE };

	for (unsigned int role = 0; role < UVD_ROLES; role++) {
		const unsigned int needs = uvd_role_needs(role);

		answers.same = 0;
		ck_assert_msg(outputs_agree("x", role, 1, 2) == !!needs, "%s", uvd_role_name(role));
		ck_assert(outputs_agree("x", role, 2, 2));
		for (unsigned int i = 0; i < UVD_COUNT(shared); i++) {
			answers.same = shared[i];
			ck_assert_msg(outputs_agree("x", role, 1, 2) == !!(needs & ~shared[i]), "%s",
				      uvd_role_name(role));
		}
	}
}
END_TEST

/* The conditions of a row can ask for the output's own value. */
START_TEST(test_a_listed_difference_is_none_on_the_sides_that_the_row_names)
{
	struct uvd_prog_output o = output_of("flags", UVD_ROLE_NUMBER, 3, 4);

	ck_assert(outputs_agree("cqe", UVD_ROLE_NUMBER, 16, 31));
	ck_assert(!outputs_agree("cqe", UVD_ROLE_NUMBER, 31, 16));
	ck_assert(!outputs_agree("other", UVD_ROLE_NUMBER, 16, 31));
	answers.ours_is_kernel = true;
	ck_assert(outputs_agree("cqe", UVD_ROLE_NUMBER, 31, 16));
	ck_assert(!outputs_agree("cqe", UVD_ROLE_NUMBER, 16, 31));
	ck_assert_uint_eq(list.rows[1].hits, 2);
	ck_assert(!uvd_prog_outputs_agree(&answers, &o));
	ck_assert(uvd_prog_list_add(&list, "| struct | CREATE_CQ | caps | 0x4 | 0x3 | | why |"));
	ck_assert(!uvd_prog_outputs_agree(&answers, &o));
	o.outer = "caps";
	ck_assert(uvd_prog_outputs_agree(&answers, &o));
	answers.list = NULL;
	ck_assert(!uvd_prog_outputs_agree(&answers, &o));
}
END_TEST

START_TEST(test_results_agree_if_they_are_equal_or_listed)
{
	ck_assert(uvd_prog_list_add(&list, "| result | CREATE_CQ | result | EINVAL | ok | failed | why |"));
	ck_assert(uvd_prog_results_agree(&answers, true, "ok", "ok"));
	ck_assert(!uvd_prog_results_agree(&answers, false, "EINVAL", "ok"));
	answers.asked.failed = true;
	ck_assert(uvd_prog_results_agree(&answers, false, "EINVAL", "ok"));
	ck_assert(!uvd_prog_results_agree(&answers, false, "ok", "EINVAL"));
	answers.ours_is_kernel = true;
	ck_assert(uvd_prog_results_agree(&answers, false, "ok", "EINVAL"));
}
END_TEST

/* Whatever its name is, and whatever the list says: a plug-in's is not in the list. */
START_TEST(test_a_call_that_gives_numbers_binds_them)
{
	answers.gives = true;
	answers.of.handle = 1;
	ck_assert(numbers_agree("ticket", UVD_ROLE_RKEY, 10, 100));
	answers.of.handle = 2;
	ck_assert(!numbers_agree("ticket", UVD_ROLE_RKEY, 11, 100));
	ck_assert(!numbers_agree("key", UVD_ROLE_RKEY, 10, 101));
	answers.races = true;
	ck_assert(numbers_agree("ticket", UVD_ROLE_RKEY, 11, 100));
}
END_TEST

static void bind(enum uvd_role role, uint64_t theirs, uint64_t ours)
{
	answers.gives = true;
	ck_assert(numbers_agree("x", role, theirs, ours));
	answers.gives = false;
}

/* In a trace. A number of no object stands for itself. */
START_TEST(test_a_complete_table_knows_each_number)
{
	answers.complete = true;
	bind(UVD_ROLE_QPN, 10, 100);
	for (unsigned int own = 0; own < 2; own++) {
		const char *name = own ? "qpn" : "dest_qp_num";

		ck_assert(numbers_agree(name, UVD_ROLE_QPN, 10, 100));
		ck_assert(!numbers_agree(name, UVD_ROLE_QPN, 10, 10));
		ck_assert(!numbers_agree(name, UVD_ROLE_QPN, 10, 101));
		ck_assert(numbers_agree(name, UVD_ROLE_QPN, 12, 12));
		ck_assert(!numbers_agree(name, UVD_ROLE_QPN, 12, 13));
	}
}
END_TEST

/* In a program: the first answer of an own number is taken for it, and another number can be a literal one. */
START_TEST(test_a_table_that_is_not_complete_knows_what_contradicts_it)
{
	bind(UVD_ROLE_QPN, 10, 100);
	ck_assert(numbers_agree("qpn", UVD_ROLE_QPN, 10, 100));
	ck_assert(!numbers_agree("qpn", UVD_ROLE_QPN, 10, 10));
	ck_assert(!numbers_agree("qpn", UVD_ROLE_QPN, 12, 100));
	ck_assert(numbers_agree("qpn", UVD_ROLE_QPN, 12, 13));
	ck_assert(numbers_agree("dest_qp_num", UVD_ROLE_QPN, 10, 100));
	ck_assert(numbers_agree("dest_qp_num", UVD_ROLE_QPN, 10, 10));
	ck_assert(!numbers_agree("dest_qp_num", UVD_ROLE_QPN, 10, 101));
	ck_assert(!numbers_agree("dest_qp_num", UVD_ROLE_QPN, 12, 13));
}
END_TEST

/* The list accepts every number that a driver chooses, but not in the place of a known one. */
START_TEST(test_only_a_number_of_no_own_object_can_be_listed)
{
	ck_assert(uvd_prog_list_add(&list, "| all | CREATE_CQ | * | * | * | | why |"));
	bind(UVD_ROLE_LKEY, 10, 100);
	ck_assert(!numbers_agree("lkey", UVD_ROLE_LKEY, 10, 101));
	ck_assert(numbers_agree("peer", UVD_ROLE_LKEY, 10, 101));
}
END_TEST

/* As where no output has a role: an event has the number of a CQ. */
START_TEST(test_a_chosen_number_without_a_role_stands_for_the_other_later)
{
	ck_assert(!outputs_agree("x", UVD_ROLE_UNKNOWN, 50, 60));
	ck_assert(outputs_agree("key", UVD_ROLE_UNKNOWN, 50, 60));
	ck_assert(outputs_agree("x", UVD_ROLE_UNKNOWN, 50, 60));
	ck_assert(!outputs_agree("x", UVD_ROLE_UNKNOWN, 50, 61));
	/* A trace has the roles of all its numbers. */
	answers.complete = true;
	ck_assert(!outputs_agree("x", UVD_ROLE_UNKNOWN, 50, 60));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("answers");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_an_output_is_compared_if_the_devices_share_what_its_role_needs);
	tcase_add_test(t, test_a_listed_difference_is_none_on_the_sides_that_the_row_names);
	tcase_add_test(t, test_results_agree_if_they_are_equal_or_listed);
	tcase_add_test(t, test_a_call_that_gives_numbers_binds_them);
	tcase_add_test(t, test_a_complete_table_knows_each_number);
	tcase_add_test(t, test_a_table_that_is_not_complete_knows_what_contradicts_it);
	tcase_add_test(t, test_only_a_number_of_no_own_object_can_be_listed);
	tcase_add_test(t, test_a_chosen_number_without_a_role_stands_for_the_other_later);
	return run_suite("program: answers of two devices", t);
}
