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
		bed.end[i].qp->account = users[i];
	}
}

static void setup(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	bed_connect(&bed, IBV_QPT_RC);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		bed.side[i].context->account = NULL;
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

int main(void)
{
	TCase *t = tcase_create("explain");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_requester_learns_the_responders_reason_if_both_are_of_one_user);
	tcase_add_test(t, test_requester_learns_no_more_of_another_users_key_than_the_nak_says);
	tcase_add_test(t, test_requester_learns_nothing_of_another_users_qp_that_does_not_answer);
	tcase_add_test(t, test_key_of_a_third_user_is_unknown);
	tcase_add_test(t, test_64_keys_that_have_ended_are_remembered);
	tcase_add_test(t, test_key_before_the_last_64_is_unknown);
	return run_suite("soft: explanations", t);
}
