/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work queues, indirection tables, and QPs that receive by a table: what the adapter gets, and what the client gets. */
#include <fcntl.h>
#include <string.h>
#include "tests/suite.h"
#include "wq_verbs.h"

START_TEST(test_work_queue_has_every_attribute_of_the_clients)
{
	const uint32_t flags = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS | IBV_WQ_FLAGS_DELAY_DROP |
			       IBV_WQ_FLAGS_PCI_WRITE_END_PADDING;
	const struct ibv_qp *qp = fake_qp(wq_client.qp.qpn);
	struct wq wq;

	ck_assert_int_eq(create_wq_with(IBV_WQT_RQ, flags, &wq), 0);
	ck_assert_uint_eq(fake.wq_request.wq_type, IBV_WQT_RQ);
	ck_assert_uint_eq(fake.wq_request.max_wr, WQ_MAX_WR);
	ck_assert_uint_eq(fake.wq_request.max_sge, WQ_MAX_SGE);
	ck_assert_ptr_eq(fake.wq_request.pd, qp->pd);
	ck_assert_ptr_eq(fake.wq_request.cq, qp->recv_cq);
	ck_assert_uint_eq(fake.wq_request.comp_mask, IBV_WQ_INIT_ATTR_FLAGS);
	ck_assert_uint_eq(fake.wq_request.create_flags, flags);
	ck_assert_uint_eq(wq_resp.max_wr, 64);
	ck_assert_uint_eq(wq_resp.max_sge, 4);
	ck_assert_uint_eq(wq.num, fake_wq(wq.num)->wq_num);
	ck_assert_int_eq(destroy_wq(&wq, NULL), 0);
	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_uint_eq(fake.wq_request.comp_mask, 0);
}
END_TEST

START_TEST(test_work_queue_that_libibverbs_lacks_is_refused)
{
	struct wq wq;

	ck_assert_int_eq(create_wq_with(IBV_WQT_RQ + 1, 0, &wq), -EINVAL);
	ck_assert_int_eq(create_wq_with(IBV_WQT_RQ, IBV_WQ_FLAGS_RESERVED, &wq), -EOPNOTSUPP);
	ck_assert_int_eq(fake.wq_request.max_wr, 0);
}
END_TEST

START_TEST(test_change_of_a_work_queue_has_every_attribute_of_the_clients)
{
	const struct ib_uverbs_ex_modify_wq all = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS,
		.wq_state = IBV_WQS_ERR,
		.curr_wq_state = IBV_WQS_RDY,
		.flags = IBV_WQ_FLAGS_CVLAN_STRIPPING,
		.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS,
	};
	struct wq wq;

	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_int_eq(modify_wq(&wq, all), 0);
	ck_assert_uint_eq(fake.wq_change.attr_mask, all.attr_mask);
	ck_assert_uint_eq(fake.wq_change.wq_state, IBV_WQS_ERR);
	ck_assert_uint_eq(fake.wq_change.curr_wq_state, IBV_WQS_RDY);
	ck_assert_uint_eq(fake.wq_change.flags, all.flags);
	ck_assert_uint_eq(fake.wq_change.flags_mask, all.flags_mask);
	ck_assert_uint_eq(fake_wq(wq.num)->state, IBV_WQS_ERR);
}
END_TEST

/* The core fills in the state that the client leaves out, from the last change that the adapter has made. */
START_TEST(test_state_of_a_work_queue_is_the_last_that_the_adapter_has_taken)
{
	struct wq wq;

	ck_assert_int_eq(create_wq(&wq), 0);
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_RDY), 0);
	ck_assert_uint_eq(fake.wq_change.curr_wq_state, IBV_WQS_RESET);
	fake.result[FAKE_MODIFY_WQ] = EAGAIN;
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_ERR), -EAGAIN);
	fake.result[FAKE_MODIFY_WQ] = 0;
	ck_assert_int_eq(modify_wq(&wq, (struct ib_uverbs_ex_modify_wq){ .attr_mask = IBV_WQ_ATTR_FLAGS }), 0);
	ck_assert_uint_eq(fake.wq_change.curr_wq_state, IBV_WQS_RDY);
	ck_assert_int_eq(modify_wq_state(&wq, IBV_WQS_ERR), 0);
	ck_assert_uint_eq(fake.wq_change.curr_wq_state, IBV_WQS_RDY);
}
END_TEST

START_TEST(test_table_has_its_work_queues_in_their_order)
{
	uint32_t table, qp;
	struct wq one, two;

	ck_assert_int_eq(create_wq(&one), 0);
	ck_assert_int_eq(create_wq(&two), 0);
	ck_assert_int_eq(create_table(&two, &one, &table), 0);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	ck_assert_uint_eq(fake_table_entry(fake.qp_request.rwq_ind_tbl, 0), two.num);
	ck_assert_uint_eq(fake_table_entry(fake.qp_request.rwq_ind_tbl, 1), one.num);
	ck_assert_uint_eq(fake_table_entry(fake.qp_request.rwq_ind_tbl, 2), 0);
}
END_TEST

