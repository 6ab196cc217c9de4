/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explanations of the soft engine: messages of UC and UD, which are dropped in silence. */
#include <check.h>
#include "tests/backends/two_users.h"

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

static struct uvd_ah *ah;

static void datagram_setup(void)
{
	open_bed();
	bed_connect(&bed, IBV_QPT_UD);
	ah = calloc(1, uvd_backend_soft.size_ah);
	ah->pd = a->side->pd;
	ah->attr = bed_address_of(b);
	ck_assert_int_eq(uvd_backend_soft.create_ah(ah, NULL), 0);
}

static void datagram_teardown(void)
{
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(ah), 0);
	free(ah);
	teardown();
}

static void send_to(uint32_t qpn, uint32_t qkey)
{
	const struct ibv_sge sge = sge_at(a, 0, 1);

	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .ah = ah,
				 .sg_list = &sge, .num_sge = 1, .remote_qpn = qpn, .remote_qkey = qkey),
			 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}

static void qkey_differs(void)
{
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1000), 0);
}

static void is_in_init(void)
{
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET) | to_init(b), 0);
}

static void is_reset(void)
{
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
}

static void make_b(enum ibv_qp_type type)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	b->qp = make_qp(b, type, &init, &err);
	ck_assert_int_eq(err, 0);
}

static void has_other_type(void)
{
	free_qp(b);
	make_b(IBV_QPT_RC);
	ck_assert_int_eq(to_init(b) | to_rtr(b, a), 0);
}

static void is_elsewhere(void)
{
	b->side->dev.config.ports[0].lid ^= 0x40;
}

static void has_other_pkey(void)
{
	b->side->dev.config.ports[0].pkeys[0] = 0x8007;
}

static void has_no_receive(void)
{
}

static void has_short_receive(void)
{
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 40), 0);
}

static const struct {
	const char *code;
	void (*prepare)(void);
	uint32_t qkey;
} drops[] = {
	{ "datagram-qkey", qkey_differs, 0x4321 },
	{ "datagram-state", is_in_init, 0x1234 },
	{ "datagram-state", is_reset, 0x1234 },
	{ "datagram-type", has_other_type, 0x1234 },
	{ "datagram-address", is_elsewhere, 0x1234 },
	{ "datagram-pkey", has_other_pkey, 0x1234 },
	{ "datagram-no-receive", has_no_receive, 0x1234 },
	{ "datagram-short", has_short_receive, 0x1234 },
};

/* The sender learns nothing, whose QP it may be. */
START_TEST(test_receivers_user_learns_once_why_datagrams_are_dropped)
{
	drops[_i].prepare();
	for (int i = 0; i < 3; i++)
		send_to(b->qp->qp_num, drops[_i].qkey);
	ck_assert_uint_eq(times_explained(b, drops[_i].code), 1);
	ck_assert(!was_explained(a, drops[_i].code) && !was_explained(a, "datagram-nowhere"));
}
END_TEST

START_TEST(test_dropped_datagrams_are_explained_anew_after_a_reset)
{
	send_to(b->qp->qp_num, 1);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET) | to_init(b) | to_rtr(b, a), 0);
	send_to(b->qp->qp_num, 1);
	ck_assert_uint_eq(times_explained(b, "datagram-qkey"), 2);
}
END_TEST

START_TEST(test_datagrams_that_are_received_are_not_explained)
{
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1000), 0);
	send_to(b->qp->qp_num, 0x1234);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	for (size_t i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
		ck_assert(!was_explained(b, drops[i].code));
}
END_TEST

/* Why it is in ERR is explained already. */
START_TEST(test_datagrams_that_a_qp_in_err_drops_are_not_explained)
{
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	send_to(b->qp->qp_num, 0x1234);
	ck_assert(!was_explained(b, "datagram-state"));
}
END_TEST

/* The address is not that of the receiver's port, but of the group. */
START_TEST(test_member_of_a_group_learns_why_it_drops_datagrams_and_the_sender_nothing)
{
	static const union ibv_gid group = { .raw = { 0xff, 0x12, 0xa0, 0x1c, [15] = 9 } };

	ah->attr.dlid = 0xc001;
	ah->attr.is_global = 1;
	ah->attr.grh.dgid = group;
	send_to(0xffffff, 0x4321);
	ck_assert_int_eq(uvd_backend_soft.attach_mcast(b->qp, &group, 0xc001), 0);
	send_to(0xffffff, 0x4321);
	ck_assert_int_eq(uvd_backend_soft.detach_mcast(b->qp, &group, 0xc001), 0);
	ck_assert(was_explained(b, "datagram-qkey") && !was_explained(a, "datagram-nowhere"));
}
END_TEST

