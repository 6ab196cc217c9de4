/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The published sysfs directory, read by the distribution's programs and by these tests. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "persona/persona.h"
#include "sysfs/sysfs.h"
#include "../suite.h"

static char base[64], root[96];
static struct uvd_device_config config;

static void setup(void)
{
	snprintf(base, sizeof(base), "/tmp/test_sysfs.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	snprintf(root, sizeof(root), "%s/run/sysfs", base);
	uvd_config_default(&config, &uvd_persona_hfi1, 0);
	ck_assert_int_eq(uvd_sysfs_create(root, NULL), 0);
}

static void teardown(void)
{
	char cmd[160];

	uvd_sysfs_overlay_undo(root);
	uvd_sysfs_destroy(root);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
	ck_assert_int_eq(system(cmd), 0);
}

static int add(void)
{
	return uvd_sysfs_add(root, &config, &uvd_persona_hfi1, makedev(1, 3), NULL);
}

static const char *slurp(const char *path)
{
	static char buf[256];
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/class/%s", root, path);
	f = fopen(full, "r");
	ck_assert_msg(f, "%s is missing", full);
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
	fclose(f);
	return buf;
}

static bool exists(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	return !access(full, F_OK);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		_exit(98);
}

/* Enters a new mount namespace; without root, in a new user namespace. */
static void leave_mount_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		_exit(97);
	if (uid) {
		snprintf(map, sizeof(map), "0 %d 1\n", uid);
		put("/proc/self/uid_map", map);
		put("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %d 1\n", gid);
		put("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(96);
}

/* libibverbs drops a device whose node has not the published number: /dev/null stands in for every node. */
static void make_nodes(void)
{
	int null = open("/dev/null", O_PATH);
	char from[32], path[64];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", null);
	if (mount("dev", "/dev", "tmpfs", 0, NULL) || mkdir("/dev/infiniband", 0755))
		_exit(95);
	for (int i = 0; i < UVD_MAX_DEVICES; i++) {
		snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", i);
		put(path, "");
		if (mount(from, path, NULL, MS_BIND, NULL))
			_exit(94);
	}
}

/* Makes the socket fail as it does without ib_core: only then does libibverbs read sysfs. */
static void forbid_netlink_rdma(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

	seccomp_rule_add(f, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, 16),
			 SCMP_A2(SCMP_CMP_EQ, 20));
	if (seccomp_load(f))
		_exit(99);
}

/* Returns the output of a shell command that sees the sysfs directory. */
static const char *run(const char *cmd)
{
	static char buf[8192];
	int p[2], status;
	size_t n = 0;
	ssize_t got;

	ck_assert_int_eq(pipe(p), 0);
	pid_t pid = fork();
	if (!pid) {
		dup2(p[1], 1);
		dup2(p[1], 2);
		close(p[0]);
		close(p[1]);
		setenv("SYSFS_PATH", root, 1);
		leave_mount_namespace();
		make_nodes();
		forbid_netlink_rdma();
		execl("/bin/sh", "sh", "-c", cmd, NULL);
		_exit(99);
	}
	close(p[1]);
	while ((got = read(p[0], buf + n, sizeof(buf) - 1 - n)) > 0)
		n += got;
	buf[n] = 0;
	close(p[0]);
	waitpid(pid, &status, 0);
	ck_assert_msg(status == 0, "%s: status %#x: %s", cmd, status, buf);
	return buf;
}

START_TEST(test_stock_ibv_devices_lists_the_device)
{
	ck_assert_int_eq(add(), 0);
	const char *out = run("ibv_devices");
	ck_assert_ptr_nonnull(strstr(out, "hfi1_0"));
	ck_assert_ptr_nonnull(strstr(out, "0275766572627300"));
}
END_TEST

START_TEST(test_stock_provider_of_the_persona_takes_the_device)
{
	/* With this variable libibverbs warns of a device that no provider supports. */
	ck_assert_int_eq(add(), 0);
	ck_assert_ptr_null(strstr(run("IBV_SHOW_WARNINGS=1 ibv_devices"), "Warning"));
	config.number = 1;
	strcpy(config.ibdev, "none_0");
	struct uvd_persona none = uvd_persona_hfi1;
	none.modalias = "pci:v0000FFFFd0000FFFFsv00000000sd00000000bc02sc08i00";
	ck_assert_int_eq(uvd_sysfs_add(root, &config, &none, makedev(1, 3), NULL), 0);
	ck_assert_ptr_nonnull(strstr(run("IBV_SHOW_WARNINGS=1 ibv_devices"), "no userspace device-specific driver"));
}
END_TEST

START_TEST(test_64_devices_are_listed)
{
	char name[32];

	for (int i = 0; i < UVD_MAX_DEVICES; i++) {
		uvd_config_default(&config, &uvd_persona_hfi1, i);
		ck_assert_int_eq(add(), 0);
	}
	const char *out = run("ibv_devices");
	for (int i = 0; i < UVD_MAX_DEVICES; i++) {
		snprintf(name, sizeof(name), "hfi1_%d ", i);
		ck_assert_msg(strstr(out, name), "%s: %s", name, out);
	}
}
END_TEST

START_TEST(test_files_have_the_kernels_formats)
{
	ck_assert_int_eq(add(), 0);
	ck_assert_str_eq(slurp("infiniband_verbs/abi_version"), "6\n");
	ck_assert_str_eq(slurp("infiniband_verbs/uverbs0/ibdev"), "hfi1_0\n");
	ck_assert_str_eq(slurp("infiniband_verbs/uverbs0/dev"), "1:3\n");
	ck_assert_str_eq(slurp("infiniband_verbs/uverbs0/abi_version"), "1\n");
	ck_assert_str_eq(slurp("infiniband_verbs/uverbs0/device/modalias"), slurp("infiniband/hfi1_0/device/modalias"));
	ck_assert_str_eq(slurp("infiniband/hfi1_0/device/infiniband_verbs/uverbs0/ibdev"), "hfi1_0\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/device/vendor"), "0x8086\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/device/device"), "0x24f0\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/device/class"), "0x020800\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/device/numa_node"), "-1\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/device/net/lo/uevent"), "INTERFACE=lo\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/node_type"), "1: CA\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/node_guid"), "0275:7665:7262:7300\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/state"), "4: ACTIVE\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/phys_state"), "5: LinkUp\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/link_layer"), "InfiniBand\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/lid"), "0x1\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/rate"), "100 Gb/sec (4X EDR)\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/pkeys/0"), "0xffff\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/gids/0"), "fe80:0000:0000:0000:0275:7665:7262:7300\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/gids/7"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/gid_attrs/types/7"), "IB/RoCE v1\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/gid_attrs/ndevs/7"), "");
	ck_assert(!exists("class/infiniband/hfi1_0/ports/1/gids/8"));
	ck_assert(!exists("class/infiniband/hfi1_0/ports/2"));
}
END_TEST

