/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows. */
#include <infiniband/verbs.h>
#include "abi.h"

/* The fronts of these verbs, which have no extended commands. */
static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };

START_TEST(test_mw_01_type_is_looked_at_after_the_pd)
{
	int fd = open_context(NULL);
	uint32_t pd, mw, rkey;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect(uv_alloc_mw(fd, _i, 99, 0, &mw, &rkey), ENOENT);
	expect(uv_alloc_mw(fd, _i, pd, 0, &mw, &rkey), EINVAL);
	expect(uv_alloc_mw(fd, _i, pd, 3, &mw, &rkey), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

START_TEST(test_mw_alloc_and_dealloc)
{
	enum uv_front front = fronts[_i] == UV_METHOD ? UV_WRITE : fronts[_i];
	uint32_t pd, mw[2], rkey[2];
	int fd = open_context(NULL);

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_alloc_mw(fd, front, pd, IBV_MW_TYPE_1, &mw[0], &rkey[0]));
	expect_ok(uv_alloc_mw(fd, front, pd, IBV_MW_TYPE_2, &mw[1], &rkey[1]));
	ck_assert_uint_eq(mw[0], 1);
	ck_assert_uint_eq(mw[1], 2);
	ck_assert_uint_ne(rkey[0], rkey[1]);
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect(uv_dealloc_mw(fd, fronts[_i], pd), EINVAL);
	for (int i = 0; i < 2; i++)
		expect_ok(uv_dealloc_mw(fd, fronts[_i], mw[i]));
	expect(uv_dealloc_mw(fd, fronts[_i], mw[0]), ENOENT);
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

TCase *case_mw(void)
{
	TCase *tc = tcase_create("mw");

	tcase_add_loop_test(tc, test_mw_01_type_is_looked_at_after_the_pd, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_mw_alloc_and_dealloc, 0, UV_ARRAY_SIZE(fronts));
	return tc;
}
