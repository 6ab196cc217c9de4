/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explanations of the soft engine: what two users learn of each other, and which keys are remembered. */
#include <check.h>
#include "account/account.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_accounts *accounts;
static struct uvd_account *users[2];

/* From now on, until teardown(), the ends are of these users. What they hold already is charged to nobody. */
static void ends_belong_to(uid_t of_a, uid_t of_b)
{
	const uid_t uids[] = { of_a, of_b };

	for (int i = 0; i < 2; i++) {
		users[i] = uvd_account_get(accounts, &uids[i], 1);
		bed.side[i].context->account = users[i];
		if (bed.end[i].qp)
			bed.end[i].qp->account = users[i];
	}
}

static void open_bed(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
}

static void setup(void)
{
	open_bed();
	bed_connect(&bed, IBV_QPT_RC);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		bed.side[i].context->account = NULL;
		if (bed.end[i].qp)
			bed.end[i].qp->account = NULL;
	}
	bed_close(&bed);
	for (int i = 0; i < 2; i++)
		if (users[i])
			uvd_account_put(users[i]);
	users[0] = users[1] = NULL;
	uvd_accounts_free(accounts);
}

static void write_with_key(uint32_t rkey)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.rkey = rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
}

START_TEST(test_requester_learns_the_responders_reason_if_both_are_of_one_user)
{
	ends_belong_to(1000, 1000);
	write_with_key(0x7700);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	expect_why(a, "key-unknown", "");
	expect_why(b, "key-unknown", "");
}
END_TEST

START_TEST(test_requester_learns_no_more_of_another_users_key_than_the_nak_says)
{
	ends_belong_to(1000, 1001);
	write_with_key(0x7700);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	expect_why(a, "remote-refused", "");
	expect_why(b, "key-unknown", "");
	ck_assert(!was_explained(a, "key-unknown"));
}
END_TEST

START_TEST(test_requester_learns_nothing_of_another_users_qp_that_does_not_answer)
{
	ends_belong_to(1000, 1001);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
	send_small(a, b, IBV_WR_SEND, 8);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_why(a, "peer-silent", "");
	expect_why(b, "peer-state", "");
	ck_assert(!was_explained(a, "peer-state"));
}
END_TEST

/* A region of the responder's device whose owner is neither of the two: that somebody has the key is no business of theirs. */
START_TEST(test_key_of_a_third_user_is_unknown)
{
	struct uvd_account *third = uvd_account_get(accounts, (uid_t[]){ 1002 }, 1);
	struct uvd_context context = *b->side->context;
	struct uvd_pd pd = { .context = &context }, *own = b->side->pd;
	struct uvd_mr *mr;

	context.account = third;
	b->side->pd = &pd;
	mr = make_mr(b, b->buf, 4096, b->access);
	b->side->pd = own;
	ck_assert_ptr_nonnull(mr);
	ends_belong_to(1000, 1000);
	write_with_key(mr->rkey);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	expect_why(b, "key-unknown", "");
	ck_assert(!was_explained(b, "key-other-pd"));
	free_mr(mr);
	uvd_account_put(third);
}
END_TEST

/* b registers and deregisters as many keys more; then a names the first of all. */
static void key_is_explained_after(unsigned int more, const char *code)
{
	uint32_t first = 0;

	ends_belong_to(1000, 1000);
	for (unsigned int i = 0; i <= more; i++) {
		struct uvd_mr *mr = make_mr(b, b->buf, 4096, b->access);

		ck_assert_ptr_nonnull(mr);
		first = first ?: mr->rkey;
		free_mr(mr);
	}
	write_with_key(first);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	expect_why(b, code, "");
}

START_TEST(test_64_keys_that_have_ended_are_remembered)
{
	key_is_explained_after(63, "key-ended");
}
END_TEST

START_TEST(test_key_before_the_last_64_is_unknown)
{
	key_is_explained_after(64, "key-unknown");
}
END_TEST

/* 65 users have a key that ends, one after the other, and the first has two: his list is that of the last then. */
static const struct {
	unsigned int user, key_of;
	const char *code;
} users_keys[] = {
	{ 0, 0, "key-unknown" },
	{ 1, 1, "key-ended" },
	{ 64, 64, "key-ended" },
	{ 64, 0, "key-unknown" },
};

START_TEST(test_keys_of_64_users_are_remembered)
{
	uint32_t keys[65];

	for (unsigned int i = 0; i < 65; i++) {
		struct uvd_account *user = uvd_account_get(accounts, (uid_t[]){ 1000 + i }, 1);

		b->side->context->account = user;
		for (int n = i ? 1 : 2; n; n--) {
			struct uvd_mr *mr = make_mr(b, b->buf, 4096, b->access);

			ck_assert_ptr_nonnull(mr);
			keys[i] = mr->rkey;
			free_mr(mr);
		}
		uvd_account_put(user);
	}
	ends_belong_to(1000 + users_keys[_i].user, 1000 + users_keys[_i].user);
	write_with_key(keys[users_keys[_i].key_of]);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	expect_why(b, users_keys[_i].code, "");
}
END_TEST

/* Nothing is read by an entry of length 0, so its key is not at fault. */
START_TEST(test_key_of_an_empty_entry_is_not_explained)
{
	const struct ibv_sge sge[2] = { { (uintptr_t)a->buf, 0, 0x7700 }, { (uintptr_t)a->buf, 8, 0x8800 } };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, sge, 2);

	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	ck_assert(was_told(a, "0x8800 is the l_key of no region") && !was_told(a, "0x7700"));
}
END_TEST

START_TEST(test_memory_that_is_gone_is_explained_by_its_key)
{
	char text[64];

	mm_bad = (uintptr_t)a->buf;
	mm_bad_len = 4096;
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	mm_bad_len = 0;
	snprintf(text, sizeof(text), "the memory of l_key 0x%x cannot be accessed", a->mr->lkey);
	ck_assert(was_told(a, text));
}
END_TEST

/* Whatever is wrong at the peer, the own port comes first. */
START_TEST(test_requester_whose_port_is_down_learns_that)
{
	ends_belong_to(1000, 1000);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
	a->side->dev.config.ports[0].down = true;
	send_small(a, b, IBV_WR_SEND, 8);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_why(a, "link-down", "");
	ck_assert(!was_explained(a, "peer-state"));
}
END_TEST

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
	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .ah = ah,
				 .remote_qpn = qpn, .remote_qkey = qkey),
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
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 39), 0);
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

int main(void)
{
	TCase *t = tcase_create("explain"), *datagrams = tcase_create("datagrams");
	Suite *s = suite_create("soft: explanations");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_requester_learns_the_responders_reason_if_both_are_of_one_user);
	tcase_add_test(t, test_requester_learns_no_more_of_another_users_key_than_the_nak_says);
	tcase_add_test(t, test_requester_learns_nothing_of_another_users_qp_that_does_not_answer);
	tcase_add_test(t, test_key_of_a_third_user_is_unknown);
	tcase_add_test(t, test_64_keys_that_have_ended_are_remembered);
	tcase_add_test(t, test_key_before_the_last_64_is_unknown);
	tcase_add_test(t, test_requester_whose_port_is_down_learns_that);
	tcase_add_loop_test(t, test_keys_of_64_users_are_remembered, 0, sizeof(users_keys) / sizeof(users_keys[0]));
	tcase_add_test(t, test_key_of_an_empty_entry_is_not_explained);
	tcase_add_test(t, test_memory_that_is_gone_is_explained_by_its_key);
	suite_add_tcase(s, t);
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
	suite_add_tcase(s, datagrams);
	return run_cases(s);
}
