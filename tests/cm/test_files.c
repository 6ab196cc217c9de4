/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files, their identifiers and events: who finds which, who is charged, who is woken. */
#include <errno.h>
#include <sys/mman.h>
#include "account/account.h"
#include "conversation.h"

static struct conversation v;

enum { NOT_MAPPED = 8 /* an address that no process has */ };

START_TEST(test_identifier_of_another_file_is_einval_and_an_absent_one_enoent)
{
	uint32_t id;

	conversation_begin(&v);
	id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_destroy(&v, v.b, id), -EINVAL);
	ck_assert_int_eq(conv_bind(&v, v.b, id, INADDR_LOOPBACK, 0), -EINVAL);
	ck_assert_int_eq(conv_destroy(&v, v.b, id + 1), -ENOENT);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), 0);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), -ENOENT);
	conversation_end(&v);
}
END_TEST

START_TEST(test_new_identifier_gets_the_lowest_free_number)
{
	uint32_t first, second, third;

	conversation_begin(&v);
	first = conv_create(&v, v.a, RDMA_PS_TCP, 1);
	second = conv_create(&v, v.b, RDMA_PS_TCP, 1);
	third = conv_create(&v, v.a, RDMA_PS_TCP, 1);
	ck_assert_uint_eq(second, first + 1);
	ck_assert_uint_eq(third, first + 2);
	ck_assert_int_eq(conv_destroy(&v, v.b, second), 0);
	ck_assert_uint_eq(conv_create(&v, v.a, RDMA_PS_TCP, 1), second);
	ck_assert_uint_eq(conv_create(&v, v.a, RDMA_PS_TCP, 1), third + 1);
	conversation_end(&v);
}
END_TEST

START_TEST(test_identifier_whose_number_cannot_be_written_is_gone)
{
	struct rdma_ucm_create_id in = { .uid = 1, .response = NOT_MAPPED, .ps = RDMA_PS_TCP };
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_create_id in;
	} bytes = { { RDMA_USER_CM_CMD_CREATE_ID, sizeof(in), 4 }, in };
	uint32_t id;

	conversation_begin(&v);
	id = conv_create(&v, v.a, RDMA_PS_TCP, 1);
	ck_assert_int_eq(uvd_cm_write(v.a, &v.caller, &bytes, sizeof(bytes)), -EFAULT);
	ck_assert_uint_eq(conv_create(&v, v.a, RDMA_PS_TCP, 1), id + 1);
	conversation_end(&v);
}
END_TEST

/* ---- events -------------------------------------------------------------------------------------------------------- */

START_TEST(test_destroy_tells_how_many_events_were_reported)
{
	struct pair p;
	uint32_t id;

	conversation_begin(&v);
	p = conv_established(&v);
	/* ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE; the request counts for the listener. */
	ck_assert_int_eq(conv_destroy(&v, v.a, p.active), 3);
	ck_assert_int_eq(conv_destroy(&v, v.b, p.listener), 1);
	/* ESTABLISHED; DISCONNECTED waits, and is dropped. */
	ck_assert(uvd_cm_has_events(v.b));
	ck_assert_int_eq(conv_destroy(&v, v.b, p.passive), 1);
	conv_expect_none(&v, v.b);
	id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, 1), 0);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), 0);
	conv_expect_none(&v, v.a);
	conversation_end(&v);
}
END_TEST

static long event_to(uint64_t response)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_get_event in;
	} bytes = { { RDMA_USER_CM_CMD_GET_EVENT, sizeof(bytes.in), sizeof(struct rdma_ucm_event_resp) },
		    { response } };

	return uvd_cm_write(v.a, &v.caller, &bytes, sizeof(bytes));
}

START_TEST(test_event_that_cannot_be_written_is_the_next_again)
{
	uint32_t first, second;

	conversation_begin(&v);
	first = conv_create(&v, v.a, RDMA_PS_TCP, 1);
	second = conv_create(&v, v.a, RDMA_PS_TCP, 2);
	ck_assert_int_eq(conv_resolve(&v, v.a, first, INADDR_LOOPBACK, 1), 0);
	ck_assert_int_eq(conv_resolve(&v, v.a, second, INADDR_LOOPBACK, 1), 0);
	ck_assert_int_eq(event_to(NOT_MAPPED), -EFAULT);
	ck_assert_uint_eq(v.num_events, 2);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, first);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, second);
	ck_assert_int_eq(conv_destroy(&v, v.a, first), 1);
	conversation_end(&v);
}
END_TEST

