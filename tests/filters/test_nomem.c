/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `nomem`. */
#include "bed.h"

static void setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_self);
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
}

static void teardown(void)
{
	harness_close(&h);
}

static int create(unsigned int i)
{
	static uint32_t pd, cq;
	static struct uv_mr mr;

	switch (i % 3) {
	case 0:
		return uv_alloc_pd(h.fd, UV_WRITE, &pd);
	case 1:
		return uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL);
	default:
		return uv_reg_mr(h.fd, UV_WRITE, pd, &mr, sizeof(mr), IBV_ACCESS_LOCAL_WRITE, &mr);
	}
}

START_TEST(test_creations_of_all_types_count_together)
{
	bed_add("nomem:when=@5");
	for (unsigned int i = 0; i < 9; i++)
		ck_assert_int_eq(create(i), i == 4 ? -ENOMEM : 0);
}
END_TEST

START_TEST(test_without_a_choice_every_creation_fails)
{
	bed_add("nomem");
	for (unsigned int i = 0; i < 2; i++)
		ck_assert_int_eq(create(i), -ENOMEM);
}
END_TEST

START_TEST(test_what_creates_nothing_does_not_count)
{
	uint32_t pd;

	bed_add("nomem:when=@3+");
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
		ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
	}
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), -ENOMEM);
}
END_TEST

START_TEST(test_each_operation_that_creates_or_allocates_fails)
{
#define CREATES(ret, op, ...) { #op, !!uvd_filter_nomem.op },
	static const char *const creating[] = { "create_", "alloc_", "reg_", "rereg_", "resize_", "attach_" };
	const struct {
		const char *name;
		bool fails;
	} ops[] = { UVD_FILTER_OPS(CREATES) };

	for (size_t i = 0; i < UV_ARRAY_SIZE(ops); i++) {
		bool creates = false;

		for (size_t k = 0; k < UV_ARRAY_SIZE(creating); k++)
			creates |= !strncmp(ops[i].name, creating[k], strlen(creating[k]));
		ck_assert_msg(ops[i].fails == creates, "%s", ops[i].name);
	}
}
END_TEST

START_TEST(test_a_seed_decides_which_creations_a_percentage_chooses)
{
	bed_check_seed("nomem:when=%50,seed=", bed_alloc_pd);
}
END_TEST

START_TEST(test_a_wrong_choice_is_refused)
{
	static const char *const wrong[] = { "nomem:when=3", "nomem:when=", "nomem:when=ENOMEM@3", "nomem:when=@0",
					     "nomem:seed=-1" };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter nomem: "));
	}
}
END_TEST

FILTERS_MAIN(setup, teardown, test_creations_of_all_types_count_together, test_without_a_choice_every_creation_fails,
	     test_what_creates_nothing_does_not_count, test_each_operation_that_creates_or_allocates_fails,
	     test_a_seed_decides_which_creations_a_percentage_chooses, test_a_wrong_choice_is_refused)
