/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the random programs of fuzzing contain. */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "../suite.h"

enum { PROGRAMS = 500 };

static struct uvd_prog p;
static struct uvd_prog_list list;

/* Counts the programs that have it, of those with the first seeds. */
static unsigned int programs_with(bool (*has)(void))
{
	unsigned int n = 0;

	for (unsigned int seed = 1; seed <= PROGRAMS; seed++) {
		uvd_prog_generate_fuzz(&p, &list, seed);
		n += has();
	}
	return n;
}

static bool call_is(unsigned int i, enum uvd_prog_front front, const char *target)
{
	return i < p.num_calls && p.calls[i].front == front && !strncmp(p.calls[i].target, target, strlen(target));
}

static bool has_device_closed_beside_a_call(void)
{
	for (unsigned int i = 1; i < p.num_calls; i++)
		if (call_is(i, UVD_PROG_CLOSE, UVD_PROG_DEVICE) && p.calls[i - 1].beside &&
		    p.calls[i - 1].front <= UVD_PROG_METHOD)
			return true;
	return false;
}

static bool has_call_after_the_close(void)
{
	bool closed = false;

	for (unsigned int i = 0; i < p.num_calls; i++) {
		if (closed && p.calls[i].front <= UVD_PROG_METHOD)
			return true;
		closed |= call_is(i, UVD_PROG_CLOSE, UVD_PROG_DEVICE);
	}
	return false;
}

static bool has_channel_closed_beside_a_call(void)
{
	for (unsigned int i = 1; i < p.num_calls; i++)
		if (call_is(i, UVD_PROG_CLOSE, "channel") && p.calls[i - 1].beside)
			return true;
	return false;
}

static bool has_async_file_closed(void)
{
	for (unsigned int i = 0; i < p.num_calls; i++)
		if (call_is(i, UVD_PROG_CLOSE, "context") || call_is(i, UVD_PROG_CLOSE, "async"))
			return true;
	return false;
}

static bool has_event_after_a_receive(void)
{
	bool received = false;

	for (unsigned int i = 0; i < p.num_calls; i++) {
		received |= p.calls[i].front == UVD_PROG_RECV;
		if (received && call_is(i, UVD_PROG_EVENT, "channel"))
			return true;
	}
	return false;
}

START_TEST(test_programs_close_the_device_while_other_threads_make_calls)
{
	ck_assert_uint_ge(programs_with(has_device_closed_beside_a_call), PROGRAMS / 50);
	ck_assert_uint_ge(programs_with(has_call_after_the_close), PROGRAMS / 50);
}
END_TEST

START_TEST(test_programs_close_channels_and_async_files)
{
	ck_assert_uint_ge(programs_with(has_channel_closed_beside_a_call), PROGRAMS / 50);
	ck_assert_uint_ge(programs_with(has_async_file_closed), PROGRAMS / 50);
}
END_TEST

START_TEST(test_programs_read_the_events_of_their_completions)
{
	ck_assert_uint_ge(programs_with(has_event_after_a_receive), PROGRAMS / 50);
}
END_TEST

/* The attribute of the method that destroys, as item. Returns false if no program of the first seeds gives it. */
static bool some_program_asks(const struct uvd_method_row *row)
{
	for (unsigned int seed = 1; seed <= PROGRAMS; seed++) {
		uvd_prog_generate_fuzz(&p, &list, seed);
		for (unsigned int i = 0; i < p.num_calls; i++)
			if (call_is(i, UVD_PROG_METHOD, uvd_shape_method_name(row)))
				return true;
	}
	return false;
}

START_TEST(test_programs_destroy_by_every_method_that_can)
{
	struct uvd_shape_method ref;
	unsigned int destroy = 0;

	for (unsigned int i = 0; uvd_shape_method_at(i, &ref); i++) {
		if (!uvd_shape_method_end(ref.row))
			continue;
		destroy++;
		ck_assert_msg(some_program_asks(ref.row), "%s", ref.row->name);
	}
	ck_assert_uint_ge(destroy, 10);
}
END_TEST

START_TEST(test_the_same_seed_makes_the_same_program)
{
	static struct uvd_prog again;

	uvd_prog_generate_fuzz(&p, &list, 7);
	uvd_prog_generate_fuzz(&again, &list, 7);
	ck_assert_mem_eq(&p, &again, sizeof(p));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("generate");

	tcase_add_test(t, test_programs_close_the_device_while_other_threads_make_calls);
	tcase_add_test(t, test_programs_close_channels_and_async_files);
	tcase_add_test(t, test_programs_read_the_events_of_their_completions);
	tcase_add_test(t, test_programs_destroy_by_every_method_that_can);
	tcase_add_test(t, test_the_same_seed_makes_the_same_program);
	return run_suite("random programs", t);
}