START_TEST(test_receive_of_a_datagram_with_a_wrong_key_is_explained_as_others)
{
	const struct ibv_sge sge = { (uintptr_t)b->buf, 1000, 0x7700 };

	ck_assert_int_eq(post_recv_list(b, 0xb, &sge, 1), 0);
	send_to(b->qp->qp_num, 0x1234);
	expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
	ck_assert(was_told(b, "0x7700 is the l_key of no region"));
}
END_TEST

START_TEST(test_sender_learns_once_that_there_is_no_such_qp)
{
	send_to(b->qp->qp_num + 100, 0x1234);
	send_to(b->qp->qp_num + 100, 0x1234);
	ck_assert_uint_eq(times_explained(a, "datagram-nowhere"), 1);
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	send_to(b->qp->qp_num + 100, 0x1234);
	ck_assert_uint_eq(times_explained(a, "datagram-nowhere"), 2);
}
END_TEST

/* Else a user finds the QP numbers of others. */
START_TEST(test_sender_learns_nothing_of_numbers_where_another_user_has_qps)
{
	free_qp(b);
	ends_belong_to(1000, 1001);
	make_b(IBV_QPT_UD);
	send_to(b->qp->qp_num + 100, 0x1234);
	ck_assert(!was_explained(a, "datagram-nowhere"));
	free_qp(b);
}
END_TEST

/* The list is good when the datagram comes, and its memory is not. */
START_TEST(test_datagram_into_memory_that_is_gone_is_explained_by_its_key)
{
	char text[64];

	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1000), 0);
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 4096;
	send_to(b->qp->qp_num, 0x1234);
	mm_bad_len = 0;
	snprintf(text, sizeof(text), "the memory of l_key 0x%x cannot be accessed", b->mr->lkey);
	ck_assert(was_told(b, text) && !was_explained(b, "datagram-no-receive"));
}
END_TEST

/* ---- UC ---------------------------------------------------------------------------------------------------------- */

static void uc_setup(void)
{
	open_bed();
	b->path_mtu = IBV_MTU_512;
	bed_connect(&bed, IBV_QPT_UC);
	a->path_mtu = IBV_MTU_1024;
}

/* b is connected anew, and then not to a, or with other attributes. */
static void b_again(struct end *peer)
{
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET) | to_init(b) | to_rtr(b, peer) | to_rts(b), 0);
}

static void a_again(void)
{
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_init(a) | to_rtr(a, b) | to_rts(a), 0);
}

static void is_of_rc(void)
{
	has_other_type();
	a_again();
}

static void has_other_peer(void)
{
	b_again(b);
}

static void lets_nobody_write(void)
{
	b->access = IBV_ACCESS_REMOTE_READ;
	b_again(a);
}

/* The path of b's packets does not lead to a. */
static void leads_elsewhere(void)
{
	a->side->dev.config.ports[0].lid = 0x40;
	b_again(a);
	a->side->dev.config.ports[0].lid = 0x41;
}

static void has_receive_of_39(void)
{
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 39), 0);
}

static void has_receive(void)
{
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 1000), 0);
}

static void has_bad_memory(void)
{
	has_receive();
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 4096;
}

