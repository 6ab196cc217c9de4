/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MODIFY_QP and QUERY_QP: the attributes that the backend gets and answers, and checks that need a device with other ports
 * or GIDs. tests/abi/rules_qp.c has the other checks.
 */
#include <linux/capability.h>
#include <sys/syscall.h>
#include "tests.h"

static uint32_t pd, cq;
static struct uv_qp qp;

static void begin(void)
{
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

/* Also makes a QP of this type. */
static void begin_qp(uint8_t type)
{
	struct uv_qp_attr attr;

	begin();
	attr = uv_qp_attr(pd, cq);
	attr.type = type;
	ck_assert_int_eq(uv_create_qp(h.fd, UV_WRITE, &attr, &qp), 0);
}

static struct uvd_qp *backend_qp(void)
{
	struct uvd_uobject *uobj;
	struct uvd_qp *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, NULL, qp.handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

/* Each test runs in its own process, so the other tests keep their capabilities. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};

	ck_assert_int_eq(syscall(SYS_capset, &header, none), 0);
}

static struct ibv_qp_attr seen;
static int seen_mask;

static int see_modify(struct uvd_qp *q, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata)
{
	seen = *attr;
	seen_mask = mask;
	return 0;
}

static int modify(struct ib_uverbs_modify_qp *cmd)
{
	seen_mask = -1;
	cmd->qp_handle = qp.handle;
	return uv_modify_qp(h.fd, UV_WRITE, cmd);
}

static int modify_ex(struct ib_uverbs_ex_modify_qp *cmd)
{
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	int ret;

	seen_mask = -1;
	cmd->base.qp_handle = qp.handle;
	ret = uv_cmd(h.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(MODIFY_QP), cmd, sizeof(*cmd), &resp, sizeof(resp) });
	if (!ret)
		ck_assert_uint_eq(resp.response_length, sizeof(resp));
	return ret;
}

static void begin_modify(uint8_t type)
{
	begin_qp(type);
	h.ops.modify_qp = see_modify;
}

START_TEST(test_qp_09_backend_gets_the_rate_limit_of_the_extended_command)
{
	struct ib_uverbs_ex_modify_qp ex = { .base.attr_mask = IBV_QP_RATE_LIMIT, .rate_limit = 77 };

	begin_modify(IBV_QPT_RC);
	ck_assert_int_eq(modify_ex(&ex), 0);
	ck_assert_int_eq(seen_mask, IBV_QP_RATE_LIMIT);
	ck_assert_uint_eq(seen.rate_limit, 77);
}
END_TEST

START_TEST(test_qp_10_path_of_another_port_of_two_is_einval)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_AV | IBV_QP_PORT, .port_num = 1, .dest.port_num = 2 };

	begin_modify(IBV_QPT_RC);
	h.dev->config.num_ports = 2;
	ck_assert_int_eq(modify(&cmd), -EINVAL);
	cmd = (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_ALT_PATH, .alt_port_num = 1, .alt_dest.port_num = 2 };
	ck_assert_int_eq(modify(&cmd), -EINVAL);
	ck_assert_int_eq(seen_mask, -1);
	h.dev->config.num_ports = 1;
}
END_TEST

START_TEST(test_to_rtr_with_the_port_of_init)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE | IBV_QP_PORT,
					   .qp_state = IBV_QPS_INIT,
					   .port_num = 1 };

	begin_modify(IBV_QPT_RC);
	ck_assert_int_eq(modify(&cmd), 0);
	cmd = (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_AV | IBV_QP_STATE,
					    .qp_state = IBV_QPS_RTR,
					    .dest = { .port_num = 1, .dlid = 5, .sl = 3 } };
	ck_assert_int_eq(modify(&cmd), 0);
	ck_assert_int_eq(seen_mask, IBV_QP_AV | IBV_QP_STATE);
	ck_assert_uint_eq(seen.ah_attr.dlid, 5);
	ck_assert_uint_eq(seen.ah_attr.sl, 3);
}
END_TEST

START_TEST(test_qp_11_a_vector_alone_binds_the_port)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_AV, .dest.port_num = 1 };

	begin_modify(IBV_QPT_RC);
	ck_assert_int_eq(modify(&cmd), 0);
	ck_assert_int_eq(seen_mask, IBV_QP_AV | IBV_QP_PORT);
	ck_assert_uint_eq(seen.port_num, 1);
	ck_assert_uint_eq(backend_qp()->port, 1);
}
END_TEST

START_TEST(test_a_refused_modify_does_not_bind_the_port)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_PORT, .port_num = 1 };

	begin_qp(IBV_QPT_RC);
	ck_assert_int_eq(modify(&cmd), -EINVAL); /* RESET to RESET with a port: the null backend refuses it */
	ck_assert_uint_eq(backend_qp()->port, 0);
}
END_TEST

START_TEST(test_qp_12_a_privileged_qkey_needs_cap_net_raw)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_QKEY, .qkey = 0x80000001 };

	begin_modify(IBV_QPT_UD);
	if (uvd_caller_capable(&h.call->caller, CAP_NET_RAW))
		ck_assert_int_eq(modify(&cmd), 0);
	drop_capabilities();
	ck_assert_int_eq(modify(&cmd), -EPERM);
	ck_assert_int_eq(seen_mask, -1);
	cmd.qkey = 0x7fffffff;
	ck_assert_int_eq(modify(&cmd), 0);
	ck_assert_uint_eq(seen.qkey, 0x7fffffff);
}
END_TEST

