/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Filters of commands: the events that they choose, and their delays. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "filtered.h"

/* ---- events -------------------------------------------------------------------------------------------------------- */

static struct cm_id *id_of(uint32_t number)
{
	return cm_number_find(&v.cm->ids, number);
}

/* Both have ended the same way, and can do the same now. */
static void check_alike(uint32_t one, uint32_t other)
{
	const struct cm_id *a = id_of(one), *b = id_of(other);

	ck_assert_int_eq(a->state, b->state);
	ck_assert_int_eq(a->conn, b->conn);
	ck_assert_uint_eq(a->due, b->due);
	ck_assert_int_eq(a->in_comm, b->in_comm);
	ck_assert_int_eq(a->in_remote, b->in_remote);
	ck_assert_ptr_eq(a->last, b->last);
	ck_assert_int_eq(conv_connect(&v, v.a, one, ""), conv_connect(&v, v.a, other, ""));
	ck_assert_int_eq(conv_disconnect(&v, v.a, one), conv_disconnect(&v, v.a, other));
}

START_TEST(test_rejected_connection_is_as_one_that_the_peer_rejects)
{
	static const unsigned int reasons[] = { 0, CM_REJ_TIMEOUT, CM_REJ_CONSUMER, 255 };
	struct rdma_ucm_event_resp ev;
	char text[64];
	struct pair p;
	uint32_t id;

	conversation_begin(&v);
	p = conv_requested(&v);
	ck_assert_int_eq(conv_reject(&v, v.b, p.passive, ""), 0);
	conv_expect(&v, v.a, CM_EVENT_REJECTED, p.active);
	snprintf(text, sizeof(text), "error:rejected=%u@1", reasons[_i]);
	add(text);
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, "request"), 0);
	ev = conv_expect(&v, v.a, CM_EVENT_REJECTED, id);
	ck_assert_int_eq((int)ev.status, (int)reasons[_i]);
	ck_assert_uint_eq(ev.param.conn.private_data_len, 148);
	ck_assert_uint_eq(ev.uid, CONV_UID);
	check_counts(v.dev, text + 6, 1, 1);
	check_alike(p.active, id);
	ck_assert_int_ge(conv_destroy(&v, v.a, id), 0);
	conv_expect_none(&v, v.a);
	conv_expect_none(&v, v.b);
	conversation_end(&v);
}
END_TEST

START_TEST(test_rejected_datagram_request_is_unreachable_as_by_a_peer)
{
	struct pair p = {};
	uint32_t status;

	conversation_begin(&v);
	p.listener = conv_listener(&v, RDMA_PS_UDP, CONV_PORT, 5);
	p.active = conv_ready(&v, RDMA_PS_UDP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, p.active, ""), 0);
	p.passive = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).id;
	ck_assert_int_eq(conv_reject(&v, v.b, p.passive, ""), 0);
	status = conv_expect(&v, v.a, CM_EVENT_UNREACHABLE, p.active).status;
	add("error:rejected=0");
	p.passive = conv_ready(&v, RDMA_PS_UDP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, p.passive, ""), 0);
	ck_assert_uint_eq(conv_expect(&v, v.a, CM_EVENT_UNREACHABLE, p.passive).status, status);
	check_alike(p.active, p.passive);
	conv_expect_none(&v, v.b);
	conversation_end(&v);
}
END_TEST

START_TEST(test_unreachable_peer_is_as_one_that_does_not_answer)
{
	struct pair p;
	uint32_t id;

	conversation_begin(&v);
	p = conv_requested(&v);
	while (!uvd_cm_has_events(v.a))
		conv_time_out(&v, p.active);
	conv_expect(&v, v.a, CM_EVENT_UNREACHABLE, p.active);
	add("error:unreachable=EHOSTUNREACH@1");
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_UNREACHABLE, id).status, -EHOSTUNREACH);
	check_alike(p.active, id);
	conv_expect_none(&v, v.a);
	conv_expect_none(&v, v.b);
	conversation_end(&v);
}
END_TEST

/* The data is too long: there is no connection that could end, and the next request is heard. */
START_TEST(test_connect_that_fails_after_the_filter_can_be_made_again)
{
	char data[80] = "";
	uint32_t id;

	begin("error:rejected=28@1");
	conv_listener(&v, RDMA_PS_TCP, CONV_PORT, 5);
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	memset(data, 'x', sizeof(data) - 1);
	ck_assert_int_eq(conv_connect(&v, v.a, id, data), -EINVAL);
	conv_expect_none(&v, v.a);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0);
	conversation_end(&v);
}
END_TEST

