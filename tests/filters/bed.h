/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Common to the tests of filters: a device of the backend null, and calls of its operations. */
#ifndef TESTS_FILTERS_BED_H
#define TESTS_FILTERS_BED_H

#include <check.h>
#include "../suite.h"
#include "filters/filters.h"
#include "harness.h"

enum { BED_PAGE = 4096 };

static struct harness h;
static char error[UVD_PLUGIN_ERROR];

/* Calls alloc_pd of the device as the core does, without a file. */
static inline int bed_alloc_pd(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };

	return h.dev->ib.ops->alloc_pd(&pd, NULL);
}

/* The same as a thread. Returns the result of alloc_pd. */
static inline void *bed_call_once(void *arg)
{
	return (void *)(intptr_t)bed_alloc_pd();
}

static inline int bed_dealloc_pd(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };

	return h.dev->ib.ops->dealloc_pd(&pd);
}

/* Adds a filter to the running device. */
static inline void bed_add(const char *text)
{
	ck_assert_msg(!uvd_device_filter_add(h.dev, text, error), "%s", error);
}

/* Gives a region other memory. Returns 0 or the errno. */
static inline int bed_remake_mr(uint32_t handle, size_t pages)
{
	static uint8_t other[8 * BED_PAGE] __attribute__((aligned(BED_PAGE)));
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
			 .length = pages * BED_PAGE,
			 .hca_va = (uintptr_t)other },
	};

	return uv_write(h.fd, &c, sizeof(c));
}

/* Posts a work request as the core does, without a file. */
static inline int bed_post_send(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };
	struct uvd_qp qp = { .pd = &pd };
	const struct uvd_send_wr wr = {}, *bad = NULL;
	const int ret = h.dev->ib.ops->post_send(&qp, &wr, &bad, NULL);

	if (ret)
		ck_assert_ptr_eq(bad, &wr);
	return ret;
}

/* Rings a doorbell of a QP as the core does, which stands for a post. The backend needs such an operation. */
static inline int bed_ring_doorbell(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };
	struct uvd_qp qp = { .pd = &pd };

	return h.dev->ib.ops->ring_doorbell(&qp, NULL);
}

/* Shows the filters a completion. Returns the status that it has then. */
static inline enum ibv_wc_status bed_complete(struct uvd_cq *cq, uint32_t qp_num, enum ibv_wc_opcode opcode)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq other = { .context = &context };
	struct ibv_wc wc = { .opcode = opcode, .qp_num = qp_num };

	uvd_filter_completion(cq ?: &other, &wc);
	return wc.status;
}

/* Writes which of 40 calls of fn fail, as digits 0 and 1. */
static inline void bed_pattern(int (*fn)(void), char text[41])
{
	for (int i = 0; i < 40; i++)
		text[i] = '0' + (fn() != 0);
	text[40] = 0;
}

/* A filter with a percentage, which ends in "seed=", chooses the same calls of fn by the same seed, and by another others. */
static inline void bed_check_seed(const char *filter, int (*fn)(void))
{
	static const char *const seeds[] = { "4", "4", "5" };
	char text[80], chosen[3][41];

	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "%s%s", filter, seeds[i]);
		bed_add(text);
		bed_pattern(fn, chosen[i]);
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(filter, ":"), filter);
		ck_assert_int_eq(uvd_device_filter_remove(h.dev, text, error), 0);
	}
	ck_assert_str_eq(chosen[0], chosen[1]);
	ck_assert_str_ne(chosen[0], chosen[2]);
}

#define FILTERS_MAIN(setup, teardown, ...) \
	int main(void) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		TCase *tc = tcase_create("all"); \
\
		tcase_add_checked_fixture(tc, setup, teardown); \
		tcase_set_timeout(tc, 60); \
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) \
			tcase_add_test(tc, tests[i]); \
		return run_suite(__FILE__, tc); \
	}

#endif