START_TEST(test_node_description_is_the_personas_or_the_administrators)
{
	ck_assert_int_eq(add(), 0);
	ck_assert_str_eq(slurp("infiniband/hfi1_0/node_desc"), "uverbsd\n");
	uvd_sysfs_remove(root, &config);
	strcpy(config.node_desc, "lab 7, hfi1_0");
	ck_assert_int_eq(add(), 0);
	ck_assert_str_eq(slurp("infiniband/hfi1_0/node_desc"), "lab 7, hfi1_0\n");
}
END_TEST

/* ---- what an adapter's port shows when it changes ---------------------------------------------------------------- */

static void set_gid(unsigned int i, uint8_t last, const char *ndev)
{
	config.ports[0].gids[i] = (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 10, 99, 0, last } };
	if (i >= config.ports[0].num_gids)
		config.ports[0].num_gids = i + 1;
	config.gid_attrs[0][i].type = IBV_GID_TYPE_ROCE_V2;
	strcpy(config.gid_attrs[0][i].ndev, ndev);
}

static void add_adapter(void)
{
	strcpy(config.hca, "rxe0");
	config.ports[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	config.ports[0].num_gids = 0;
	set_gid(0, 1, "eth0");
	ck_assert_int_eq(add(), 0);
}

static const char *port_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "infiniband/hfi1_0/ports/1/%s", name);
	return slurp(path);
}