START_TEST(test_qp_with_a_table_has_the_hash_of_the_client)
{
	const struct uverbsd_rx_hash hash = toeplitz();
	uint32_t qp, table;
	struct wq wq;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp_with(table, &hash, sizeof(hash), &qp), 0);
	ck_assert_uint_eq(fake.qp_request.comp_mask,
			  IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH);
	ck_assert_uint_eq(fake.qp_request.qp_type, IBV_QPT_RAW_PACKET);
	ck_assert_ptr_null(fake.qp_request.send_cq);
	ck_assert_ptr_null(fake.qp_request.recv_cq);
	ck_assert_uint_eq(fake.qp_request.rx_hash_conf.rx_hash_function, hash.function);
	ck_assert_uint_eq(fake.qp_request.rx_hash_conf.rx_hash_fields_mask, hash.fields_mask);
	ck_assert_uint_eq(fake.qp_request.rx_hash_conf.rx_hash_key_len, hash.key_len);
	ck_assert_mem_eq(fake.rx_hash_key, hash.key, hash.key_len);
}
END_TEST

START_TEST(test_hash_that_the_client_leaves_out_is_zero)
{
	struct uverbsd_rx_hash hash = toeplitz();
	uint32_t qp, table;
	struct wq wq;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &qp), 0);
	ck_assert_uint_eq(fake.qp_request.rx_hash_conf.rx_hash_function, 0);
	ck_assert_uint_eq(fake.qp_request.rx_hash_conf.rx_hash_fields_mask, 0);
	ck_assert_uint_eq(fake.qp_request.rx_hash_conf.rx_hash_key_len, 0);
	hash.key_len = sizeof(hash.key);
	ck_assert_int_eq(create_qp_with(table, &hash, offsetof(struct uverbsd_rx_hash, key) + 8, &qp), 0);
	ck_assert_mem_eq(fake.rx_hash_key, hash.key, 8);
	for (size_t i = 8; i < sizeof(hash.key); i++)
		ck_assert_uint_eq(fake.rx_hash_key[i], 0);
}
END_TEST

START_TEST(test_hash_that_is_no_hash_is_einval)
{
	struct {
		struct uverbsd_rx_hash hash;
		uint64_t more;
	} in = { toeplitz(), 0 };
	uint32_t qp, table;
	struct wq wq;

	table = some_table(&wq);
	fake.qp_request = (struct ibv_qp_init_attr_ex){};
	ck_assert_int_eq(create_qp_with(table, &in, sizeof(in), &qp), -EINVAL);
	in.hash.key_len = sizeof(in.hash.key) + 1;
	ck_assert_int_eq(create_qp_with(table, &in.hash, sizeof(in.hash), &qp), -EINVAL);
	in.hash.key_len = 40;
	in.hash.reserved[5] = 1;
	ck_assert_int_eq(create_qp_with(table, &in.hash, sizeof(in.hash), &qp), -EINVAL);
	ck_assert_uint_eq(fake.qp_request.qp_type, 0);
}
END_TEST

/* The target is in the engine's context on the adapter, and the table in the client's: their handles mean other objects. */
START_TEST(test_xrc_target_takes_no_table)
{
	struct ib_uverbs_ex_create_qp cmd = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE };
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct wq wq;

	cmd.rwq_ind_tbl_handle = some_table(&wq);
	ck_assert_int_eq(uv_open_xrcd(wq_client.fd, UV_WRITE, -1, O_CREAT, &cmd.pd_handle), 0);
	ck_assert_int_eq(uv_cmd(wq_client.fd, UV_WRITE_EX,
				&(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), &resp, sizeof(resp) }),
			 -EOPNOTSUPP);
	cmd.comp_mask = 0;
	ck_assert_int_eq(uv_cmd(wq_client.fd, UV_WRITE_EX,
				&(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), &resp, sizeof(resp) }),
			 0);
}
END_TEST

/* Such a QP has no queues of its own. */
START_TEST(test_qp_with_a_table_takes_no_requests)
{
	struct client c = wq_client;
	uint32_t table;
	struct wq wq;

	table = some_table(&wq);
	ck_assert_int_eq(create_qp(table, &c.qp.handle), 0);
	client_connect(&c, 1);
	ck_assert_int_eq(client_recv(&c, 1, 0, 8), -EINVAL);
	ck_assert_int_eq(client_send(&c, 1, 0, 8, IBV_SEND_SIGNALED), -EINVAL);
	ck_assert_int_eq(client_reset(&c), 0);
	ck_assert_int_eq(destroy_qp(c.qp.handle), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("wq");

	tcase_add_checked_fixture(t, wq_setup, wq_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_work_queue_has_every_attribute_of_the_clients);
	tcase_add_test(t, test_work_queue_that_libibverbs_lacks_is_refused);
	tcase_add_test(t, test_change_of_a_work_queue_has_every_attribute_of_the_clients);
	tcase_add_test(t, test_state_of_a_work_queue_is_the_last_that_the_adapter_has_taken);
	tcase_add_test(t, test_table_has_its_work_queues_in_their_order);
	tcase_add_test(t, test_qp_with_a_table_has_the_hash_of_the_client);
	tcase_add_test(t, test_hash_that_the_client_leaves_out_is_zero);
	tcase_add_test(t, test_hash_that_is_no_hash_is_einval);
	tcase_add_test(t, test_xrc_target_takes_no_table);
	tcase_add_test(t, test_qp_with_a_table_takes_no_requests);
	return run_suite("the verbs backend with a fake adapter: work queues", t);
}
