/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Configurations that the broker refuses to publish, for any requester. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "options/options.h"
#include "persona/persona.h"
#include "../suite.h"

static const struct uvd_option_machine daemon_machine = {};
static const struct uvd_option_place shared = { .machine = &daemon_machine };

static struct uvd_device_config good;
static struct uvd_plugins *names;

static void make_good(void)
{
	char *words[] = { "device", "--name", "new_0", "--ports", "2", "--ucaps", "a,b" };
	struct uvd_options o;

	ck_assert_int_eq(uvd_options_parse_device(&o, &shared, 7, words), 0);
	good = o.devices[0];
	names = uvd_plugins_new(NULL);
	uvd_options_free(&o);
}

START_TEST(test_options_of_a_device_are_good)
{
	ck_assert(uvd_options_device_ok(names, &good));
	good.number = 5;
	ck_assert(uvd_options_device_ok(names, &good));
}
END_TEST

/* As `uverbsctl device add --persona NAME` makes one. */
START_TEST(test_device_of_each_persona_is_good)
{
	const struct uvd_persona *persona = uvd_persona_at(_i);
	char *words[] = { "device", "--persona", (char *)persona->name };
	struct uvd_options o;

	ck_assert_int_eq(uvd_options_parse_device(&o, &shared, 3, words), 0);
	ck_assert_msg(uvd_options_device_ok(names, &o.devices[0]), "%s", persona->name);
	uvd_options_free(&o);
}
END_TEST

static const char *const bad_names[] = { "", "../x", "a/b", ".", ".x", "a\nb", "a\x80", "\x7f" };

START_TEST(test_text_that_is_no_name_is_refused)
{
	char *fields[] = {
		good.ibdev, good.persona, good.backend, good.fw_ver, good.board_id, good.hca, good.node_desc
	};
	/* The last four may be empty: the first two of these are so on a device of persona rxe. */
	const unsigned int num = UVD_COUNT(fields) - (*bad_names[_i] ? 0 : 4);

	for (unsigned int f = 0; f < num; f++) {
		struct uvd_device_config before = good;

		strcpy(fields[f], bad_names[_i]);
		ck_assert_msg(!uvd_options_device_ok(names, &good), "field %u", f);
		good = before;
	}
}
END_TEST

START_TEST(test_text_without_an_end_is_refused)
{
	struct {
		char *at;
		size_t size;
	} fields[] = {
		{ good.ibdev, sizeof(good.ibdev) },	  { good.fw_ver, sizeof(good.fw_ver) },
		{ good.board_id, sizeof(good.board_id) }, { good.persona, sizeof(good.persona) },
		{ good.backend, sizeof(good.backend) },	  { good.ucaps.names[1], UVD_UCAP_NAME },
		{ good.hca, sizeof(good.hca) },		  { good.node_desc, sizeof(good.node_desc) },
	};

	for (unsigned int f = 0; f < UVD_COUNT(fields); f++) {
		struct uvd_device_config before = good;

		memset(fields[f].at, 'x', fields[f].size);
		ck_assert_msg(!uvd_options_device_ok(names, &good), "field %u", f);
		good = before;
	}
}
END_TEST

START_TEST(test_counts_beyond_their_arrays_are_refused)
{
	struct {
		unsigned int *at, bad;
	} counts[] = {
		{ &good.ips.num, UVD_MAX_ADDRESSES + 1 },
		{ &good.num_wires, good.ips.num + 1 },
		{ &good.num_ports, 0 },
		{ &good.num_ports, UVD_MAX_PORTS + 1 },
		{ &good.num_ports, UINT32_MAX },
		{ &good.ports[1].gid_tbl_len, UVD_MAX_GIDS + 1 },
		{ &good.ports[1].num_gids, good.ports[1].gid_tbl_len + 1 },
		{ &good.ports[1].num_pkeys, UVD_MAX_PKEYS + 1 },
		{ &good.ucaps.num, UVD_MAX_DEVICE_UCAPS + 1 },
		{ (unsigned int *)&good.number, 1024 },
		{ (unsigned int *)&good.number, -2 },
	};

	for (unsigned int n = 0; n < UVD_COUNT(counts); n++) {
		struct uvd_device_config before = good;

		*counts[n].at = counts[n].bad;
		ck_assert_msg(!uvd_options_device_ok(names, &good), "count %u", n);
		good = before;
	}
}
END_TEST

START_TEST(test_bools_that_are_neither_true_nor_false_are_refused)
{
	bool *bools[] = { &good.write_abi, &good.ports[1].down };

	for (unsigned int n = 0; n < 2; n++) {
		struct uvd_device_config before = good;

		memset(bools[n], 13, 1);
		ck_assert_msg(!uvd_options_device_ok(names, &good), "bool %u", n);
		good = before;
	}
}
END_TEST

START_TEST(test_unknown_personas_and_nodes_are_refused)
{
	struct uvd_device_config before = good;

	strcpy(good.persona, "none");
	ck_assert(!uvd_options_device_ok(names, &good));
	good = before;
	strcpy(good.ucaps.names[1], "uverbs7");
	ck_assert(!uvd_options_device_ok(names, &good));
}
END_TEST

START_TEST(test_network_devices_of_gids_are_those_of_adapters)
{
	struct uvd_gid_attr *attr = &good.gid_attrs[1][2];

	strcpy(attr->ndev, "eth0");
	ck_assert(!uvd_options_device_ok(names, &good));
	strcpy(good.backend, "verbs");
	ck_assert(uvd_options_device_ok(names, &good));
	strcpy(attr->ndev, "../x");
	ck_assert(!uvd_options_device_ok(names, &good));
	memset(attr->ndev, 'x', sizeof(attr->ndev));
	ck_assert(!uvd_options_device_ok(names, &good));
	attr->ndev[0] = 0;
	attr->type = IBV_GID_TYPE_ROCE_V2;
	ck_assert(uvd_options_device_ok(names, &good));
	attr->type++;
	ck_assert(!uvd_options_device_ok(names, &good));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("device");
	int n;

	tcase_add_checked_fixture(t, make_good, NULL);
	tcase_add_test(t, test_options_of_a_device_are_good);
	for (n = 0; uvd_persona_at(n); n++)
		;
	tcase_add_loop_test(t, test_device_of_each_persona_is_good, 0, n);
	tcase_add_loop_test(t, test_text_that_is_no_name_is_refused, 0, sizeof(bad_names) / sizeof(bad_names[0]));
	tcase_add_test(t, test_text_without_an_end_is_refused);
	tcase_add_test(t, test_counts_beyond_their_arrays_are_refused);
	tcase_add_test(t, test_bools_that_are_neither_true_nor_false_are_refused);
	tcase_add_test(t, test_unknown_personas_and_nodes_are_refused);
	tcase_add_test(t, test_network_devices_of_gids_are_those_of_adapters);
	return run_suite("check", t);
}