static ino_t inode_of(const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/class/infiniband/hfi1_0/ports/1/%s", root, name);
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

START_TEST(test_a_gid_that_comes_and_goes_is_published_with_its_type_and_network_device)
{
	add_adapter();
	ck_assert_str_eq(port_file("gid_attrs/ndevs/0"), "eth0\n");
	set_gid(2, 7, "vlan7");
	config.gid_attrs[0][2].type = IBV_GID_TYPE_ROCE_V1;
	ck_assert_int_eq(uvd_sysfs_set_tables(root, &config, 1), 0);
	ck_assert_str_eq(port_file("gids/2"), "0000:0000:0000:0000:0000:ffff:0a63:0007\n");
	ck_assert_str_eq(port_file("gid_attrs/types/2"), "IB/RoCE v1\n");
	ck_assert_str_eq(port_file("gid_attrs/ndevs/2"), "vlan7\n");
	/* The slot between stays empty. */
	ck_assert_str_eq(port_file("gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
	ck_assert_str_eq(port_file("gid_attrs/types/1"), "RoCE v2\n");
	ck_assert_str_eq(port_file("gid_attrs/ndevs/1"), "");
	config.ports[0].num_gids = 1;
	ck_assert_int_eq(uvd_sysfs_set_tables(root, &config, 1), 0);
	ck_assert_str_eq(port_file("gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
	ck_assert_str_eq(port_file("gid_attrs/ndevs/2"), "");
	ck_assert_str_eq(port_file("gids/0"), "0000:0000:0000:0000:0000:ffff:0a63:0001\n");
}
END_TEST

START_TEST(test_state_addresses_and_pkeys_of_a_port_follow)
{
	struct uvd_port_config *port = &config.ports[0];

	add_adapter();
	port->down = true;
	port->lid = 0x2a;
	port->sm_lid = 3;
	port->lmc = 2;
	port->sm_sl = 1;
	port->active_width = 1;
	port->active_speed = 1;
	port->num_pkeys = 1;
	port->pkeys[0] = 0x8005;
	ck_assert_int_eq(uvd_sysfs_set_tables(root, &config, 1), 0);
	ck_assert_str_eq(port_file("state"), "1: DOWN\n");
	ck_assert_str_eq(port_file("phys_state"), "3: Disabled\n");
	ck_assert_str_eq(port_file("lid"), "0x2a\n");
	ck_assert_str_eq(port_file("sm_lid"), "0x3\n");
	ck_assert_str_eq(port_file("lid_mask_count"), "2\n");
	ck_assert_str_eq(port_file("sm_sl"), "1\n");
	ck_assert_str_eq(port_file("rate"), "2.5 Gb/sec (1X SDR)\n");
	ck_assert_str_eq(port_file("pkeys/0"), "0x8005\n");
	ck_assert(!exists("class/infiniband/hfi1_0/ports/1/pkeys/1"));
}
END_TEST

START_TEST(test_only_files_that_change_are_replaced_and_nothing_else_is_left)
{
	struct stat before, after;
	ino_t gid0, gid1;
	char path[256];

	add_adapter();
	snprintf(path, sizeof(path), "%s/class/infiniband/hfi1_0", root);
	ck_assert_int_eq(stat(path, &before), 0);
	gid0 = inode_of("gids/0");
	gid1 = inode_of("gids/1");
	set_gid(1, 2, "eth0");
	ck_assert_int_eq(uvd_sysfs_set_tables(root, &config, 1), 0);
	ck_assert_uint_eq(inode_of("gids/0"), gid0);
	ck_assert_uint_ne(inode_of("gids/1"), gid1); /* a reader of the former file keeps it whole */
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_int_eq(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	ck_assert_int_eq(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	ck_assert_str_eq(run("find $SYSFS_PATH -name '*.new'"), "");
	ck_assert_str_eq(run("find $SYSFS_PATH -type f ! -perm 444 ! -path '*counters/*'"), "");
}
END_TEST

/* Under `run` the folder is the client's own. */
START_TEST(test_what_a_client_puts_in_the_place_of_a_file_is_neither_read_nor_followed)
{
	char cmd[512];

	add_adapter();
	snprintf(
		cmd, sizeof(cmd),
		"cd %s/class/infiniband/hfi1_0/ports/1 && echo precious >%s/victim && rm gids/1 gids/2 && mkfifo gids/1 && "
		"ln -s %s/victim gids/2",
		root, base, base);
	run(cmd);
	set_gid(1, 2, "eth0");
	set_gid(2, 3, "eth0");
	ck_assert_int_eq(uvd_sysfs_set_tables(root, &config, 1), 0);
	ck_assert_str_eq(port_file("gids/1"), "0000:0000:0000:0000:0000:ffff:0a63:0002\n");
	ck_assert_str_eq(port_file("gids/2"), "0000:0000:0000:0000:0000:ffff:0a63:0003\n");
	snprintf(cmd, sizeof(cmd), "cat %s/victim", base);
	ck_assert_str_eq(run(cmd), "precious\n");
}
END_TEST

START_TEST(test_tables_of_a_device_that_is_not_published_are_enoent)
{
	ck_assert_int_eq(uvd_sysfs_set_tables(root, &config, 1), -ENOENT);
	ck_assert(!exists("class/infiniband/hfi1_0"));
}
END_TEST

START_TEST(test_every_user_may_read_under_any_umask)
{
	mode_t old = umask(077);

	uvd_sysfs_destroy(root);
	ck_assert_int_eq(uvd_sysfs_create(root, NULL), 0);
	ck_assert_int_eq(add(), 0);
	umask(old);
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "find %s -type d ! -perm 755 -o -type f ! -perm 444 ! -path '*counters/*'", root);
	ck_assert_str_eq(run(cmd), "");
}
END_TEST

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static struct uvd_sysfs_counters shown;

static int show(const struct uvd_persona *persona, enum uvd_port_counter which, uint64_t value)
{
	uint64_t values[UVD_PORT_COUNTERS];

	memcpy(values, shown.ports[0], sizeof(values));
	values[which] = value;
	return uvd_sysfs_set_counters(root, &config, persona, 1, &shown, values);
}

/* Names of all files in a folder of port 1, sorted. */
static const char *names_in(const char *ibdev, const char *folder)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "cd %s/class/infiniband/%s/ports/1/%s && LC_ALL=C ls | tr '\\n' ' '", root, ibdev,
		 folder);
	return run(cmd);
}

START_TEST(test_counters_have_the_names_of_the_kernel)
{
	ck_assert_int_eq(add(), 0);
	ck_assert_str_eq(names_in("hfi1_0", "counters"),
			 "VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery "
			 "local_link_integrity_errors multicast_rcv_packets multicast_xmit_packets "
			 "port_rcv_constraint_errors port_rcv_data port_rcv_errors port_rcv_packets "
			 "port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors "
			 "port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error "
			 "unicast_rcv_packets unicast_xmit_packets ");
	ck_assert_str_eq(names_in("hfi1_0", "hw_counters"), "RcTimeOut RnrNak lifespan ");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/hw_rev"), "10\n");
	uvd_config_default(&config, &uvd_persona_rxe, 1);
	ck_assert_int_eq(uvd_sysfs_add(root, &config, &uvd_persona_rxe, makedev(1, 3), NULL), 0);
	ck_assert_str_eq(names_in("rxe1", "hw_counters"),
			 "ack_deferred completer_retry_err duplicate_request lifespan link_downed out_of_seq_request "
			 "rcvd_pkts rcvd_rnr_err rcvd_seq_err rdma_recvs rdma_sends retry_exceeded_err "
			 "retry_rnr_exceeded_err send_err send_rnr_err sent_pkts ");
	ck_assert(!exists("class/infiniband/rxe1/hw_rev")); /* the driver has none */
}
END_TEST

START_TEST(test_counters_are_shown_in_place_and_never_fall)
{
	char text[32] = "", path[256];
	int fd;

	shown = (struct uvd_sysfs_counters){};
	ck_assert_int_eq(add(), 0);
	snprintf(path, sizeof(path), "%s/class/infiniband/hfi1_0/ports/1/counters/port_xmit_packets", root);
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(show(&uvd_persona_hfi1, UVD_PORT_UNICAST_XMIT, 7), 0);
	ck_assert_int_eq(show(&uvd_persona_hfi1, UVD_PORT_MULTICAST_XMIT, 93), 0);
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/counters/unicast_xmit_packets"), "7\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/counters/multicast_xmit_packets"), "93\n");
	ck_assert_int_eq(pread(fd, text, sizeof(text), 0), 4);
	ck_assert_str_eq(text, "100\n"); /* also in a file that was open before */
	close(fd);
	for (int fallen = 5; fallen < 7; fallen++) {
		ck_assert_int_eq(show(&uvd_persona_hfi1, UVD_PORT_MULTICAST_XMIT, fallen), 0);
		ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/counters/multicast_xmit_packets"), "93\n");
	}
	ck_assert_int_eq(show(&uvd_persona_hfi1, UVD_PORT_RCV_WORDS, UINT64_MAX), 0);
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/counters/port_rcv_data"), "18446744073709551615\n");
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/counters/port_xmit_data"), "0\n");
	ck_assert_int_eq(show(&uvd_persona_hfi1, UVD_PORT_RNR_RCVD, 3), 0);
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/hw_counters/RnrNak"), "3\n");
}
END_TEST

START_TEST(test_counters_are_not_writable_for_others)
{
	ck_assert_int_eq(add(), 0);
	ck_assert_str_eq(run("find $SYSFS_PATH -path '*/*counters/*' ! -perm 644 ! -name lifespan"), "");
}
END_TEST

/* The owner of the sysfs directory may be any user. */
START_TEST(test_counters_are_shown_without_rights_of_root)
{
	char cmd[200];
	int status;
	pid_t pid;

	if (geteuid())
		SKIP("only root gives files to another user");
	ck_assert_int_eq(add(), 0);
	snprintf(cmd, sizeof(cmd), "chown -R 65534 %s", base);
	ck_assert_int_eq(system(cmd), 0);
	pid = fork();
	if (!pid) {
		if (setuid(65534))
			_exit(2);
		shown = (struct uvd_sysfs_counters){};
		_exit(show(&uvd_persona_hfi1, UVD_PORT_RCV_WORDS, 5) ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_str_eq(slurp("infiniband/hfi1_0/ports/1/counters/port_rcv_data"), "5\n");
}
END_TEST

START_TEST(test_a_taken_number_or_name_is_eexist_and_changes_nothing)
{
	ck_assert_int_eq(add(), 0);
	strcpy(config.ibdev, "hfi1_9"); /* the number is still 0 */
	ck_assert_int_eq(add(), -EEXIST);
	ck_assert(!exists("class/infiniband/hfi1_9"));
	strcpy(config.ibdev, "hfi1_0");
	config.number = 9;
	ck_assert_int_eq(add(), -EEXIST);
	ck_assert(!exists("class/infiniband_verbs/uverbs9"));
	ck_assert_str_eq(slurp("infiniband_verbs/uverbs0/ibdev"), "hfi1_0\n");
}
END_TEST

START_TEST(test_mtime_of_a_device_stays_when_others_come_and_go)
{
	struct stat before, after;
	char path[160];

	ck_assert_int_eq(add(), 0);
	snprintf(path, sizeof(path), "%s/class/infiniband/hfi1_0", root);
	ck_assert_int_eq(stat(path, &before), 0);
	usleep(20000); /* a tick of the file system's clock */
	struct uvd_device_config other;
	uvd_config_default(&other, &uvd_persona_hfi1, 1);
	ck_assert_int_eq(uvd_sysfs_add(root, &other, &uvd_persona_hfi1, makedev(1, 3), NULL), 0);
	uvd_sysfs_remove(root, &other);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_int_eq(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
	ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}
END_TEST

START_TEST(test_removed_device_leaves_nothing)
{
	ck_assert_int_eq(add(), 0);
	uvd_sysfs_remove(root, &config);
	ck_assert_ptr_null(strstr(run("ibv_devices"), "hfi1_0"));
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "cd %s && find . -mindepth 1 -name '*uverbs?*' -o -name '*hfi1*'", root);
	ck_assert_str_eq(run(cmd), "");
	ck_assert_int_eq(add(), 0);
}
END_TEST

START_TEST(test_rdma_cm_is_published_with_its_number_and_abi_and_leaves_nothing)
{
	ck_assert_int_eq(uvd_sysfs_add_cm(root, makedev(10, 119), NULL), 0);
	ck_assert_str_eq(slurp("misc/rdma_cm/dev"), "10:119\n");
	ck_assert_str_eq(slurp("misc/rdma_cm/abi_version"), "4\n");
	ck_assert_int_eq(uvd_sysfs_add_cm(root, makedev(10, 120), NULL), -EEXIST);
	ck_assert_str_eq(slurp("misc/rdma_cm/dev"), "10:119\n");
	uvd_sysfs_remove_cm(root);
	ck_assert(!exists("class/misc/rdma_cm") && !exists(".rdma_cm"));
	uvd_sysfs_remove_cm(root);
	ck_assert_int_eq(uvd_sysfs_add_cm(root, makedev(10, 120), NULL), 0);
	ck_assert_str_eq(slurp("misc/rdma_cm/dev"), "10:120\n");
}
END_TEST

static void orphan_seen(void *arg, const char *name, dev_t rdev)
{
	*(bool *)arg |= !strcmp(name, "rdma_cm") && rdev == makedev(10, 119);
}

START_TEST(test_rdma_cm_of_a_dead_daemon_is_found)
{
	bool seen = false;
	int status;
	pid_t pid;

	uvd_sysfs_destroy(root);
	pid = fork();
	if (!pid)
		_exit(uvd_sysfs_create(root, NULL) || uvd_sysfs_add_cm(root, makedev(10, 119), NULL));
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	uvd_sysfs_each_orphan(root, orphan_seen, &seen);
	ck_assert(seen);
	ck_assert_int_eq(uvd_sysfs_create(root, NULL), 0);
}
END_TEST

/* A device is published and removed atomically: a reader in a loop never finds one with a file missing. */
START_TEST(test_a_reader_never_sees_half_a_device)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		for (;;) {
			add();
			usleep(50);
			uvd_sysfs_remove(root, &config);
		}
	}
	char uverbs[160];
	snprintf(uverbs, sizeof(uverbs), "%s/class/infiniband_verbs/uverbs0", root);
	unsigned int seen = 0;
	while (seen < 500) { /* the case has a time limit */
		int fd = open(uverbs, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			continue;
		seen++;
		bool whole = !faccessat(fd, "device/infiniband_verbs/uverbs0/dev", R_OK, 0);
		/* A directory with files missing is being deleted: it was moved away from this path before. */
		struct stat a, b;
		ck_assert(whole || fstat(fd, &a) || stat(uverbs, &b) || a.st_ino != b.st_ino);
		close(fd);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}
END_TEST

START_TEST(test_tree_of_a_dead_daemon_is_replaced)
{
	uvd_sysfs_destroy(root);
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(uvd_sysfs_create(root, NULL) || add());
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert(exists("class/infiniband/hfi1_0"));
	ck_assert_int_eq(uvd_sysfs_create(root, NULL), 0);
	ck_assert(!exists("class/infiniband/hfi1_0"));
	ck_assert_int_eq(add(), 0);
}
END_TEST

START_TEST(test_tree_of_a_living_daemon_is_ebusy)
{
	int ready[2], status;
	char c;

	uvd_sysfs_destroy(root);
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (!pid) {
		c = uvd_sysfs_create(root, NULL) || add();
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(c, 0);
	ck_assert_int_eq(uvd_sysfs_create(root, NULL), -EBUSY);
	uvd_sysfs_destroy(root); /* does nothing: the sysfs directory is another process's */
	ck_assert(exists("class/infiniband/hfi1_0"));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}
END_TEST

START_TEST(test_a_folder_with_other_files_is_refused_untouched)
{
	struct stat st;
	char path[160];

	snprintf(path, sizeof(path), "%s/precious", base);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/file");
	close(creat(path, 0644));
	path[strlen(path) - 5] = 0;
	ck_assert_int_eq(uvd_sysfs_create(path, NULL), -ENOTEMPTY);
	uvd_sysfs_destroy(path);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0700);
	strcat(path, "/file");
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

/* The removal of a stale sysfs directory must not follow a symlink out of it. */
START_TEST(test_replacing_follows_no_link)
{
	char victim[160], cmd[512];

	snprintf(victim, sizeof(victim), "%s/victim", base);
	ck_assert_int_eq(mkdir(victim, 0755), 0);
	snprintf(cmd, sizeof(cmd), "touch %s/file; ln -s %s %s/class/infiniband/hfi1_7", victim, victim, root);
	run(cmd);
	ck_assert_int_eq(uvd_sysfs_create(root, NULL), 0);
	strcat(victim, "/file");
	ck_assert_int_eq(access(victim, F_OK), 0);
	ck_assert(!exists("class/infiniband/hfi1_7"));
}
END_TEST

START_TEST(test_destroy_removes_the_tree)
{
	ck_assert_int_eq(add(), 0);
	uvd_sysfs_destroy(root);
	ck_assert_int_ne(access(root, F_OK), 0);
}
END_TEST

/* Runs in a mount namespace of its own; without root, in a user namespace. */
START_TEST(test_overlay_shows_the_device_below_sys_class)
{
	ck_assert_int_eq(add(), 0);
	leave_mount_namespace();
	ck_assert_int_eq(uvd_sysfs_overlay(root, NULL), 0);
	ck_assert_int_eq(access("/sys/class/infiniband/hfi1_0/ports/1/lid", R_OK), 0);
	ck_assert_int_eq(access("/sys/class/net", F_OK), 0);
	ck_assert_ptr_nonnull(strstr(run("env -u SYSFS_PATH ibv_devices"), "hfi1_0"));
	/* A second overlay replaces the first. */
	ck_assert_int_eq(uvd_sysfs_overlay(root, NULL), 0);
	uvd_sysfs_overlay_undo(root);
	ck_assert_int_ne(access("/sys/class/infiniband/hfi1_0", F_OK), 0);
	ck_assert_int_eq(access("/sys/class/net", F_OK), 0);
}
END_TEST

START_TEST(test_overlay_refuses_a_path_that_it_cannot_say)
{
	ck_assert_int_eq(uvd_sysfs_overlay("/tmp/a:b", NULL), -EINVAL);
	ck_assert_int_eq(uvd_sysfs_overlay("/tmp/a,upperdir=b", NULL), -EINVAL);
	ck_assert_int_eq(uvd_sysfs_overlay("relative", NULL), -EINVAL);
}
END_TEST

START_TEST(test_devices_differ_in_guid_and_lid)
{
	struct uvd_device_config a, b;

	uvd_config_default(&a, &uvd_persona_hfi1, 3);
	uvd_config_default(&b, &uvd_persona_hfi1, 4);
	ck_assert_str_eq(a.ibdev, "hfi1_3");
	for (int i = 0; i < UVD_MAX_PORTS; i++)
		for (int j = 0; j < UVD_MAX_PORTS; j++) {
			ck_assert_int_ne(a.ports[i].lid, b.ports[j].lid);
			ck_assert_mem_ne(&a.ports[i].gids[0], &b.ports[j].gids[0], 16);
		}
	ck_assert_int_eq(a.ports[0].lid, 4);
	ck_assert_ptr_eq(uvd_persona_find("hfi1"), &uvd_persona_hfi1);
	ck_assert_ptr_null(uvd_persona_find("hfi2"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sysfs");
	TCase *t = tcase_create("tree");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_stock_ibv_devices_lists_the_device);
	tcase_add_test(t, test_stock_provider_of_the_persona_takes_the_device);
	tcase_add_test(t, test_64_devices_are_listed);
	tcase_add_test(t, test_files_have_the_kernels_formats);
	tcase_add_test(t, test_node_description_is_the_personas_or_the_administrators);
	tcase_add_test(t, test_every_user_may_read_under_any_umask);
	tcase_add_test(t, test_a_gid_that_comes_and_goes_is_published_with_its_type_and_network_device);
	tcase_add_test(t, test_state_addresses_and_pkeys_of_a_port_follow);
	tcase_add_test(t, test_only_files_that_change_are_replaced_and_nothing_else_is_left);
	tcase_add_test(t, test_what_a_client_puts_in_the_place_of_a_file_is_neither_read_nor_followed);
	tcase_add_test(t, test_tables_of_a_device_that_is_not_published_are_enoent);
	tcase_add_test(t, test_counters_have_the_names_of_the_kernel);
	tcase_add_test(t, test_counters_are_shown_in_place_and_never_fall);
	tcase_add_test(t, test_counters_are_not_writable_for_others);
	tcase_add_test(t, test_counters_are_shown_without_rights_of_root);
	tcase_add_test(t, test_a_taken_number_or_name_is_eexist_and_changes_nothing);
	tcase_add_test(t, test_mtime_of_a_device_stays_when_others_come_and_go);
	tcase_add_test(t, test_removed_device_leaves_nothing);
	tcase_add_test(t, test_rdma_cm_is_published_with_its_number_and_abi_and_leaves_nothing);
	tcase_add_test(t, test_rdma_cm_of_a_dead_daemon_is_found);
	tcase_add_test(t, test_a_reader_never_sees_half_a_device);
	tcase_add_test(t, test_tree_of_a_dead_daemon_is_replaced);
	tcase_add_test(t, test_tree_of_a_living_daemon_is_ebusy);
	tcase_add_test(t, test_a_folder_with_other_files_is_refused_untouched);
	tcase_add_test(t, test_replacing_follows_no_link);
	tcase_add_test(t, test_destroy_removes_the_tree);
	suite_add_tcase(s, t);
	t = tcase_create("overlay"); /* tests/vm runs this one on Debian's kernel */
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_overlay_shows_the_device_below_sys_class);
	tcase_add_test(t, test_overlay_refuses_a_path_that_it_cannot_say);
	suite_add_tcase(s, t);
	t = tcase_create("persona");
	tcase_add_test(t, test_devices_differ_in_guid_and_lid);
	suite_add_tcase(s, t);
	return run_cases(s);
}