START_TEST(test_address_and_route_can_be_resolved_again_after_their_errors)
{
	uint32_t id;

	begin("error:addr_error=ENETUNREACH@1,route_error=ETIMEDOUT@1");
	id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, CONV_PORT), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_ADDR_ERROR, id).status, -ENETUNREACH);
	ck_assert_int_eq(id_of(id)->state, CM_ADDR_BOUND);
	ck_assert_ptr_null(id_of(id)->device);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, CONV_PORT), 0);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, id);
	ck_assert_int_eq(conv_route(&v, v.a, id), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_ROUTE_ERROR, id).status, -ETIMEDOUT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), -EINVAL);
	ck_assert_int_eq(conv_route(&v, v.a, id), 0);
	conv_expect(&v, v.a, CM_EVENT_ROUTE_RESOLVED, id);
	conv_expect_none(&v, v.a);
	conversation_end(&v);
}
END_TEST

START_TEST(test_event_of_the_outermost_filter_is_the_one)
{
	uint32_t id;

	begin("error:rejected=8");
	add("error:unreachable=EIO,rejected=28");
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_REJECTED, id).status, 28);
	conv_expect_none(&v, v.a);
	check_counts(v.dev, "rejected=8", 1, 0);
	check_counts(v.dev, "rejected=28", 1, 1);
	check_counts(v.dev, "unreachable=EIO", 1, 0);
	conversation_end(&v);
}
END_TEST

START_TEST(test_request_that_fails_is_not_seen_by_the_rules_of_events)
{
	uint32_t id;

	begin("error:connect=EIO@1,rejected=28@1");
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), -EIO);
	check_counts(v.dev, "rejected=28@1", 0, 0);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	conv_expect(&v, v.a, CM_EVENT_REJECTED, id);
	conversation_end(&v);
}
END_TEST

/* ---- delays -------------------------------------------------------------------------------------------------------- */

static uint32_t slow_id;

static void *resolve_slowly(void *arg)
{
	return (void *)(intptr_t)conv_route(&v, v.a, slow_id);
}

static pthread_t begin_slow_route(void)
{
	pthread_t thread;

	begin("delay:resolve_route=60s");
	slow_id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_resolve(&v, v.a, slow_id, INADDR_LOOPBACK, CONV_PORT), 0);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, slow_id);
	ck_assert_int_eq(pthread_create(&thread, NULL, resolve_slowly, NULL), 0);
	while (!counts_of(v.dev, "resolve_route=60s").done)
		usleep(100);
	return thread;
}

/* The device's removal ends the sleep, and waits for the call to leave the filter. */
static void *end_slow_route(pthread_t thread)
{
	void *ret;

	uvd_device_remove(v.dev);
	uvd_device_put(v.dev);
	v.dev = NULL;
	pthread_join(thread, &ret);
	return ret;
}

START_TEST(test_identifier_can_be_destroyed_while_a_command_on_it_is_delayed)
{
	pthread_t thread = begin_slow_route();

	ck_assert_int_eq(conv_destroy(&v, v.a, slow_id), 1);
	ck_assert_int_eq((intptr_t)end_slow_route(thread), -ENOENT);
	conversation_end(&v);
}
END_TEST

START_TEST(test_delayed_command_finds_its_device_removed)
{
	pthread_t thread = begin_slow_route();

	ck_assert_int_eq((intptr_t)end_slow_route(thread), -ENXIO);
	conv_expect(&v, v.a, CM_EVENT_DEVICE_REMOVAL, slow_id);
	conversation_end(&v);
}
END_TEST

START_TEST(test_delayed_command_is_carried_out_after_its_time)
{
	uint64_t begun;
	uint32_t id;

	begin("delay:resolve_route=20ms@1");
	begun = uvd_now_ns();
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_uint_ge(uvd_now_ns() - begun, 20000000);
	ck_assert_int_eq(id_of(id)->state, CM_ROUTE_RESOLVED);
	conversation_end(&v);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("outcomes");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_rejected_connection_is_as_one_that_the_peer_rejects, 0, 4);
	tcase_add_test(t, test_rejected_datagram_request_is_unreachable_as_by_a_peer);
	tcase_add_test(t, test_unreachable_peer_is_as_one_that_does_not_answer);
	tcase_add_test(t, test_connect_that_fails_after_the_filter_can_be_made_again);
	tcase_add_test(t, test_address_and_route_can_be_resolved_again_after_their_errors);
	tcase_add_test(t, test_event_of_the_outermost_filter_is_the_one);
	tcase_add_test(t, test_request_that_fails_is_not_seen_by_the_rules_of_events);
	tcase_add_test(t, test_identifier_can_be_destroyed_while_a_command_on_it_is_delayed);
	tcase_add_test(t, test_delayed_command_finds_its_device_removed);
	tcase_add_test(t, test_delayed_command_is_carried_out_after_its_time);
	return run_suite("cm outcomes", t);
}