static const struct {
	const char *code;
	void (*prepare)(void);
	enum ibv_wr_opcode opcode;
	const char *text; /* %1$x: the number of b's QP, %2$x: the key */
	uint32_t length, more_key;
} uc_drops[] = {
	{ "message-state", is_in_init, IBV_WR_SEND, "a message came, and QP 0x%1$x is in INIT; move it to RTR", 8 },
	{ "message-state", is_reset, IBV_WR_RDMA_WRITE, "QP 0x%1$x is in RESET", 8 },
	{ "message-type", is_of_rc, IBV_WR_SEND, "QP 0x%1$x has another transport service", 8 },
	{ "message-peer", has_other_peer, IBV_WR_SEND, "not from QP 0x%1$x, which QP 0x%1$x is connected to", 8 },
	{ "message-address", is_elsewhere, IBV_WR_SEND, "the addresses of QP 0x%1$x and of its sender", 8 },
	{ "message-address", leads_elsewhere, IBV_WR_SEND, "the addresses of QP 0x%1$x and of its sender", 8 },
	{ "message-pkey", has_other_pkey, IBV_WR_SEND, "P_Key 0xffff came, and QP 0x%1$x has 0x8007", 8 },
	{ "message-no-receive", has_no_receive, IBV_WR_SEND, "no receive was posted at QP 0x%1$x", 8 },
	{ "message-no-receive", has_no_receive, IBV_WR_RDMA_WRITE_WITH_IMM, "no receive was posted at QP 0x%1$x", 8 },
	{ "recv-short", has_receive_of_39, IBV_WR_SEND, "a message of 40 bytes came for a receive of 39 bytes", 40 },
	{ "path-mtu", has_receive, IBV_WR_SEND, "the path MTU 1024 came, and QP 0x%1$x has 512", 513 },
	{ "qp-access", lets_nobody_write, IBV_WR_RDMA_WRITE, "QP 0x%1$x does not allow REMOTE_WRITE", 8 },
	{ "key-unknown", has_no_receive, IBV_WR_RDMA_WRITE, "0x%2$x is the r_key of no region", 8, 17 << 8 },
	{ "key-unknown", has_receive, IBV_WR_RDMA_WRITE_WITH_IMM, "0x%2$x is the r_key of no region", 8, 17 << 8 },
	{ "memory-gone", has_bad_memory, IBV_WR_SEND, "the memory of l_key 0x%2$x cannot be accessed", 8 },
	{ "memory-gone", has_bad_memory, IBV_WR_RDMA_WRITE, "the memory of r_key 0x%2$x cannot be accessed", 8 },
};

static void uc_send(enum ibv_wr_opcode opcode, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = sge_at(a, 0, length);
	struct uvd_send_wr wr = wr_to(b, opcode, &sge, 1);

	wr.rkey = rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}

static unsigned int uc_times_explained(const struct end *end)
{
	unsigned int times = times_explained(end, "message-nowhere") + times_explained(end, "none");

	for (size_t i = 0; i < sizeof(uc_drops) / sizeof(uc_drops[0]); i++)
		if (!i || strcmp(uc_drops[i].code, uc_drops[i - 1].code))
			times += times_explained(end, uc_drops[i].code);
	return times;
}

/* The sender learns nothing, of one user or of two. */
START_TEST(test_receivers_user_learns_once_why_uc_messages_are_dropped)
{
	const uint32_t rkey = b->mr->rkey + uc_drops[_i / 2].more_key;
	char text[128];

	uc_drops[_i / 2].prepare();
	ends_belong_to(1000, 1000 + _i % 2);
	for (int i = 0; i < 3; i++)
		uc_send(uc_drops[_i / 2].opcode, uc_drops[_i / 2].length, rkey);
	mm_bad_len = 0;
	snprintf(text, sizeof(text), uc_drops[_i / 2].text, b->qp->qp_num, rkey);
	ck_assert_msg(was_told(b, text), "%s", text);
	ck_assert_uint_eq(times_explained(b, uc_drops[_i / 2].code), 1);
	ck_assert_uint_eq(uc_times_explained(b), 1);
	ck_assert_uint_eq(uc_times_explained(a), 0);
}
END_TEST

START_TEST(test_dropped_uc_messages_are_explained_anew_after_a_reset)
{
	uc_send(IBV_WR_SEND, 8, 0);
	b_again(a);
	uc_send(IBV_WR_SEND, 8, 0);
	ck_assert_uint_eq(times_explained(b, "message-no-receive"), 2);
}
END_TEST

/* One is dropped for a reason, the next for another one. */
START_TEST(test_each_reason_to_drop_uc_messages_is_explained)
{
	uc_send(IBV_WR_SEND, 8, 0);
	uc_send(IBV_WR_RDMA_WRITE, 8, b->mr->rkey + (17 << 8));
	has_receive_of_39();
	uc_send(IBV_WR_SEND, 40, 0);
	ck_assert(was_explained(b, "message-no-receive") && was_explained(b, "key-unknown"));
	ck_assert(was_explained(b, "recv-short"));
}
END_TEST

START_TEST(test_uc_messages_that_arrive_are_not_explained)
{
	has_receive();
	has_receive();
	uc_send(IBV_WR_SEND, 8, 0);
	uc_send(IBV_WR_RDMA_WRITE, 512, b->mr->rkey);
	uc_send(IBV_WR_RDMA_WRITE, 0, 0);
	uc_send(IBV_WR_RDMA_WRITE_WITH_IMM, 8, b->mr->rkey);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_uint_eq(uc_times_explained(a) + uc_times_explained(b), 0);
}
END_TEST

