/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `flap`. */
#include <unistd.h>

#include "bed.h"

static atomic_int downs, ups;

static int published(struct uvd_device *dev, unsigned int port, bool up)
{
	ck_assert_uint_eq(port, 1);
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
}
END_TEST

START_TEST(test_a_device_can_be_removed_while_its_port_flaps)
{
	bed_add("flap:after=1ms,down=1ms,up=1ms,times=0");
	wait_for(&downs, 2);
	uvd_device_remove(h.dev);
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = { "flap:port=0", "flap:port=2", "flap:down=5", "flap:up=61s",
					     "flap:times=x" };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter flap: "));
	}
}
END_TEST

FILTERS_MAIN(setup, teardown, test_the_port_goes_down_and_up_as_often_as_asked,
	     test_a_filter_that_is_removed_leaves_the_port_up, test_a_filter_that_is_removed_early_does_nothing,
	     test_a_device_can_be_removed_while_its_port_flaps, test_wrong_options_are_refused)
