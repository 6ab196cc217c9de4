/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs: creation and the state machine. */
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdlib.h>
#include "abi.h"

enum { RAW_PACKET = 8, XRC_INI = 9, XRC_TGT = 10, UC = 3, UD = 4, QKEY_PRIVILEGED = 1u << 31 };

static int create_type(const struct bed *bed, enum uv_front front, uint8_t type, uint32_t flags)
{
	struct uv_qp_attr attr = uv_qp_attr(bed->pd, bed->cq);
	struct uv_qp qp;

	attr.type = type;
	attr.create_flags = flags;
	return uv_create_qp(bed->fd, front, &attr, &qp);
}

struct unprivileged {
	enum uv_front front;
	uint32_t type, flags, mask, qkey;
};

static int create_unprivileged(void *arg)
{
	struct unprivileged *u = arg;
	struct bed bed = make_bed();

	if (u->type == RAW_PACKET && u->front != UV_METHOD)
		bed.pd = 77; /* a command checks the capability before the handles */
	return create_type(&bed, u->front, u->type, u->flags);
}

START_TEST(test_qp_01_raw_packet_without_cap_net_raw_is_eperm)
{
	struct unprivileged u = { _i, RAW_PACKET };

	target();
	expect(uv_as_nobody(1 << 20, create_unprivileged, &u), EPERM);
}
END_TEST

static int create_in_namespace(void *arg)
{
	struct unprivileged *u = arg;
	struct bed bed = make_bed();

	/* The child gets all capabilities, but only in its own user namespace. */
	if (unshare(CLONE_NEWUSER))
		return 1;
	return create_type(&bed, u->front, u->type, u->flags);
}

/* capable() checks the initial user namespace: capabilities in the process's own do not count. */
START_TEST(test_qp_01_capability_in_a_user_namespace_does_not_count)
{
	struct unprivileged u = { UV_INVOKE, RAW_PACKET };
	int ret;

	target();
	ret = uv_as_nobody(1 << 20, create_in_namespace, &u);
	if (ret != 1) /* 1: this system forbids user namespaces */
		expect(ret, EPERM);
}
END_TEST

START_TEST(test_qp_02_unknown_type_is_einval)
{
	static const uint8_t types[] = { 0, 1, 5, 6, 7, 11, 100, 254 };
	struct bed bed = make_bed();

	for (unsigned int i = 0; i < UV_ARRAY_SIZE(types); i++)
		expect(create_type(&bed, _i, types[i], 0), EINVAL);
	if (_i == UV_METHOD) {
		struct uv_qp_attr attr = uv_qp_attr(bed.pd, bed.cq);
		struct uv_tree tree;
		struct uv_qp qp;

		uv_tree_create_qp(&tree, &attr, &qp);
		uv_attr_find(&tree, UVERBS_ATTR_CREATE_QP_TYPE)->data = (1ull << 32) + IBV_QPT_RC;
		expect(uv_ioctl(bed.fd, &tree), EINVAL);
	} else {
		bed.pd = bed.cq = 77; /* the type is checked before the handles */
		expect(create_type(&bed, _i, 1, 0), EINVAL);
	}
	ck_assert_uint_eq(next_handle(bed.fd), 3);
}
END_TEST

/*
 * The errno tells which look-up failed: bed->pd (handle 0) where a CQ belongs is EINVAL, and so is bed->cq where the PD
 * belongs; handle 77, which does not exist, is ENOENT.
 */
static int create_with(const struct bed *bed, enum uv_front front, uint32_t pd, uint32_t send_cq, uint32_t recv_cq)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, send_cq);
	struct uv_qp qp;

	attr.recv_cq = recv_cq;
	return uv_create_qp(bed->fd, front, &attr, &qp);
}

START_TEST(test_qp_create_looks_up_the_receive_cq_then_the_send_cq_then_the_pd)
{
	struct bed bed = make_bed();

	expect(create_with(&bed, _i, 77, 77, bed.pd), EINVAL);
	expect(create_with(&bed, _i, 77, bed.pd, 77), ENOENT);
	expect(create_with(&bed, _i, bed.cq, 77, bed.cq), ENOENT);
	expect(create_with(&bed, _i, 77, bed.pd, bed.cq), EINVAL);
	expect(create_with(&bed, _i, 77, bed.cq, bed.cq), ENOENT);
	expect(create_with(&bed, _i, bed.cq, bed.cq, bed.cq), EINVAL);
	ck_assert_uint_eq(next_handle(bed.fd), 3);
}
END_TEST

