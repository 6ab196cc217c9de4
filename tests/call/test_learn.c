/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tables of calls as rows of the tree query, and back. */
#include <stdlib.h>
#include <string.h>
#include <uverbsd/abi.h>

#include "call/call.h"
#include "../suite.h"

static const struct uvd_word words[] = { { "ONE", 1 }, { "TWO", 2 }, {} };
static const struct uvd_words flags = { "some_flags", "SOME_", true, words };
static const struct uvd_field fields[] = {
	{ .name = "mask", .at = 8, .size = 4, .role = UVD_ROLE_FLAGS, .words = &flags },
	{ .name = "thing",
	  .at = 12,
	  .size = 4,
	  .role = UVD_ROLE_HANDLE,
	  .object = 0x1100,
	  .or_object = 0x1101,
	  .ends = true },
	{ .name = "start",
	  .at = 16,
	  .size = 8,
	  .role = UVD_ROLE_ADDRESS,
	  .beside = 4,
	  .selector = 1,
	  .select_flags = 2 },
	{ .name = "length",
	  .at = 24,
	  .size = 8,
	  .role = UVD_ROLE_NUMBER,
	  .big = true,
	  .selector = 1,
	  .select_values = 6 },
	{ .name = "count", .at = 32, .size = 2, .role = UVD_ROLE_COUNT, .array = "things" },
	{}
};
static const struct uvd_field reserved[] = {
	{ .name = "reserved", .at = 34, .size = 1, .count = 6, .role = UVD_ROLE_RESERVED }, {}
};
static const struct uvd_struct request = { .name = "request",
					   .size = 40,
					   .fields = fields,
					   .tail = "things",
					   .tail_role = UVD_ROLE_HANDLE,
					   .tail_object = 0x1100,
					   .reserved = reserved };
static const struct uvd_field value_fields[] = { { .name = "gid", .size = 1, .count = 16, .role = UVD_ROLE_GID }, {} };
static const struct uvd_struct value = { .name = "value", .size = 16, .fields = value_fields };
static const struct uverbsd_tree_row command_row = {
	.kind = UVERBSD_TREE_COMMAND, .flags = UVERBSD_TREE_COMMAND_EX, .object = 0x1100, .id = 200, .name = "COMMAND"
};
static const struct uverbsd_tree_row attr_row = {
	.kind = UVERBSD_TREE_ATTR, .object = 0x1100, .method = 0x1100, .id = 0x1101, .name = "ATTR"
};

static const struct uverbsd_tree_row address_row = {
	.kind = UVERBSD_TREE_ATTR, .object = 0x1100, .method = 0x1100, .id = 0x1102, .name = "ADDRESS"
};

static int learn_row(void *arg, const struct uverbsd_tree_role *row)
{
	return uvd_learned_add(arg, row);
}

static struct uvd_learned *learned(void)
{
	struct uvd_learned *l = uvd_learned_new();
	const struct uvd_command_fields command = { "COMMAND", &request, NULL };
	const struct uvd_attr_fields attr = { "ATTR", UVD_ROLE_STRUCT, &value },
				     address = { "ADDRESS", UVD_ROLE_ADDRESS, .beside = "LENGTH" };

	ck_assert_ptr_nonnull(l);
	ck_assert_int_eq(uvd_command_describe(&command_row, &command, learn_row, l), 0);
	ck_assert_int_eq(uvd_value_describe(&attr_row, &attr, learn_row, l), 0);
	ck_assert_int_eq(uvd_value_describe(&address_row, &address, learn_row, l), 0);
	return l;
}

static void is_field(const struct uvd_field *a, const struct uvd_field *b)
{
	ck_assert_str_eq(a->name, b->name);
	ck_assert(a->at == b->at && a->size == b->size && a->count == b->count && a->role == b->role);
	ck_assert(a->object == b->object && a->or_object == b->or_object && a->beside == b->beside);
	ck_assert(a->selector == b->selector && a->select_flags == b->select_flags &&
		  a->select_values == b->select_values);
	ck_assert(a->big == b->big && a->makes == b->makes && a->ends == b->ends && a->optional == b->optional &&
		  a->renews == b->renews);
	ck_assert(!a->array == !b->array && (!a->array || !strcmp(a->array, b->array)));
	ck_assert(!a->words == !b->words);
}

START_TEST(test_what_is_told_is_learned)
{
	struct uvd_learned *l = learned();
	const struct uvd_command_fields *c;
	const struct uvd_struct *of;
	const struct uvd_attr_fields *a;

	ck_assert_int_eq(uvd_learned_finish(l), 0);
	c = uvd_learned_command(l, &command_row);
	ck_assert_ptr_nonnull(c);
	of = c->request;
	for (unsigned int i = 0; i < 6; i++)
		if (fields[i].name)
			is_field(&of->fields[i], &fields[i]);
		else
			ck_assert_ptr_null(of->fields[i].name);
	is_field(&of->reserved[0], &reserved[0]);
	ck_assert(of->size == 40 && !strcmp(of->tail, "things") && of->tail_role == UVD_ROLE_HANDLE &&
		  of->tail_object == 0x1100);
	ck_assert(of->fields[0].words->flags && !strcmp(of->fields[0].words->words[1].name, "TWO") &&
		  of->fields[0].words->words[1].value == 2 && !of->fields[0].words->words[2].name);
	ck_assert_ptr_eq(c->response, &uvd_no_struct);
	a = uvd_learned_attr(l, &attr_row);
	ck_assert(a && a->role == UVD_ROLE_STRUCT && a->of->size == 16 && a->of->fields[0].role == UVD_ROLE_GID);
	a = uvd_learned_attr(l, &address_row);
	ck_assert(a && a->role == UVD_ROLE_ADDRESS && !strcmp(a->beside, "LENGTH"));
	uvd_learned_free(l);
}
END_TEST

