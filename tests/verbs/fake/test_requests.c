/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests, completions and copies of the verbs backend, with an adapter that does what real ones rarely do. */
#include "client.h"
#include "tests/suite.h"

static struct client a, b;
static char remote[CLIENT_BYTES];

static void setup(void)
{
	client_setup();
	client_open(&a, h.fd);
	client_open_beside(&b, &a);
	memset(remote, 0, sizeof(remote));
}

/* ---- data and completions ---------------------------------------------------------------------------------------- */

START_TEST(test_a_message_arrives_and_both_sides_see_their_own_wr_ids)
{
	struct ib_uverbs_wc wc;

	client_connect(&a, b.qp.qpn);
	strcpy(a.mem, "a message");
	memset(b.mem, 'x', 100);
	ck_assert_int_eq(client_recv(&b, 0xbbbb0000bbbb, 50, 50), 0);
	ck_assert_int_eq(client_send(&a, 0xaaaa0000aaaa, 0, 10, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(client_poll(&b, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 0xbbbb0000bbbb);
	ck_assert_uint_eq(wc.byte_len, 10);
	client_expect(&a, 0xaaaa0000aaaa);
	client_expect_none(&a);
	ck_assert_mem_eq(b.mem + 49, "xa message\0x", 12);
}
END_TEST

START_TEST(test_unsignalled_sends_complete_with_the_next_signalled_one)
{
	enum { ROUNDS = 5 };

	client_connect(&a, b.qp.qpn);
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < a.qp.cap.max_send_wr; i++)
			ck_assert_int_eq(client_recv(&b, i, 0, 8), 0);
		for (unsigned int i = 1; i < a.qp.cap.max_send_wr; i++)
			ck_assert_int_eq(client_send(&a, i, 0, 8, 0), 0);
		/* The adapter is done with them, but their places are taken until a completion says so. */
		ck_assert_int_eq(client_send(&a, 100, 0, 8, IBV_SEND_SIGNALED), 0);
		ck_assert_int_eq(client_send(&a, 101, 0, 8, IBV_SEND_SIGNALED), -ENOMEM);
		for (unsigned int i = 0; i < b.qp.cap.max_recv_wr; i++)
			client_expect(&b, i);
		client_expect(&a, 100);
		client_expect_none(&a);
	}
}
END_TEST

START_TEST(test_read_data_arrives_with_the_poll_of_a_later_completion_too)
{
	const struct ib_uverbs_send_wr unsignalled = { .num_sge = 1,
						       .opcode = IBV_WR_RDMA_READ,
						       .wr.rdma.remote_addr = (uintptr_t)remote };
	const struct ib_uverbs_sge sge = { .addr = (uintptr_t)a.mem, .length = 4, .lkey = a.mr.lkey };

	strcpy(remote, "one two");
	ck_assert_int_eq(uv_post_send(a.fd, UV_WRITE, a.qp.handle, &unsignalled, 1, &sge, 1, NULL), 0);
	ck_assert_int_eq(client_read(&a, 2, 4, 4, remote + 4), 0);
	ck_assert_mem_eq(a.mem, "\0\0\0\0\0\0\0", 8);
	client_expect(&a, 2);
	ck_assert_str_eq(a.mem, "one two");
}
END_TEST

START_TEST(test_poll_of_one_returns_the_live_completion_behind_stale_ones)
{
	enum { STALE = 3 };

	for (int i = 0; i < STALE; i++)
		ck_assert_int_eq(client_write(&b, 1, 0, 8, remote), 0);
	ck_assert_int_eq(client_write(&a, 2, 0, 8, remote), 0);
	ck_assert_int_eq(uv_destroy_qp(b.fd, UV_WRITE, b.qp.handle, NULL), 0);
	client_expect(&a, 2);
	client_expect_none(&a);
}
END_TEST

START_TEST(test_completions_from_before_a_reset_complete_no_later_request)
{
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), 0);
	ck_assert_int_eq(client_reset(&a), 0);
	client_connect(&a, a.qp.qpn);
	fake.holds = true;
	ck_assert_int_eq(client_write(&a, 2, 0, 8, remote), 0);
	client_expect_none(&a);
	fake_run();
	client_expect(&a, 2);
}
END_TEST