/* Why the QP is in ERR is explained already, by the receive that has failed. */
START_TEST(test_uc_receive_with_a_wrong_key_is_explained_once_as_a_completion)
{
	const struct ibv_sge sge = { (uintptr_t)b->buf, 1000, 0x7700 };

	ck_assert_int_eq(post_recv_list(b, 0xb, &sge, 1), 0);
	uc_send(IBV_WR_SEND, 8, 0);
	uc_send(IBV_WR_SEND, 8, 0);
	expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
	ck_assert(was_told(b, "0x7700 is the l_key of no region"));
	ck_assert_uint_eq(uc_times_explained(b), 1);
}
END_TEST

static void connected_to_nobody(void)
{
	const uint32_t qpn = b->qp->qp_num;

	b->qp->qp_num += 100;
	a_again();
	b->qp->qp_num = qpn;
}

START_TEST(test_uc_sender_learns_once_that_there_is_no_such_qp)
{
	char text[64];

	connected_to_nobody();
	uc_send(IBV_WR_SEND, 8, 0);
	uc_send(IBV_WR_SEND, 8, 0);
	ck_assert_uint_eq(times_explained(a, "message-nowhere"), 1);
	snprintf(text, sizeof(text), "a message to QP 0x%x, and there is no such QP; set dest", b->qp->qp_num + 100);
	ck_assert(was_told(a, text));
	ck_assert_uint_eq(uc_times_explained(b), 0);
}
END_TEST

/* Else a user finds the QP numbers of others. */
START_TEST(test_uc_sender_learns_nothing_of_numbers_where_another_user_has_qps)
{
	free_qp(b);
	ends_belong_to(1000, 1001);
	make_b(IBV_QPT_UC);
	connected_to_nobody();
	uc_send(IBV_WR_SEND, 8, 0);
	ck_assert_uint_eq(uc_times_explained(a), 0);
	free_qp(b);
}
END_TEST

int main(void)
{
	TCase *datagrams = tcase_create("datagrams"), *uc = tcase_create("UC");
	Suite *s = suite_create("soft: explanations of drops");

	tcase_add_checked_fixture(datagrams, datagram_setup, datagram_teardown);
	tcase_add_loop_test(datagrams, test_receivers_user_learns_once_why_datagrams_are_dropped, 0,
			    sizeof(drops) / sizeof(drops[0]));
	tcase_add_test(datagrams, test_dropped_datagrams_are_explained_anew_after_a_reset);
	tcase_add_test(datagrams, test_datagrams_that_are_received_are_not_explained);
	tcase_add_test(datagrams, test_datagrams_that_a_qp_in_err_drops_are_not_explained);
	tcase_add_test(datagrams, test_member_of_a_group_learns_why_it_drops_datagrams_and_the_sender_nothing);
	tcase_add_test(datagrams, test_receive_of_a_datagram_with_a_wrong_key_is_explained_as_others);
	tcase_add_test(datagrams, test_sender_learns_once_that_there_is_no_such_qp);
	tcase_add_test(datagrams, test_sender_learns_nothing_of_numbers_where_another_user_has_qps);
	tcase_add_test(datagrams, test_datagram_into_memory_that_is_gone_is_explained_by_its_key);
	suite_add_tcase(s, datagrams);
	tcase_add_checked_fixture(uc, uc_setup, teardown);
	tcase_add_loop_test(uc, test_receivers_user_learns_once_why_uc_messages_are_dropped, 0,
			    2 * sizeof(uc_drops) / sizeof(uc_drops[0]));
	tcase_add_test(uc, test_dropped_uc_messages_are_explained_anew_after_a_reset);
	tcase_add_test(uc, test_each_reason_to_drop_uc_messages_is_explained);
	tcase_add_test(uc, test_uc_messages_that_arrive_are_not_explained);
	tcase_add_test(uc, test_uc_receive_with_a_wrong_key_is_explained_once_as_a_completion);
	tcase_add_test(uc, test_uc_sender_learns_once_that_there_is_no_such_qp);
	tcase_add_test(uc, test_uc_sender_learns_nothing_of_numbers_where_another_user_has_qps);
	suite_add_tcase(s, uc);
	return run_cases(s);
}
