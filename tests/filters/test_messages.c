/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filters `loss` and `reorder`, and `delay` of packets: which messages they choose. tests/backends/test_network.c has what becomes of them. */
#include "bed.h"

static void setup(void)
{
	harness_open_with(&h, "soft", &uvd_mem_self);
}

static void teardown(void)
{
	harness_close(&h);
}

static struct uvd_message carried_as(enum ibv_qp_type type, bool may_hold, bool is_packet)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };
	struct uvd_qp qp = { .pd = &pd, .qp_type = type };
	struct uvd_message message = {
		.qp = &qp, .opcode = IBV_WR_SEND, .length = 100, .may_hold = may_hold, .is_packet = is_packet
	};

	h.dev->ib.ops->carry_message(&message);
	return message;
}

/* Shows the filters a message of a QP of this type. */
static struct uvd_message carried(enum ibv_qp_type type, bool may_hold)
{
	return carried_as(type, may_hold, false);
}

/* Writes the fates of nine messages of each type, in turn: '-', L(ost) or H(eld). */
static void fates_of(enum ibv_qp_type type, char text[10])
{
	for (int i = 0; i < 9; i++)
		text[i] = "-LH"[carried(type, type != IBV_QPT_RC && type != IBV_QPT_XRC_SEND).fate];
	text[9] = 0;
}

static const struct {
	const char *filter, *rc, *xrc, *uc, *ud, *raw;
} rules[] = {
	{ "loss", "LLLLLLLLL", "LLLLLLLLL", "LLLLLLLLL", "LLLLLLLLL", "LLLLLLLLL" },
	{ "loss:when=@20", "---------", "---------", "-L-------", "---------", "---------" },
	{ "loss:rc=@3", "--L------", "---------", "---------", "---------", "---------" },
	{ "loss:uc=@8+,ud=@2,raw=%100", "---------", "---------", "-------LL", "-L-------", "LLLLLLLLL" },
	{ "loss:seed=3", "LLLLLLLLL", "LLLLLLLLL", "LLLLLLLLL", "LLLLLLLLL", "LLLLLLLLL" },
	{ "reorder", "---------", "---------", "HHHHHHHHH", "HHHHHHHHH", "HHHHHHHHH" },
	{ "reorder:when=@2", "---------", "---------", "-H-------", "---------", "---------" },
};

START_TEST(test_the_messages_that_the_user_chose_are_lost_or_held)
{
	char fates[10];

	bed_add(rules[_i].filter);
	fates_of(IBV_QPT_RC, fates);
	ck_assert_str_eq(fates, rules[_i].rc);
	fates_of(IBV_QPT_XRC_SEND, fates);
	ck_assert_str_eq(fates, rules[_i].xrc);
	fates_of(IBV_QPT_UC, fates);
	ck_assert_str_eq(fates, rules[_i].uc);
	fates_of(IBV_QPT_UD, fates);
	ck_assert_str_eq(fates, rules[_i].ud);
	fates_of(IBV_QPT_RAW_PACKET, fates);
	ck_assert_str_eq(fates, rules[_i].raw);
}
END_TEST

START_TEST(test_a_seed_decides_which_messages_are_lost)
{
	char first[10], again[10], other[10];

	bed_add("loss:ud=%50,seed=4");
	fates_of(IBV_QPT_UD, first);
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "loss:ud=%50,seed=4", error), 0);
	fates_of(IBV_QPT_UD, again);
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "loss:ud=%50,seed=5", error), 0);
	fates_of(IBV_QPT_UD, other);
	ck_assert_str_eq(first, again);
	ck_assert_str_ne(first, other);
}
END_TEST

static int ud_is_treated(void)
{
	return carried(IBV_QPT_UD, true).fate != UVD_FATE_DELIVER;
}

START_TEST(test_a_seed_decides_which_messages_are_held)
{
	bed_check_seed("reorder:when=%50,seed=", ud_is_treated);
}
END_TEST

static int uc_is_treated(void)
{
	return carried(IBV_QPT_UC, true).fate != UVD_FATE_DELIVER;
}

START_TEST(test_rules_of_one_filter_choose_independently_of_each_other)
{
	char ud[41], uc[41];

	bed_add("loss:ud=%50,uc=%50");
	bed_pattern(ud_is_treated, ud);
	bed_pattern(uc_is_treated, uc);
	ck_assert_str_ne(ud, uc);
}
END_TEST

START_TEST(test_the_filters_below_see_the_messages_that_are_not_lost)
{
	char fates[10];

	bed_add("loss:ud=@2");
	bed_add("loss:ud=@1");
	fates_of(IBV_QPT_UD, fates);
	ck_assert_str_eq(fates, "L-L------");
}
END_TEST

