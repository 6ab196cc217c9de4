/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `limit`. */
#include "bed.h"

enum { PAGE = 4096 };

static uint32_t pd;

static void setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_self);
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
}

static void teardown(void)
{
	harness_close(&h);
}

static int make_pd(uint32_t *handle)
{
	return uv_alloc_pd(h.fd, UV_WRITE, handle);
}

static int make_mr(size_t pages, uint32_t *handle)
{
	static uint8_t mem[8 * PAGE] __attribute__((aligned(PAGE)));
	struct uv_mr mr;
	int ret = uv_reg_mr(h.fd, UV_WRITE, pd, mem, pages * PAGE, IBV_ACCESS_LOCAL_WRITE, &mr);

	*handle = mr.handle;
	return ret;
}

START_TEST(test_objects_beyond_the_limit_are_refused_until_one_goes)
{
	uint32_t one, two, three;

	bed_add("limit:pd=2,errno=EDQUOT");
	ck_assert_int_eq(make_pd(&one), 0);
	ck_assert_int_eq(make_pd(&two), 0);
	ck_assert_int_eq(make_pd(&three), -EDQUOT);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_pd(&three), 0);
	ck_assert_int_eq(make_pd(&one), -EDQUOT);
}
END_TEST

START_TEST(test_what_existed_before_does_not_count)
{
	uint32_t one, two;

	bed_add("limit:pd=1");
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
	ck_assert_int_eq(make_pd(&one), 0);
	ck_assert_int_eq(make_pd(&two), -ENOMEM);
}
END_TEST

START_TEST(test_registered_bytes_are_limited)
{
	uint32_t one, two;

	bed_add("limit:bytes=12K");
	ck_assert_int_eq(make_mr(2, &one), 0);
	ck_assert_int_eq(make_mr(2, &two), -ENOMEM);
	ck_assert_int_eq(make_mr(1, &two), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_mr(3, &one), -ENOMEM);
	ck_assert_int_eq(make_mr(2, &one), 0);
}
END_TEST

/* Gives the region other memory. */
static int remake_mr(uint32_t handle, size_t pages)
{
	static uint8_t other[8 * PAGE] __attribute__((aligned(PAGE)));
	struct ib_uverbs_rereg_mr_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr cmd;
	} c = {
		.hdr = { IB_USER_VERBS_CMD_REREG_MR, sizeof(c) / 4, sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp,
			 .mr_handle = handle,
			 .flags = IBV_REREG_MR_CHANGE_TRANSLATION,
			 .start = (uintptr_t)other,
			 .length = pages * PAGE,
			 .hca_va = (uintptr_t)other },
	};

	return uv_write(h.fd, &c, sizeof(c));
}

START_TEST(test_a_region_that_changes_counts_with_its_new_length)
{
	uint32_t one, two;

	bed_add("limit:bytes=16K");
	ck_assert_int_eq(make_mr(1, &one), 0);
	ck_assert_int_eq(remake_mr(one, 5), -ENOMEM);
	ck_assert_int_eq(remake_mr(one, 3), 0);
	ck_assert_int_eq(make_mr(2, &two), -ENOMEM);
	ck_assert_int_eq(make_mr(1, &two), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, one), 0);
	ck_assert_int_eq(make_mr(3, &one), 0);
	ck_assert_int_eq(make_mr(1, &two), -ENOMEM);
}
END_TEST

static int refuse(struct uvd_pd *object, struct uvd_udata *udata)
{
	return -EIO;
}

START_TEST(test_a_creation_that_fails_below_does_not_count)
{
	struct uvd_device_config config = h.config;
	struct uvd_backend failing;
	struct uvd_filters filters;
	struct uvd_ibdev dev = h.dev->ib;
	struct uvd_context context = { .dev = &dev };
	struct uvd_pd object = { .context = &context };
	struct uvd_filter_instance *instance;
	int err;

	failing = uvd_backend_null;
	failing.alloc_pd = refuse;
	dev.config = config;
	dev.ops = &failing;
	uvd_filters_begin(&filters, &dev);
	instance = uvd_plugins_filter_begin(h.engine.plugins, "limit:pd=1", &dev, error, &err);
	ck_assert_ptr_nonnull(instance);
	ck_assert_int_eq(uvd_filters_change(&filters, &instance, 1), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(dev.ops->alloc_pd(&object, NULL), -EIO);
	failing.alloc_pd = uvd_backend_null.alloc_pd;
	ck_assert_int_eq(dev.ops->alloc_pd(&object, NULL), 0);
	ck_assert_int_eq(dev.ops->alloc_pd(&object, NULL), -ENOMEM);
	uvd_filters_clear(&filters);
	uvd_filters_end(&filters);
}
END_TEST

START_TEST(test_each_user_has_his_own_count)
{
	struct uvd_account *other = uvd_account_get(h.engine.accounts, &(uid_t){ 1001 }, 1);
	struct uvd_context mine = { .dev = &h.dev->ib, .account = h.account };
	struct uvd_context his = { .dev = &h.dev->ib, .account = other };
	struct uvd_pd pds[3] = { { .context = &mine }, { .context = &mine }, { .context = &his } };

	bed_add("limit:pd=1");
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[0], NULL), 0);
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[1], NULL), -ENOMEM);
	ck_assert_int_eq(h.dev->ib.ops->alloc_pd(&pds[2], NULL), 0);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = { "limit:pd=-1", "limit:pd=x", "limit:errno=ENO", "limit:bytes=1Q",
					     "limit:flow=1" };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter limit: "));
	}
}
END_TEST

FILTERS_MAIN(setup, teardown, test_objects_beyond_the_limit_are_refused_until_one_goes,
	     test_what_existed_before_does_not_count, test_registered_bytes_are_limited,
	     test_a_region_that_changes_counts_with_its_new_length, test_a_creation_that_fails_below_does_not_count,
	     test_each_user_has_his_own_count, test_wrong_options_are_refused)