static const char *explained; /* the code of the last explanation's reason */

static void note_explained(struct uvd_ibdev *dev, struct uvd_context *context, const struct uvd_explained *e)
{
	explained = e->why.reason->code;
}

START_TEST(test_request_with_a_foreign_key_completes_with_an_error)
{
	struct ib_uverbs_wc wc;

	h.dev->ib.explain = note_explained;
	a.mr.lkey++;
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), 0);
	ck_assert_int_eq(client_poll(&a, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_uint_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_str_eq(explained, "adapter");
}
END_TEST

/* ---- posts that the provider refuses ----------------------------------------------------------------------------- */

/* The provider has queued the request, but says that the post has failed. */
static void refuse(void)
{
	fake.holds = fake.queues_refused = true;
	fake.result[FAKE_POST_SEND] = ENOMEM;
}

static void accept_again(void)
{
	fake.result[FAKE_POST_SEND] = 0;
}

START_TEST(test_refused_post_that_completes_later_gives_no_completion)
{
	refuse();
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), -ENOMEM);
	accept_again();
	fake_run();
	client_expect_none(&a);
	ck_assert_int_eq(client_write(&a, 2, 0, 8, remote), 0);
	client_expect(&a, 2);
	client_expect_none(&a);
}
END_TEST

START_TEST(test_buffer_of_a_refused_post_is_not_reused_while_it_is_queued)
{
	strcpy(a.mem, "refused");
	strcpy(a.mem + 8, "posted!");
	refuse();
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), -ENOMEM);
	accept_again();
	ck_assert_int_eq(client_write(&a, 2, 8, 8, remote + 8), 0);
	ck_assert_ptr_nonnull(fake_queued(a.qp.qpn, 1));
	ck_assert_ptr_ne(fake_queued(a.qp.qpn, 0), fake_queued(a.qp.qpn, 1));
	fake_run();
	ck_assert_str_eq(remote, "refused");
	ck_assert_str_eq(remote + 8, "posted!");
	client_expect(&a, 2);
	client_expect_none(&a);
}
END_TEST

/* The client was told that the post has failed, so it may use the memory for something else. */
START_TEST(test_refused_read_writes_nothing_to_the_client)
{
	strcpy(remote, "read");
	strcpy(a.mem, "mine");
	refuse();
	ck_assert_int_eq(client_read(&a, 1, 0, 5, remote), -ENOMEM);
	accept_again();
	fake_run();
	ck_assert_int_eq(client_write(&a, 2, 8, 8, remote + 8), 0);
	client_expect(&a, 2);
	ck_assert_str_eq(a.mem, "mine");
}
END_TEST

/* The provider has queued none of them, and says so. */
START_TEST(test_refused_posts_take_no_place_in_the_queue)
{
	fake.result[FAKE_POST_SEND] = EINVAL;
	for (unsigned int i = 0; i < 2 * a.qp.cap.max_send_wr; i++)
		ck_assert_int_eq(client_write(&a, i, 0, 8, remote), -EINVAL);
	accept_again();
	ck_assert_int_eq(client_write(&a, 100, 0, 8, remote), 0);
	client_expect(&a, 100);
}
END_TEST

