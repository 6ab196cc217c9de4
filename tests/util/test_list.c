/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lists. */
#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include "util/util.h"
#include "../suite.h"

struct item {
	int number;
	struct list_head of_list;
};

static struct list_head list;
static struct item items[4] = { { 0 }, { 1 }, { 2 }, { 3 } };

static void setup(void)
{
	INIT_LIST_HEAD(&list);
}

static void add_all(void)
{
	for (int i = 0; i < 4; i++)
		list_add_tail(&items[i].of_list, &list);
}

/* Checks that the list has these items, forwards and backwards. They end with -1. */
static void has(int first, ...)
{
	struct list_head *back = &list;
	struct item *item;
	int number = first;
	va_list ap;

	va_start(ap, first);
	list_for_each_entry(item, &list, of_list) {
		ck_assert_int_eq(item->number, number);
		ck_assert_ptr_eq(item->of_list.prev, back);
		back = &item->of_list;
		number = va_arg(ap, int);
	}
	va_end(ap);
	ck_assert_int_eq(number, -1);
	ck_assert_ptr_eq(list.prev, back);
	ck_assert_int_eq(list_empty(&list), first == -1);
}

START_TEST(test_new_list_is_empty)
{
	has(-1);
}
END_TEST

START_TEST(test_member_is_added_after_another_or_at_either_end)
{
	list_add(&items[1].of_list, &list);
	has(1, -1);
	list_add(&items[0].of_list, &list);
	has(0, 1, -1);
	list_add_tail(&items[3].of_list, &list);
	has(0, 1, 3, -1);
	list_add(&items[2].of_list, &items[1].of_list);
	has(0, 1, 2, 3, -1);
	ck_assert_int_eq(list_first_entry(&list, struct item, of_list)->number, 0);
	ck_assert_int_eq(list_last_entry(&list, struct item, of_list)->number, 3);
}
END_TEST

START_TEST(test_member_is_removed_at_either_end_and_between)
{
	add_all();
	list_del_init(&items[2].of_list);
	has(0, 1, 3, -1);
	list_del_init(&items[0].of_list);
	has(1, 3, -1);
	list_del_init(&items[3].of_list);
	has(1, -1);
	list_del_init(&items[1].of_list);
	has(-1);
}
END_TEST

START_TEST(test_removed_member_is_a_list_of_its_own_and_can_be_removed_again)
{
	add_all();
	list_del_init(&items[1].of_list);
	ck_assert(list_empty(&items[1].of_list));
	list_del_init(&items[1].of_list);
	has(0, 2, 3, -1);
	list_add(&items[1].of_list, &list);
	has(1, 0, 2, 3, -1);
}
END_TEST

START_TEST(test_loop_goes_on_after_it_has_removed_and_freed_its_member)
{
	struct item *item, *next;
	int n = 0;

	for (int i = 0; i < 4; i++) {
		item = malloc(sizeof(*item));
		item->number = i;
		list_add_tail(&item->of_list, &list);
	}
	list_for_each_entry_safe(item, next, &list, of_list) {
		ck_assert_int_eq(item->number, n++);
		list_del_init(&item->of_list);
		memset(item, 0xff, sizeof(*item));
		free(item);
	}
	ck_assert_int_eq(n, 4);
	has(-1);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, test_new_list_is_empty);
	tcase_add_test(tc, test_member_is_added_after_another_or_at_either_end);
	tcase_add_test(tc, test_member_is_removed_at_either_end_and_between);
	tcase_add_test(tc, test_removed_member_is_a_list_of_its_own_and_can_be_removed_again);
	tcase_add_test(tc, test_loop_goes_on_after_it_has_removed_and_freed_its_member);
	return run_suite("list", tc);
}