START_TEST(test_a_row_of_which_nothing_was_told_has_nothing)
{
	struct uvd_learned *l = learned();
	struct uverbsd_tree_row other = command_row;

	ck_assert_int_eq(uvd_learned_finish(l), 0);
	other.flags = 0;
	ck_assert_ptr_null(uvd_learned_command(l, &other)); /* the plain command of this number */
	other = attr_row;
	other.method++;
	ck_assert_ptr_null(uvd_learned_attr(l, &other));
	ck_assert_ptr_null(uvd_learned_attr(NULL, &attr_row));
	uvd_learned_free(l);
}
END_TEST

static struct uverbsd_tree_role rows[64];
static unsigned int num_rows;

static int keep_row(void *arg, const struct uverbsd_tree_role *row)
{
	rows[num_rows++] = *row;
	return 0;
}

/* Rows of anybody: whatever is in them, the tables can be used. */
static void learn_wrong(unsigned int seed)
{
	struct uvd_learned *l = uvd_learned_new();
	const struct uvd_command_fields *c;

	srand(seed);
	for (unsigned int i = 0; i < num_rows; i++) {
		struct uverbsd_tree_role row = rows[i];

		if (rand() % 8 == 0)
			continue;
		if (rand() % 3 == 0)
			((uint8_t *)&row)[rand() % 48] = rand();
		if (rand() % 16 == 0)
			memset(row.name, 'x', sizeof(row.name));
		ck_assert_int_eq(uvd_learned_add(l, &row), 0);
	}
	ck_assert_int_eq(uvd_learned_finish(l), 0);
	c = uvd_learned_command(l, &command_row);
	for (const struct uvd_field *f = c ? c->request->fields : uvd_no_struct.fields; f->name; f++) {
		uint8_t data[UINT16_MAX] = {};

		ck_assert(uvd_field_end(f) <= c->request->size && f->role < UVD_ROLES && strlen(f->name) < 64);
		uvd_field_is_read(c->request, f, data, sizeof(data));
		if (f->role == UVD_ROLE_ADDRESS || f->role == UVD_ROLE_AT)
			ck_assert_ptr_nonnull(uvd_field_beside(c->request, f));
		if (!f->count)
			uvd_field_get(f, data);
	}
	uvd_learned_free(l);
}

START_TEST(test_rows_that_make_no_sense_are_left_out)
{
	const struct uvd_command_fields command = { "COMMAND", &request, &value };
	const struct uvd_attr_fields attr = { "ATTR", UVD_ROLE_STRUCT, &value };

	num_rows = 0;
	ck_assert_int_eq(uvd_command_describe(&command_row, &command, keep_row, NULL), 0);
	ck_assert_int_eq(uvd_value_describe(&attr_row, &attr, keep_row, NULL), 0);
	for (unsigned int seed = 0; seed < 20000; seed++)
		learn_wrong(seed);
}
END_TEST

static struct uvd_field renewing[] = {
	{ .name = "thing",
	  .size = 4,
	  .role = UVD_ROLE_HANDLE,
	  .object = 0x1100,
	  .or_object = UVD_NO_OBJECT,
	  .renews = true },
	{ .name = "other", .at = 4, .size = 4, .role = UVD_ROLE_HANDLE, .object = 0x1100, .or_object = UVD_NO_OBJECT },
	{}
};
static const struct uvd_struct renewing_request = { .name = "renewing", .size = 8, .fields = renewing };

START_TEST(test_the_object_that_a_command_renews_is_learned)
{
	const struct uvd_command_fields command = { "COMMAND", &renewing_request, NULL };
	struct uvd_learned *l = uvd_learned_new();

	num_rows = 0;
	ck_assert_int_eq(uvd_command_describe(&command_row, &command, keep_row, NULL), 0);
	for (unsigned int i = 0; i < num_rows; i++)
		ck_assert_int_eq(uvd_learned_add(l, &rows[i]), 0);
	ck_assert_int_eq(uvd_learned_finish(l), 0);
	is_field(&uvd_learned_command(l, &command_row)->request->fields[0], &renewing[0]);
	is_field(&uvd_learned_command(l, &command_row)->request->fields[1], &renewing[1]);
	uvd_learned_free(l);
}
END_TEST

START_TEST(test_a_command_renews_one_object_of_its_request)
{
	char why[UVD_CALL_WHY];

	ck_assert(uvd_struct_check(&renewing_request, UVD_CALL_REQUEST, 8, why));
	ck_assert(!uvd_struct_check(&renewing_request, UVD_CALL_RESPONSE, 8, why));
	ck_assert_str_eq(why, "field thing: what a command renews is a handle in its request");
	renewing[1].ends = true;
	ck_assert(!uvd_struct_check(&renewing_request, UVD_CALL_REQUEST, 8, why));
	ck_assert_str_eq(why, "struct renewing makes, ends or renews more than one object");
	renewing[1].ends = false;
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("learn");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_what_is_told_is_learned);
	tcase_add_test(t, test_a_row_of_which_nothing_was_told_has_nothing);
	tcase_add_test(t, test_the_object_that_a_command_renews_is_learned);
	tcase_add_test(t, test_a_command_renews_one_object_of_its_request);
	tcase_add_test(t, test_rows_that_make_no_sense_are_left_out);
	return run_suite("call learn", t);
}
