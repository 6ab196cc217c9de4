/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC domains: clients share a domain if they open it with a descriptor of the same file. */
#include "xrc.h"

/* ---- domains ----------------------------------------------------------------------------------------------------- */

START_TEST(test_xrcd_01_minus_one_is_always_a_new_private_domain)
{
	uint32_t a, b;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(-1, 0, &a), 0);
	ck_assert_int_eq(open_xrcd(-1, O_EXCL, &b), 0);
	ck_assert_uint_eq(a, 2);
	ck_assert_uint_eq(b, 3);
	ck_assert_uint_eq(num_alloc, 2);
	ck_assert_int_eq(close_xrcd(a), 0);
	ck_assert_int_eq(close_xrcd(a), -ENOENT);
	ck_assert_int_eq(close_xrcd(pd), -EINVAL);
	ck_assert_uint_eq(num_dealloc, 1);
	harness_close_file(&h);
	ck_assert_uint_eq(num_dealloc, 2);
}
END_TEST

START_TEST(test_xrcd_01_a_file_is_one_domain_of_all_open_files)
{
	int fd = memfd_create("domain", 0), same = dup(fd), other = memfd_create("other", 0);
	struct uvd_file *second;
	uint32_t a, b;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(fd, 0, &a), -EAGAIN);
	ck_assert_int_eq(open_xrcd(fd, O_EXCL, &a), -EAGAIN);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT | O_EXCL, &a), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT | O_EXCL, &b), -EINVAL);
	ck_assert_int_eq(open_xrcd(fd, O_EXCL, &b), -EINVAL);
	ck_assert_int_eq(open_xrcd(other, 0, &b), -EAGAIN);
	second = second_file();
	ck_assert_int_eq(open_xrcd(same, 0, &b), 0);
	ck_assert_uint_eq(num_alloc, 1);
	/* The inode names the domain, not the descriptor: closing both changes nothing. */
	close(fd);
	close(same);
	use(h.file);
	ck_assert_int_eq(close_xrcd(a), 0);
	ck_assert_uint_eq(num_dealloc, 0);
	uvd_file_close(second);
	ck_assert_uint_eq(num_dealloc, 1);
	ck_assert_ptr_null(h.dev->xrcds);
	ck_assert_uint_eq(h.dev->num_xrcds, 0);
	ck_assert_int_eq(open_xrcd(other, O_CREAT, &a), 0);
	close(other);
}
END_TEST

