/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The bytes of the REG_MR that a borrowed thread executes. */
#include <check.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stddef.h>
#include <string.h>

#include "broker/register.h"
#include "../suite.h"

enum { AT = 0x10000 };

static struct uvd_reg_order order = {
	.start = 0x7000,
	.length = 0x3000,
	.iova = 0x9000,
	.access = 5,
	.pd_handle = 7,
	.driver_id = 9,
};

static void setup(void)
{
	order.driver_data_len = 0;
	memset(order.driver_data, 0, sizeof(order.driver_data));
}

START_TEST(test_call_is_reg_mr_of_the_order)
{
	const struct uvd_register_call c = uvd_register_call(&order, AT);

	ck_assert_uint_eq(c.hdr.object_id, UVERBS_OBJECT_DEVICE);
	ck_assert_uint_eq(c.hdr.method_id, UVERBS_METHOD_INVOKE_WRITE);
	ck_assert_uint_eq(c.hdr.driver_id, 9);
	ck_assert_uint_eq(c.hdr.num_attrs, 3);
	ck_assert_uint_eq(c.hdr.length, sizeof(c.hdr) + 3 * sizeof(c.attrs[0]));
	ck_assert_uint_eq(c.attrs[0].attr_id, UVERBS_ATTR_WRITE_CMD);
	ck_assert_uint_eq(c.attrs[0].data, IB_USER_VERBS_CMD_REG_MR);
	ck_assert_uint_eq(c.attrs[1].attr_id, UVERBS_ATTR_CORE_IN);
	ck_assert_uint_eq(c.attrs[1].data, AT + offsetof(struct uvd_register_call, cmd));
	ck_assert_uint_eq(c.attrs[2].attr_id, UVERBS_ATTR_CORE_OUT);
	ck_assert_uint_eq(c.attrs[2].data, AT + offsetof(struct uvd_register_call, resp));
	ck_assert_uint_eq(c.cmd.start, 0x7000);
	ck_assert_uint_eq(c.cmd.length, 0x3000);
	ck_assert_uint_eq(c.cmd.hca_va, 0x9000);
	ck_assert_uint_eq(c.cmd.access_flags, 5);
	ck_assert_uint_eq(c.cmd.pd_handle, 7);
}
END_TEST

START_TEST(test_data_of_the_driver_are_an_attribute_of_their_own)
{
	static const uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct uvd_register_call c;

	order.driver_data_len = sizeof(data);
	memcpy(order.driver_data, data, sizeof(data));
	c = uvd_register_call(&order, AT);
	ck_assert_uint_eq(c.hdr.num_attrs, 4);
	ck_assert_uint_eq(c.hdr.length, sizeof(c.hdr) + 4 * sizeof(c.attrs[0]));
	ck_assert_uint_eq(c.attrs[3].attr_id, UVERBS_ATTR_UHW_IN);
	ck_assert_uint_eq(c.attrs[3].len, sizeof(data));
	ck_assert_mem_eq(&c.attrs[3].data, data, sizeof(data));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("register");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, test_call_is_reg_mr_of_the_order);
	tcase_add_test(t, test_data_of_the_driver_are_an_attribute_of_their_own);
	return run_suite(__FILE__, t);
}