static int three_gids(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry)
{
	return index == 0 ? 0 : index < 3 ? -ENODATA : -EINVAL;
}

START_TEST(test_qp_13_address_vectors)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_AV,
					   .dest = { .port_num = 1,
						     .is_global = 1,
						     .dgid = { 1, 2, 3 },
						     .flow_label = 4,
						     .hop_limit = 5,
						     .traffic_class = 6 } };

	begin_modify(IBV_QPT_RC);
	h.ops.query_gid = three_gids;
	ck_assert_int_eq(modify(&cmd), 0);
	ck_assert_mem_eq(seen.ah_attr.grh.dgid.raw, cmd.dest.dgid, 16);
	ck_assert_uint_eq(seen.ah_attr.grh.flow_label, 4);
	ck_assert_uint_eq(seen.ah_attr.grh.hop_limit, 5);
	ck_assert_uint_eq(seen.ah_attr.grh.traffic_class, 6);
	cmd.dest.sgid_index = 1;
	ck_assert_int_eq(modify(&cmd), -ENODATA);
	cmd.dest.sgid_index = 3;
	ck_assert_int_eq(modify(&cmd), -EINVAL);
	/* Ethernet needs a GRH, and has no alternate path. */
	h.dev->config.ports[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	cmd.dest.is_global = 0;
	ck_assert_int_eq(modify(&cmd), -EINVAL);
	cmd = (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_ALT_PATH | IBV_QP_PORT,
					    .port_num = 1,
					    .alt_port_num = 1,
					    .alt_dest = { .port_num = 1, .is_global = 1 } };
	ck_assert_int_eq(modify(&cmd), -EINVAL);
	h.dev->config.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	ck_assert_int_eq(modify(&cmd), 0);
}
END_TEST

START_TEST(test_qp_13_psns_are_masked_and_the_rest_taken_by_mask)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT,
					   .rq_psn = 0x1abcdef,
					   .sq_psn = 0xff123456,
					   .timeout = 9,
					   .retry_cnt = 7 };

	begin_modify(IBV_QPT_RC);
	ck_assert_int_eq(modify(&cmd), 0);
	ck_assert_uint_eq(seen.rq_psn, 0xabcdef);
	ck_assert_uint_eq(seen.sq_psn, 0x123456);
	ck_assert_uint_eq(seen.timeout, 9);
	ck_assert_uint_eq(seen.retry_cnt, 0);
}
END_TEST

