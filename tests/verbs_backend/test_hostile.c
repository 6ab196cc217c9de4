/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a client can do that has kept its context's device file of the adapter: events and completions of objects that it
 * has made by itself, and objects of ours that it has replaced. Only the client itself may suffer.
 */
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

/* What no kernel does ends the client's own events, and nobody else's. */
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

/* While a thread destroys one object, the events of the context wait for it: they come later, and all of them. */
START_TEST(test_events_that_come_while_an_object_is_destroyed_are_relayed_afterwards)
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

int main(void)
{
	TCase *t = tcase_create("hostile");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_event_of_an_unknown_object_is_dropped, 0, UV_ARRAY_SIZE(types));
	tcase_add_loop_test(t, test_event_with_the_address_of_an_object_of_another_type_is_dropped, 0,
			    UV_ARRAY_SIZE(types));
	tcase_add_test(t, test_event_with_the_address_of_an_object_of_another_context_is_dropped);
	tcase_add_test(t, test_event_of_an_object_that_was_destroyed_is_dropped);
	tcase_add_test(t, test_event_of_another_size_ends_the_contexts_events);
	tcase_add_test(t, test_events_that_come_while_an_object_is_destroyed_are_relayed_afterwards);
	return run_suite("the verbs backend with a fake adapter: a client that has kept its device file", t);
}
