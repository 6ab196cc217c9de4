/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A client queries the device's parse tree (include/uverbsd/abi.h). */
#include <uverbsd/abi.h>
#include "core/core.h"
#include "tests.h"

enum { MAX = 1024 };

static struct uverbsd_tree_row rows[MAX];
static uint32_t num, total;

static int query(uint32_t first, uint32_t row_size, void *to, uint16_t len)
{
	struct uv_tree tree = {};

	uv_attr_in(&tree, UVERBSD_ATTR_TREE_QUERY_FIRST, &first, sizeof(first));
	uv_attr_in(&tree, UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, &row_size, sizeof(row_size));
	uv_attr_out(&tree, UVERBSD_ATTR_TREE_QUERY_ROWS, to, len);
	uv_attr_out(&tree, UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, &num, sizeof(num));
	uv_attr_out(&tree, UVERBSD_ATTR_TREE_QUERY_TOTAL, &total, sizeof(total));
	return harness_ioctl(&h, UVERBSD_OBJECT_TREE, UVERBSD_METHOD_TREE_QUERY, &tree);
}

/* Reads the whole tree into rows, `page` rows a call. */
static uint32_t read_all(uint16_t page)
{
	uint32_t have = 0;

	do {
		ck_assert_int_eq(query(have, sizeof(*rows), rows + have, page * sizeof(*rows)), 0);
		ck_assert_uint_le(total, MAX);
		ck_assert_uint_eq(num, have + page <= total ? page : total - have);
		have += num;
	} while (have < total);
	ck_assert_uint_eq(have, total);
	return have;
}

static const struct uverbsd_tree_row *find(uint8_t kind, const char *name)
{
	for (uint32_t i = 0; i < total; i++)
		if (rows[i].kind == kind && !strcmp(rows[i].name, name))
			return &rows[i];
	ck_abort_msg("%s is not in the tree", name);
	return NULL;
}

struct compare {
	uint32_t at;
};

static int is_next_row(void *arg, const struct uverbsd_tree_row *row)
{
	struct compare *c = arg;

	ck_assert_uint_lt(c->at, total);
	ck_assert_msg(!memcmp(&rows[c->at], row, sizeof(*row)), "row %u is %s and should be %s", c->at,
		      rows[c->at].name, row->name);
	c->at++;
	return 0;
}

START_TEST(test_a_client_reads_the_whole_tree_page_by_page)
{
	static const uint16_t pages[] = { 1, 7, 64, 431 };

	for (unsigned int i = 0; i < UVD_COUNT(pages); i++) {
		struct compare c = {};

		memset(rows, 0xee, sizeof(rows));
		read_all(pages[i]);
		ck_assert_int_eq(uvd_tree_describe(h.dev->trees->plain, is_next_row, &c), 0);
		ck_assert_uint_eq(c.at, total);
		ck_assert_uint_eq(rows[total].kind, 0xee);
	}
}
END_TEST