/* A thread writes the event while another one destroys its identifier: it was told then that there was one event. */
START_TEST(test_event_that_is_being_written_counts_as_reported)
{
	struct cm_event *ev;
	uint32_t id;

	conversation_begin(&v);
	id = conv_create(&v, v.a, RDMA_PS_TCP, 1);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, 1), 0);
	cm_lock(v.cm);
	ev = cm_event_take(v.a);
	cm_unlock(v.cm);
	conv_expect_none(&v, v.a);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), 1);
	cm_lock(v.cm);
	cm_event_give_back(ev);
	cm_unlock(v.cm);
	conv_expect_none(&v, v.a);
	conversation_end(&v);
}
END_TEST

START_TEST(test_identifier_without_a_name_of_its_owner_gets_no_events)
{
	uint32_t id;

	conversation_begin(&v);
	id = conv_create(&v, v.a, RDMA_PS_TCP, 0);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, 1), 0);
	conv_expect_none(&v, v.a);
	conversation_end(&v);
}
END_TEST

START_TEST(test_each_event_is_told_to_the_transport)
{
	uint32_t id;

	conversation_begin(&v);
	id = conv_ready(&v, RDMA_PS_TCP, 1);
	ck_assert_uint_eq(v.num_added, 2);
	ck_assert_uint_eq(v.num_events, 0);
	ck_assert_int_eq(conv_connect(&v, v.a, id, ""), 0);
	ck_assert_uint_eq(v.num_added, 3);
	ck_assert_uint_eq(v.num_events, 1);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), 2);
	ck_assert_uint_eq(v.num_events, 0);
	conversation_end(&v);
}
END_TEST

static unsigned int woken;

static void wake(struct uvd_cm_waiter *waiter)
{
	woken++;
}

START_TEST(test_event_wakes_all_who_wait_once)
{
	struct uvd_cm_waiter first = { .ready = wake }, second = first, third = first;
	uint32_t id;

	conversation_begin(&v);
	id = conv_create(&v, v.a, RDMA_PS_TCP, 1);
	ck_assert(uvd_cm_wait(v.a, &first));
	ck_assert(uvd_cm_wait(v.a, &second));
	ck_assert(uvd_cm_wait(v.a, &third));
	ck_assert(uvd_cm_wait_end(v.a, &third));
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, 1), 0);
	ck_assert_uint_eq(woken, 2);
	ck_assert(!uvd_cm_wait_end(v.a, &first));
	ck_assert_int_eq(conv_route(&v, v.a, id), 0);
	ck_assert_uint_eq(woken, 2);
	/* There is an event: nobody has to wait for it. */
	ck_assert(!uvd_cm_wait(v.a, &first));
	conversation_end(&v);
}
END_TEST

/* ---- MIGRATE_ID ---------------------------------------------------------------------------------------------------- */

static long migrate(struct uvd_cm_file *to, uint32_t id, uint32_t fd)
{
	struct rdma_ucm_migrate_id in = { .id = id, .fd = fd };
	struct rdma_ucm_migrate_resp out;
	long ret = CONV(&v, to, MIGRATE_ID, &in, &out);

	return ret < 0 ? ret : (long)out.events_reported;
}

START_TEST(test_migration_moves_identifier_and_events)
{
	uint32_t id;

	conversation_begin(&v);
	id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, 1), 0);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, id);
	ck_assert_int_eq(conv_route(&v, v.a, id), 0);
	ck_assert_int_eq(migrate(v.b, id, 9), -ENOENT);
	ck_assert_int_eq(migrate(v.b, id, 2), -EINVAL);
	ck_assert_int_eq(migrate(v.b, id + 1, 1), -ENOENT);
	ck_assert_int_eq(migrate(v.b, id, 1), 1);
	conv_expect_none(&v, v.a);
	conv_expect(&v, v.b, CM_EVENT_ROUTE_RESOLVED, id);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), -EINVAL);
	ck_assert_int_eq(conv_destroy(&v, v.b, id), 2);
	conversation_end(&v);
}
END_TEST

