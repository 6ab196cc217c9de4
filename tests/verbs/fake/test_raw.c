/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a client can ask of a QP beside its type, and of raw packets: flags of creation, checksums of sends and completions,
 * the adapter's capabilities.
 */
#include "client.h"
#include "tests/suite.h"

enum { SOURCE_QPN = 0x123456, OTHER = 1 << 2 /* CROSS_CHANNEL: the kernel knows it, libibverbs does not */ };

static struct client a;

static void setup_with(unsigned int raw_caps, unsigned int wqs)
{
	client_init(NULL);
	h.config.hidden_caps = 0; /* --announce all */
	fake.attr.orig_attr.device_cap_flags = IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM | IBV_DEVICE_RAW_IP_CSUM;
	fake.attr.raw_packet_caps = raw_caps;
	fake.attr.max_wq_type_rq = wqs;
	fake.attr.rss_caps = (struct ibv_rss_caps){ .supported_qpts = 1 << IBV_QPT_RAW_PACKET | 1 << 15,
						    .max_rwq_indirection_tables = 5,
						    .max_rwq_indirection_table_size = 6 };
	client_start();
	h.call->caller.proc = &harness_root; /* for CAP_NET_RAW */
	client_open(&a, h.fd);
}

static void setup(void)
{
	setup_with(~0U, 7);
}

/* ---- flags of QPs ------------------------------------------------------------------------------------------------ */

static int make_qp(enum uv_front front, uint8_t type, uint32_t flags, struct uv_qp *qp)
{
	struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);

	attr.type = type;
	attr.create_flags = flags;
	return uv_create_qp(a.fd, front, &attr, qp);
}

static const struct {
	uint8_t type;
	uint32_t flags;
} qps[] = {
	{ IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB },
	{ IBV_QPT_RAW_PACKET, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB },
	{ IBV_QPT_RAW_PACKET, IBV_QP_CREATE_SCATTER_FCS },
	{ IBV_QPT_RAW_PACKET, IBV_QP_CREATE_CVLAN_STRIPPING },
	{ IBV_QPT_RAW_PACKET, IBV_QP_CREATE_PCI_WRITE_END_PADDING },
	{ IBV_QPT_RAW_PACKET, IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING },
};

START_TEST(test_flags_of_a_qp_are_the_clients)
{
	static const enum uv_front fronts[] = { UV_WRITE_EX, UV_METHOD };
	struct uv_qp qp;

	for (size_t i = 0; i < UV_ARRAY_SIZE(fronts); i++) {
		fake.qp_request = (struct ibv_qp_init_attr_ex){};
		ck_assert_int_eq(make_qp(fronts[i], qps[_i].type, qps[_i].flags, &qp), 0);
		ck_assert_uint_eq(fake.qp_request.comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS);
		ck_assert_uint_eq(fake.qp_request.create_flags, qps[_i].flags);
		ck_assert_uint_eq(fake.qp_request.qp_type, qps[_i].type);
		ck_assert_uint_eq(fake.qp_request.source_qpn, 0);
		ck_assert_int_eq(uv_destroy_qp(a.fd, UV_WRITE, qp.handle, NULL), 0);
	}
}
END_TEST

START_TEST(test_flag_that_libibverbs_lacks_is_eopnotsupp)
{
	struct uv_qp qp;

	fake.qp_request = (struct ibv_qp_init_attr_ex){};
	ck_assert_int_eq(make_qp(UV_WRITE_EX, IBV_QPT_UD, OTHER, &qp), -EOPNOTSUPP);
	ck_assert_int_eq(make_qp(UV_WRITE_EX, IBV_QPT_UD, OTHER | IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, &qp), -EOPNOTSUPP);
	ck_assert_uint_eq(fake.qp_request.qp_type, 0);
}
END_TEST

