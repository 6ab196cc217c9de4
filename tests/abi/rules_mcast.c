/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups. */
#include <infiniband/verbs.h>
#include <unistd.h>
#include "abi.h"

/* The fronts of these verbs, which have no extended commands. */
static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };

enum { MLID = 0xc123 };

static const uint8_t group[16] = { 0xff, 0x12, [15] = 0x77 }, other_group[16] = { 0xff, 0x12, [15] = 0x78 };

/* Has a UD QP in INIT, bound to port 1. Until INIT the core does not know which port's link layer applies. */
static struct bed make_ud_bed(void)
{
	struct ib_uverbs_modify_qp init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	};
	struct bed bed = { .fd = open_context(NULL) };
	struct uv_qp_attr attr;

	expect_ok(uv_alloc_pd(bed.fd, UV_WRITE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, UV_WRITE, &uv_cq_default, &bed.cq, NULL));
	attr = uv_qp_attr(bed.pd, bed.cq);
	attr.type = IBV_QPT_UD;
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &attr, &bed.qp));
	init.qp_handle = bed.qp.handle;
	expect_ok(uv_modify_qp(bed.fd, UV_WRITE, &init));
	return bed;
}

START_TEST(test_qp_15_attaching_twice_is_attaching_once)
{
	struct bed bed = make_ud_bed();

	expect_ok(uv_mcast(bed.fd, _i, true, bed.qp.handle, group, MLID));
	expect_ok(uv_mcast(bed.fd, _i, true, bed.qp.handle, group, MLID));
	expect_ok(uv_mcast(bed.fd, _i, true, bed.qp.handle, other_group, MLID));
	expect_ok(uv_mcast(bed.fd, _i, false, bed.qp.handle, group, MLID));
	expect(uv_mcast(bed.fd, _i, false, bed.qp.handle, group, MLID), EINVAL);
}
END_TEST

START_TEST(test_qp_15_attach_to_non_multicast_gid_is_einval)
{
	static const uint8_t unicast[16] = { 0xfe, 0x80, [15] = 1 };
	/* Groups that no other test is in: a close may take effect a moment later, and a group has one LID. */
	const uint8_t lowest[16] = { 0xff, 0x12, [14] = 1 + _i }, highest[16] = { 0xff, 0x12, [14] = 101 + _i };
	const uint8_t wrong[16] = { 0xff, 0x12, [14] = 201 + _i }, other[16] = { 0xff, 0x12, [14] = 221 + _i };
	struct bed bed = make_ud_bed();
	struct uv_qp_attr attr = uv_qp_attr(bed.pd, bed.cq);
	struct uv_qp rc;

	expect(uv_mcast(bed.fd, _i, true, 99, unicast, MLID), ENOENT);
	expect(uv_mcast(bed.fd, _i, true, bed.cq, unicast, MLID), EINVAL);
	expect(uv_mcast(bed.fd, _i, true, bed.qp.handle, unicast, MLID), EINVAL);
	expect(uv_mcast(bed.fd, _i, false, bed.qp.handle, group, MLID), EINVAL);
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &attr, &rc));
	expect(uv_mcast(bed.fd, _i, true, rc.handle, group, MLID), EINVAL);
	expect_choice("qp-15-mlid", uv_mcast(bed.fd, _i, true, bed.qp.handle, wrong, 0xbfff), EINVAL);
	/* Another GID: rxe does not tell two LIDs of one GID apart, and could then not destroy the QP. */
	expect_choice("qp-15-mlid", uv_mcast(bed.fd, _i, true, bed.qp.handle, other, 0xffff), EINVAL);
	if (choice("qp-15-mlid"))
		return;
	expect_ok(uv_mcast(bed.fd, _i, true, bed.qp.handle, lowest, 0xc000));
	expect_ok(uv_mcast(bed.fd, _i, true, bed.qp.handle, highest, 0xfffe));
	expect(uv_mcast(bed.fd, _i, false, bed.qp.handle, lowest, MLID), EINVAL);
}
END_TEST

START_TEST(test_qp_15_a_qp_in_a_group_is_ebusy)
{
	struct bed bed = make_ud_bed();

	expect_ok(uv_mcast(bed.fd, UV_WRITE, true, bed.qp.handle, group, MLID));
	expect_ok(uv_mcast(bed.fd, UV_WRITE, true, bed.qp.handle, other_group, MLID));
	expect(uv_destroy_qp(bed.fd, fronts[_i], bed.qp.handle, NULL), EBUSY);
	expect_ok(uv_mcast(bed.fd, UV_WRITE, false, bed.qp.handle, group, MLID));
	expect(uv_destroy_qp(bed.fd, fronts[_i], bed.qp.handle, NULL), EBUSY);
	expect_ok(uv_mcast(bed.fd, UV_WRITE, false, bed.qp.handle, other_group, MLID));
	expect_ok(uv_destroy_qp(bed.fd, fronts[_i], bed.qp.handle, NULL));
}
END_TEST

/* Opens, one after another, more files than a group has room for QPs. A close may take effect a moment later. */
START_TEST(test_cleanup_03_close_leaves_the_groups)
{
	for (int i = 0; i < 100; i++) {
		struct bed bed = make_ud_bed();
		int ret = uv_mcast(bed.fd, UV_WRITE, true, bed.qp.handle, group, MLID);

		for (int tries = 0; ret == -ENOMEM && tries < 100; tries++) {
			usleep(10000);
			ret = uv_mcast(bed.fd, UV_WRITE, true, bed.qp.handle, group, MLID);
		}
		expect_ok(ret);
		close_node(bed.fd);
	}
}
END_TEST

TCase *case_mcast(void)
{
	TCase *tc = tcase_create("mcast");

	tcase_add_loop_test(tc, test_qp_15_attaching_twice_is_attaching_once, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_15_attach_to_non_multicast_gid_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_15_a_qp_in_a_group_is_ebusy, 0, UV_ARRAY_SIZE(fronts));
	tcase_add_test(tc, test_cleanup_03_close_leaves_the_groups);
	return tc;
}
