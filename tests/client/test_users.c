/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The users whose accounts a caller is charged to: its real user id, and the owners of its user namespace and of those
 * above it. Needs root, but for the errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account/account.h"
#include "broker/broker.h"
#include "child.h"

enum { OWNER = 1000, FIRST = 100000, NUM = 1000 };

/* Not setresuid(): glibc's changes all threads, also those of a sanitizer. */
static void become(uid_t real, uid_t effective)
{
	if (syscall(SYS_setresuid, real, effective, effective))
		tell(errno);
}

static void write_map(pid_t pid, const char *which, const char *text)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void assert_users(pid_t tid, unsigned int num, const uid_t *expected)
{
	struct uvd_caller c = caller_of(tid);
	uid_t uids[UVD_MAX_PAYERS];
	int n = uvd_caller_users(&c, uids, UVD_MAX_PAYERS);

	ck_assert_int_eq(n, num);
	for (unsigned int i = 0; i < num; i++)
		ck_assert_uint_eq(uids[i], expected[i]);
}

/* Changes its real user id to each number that it is sent. */
static void changes_ids(void *arg)
{
	tell(0);
	for (uint64_t uid; (uid = listen_for_order());) {
		become(uid, 0);
		tell(0);
	}
}

START_TEST(test_the_real_user_pays_in_our_own_namespace)
{
	struct child child = child_start(changes_ids, NULL);

	child_says(&child);
	assert_users(child.pid, 1, (uid_t[]){ 0 });
	/* A setuid-root program has these ids. */
	child_order(&child, OWNER);
	child_says(&child);
	assert_users(child.pid, 1, (uid_t[]){ OWNER });
	child_end(&child);
}
END_TEST

/* Enters a user namespace owned by OWNER, and, when ordered to, one below it that is owned by a mapped user. */
static void goes_below(void *arg)
{
	become(OWNER, OWNER);
	tell(unshare(CLONE_NEWUSER) ? errno : 0);
	for (uint64_t uid; (uid = listen_for_order()) != ~0ull;) {
		become(uid - 1, 0); /* stays root in the namespace */
		tell(0);
	}
	become(7, 7);
	tell(unshare(CLONE_NEWUSER) ? errno : 0);
	listen_for_order();
}

START_TEST(test_the_owner_of_each_namespace_above_pays_too)
{
	struct child child = child_start(goes_below, NULL);
	uid_t uids[UVD_MAX_PAYERS];
	struct uvd_caller c;
	char map[64];

	if (child_says(&child)) {
		child_end(&child);
		SKIP("user namespaces are forbidden here, as in some containers");
	}
	snprintf(map, sizeof(map), "0 %d %d\n", FIRST, NUM);
	write_map(child.pid, "uid_map", map);
	write_map(child.pid, "gid_map", "0 0 1\n");
	for (uid_t uid = 0; uid < NUM; uid += 333) {
		child_order(&child, uid + 1);
		child_says(&child);
		assert_users(child.pid, 2, (uid_t[]){ FIRST + uid, OWNER });
		ck_assert_int_eq(uvd_peer_owners(child.pid, FIRST + uid, uids, UVD_MAX_PAYERS), 1);
		ck_assert_uint_eq(uids[0], OWNER);
	}
	child_order(&child, ~0ull);
	ck_assert_uint_eq(child_says(&child), 0);
	assert_users(child.pid, 3, (uid_t[]){ FIRST + 7, FIRST + 7, OWNER });
	c = caller_of(child.pid);
	ck_assert_int_eq(uvd_caller_users(&c, uids, 2), -ENOSPC);
	child_end(&child);
}
END_TEST

START_TEST(test_who_cannot_be_looked_up_is_refused)
{
	struct uvd_caller gone = caller_of(0x3fffff), outside = caller_of(0);
	uid_t uids[UVD_MAX_PAYERS];
	struct uvd_account_limits limits;
	struct uvd_accounts *accounts;
	int err = 0;

	ck_assert_int_lt(uvd_caller_users(&gone, uids, UVD_MAX_PAYERS), 0);
	ck_assert_int_eq(uvd_caller_users(&outside, uids, UVD_MAX_PAYERS), -EACCES);
	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_null(uvd_caller_account(&gone, accounts, &err));
	ck_assert_int_lt(err, 0);
	uvd_accounts_free(accounts);
}
END_TEST

START_TEST(test_number_and_id_of_a_peer_must_be_one_process)
{
	struct child child = child_start(changes_ids, NULL);
	uid_t uids[UVD_MAX_PAYERS];

	child_says(&child);
	child_order(&child, OWNER);
	child_says(&child);
	ck_assert_int_eq(uvd_peer_owners(child.pid, OWNER, uids, UVD_MAX_PAYERS), 0);
	ck_assert_int_eq(uvd_peer_owners(child.pid, 0, uids, UVD_MAX_PAYERS), 0); /* its effective id */
	ck_assert_int_eq(uvd_peer_owners(child.pid, OWNER + 1, uids, UVD_MAX_PAYERS), -ESRCH);
	child_end(&child);
	ck_assert_int_eq(uvd_peer_owners(child.pid, OWNER, uids, UVD_MAX_PAYERS), -ESRCH);
	/* The peer is outside of our PID namespace. */
	ck_assert_int_eq(uvd_peer_owners(0, OWNER, uids, UVD_MAX_PAYERS), -ESRCH);
}
END_TEST

static bool never(struct uvd_caller *c)
{
	return false;
}

START_TEST(test_a_caller_that_was_let_go_is_nobody)
{
	struct child child = child_start(changes_ids, NULL);
	struct uvd_caller c = caller_of(child.pid);
	uid_t uids[UVD_MAX_PAYERS];

	child_says(&child);
	c.waits = never;
	ck_assert_int_eq(uvd_caller_users(&c, uids, UVD_MAX_PAYERS), -EINTR);
	child_end(&child);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("users");
	TCase *tc = tcase_create("users");

	tcase_add_test(tc, test_who_cannot_be_looked_up_is_refused);
	tcase_add_test(tc, test_a_caller_that_was_let_go_is_nobody);
	if (!geteuid()) {
		tcase_add_test(tc, test_number_and_id_of_a_peer_must_be_one_process);
		tcase_add_test(tc, test_the_real_user_pays_in_our_own_namespace);
		tcase_add_test(tc, test_the_owner_of_each_namespace_above_pays_too);
	}
	suite_add_tcase(suite, tc);
	return run_client_tests(argc, argv, suite);
}
