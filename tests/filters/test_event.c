/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `event`. */
#include "bed.h"
#include "core/internal.h"

static unsigned int num_events;
static enum ibv_event_type last_type;
static uint8_t last_port;

/* In place of the core, which gives it to all open files: tests/run/test_filter.py has clients. */
static void told(struct uvd_ibdev *dev, enum ibv_event_type type, uint8_t port)
{
	ck_assert_ptr_eq(dev, &h.dev->ib);
	num_events++;
	last_type = type;
	last_port = port;
}

static void setup(void)
{
	harness_init(&h, "null");
	h.config.num_ports = 2;
	h.config.ports[1] = h.config.ports[0];
	harness_start(&h, &uvd_mem_self);
	h.dev->ib.event_handler = told;
}

static void teardown(void)
{
	harness_close(&h);
}

START_TEST(test_the_event_is_told_before_the_posts_of_the_rule)
{
	bed_add("event:when=@3");
	for (unsigned int i = 1; i < 6; i++) {
		ck_assert_int_eq(bed_post_send(), 0);
		ck_assert_uint_eq(num_events, i >= 3);
	}
	ck_assert_int_eq(last_type, IBV_EVENT_SM_CHANGE);
	ck_assert_uint_eq(last_port, 1);
}
END_TEST

START_TEST(test_without_a_rule_each_post_tells_it)
{
	bed_add("event");
	for (unsigned int i = 1; i < 4; i++) {
		ck_assert_int_eq(bed_post_send(), 0);
		ck_assert_uint_eq(num_events, i);
	}
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "event", error), 0);
	ck_assert_int_eq(bed_post_send(), 0);
	ck_assert_uint_eq(num_events, 3);
}
END_TEST

START_TEST(test_type_and_port_are_the_ones_of_the_options)
{
	const char *const names[] = { "client_reregister", "LID_CHANGE", "PKEY_CHANGE", "GID_CHANGE" };
	const enum ibv_event_type types[] = { IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE,
					      IBV_EVENT_GID_CHANGE };
	char text[64];

	snprintf(text, sizeof(text), "event:type=%s,port=2", names[_i]);
	bed_add(text);
	ck_assert_int_eq(bed_post_send(), 0);
	ck_assert_int_eq(last_type, types[_i]);
	ck_assert_uint_eq(last_port, 2);
}
END_TEST

static int ring(struct uvd_qp *qp, struct uvd_work *work)
{
	ck_assert_uint_eq(num_events, 1);
	return 0;
}

START_TEST(test_a_doorbell_is_a_post)
{
	h.dev->ops.ring_doorbell = ring;
	bed_add("event");
	ck_assert_int_eq(bed_ring_doorbell(), 0);
}
END_TEST

START_TEST(test_what_is_no_event_or_port_is_refused)
{
	const char *const wrong[][2] = {
		{ "event:type=PORT_ERR", "`PORT_ERR` is no change" },
		{ "event:type=", "is no change" },
		{ "event:port=0", "port" },
		{ "event:port=3", "port" },
		{ "event:when=3", "when" },
		{ "event:seed=x", "seed" },
	};

	ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[_i][0], error), -EINVAL);
	ck_assert_msg(strstr(error, wrong[_i][1]), "%s", error);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("event");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_the_event_is_told_before_the_posts_of_the_rule);
	tcase_add_test(t, test_without_a_rule_each_post_tells_it);
	tcase_add_loop_test(t, test_type_and_port_are_the_ones_of_the_options, 0, 4);
	tcase_add_test(t, test_a_doorbell_is_a_post);
	tcase_add_loop_test(t, test_what_is_no_event_or_port_is_refused, 0, 6);
	return run_suite("filters: event", t);
}
