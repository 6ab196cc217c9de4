/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a client can do that has kept its context's device file of the adapter: events and completions of objects that it
 * has made by itself, and objects of ours that it has replaced. Only the client itself may suffer.
 */
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>
#include "client.h"
#include "tests/suite.h"

static struct client a;
static int events;

/* Opens a client in the file whose QP reports to the descriptor that this returns: one that was made before the QP. */
static int open_with_events(struct client *c, int file)
{
	struct client first;
	int fd;

	client_open(&first, file);
	fd = client_async_fd(&first);
	client_open_beside(c, &first);
	return fd;
}

static void setup(void)
{
	client_setup();
	events = open_with_events(&a, h.fd);
}

/* AddressSanitizer's, if the program has it: what this thread allocates from now on is no leak. */
void __lsan_disable(void) __attribute__((weak));

static void setup_to_leak(void)
{
	if (__lsan_disable)
		__lsan_disable();
	setup();
}

static void teardown(void)
{
	close(events);
	client_teardown();
}

/* The events before it were handled, and none of them was the client's. */
static void expect_next_event(void)
{
	fake_qp_event(a.qp.qpn, IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(client_async_event(events), IBV_EVENT_COMM_EST);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* First those of QPs. */
enum { NUM_QP_TYPES = 7 };
static const enum ibv_event_type types[] = {
	IBV_EVENT_QP_FATAL,
	IBV_EVENT_QP_REQ_ERR,
	IBV_EVENT_QP_ACCESS_ERR,
	IBV_EVENT_SQ_DRAINED,
	IBV_EVENT_PATH_MIG,
	IBV_EVENT_PATH_MIG_ERR,
	IBV_EVENT_QP_LAST_WQE_REACHED,
	IBV_EVENT_CQ_ERR,
	IBV_EVENT_SRQ_ERR,
	IBV_EVENT_SRQ_LIMIT_REACHED,
	IBV_EVENT_WQ_FATAL,
	IBV_EVENT_PORT_ACTIVE,
	(enum ibv_event_type)1000,
};

START_TEST(test_event_of_an_unknown_object_is_dropped)
{
	static const uint64_t numbers[] = { 0, 1, 0xffff, 0x4141414141414141, UINT64_MAX };

	for (size_t i = 0; i < UV_ARRAY_SIZE(numbers); i++)
		fake_forged_event(a.qp.qpn, numbers[i], types[_i]);
	expect_next_event();
}
END_TEST

START_TEST(test_event_with_the_address_of_an_object_of_another_type_is_dropped)
{
	struct ibv_qp *qp = fake_qp(a.qp.qpn);

	fake_forged_event(a.qp.qpn, _i < NUM_QP_TYPES ? (uintptr_t)qp->send_cq : (uintptr_t)qp, types[_i]);
	expect_next_event();
}
END_TEST

START_TEST(test_event_with_the_address_of_an_object_of_another_context_is_dropped)
{
	struct client other;
	const int fd = open_with_events(&other, uv_open());

	fake_forged_event(a.qp.qpn, (uintptr_t)fake_qp(other.qp.qpn), IBV_EVENT_SQ_DRAINED);
	expect_next_event();
	fake_qp_event(other.qp.qpn, IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_COMM_EST);
	close(fd);
}
END_TEST

START_TEST(test_event_of_an_object_that_was_destroyed_is_dropped)
{
	struct client b;
	uint64_t address;

	client_open_beside(&b, &a);
	address = (uintptr_t)fake_qp(b.qp.qpn);
	ck_assert_int_eq(uv_destroy_qp(b.fd, UV_WRITE, b.qp.handle, NULL), 0);
	fake_forged_event(a.qp.qpn, address, IBV_EVENT_SQ_DRAINED);
	expect_next_event();
}
END_TEST

/* An answer that no kernel gives ends the client's own events, and nobody else's. */
START_TEST(test_event_of_another_size_ends_the_contexts_events)
{
	struct client other;
	const int fd = open_with_events(&other, uv_open());

	fake_odd_event(a.qp.qpn, "short", 5);
	fake_qp_event(other.qp.qpn, IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_COMM_EST);
	close(fd);
}
END_TEST

static int end_qp(const struct client *c)
{
	return uv_destroy_qp(c->fd, UV_WRITE, c->qp.handle, NULL);
}

/* A thread that destroys an object waits for the event that is being relayed, and loses none of those that follow. */
START_TEST(test_events_that_a_destruction_waits_for_are_relayed)
{
	struct client b;
	struct worker destroy;

	client_open_beside(&b, &a);
	fake.blocks_events = true;
	fake_qp_event(b.qp.qpn, IBV_EVENT_COMM_EST);
	sem_wait(&fake.blocked);
	fake.blocks_events = false;
	worker_start(&destroy, &b, end_qp);
	ck_assert(worker_waits());
	fake_qp_event(a.qp.qpn, IBV_EVENT_SQ_DRAINED);
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&destroy), 0);
	fake_qp_event(a.qp.qpn, IBV_EVENT_PATH_MIG);
	ck_assert_uint_eq(client_async_event(events), IBV_EVENT_SQ_DRAINED);
	ck_assert_uint_eq(client_async_event(events), IBV_EVENT_PATH_MIG);
}
END_TEST

