/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The contents of the random programs of fuzzing. */
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

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Returns the field that an item of a command names, or NULL: it is no field. */
static const struct uvd_shape_field *item_field(const struct uvd_shape_command *c, const char *item)
{
	char name[UVD_PROG_MAX_ITEM];

	snprintf(name, sizeof(name), "%s", item);
	name[strcspn(name, "=")] = 0;
	for (unsigned int f = 0; f < c->in.n; f++)
		if (!strcmp(c->in.f[f].name, name))
			return &c->in.f[f];
	return NULL;
}

static void items_have_words(const struct uvd_prog_call *call, const struct uvd_shape_command *c)
{
	bool ends = false;

	for (unsigned int n = 0; n < call->num_items; n++) {
		const struct uvd_shape_field *f = item_field(c, call->items[n]);

		ck_assert_msg(!f || f->good, "%s: %s", c->name, call->items[n]);
		ends |= f && f->field->ends;
	}
	ck_assert_msg(ends == !!c->ends, "%s names no object to destroy", c->name);
}

START_TEST(test_programs_give_fields_that_have_words_and_the_object_to_destroy)
{
	for (unsigned int seed = 1; seed <= PROGRAMS; seed++) {
		uvd_prog_generate_fuzz(&p, &list, seed);
		for (unsigned int i = 0; i < p.num_calls; i++)
			if (p.calls[i].front <= UVD_PROG_INVOKE)
				items_have_words(&p.calls[i], uvd_shape_command(p.calls[i].target));
	}
}
END_TEST

/* Counts the commands that make a QP which says that it has an SRQ, after an SRQ was made; and those that name one. */
static void srqs_count(unsigned int *flags, unsigned int *both)
{
	bool made = false;

	for (unsigned int i = 0; i < p.num_calls; i++) {
		const struct uvd_prog_call *call = &p.calls[i];
		const char *srq = uvd_prog_item(call, "srq_handle");

		if (made && uvd_prog_item(call, "is_srq")) {
			++*flags;
			*both += srq && !strncmp(srq, "srq", 3);
		}
		made |= !strncmp(call->label, "srq", 3);
	}
}

START_TEST(test_a_handle_comes_with_the_flag_that_selects_it)
{
	unsigned int flags = 0, both = 0;

	for (unsigned int seed = 1; seed <= 10 * PROGRAMS; seed++) {
		uvd_prog_generate(&p, &list, seed);
		srqs_count(&flags, &both);
	}
	ck_assert_uint_ge(flags, 20);
	ck_assert_msg(both >= flags * 2 / 3, "%u of %u", both, flags);
}
END_TEST

/* Has it a method that creates without the room that rxe requires? */
static bool has_creation_without_room(void)
{
	static const struct {
		const char *method, *room;
	} rooms[] = { { "CQ_CREATE", "16" }, { "QP_CREATE", "32" }, { "SRQ_CREATE", "24" } };

	for (unsigned int i = 0; i < p.num_calls; i++)
		for (unsigned int n = 0; n < UVD_COUNT(rooms); n++) {
			const char *room = uvd_prog_item(&p.calls[i], "uhw_out");

			if (call_is(i, UVD_PROG_METHOD, rooms[n].method) && (!room || strcmp(room, rooms[n].room)))
				return true;
		}
	return false;
}

static bool has_creation(void)
{
	for (unsigned int i = 0; i < p.num_calls; i++)
		if (call_is(i, UVD_PROG_METHOD, "CQ_CREATE") || call_is(i, UVD_PROG_METHOD, "QP_CREATE") ||
		    call_is(i, UVD_PROG_METHOD, "SRQ_CREATE"))
			return true;
	return false;
}

START_TEST(test_methods_that_create_have_room_for_driver_data)
{
	ck_assert_uint_gt(programs_with(has_creation), 30);
	ck_assert_uint_lt(programs_with(has_creation_without_room), programs_with(has_creation) / 4);
}
END_TEST

/* Does a call use the PD that a call before it has destroyed? Some do, as the destruction can fail. */
static bool has_use_of_a_dead_pd(void)
{
	for (unsigned int i = 0; i < p.num_calls; i++) {
		const char *pd =
			call_is(i, UVD_PROG_WRITE, "DEALLOC_PD") ? uvd_prog_item(&p.calls[i], "pd_handle") : NULL;

		for (unsigned int j = i + 1; pd && !strncmp(pd, "pd", 2) && j < p.num_calls; j++) {
			const char *again = uvd_prog_item(&p.calls[j], "pd_handle");

			if (again && !strcmp(again, pd))
				return true;
		}
	}
	return false;
}

/* The generator that does not destroy on purpose what is destroyed. */
START_TEST(test_programs_forget_an_object_that_they_destroy)
{
	unsigned int dead = 0;

	for (unsigned int seed = 1; seed <= PROGRAMS; seed++) {
		uvd_prog_generate(&p, &list, seed);
		dead += has_use_of_a_dead_pd();
	}
	ck_assert_uint_eq(dead, 0);
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
	tcase_add_test(t, test_programs_give_fields_that_have_words_and_the_object_to_destroy);
	tcase_add_test(t, test_a_handle_comes_with_the_flag_that_selects_it);
	tcase_add_test(t, test_methods_that_create_have_room_for_driver_data);
	tcase_add_test(t, test_programs_forget_an_object_that_they_destroy);
	tcase_add_test(t, test_the_same_seed_makes_the_same_program);
	return run_suite("random programs", t);
}