/* Makes CREATE_QP without this attribute. */
static int create_without(const struct bed *bed, uint16_t id)
{
	struct uv_qp_attr attr = uv_qp_attr(bed->pd, bed->cq);
	struct ib_uverbs_attr *spoiled;
	struct uv_tree tree;
	struct uv_qp qp;

	uv_tree_create_qp(&tree, &attr, &qp);
	spoiled = uv_attr_find(&tree, id);
	*spoiled = tree.hdr.attrs[--tree.hdr.num_attrs];
	return uv_ioctl(bed->fd, &tree);
}

START_TEST(test_qp_create_by_method_without_its_objects_is_enoent)
{
	struct bed bed = make_bed();

	expect(create_without(&bed, UVERBS_ATTR_CREATE_QP_PD_HANDLE), ENOENT);
	expect(create_without(&bed, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE), ENOENT);
	expect(create_without(&bed, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), ENOENT);
	expect(create_type(&bed, UV_METHOD, XRC_TGT, 0), EINVAL); /* it must have no CQ */
	ck_assert_uint_eq(next_handle(bed.fd), 3);
}
END_TEST

START_TEST(test_qp_04_xrc_target_without_its_domain_is_einval)
{
	struct uv_qp_attr attr;
	struct bed bed = make_bed();
	struct uv_qp qp;

	expect(create_type(&bed, _i, XRC_TGT, 0), EINVAL); /* the PD is looked up as an XRCD */
	attr = uv_qp_attr(77, bed.cq);
	attr.type = XRC_TGT;
	expect(uv_create_qp(bed.fd, _i, &attr, &qp), EINVAL);
}
END_TEST

START_TEST(test_qp_06_create_flags)
{
	struct bed bed = make_bed();

	expect(create_type(&bed, _i, IBV_QPT_RC, 1), EINVAL);
	expect(create_type(&bed, _i, IBV_QPT_RC, 1u << 31), EINVAL);
	/* BLOCK_MULTICAST_LOOPBACK: the driver has no support; the method allows it for other types only (qp-08). */
	expect(create_type(&bed, _i, IBV_QPT_RC, 1 << 1), _i == UV_METHOD ? EINVAL : EOPNOTSUPP);
	bed.pd = 77; /* the flags are checked after the look-ups */
	expect(create_type(&bed, _i, IBV_QPT_RC, 1), ENOENT);
	ck_assert_uint_eq(next_handle(bed.fd), 3);
}
END_TEST

START_TEST(test_qp_06_source_qpn_without_cap_net_raw_is_eperm)
{
	struct unprivileged u = { _i, IBV_QPT_RC, 1 << 10 };

	target();
	expect(uv_as_nobody(1 << 20, create_unprivileged, &u), EPERM);
}
END_TEST

START_TEST(test_qp_07_extended_comp_mask_or_reserved_is_einval)
{
	struct bed bed = make_bed();
	struct ib_uverbs_ex_create_qp in = {
		.pd_handle = bed.pd,
		.send_cq_handle = bed.cq,
		.recv_cq_handle = bed.cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = IBV_QPT_RC,
		.comp_mask = 2,
	};
	struct ib_uverbs_ex_create_qp_resp resp;
	uint8_t uhw_out[64];
	struct uv_cmd cmd = { UV_EX(CREATE_QP), &in, sizeof(in), &resp, sizeof(resp), NULL, 0, uhw_out,
			      uv_room.create_qp };

	expect(uv_cmd(bed.fd, _i, &cmd), EINVAL);
	in.comp_mask = 1u << 31;
	expect(uv_cmd(bed.fd, _i, &cmd), EINVAL);
	in.comp_mask = 0;
	in.reserved = 1;
	expect(uv_cmd(bed.fd, _i, &cmd), EINVAL);
	in.reserved = 0;
	expect_ok(uv_cmd(bed.fd, _i, &cmd));
}
END_TEST