START_TEST(test_rows_say_what_the_schema_says)
{
	const struct uverbsd_tree_row *r;

	read_all(100);
	r = find(UVERBSD_TREE_OBJECT, "UVERBS_OBJECT_CQ");
	ck_assert_uint_eq(r->id, UVERBS_OBJECT_CQ);
	ck_assert_uint_eq(r->type, UVERBSD_TREE_CLASS_IDR);
	ck_assert_str_eq(r->owner, "common verbs");
	ck_assert_str_eq(r->ucap, "");
	r = find(UVERBSD_TREE_ATTR, "UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL");
	ck_assert_uint_eq(r->object, UVERBS_OBJECT_CQ);
	ck_assert_uint_eq(r->method, UVERBS_METHOD_CQ_CREATE);
	ck_assert_uint_eq(r->id, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	ck_assert_uint_eq(r->type, UVERBSD_TREE_FD);
	ck_assert_uint_eq(r->access, UVERBSD_TREE_READ);
	ck_assert_uint_eq(r->target, UVERBS_OBJECT_COMP_CHANNEL);
	ck_assert_uint_eq(r->flags, 0);
	r = find(UVERBSD_TREE_ATTR, "UVERBS_ATTR_CREATE_CQ_HANDLE");
	ck_assert_uint_eq(r->access, UVERBSD_TREE_NEW);
	ck_assert_uint_eq(r->flags, UVERBSD_TREE_MANDATORY);
	r = find(UVERBSD_TREE_ATTR, "UVERBS_ATTR_CORE_IN");
	ck_assert_uint_eq(r->min_len, 4);
	ck_assert_uint_eq(r->len, UVERBSD_TREE_LEN_ANY);
	r = find(UVERBSD_TREE_COMMAND, "IB_USER_VERBS_CMD_ALLOC_PD");
	ck_assert_uint_eq(r->object, UVERBS_OBJECT_PD);
	ck_assert_uint_eq(r->id, IB_USER_VERBS_CMD_ALLOC_PD);
	ck_assert_uint_eq(r->min_len, sizeof(struct ib_uverbs_alloc_pd));
	ck_assert_uint_eq(r->len, sizeof(struct ib_uverbs_alloc_pd_resp));
	ck_assert_uint_eq(r->flags, UVERBSD_TREE_COMMAND_RESP | UVERBSD_TREE_COMMAND_UDATA);
	/* The tree also has the query method itself. */
	ck_assert_str_eq(find(UVERBSD_TREE_METHOD, "UVERBSD_METHOD_TREE_QUERY")->owner, "uverbsd");
}
END_TEST

START_TEST(test_past_the_end_and_without_room_there_are_no_rows)
{
	uint32_t all = read_all(64);

	memset(rows, 0xee, sizeof(rows));
	ck_assert_int_eq(query(all, sizeof(*rows), rows, sizeof(*rows)), 0);
	ck_assert_uint_eq(num, 0);
	ck_assert_uint_eq(total, all);
	ck_assert_int_eq(query(UINT32_MAX, sizeof(*rows), rows, sizeof(*rows)), 0);
	ck_assert_uint_eq(num, 0);
	ck_assert_int_eq(query(0, sizeof(*rows), rows, sizeof(*rows) - 1), 0);
	ck_assert_uint_eq(num, 0);
	ck_assert_int_eq(query(0, UINT32_MAX, rows, UINT16_MAX), 0);
	ck_assert_uint_eq(num, 0);
	ck_assert_int_eq(query(0, sizeof(*rows), NULL, 0), 0);
	ck_assert_uint_eq(total, all);
	ck_assert_uint_eq(rows[0].kind, 0xee);
}
END_TEST

START_TEST(test_a_client_may_know_a_shorter_or_a_longer_row)
{
	uint8_t bytes[4096];

	memset(bytes, 0xee, sizeof(bytes));
	ck_assert_int_eq(query(0, sizeof(*rows), rows, 2 * sizeof(*rows)), 0);
	ck_assert_int_eq(query(0, 8, bytes, 17), 0);
	ck_assert_uint_eq(num, 2);
	ck_assert_mem_eq(bytes, &rows[0], 8);
	ck_assert_mem_eq(bytes + 8, &rows[1], 8);
	ck_assert_uint_eq(bytes[16], 0xee);
	ck_assert_int_eq(query(0, sizeof(*rows) + 5, bytes, 2 * sizeof(*rows) + 10), 0);
	ck_assert_uint_eq(num, 2);
	ck_assert_mem_eq(bytes, &rows[0], sizeof(*rows));
	for (unsigned int i = 0; i < 5; i++)
		ck_assert_uint_eq(bytes[sizeof(*rows) + i], 0);
	ck_assert_mem_eq(bytes + sizeof(*rows) + 5, &rows[1], sizeof(*rows));
	ck_assert_int_eq(query(0, 0, bytes, sizeof(bytes)), -EINVAL);
}
END_TEST

START_TEST(test_what_is_not_writable_is_efault)
{
	ck_assert_int_eq(query(0, sizeof(*rows), (void *)8, sizeof(*rows)), -EFAULT);
	ck_assert_int_eq(query(0, sizeof(*rows), (void *)8, 60000), -EFAULT);
}
END_TEST

START_TEST(test_after_removal_the_tree_is_gone_with_its_driver)
{
	atomic_store(&h.dev->gone, true);
	ck_assert_int_eq(query(0, sizeof(*rows), rows, sizeof(*rows)), -EIO);
	atomic_store(&h.dev->gone, false);
}
END_TEST

START_TEST(test_words_are_those_of_the_declarations)
{
	ck_assert_str_eq(uvd_tree_type_name(UVERBSD_TREE_PTR_IN), "PTR_IN");
	ck_assert_str_eq(uvd_tree_type_name(UVERBSD_TREE_RAW_FD), "RAW_FD");
	ck_assert_str_eq(uvd_tree_type_name(0), "?");
	ck_assert_str_eq(uvd_tree_type_name(10), "?");
	ck_assert_str_eq(uvd_tree_access_name(UVERBSD_TREE_DESTROY), "DESTROY");
	ck_assert_str_eq(uvd_tree_access_name(4), "?");
	ck_assert_str_eq(uvd_tree_class_name(UVERBSD_TREE_CLASS_FD), "FD");
	ck_assert_str_eq(uvd_tree_class_name(3), "?");
}
END_TEST

TEST_LIST(test_a_client_reads_the_whole_tree_page_by_page, test_rows_say_what_the_schema_says,
	  test_past_the_end_and_without_room_there_are_no_rows, test_a_client_may_know_a_shorter_or_a_longer_row,
	  test_what_is_not_writable_is_efault, test_after_removal_the_tree_is_gone_with_its_driver,
	  test_words_are_those_of_the_declarations)