START_TEST(test_qp_with_flags_that_the_adapter_refuses_has_its_errno_and_costs_nothing)
{
	const uint64_t bytes = client_bytes();
	const unsigned int rings = client_device()->rings;
	const int objects = fake.objects;
	struct uv_qp qp;

	fake.result[FAKE_CREATE_QP] = ENOTSUP;
	ck_assert_int_eq(make_qp(UV_WRITE_EX, IBV_QPT_RAW_PACKET, IBV_QP_CREATE_SCATTER_FCS, &qp), -ENOTSUP);
	ck_assert_uint_eq(client_bytes(), bytes);
	ck_assert_uint_eq(client_device()->rings, rings);
	ck_assert_int_eq(fake.objects, objects);
}
END_TEST

static int make_ex(uint32_t flags, struct ib_uverbs_ex_create_qp_resp *resp)
{
	const struct ib_uverbs_ex_create_qp cmd = {
		.pd_handle = a.pd,
		.send_cq_handle = a.cq,
		.recv_cq_handle = a.cq,
		.max_send_wr = 1,
		.max_send_sge = 1,
		.qp_type = IBV_QPT_UD,
		.create_flags = flags,
		.source_qpn = SOURCE_QPN,
	};

	return uv_cmd(a.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), resp, sizeof(*resp) });
}

static int make_method(struct uv_qp *qp)
{
	struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);
	const uint32_t number = SOURCE_QPN;
	struct uv_tree tree;

	attr.type = IBV_QPT_UD;
	uv_tree_create_qp(&tree, &attr, qp);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_SOURCE_QPN, &number, sizeof(number));
	return uv_ioctl(a.fd, &tree);
}

static void expect_source_qpn(void)
{
	ck_assert_uint_eq(fake.qp_request.comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS);
	ck_assert_uint_eq(fake.qp_request.create_flags, IBV_QP_CREATE_SOURCE_QPN);
	ck_assert_uint_eq(fake.qp_request.source_qpn, SOURCE_QPN);
	fake.qp_request = (struct ibv_qp_init_attr_ex){};
}

START_TEST(test_number_of_the_source_qp_is_the_clients)
{
	struct ib_uverbs_ex_create_qp_resp resp;
	struct uv_qp qp;

	ck_assert_int_eq(make_ex(IBV_QP_CREATE_SOURCE_QPN, &resp), 0);
	expect_source_qpn();
	ck_assert_int_eq(make_method(&qp), 0);
	expect_source_qpn();
	/* Without the flag the number means nothing. */
	ck_assert_int_eq(make_ex(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, &resp), 0);
	ck_assert_uint_eq(fake.qp_request.source_qpn, 0);
}
END_TEST

START_TEST(test_source_qp_needs_cap_net_raw_by_write_and_by_ioctl)
{
	struct ib_uverbs_ex_create_qp_resp resp;
	struct uv_qp qp;

	h.call->caller.proc = &harness_nobody;
	fake.qp_request = (struct ibv_qp_init_attr_ex){};
	ck_assert_int_eq(make_ex(IBV_QP_CREATE_SOURCE_QPN, &resp), -EPERM);
	ck_assert_int_eq(make_method(&qp), -EPERM);
	ck_assert_uint_eq(fake.qp_request.qp_type, 0);
	ck_assert_int_eq(make_ex(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, &resp), 0);
}
END_TEST

/* ---- checksums --------------------------------------------------------------------------------------------------- */

