/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Filters of commands: which commands they see, and which rules there are. */
#include <errno.h>
#include <uverbsd/cm_command.h>
#include "filtered.h"

/* ---- each command -------------------------------------------------------------------------------------------------- */

static uint8_t response[1024];

/* Sends a command whose struct is as the connection manager's checks want it. Returns 0 or a negative errno. */
#define SEND(COMMAND, type, ...) \
	case RDMA_USER_CM_CMD_##COMMAND: { \
		struct rdma_ucm_##type in = { __VA_ARGS__ }; \
		return conv_write(&v, v.a, number, &in, sizeof(in), has_response ? response : NULL, sizeof(response)); \
	}

static long send_command(unsigned int number, uint32_t id, uint32_t group)
{
	const bool has_response = number == RDMA_USER_CM_CMD_CREATE_ID || number == RDMA_USER_CM_CMD_DESTROY_ID ||
				  number == RDMA_USER_CM_CMD_GET_EVENT || number == RDMA_USER_CM_CMD_LEAVE_MCAST ||
				  number == RDMA_USER_CM_CMD_MIGRATE_ID;

	switch (number) {
		SEND(CREATE_ID, create_id, .ps = RDMA_PS_TCP)
		SEND(DESTROY_ID, destroy_id, .id = id)
		SEND(BIND_IP, bind_ip, .id = id, .addr.sin6_family = AF_INET)
		SEND(RESOLVE_IP, resolve_ip, .id = id, .dst_addr.sin6_family = AF_INET)
		SEND(RESOLVE_ROUTE, resolve_route, .id = id)
		SEND(CONNECT, connect, .id = id, .conn_param.valid = 1)
		SEND(LISTEN, listen, .id = id)
		SEND(ACCEPT, accept, .id = id)
		SEND(REJECT, reject, .id = id)
		SEND(DISCONNECT, disconnect, .id = id)
		SEND(GET_EVENT, get_event, )
		SEND(SET_OPTION, set_option, .id = id, .optval = (uintptr_t)response, .optlen = 1)
		SEND(NOTIFY, notify, .id = id)
		SEND(LEAVE_MCAST, destroy_id, .id = group)
		SEND(MIGRATE_ID, migrate_id, .id = id, .fd = 1)
		SEND(BIND, bind, .id = id, .addr_size = 16, .addr.ss_family = AF_INET)
		SEND(RESOLVE_ADDR, resolve_addr, .id = id, .dst_size = 16, .dst_addr.ss_family = AF_INET)
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_QUERY: {
		struct rdma_ucm_query in = { .response = (uintptr_t)response, .id = id };

		return conv_write(&v, v.a, number, &in, sizeof(in), response, sizeof(response));
	}
	case RDMA_USER_CM_CMD_INIT_QP_ATTR: {
		struct rdma_ucm_init_qp_attr in = { .response = (uintptr_t)response, .id = id };

		return conv_write(&v, v.a, number, &in, sizeof(in), response, sizeof(response));
	}
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST: {
		struct rdma_ucm_join_ip_mcast in = { .id = id, .addr.sin6_family = AF_INET };

		return conv_write(&v, v.a, number, &in, sizeof(in), response, sizeof(response));
	}
	case RDMA_USER_CM_CMD_JOIN_MCAST: {
		struct rdma_ucm_join_mcast in = { .id = id, .addr_size = 16, .addr.ss_family = AF_INET };

		return conv_write(&v, v.a, number, &in, sizeof(in), response, sizeof(response));
	}
	default:
		ck_abort_msg("command %u", number);
		return 0;
	}
}

/* Makes an identifier of the device that is in a group and has an event. */
static uint32_t make_member(uint32_t *group)
{
	struct rdma_ucm_join_ip_mcast join = { .uid = 3 };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203) };
	struct rdma_ucm_create_id_resp resp;
	uint32_t id;

	conv_create(&v, v.a, RDMA_PS_UDP, CONV_UID); /* the group's number is not its identifier's */
	id = conv_create(&v, v.a, RDMA_PS_UDP, CONV_UID);
	memcpy(&join.addr, &to, sizeof(to));
	ck_assert_int_eq(conv_bind(&v, v.a, id, INADDR_LOOPBACK, 0), 0);
	join.id = id;
	ck_assert_int_eq(conv_write(&v, v.a, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join, sizeof(join), &resp, sizeof(resp)),
			 0);
	*group = resp.id;
	return id;
}