/*
 * An event that arrives while a thread destroys another object of the context. The event of the other client shows that
 * the relaying thread, which takes them in their order, has met the first one and left it.
 */
START_TEST(test_event_that_arrives_while_an_object_is_destroyed_is_relayed_afterwards)
{
	struct client b, other;
	struct worker destroy;
	const int fd = open_with_events(&other, uv_open());

	client_open_beside(&b, &a);
	fake.hangs = true;
	worker_start(&destroy, &b, end_qp);
	sem_wait(&fake.blocked);
	fake_qp_event(a.qp.qpn, IBV_EVENT_SQ_DRAINED);
	fake_qp_event(other.qp.qpn, IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(client_async_event(fd), IBV_EVENT_COMM_EST);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = events, .events = POLLIN }, 1, 0), 0);
	fake.hangs = false;
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&destroy), 0);
	ck_assert_uint_eq(client_async_event(events), IBV_EVENT_SQ_DRAINED);
	expect_next_event();
	close(fd);
}
END_TEST

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* A client with a CQ of its own, in a's context. */
static void open_other_cq(struct client *b)
{
	struct client first = a;

	ck_assert_int_eq(uv_create_cq(a.fd, UV_WRITE, &uv_cq_default, &first.cq, NULL), 0);
	client_open_beside(b, &first);
}

