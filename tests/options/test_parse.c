/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The configuration file, and the options of one more device. */
#include <check.h>
#include <endian.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uverbsd/schema.h>

#include "options/internal.h"
#include "options/options.h"
#include "../suite.h"

/* Parses a file with this text, and then these options. The caller frees *o. */
static void parse(struct uvd_options *o, const char *text, char *option, char *value)
{
	char path[32];
	char *argv[] = { "test", "--config", path, option, value, NULL };
	int fd = memfd_create("config", 0);

	ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(uvd_options_parse(o, UVD_PROGRAM_RUN, NULL, NULL, option ? 5 : 3, argv), -1);
	close(fd);
}

static const char *const files[] = {
	"[uverbsd]\nbackend = null\ndevices = 2\nmax-qp = 5\nlid = 10\n[device 1]\nmax-qp = 7\nlid = 77\n[port 1.1]\nlid = 99\n",
	"[port 1.1]\nlid = 99\n[device 1]\nmax-qp = 7\nlid = 77\n[uverbsd]\nbackend = null\ndevices = 2\nmax-qp = 5\nlid = 10\n",
	"[device 1]\nlid = 77\n[uverbsd]\nbackend = null\nlid = 10\n[port 1.1]\nlid = 99\n[uverbsd]\nmax-qp = 5\n[device 1]\nmax-qp = 7\n",
};

static const struct uvd_option_machine daemon_machine = {};
static const struct uvd_option_place shared = { .machine = &daemon_machine };
static const struct uvd_option_machine run_machine = { .is_private = true, .maps_queues = true };
static const struct uvd_option_place private = { .machine = &run_machine };

START_TEST(test_section_of_a_device_wins_over_that_of_all_wherever_it_is)
{
	struct uvd_options o;

	parse(&o, files[_i], NULL, NULL);
	ck_assert_uint_eq(o.num_devices, 2);
	ck_assert_int_eq(o.devices[0].limits.max_qp, 5);
	ck_assert_int_eq(o.devices[1].limits.max_qp, 7);
	ck_assert_uint_eq(o.devices[0].ports[0].lid, 10);
	ck_assert_uint_eq(o.devices[1].ports[0].lid, 99);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_command_line_wins_over_each_section)
{
	struct uvd_options o;

	parse(&o, files[_i], "--max-qp", "9");
	ck_assert_int_eq(o.devices[0].limits.max_qp, 9);
	ck_assert_int_eq(o.devices[1].limits.max_qp, 9);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_memlock_is_the_clients_for_the_daemon_and_unlimited_under_run)
{
	struct uvd_options o;
	char *argv[] = { "uverbsd", NULL };

	ck_assert_int_lt(uvd_options_parse(&o, UVD_PROGRAM_DAEMON, NULL, NULL, 1, argv), 0);
	ck_assert_uint_eq(o.devices[0].memlock, UVD_MEMLOCK_CLIENT);
	uvd_options_free(&o);
	ck_assert_int_eq(uvd_options_parse_device(&o, &shared, 1, argv), 0);
	ck_assert_uint_eq(o.devices[0].memlock, UVD_MEMLOCK_CLIENT);
	uvd_options_free(&o);
	ck_assert_int_eq(uvd_options_parse_device(&o, &private, 1, argv), 0);
	ck_assert_uint_eq(o.devices[0].memlock, UVD_MEMLOCK_UNLIMITED);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_daemon_is_two_processes_unless_an_option_says_no)
{
	static const struct {
		enum uvd_program program;
		const char *value; /* of --separate; NULL: not given */
		bool separate;
	} cases[] = { { UVD_PROGRAM_DAEMON, NULL, true },
		      { UVD_PROGRAM_DAEMON, "yes", true },
		      { UVD_PROGRAM_DAEMON, "no", false },
		      { UVD_PROGRAM_RUN, NULL, false } };
	struct uvd_options o;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = { "uverbsd", "--separate", (char *)cases[i].value, NULL };

		ck_assert_int_lt(uvd_options_parse(&o, cases[i].program, NULL, NULL, cases[i].value ? 3 : 1, argv), 0);
		ck_assert_int_eq(o.separate, cases[i].separate);
		uvd_options_free(&o);
	}
}
END_TEST