static const struct command {
	unsigned int number;
	const char *name;
} commands[] = {
#define COMMAND(command, name, kind) { RDMA_USER_CM_CMD_##command, #name },
	UVD_CM_COMMANDS(COMMAND)
};

START_TEST(test_each_command_fails_with_the_errno_of_its_rule)
{
	const struct command *c = &commands[_i];
	char rule[64], text[80];
	uint32_t id, group;

	snprintf(rule, sizeof(rule), "%s=EDQUOT@1", c->name);
	snprintf(text, sizeof(text), "error:%s", rule);
	conversation_begin(&v);
	id = make_member(&group);
	add(text);
	ck_assert_int_eq(send_command(c->number, id, group), -EDQUOT);
	check_counts(v.dev, rule, 1, 1);
	/* The next one is as ever, and the object is still there. */
	ck_assert_int_ne(send_command(c->number, id, group), -EDQUOT);
	check_counts(v.dev, rule, 2, 1);
	conversation_end(&v);
}
END_TEST

START_TEST(test_commands_on_another_devices_identifier_are_not_seen_and_those_without_a_device_are)
{
	const struct command *c = &commands[_i];
	struct uvd_device_config config;
	struct uvd_device *other;
	char rule[64], text[80];
	uint32_t id, group;
	int err;

	snprintf(rule, sizeof(rule), "%s=EDQUOT@1", c->name);
	snprintf(text, sizeof(text), "error:%s", rule);
	conversation_begin(&v);
	uvd_config_default(&config, &uvd_persona_rxe, 1);
	other = uvd_device_new(&v.engine, &config, &err);
	ck_assert_ptr_nonnull(other);
	id = make_member(&group);
	ck_assert_int_eq(uvd_device_filter_add(other, text, error), 0);
	err = c->number == RDMA_USER_CM_CMD_CREATE_ID ? -EDQUOT : 0;
	ck_assert((send_command(c->number, id, group) == -EDQUOT) == !!err);
	check_counts(other, rule, err ? 1 : 0, err ? 1 : 0);
	uvd_device_remove(other);
	uvd_device_put(other);
	ck_assert_uint_eq(v.engine.cm_filtered, 0);
	conversation_end(&v);
}
END_TEST

START_TEST(test_command_on_an_identifier_without_a_device_passes_all_devices_until_one_refuses_it)
{
	struct uvd_device_config config;
	struct uvd_device *other;
	uint32_t id;
	int err;

	begin("error:bind=EIO@2");
	uvd_config_default(&config, &uvd_persona_rxe, 1);
	other = uvd_device_new(&v.engine, &config, &err);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(uvd_device_filter_add(other, "error:bind=EPERM@1", error), 0);
	id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_bind(&v, v.a, id, INADDR_LOOPBACK, CONV_PORT), -EPERM);
	ck_assert_int_eq(conv_bind(&v, v.a, id, INADDR_LOOPBACK, CONV_PORT), -EIO);
	check_counts(v.dev, "bind=EIO@2", 2, 1);
	check_counts(other, "bind=EPERM@1", 1, 1);
	ck_assert_int_eq(conv_bind(&v, v.a, id, INADDR_LOOPBACK, CONV_PORT), 0);
	uvd_device_remove(other);
	uvd_device_put(other);
	conversation_end(&v);
}
END_TEST

