/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An adapter that is gone, and objects that leave it: nothing of them stays, and no thread uses them any more. */
#include <poll.h>
#include <sys/socket.h>
#include "client.h"
#include "tests/suite.h"

static struct client a;
static char remote[CLIENT_BYTES];

static void setup(void)
{
	client_setup();
	client_open(&a, h.fd);
}

static int end_qp(const struct client *c)
{
	return uv_destroy_qp(c->fd, UV_WRITE, c->qp.handle, NULL);
}

static int end_cq(const struct client *c)
{
	return uv_destroy_cq(c->fd, UV_WRITE, c->cq, NULL);
}

/* ---- the adapter's end ------------------------------------------------------------------------------------------- */

START_TEST(test_destruction_finds_out_that_the_adapter_is_gone)
{
	const uint64_t before = client_bytes();
	struct uv_qp_attr attr;
	struct client c = a;
	uint64_t with_pd;

	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &c.pd), 0);
	with_pd = client_bytes();
	ck_assert_int_eq(uv_create_cq(a.fd, UV_WRITE, &uv_cq_default, &c.cq, NULL), 0);
	attr = uv_qp_attr(c.pd, c.cq);
	ck_assert_int_eq(uv_create_qp(a.fd, UV_WRITE, &attr, &c.qp), 0);
	fake_device_lost();
	ck_assert_int_eq(end_qp(&c), 0);
	ck_assert_int_eq(end_cq(&c), 0);
	ck_assert_uint_eq(client_bytes(), with_pd);
	ck_assert_int_eq(uv_dealloc_pd(a.fd, UV_WRITE, c.pd), 0);
	ck_assert_uint_eq(client_bytes(), before);
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), -EIO);
}
END_TEST

/* harness_close() checks that nothing is charged to the user any more. */
START_TEST(test_removal_before_the_event_of_the_adapters_end_leaves_nothing_charged)
{
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), 0);
	fake_device_lost();
	uvd_device_remove(h.dev);
	harness_close_file(&h);
	ck_assert_uint_eq(client_bytes(), 0);
}
END_TEST

START_TEST(test_eio_of_an_adapter_that_answers_queries_leaves_the_object)
{
	fake.result[FAKE_DESTROY_QP] = EIO;
	ck_assert_int_eq(end_qp(&a), -EIO);
	fake.result[FAKE_DESTROY_QP] = 0;
	ck_assert_int_eq(client_write(&a, 1, 0, 8, remote), 0);
	client_expect(&a, 1);
	ck_assert_int_eq(end_qp(&a), 0);
}
END_TEST

/* The thread has passed the event on, and has not acknowledged it yet: the QP must not be freed. */
START_TEST(test_destruction_waits_for_the_event_that_is_relayed_when_the_adapter_is_gone)
{
	struct worker destroy;

	fake.blocks_events = true;
	fake_qp_event(a.qp.qpn, IBV_EVENT_COMM_EST);
	sem_wait(&fake.blocked);
	fake_device_lost();
	worker_start(&destroy, &a, end_qp);
	ck_assert(worker_waits());
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&destroy), 0);
}
END_TEST

START_TEST(test_thread_finds_a_context_in_a_list_of_its_own)
{
	const struct hca_device *dev = client_device();
	unsigned int most = 0;

	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(uv_get_context(uv_open(), UV_METHOD, NULL, NULL), 0);
	for (int i = 0; i < HCA_CONTEXT_LISTS; i++) {
		const struct hca_context *c;
		unsigned int num = 0;

		list_for_each_entry(c, &dev->contexts[i], of_device)
			num++;
		most = num > most ? num : most;
	}
	ck_assert_uint_eq(most, 1);
}
END_TEST

/* ---- PDs --------------------------------------------------------------------------------------------------------- */

START_TEST(test_pd_that_the_adapter_does_not_deallocate_can_be_used_again)
{
	struct client first = a, c;

	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &first.pd), 0);
	client_open_beside(&c, &first);
	ck_assert_int_eq(client_write(&c, 1, 0, 8, remote), 0);
	client_expect(&c, 1);
	ck_assert_int_eq(end_qp(&c), 0);
	ck_assert_int_eq(uv_dereg_mr(c.fd, UV_WRITE, c.mr.handle), 0);
	fake.result[FAKE_DEALLOC_PD] = EBUSY;
	ck_assert_int_eq(uv_dealloc_pd(c.fd, UV_WRITE, c.pd), -EBUSY);
	fake.result[FAKE_DEALLOC_PD] = 0;
	client_open_beside(&c, &first);
	ck_assert_int_eq(client_write(&c, 2, 0, 8, remote), 0);
	client_expect(&c, 2);
}
END_TEST