START_TEST(test_xrcd_files_of_any_kind_name_a_domain)
{
	uint32_t a[4];
	int pair[2];

	begin();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(open_xrcd(pair[0], O_CREAT, &a[0]), 0);
	ck_assert_int_eq(open_xrcd(pair[1], 0, &a[1]), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_int_eq(open_xrcd(pair[0], O_CREAT, &a[2]), 0);
	ck_assert_int_eq(open_xrcd(pair[1], 0, &a[3]), 0); /* both ends are one inode */
	close(pair[0]);
	close(pair[1]);
}
END_TEST

START_TEST(test_xrcd_files_of_two_mounts_with_one_inode_number_are_two_domains)
{
	int proc = open("/proc", O_RDONLY | O_CLOEXEC), sys = open("/sys", O_RDONLY | O_CLOEXEC);
	struct stat a, b;
	uint32_t xrcd;

	begin();
	ck_assert(!fstat(proc, &a) && !fstat(sys, &b) && a.st_ino == b.st_ino && a.st_dev != b.st_dev);
	ck_assert_int_eq(open_xrcd(proc, O_CREAT, &xrcd), 0);
	ck_assert_int_eq(open_xrcd(sys, 0, &xrcd), -EAGAIN);
	close(proc);
	close(sys);
}
END_TEST

/* The engine must hold the inode: otherwise a new file could get its number, and with it the domain. */
START_TEST(test_xrcd_keeps_the_inode_of_a_deleted_file)
{
	char path[] = "/tmp/uvd-xrcd-XXXXXX", again[] = "/tmp/uvd-xrcd-XXXXXX";
	int fd = mkstemp(path), fds[64];
	struct stat st, now;
	uint32_t a;

	begin();
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	unlink(path);
	close(fd);
	for (int i = 0; i < 64; i++) {
		memcpy(again, "/tmp/uvd-xrcd-XXXXXX", sizeof(again));
		fds[i] = mkstemp(again);
		unlink(again);
		ck_assert_int_eq(fstat(fds[i], &now), 0);
		ck_assert(now.st_ino != st.st_ino || now.st_dev != st.st_dev);
	}
	ck_assert_int_eq(open_xrcd(fds[63], 0, &a), -EAGAIN);
	for (int i = 0; i < 64; i++)
		close(fds[i]);
}
END_TEST

static int refuse_xrcd(struct uvd_xrcd *xrcd, struct uvd_udata *udata)
{
	return -EDOM;
}

static int refuse_dealloc(struct uvd_xrcd *xrcd)
{
	return -EDOM;
}

START_TEST(test_xrcd_that_fails_leaves_nothing)
{
	struct ib_uverbs_open_xrcd cmd = { .oflags = O_CREAT };
	struct ib_uverbs_open_xrcd_resp resp;
	int fd = memfd_create("domain", 0);
	uint32_t a;

	begin();
	cmd.fd = fd;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd), BAD, sizeof(resp)), -EFAULT);
	ck_assert_int_eq(open_xrcd(fd, 0, &a), -EAGAIN);
	h.ops.alloc_xrcd = refuse_xrcd;
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), -EDOM);
	ck_assert_int_eq(open_xrcd(-1, 0, &a), -EDOM);
	h.ops.alloc_xrcd = uvd_backend_null.alloc_xrcd;
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_uint_eq(a, 2);
	h.ops.dealloc_xrcd = refuse_dealloc;
	ck_assert_int_eq(close_xrcd(a), -EDOM);
	h.ops.dealloc_xrcd = uvd_backend_null.dealloc_xrcd;
	ck_assert_int_eq(open_xrcd(fd, O_EXCL, &a), -EINVAL);
	ck_assert_int_eq(open_xrcd(fd, 0, &a), 0);
	ck_assert_int_eq(close_xrcd(2), 0);
	ck_assert_int_eq(close_xrcd(3), 0);
	ck_assert_int_eq(open_xrcd(fd, 0, &a), -EAGAIN);
	close(fd);
}
END_TEST

START_TEST(test_xrcd_shared_domains_have_a_limit)
{
	uint32_t a;
	int fd;

	begin();
	for (int i = 0; i < 1024; i++) {
		fd = memfd_create("domain", 0);
		ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
		close(fd);
	}
	fd = memfd_create("domain", 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), -ENOMEM);
	ck_assert_int_eq(open_xrcd(-1, O_CREAT, &a), 0);
	ck_assert_int_eq(close_xrcd(2), 0);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_uint_eq(a, 2);
	close(fd);
}
END_TEST

START_TEST(test_xrcd_without_the_backend_is_eopnotsupp)
{
	static const struct uvd_feature *const features[] = { &uvd_feature_common, NULL };
	struct uv_tree tree = {};
	uint32_t xrcd;
	int err;

	begin();
	h.ops.alloc_xrcd = NULL;
	h.ops.dealloc_xrcd = NULL;
	uvd_tree_free(h.dev->trees->plain);
	h.dev->trees->plain = uvd_tree_new(features, &h.ops, h.dev->persona->driver_id, NULL, &err);
	ck_assert_ptr_nonnull(h.dev->trees->plain);
	atomic_store(&h.file->tree, h.dev->trees->plain);
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), -EOPNOTSUPP);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_XRCD_HANDLE, 2);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, &tree), -EPROTONOSUPPORT);
}
END_TEST

TEST_LIST(test_xrcd_01_minus_one_is_always_a_new_private_domain, test_xrcd_01_a_file_is_one_domain_of_all_open_files,
	  test_xrcd_files_of_any_kind_name_a_domain,
	  test_xrcd_files_of_two_mounts_with_one_inode_number_are_two_domains,
	  test_xrcd_keeps_the_inode_of_a_deleted_file, test_xrcd_that_fails_leaves_nothing,
	  test_xrcd_shared_domains_have_a_limit, test_xrcd_without_the_backend_is_eopnotsupp)
