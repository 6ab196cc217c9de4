/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --personas and what the machine can do decide which persona devices have. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "options/options.h"
#include "persona/persona.h"
#include "util/util.h"
#include "../suite.h"

static unsigned int asked;

static int mapping_works(void)
{
	asked++;
	return 0;
}

static int mapping_fails(void)
{
	asked++;
	return -EOPNOTSUPP;
}

static int parse(struct uvd_options *o, enum uvd_program program, int (*can_map)(void), const char *words)
{
	static char text[256];
	char *argv[16] = { "test" }, *save;
	int argc = 1;

	asked = 0;
	snprintf(text, sizeof(text), "%s", words);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return uvd_options_parse(o, program, can_map, NULL, argc, argv);
}

/* Names of the devices, with blanks between them. */
static const char *devices_of(const struct uvd_options *o)
{
	static char text[256];
	size_t len = 0;

	for (unsigned int i = 0; i < o->num_devices; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "", o->devices[i].ibdev);
	return text;
}

static const struct {
	const char *words;
	int (*can_map)(void);
	const char *devices;
	unsigned int asked; /* how often the machine was */
	int unmapped;
} by_machine[] = {
	{ "", mapping_works, "rxe0", 1 },
	{ "", mapping_fails, "hfi1_0", 1, -EOPNOTSUPP },
	{ "", NULL, "hfi1_0", 0 },
	{ "--devices 2", mapping_works, "rxe0 rxe1", 1 },
	{ "--persona hfi1", mapping_works, "hfi1_0", 1 },
	/* A file is replaced by a broker, and in a loan. */
	{ "--separate no", mapping_works, "hfi1_0", 0 },
	{ "--grant-fds off", mapping_works, "hfi1_0", 0 },
	{ "--backend null", mapping_works, "hfi1_0", 1 },
	/* The broker has looked: its engine process cannot. */
	{ "--internal-engine --internal-machine=1,0", mapping_fails, "rxe0", 0 },
	{ "--internal-engine --internal-machine=0,0", mapping_works, "hfi1_0", 0 },
};

START_TEST(test_daemon_s_devices_map_queues_where_the_machine_can)
{
	struct uvd_options o;

	ck_assert_int_eq(parse(&o, UVD_PROGRAM_DAEMON, by_machine[_i].can_map, by_machine[_i].words), -1);
	ck_assert_str_eq(devices_of(&o), by_machine[_i].devices);
	ck_assert_uint_eq(asked, by_machine[_i].asked);
	ck_assert_int_eq(o.machine.unmapped, by_machine[_i].unmapped);
	ck_assert_uint_eq(o.devices[0].memlock, UVD_MEMLOCK_CLIENT);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_broker_tells_its_engine_process_all_of_the_machine)
{
	char text[UVD_MACHINE_TEXT], words[64];
	struct uvd_options o;

	for (unsigned int i = 0; i < 4; i++) {
		uvd_options_machine_text(&(struct uvd_option_machine){ .maps_queues = i & 1, .has_ipv6 = i & 2 }, text);
		snprintf(words, sizeof(words), "--internal-machine=%s --persona rxe", text);
		ck_assert_int_eq(parse(&o, UVD_PROGRAM_DAEMON, NULL, words), -1);
		ck_assert_int_eq(o.machine.maps_queues, i & 1);
		ck_assert_uint_eq(o.devices[0].ports[0].num_gids, i & 2 ? 2 : 1);
		uvd_options_free(&o);
	}
	ck_assert_int_eq(parse(&o, UVD_PROGRAM_DAEMON, NULL, "--internal-machine=1"), 2);
}
END_TEST

static const struct {
	const char *words, *devices;
} by_list[] = {
	{ "--personas rxe,hfi1", "rxe0 hfi1_0" },
	{ "--personas hfi1,rxe,hfi1", "hfi1_0 rxe0 hfi1_1" },
	{ "--personas hfi1", "hfi1_0" },
	/* The list has nothing for the third device, which has its default. */
	{ "--devices 3 --personas hfi1,rxe", "hfi1_0 rxe0 rxe1" },
	{ "--personas rxe,hfi1 --persona hfi1", "hfi1_0 hfi1_1" },
};

START_TEST(test_names_of_devices_count_for_each_persona)
{
	struct uvd_options o;

	ck_assert_int_eq(parse(&o, UVD_PROGRAM_RUN, NULL, by_list[_i].words), -1);
	ck_assert_str_eq(devices_of(&o), by_list[_i].devices);
	for (unsigned int i = 1; i < o.num_devices; i++)
		ck_assert(o.devices[i].node_guid != o.devices[0].node_guid);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_with_rxe_in_the_list_all_devices_are_ethernet_with_the_same_addresses)
{
	struct uvd_options o;
	const struct uvd_port_config *a, *b;

	ck_assert_int_eq(parse(&o, UVD_PROGRAM_RUN, NULL, "--personas hfi1,rxe"), -1);
	a = &o.devices[0].ports[0];
	b = &o.devices[1].ports[0];
	ck_assert_int_eq(a->link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_uint_eq(a->lid, 0);
	ck_assert_uint_eq(a->num_gids, b->num_gids);
	ck_assert_mem_eq(a->gids, b->gids, a->num_gids * sizeof(*a->gids));
	uvd_options_free(&o);
	ck_assert_int_eq(parse(&o, UVD_PROGRAM_RUN, NULL, "--personas hfi1,hfi1"), -1);
	ck_assert_int_eq(o.devices[0].ports[0].link_layer, IBV_LINK_LAYER_INFINIBAND);
	uvd_options_free(&o);
	ck_assert_int_eq(parse(&o, UVD_PROGRAM_RUN, NULL, "--personas hfi1,rxe --link-layer infiniband"), -1);
	ck_assert_int_eq(o.devices[0].ports[0].link_layer, IBV_LINK_LAYER_INFINIBAND);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_list_of_personas_that_is_wrong_is_refused)
{
	static const char *const bad[] = { "--personas rxe,mlx5", "--personas rxe,,hfi1",
					   "--devices 1 --personas rxe,hfi1" };
	struct uvd_options o;

	ck_assert_int_eq(parse(&o, UVD_PROGRAM_RUN, NULL, bad[_i]), 2);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("personas");

	tcase_add_loop_test(t, test_daemon_s_devices_map_queues_where_the_machine_can, 0, UVD_COUNT(by_machine));
	tcase_add_test(t, test_broker_tells_its_engine_process_all_of_the_machine);
	tcase_add_loop_test(t, test_names_of_devices_count_for_each_persona, 0, UVD_COUNT(by_list));
	tcase_add_test(t, test_with_rxe_in_the_list_all_devices_are_ethernet_with_the_same_addresses);
	tcase_add_loop_test(t, test_list_of_personas_that_is_wrong_is_refused, 0, 3);
	return run_suite("personas", t);
}