START_TEST(test_command_that_fails_by_itself_is_not_seen)
{
	uint32_t id;

	conversation_begin(&v);
	id = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	add("error:connect=ECONNREFUSED,destroy_id=EIO@1");
	ck_assert_int_eq(conv_connect(&v, v.a, id + 7, ""), -ENOENT);
	ck_assert_int_eq(conv_connect(&v, v.b, id, ""), -EINVAL);
	ck_assert_int_eq(send_command(RDMA_USER_CM_CMD_CONNECT, id, 0), -ECONNREFUSED);
	check_counts(v.dev, "connect=ECONNREFUSED", 1, 1);
	ck_assert_int_eq(conv_destroy(&v, v.a, id + 7), -ENOENT);
	check_counts(v.dev, "destroy_id=EIO@1", 0, 0);
	conversation_end(&v);
}
END_TEST

START_TEST(test_failed_command_has_changed_nothing)
{
	struct pair p;

	begin("error:connect=ECONNREFUSED@1,accept=EIO@1");
	p.listener = conv_listener(&v, RDMA_PS_TCP, CONV_PORT, 5);
	p.active = conv_ready(&v, RDMA_PS_TCP, CONV_PORT);
	ck_assert_int_eq(conv_connect(&v, v.a, p.active, ""), -ECONNREFUSED);
	conv_expect_none(&v, v.b);
	ck_assert_int_eq(conv_connect(&v, v.a, p.active, ""), 0);
	p.passive = conv_expect(&v, v.b, CM_EVENT_CONNECT_REQUEST, 0).id;
	ck_assert_int_eq(conv_accept(&v, v.b, p.passive, 1, true, ""), -EIO);
	conv_expect_none(&v, v.a);
	ck_assert_int_eq(conv_accept(&v, v.b, p.passive, 1, true, ""), 0);
	conv_expect(&v, v.a, CM_EVENT_CONNECT_RESPONSE, p.active);
	conversation_end(&v);
}
END_TEST

START_TEST(test_get_event_counts_with_an_event_and_keeps_it_if_it_fails)
{
	struct rdma_ucm_event_resp ev;
	uint32_t id;

	begin("error:get_event=EIO@1");
	conv_expect_none(&v, v.a);
	id = conv_create(&v, v.a, RDMA_PS_TCP, CONV_UID);
	ck_assert_int_eq(conv_resolve(&v, v.a, id, INADDR_LOOPBACK, CONV_PORT), 0);
	ck_assert_int_eq(conv_event(&v, v.a, &ev), -EIO);
	ck_assert_uint_eq(v.num_events, 1);
	check_counts(v.dev, "get_event=EIO@1", 1, 1);
	conv_expect(&v, v.a, CM_EVENT_ADDR_RESOLVED, id);
	check_counts(v.dev, "get_event=EIO@1", 2, 1);
	ck_assert_int_eq(conv_destroy(&v, v.a, id), 1);
	conversation_end(&v);
}
END_TEST

/* The listener has no device; the identifier that the request has made does. */
START_TEST(test_get_event_of_a_request_is_about_its_new_identifier)
{
	struct uvd_device_config config;
	struct uvd_device *other;
	int err;

	conversation_begin(&v);
	uvd_config_default(&config, &uvd_persona_rxe, 1);
	other = uvd_device_new(&v.engine, &config, &err);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(uvd_device_filter_add(other, "error:get_event=EIO", error), 0);
	conv_requested(&v);
	check_counts(other, "get_event=EIO", 0, 0);
	uvd_device_remove(other);
	uvd_device_put(other);
	conversation_end(&v);
}
END_TEST

START_TEST(test_outermost_filter_that_refuses_a_command_is_the_last_to_see_it)
{
	begin("error:create_id=EPERM");
	add("error:create_id=EIO@1");
	ck_assert_int_eq(send_command(RDMA_USER_CM_CMD_CREATE_ID, 0, 0), -EIO);
	check_counts(v.dev, "create_id=EPERM", 0, 0);
	ck_assert_int_eq(send_command(RDMA_USER_CM_CMD_CREATE_ID, 0, 0), -EPERM);
	check_counts(v.dev, "create_id=EIO@1", 2, 1);
	conversation_end(&v);
}
END_TEST

