/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The log's words about refused calls for the mapped queues of the persona rxe. */
#include "queues.h"
#include "why.h"

static void mapped_setup(void)
{
	setup();
	begin(true);
	log_begin();
	cq = new_cq();
}

static int resize(uint32_t cqe)
{
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct rxe_resize_cq_resp driver;
	} resp;
	struct ib_uverbs_resize_cq cmd = { .cq_handle = cq, .cqe = cqe };

	return harness_write(&h, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

/* As if the client had read ahead: 11 of 16 entries are queued. */
static int resize_below_what_it_holds(void)
{
	((struct rxe_queue_buf *)queue_of(cq, &uvd_object_cq, false)->memory)->consumer_index = 5;
	return resize(6);
}

CALL(resize_to_nothing, resize(0))
CALL(resize_above_most, resize(h.config.limits.max_cqe + 1))

static int modify_srq(uint32_t mask, uint32_t max_wr, uint32_t limit)
{
	struct ib_uverbs_create_srq create = { .pd_handle = pd, .max_wr = 4, .max_sge = 2 };
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct rxe_create_srq_resp driver;
	} resp;
	struct mminfo place;
	struct {
		struct ib_uverbs_modify_srq core;
		struct rxe_modify_srq_cmd driver;
	} cmd = { .driver.mmap_info_addr = (uintptr_t)&place };

	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &create, &resp), 0);
	cmd.core = (struct ib_uverbs_modify_srq){
		.srq_handle = resp.core.srq_handle, .attr_mask = mask, .max_wr = max_wr, .srq_limit = limit
	};
	return WRITE_IN(&h, MODIFY_SRQ, &cmd);
}

CALL(srq_of_nothing, modify_srq(IBV_SRQ_MAX_WR, 0, 0))
CALL(srq_above_most, modify_srq(IBV_SRQ_MAX_WR, h.config.limits.max_srq_wr + 1, 0))
CALL(srq_limit_above_new_size, modify_srq(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 5, 6))

static const struct why_case cases[] = {
	{ resize_below_what_it_holds, EINVAL,
	  "RESIZE_CQ: EINVAL: CQ 0x%x: cqe 6 is less than the queue holds now; take " },
	{ resize_to_nothing, EINVAL, "RESIZE_CQ: EINVAL: CQ 0x%x: cqe 0 is not within 1 to 1048575; " },
	{ resize_above_most, EINVAL, "RESIZE_CQ: EINVAL: CQ 0x%x: cqe 1048576 is not within 1 to 1048575; " },
	{ srq_of_nothing, EINVAL, "MODIFY_SRQ: EINVAL: SRQ 0x2: max_wr 0 is not within 1 to 16384; " },
	{ srq_above_most, EINVAL, "MODIFY_SRQ: EINVAL: SRQ 0x2: max_wr 16385 is not within 1 to 16384; " },
	{ srq_limit_above_new_size, EINVAL, "MODIFY_SRQ: EINVAL: SRQ 0x2: srq_limit 6 is not within 0 to 5; use " },
};

START_TEST(test_a_refused_change_of_a_mapped_queue_names_the_attribute)
{
	why_check(&cases[_i], &cq);
}
END_TEST

static int resize_under_a_filter(void)
{
	char error[UVD_PLUGIN_ERROR] = "";

	ck_assert_msg(!uvd_device_filter_add(h.dev, "error:replace_cq_queue=EINVAL", error), "%s", error);
	return resize(100);
}

START_TEST(test_a_resize_that_a_filter_refuses_gets_no_reason_of_the_device)
{
	ck_assert_int_eq(resize_under_a_filter(), -EINVAL);
	ck_assert_msg(!strstr(said(), "the queue holds"), "%s", said());
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("mapped");

	tcase_add_checked_fixture(tc, mapped_setup, why_teardown);
	tcase_add_loop_test(tc, test_a_refused_change_of_a_mapped_queue_names_the_attribute, 0, UVD_COUNT(cases));
	tcase_add_test(tc, test_a_resize_that_a_filter_refuses_gets_no_reason_of_the_device);
	return run_suite("why: mapped queues", tc);
}