START_TEST(test_qp_08_method_flags_are_for_some_types_only)
{
	struct bed bed = make_bed();

	expect(create_type(&bed, UV_METHOD, IBV_QPT_RC, IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK), EINVAL);
	expect(create_type(&bed, UV_METHOD, IBV_QPT_RC, IB_UVERBS_QP_CREATE_SCATTER_FCS), EINVAL);
	expect(create_type(&bed, UV_METHOD, UD, IB_UVERBS_QP_CREATE_SCATTER_FCS), EINVAL);
	expect(create_type(&bed, UV_METHOD, UD, IB_UVERBS_QP_CREATE_CVLAN_STRIPPING), EINVAL);
	expect_ok(create_type(&bed, UV_METHOD, IBV_QPT_RC, IB_UVERBS_QP_CREATE_SQ_SIG_ALL));
	expect(create_type(&bed, UV_METHOD, IBV_QPT_RC, 1 << 20), EINVAL);
}
END_TEST

START_TEST(test_qp_09_unknown_mask_bits_are_eopnotsupp_before_the_handle)
{
	struct ib_uverbs_modify_qp attr = { .qp_handle = 77 };
	int fd = open_context(NULL);

	for (int bit = 21; bit < 32; bit++) {
		int err = bit == 25 && uv_front_ex(_i) ? ENOENT : EOPNOTSUPP; /* the extended command has RATE_LIMIT */

		attr.attr_mask = 1u << bit;
		expect(uv_modify_qp(fd, _i, &attr), err);
	}
}
END_TEST

START_TEST(test_qp_10_modify_checks_ports_and_states)
{
	struct bed bed = make_bed();
	struct ib_uverbs_modify_qp good = { .qp_handle = bed.qp.handle,
					    .qp_state = IBV_QPS_INIT,
					    .port_num = 1,
					    .attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
							 IBV_QP_PORT },
				   a = good;

	a.port_num = 0;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	a.port_num = 99;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	a = good;
	a.qp_state = 7;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	a = good;
	a.attr_mask |= IBV_QP_CUR_STATE;
	a.cur_qp_state = 7;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	expect_ok(uv_modify_qp(bed.fd, _i, &good));
	a = good;
	a.attr_mask = IBV_QP_STATE | IBV_QP_ALT_PATH;
	a.alt_port_num = a.alt_dest.port_num = 99;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	a.alt_port_num = 1;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	a.attr_mask = IBV_QP_AV;
	a.dest.port_num = 99;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
	a.attr_mask = IBV_QP_AV | IBV_QP_PORT;
	a.dest.port_num = 1;
	a.port_num = 2;
	expect(uv_modify_qp(bed.fd, _i, &a), EINVAL);
}
END_TEST

/* In RESET the QP has no port, so the path's port 1 is another one. */
START_TEST(test_qp_10_address_vector_of_another_port_is_einval)
{
	struct bed bed = make_bed();

	expect(qp_to_rtr(bed.fd, bed.qp.handle, bed.qp.qpn), EINVAL);
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect_ok(qp_to_rtr(bed.fd, bed.qp.handle, bed.qp.qpn));
}
END_TEST

/* An address vector alone adds PORT to the mask. RC allows both in SQD, and not in RTS. */
START_TEST(test_qp_11_address_vector_alone_brings_its_port)
{
	struct ib_uverbs_modify_qp attr = { .attr_mask = IBV_QP_AV };
	struct bed bed = make_bed();

	attr.qp_handle = bed.qp.handle;
	loopback(bed.fd, &attr.dest);
	expect(uv_modify_qp(bed.fd, _i, &attr), EINVAL);
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect_ok(qp_to_rtr(bed.fd, bed.qp.handle, bed.qp.qpn));
	expect_ok(qp_to_rts(bed.fd, bed.qp.handle));
	expect(uv_modify_qp(bed.fd, _i, &attr), EINVAL);
	expect_ok(qp_to_state(bed.fd, bed.qp.handle, IBV_QPS_SQD));
	expect_ok(uv_modify_qp(bed.fd, _i, &attr));
}
END_TEST