/* ---- receives of an SRQ ------------------------------------------------------------------------------------------ */

static uint32_t srq;

static int leave_by_destroy(const struct client *c)
{
	return end_qp(c);
}

static int leave_by_reset(const struct client *c)
{
	return client_reset(c);
}

/* With some providers the completions of a QP leave the CQ with it. The receive would belong to the SRQ for ever. */
START_TEST(test_receive_of_an_srq_completes_when_its_qp_has_left)
{
	static int (*const leave[])(const struct client *c) = { leave_by_destroy, leave_by_reset };
	struct client b;
	char text[] = "message";

	client_open_beside(&b, &a);
	srq = client_open_with_srq(&b);
	client_connect(&a, b.qp.qpn);
	ck_assert_int_eq(client_post_srq(&b, srq, 1, 8), 0);
	strcpy(a.mem, text);
	ck_assert_int_eq(client_send(&a, 2, 0, sizeof(text), IBV_SEND_SIGNALED), 0);
	fake.cleans_cqs = true;
	ck_assert_int_eq(leave[_i](&b), 0);
	client_expect(&b, 1);
	ck_assert_str_eq(b.mem, text);
	client_expect(&a, 2);
	client_expect_none(&a);
}
END_TEST

START_TEST(test_reset_that_the_adapter_refuses_loses_no_completion)
{
	struct client b;

	client_open_beside(&b, &a);
	srq = client_open_with_srq(&b);
	client_connect(&b, a.qp.qpn);
	ck_assert_int_eq(client_recv(&a, 1, 0, 8), 0);
	ck_assert_int_eq(client_send(&b, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	fake.result[FAKE_MODIFY_QP] = EINVAL;
	ck_assert_int_eq(client_reset(&b), -EINVAL);
	fake.result[FAKE_MODIFY_QP] = 0;
	client_expect(&a, 1);
	client_expect(&b, 2);
}
END_TEST

/* The first QP's end moves the completions of all QPs of the CQ to the backlog. */
START_TEST(test_completions_in_a_backlog_go_with_their_qp)
{
	struct client b;

	client_open_beside(&b, &a);
	srq = client_open_with_srq(&b);
	client_connect(&b, a.qp.qpn);
	ck_assert_int_eq(client_recv(&a, 1, 0, 8), 0);
	ck_assert_int_eq(client_send(&b, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(end_qp(&b), 0);
	client_expect(&a, 1);
	client_expect_none(&b);
}
END_TEST

START_TEST(test_completions_in_a_backlog_go_with_their_cq)
{
	struct client b;

	client_open_beside(&b, &a);
	srq = client_open_with_srq(&b);
	client_connect(&a, b.qp.qpn);
	ck_assert_int_eq(client_post_srq(&b, srq, 1, 8), 0);
	ck_assert_int_eq(client_send(&a, 2, 0, 8, 0), 0);
	ck_assert_int_eq(end_qp(&b), 0);
	ck_assert_int_eq(end_qp(&a), 0);
	harness_close_file(&h);
	ck_assert_uint_eq(client_bytes(), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("removal");

	tcase_add_checked_fixture(t, setup, client_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_destruction_finds_out_that_the_adapter_is_gone);
	tcase_add_test(t, test_removal_before_the_event_of_the_adapters_end_leaves_nothing_charged);
	tcase_add_test(t, test_eio_of_an_adapter_that_answers_queries_leaves_the_object);
	tcase_add_test(t, test_destruction_waits_for_the_event_that_is_relayed_when_the_adapter_is_gone);
	tcase_add_test(t, test_thread_finds_a_context_in_a_list_of_its_own);
	tcase_add_test(t, test_pd_that_the_adapter_does_not_deallocate_can_be_used_again);
	tcase_add_loop_test(t, test_receive_of_an_srq_completes_when_its_qp_has_left, 0, 2);
	tcase_add_test(t, test_reset_that_the_adapter_refuses_loses_no_completion);
	tcase_add_test(t, test_completions_in_a_backlog_go_with_their_qp);
	tcase_add_test(t, test_completions_in_a_backlog_go_with_their_cq);
	return run_suite("the verbs backend with a fake adapter: what is gone, and what leaves", t);
}
