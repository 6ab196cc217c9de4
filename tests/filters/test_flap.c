/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `flap`. */
#include <pthread.h>
#include <unistd.h>

#include "bed.h"
#include "core/internal.h"

static atomic_int downs, ups;
static unsigned int flapping = 1; /* the port */

static int published(struct uvd_device *dev, unsigned int port, bool up)
{
	ck_assert_uint_eq(port, flapping);
	atomic_fetch_add(up ? &ups : &downs, 1);
	return 0;
}

static void setup(void)
{
	harness_init(&h, "null");
	h.engine.publish_port = published;
	harness_start(&h, &uvd_mem_self);
}

static void teardown(void)
{
	harness_close(&h);
}

/* The test's limit of time ends a wait that is stuck. */
static void wait_for(atomic_int *number, int least)
{
	while (atomic_load(number) < least)
		usleep(1000);
}

static bool is_down(void)
{
	return uvd_config_port_down(&h.dev->ib.config.ports[0]);
}

START_TEST(test_the_port_goes_down_and_up_as_often_as_asked)
{
	bed_add("flap:after=1ms,down=1ms,up=1ms,times=3");
	wait_for(&ups, 3);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "flap", error), 0);
	ck_assert_int_eq(atomic_load(&downs), 3);
	ck_assert_int_eq(atomic_load(&ups), 3);
	ck_assert(!is_down());
}
END_TEST

START_TEST(test_the_times_until_down_down_and_up_are_the_ones_of_the_options)
{
	bed_add("flap:after=1ms,down=1ms,up=60s,times=0");
	wait_for(&ups, 1);
	usleep(20000);
	ck_assert_int_eq(atomic_load(&downs), 1);
}
END_TEST

START_TEST(test_a_filter_that_is_removed_leaves_the_port_up)
{
	bed_add("flap:after=1ms,down=60s");
	wait_for(&downs, 1);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "flap", error), 0);
	ck_assert_int_eq(atomic_load(&ups), 1);
	ck_assert(!is_down());
}
END_TEST

START_TEST(test_a_filter_that_is_removed_early_does_nothing)
{
	bed_add("flap:after=60s");
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "flap", error), 0);
	ck_assert_int_eq(atomic_load(&downs), 0);
	bed_add("flap:posts=1");
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "flap", error), 0);
	ck_assert_int_eq(atomic_load(&downs), 0);
}
END_TEST

START_TEST(test_a_device_can_be_removed_while_its_port_flaps)
{
	bed_add("flap:after=1ms,down=1ms,up=1ms,times=0");
	wait_for(&downs, 2);
	uvd_device_remove(h.dev);
}
END_TEST

START_TEST(test_the_port_is_down_when_the_post_of_the_schedule_goes_on)
{
	bed_add("flap:posts=3,down=60s");
	for (int i = 1; i < 5; i++) {
		ck_assert_int_eq(bed_post_send(), 0);
		ck_assert_int_eq(is_down(), i >= 3);
	}
	ck_assert_int_eq(atomic_load(&downs), 1);
}
END_TEST

START_TEST(test_posts_count_anew_each_time_the_port_is_up)
{
	bed_add("flap:posts=2,after=60s,down=1ms,up=60s,times=2");
	for (int i = 1; i < 7; i++) {
		ck_assert_int_eq(bed_post_send(), 0);
		wait_for(&ups, i < 4 ? i / 2 : 2);
		ck_assert_int_eq(atomic_load(&downs), i < 4 ? i / 2 : 2);
	}
	/* The schedule is over, so no post waits. */
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "flap", error), 0);
	ck_assert_int_eq(atomic_load(&ups), 2);
}
END_TEST

static int ring(struct uvd_qp *qp, struct uvd_work *work)
{
	return 0;
}

START_TEST(test_a_doorbell_counts_as_a_post)
{
	h.dev->ops.ring_doorbell = ring;
	bed_add("flap:posts=2,down=60s");
	ck_assert_int_eq(bed_post_send(), 0);
	ck_assert(!is_down());
	ck_assert_int_eq(bed_ring_doorbell(), 0);
	ck_assert(is_down());
}
END_TEST

START_TEST(test_the_port_of_the_option_flaps)
{
	harness_close(&h);
	harness_init(&h, "null");
	h.config.num_ports = 2;
	h.config.ports[1] = h.config.ports[0];
	h.engine.publish_port = published;
	harness_start(&h, &uvd_mem_self);
	flapping = 2;
	bed_add("flap:port=2,after=1ms,down=60s");
	wait_for(&downs, 1);
	ck_assert(!is_down());
	ck_assert(uvd_config_port_down(&h.dev->ib.config.ports[1]));
}
END_TEST