/* Root's user or group would give the engine process what it must not have. */
START_TEST(test_engine_process_never_has_root_s_user)
{
	char *argv[] = { "uverbsd", NULL }, *root[] = { "uverbsd", "--engine-user", "root", NULL };
	const struct passwd *own = getpwnam(UVD_ENGINE_USER);
	const uid_t uid = own ? own->pw_uid : 65534;
	struct uvd_options o;

	ck_assert_int_lt(uvd_options_parse(&o, UVD_PROGRAM_DAEMON, NULL, NULL, 1, argv), 0);
	ck_assert_int_eq(o.engine_is_nobody, !own);
	ck_assert_uint_eq(o.engine_uid, uid);
	ck_assert_uint_ne(o.engine_gid, 0);
	uvd_options_free(&o);
	ck_assert_int_eq(uvd_options_parse(&o, UVD_PROGRAM_DAEMON, NULL, NULL, 3, root), 2);
}
END_TEST

/* Under run it is rxe, unless one of these says otherwise: then all other defaults are those of hfi1. */
START_TEST(test_defaults_follow_the_persona_that_options_decide)
{
	static const char *const options[][2] = {
		{ "--mtu", "4096" }, { "--persona", "hfi1" }, { "--backend", "null" }, { "--name", "hfi1_3" }
	};
	struct uvd_options o;

	parse(&o, "", (char *)options[_i][0], (char *)options[_i][1]);
	ck_assert_uint_eq(o.devices[0].ports[0].link_layer, _i ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET);
	ck_assert_str_eq(o.devices[0].persona, _i ? "hfi1" : "rxe");
	uvd_options_free(&o);
}
END_TEST

/* The broker would refuse to publish the device, without a word about the option. */
START_TEST(test_text_of_a_device_that_sysfs_cannot_show_is_refused)
{
	static const char *const options[] = { "--node-desc", "--name", "--fw-version", "--board-id", "--hca" };
	static const char *const bad[] = { "", "a/b", ".x", "a\nb", "a\x80" };
	struct uvd_options o;

	for (unsigned int i = 0; i < UVD_COUNT(options); i++) {
		char *argv[] = { "uverbsd", (char *)options[i], (char *)bad[_i], NULL };

		ck_assert_int_eq(uvd_options_parse(&o, UVD_PROGRAM_DAEMON, NULL, NULL, 3, argv), 2);
	}
}
END_TEST

