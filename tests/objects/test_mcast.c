/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups of a QP. */
#include "tests.h"

enum { MLID = 0xc001 };

static uint32_t pd, cq;
static struct ib_uverbs_create_qp_resp qp;
static int attached, detached, refuse;

static int see_attach(struct uvd_qp *q, const union ibv_gid *gid, uint16_t lid)
{
	if (refuse)
		return -EDOM;
	ck_assert_uint_eq(gid->raw[0], 0xff);
	attached++;
	return 0;
}

static int see_detach(struct uvd_qp *q, const union ibv_gid *gid, uint16_t lid)
{
	detached++;
	return refuse ? -EDOM : 0;
}

static void begin(uint8_t type)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_create_qp(&h, type, pd, cq, &qp), 0);
	h.ops.attach_mcast = see_attach;
	h.ops.detach_mcast = see_detach;
}

static int attach(uint8_t group, uint16_t mlid)
{
	struct ib_uverbs_attach_mcast cmd = { .gid = { 0xff, [15] = group }, .qp_handle = qp.qp_handle, .mlid = mlid };

	return WRITE_IN(&h, ATTACH_MCAST, &cmd);
}

static int detach(uint8_t group, uint16_t mlid)
{
	struct ib_uverbs_detach_mcast cmd = { .gid = { 0xff, [15] = group }, .qp_handle = qp.qp_handle, .mlid = mlid };

	return WRITE_IN(&h, DETACH_MCAST, &cmd);
}

static int destroy_qp(void)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = qp.qp_handle };
	struct ib_uverbs_destroy_qp_resp resp;

	return WRITE(&h, DESTROY_QP, &cmd, &resp);
}

START_TEST(test_qp_15_the_same_group_again_is_no_second_attachment)
{
	begin(IBV_QPT_UD);
	ck_assert_int_eq(attach(1, MLID), 0);
	ck_assert_int_eq(attach(1, MLID), 0);
	ck_assert_int_eq(attached, 1);
	ck_assert_int_eq(attach(1, MLID + 1), 0); /* another LID makes another group */
	ck_assert_int_eq(attach(2, MLID), 0);
	ck_assert_int_eq(attached, 3);
	ck_assert_int_eq(detach(1, MLID), 0);
	ck_assert_int_eq(detached, 1);
}
END_TEST

/* RoCE has no multicast LIDs. */
START_TEST(test_qp_15_on_ethernet_any_lid_is_good)
{
	h.dev->config.ports[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	begin(IBV_QPT_UD);
	ck_assert_int_eq(attach(1, 0), 0);
	ck_assert_int_eq(detach(1, 0), 0);
}
END_TEST

START_TEST(test_cleanup_03_close_leaves_all_groups)
{
	begin(IBV_QPT_UD);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(attach(i, MLID), 0);
	ck_assert_int_eq(detach(2, MLID), 0);
	harness_close_file(&h);
	ck_assert_int_eq(detached, 5);
}
END_TEST

START_TEST(test_an_attachment_that_the_backend_refuses_is_none)
{
	begin(IBV_QPT_UD);
	refuse = 1;
	ck_assert_int_eq(attach(1, MLID), -EDOM);
	ck_assert_int_eq(detach(1, MLID), -EINVAL);
	ck_assert_int_eq(destroy_qp(), 0);
}
END_TEST

/*
 * As in the kernel, a failed detach removes the group from the list but leaves the QP in use. Closing the file must
 * destroy the QP nevertheless.
 */
START_TEST(test_a_detachment_that_the_backend_refuses_keeps_the_qp)
{
	begin(IBV_QPT_UD);
	ck_assert_int_eq(attach(1, MLID), 0);
	refuse = 1;
	ck_assert_int_eq(detach(1, MLID), -EDOM);
	refuse = 0;
	ck_assert_int_eq(detach(1, MLID), -EINVAL);
	ck_assert_int_eq(destroy_qp(), -EBUSY);
	harness_close_file(&h);
}
END_TEST

TEST_LIST(test_qp_15_the_same_group_again_is_no_second_attachment, test_qp_15_on_ethernet_any_lid_is_good,
	  test_cleanup_03_close_leaves_all_groups, test_an_attachment_that_the_backend_refuses_is_none,
	  test_a_detachment_that_the_backend_refuses_keeps_the_qp)