START_TEST(test_inline_data_is_as_long_as_the_adapters_qp_allows)
{
	struct uv_qp_attr attr = uv_qp_attr(a.pd, a.cq);
	struct client c = a;

	attr.cap.max_inline_data = 1024;
	ck_assert_int_eq(uv_create_qp(a.fd, UV_WRITE, &attr, &c.qp), 0);
	client_connect(&c, b.qp.qpn);
	memset(c.mem, 'i', 1024);
	ck_assert_int_eq(client_recv(&b, 1, 0, 1024), 0);
	ck_assert_int_eq(client_send(&c, 2, 0, 1024, IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
	client_expect(&b, 1);
	client_expect(&c, 2);
	ck_assert_mem_eq(b.mem, c.mem, 1024);
	ck_assert_int_eq(client_send(&c, 3, 0, 1025, IBV_SEND_SIGNALED | IBV_SEND_INLINE), -EINVAL);
	attr.cap.max_inline_data = HCA_MAX_INLINE + 1;
	ck_assert_int_eq(uv_create_qp(a.fd, UV_WRITE, &attr, &c.qp), -EINVAL);
}
END_TEST

START_TEST(test_peer_that_writes_to_a_free_buffer_changes_no_later_request)
{
	void *data;

	fake.holds = true;
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), 0);
	data = fake_queued(a.qp.qpn, 0);
	fake_run();
	client_expect(&a, 1);
	memset(data, 0xff, 8); /* the buffer is free; the adapter writes to it late */
	for (uint64_t i = 2; i < 20; i++) {
		snprintf(a.mem, 8, "data %u", (unsigned int)i);
		ck_assert_int_eq(client_write(&a, i, 0, 8, remote), 0);
		client_expect(&a, i);
		ck_assert_str_eq(remote, a.mem);
	}
}
END_TEST

/* ---- copies that block ------------------------------------------------------------------------------------------- */

static int write_first_bytes(const struct client *c)
{
	return client_write(c, 1, 0, 8, remote);
}

static int dereg(const struct client *c)
{
	return uv_dereg_mr(c->fd, UV_WRITE, c->mr.handle);
}

static int poll_success(const struct client *c)
{
	struct ib_uverbs_wc wc;
	const int ret = client_poll(c, &wc);

	return ret == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EPROTO;
}

START_TEST(test_post_whose_qp_is_reset_during_its_copy_is_einval_and_posts_nothing)
{
	struct worker post;

	copy_block(a.mem);
	worker_start(&post, &a, write_first_bytes);
	copy_wait();
	ck_assert_int_eq(client_reset(&a), 0);
	copy_release();
	ck_assert_int_eq(worker_join(&post), -EINVAL);
	ck_assert_int_eq(fake.posted, 0);
	client_connect(&a, a.qp.qpn);
	ck_assert_int_eq(client_write(&a, 2, 0, 8, remote), 0);
	client_expect(&a, 2);
	client_expect_none(&a);
}
END_TEST

/* The QP has one place left, and another thread takes it during the copy. */
START_TEST(test_post_whose_queue_is_filled_during_its_copy_is_enomem)
{
	struct worker post;

	fake.holds = true;
	for (unsigned int i = 1; i < a.qp.cap.max_send_wr; i++)
		ck_assert_int_eq(client_write(&a, i, 8, 8, remote), 0);
	copy_block(a.mem);
	worker_start(&post, &a, write_first_bytes);
	copy_wait();
	ck_assert_int_eq(client_write(&a, 100, 8, 8, remote), 0);
	copy_release();
	ck_assert_int_eq(worker_join(&post), -ENOMEM);
	ck_assert_uint_eq(fake.posted, a.qp.cap.max_send_wr);
}
END_TEST

START_TEST(test_deregistration_waits_for_the_copy_of_a_post)
{
	struct worker post, destroy;

	copy_block(a.mem);
	worker_start(&post, &a, write_first_bytes);
	copy_wait();
	worker_start(&destroy, &a, dereg);
	ck_assert(worker_waits());
	copy_release();
	ck_assert_int_eq(worker_join(&post), 0);
	ck_assert_int_eq(worker_join(&destroy), 0);
	client_expect(&a, 1);
}
END_TEST

