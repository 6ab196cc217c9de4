/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * User Capabilities. Linux has them since 6.15, which the test machine does not run: docs/abi-rules.md and the kernel's
 * Documentation/infiniband/ucaps.rst are the standard. An older kernel does not know the attribute.
 *
 * uverbsd creates their nodes only with the option --ucaps mlx5_perm_ctrl_local,mlx5_perm_ctrl_other_vhca; under run
 * the option is --ucap mlx5_perm_ctrl_local.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi.h"

#define UVERBS_ATTR_GET_CONTEXT_FD_ARR 2
#define NODE "/dev/infiniband/mlx5_perm_ctrl_local"
#define OTHER_NODE "/dev/infiniband/mlx5_perm_ctrl_other_vhca"

static int get_context(int fd, const int *fds, uint16_t len)
{
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	uv_attr_in(&tree, UVERBS_ATTR_GET_CONTEXT_FD_ARR, fds, len);
	return uv_ioctl(fd, &tree);
}

static int not_open(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

START_TEST(test_ucap_01_length_that_is_no_array_of_fds_is_einval)
{
	int fds[4] = { -1, -1, -1, -1 }, fd = uv_open();

	target();
	for (uint16_t len = 1; len < sizeof(fds); len++)
		if (len % 4)
			expect_choice("ucap", get_context(fd, fds, len), EINVAL);
	expect_ok(uv_get_context(fd, UV_METHOD, NULL, NULL));
}
END_TEST

START_TEST(test_ucap_01_fd_that_is_not_open_is_ebadf)
{
	int fd = uv_open();

	target();
	expect_choice("ucap", get_context(fd, (int[]){ not_open() }, 4), EBADF);
	expect_choice("ucap", get_context(fd, (int[]){ -1 }, 4), EBADF);
	expect_choice("ucap", get_context(fd, (int[]){ INT32_MIN }, 4), EBADF);
	expect_ok(uv_get_context(fd, UV_METHOD, NULL, NULL));
}
END_TEST

START_TEST(test_ucap_01_fd_of_something_else_is_einval)
{
	int fd = uv_open(), pipes[2];

	target();
	ck_assert(!pipe(pipes));
	expect_choice("ucap", get_context(fd, (int[]){ pipes[0] }, 4), EINVAL);
	expect_choice("ucap", get_context(fd, (int[]){ open("/dev/null", O_RDWR) }, 4), EINVAL);
	expect_choice("ucap", get_context(fd, (int[]){ memfd_create("file", 0) }, 4), EINVAL);
	expect_choice("ucap", get_context(fd, &fd, 4), EINVAL);
	expect_ok(uv_get_context(fd, UV_METHOD, NULL, NULL));
}
END_TEST

START_TEST(test_ucap_01_list_that_cannot_be_read_is_efault)
{
	struct uv_tree tree;
	int fd = uv_open();

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	uv_attr(&tree, UVERBS_ATTR_GET_CONTEXT_FD_ARR, 12, 8);
	expect_choice("ucap", uv_ioctl(fd, &tree), EFAULT);
	expect_ok(uv_get_context(fd, UV_METHOD, NULL, NULL));
}
END_TEST

START_TEST(test_ucap_01_second_context_is_einval_whatever_its_fds)
{
	int fd = uv_open();

	expect_ok(uv_get_context(fd, UV_METHOD, NULL, NULL));
	expect_choice("ucap", get_context(fd, (int[]){ not_open() }, 4), EINVAL);
}
END_TEST

/* ---- with a node ------------------------------------------------------------------------------------------------- */

START_TEST(test_ucap_01_duplicates_are_fine)
{
	int fd = uv_open(), ucap = open(NODE, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(ucap, 0);
	expect_ok(get_context(fd, (int[]){ ucap, ucap, dup(ucap), open(NODE, O_RDONLY | O_CLOEXEC), ucap }, 20));
}
END_TEST

START_TEST(test_ucap_01_first_wrong_fd_decides_and_no_context_is_made)
{
	int fd = uv_open(), ucap = open(NODE, O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	expect(get_context(fd, (int[]){ ucap, null, not_open() }, 12), EINVAL);
	expect(get_context(fd, (int[]){ ucap, not_open(), null }, 12), EBADF);
	expect_ok(get_context(fd, &ucap, 4));
}
END_TEST

/* Opening a file with O_PATH needs no permission on it. */
START_TEST(test_ucap_01_fd_opened_by_o_path_is_ebadf)
{
	int fd = uv_open(), ucap = open(NODE, O_RDONLY | O_CLOEXEC), path;
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", ucap);
	path = open(name, O_PATH | O_CLOEXEC);
	ck_assert_int_ge(path, 0);
	expect(get_context(fd, &path, 4), EBADF);
	expect_ok(get_context(fd, &ucap, 4));
}
END_TEST

START_TEST(test_ucap_02_nodes_are_roots_alone)
{
	struct stat st, other;

	target();
	ck_assert(!stat(NODE, &st) && !stat(OTHER_NODE, &other));
	ck_assert(S_ISCHR(st.st_mode) && S_ISCHR(other.st_mode));
	ck_assert(st.st_rdev != other.st_rdev);
	ck_assert_uint_eq(other.st_mode & 07777, 0600);
	ck_assert_uint_eq(other.st_uid, 0);
}
END_TEST

static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };

START_TEST(test_ucap_02_open_mode_is_not_looked_at)
{
	int fd = uv_open(), ucap = open(NODE, modes[_i] | O_CLOEXEC);

	ck_assert_int_ge(ucap, 0);
	expect_ok(get_context(fd, &ucap, 4));
}
END_TEST

static int result(long ret)
{
	return ret < 0 ? -errno : (int)ret;
}

START_TEST(test_ucap_02_of_the_node_there_is_open_alone)
{
	int ucap = open(NODE, O_RDWR | O_CLOEXEC);
	struct uv_tree tree;
	char byte = 0;

	target();
	expect(result(read(ucap, &byte, 1)), EINVAL);
	expect(result(write(ucap, &byte, 1)), EINVAL);
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	expect(uv_ioctl(ucap, &tree), ENOTTY);
}
END_TEST

TCase *case_ucap(void)
{
	TCase *tc = tcase_create("ucap");

	tcase_add_test(tc, test_ucap_01_length_that_is_no_array_of_fds_is_einval);
	tcase_add_test(tc, test_ucap_01_fd_that_is_not_open_is_ebadf);
	tcase_add_test(tc, test_ucap_01_fd_of_something_else_is_einval);
	tcase_add_test(tc, test_ucap_01_list_that_cannot_be_read_is_efault);
	tcase_add_test(tc, test_ucap_01_second_context_is_einval_whatever_its_fds);
	if (choice("transport"))
		return tc;
	target(); /* the daemon creates the nodes before it answers the first call */
	if (access(NODE, F_OK)) {
		printf("%s is not there (--ucaps): without the tests that want it\n", NODE);
		return tc;
	}
	tcase_add_test(tc, test_ucap_01_duplicates_are_fine);
	tcase_add_test(tc, test_ucap_01_first_wrong_fd_decides_and_no_context_is_made);
	tcase_add_test(tc, test_ucap_01_fd_opened_by_o_path_is_ebadf);
	tcase_add_test(tc, test_ucap_02_nodes_are_roots_alone);
	tcase_add_loop_test(tc, test_ucap_02_open_mode_is_not_looked_at, 0, UV_ARRAY_SIZE(modes));
	tcase_add_test(tc, test_ucap_02_of_the_node_there_is_open_alone);
	return tc;
}