/* In SQD, UC allows a new address vector but no PORT. The address vector adds PORT to the mask, so it is refused. */
START_TEST(test_qp_11_address_vector_alone_is_einval_where_a_port_is)
{
	static const unsigned int mask[] = {
		IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		IBV_QP_STATE | IBV_QP_SQ_PSN,
		IBV_QP_STATE,
	};
	struct ib_uverbs_modify_qp attr = { .path_mtu = IBV_MTU_1024, .port_num = 1 };
	struct bed bed = make_bed();
	struct uv_qp_attr qp_attr = uv_qp_attr(bed.pd, bed.cq);
	struct uv_qp qp;

	qp_attr.type = UC;
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &qp_attr, &qp));
	loopback(bed.fd, &attr.dest);
	attr.qp_handle = qp.handle;
	attr.dest_qp_num = qp.qpn;
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(mask); i++) {
		attr.qp_state = IBV_QPS_INIT + i;
		attr.attr_mask = mask[i];
		expect_ok(uv_modify_qp(bed.fd, _i, &attr));
	}
	attr.attr_mask = IBV_QP_ACCESS_FLAGS;
	expect_ok(uv_modify_qp(bed.fd, _i, &attr));
	attr.attr_mask = IBV_QP_AV;
	expect(uv_modify_qp(bed.fd, _i, &attr), EINVAL);
}
END_TEST

static int modify_unprivileged(void *arg)
{
	struct unprivileged *u = arg;
	struct bed bed = make_bed();
	struct ib_uverbs_modify_qp attr = { .qp_handle = bed.qp.handle, .attr_mask = u->mask, .qkey = u->qkey };

	return uv_modify_qp(bed.fd, u->front, &attr);
}

START_TEST(test_qp_12_privileged_qkey_is_eperm)
{
	struct unprivileged u = { _i, 0, 0, IBV_QP_QKEY, QKEY_PRIVILEGED | 1 };

	target();
	expect(uv_as_nobody(1 << 20, modify_unprivileged, &u), EPERM);
	u.qkey = 1;
	expect(uv_as_nobody(1 << 20, modify_unprivileged, &u), EINVAL); /* RC has no Q_Key */
}
END_TEST

/* INIT to RTR with this source GID index. -1: without a GRH. */
static int rtr_from_gid(const struct bed *bed, enum uv_front front, int index)
{
	struct ib_uverbs_modify_qp attr = {
		.qp_handle = bed->qp.handle,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.dest_qp_num = bed->qp.qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.rq_psn = 0xff000007,
	};

	loopback(bed->fd, &attr.dest);
	attr.dest.is_global = index >= 0;
	attr.dest.sgid_index = index < 0 ? 0 : index;
	return uv_modify_qp(bed->fd, front, &attr);
}

START_TEST(test_qp_13_source_gid_of_a_path)
{
	struct ib_uverbs_query_port_resp port = {};
	struct bed bed = make_bed();

	expect_ok(uv_query_port(bed.fd, UV_WRITE, 1, &port));
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	if (port.gid_tbl_len <= 255)
		expect(rtr_from_gid(&bed, _i, port.gid_tbl_len), EINVAL);
	expect(rtr_from_gid(&bed, _i, port.gid_tbl_len <= 255 ? port.gid_tbl_len - 1 : 255), ENODATA);
	expect_choice("qp-13-no-grh", rtr_from_gid(&bed, _i, -1), EINVAL);
}
END_TEST

START_TEST(test_qp_13_packet_numbers_have_24_bits)
{
	struct ib_uverbs_query_qp_resp resp = {};
	struct bed bed = make_bed();
	struct ib_uverbs_qp_dest dest;

	loopback(bed.fd, &dest);
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect_ok(rtr_from_gid(&bed, _i, dest.is_global ? 0 : -1));
	expect_ok(uv_query_qp(bed.fd, _i, bed.qp.handle, &resp));
	ck_assert_uint_eq(resp.rq_psn, 7);
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_RTR);
	ck_assert_uint_eq(resp.dest_qp_num, bed.qp.qpn);
}
END_TEST