/* ---- the device goes --------------------------------------------------------------------------------------------- */

static atomic_int orders;
static _Atomic uint64_t down_ns;

static int ordered(struct uvd_device *dev, uint64_t ns)
{
	ck_assert_ptr_eq(dev, h.dev);
	atomic_store(&down_ns, ns);
	atomic_fetch_add(&orders, 1);
	return 0;
}

START_TEST(test_the_removal_of_the_device_is_ordered_once_and_not_by_a_transport_that_cannot)
{
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "flap:device=yes", error), -EOPNOTSUPP);
	h.engine.replug = ordered;
	bed_add("flap:device=yes,after=1ms,down=7ms,up=1ms,times=0");
	wait_for(&orders, 1);
	ck_assert_uint_eq(atomic_load(&down_ns), 7000000);
	/* The filter ends with its device, and another one goes on. */
	uvd_device_remove(h.dev);
	ck_assert_int_eq(atomic_load(&orders), 1);
}
END_TEST

/* As the transport does it: removes the device, so that no post waits. */
static int ordered_and_gone(struct uvd_device *dev, uint64_t ns)
{
	atomic_fetch_add(&orders, 1);
	uvd_device_set_gone(dev);
	return 0;
}

/* Only counts: an order that comes while the harness opens the device must not make that fail. */
static int order_counted(struct uvd_device *dev, uint64_t ns)
{
	atomic_fetch_add(&orders, 1);
	return 0;
}

static int (*carry_out)(struct uvd_device *dev, uint64_t ns) = ordered_and_gone;

/* The device comes back after so many removals, with this filter of its configuration. */
static void come_back(uint64_t removals, const char *filter)
{
	harness_close(&h);
	harness_init(&h, "null");
	h.engine.replug = carry_out;
	for (uint64_t i = 0; i < removals; i++)
		uvd_engine_count_replug(&h.engine, h.config.ibdev);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_FILTER, filter), 0);
	harness_start(&h, &uvd_mem_self);
}

START_TEST(test_a_device_that_has_gone_as_often_as_asked_stays)
{
	/* A post waits until the filter's thread has decided. */
	come_back(2, "flap:device=yes,posts=1,times=2");
	ck_assert_int_eq(bed_post_send(), 0);
	ck_assert_int_eq(atomic_load(&orders), 0);
	come_back(1, "flap:device=yes,posts=1,times=2");
	ck_assert_int_eq(bed_post_send(), -EIO);
	ck_assert_int_eq(atomic_load(&orders), 1);
	come_back(7, "flap:device=yes,posts=1,times=0");
	ck_assert_int_eq(bed_post_send(), -EIO);
	ck_assert_int_eq(atomic_load(&orders), 2);
}
END_TEST

START_TEST(test_a_device_that_came_back_stays_for_the_time_up)
{
	carry_out = order_counted;
	come_back(1, "flap:device=yes,after=60s,up=1us,times=0");
	wait_for(&orders, 1);
	come_back(0, "flap:device=yes,after=1us,up=60s,times=0");
	wait_for(&orders, 2);
	carry_out = ordered_and_gone;
}
END_TEST

START_TEST(test_a_filter_that_a_user_adds_or_sets_begins_to_count_anew)
{
	come_back(3, "flap:device=yes,posts=1,times=1");
	bed_add("flap:device=yes,posts=2,times=1");
	ck_assert_int_eq(bed_post_send(), 0);
	ck_assert_int_eq(bed_post_send(), -EIO);
	ck_assert_int_eq(atomic_load(&orders), 1);
	come_back(3, "flap:device=yes,posts=1,times=1");
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "flap:device=yes,posts=1,times=1", error), 0);
	ck_assert_int_eq(bed_post_send(), -EIO);
	ck_assert_int_eq(atomic_load(&orders), 2);
	/* The filters of the configuration count on. */
	come_back(1, "flap:device=yes,posts=1,times=2");
	bed_add("error:seed=1");
	ck_assert_int_eq(bed_post_send(), -EIO);
	come_back(2, "flap:device=yes,posts=1,times=2");
	bed_add("error:seed=1");
	ck_assert_int_eq(bed_post_send(), 0);
}
END_TEST

static void *post_once(void *arg)
{
	return (void *)(intptr_t)bed_post_send();
}

static atomic_bool returned;

static void *post_and_say(void *arg)
{
	const int ret = bed_post_send();

	atomic_store(&returned, true);
	return (void *)(intptr_t)ret;
}