START_TEST(test_modify_masks_what_an_xrc_end_ignores)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_MIN_RNR_TIMER | IBV_QP_RETRY_CNT };

	begin_modify(IBV_QPT_XRC_SEND);
	ck_assert_int_eq(modify(&cmd), 0);
	ck_assert_int_eq(seen_mask, IBV_QP_RETRY_CNT);
}
END_TEST

/* Each member has another value, so that none can stand for another. timeout is the mask. */
static int fill_query(struct uvd_qp *q, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = 1,
		.cur_qp_state = 2,
		.path_mtu = 3,
		.path_mig_state = 4,
		.qkey = 5,
		.rq_psn = 6,
		.sq_psn = 7,
		.dest_qp_num = 8,
		.qp_access_flags = 9,
		.ah_attr = { .dlid = 10, .is_global = 1, .grh.hop_limit = 11, .port_num = 12 },
		.alt_ah_attr = { .dlid = 13, .grh.hop_limit = 14 },
		.pkey_index = 15,
		.alt_pkey_index = 16,
		.sq_draining = 17,
		.max_rd_atomic = 18,
		.max_dest_rd_atomic = 19,
		.min_rnr_timer = 20,
		.port_num = 21,
		.timeout = mask,
		.retry_cnt = 22,
		.rnr_retry = 23,
		.alt_port_num = 24,
		.alt_timeout = 25,
	};
	init->cap = (struct ibv_qp_cap){ 26, 27, 28, 29, 30 };
	init->sq_sig_all = 1;
	return 0;
}

START_TEST(test_query_qp_answers_each_attribute)
{
	const struct ib_uverbs_query_qp_resp want = {
		.dest = { .dlid = 10, .is_global = 1, .hop_limit = 11, .port_num = 12 },
		.alt_dest = { .dlid = 13 }, /* without a GRH */
		.max_send_wr = 26,
		.max_recv_wr = 27,
		.max_send_sge = 28,
		.max_recv_sge = 29,
		.max_inline_data = 30,
		.qkey = 5,
		.rq_psn = 6,
		.sq_psn = 7,
		.dest_qp_num = 8,
		.qp_access_flags = 9,
		.pkey_index = 15,
		.alt_pkey_index = 16,
		.qp_state = 1,
		.cur_qp_state = 2,
		.path_mtu = 3,
		.path_mig_state = 4,
		.sq_draining = 17,
		.max_rd_atomic = 18,
		.max_dest_rd_atomic = 19,
		.min_rnr_timer = 20,
		.port_num = 21,
		.timeout = 0x55,
		.retry_cnt = 22,
		.rnr_retry = 23,
		.alt_port_num = 24,
		.alt_timeout = 25,
		.sq_sig_all = 1,
	};
	struct ib_uverbs_query_qp cmd = { .attr_mask = 0x55 };
	struct ib_uverbs_query_qp_resp resp;
	struct uv_cmd query = { IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), &resp, sizeof(resp) };

	begin_qp(IBV_QPT_RC);
	h.ops.query_qp = fill_query;
	memset(&resp, 0xee, sizeof(resp));
	cmd.qp_handle = qp.handle;
	ck_assert_int_eq(uv_cmd(h.fd, UV_WRITE, &query), 0);
	ck_assert_mem_eq(&resp, &want, sizeof(want));
}
END_TEST

TEST_LIST(test_qp_09_backend_gets_the_rate_limit_of_the_extended_command,
	  test_qp_10_path_of_another_port_of_two_is_einval, test_to_rtr_with_the_port_of_init,
	  test_qp_11_a_vector_alone_binds_the_port, test_a_refused_modify_does_not_bind_the_port,
	  test_qp_12_a_privileged_qkey_needs_cap_net_raw, test_qp_13_address_vectors,
	  test_qp_13_psns_are_masked_and_the_rest_taken_by_mask, test_modify_masks_what_an_xrc_end_ignores,
	  test_query_qp_answers_each_attribute)
