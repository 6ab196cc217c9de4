/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names and nodes of devices, in a mount namespace where /dev and /sys/class are folders of the test: there the test makes what CUSE
 * and the kernel would make. With the real CUSE nodes are tested in tests/cuse.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <uverbsd/log.h>
#include "broker/node.h"
#include "util/util.h"
#include "../suite.h"

enum { GROUP = 65533 };

static const char path[] = "/dev/infiniband/uverbs0", cuse[] = "/sys/devices/virtual/cuse/infiniband!uverbs0";
static struct uvd_log *log_;
static struct uvd_node_orphans orphans;
static struct uvd_node node;
static struct stat st;

static void file_write(const char *folder, const char *name, const char *text)
{
	char file[256];
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	f = fopen(file, "we");
	ck_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

static void nodes_begin(void)
{
	ck_assert(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ck_assert(!mount("none", "/sys/class", "tmpfs", 0, NULL) && !mount("none", "/dev", "tmpfs", 0, NULL));
	ck_assert(!mount("none", "/sys/devices/virtual", "tmpfs", 0, NULL));
	ck_assert(!mkdir("/sys/devices/virtual/cuse", 0755) && !mkdir("/sys/class/infiniband_verbs", 0755));
	umask(0);
	log_ = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);
	orphans = (struct uvd_node_orphans){ .num = 0 };
	uvd_node_name(&node, 0);
}

static void nodes_end(void)
{
	uvd_log_free(log_);
}

/* As CUSE does when a session begins. */
static void session_begin(const char *dev)
{
	ck_assert(!mkdir(cuse, 0755));
	file_write(cuse, "dev", dev);
}

static void node_make_foreign(dev_t rdev)
{
	ck_assert((!mkdir("/dev/infiniband", 0755) || errno == EEXIST) && !mknod(path, S_IFCHR | 0666, rdev));
}

START_TEST(names_are_those_of_cuse_dev_and_the_kernel)
{
	uvd_node_name(&node, 1023);
	ck_assert_int_eq(node.number, 1023);
	ck_assert_str_eq(node.name, "infiniband/uverbs1023");
	ck_assert_str_eq(node.path, "/dev/infiniband/uverbs1023");
	ck_assert_str_eq(node.sysfs, "/sys/devices/virtual/cuse/infiniband!uverbs1023");
	ck_assert_str_eq(node.kernel, "/sys/class/infiniband_verbs/uverbs1023");
	uvd_node_name_ucap(&node, "mlx5_perm");
	ck_assert_int_eq(node.number, -1);
	ck_assert_str_eq(node.path, "/dev/infiniband/mlx5_perm");
	ck_assert_str_eq(node.kernel, "/sys/class/infiniband_ucaps/mlx5_perm");
	uvd_node_name_cm(&node, true);
	ck_assert(node.aside);
	ck_assert_str_eq(node.name, "infiniband/uverbsd_cm");
	uvd_node_name_cm(&node, false);
	ck_assert(!node.aside);
	ck_assert_int_eq(node.number, -1);
	ck_assert_str_eq(node.path, "/dev/infiniband/rdma_cm");
	ck_assert_str_eq(node.sysfs, "/sys/devices/virtual/cuse/infiniband!rdma_cm");
	ck_assert_str_eq(node.kernel, "/sys/class/misc/rdma_cm");
}
END_TEST

START_TEST(name_is_taken_by_cuse_by_the_kernel_or_by_a_node)
{
	ck_assert_ptr_null(uvd_node_taken(&node, &orphans));
	session_begin("240:7\n");
	ck_assert_str_eq(uvd_node_taken(&node, &orphans), "another CUSE device has that name");
	uvd_node_name(&node, 1);
	ck_assert_ptr_null(uvd_node_taken(&node, &orphans));
	ck_assert(!mkdir("/sys/class/infiniband_verbs/uverbs1", 0755));
	ck_assert_str_eq(uvd_node_taken(&node, &orphans), "the kernel has an RDMA device of that name");
	ck_assert(!mkdir("/dev/infiniband", 0755));
	file_write("/dev/infiniband", "uverbs2", "");
	uvd_node_name(&node, 2);
	ck_assert_str_eq(uvd_node_taken(&node, &orphans), "there is a node of that name already");
}
END_TEST

/* In a container /dev is no devtmpfs. Until uvd_node_permit() only root may open the node. */
START_TEST(node_that_the_kernel_does_not_make_is_made)
{
	session_begin("240:7\n");
	ck_assert_int_eq(uvd_node_verify(&node, log_), 0);
	ck_assert(!lstat(path, &st) && st.st_mode == (S_IFCHR | 0600) && st.st_rdev == makedev(240, 7));
	ck_assert(node.rdev == makedev(240, 7) && node.made);
	ck_assert_int_eq(uvd_node_permit(&node, 0660, GROUP, log_), 0);
	ck_assert(!lstat(path, &st) && st.st_mode == (S_IFCHR | 0660) && st.st_gid == GROUP && !st.st_uid);
	ck_assert_int_eq(uvd_node_permit(&node, 0666, -1, log_), 0);
	ck_assert(!lstat(path, &st) && st.st_mode == (S_IFCHR | 0666) && st.st_gid == GROUP);
	uvd_node_remove(&node);
	ck_assert(lstat(path, &st) && errno == ENOENT && !node.made);
	ck_assert_int_eq(uvd_node_permit(&node, 0666, -1, log_), -ENOENT);
}
END_TEST

/* A link that leads nowhere has the folder's name: it is neither a folder, nor can it be made one. */
START_TEST(node_that_cannot_be_made_is_an_error)
{
	session_begin("240:7\n");
	ck_assert(!symlink("none", "/dev/infiniband"));
	ck_assert_int_eq(uvd_node_verify(&node, log_), -ENOENT);
	ck_assert(!node.made);
}
END_TEST

START_TEST(node_of_the_kernels_counts_if_it_is_the_sessions)
{
	session_begin("240:7\n");
	node_make_foreign(makedev(240, 7));
	ck_assert_int_eq(uvd_node_verify(&node, log_), 0);
	uvd_node_remove(&node); /* the kernel removes what it has made */
	ck_assert(!lstat(path, &st) && !unlink(path));
	node_make_foreign(makedev(240, 8));
	ck_assert_int_eq(uvd_node_verify(&node, log_), -EEXIST);
	uvd_node_hide(&node);
	ck_assert(!lstat(path, &st) && !unlink(path));
	file_write("/dev/infiniband", "uverbs0", "");
	ck_assert_int_eq(uvd_node_verify(&node, log_), -EEXIST);
	ck_assert(!node.made);
}
END_TEST

START_TEST(session_without_a_device_number_is_an_error)
{
	ck_assert_int_eq(uvd_node_verify(&node, log_), -ENOENT);
	session_begin("240");
	ck_assert_int_eq(uvd_node_verify(&node, log_), -EIO);
	ck_assert(lstat(path, &st));
}
END_TEST

START_TEST(hidden_node_is_unlinked)
{
	session_begin("240:7\n");
	node_make_foreign(makedev(240, 7));
	ck_assert_int_eq(uvd_node_verify(&node, log_), 0);
	uvd_node_hide(&node);
	ck_assert(lstat(path, &st) && errno == ENOENT);
}
END_TEST

START_TEST(session_of_a_dead_process_is_aborted_and_leaves_its_path_to_another)
{
	char text[8] = "", own[96];
	int fd;

	session_begin("240:7\n");
	file_write(cuse, "abort", "");
	node_make_foreign(makedev(240, 7));
	ck_assert(uvd_node_exists("uverbs0", makedev(240, 7)) && !uvd_node_exists("uverbs0", makedev(240, 8)));
	ck_assert(!uvd_node_exists("uverbs1", makedev(240, 7)));
	uvd_node_abort(&orphans, "uverbs0", makedev(240, 8), log_);
	ck_assert(!orphans.num && !lstat(path, &st));
	uvd_node_abort(&orphans, "uverbs0", makedev(240, 7), log_);
	ck_assert(orphans.num == 1 && orphans.rdev[0] == makedev(240, 7) && lstat(path, &st));
	fd = open("/sys/devices/virtual/cuse/infiniband!uverbs0/abort", O_RDONLY | O_CLOEXEC);
	ck_assert(fd >= 0 && read(fd, text, sizeof(text)) == 1 && *text == '1');
	close(fd);
	/* CUSE still has the name of the dead process's device. */
	ck_assert_ptr_null(uvd_node_taken(&node, &orphans));
	snprintf(own, sizeof(own), "infiniband/uverbs0.%d.1", getpid());
	ck_assert_str_eq(node.name, own);
	snprintf(own, sizeof(own), "/sys/devices/virtual/cuse/infiniband!uverbs0.%d.1", getpid());
	ck_assert_str_eq(node.sysfs, own);
	ck_assert_str_eq(node.path, path);
	/* devtmpfs makes a node of that name, too. */
	ck_assert(!mkdir(node.sysfs, 0755));
	file_write(node.sysfs, "dev", "240:9\n");
	file_write("/dev/infiniband", strrchr(node.name, '/') + 1, "");
	ck_assert_int_eq(uvd_node_verify(&node, log_), 0);
	ck_assert(!lstat(path, &st) && st.st_rdev == makedev(240, 9));
	snprintf(own, sizeof(own), "/dev/%s", node.name);
	ck_assert(lstat(own, &st) && errno == ENOENT);
}
END_TEST

/* ---- the choice of a number -------------------------------------------------------------------------------------- */

struct maker {
	int calls, last; /* the number of the last call */
	int ret, until; /* what the calls for numbers below `until` return; the others succeed */
};

static int maker_make(void *arg, struct uvd_node *n)
{
	struct maker *m = arg;

	m->calls++;
	m->last = n->number;
	return n->number < m->until ? m->ret : 0;
}

START_TEST(node_gets_the_lowest_free_number_or_the_one_that_is_asked_for)
{
	struct maker m = { .calls = 0 };

	session_begin("240:7\n");
	ck_assert_int_eq(uvd_node_make(&node, -1, &orphans, maker_make, &m, log_), 0);
	ck_assert(m.calls == 1 && m.last == 1 && node.number == 1);
	ck_assert_int_eq(uvd_node_make(&node, 0, &orphans, maker_make, &m, log_), -EEXIST);
	ck_assert_int_eq(m.calls, 1);
	ck_assert_int_eq(uvd_node_make(&node, 7, &orphans, maker_make, &m, log_), 0);
	ck_assert(m.calls == 2 && m.last == 7);
	/* Another process is quicker. */
	m = (struct maker){ .ret = -EEXIST, .until = 4 };
	ck_assert_int_eq(uvd_node_make(&node, -1, &orphans, maker_make, &m, log_), 0);
	ck_assert(m.calls == 4 && m.last == 4);
	ck_assert_int_eq(uvd_node_make(&node, 3, &orphans, maker_make, &m, log_), -EEXIST);
	ck_assert_int_eq(m.calls, 5);
	m = (struct maker){ .ret = -EPERM, .until = 4 };
	ck_assert_int_eq(uvd_node_make(&node, -1, &orphans, maker_make, &m, log_), -EPERM);
	ck_assert_int_eq(m.calls, 1);
	m = (struct maker){ .ret = -EEXIST, .until = UVD_NODE_NUMBERS };
	ck_assert_int_eq(uvd_node_make(&node, -1, &orphans, maker_make, &m, log_), -EEXIST);
	ck_assert(m.calls == UVD_NODE_NUMBERS - 1 && m.last == UVD_NODE_NUMBERS - 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("nodes");

	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_add_checked_fixture(t, nodes_begin, nodes_end);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, names_are_those_of_cuse_dev_and_the_kernel);
	tcase_add_test(t, name_is_taken_by_cuse_by_the_kernel_or_by_a_node);
	tcase_add_test(t, node_that_the_kernel_does_not_make_is_made);
	tcase_add_test(t, node_that_cannot_be_made_is_an_error);
	tcase_add_test(t, node_of_the_kernels_counts_if_it_is_the_sessions);
	tcase_add_test(t, session_without_a_device_number_is_an_error);
	tcase_add_test(t, hidden_node_is_unlinked);
	tcase_add_test(t, session_of_a_dead_process_is_aborted_and_leaves_its_path_to_another);
	tcase_add_test(t, node_gets_the_lowest_free_number_or_the_one_that_is_asked_for);
	return run_suite("nodes", t);
}