START_TEST(test_deregistration_waits_for_the_copy_of_a_poll)
{
	struct worker poll, destroy;

	strcpy(remote, "read");
	ck_assert_int_eq(client_read(&a, 1, 0, 8, remote), 0);
	copy_block(a.mem);
	worker_start(&poll, &a, poll_success);
	copy_wait();
	worker_start(&destroy, &a, dereg);
	ck_assert(worker_waits());
	copy_release();
	ck_assert_int_eq(worker_join(&poll), 0);
	ck_assert_int_eq(worker_join(&destroy), 0);
	ck_assert_str_eq(a.mem, "read");
}
END_TEST

START_TEST(test_copy_that_blocks_delays_no_other_request_of_the_context)
{
	struct worker post;

	copy_block(a.mem);
	worker_start(&post, &a, write_first_bytes);
	copy_wait();
	ck_assert_int_eq(client_write(&b, 2, 0, 8, remote), 0);
	client_expect(&b, 2);
	copy_release();
	ck_assert_int_eq(worker_join(&post), 0);
	client_expect(&a, 1);
}
END_TEST

START_TEST(test_provider_that_blocks_in_a_post_delays_no_other_client)
{
	struct client other = {};
	struct worker post;

	fake.blocks = a.qp.qpn;
	worker_start(&post, &a, write_first_bytes);
	sem_wait(&fake.blocked);
	client_open(&other, uv_open());
	ck_assert_int_eq(client_write(&other, 2, 0, 8, remote), 0);
	client_expect(&other, 2);
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&post), 0);
	client_expect(&a, 1);
}
END_TEST

/* The adapter looks for the peer's address while it changes the QP: a client can name a peer that does not answer. */
START_TEST(test_change_of_a_qp_that_takes_long_holds_up_no_other_client_where_a_list_restricts_them)
{
	struct client other = {};
	struct worker change;

	client_teardown();
	client_init(NULL);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "pkeys:0xffff"), 0);
	client_start();
	client_open(&a, h.fd);
	ck_assert(client_changes_wait(&a, &a));
	fake.waits_in = FAKE_MODIFY_QP;
	worker_start(&change, &a, client_reset);
	sem_wait(&fake.blocked);
	fake.waits_in = 0;
	client_open(&other, uv_open());
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&change), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("requests");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_a_message_arrives_and_both_sides_see_their_own_wr_ids);
	tcase_add_test(t, test_unsignalled_sends_complete_with_the_next_signalled_one);
	tcase_add_test(t, test_read_data_arrives_with_the_poll_of_a_later_completion_too);
	tcase_add_test(t, test_poll_of_one_returns_the_live_completion_behind_stale_ones);
	tcase_add_test(t, test_completions_from_before_a_reset_complete_no_later_request);
	tcase_add_test(t, test_request_with_a_foreign_key_completes_with_an_error);
	tcase_add_test(t, test_refused_post_that_completes_later_gives_no_completion);
	tcase_add_test(t, test_buffer_of_a_refused_post_is_not_reused_while_it_is_queued);
	tcase_add_test(t, test_refused_read_writes_nothing_to_the_client);
	tcase_add_test(t, test_refused_posts_take_no_place_in_the_queue);
	tcase_add_test(t, test_inline_data_is_as_long_as_the_adapters_qp_allows);
	tcase_add_test(t, test_peer_that_writes_to_a_free_buffer_changes_no_later_request);
	tcase_add_test(t, test_post_whose_qp_is_reset_during_its_copy_is_einval_and_posts_nothing);
	tcase_add_test(t, test_post_whose_queue_is_filled_during_its_copy_is_enomem);
	tcase_add_test(t, test_deregistration_waits_for_the_copy_of_a_post);
	tcase_add_test(t, test_deregistration_waits_for_the_copy_of_a_poll);
	tcase_add_test(t, test_copy_that_blocks_delays_no_other_request_of_the_context);
	tcase_add_test(t, test_provider_that_blocks_in_a_post_delays_no_other_client);
	tcase_add_test(t, test_change_of_a_qp_that_takes_long_holds_up_no_other_client_where_a_list_restricts_them);
	return run_suite("the verbs backend with a fake adapter: requests", t);
}