START_TEST(test_node_description_of_a_section_has_spaces)
{
	struct uvd_options o;

	parse(&o, "[device 0]\nnode_desc = lab 7\n", NULL, NULL);
	ck_assert_str_eq(o.devices[0].node_desc, "lab 7");
	uvd_options_free(&o);
	parse(&o, "", NULL, NULL);
	ck_assert_str_eq(o.devices[0].node_desc, "");
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_addresses_of_a_device_come_before_the_loopback_address)
{
	const union ibv_gid first = { .raw = { [10] = 0xff, 0xff, 192, 0, 2, 2 } },
			    last = { .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	const struct uvd_port_config *port;
	struct uvd_options o;

	parse(&o, "[device 0]\nip = 192.0.2.2,2001:db8::7\npersona = rxe\n", NULL, NULL);
	port = &o.devices[0].ports[0];
	ck_assert_uint_ge(port->num_gids, 3);
	ck_assert_mem_eq(&port->gids[0], &first, sizeof(first));
	ck_assert_uint_eq(port->gids[1].raw[15], 7);
	ck_assert_mem_eq(&port->gids[2], &last, sizeof(last));
	uvd_options_free(&o);
	/* On InfiniBand GIDs are the port's own. */
	parse(&o, "[device 0]\nip = 192.0.2.2\npersona = hfi1\n", NULL, NULL);
	ck_assert_uint_eq(o.devices[0].ports[0].num_gids, 1);
	ck_assert_uint_eq(o.devices[0].ips.num, 1);
	ck_assert_mem_eq(&o.devices[0].ips.gids[0], &first, sizeof(first));
	uvd_options_free(&o);
}
END_TEST

static const char *const wired[] = { "hfi1", "rxe" };

START_TEST(test_addresses_of_the_wire_come_first_and_the_port_is_ethernet)
{
	const union ibv_gid expected[] = {
		{ .raw = { [10] = 0xff, 0xff, 127, 0, 0, 2 } },
		{ .raw = { 0x20, 1, 0x0d, 0xb8, [15] = 7 } },
		{ .raw = { [10] = 0xff, 0xff, 192, 0, 2, 2 } },
		{ .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } },
	};
	const struct uvd_device_config *config;
	struct uvd_options o;

	parse(&o,
	      "[uverbsd]\nwire = 127.0.0.2,2001:db8::7\ndevices = 2\n[device 0]\nip = 192.0.2.2,127.0.0.2\n[device 1]\nbackend = null\n",
	      "--persona", (char *)wired[_i]);
	config = &o.devices[0];
	ck_assert_uint_eq(config->num_wires, 2);
	ck_assert_uint_eq(config->ips.num, 3);
	ck_assert_mem_eq(config->ips.gids, expected, 3 * sizeof(expected[0]));
	ck_assert_mem_eq(config->ports[0].gids, expected, sizeof(expected));
	ck_assert_uint_eq(config->ports[0].link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_uint_eq(config->ports[0].lid, 0);
	ck_assert_uint_eq(config->ports[0].num_pkeys, 1);
	ck_assert_uint_eq(config->ports[0].active_mtu, 0); /* that of the wire */
	ck_assert_uint_eq(o.devices[1].num_wires, 0);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_gids_of_a_device_follow_those_of_the_wire)
{
	struct uvd_options o;

	parse(&o, "[uverbsd]\nwire = 127.0.0.2\ngid = 2001:db8::1\n", NULL, NULL);
	ck_assert_uint_eq(o.devices[0].ports[0].num_gids, 2);
	ck_assert_uint_eq(o.devices[0].ports[0].gids[0].raw[15], 2);
	ck_assert_uint_eq(o.devices[0].ports[0].gids[1].raw[0], 0x20);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_engine_process_has_the_wire_that_its_broker_has_opened)
{
	char *argv[] = { "uverbsd", "--internal-wire=2aabbccddee00,127.0.0.3,fe80::1%1", "--wire", "auto", NULL };
	struct uvd_wire_options w;
	char text[UVD_WIRE_TEXT];
	struct uvd_options o;

	ck_assert_int_eq(uvd_options_parse(&o, UVD_PROGRAM_DAEMON, NULL, NULL, 4, argv), -1);
	uvd_options_wire_text(&o.wire, text);
	ck_assert_str_eq(text, "127.0.0.3,fe80::1%1");
	ck_assert_uint_eq(o.wire.list[1].scope, 1);
	ck_assert_uint_eq(be64toh(o.devices[0].node_guid), 0x2aabbccddee00);
	w = o.wire;
	ck_assert(uvd_options_same_wire(&w, &o.wire));
	w.list[1].scope = 2;
	ck_assert(!uvd_options_same_wire(&w, &o.wire));
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_list_of_addresses_that_is_wrong_is_refused)
{
	static const char *const bad[] = { "", "192.0.2", "eth0", "192.0.2.2,,",
					   "1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5,1.1.1.6,1.1.1.7,1.1.1.8,1.1.1.9" };
	char *argv[] = { "uverbsd", "--ip", (char *)bad[_i], NULL };
	struct uvd_options o;

	ck_assert_int_eq(uvd_options_parse(&o, UVD_PROGRAM_DAEMON, NULL, NULL, 3, argv), 2);
}
END_TEST

START_TEST(test_memlock_of_a_section_is_a_word_or_a_number_of_bytes)
{
	struct uvd_options o;

	parse(&o,
	      "[uverbsd]\ndevices = 3\nmemlock = client\n[device 1]\nmemlock = unlimited\n[device 2]\nmemlock = 0x10000\n",
	      NULL, NULL);
	ck_assert_uint_eq(o.devices[0].memlock, UVD_MEMLOCK_CLIENT);
	ck_assert_uint_eq(o.devices[1].memlock, UVD_MEMLOCK_UNLIMITED);
	ck_assert_uint_eq(o.devices[2].memlock, 65536);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_later_line_wins_within_a_section)
{
	struct uvd_options o;

	parse(&o, "[device 0]\nmax-qp = 5\n[uverbsd]\nmax-cq = 3\n[device 0]\nmax-qp = 6\n[uverbsd]\nmax-cq = 4\n",
	      NULL, NULL);
	ck_assert_int_eq(o.devices[0].limits.max_qp, 6);
	ck_assert_int_eq(o.devices[0].limits.max_cq, 4);
	uvd_options_free(&o);
}
END_TEST

static void expect_texts(const struct uvd_options *o, const struct uvd_option_text *expected, unsigned int num)
{
	ck_assert_uint_eq(o->num_texts, num);
	for (unsigned int i = 0; i < num; i++) {
		ck_assert_uint_eq(o->texts[i].kind, expected[i].kind);
		ck_assert_uint_eq(o->texts[i].device, expected[i].device);
		ck_assert_str_eq(o->texts[i].text, expected[i].text);
	}
}

START_TEST(test_filters_of_the_file_come_before_those_of_the_command_line)
{
	static const struct uvd_option_text expected[] = {
		{ 0, UVD_TEXT_FILTER, "error:alloc_pd=ENOMEM" },
		{ 0, UVD_TEXT_FILTER, "error" },
		{ 1, UVD_TEXT_FILTER, "error:alloc_pd=ENOMEM" },
		{ 1, UVD_TEXT_FILTER, "error:seed=2" },
		{ 1, UVD_TEXT_FILTER, "error" },
	};
	struct uvd_options o;

	parse(&o, "[device 1]\nfilter = error:seed=2\n[uverbsd]\nfilter = error:alloc_pd=ENOMEM\n", "--filter",
	      "error");
	expect_texts(&o, expected, UVD_COUNT(expected));
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_allow_lists_of_users_have_their_ids)
{
	static const struct uvd_option_text expected[] = {
		{ 0, UVD_TEXT_ALLOW, "verbs:base" },	 { 0, UVD_TEXT_ALLOW, "user:0:access:LOCAL_WRITE" },
		{ 0, UVD_TEXT_ALLOW, "ucap:perm:none" }, { 0, UVD_TEXT_ALLOW, "user:7:none" },
		{ 1, UVD_TEXT_ALLOW, "verbs:base" },	 { 1, UVD_TEXT_ALLOW, "none" },
		{ 1, UVD_TEXT_ALLOW, "user:7:none" },
	};
	struct uvd_options o;

	parse(&o,
	      "[device 0 user root]\nallow = access:LOCAL_WRITE\n[device 0 ucap perm]\nallow = none\n"
	      "[device 1]\nallow = none\n[uverbsd]\nallow = verbs:base\n",
	      "--allow", "user:7:none");
	expect_texts(&o, expected, UVD_COUNT(expected));
	uvd_options_free(&o);
}
END_TEST

/* A later text wins, so those of all devices come first, and those of the command line last. */
START_TEST(test_quotas_are_in_the_order_in_which_they_win)
{
	static const struct uvd_option_text expected[] = {
		{ 0, UVD_TEXT_QUOTA, "qps:4, mrs:5" },	  { 0, UVD_TEXT_QUOTA, "user:0:qps:8" },
		{ 0, UVD_TEXT_QUOTA, "registered:4096" }, { 1, UVD_TEXT_QUOTA, "qps:4, mrs:5" },
		{ 1, UVD_TEXT_QUOTA, "qps:6" },		  { 1, UVD_TEXT_QUOTA, "registered:4096" },
	};
	struct uvd_options o;

	parse(&o, "[device 0 user root]\nquota = qps:8\n[device 1]\nquota = qps:6\n[uverbsd]\nquota = qps:4, mrs:5\n",
	      "--quota", "registered:4096");
	expect_texts(&o, expected, UVD_COUNT(expected));
	uvd_options_free(&o);
}
END_TEST

/* uvd_options_parse_device() runs in the daemon, for a client of the control socket. */
/* Parses a daemon's file. Returns its descriptor, which the caller closes; it frees *o. */
static int parse_daemon(struct uvd_options *o, const char *text, int want)
{
	static char path[32];
	static char *argv[] = { "test", "--config", path, "--workers", "3", NULL };
	int fd = memfd_create("config", 0);

	ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(uvd_options_parse(o, UVD_PROGRAM_DAEMON, NULL, NULL, 5, argv), want);
	return fd;
}

START_TEST(test_grant_of_one_capability_wins_over_that_of_all)
{
	struct uvd_ucap_grant g;
	struct uvd_options o;

	close(parse_daemon(
		&o,
		"[ucap b]\nucap-group = 7\nucap-mode = 640\n[uverbsd]\nucaps = a, b\nucap-owner = 5\nucap-owner = a:6\n",
		-1));
	g = uvd_options_ucap_grant(&o.ucap_grants, "a");
	ck_assert(g.uid == 6 && g.gid == 0 && g.mode == 0600 && !strcmp(g.name, "a"));
	g = uvd_options_ucap_grant(&o.ucap_grants, "b");
	ck_assert(g.uid == 5 && g.gid == 7 && g.mode == 0640);
	uvd_options_free(&o);
	close(parse_daemon(&o, "[uverbsd]\nucaps = a\nucap-group = daemon\n", -1));
	g = uvd_options_ucap_grant(&o.ucap_grants, "a");
	ck_assert(g.uid == 0 && g.gid == 1 && g.mode == 0660);
	uvd_options_free(&o);
}
END_TEST

START_TEST(test_grant_that_is_none_is_refused)
{
	static const char *const wrong[] = { "[uverbsd]\nucaps = a\nucap-owner = nobody-has-this-name\n",
					     "[uverbsd]\nucaps = a\nucap-mode = 1000\n",
					     "[uverbsd]\nucaps = a\nucap-mode = 68\n",
					     "[uverbsd]\nucaps = a\nucap-owner = ../x:0\n",
					     "[uverbsd]\nucaps = a\nucap-owner = b:0\n",
					     "[uverbsd]\nucaps = a\n[ucap a]\nmode = 600\n",
					     "[ucap uverbs0]\nucap-owner = 0\n" };
	struct uvd_options o;

	close(parse_daemon(&o, wrong[_i], 2));
}
END_TEST

static void reload(const struct uvd_options *was, const char *text, struct uvd_options *o, const char *wrong)
{
	char error[UVD_RELOAD_ERROR];
	int fd = memfd_create("config", 0);

	ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	ck_assert_msg(uvd_options_parse_again(was, fd, o, error) == (wrong ? -1 : 0), "%s", error);
	if (wrong)
		ck_assert_msg(strstr(error, wrong), "%s", error);
	close(fd);
}

START_TEST(test_file_that_is_read_again_tells_what_differs)
{
	static const char text[] = "[uverbsd]\ndevices = 3\nworkers = 2\n[device 1]\nallow = verbs:rdma\nports = 2\n";
	char names[UVD_RELOAD_NAMES];
	struct uvd_options was, now;
	int fd = parse_daemon(&was, text, -1);

	reload(&was, text, &now, NULL);
	uvd_options_differ(&was, &now, names);
	ck_assert_str_eq(names, "");
	ck_assert_uint_eq(now.num_devices, 3);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert(uvd_options_same_device(&was, i, &now, i));
	ck_assert(!uvd_options_same_device(&was, 0, &now, 1));
	uvd_options_free(&now);
	reload(&was,
	       "[uverbsd]\ndevices = 2\nmode = 600\nucap-owner = 5\n[limits]\nfiles = 9\n[device 1]\nallow = verbs:atomic\nports = 2\n",
	       &now, NULL);
	uvd_options_differ(&was, &now, names);
	ck_assert_str_eq(names, "mode workers limit-files");
	ck_assert(uvd_options_same_device(&was, 0, &now, 0) && !uvd_options_same_device(&was, 1, &now, 1));
	uvd_options_free(&now);
	uvd_options_free(&was);
	close(fd);
}
END_TEST

START_TEST(test_error_in_the_file_that_is_read_again_has_its_line)
{
	struct uvd_options was, now;
	int fd = parse_daemon(&was, "[uverbsd]\n", -1);

	reload(&was, "[uverbsd]\n\nports = 9\n", &now, ":3: ports: `9`");
	reload(&was, "[uverbsd]\nnonsense = 1\n", &now, ":2: unknown key `nonsense`");
	reload(&was, "[plugin x]\n", &now, "other plug-ins are named");
	uvd_options_free(&was);
	close(fd);
}
END_TEST

START_TEST(test_options_of_one_more_device_print_nothing_on_stdout)
{
	static char *const words[] = { "--help", "-h", "--version", "--he" };
	char *argv[] = { "device", words[_i], NULL };
	int file = memfd_create("stdout", 0), before = dup(STDOUT_FILENO);
	struct uvd_options o;
	struct stat st;

	fflush(stdout);
	ck_assert(file >= 0 && dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
	ck_assert_int_eq(uvd_options_parse_device(&o, &shared, 2, argv), -1);
	fflush(stdout);
	ck_assert(dup2(before, STDOUT_FILENO) == STDOUT_FILENO);
	ck_assert(!fstat(file, &st) && st.st_size == 0);
}
END_TEST

static bool is_size(const char *name)
{
	static const char *const sizes[] = { "max-mr-size",    "max-qp-wr",	      "max-sge",
					     "max-cqe",	       "max-srq-wr",	      "max-srq-sge",
					     "max-qp-rd-atom", "max-qp-init-rd-atom", "max-inline-data" };

	for (unsigned int i = 0; i < UVD_COUNT(sizes); i++)
		if (!strcmp(sizes[i], name))
			return true;
	return false;
}

/* Each object of which a device has a limited number is in the table of limits: so each user has a share of it. */
START_TEST(test_each_limit_of_a_device_is_in_the_table_of_limits)
{
	const struct uvd_option_row *row;
	unsigned int n = 0;

	for (unsigned int i = 0; (row = uvd_option_at(i)); i++) {
		bool found = strncmp(row->name, "max-", 4) || is_size(row->name);

		for (unsigned int res = 0; res < UVD_NUM_RES && !found; res++, n++)
			found = uvd_limit_rows[res].whole.option &&
				!strcmp(uvd_limit_rows[res].whole.option, row->name);
		ck_assert_msg(found, "--%s has no share: add a row to src/account/limits.c", row->name);
	}
	ck_assert_uint_gt(n, 0);
}
END_TEST

START_TEST(test_only_uverbsd_has_shares)
{
	static const struct {
		enum uvd_program program;
		bool one_user;
	} programs[] = { { UVD_PROGRAM_DAEMON, false }, { UVD_PROGRAM_RUN, true } };
	char *argv[] = { "test", NULL };
	struct uvd_options o;

	for (unsigned int i = 0; i < UVD_COUNT(programs); i++) {
		ck_assert_int_eq(uvd_options_parse(&o, programs[i].program, NULL, NULL, 1, argv), -1);
		ck_assert(o.limits.one_user == programs[i].one_user);
		uvd_options_free(&o);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("parse");

	tcase_add_loop_test(t, test_section_of_a_device_wins_over_that_of_all_wherever_it_is, 0, 3);
	tcase_add_loop_test(t, test_command_line_wins_over_each_section, 0, 3);
	tcase_add_test(t, test_memlock_is_the_clients_for_the_daemon_and_unlimited_under_run);
	tcase_add_test(t, test_daemon_is_two_processes_unless_an_option_says_no);
	tcase_add_test(t, test_engine_process_never_has_root_s_user);
	tcase_add_loop_test(t, test_defaults_follow_the_persona_that_options_decide, 0, 4);
	tcase_add_loop_test(t, test_text_of_a_device_that_sysfs_cannot_show_is_refused, 0, 5);
	tcase_add_loop_test(t, test_addresses_of_the_wire_come_first_and_the_port_is_ethernet, 0, UVD_COUNT(wired));
	tcase_add_test(t, test_gids_of_a_device_follow_those_of_the_wire);
	tcase_add_test(t, test_engine_process_has_the_wire_that_its_broker_has_opened);
	tcase_add_test(t, test_addresses_of_a_device_come_before_the_loopback_address);
	tcase_add_loop_test(t, test_list_of_addresses_that_is_wrong_is_refused, 0, 5);
	tcase_add_test(t, test_node_description_of_a_section_has_spaces);
	tcase_add_test(t, test_memlock_of_a_section_is_a_word_or_a_number_of_bytes);
	tcase_add_test(t, test_later_line_wins_within_a_section);
	tcase_add_test(t, test_filters_of_the_file_come_before_those_of_the_command_line);
	tcase_add_test(t, test_allow_lists_of_users_have_their_ids);
	tcase_add_test(t, test_quotas_are_in_the_order_in_which_they_win);
	tcase_add_test(t, test_each_limit_of_a_device_is_in_the_table_of_limits);
	tcase_add_test(t, test_only_uverbsd_has_shares);
	tcase_add_loop_test(t, test_options_of_one_more_device_print_nothing_on_stdout, 0, 4);
	tcase_add_test(t, test_grant_of_one_capability_wins_over_that_of_all);
	tcase_add_loop_test(t, test_grant_that_is_none_is_refused, 0, 7);
	tcase_add_test(t, test_file_that_is_read_again_tells_what_differs);
	tcase_add_test(t, test_error_in_the_file_that_is_read_again_has_its_line);
	return run_suite("parse", t);
}