START_TEST(test_a_message_is_held_for_the_time_of_the_option_if_it_can_be)
{
	bed_add("reorder");
	ck_assert_uint_eq(carried(IBV_QPT_UD, true).hold_ns, 10000000);
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "reorder:hold=7ms", error), 0);
	ck_assert_int_eq(carried(IBV_QPT_UD, true).fate, UVD_FATE_HOLD);
	ck_assert_uint_eq(carried(IBV_QPT_UD, true).hold_ns, 7000000);
	ck_assert_int_eq(carried(IBV_QPT_UD, false).fate, UVD_FATE_DELIVER);
}
END_TEST

START_TEST(test_packets_of_all_types_of_qps_are_held)
{
	bed_add("reorder:when=@2");
	ck_assert_int_eq(carried_as(IBV_QPT_RC, true, true).fate, UVD_FATE_DELIVER);
	ck_assert_int_eq(carried_as(IBV_QPT_RC, true, true).fate, UVD_FATE_HOLD);
	ck_assert_int_eq(carried_as(IBV_QPT_RC, true, true).fate, UVD_FATE_DELIVER);
}
END_TEST

START_TEST(test_packets_are_delayed_and_messages_are_not)
{
	bed_add("delay:packet=5ms@3");
	ck_assert_uint_eq(carried(IBV_QPT_UD, true).delay_ns, 0);
	for (int i = 1; i <= 4; i++)
		ck_assert_uint_eq(carried_as(IBV_QPT_RC, true, true).delay_ns, i == 3 ? 5000000 : 0);
}
END_TEST

START_TEST(test_a_lost_packet_is_not_delayed)
{
	bed_add("loss:rc=@1");
	bed_add("delay:packet=5ms");
	ck_assert_int_eq(carried_as(IBV_QPT_RC, true, true).fate, UVD_FATE_LOSE);
	ck_assert_uint_eq(carried_as(IBV_QPT_RC, true, true).delay_ns, 5000000);
}
END_TEST

START_TEST(test_a_message_that_cannot_be_held_counts)
{
	bed_add("reorder:when=@3");
	carried(IBV_QPT_RC, false);
	carried(IBV_QPT_UD, false);
	carried(IBV_QPT_UC, true);
	ck_assert_int_eq(carried(IBV_QPT_UD, true).fate, UVD_FATE_HOLD);
}
END_TEST

START_TEST(test_a_message_that_one_filter_loses_is_not_held_by_another)
{
	bed_add("loss:ud=@2");
	bed_add("reorder");
	ck_assert_int_eq(carried(IBV_QPT_UD, true).fate, UVD_FATE_HOLD);
	ck_assert_int_eq(carried(IBV_QPT_UD, true).fate, UVD_FATE_LOSE);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "reorder", error), 0);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "loss", error), 0);
	ck_assert_int_eq(carried(IBV_QPT_UD, true).fate, UVD_FATE_DELIVER);
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = {
		"loss:ud=5", "loss:ud=", "loss:when=all", "loss:rc=@0", "loss:xx=@1", "loss:when=x%10", "loss:seed=x",
		"reorder:hold=5", "reorder:hold=61s", "reorder:when=10%", "reorder:rc=@1", "loss:when=@3%5",
		/* The end of a long text is read as well. */
		"loss:when=@00000000000000000000000000000000000000000000000000000000000000000001x"
	};

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_msg(strstr(error, "filter loss: ") || strstr(error, "filter reorder: "), "%s", error);
	}
	ck_assert_int_eq(carried(IBV_QPT_UD, true).fate, UVD_FATE_DELIVER);
}
END_TEST

START_TEST(test_a_backend_without_a_network_has_no_such_filter)
{
	harness_close(&h);
	harness_open_with(&h, "null", &uvd_mem_self);
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "loss", error), -EOPNOTSUPP);
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "delay:packet=1ms", error), -EOPNOTSUPP);
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "reorder", error), -EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(error, "filter reorder does not begin: EOPNOTSUPP"));
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_the_messages_that_the_user_chose_are_lost_or_held, 0, UV_ARRAY_SIZE(rules));
	tcase_add_test(tc, test_packets_of_all_types_of_qps_are_held);
	tcase_add_test(tc, test_packets_are_delayed_and_messages_are_not);
	tcase_add_test(tc, test_a_lost_packet_is_not_delayed);
	tcase_add_test(tc, test_a_seed_decides_which_messages_are_lost);
	tcase_add_test(tc, test_a_seed_decides_which_messages_are_held);
	tcase_add_test(tc, test_rules_of_one_filter_choose_independently_of_each_other);
	tcase_add_test(tc, test_the_filters_below_see_the_messages_that_are_not_lost);
	tcase_add_test(tc, test_a_message_is_held_for_the_time_of_the_option_if_it_can_be);
	tcase_add_test(tc, test_a_message_that_cannot_be_held_counts);
	tcase_add_test(tc, test_a_message_that_one_filter_loses_is_not_held_by_another);
	tcase_add_test(tc, test_wrong_options_are_refused);
	tcase_add_test(tc, test_a_backend_without_a_network_has_no_such_filter);
	return run_suite(__FILE__, tc);
}
