/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/util.h"
#include "../suite.h"

static char base[] = "/tmp/uverbsd-test-XXXXXX", culprit[PATH_MAX];

static void set_up(void)
{
	strcpy(base + strlen(base) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	ck_assert(!chdir(base) && !mkdir("ours", 0755) && !mkdir("ours/deep", 0755) && !mkdir("open", 0777) &&
		  !chmod("open", 0777) && !mkdir("sticky", 0777) && !chmod("sticky", 01777));
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", base);
	ck_assert(!system(command));
}

static bool is_ours(const char *path)
{
	return uvd_dir_is_ours(path, culprit);
}

START_TEST(test_folder_of_ours_is_ours_whether_or_not_it_is_there)
{
	ck_assert(is_ours("ours") && is_ours("ours/deep") && is_ours("ours/new/one") && is_ours("/run"));
}
END_TEST

START_TEST(test_entry_of_a_sticky_folder_is_ours_only_if_it_is_there)
{
	char sticky[PATH_MAX];

	ck_assert(is_ours("sticky") && !is_ours("sticky/new") && !is_ours("sticky/new/one"));
	snprintf(sticky, sizeof(sticky), "%s/sticky", base);
	ck_assert_str_eq(culprit, sticky);
	ck_assert(!mkdir("sticky/mine", 0755) && is_ours("sticky/mine") && is_ours("sticky/mine/new"));
}
END_TEST

START_TEST(test_folder_that_others_may_write_to_is_not)
{
	char open_[PATH_MAX];

	ck_assert(!is_ours("open") && !is_ours("open/new"));
	snprintf(open_, sizeof(open_), "%s/open", base);
	ck_assert_str_eq(culprit, open_);
	ck_assert(!chmod("open", 0775) && (geteuid() || !chown("open", -1, 12)) && !is_ours("open"));
	ck_assert(!chmod("open", 0755) && is_ours("open"));
}
END_TEST

START_TEST(test_folder_of_another_user_is_not)
{
	if (geteuid())
		SKIP("only root makes files of other users");
	ck_assert(!chown("ours/deep", 12345, -1) && !is_ours("ours/deep") && !is_ours("ours/deep/new"));
	ck_assert(!mkdir("sticky/his", 0755) && !chown("sticky/his", 12345, -1) && !is_ours("sticky/his/new"));
}
END_TEST

START_TEST(test_link_is_ours_if_all_that_it_leads_through_is)
{
	ck_assert(!symlink("ours", "link") && is_ours("link/deep"));
	ck_assert(!symlink("../open", "ours/out") && !is_ours("ours/out"));
	ck_assert(!symlink("../open/deep", "ours/away") && !mkdir("open/deep", 0755) && !is_ours("ours/away"));
	ck_assert(!symlink("../ours", "open/in") && !is_ours("open/in"));
	if (!geteuid())
		ck_assert(!lchown("link", 12345, -1) && !is_ours("link/deep"));
}
END_TEST

int main(void)
{
	TCase *folders = tcase_create("whose folders");

	tcase_add_checked_fixture(folders, set_up, tear_down);
	tcase_add_test(folders, test_folder_of_ours_is_ours_whether_or_not_it_is_there);
	tcase_add_test(folders, test_entry_of_a_sticky_folder_is_ours_only_if_it_is_there);
	tcase_add_test(folders, test_folder_that_others_may_write_to_is_not);
	tcase_add_test(folders, test_folder_of_another_user_is_not);
	tcase_add_test(folders, test_link_is_ours_if_all_that_it_leads_through_is);
	return run_suite("util dir", folders);
}