START_TEST(test_qp_13_alternate_path_off_infiniband_is_einval)
{
	struct ib_uverbs_query_port_resp port = {};
	struct bed bed = make_bed();
	struct ib_uverbs_modify_qp attr = {
		.qp_handle = bed.qp.handle,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.alt_port_num = 1,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH,
		.dest_qp_num = bed.qp.qpn,
		.max_dest_rd_atomic = 1,
	};

	expect_ok(uv_query_port(bed.fd, UV_WRITE, 1, &port));
	loopback(bed.fd, &attr.dest);
	attr.alt_dest = attr.dest;
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
		expect(uv_modify_qp(bed.fd, _i, &attr), EINVAL);
	else
		expect_ok(uv_modify_qp(bed.fd, _i, &attr));
}
END_TEST

START_TEST(test_qp_state_table_is_infiniband_s)
{
	struct bed bed = make_bed();
	struct ib_uverbs_query_qp_resp resp = {};

	expect(qp_to_state(bed.fd, bed.qp.handle, IBV_QPS_RTS), EINVAL);
	expect(qp_to_state(bed.fd, bed.qp.handle, IBV_QPS_INIT), EINVAL); /* without what INIT requires */
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	expect(qp_to_rts(bed.fd, bed.qp.handle), EINVAL);
	expect_ok(qp_to_rtr(bed.fd, bed.qp.handle, bed.qp.qpn));
	expect(qp_to_init(bed.fd, bed.qp.handle), EINVAL);
	expect_ok(qp_to_rts(bed.fd, bed.qp.handle));
	expect_ok(uv_query_qp(bed.fd, UV_WRITE, bed.qp.handle, &resp));
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_RTS);
	ck_assert_uint_eq(resp.sq_psn, 100);
	ck_assert_uint_eq(resp.timeout, 14);
	ck_assert_uint_ge(resp.max_send_wr, bed.qp.cap.max_send_wr); /* rxe reports the rounded size */
	expect_ok(qp_to_state(bed.fd, bed.qp.handle, IBV_QPS_ERR));
	expect(qp_to_rts(bed.fd, bed.qp.handle), EINVAL);
	expect_ok(qp_to_state(bed.fd, bed.qp.handle, IBV_QPS_RESET));
	expect_ok(uv_query_qp(bed.fd, UV_INVOKE, bed.qp.handle, &resp));
	ck_assert_uint_eq(resp.qp_state, IBV_QPS_RESET);
}
END_TEST

TCase *case_qp(void)
{
	TCase *tc = tcase_create("qp");

	tcase_add_loop_test(tc, test_qp_01_raw_packet_without_cap_net_raw_is_eperm, 0, UV_FRONTS);
	tcase_add_test(tc, test_qp_01_capability_in_a_user_namespace_does_not_count);
	tcase_add_loop_test(tc, test_qp_02_unknown_type_is_einval, 0, UV_FRONTS);
	tcase_add_loop_test(tc, test_qp_create_looks_up_the_receive_cq_then_the_send_cq_then_the_pd, 0, UV_METHOD);
	tcase_add_test(tc, test_qp_create_by_method_without_its_objects_is_enoent);
	tcase_add_loop_test(tc, test_qp_04_xrc_target_without_its_domain_is_einval, 0, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_06_create_flags, UV_WRITE_EX, UV_FRONTS);
	tcase_add_loop_test(tc, test_qp_06_source_qpn_without_cap_net_raw_is_eperm, UV_WRITE_EX, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_07_extended_comp_mask_or_reserved_is_einval, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_qp_08_method_flags_are_for_some_types_only);
	tcase_add_loop_test(tc, test_qp_09_unknown_mask_bits_are_eopnotsupp_before_the_handle, 0, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_10_modify_checks_ports_and_states, 0, UV_METHOD);
	tcase_add_test(tc, test_qp_10_address_vector_of_another_port_is_einval);
	tcase_add_loop_test(tc, test_qp_11_address_vector_alone_brings_its_port, 0, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_11_address_vector_alone_is_einval_where_a_port_is, 0, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_12_privileged_qkey_is_eperm, 0, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_13_source_gid_of_a_path, 0, UV_METHOD);
	tcase_add_loop_test(tc, test_qp_13_packet_numbers_have_24_bits, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_13_alternate_path_off_infiniband_is_einval, 0, UV_METHOD);
	tcase_add_test(tc, test_qp_state_table_is_infiniband_s);
	add_post_tests(tc);
	return tc;
}