/* ---- ports --------------------------------------------------------------------------------------------------------- */

static uint32_t create(void)
{
	return conv_create(&v, v.a, RDMA_PS_TCP, 1);
}

static int set_reuse(uint32_t id, int on)
{
	struct rdma_ucm_set_option in = { .optval = (uintptr_t)&on,
					  .id = id,
					  .level = RDMA_OPTION_ID,
					  .optname = RDMA_OPTION_ID_REUSEADDR,
					  .optlen = sizeof(on) };

	return conv_write(&v, v.a, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), NULL, 0);
}

START_TEST(test_port_is_free_again_after_its_owner)
{
	uint32_t first, second;

	conversation_begin(&v);
	first = create();
	second = create();
	ck_assert_int_eq(conv_bind(&v, v.a, first, INADDR_LOOPBACK, CONV_PORT), 0);
	ck_assert_int_eq(conv_bind(&v, v.a, second, INADDR_LOOPBACK, CONV_PORT), -EADDRINUSE);
	ck_assert_int_eq(conv_bind(&v, v.a, second, INADDR_ANY, CONV_PORT), -EADDRNOTAVAIL);
	ck_assert_int_eq(conv_destroy(&v, v.a, first), 0);
	ck_assert_int_eq(conv_bind(&v, v.a, second, INADDR_LOOPBACK, CONV_PORT), 0);
	conversation_end(&v);
}
END_TEST

START_TEST(test_port_is_shared_only_if_both_want_that_and_nobody_listens)
{
	uint32_t first, second, third;

	conversation_begin(&v);
	first = create();
	second = create();
	third = create();
	ck_assert_int_eq(set_reuse(first, 1), 0);
	ck_assert_int_eq(conv_bind(&v, v.a, first, INADDR_ANY, CONV_PORT), 0);
	ck_assert_int_eq(conv_bind(&v, v.a, second, INADDR_ANY, CONV_PORT), -EADDRNOTAVAIL);
	ck_assert_int_eq(set_reuse(second, 1), 0);
	ck_assert_int_eq(conv_bind(&v, v.a, second, INADDR_ANY, CONV_PORT), 0);
	ck_assert_int_eq(conv_listen(&v, v.a, second, 1), -EADDRNOTAVAIL);
	ck_assert_int_eq(conv_destroy(&v, v.a, first), 0);
	ck_assert_int_eq(conv_listen(&v, v.a, second, 1), 0);
	ck_assert_int_eq(set_reuse(third, 1), 0);
	ck_assert_int_eq(conv_bind(&v, v.a, third, INADDR_ANY, CONV_PORT), -EADDRNOTAVAIL);
	conversation_end(&v);
}
END_TEST

/* ---- devices ------------------------------------------------------------------------------------------------------- */

START_TEST(test_removed_device_ends_its_connections_and_leaves_identifiers_that_can_be_destroyed)
{
	struct pair p;

	conversation_begin(&v);
	p = conv_established(&v);
	uvd_device_remove(v.dev);
	uvd_device_put(v.dev);
	v.dev = NULL;
	conv_expect(&v, v.a, CM_EVENT_DEVICE_REMOVAL, p.active);
	conv_expect(&v, v.b, CM_EVENT_DEVICE_REMOVAL, p.passive);
	ck_assert_int_eq(conv_disconnect(&v, v.a, p.active), -ENXIO);
	ck_assert_int_eq(conv_destroy(&v, v.a, p.active), 4);
	/* The listener was bound to no device. */
	ck_assert_int_eq(conv_listen(&v, v.b, p.listener, 1), -EINVAL);
	conversation_end(&v);
}
END_TEST

START_TEST(test_address_of_no_device_is_refused)
{
	uint32_t id;

	conversation_begin(&v);
	id = create();
	ck_assert_int_eq(conv_bind(&v, v.a, id, 0xc0000201, 0), -EADDRNOTAVAIL);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, 0xc0000201, 1), 0);
	ck_assert_int_eq((int)conv_expect(&v, v.a, CM_EVENT_ADDR_ERROR, id).status, -ENETUNREACH);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, 1), 0);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, id);
	conversation_end(&v);
}
END_TEST

