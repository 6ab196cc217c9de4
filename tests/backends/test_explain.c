/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explanations of the soft engine: what two users learn of each other, and which keys are remembered. */
#include <check.h>
#include "tests/backends/two_users.h"

static void setup(void)
{
	open_bed();
	bed_connect(&bed, IBV_QPT_RC);
}

/* a writes to a region of b's by this key, and b refuses it. */
static void write_is_refused(uint32_t rkey)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.rkey = rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
}

static const struct {
	uid_t of_b;
	const char *at_a; /* of another user's key, no more than the NAK says */
} requesters[] = { { 1000, "key-unknown" }, { 1001, "remote-refused" } };

START_TEST(test_requester_learns_the_responders_reason_only_if_both_are_of_one_user)
{
	ends_belong_to(1000, requesters[_i].of_b);
	write_is_refused(0x7700);
	expect_why(a, requesters[_i].at_a, "");
	expect_why(b, "key-unknown", "");
	ck_assert_int_eq(was_explained(a, "key-unknown"), !_i);
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
	write_is_refused(mr->rkey);
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
	write_is_refused(first);
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
	write_is_refused(keys[users_keys[_i].key_of]);
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

int main(void)
{
	TCase *t = tcase_create("explain");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_requester_learns_the_responders_reason_only_if_both_are_of_one_user, 0,
			    sizeof(requesters) / sizeof(requesters[0]));
	tcase_add_test(t, test_requester_learns_nothing_of_another_users_qp_that_does_not_answer);
	tcase_add_test(t, test_key_of_a_third_user_is_unknown);
	tcase_add_test(t, test_64_keys_that_have_ended_are_remembered);
	tcase_add_test(t, test_key_before_the_last_64_is_unknown);
	tcase_add_test(t, test_requester_whose_port_is_down_learns_that);
	tcase_add_loop_test(t, test_keys_of_64_users_are_remembered, 0, sizeof(users_keys) / sizeof(users_keys[0]));
	tcase_add_test(t, test_key_of_an_empty_entry_is_not_explained);
	tcase_add_test(t, test_memory_that_is_gone_is_explained_by_its_key);
	return run_suite("soft: explanations", t);
}