START_TEST(test_connection_manager_asks_only_while_a_filter_wraps_commands)
{
	conversation_begin(&v);
	add("limit:qp=1");
	ck_assert_uint_eq(v.engine.cm_filtered, 0);
	add("error");
	add("delay");
	ck_assert_uint_eq(v.engine.cm_filtered, 1);
	ck_assert_int_eq(uvd_device_filter_remove(v.dev, "error", error), 0);
	ck_assert_uint_eq(v.engine.cm_filtered, 1);
	ck_assert_int_eq(uvd_device_filter_remove(v.dev, "delay", error), 0);
	ck_assert_uint_eq(v.engine.cm_filtered, 0);
	conversation_end(&v);
}
END_TEST

START_TEST(test_no_end_of_an_object_and_no_wait_can_be_delayed)
{
#define CAN_BE_DELAYED(command, name, kind) { #name, !strcmp(#kind, "CALL") },
	static const struct {
		const char *name;
		bool may;
	} all[] = { UVD_CM_COMMANDS(CAN_BE_DELAYED) };
	char text[64];

	conversation_begin(&v);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(text, sizeof(text), "delay:%s=1us", all[i].name);
		ck_assert_msg(!uvd_device_filter_add(v.dev, text, error) == all[i].may, "%s", text);
		if (all[i].may)
			ck_assert_int_eq(uvd_device_filter_remove(v.dev, "delay", error), 0);
		else
			ck_assert_msg(!!strstr(error, "no option"), "%s", error);
	}
	ck_assert_int_eq(uvd_device_filter_add(v.dev, "delay:destroy_id=1us", error), -EINVAL);
	ck_assert_int_eq(uvd_device_filter_add(v.dev, "delay:leave_mcast=1us", error), -EINVAL);
	ck_assert_int_eq(uvd_device_filter_add(v.dev, "delay:get_event=1us", error), -EINVAL);
	conversation_end(&v);
}
END_TEST

START_TEST(test_wrong_rule_is_refused_with_its_reason)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "error:connect=ECONNREFUSE", "is not an errno" },   { "error:destroy_id=EIO", "more than one call" },
		{ "error:leave_mcast=EIO@2+", "more than one call" }, { "error:rejected=256", "is not a reason" },
		{ "error:rejected=-1", "is not a reason" },	      { "error:rejected=1x", "is not a reason" },
		{ "error:rejected=0028", "is not a reason" },	      { "error:unreachable=3", "is not an errno" },
		{ "error:route_error=EIO@0", "no number from 1" },    { "delay:connect=5", "is not a time" },
	};

	conversation_begin(&v);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_eq(uvd_device_filter_add(v.dev, wrong[i].text, error), -EINVAL);
		ck_assert_msg(!!strstr(error, wrong[i].says), "%s: %s", wrong[i].text, error);
	}
	conversation_end(&v);
}
END_TEST

int main(void)
{
	enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };
	TCase *t = tcase_create("filters");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_each_command_fails_with_the_errno_of_its_rule, 0, COMMANDS);
	tcase_add_loop_test(t, test_commands_on_another_devices_identifier_are_not_seen_and_those_without_a_device_are,
			    0, COMMANDS);
	tcase_add_test(t, test_command_on_an_identifier_without_a_device_passes_all_devices_until_one_refuses_it);
	tcase_add_test(t, test_command_that_fails_by_itself_is_not_seen);
	tcase_add_test(t, test_failed_command_has_changed_nothing);
	tcase_add_test(t, test_get_event_counts_with_an_event_and_keeps_it_if_it_fails);
	tcase_add_test(t, test_get_event_of_a_request_is_about_its_new_identifier);
	tcase_add_test(t, test_outermost_filter_that_refuses_a_command_is_the_last_to_see_it);
	tcase_add_test(t, test_connection_manager_asks_only_while_a_filter_wraps_commands);
	tcase_add_test(t, test_no_end_of_an_object_and_no_wait_can_be_delayed);
	tcase_add_test(t, test_wrong_rule_is_refused_with_its_reason);
	return run_suite("cm filters", t);
}