START_TEST(test_checksums_of_a_send_are_asked_of_the_adapter)
{
	struct client c = a;

	ck_assert_int_eq(make_qp(UV_WRITE, IBV_QPT_RAW_PACKET, 0, &c.qp), 0);
	client_connect(&c, c.qp.qpn);
	ck_assert_int_eq(client_recv(&c, 1, 0, 8), 0);
	ck_assert_int_eq(client_send(&c, 2, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM), 0);
	ck_assert_uint_eq(fake.send_flags, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM);
	client_expect(&c, 1);
	client_expect(&c, 2);
	ck_assert_int_eq(client_recv(&c, 1, 0, 8), 0);
	ck_assert_int_eq(client_send(&c, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	ck_assert_uint_eq(fake.send_flags, IBV_SEND_SIGNALED);
}
END_TEST

START_TEST(test_client_hears_that_checksums_are_right)
{
	enum { KERNEL_CSUM_OK = 1 << 3 };
	struct ib_uverbs_wc wc;

	for (unsigned int ok = 0; ok < 2; ok++) {
		ck_assert_int_eq(client_recv(&a, 1, 0, 8), 0);
		fake_forged_completion(a.qp.qpn, (struct ibv_wc){ .wr_id = fake_tag(a.qp.qpn, true),
								  .opcode = IBV_WC_RECV,
								  .wc_flags = ok ? IBV_WC_IP_CSUM_OK : 0 });
		ck_assert_int_eq(client_poll(&a, &wc), 1);
		ck_assert_uint_eq(wc.wc_flags, ok ? KERNEL_CSUM_OK : 0);
		ck_assert_int_eq(client_reset(&a), 0);
		client_connect(&a, a.qp.qpn);
	}
}
END_TEST

/* ---- capabilities ------------------------------------------------------------------------------------------------ */

static struct ib_uverbs_ex_query_device_resp device(void)
{
	const struct ib_uverbs_ex_query_device cmd = {};
	struct ib_uverbs_ex_query_device_resp resp = {};

	ck_assert_int_eq(uv_cmd(a.fd, UV_WRITE_EX,
				&(struct uv_cmd){ UV_EX(QUERY_DEVICE), &cmd, sizeof(cmd), &resp, sizeof(resp) }),
			 0);
	return resp;
}

START_TEST(test_device_has_the_adapters_capabilities)
{
	const struct ib_uverbs_ex_query_device_resp d = device();

	ck_assert_uint_eq(d.raw_packet_caps, IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS |
						     IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_DELAY_DROP);
	ck_assert_uint_eq(d.max_wq_type_rq, 7);
	ck_assert_uint_eq(d.rss_caps.max_rwq_indirection_tables, 5);
	ck_assert_uint_eq(d.rss_caps.max_rwq_indirection_table_size, 6);
	ck_assert_uint_eq(d.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	ck_assert_uint_eq(d.base.device_cap_flags,
			  IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM | IBV_DEVICE_RAW_IP_CSUM);
	ck_assert_uint_eq(d.device_cap_flags_ex, d.base.device_cap_flags);
}
END_TEST

START_TEST(test_device_of_an_adapter_without_them_has_none)
{
	struct ib_uverbs_ex_query_device_resp d;

	client_teardown();
	setup_with(0, 0);
	d = device();
	ck_assert_uint_eq(d.raw_packet_caps, 0);
	ck_assert_uint_eq(d.max_wq_type_rq, 0);
	ck_assert_uint_eq(d.rss_caps.max_rwq_indirection_tables, 0);
	ck_assert_uint_eq(d.rss_caps.max_rwq_indirection_table_size, 0);
	ck_assert_uint_eq(d.rss_caps.supported_qpts, 0);
	ck_assert_uint_eq(d.base.device_cap_flags, IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("raw");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_flags_of_a_qp_are_the_clients, 0, UV_ARRAY_SIZE(qps));
	tcase_add_test(t, test_flag_that_libibverbs_lacks_is_eopnotsupp);
	tcase_add_test(t, test_qp_with_flags_that_the_adapter_refuses_has_its_errno_and_costs_nothing);
	tcase_add_test(t, test_number_of_the_source_qp_is_the_clients);
	tcase_add_test(t, test_source_qp_needs_cap_net_raw_by_write_and_by_ioctl);
	tcase_add_test(t, test_checksums_of_a_send_are_asked_of_the_adapter);
	tcase_add_test(t, test_client_hears_that_checksums_are_right);
	tcase_add_test(t, test_device_has_the_adapters_capabilities);
	tcase_add_test(t, test_device_of_an_adapter_without_them_has_none);
	return run_suite("the verbs backend with a fake adapter: flags of QPs, raw packets", t);
}