START_TEST(test_the_post_of_the_schedule_fails_when_the_device_is_gone)
{
	pthread_t thread;
	void *ret;

	h.engine.replug = ordered;
	bed_add("flap:device=yes,posts=2");
	ck_assert_int_eq(bed_post_send(), 0);
	ck_assert_int_eq(atomic_load(&orders), 0);
	pthread_create(&thread, NULL, post_and_say, NULL);
	wait_for(&orders, 1);
	usleep(20000);
	ck_assert(!atomic_load(&returned));
	uvd_device_set_gone(h.dev);
	pthread_join(thread, &ret);
	ck_assert_int_eq((intptr_t)ret, -EIO);
}
END_TEST

static atomic_int refused;

/* As long as the transport does not know the device. */
static int unknown(struct uvd_device *dev, uint64_t ns)
{
	atomic_fetch_add(&refused, 1);
	return -ENODEV;
}

static int unknown_at_first(struct uvd_device *dev, uint64_t ns)
{
	return atomic_load(&refused) < 2 ? unknown(dev, ns) : ordered_and_gone(dev, ns);
}

START_TEST(test_a_device_that_the_transport_does_not_know_yet_is_removed_later)
{
	h.engine.replug = unknown_at_first;
	bed_add("flap:device=yes,posts=1");
	ck_assert_int_eq(bed_post_send(), -EIO);
	ck_assert_int_eq(atomic_load(&orders), 1);
}
END_TEST

START_TEST(test_a_filter_that_is_removed_asks_no_more_for_the_removal)
{
	h.engine.replug = unknown;
	bed_add("flap:device=yes,after=1us");
	wait_for(&refused, 2);
	ck_assert_int_eq(uvd_device_filter_remove(h.dev, "flap", error), 0);
}
END_TEST

START_TEST(test_a_post_does_not_wait_for_a_device_that_others_remove)
{
	pthread_t thread;
	void *ret;

	h.engine.replug = unknown;
	bed_add("flap:device=yes,posts=1");
	pthread_create(&thread, NULL, post_once, NULL);
	wait_for(&refused, 2);
	uvd_device_set_gone(h.dev);
	pthread_join(thread, &ret);
	ck_assert_ptr_null(ret);
}
END_TEST

/* Somebody else removes the device meanwhile. */
static int refuse_and_gone(struct uvd_device *dev, uint64_t ns)
{
	uvd_device_set_gone(dev);
	return -ESHUTDOWN;
}

START_TEST(test_a_post_goes_on_if_the_removal_is_refused)
{
	h.engine.replug = refuse_and_gone;
	bed_add("flap:device=yes,posts=1");
	ck_assert_int_eq(bed_post_send(), 0);
}
END_TEST

START_TEST(test_the_engine_counts_removals_by_name)
{
	uvd_engine_count_replug(&h.engine, "a");
	uvd_engine_count_replug(&h.engine, "a");
	uvd_engine_count_replug(&h.engine, "b");
	ck_assert_uint_eq(uvd_engine_replugs(&h.engine, "a"), 2);
	uvd_engine_forget_replugs(&h.engine, "a");
	ck_assert_uint_eq(uvd_engine_replugs(&h.engine, "a"), 0);
	ck_assert_uint_eq(uvd_engine_replugs(&h.engine, "b"), 1);
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = { "flap:port=0",  "flap:port=2",	  "flap:down=5", "flap:up=61s",
					     "flap:times=x", "flap:device=maybe", "flap:posts=x" };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter flap: "));
	}
}
END_TEST

FILTERS_MAIN(setup, teardown, test_the_port_goes_down_and_up_as_often_as_asked,
	     test_the_times_until_down_down_and_up_are_the_ones_of_the_options,
	     test_a_filter_that_is_removed_leaves_the_port_up, test_a_filter_that_is_removed_early_does_nothing,
	     test_a_device_can_be_removed_while_its_port_flaps,
	     test_the_port_is_down_when_the_post_of_the_schedule_goes_on,
	     test_posts_count_anew_each_time_the_port_is_up, test_a_doorbell_counts_as_a_post,
	     test_the_port_of_the_option_flaps,
	     test_the_removal_of_the_device_is_ordered_once_and_not_by_a_transport_that_cannot,
	     test_a_device_that_has_gone_as_often_as_asked_stays, test_a_device_that_came_back_stays_for_the_time_up,
	     test_a_filter_that_a_user_adds_or_sets_begins_to_count_anew,
	     test_a_device_that_the_transport_does_not_know_yet_is_removed_later,
	     test_a_filter_that_is_removed_asks_no_more_for_the_removal,
	     test_a_post_does_not_wait_for_a_device_that_others_remove, test_a_post_goes_on_if_the_removal_is_refused,
	     test_the_post_of_the_schedule_fails_when_the_device_is_gone, test_the_engine_counts_removals_by_name,
	     test_wrong_options_are_refused)