/* ---- limits -------------------------------------------------------------------------------------------------------- */

START_TEST(test_identifiers_are_limited_and_a_request_beyond_that_waits)
{
	struct rdma_ucm_create_id in = { .uid = 1, .ps = RDMA_PS_TCP };
	struct rdma_ucm_create_id_resp out;
	struct uvd_account_limits limits;
	uint32_t active;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_CM_IDS] = 2;
	conversation_begin_with(&v, &uvd_persona_rxe, &limits);
	conv_listener(&v, RDMA_PS_TCP, CONV_PORT, 5);
	active = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(CONV(&v, v.a, CREATE_ID, &in, &out), -ENOMEM);
	ck_assert_int_eq(conv_connect(&v, v.a, active, ""), 0);
	conv_expect_none(&v, v.b);
	conversation_end(&v);
}
END_TEST

/* ---- status -------------------------------------------------------------------------------------------------------- */

START_TEST(test_facts_tell_state_and_addresses_of_each_identifier)
{
	struct uvd_cm_facts facts[4];
	struct pair p;

	conversation_begin(&v);
	p = conv_established(&v);
	ck_assert_uint_eq(uvd_cm_copy_facts(v.cm, facts, 2), 2);
	ck_assert_uint_eq(uvd_cm_copy_facts(v.cm, facts, 4), 3);
	ck_assert_uint_eq(facts[0].number, p.listener);
	ck_assert_str_eq(facts[0].state, "LISTEN");
	ck_assert_str_eq(facts[0].space, "TCP");
	ck_assert_str_eq(facts[0].src, "0.0.0.0:7400");
	ck_assert_str_eq(facts[0].dst, "");
	ck_assert_str_eq(facts[0].device, "");
	ck_assert_str_eq(facts[1].state, "CONNECT");
	ck_assert_str_eq(facts[1].device, v.dev->config.ibdev);
	ck_assert_uint_eq(facts[1].port, 1);
	ck_assert_uint_eq(facts[1].qp_num, 0x11);
	ck_assert_str_eq(facts[1].dst, "127.0.0.1:7400");
	ck_assert_str_eq(facts[1].src, facts[2].dst);
	ck_assert_int_eq(facts[2].pid, 1);
	conversation_end(&v);
}
END_TEST

static void add_identifiers(TCase *t)
{
	tcase_add_test(t, test_identifier_of_another_file_is_einval_and_an_absent_one_enoent);
	tcase_add_test(t, test_new_identifier_gets_the_lowest_free_number);
	tcase_add_test(t, test_identifier_whose_number_cannot_be_written_is_gone);
	tcase_add_test(t, test_migration_moves_identifier_and_events);
	tcase_add_test(t, test_port_is_free_again_after_its_owner);
	tcase_add_test(t, test_port_is_shared_only_if_both_want_that_and_nobody_listens);
	tcase_add_test(t, test_removed_device_ends_its_connections_and_leaves_identifiers_that_can_be_destroyed);
	tcase_add_test(t, test_address_of_no_device_is_refused);
	tcase_add_test(t, test_identifiers_are_limited_and_a_request_beyond_that_waits);
}

static void add_events(TCase *t)
{
	tcase_add_test(t, test_facts_tell_state_and_addresses_of_each_identifier);
	tcase_add_test(t, test_destroy_tells_how_many_events_were_reported);
	tcase_add_test(t, test_event_that_cannot_be_written_is_the_next_again);
	tcase_add_test(t, test_event_that_is_being_written_counts_as_reported);
	tcase_add_test(t, test_identifier_without_a_name_of_its_owner_gets_no_events);
	tcase_add_test(t, test_each_event_is_told_to_the_transport);
	tcase_add_test(t, test_event_wakes_all_who_wait_once);
}

int main(void)
{
	TCase *t = tcase_create("files");

	add_identifiers(t);
	add_events(t);
	return run_suite("cm files", t);
}