START_TEST(test_completion_in_another_cq_completes_nothing)
{
	struct client b;

	open_other_cq(&b);
	ck_assert_int_eq(client_recv(&a, 1, 0, 8), 0);
	fake_forged_completion(b.qp.qpn, (struct ibv_wc){ .wr_id = fake_tag(a.qp.qpn, true), .byte_len = 8 });
	client_expect_none(&b);
	fake.holds = true;
	ck_assert_int_eq(client_send(&a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	fake_forged_completion(b.qp.qpn, (struct ibv_wc){ .wr_id = fake_tag(a.qp.qpn, false) });
	client_expect_none(&b);
	fake_run();
	client_expect(&a, 1);
	client_expect(&a, 2);
}
END_TEST

START_TEST(test_completion_of_more_bytes_than_the_receive_copies_no_byte_beyond_it)
{
	struct ib_uverbs_wc wc;

	memset(a.mem, 'x', CLIENT_BYTES);
	ck_assert_int_eq(client_recv(&a, 1, 8, 8), 0);
	fake_forged_completion(a.qp.qpn, (struct ibv_wc){ .wr_id = fake_tag(a.qp.qpn, true),
							  .byte_len = UINT32_MAX,
							  .opcode = (enum ibv_wc_opcode)0x7fffffff,
							  .qp_num = UINT32_MAX,
							  .wc_flags = UINT32_MAX });
	ck_assert_int_eq(client_poll(&a, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 1);
	for (unsigned int i = 0; i < CLIENT_BYTES; i++)
		ck_assert(a.mem[i] == 'x' || (i >= 8 && i < 16));
	/* The adapter's own completion of the request comes too late. */
	ck_assert_int_eq(client_send(&a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	client_expect(&a, 2);
	client_expect_none(&a);
}
END_TEST

START_TEST(test_completions_of_no_request_are_dropped)
{
	static const uint32_t indices[] = { 0, 1, HCA_CHUNK_RECORDS - 1, HCA_CHUNK_RECORDS, 1 << 20, UINT32_MAX };

	ck_assert_int_eq(client_recv(&a, 1, 0, 8), 0);
	for (size_t i = 0; i < UV_ARRAY_SIZE(indices); i++)
		for (uint64_t uses = 100; uses < 104; uses++)
			fake_forged_completion(a.qp.qpn, (struct ibv_wc){ .wr_id = uses << 32 | indices[i] });
	client_expect_none(&a);
	ck_assert_int_eq(client_send(&a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	client_expect(&a, 1);
	client_expect(&a, 2);
}
END_TEST

/* The client's call ends, and so does the destruction of a QP with an SRQ, which empties the CQ. */
START_TEST(test_completions_without_end_hold_up_no_call)
{
	struct client b = a;

	client_open_with_srq(&b);
	fake.floods = true;
	client_expect_none(&a);
	ck_assert_int_eq(end_qp(&b), 0);
	fake.floods = false;
}
END_TEST

/* ---- destructions that do not end -------------------------------------------------------------------------------- */

static int end_cq(const struct client *c)
{
	return uv_destroy_cq(c->fd, UV_WRITE, c->cq, NULL);
}

/* The QP, the first in the context, takes all the time that there is; then the CQs are not asked for. */
START_TEST(test_destruction_that_does_not_end_is_left_with_its_context)
{
	const uint64_t bytes = client_bytes();
	const unsigned int rings = client_device()->rings;
	struct client b;

	open_other_cq(&b);
	client_lend();
	client_device()->patience = 20000000;
	fake.hangs = true;
	ck_assert_int_eq(end_qp(&b), 0);
	fake.result[FAKE_DESTROY_CQ] = EBUSY;
	ck_assert_int_eq(end_cq(&b), 0);
	ck_assert_uint_gt(client_bytes(), bytes);
	ck_assert_uint_eq(client_device()->rings, rings + HCA_QP_RINGS + HCA_CQ_RINGS);
	harness_close_file(&h);
	ck_assert_uint_eq(client_device()->rings, rings + HCA_QP_RINGS + HCA_CQ_RINGS);
	client_uncharge_left(1);
}
END_TEST

/* Each context that is left has a thread. A user who has as many as he may have gets no more, and waits for none. */
START_TEST(test_user_leaves_no_more_than_some_threads)
{
	const uint64_t patience = UINT64_C(20000000);
	struct client b;
	int blocked = 0;

	client_open(&b, uv_open());
	client_lend();
	client_device()->patience = patience;
	client_device()->most_left = 1;
	fake.hangs = true;
	ck_assert_int_eq(end_qp(&a), 0);
	client_device()->patience = UINT64_C(600000000000);
	ck_assert_int_eq(end_qp(&b), 0);
	ck_assert_int_eq(sem_getvalue(&fake.blocked, &blocked), 0);
	ck_assert_int_eq(blocked, 1);
	client_device()->patience = patience;
	harness_close_file(&h);
	uv_close(b.fd);
	client_uncharge_left(2);
}
END_TEST

START_TEST(test_removal_ends_although_destructions_do_not)
{
	enum { MORE = 3 };
	struct client more[MORE];

	for (int i = 0; i < MORE; i++)
		client_open(&more[i], uv_open());
	client_lend();
	client_device()->patience = 100000000;
	fake.hangs = true;
	uvd_device_remove(h.dev);
	harness_close_file(&h);
	for (int i = 0; i < MORE; i++)
		uv_close(more[i].fd);
	client_uncharge_left(1 + MORE);
}
END_TEST

START_TEST(test_slow_destruction_delays_no_other_client_and_leaves_nothing)
{
	struct client other = {};
	struct worker destroy;

	client_lend();
	client_device()->patience = UINT64_C(600000000000);
	fake.hangs = true;
	worker_start(&destroy, &a, end_qp);
	sem_wait(&fake.blocked);
	fake.hangs = false;
	client_open(&other, uv_open());
	client_lend();
	client_expect_none(&other);
	ck_assert_int_eq(end_qp(&other), 0);
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&destroy), 0);
}
END_TEST

START_TEST(test_errno_of_a_destruction_in_a_thread_is_the_clients)
{
	client_lend();
	fake.result[FAKE_DESTROY_QP] = -1;
	fake.err = EBUSY;
	ck_assert_int_eq(end_qp(&a), -EBUSY);
	fake.result[FAKE_DESTROY_QP] = EINVAL;
	ck_assert_int_eq(end_qp(&a), -EINVAL);
	fake.result[FAKE_DESTROY_QP] = 0;
	ck_assert_int_eq(end_qp(&a), 0);
}
END_TEST

static int close_file(const struct client *c)
{
	harness_close_file(&h);
	return 0;
}

/* The client has attached its QP to a group by itself. The PD, which is older, is asked for after the QP was given up. */
START_TEST(test_event_of_an_object_that_the_adapter_keeps_hurts_nobody_while_its_file_is_closed)
{
	enum { TIMES = 3 }; /* the first with other objects, the second without, and the last that ignores the errno */
	struct worker close;
	struct client b;
	uint32_t pd;

	ck_assert_int_eq(uv_alloc_pd(a.fd, UV_WRITE, &pd), 0);
	client_open_beside(&b, &a);
	fake.result[FAKE_DESTROY_QP] = EBUSY;
	fake.result[FAKE_DEALLOC_PD] = EBUSY;
	fake.waits_in = FAKE_DEALLOC_PD;
	worker_start(&close, &a, close_file);
	for (int i = 1; i < TIMES; i++) {
		sem_wait(&fake.blocked);
		sem_post(&fake.unblock);
	}
	sem_wait(&fake.blocked);
	ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_OBJECT + UVERBS_OBJECT_QP), 3);
	fake.waits_in = 0;
	fake.blocks_events = true;
	fake_qp_event(b.qp.qpn, IBV_EVENT_COMM_EST);
	sem_wait(&fake.blocked);
	sem_post(&fake.unblock);
	sem_post(&fake.unblock);
	ck_assert_int_eq(worker_join(&close), 0);
	client_uncharge_rings();
	fake.gone = true;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("the verbs backend with a fake adapter: a client that has kept its device file");
	TCase *t = tcase_create("hostile"), *leaks = tcase_create("leaks");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_event_of_an_unknown_object_is_dropped, 0, UV_ARRAY_SIZE(types));
	tcase_add_loop_test(t, test_event_with_the_address_of_an_object_of_another_type_is_dropped, 0,
			    UV_ARRAY_SIZE(types));
	tcase_add_test(t, test_event_with_the_address_of_an_object_of_another_context_is_dropped);
	tcase_add_test(t, test_event_of_an_object_that_was_destroyed_is_dropped);
	tcase_add_test(t, test_event_of_another_size_ends_the_contexts_events);
	tcase_add_test(t, test_events_that_a_destruction_waits_for_are_relayed);
	tcase_add_test(t, test_event_that_arrives_while_an_object_is_destroyed_is_relayed_afterwards);
	tcase_add_test(t, test_completion_in_another_cq_completes_nothing);
	tcase_add_test(t, test_completion_of_more_bytes_than_the_receive_copies_no_byte_beyond_it);
	tcase_add_test(t, test_completions_of_no_request_are_dropped);
	tcase_add_test(t, test_completions_without_end_hold_up_no_call);
	tcase_add_test(t, test_destruction_that_does_not_end_is_left_with_its_context);
	tcase_add_test(t, test_user_leaves_no_more_than_some_threads);
	tcase_add_test(t, test_removal_ends_although_destructions_do_not);
	tcase_add_test(t, test_slow_destruction_delays_no_other_client_and_leaves_nothing);
	tcase_add_test(t, test_errno_of_a_destruction_in_a_thread_is_the_clients);
	/* The backend leaks the objects that the adapter keeps. */
	tcase_add_checked_fixture(leaks, setup_to_leak, teardown);
	tcase_set_timeout(leaks, 60);
	tcase_add_test(leaks, test_event_of_an_object_that_the_adapter_keeps_hurts_nobody_while_its_file_is_closed);
	suite_add_tcase(s, t);
	suite_add_tcase(s, leaks);
	return run_cases(s);
}
