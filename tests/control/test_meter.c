/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The command `meter` (src/control/meter_command.c): who sees whose calls, how many may watch, and that a connection is
 * answered at its own pace. Needs root, to act as several users.
 */
#include <check.h>
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "account/account.h"
#include "control/control.h"
#include "harness.h"
#include "../suite.h"

enum { ROOT_METERS = UVD_MAX_COUNTERS, OF_OTHERS = 5, OF_USER = 2, ANSWER = 65536, MAPPED = 100000 };

static char folder[] = "/tmp/uverbsd-control-XXXXXX", path[64];
static struct ev_loop *loop;
static struct uvd_control *control;
static struct uvd_control_meters *meters;
static struct harness device;
static struct uvd_accounts *accounts;
static int async_fd;

static json_t *answer(void *arg, const char *command, bool may_change)
{
	return uvd_control_is_meter(command) ? uvd_control_meter(meters, may_change) : NULL;
}

/* The user ids from MAPPED on are those of one user's namespace. */
static int owners(void *arg, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	uids[0] = 1000;
	return uid >= MAPPED;
}

static void set_up(void)
{
	struct uvd_account_limits limits;
	uint32_t comp_vectors;
	int err;

	harness_open_with(&device, "null", &uvd_mem_process);
	ck_assert_int_eq(uv_get_context(device.fd, UV_WRITE, &async_fd, &comp_vectors), 0);
	strcpy(folder, "/tmp/uverbsd-control-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/control", folder);
	loop = ev_loop_new(EVBACKEND_POLL);
	control = uvd_control_new(loop, path, answer, NULL, NULL, &err);
	ck_assert_ptr_nonnull(control);
	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	uvd_control_charge(control, accounts, owners, NULL);
	meters = uvd_control_meters_new(loop, control, &device.engine);
	ck_assert_ptr_nonnull(meters);
}

static void is_left(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	ck_abort_msg("user %u still has %lu of resource %d", uid, (unsigned long)used, res);
}

static void tear_down(void)
{
	uvd_control_meters_free(meters);
	ck_assert_uint_eq(atomic_load(&device.engine.observers.watched), 0);
	uvd_control_free(control);
	uvd_accounts_each(accounts, is_left, NULL);
	uvd_accounts_free(accounts);
	ev_loop_destroy(loop);
	rmdir(folder);
	close(async_fd);
	harness_close(&device);
}

/* Turns the loop until the connection has a line. Returns it without its end; "": the connection was closed. */
static const char *hear(int fd)
{
	static char line[ANSWER];
	size_t len = 0;

	for (;;) {
		const ssize_t n = recv(fd, line + len, sizeof(line) - 1 - len, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return "";
		len += n > 0 ? n : 0;
		if (len && line[len - 1] == '\n') {
			line[len - 1] = '\0';
			return line;
		}
		ev_run(loop, EVRUN_ONCE);
	}
}

static int meter_as(uid_t uid, const char *expected)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(sa.sun_path, path);
	ck_assert_int_eq(seteuid(uid), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(send(fd, "meter\n", 6, MSG_NOSIGNAL), 6);
	ck_assert_ptr_nonnull(strstr(hear(fd), expected));
	return fd;
}

static bool counts_calls(int fd)
{
	ck_assert_int_eq(send(fd, "\n", 1, MSG_NOSIGNAL), 1);
	return strstr(hear(fd), "ALLOC_PD");
}

static void call_once(void)
{
	uint32_t pd;

	ck_assert_int_eq(uv_alloc_pd(device.fd, UV_WRITE, &pd), 0);
}

/* Turns the loop until so many observers are left. */
static void wait_for_observers(unsigned int number)
{
	while (atomic_load(&device.engine.observers.watched) != number)
		ev_run(loop, EVRUN_ONCE);
}

START_TEST(test_a_user_sees_calls_on_the_user_s_own_files_and_root_sees_all)
{
	const uid_t opener = uvd_account_uid(device.account);
	int mine = meter_as(opener, "\"meter\":1"), other = meter_as(opener + 1, "\"meter\":1"),
	    root = meter_as(0, "\"meter\":1");

	ck_assert_uint_ne(opener, 0);
	call_once();
	ck_assert(counts_calls(mine));
	ck_assert(!counts_calls(other));
	ck_assert(counts_calls(root));
	close(mine);
	close(other);
	close(root);
}
END_TEST

START_TEST(test_counting_ends_with_the_connection)
{
	int fd = meter_as(1000, "\"meter\":1");

	ck_assert_uint_eq(atomic_load(&device.engine.observers.watched), 1);
	close(fd);
	wait_for_observers(0);
}
END_TEST

/* Each but the first waits for the pause. */
START_TEST(test_each_line_has_an_answer)
{
	int fd = meter_as(0, "\"meter\":1");

	for (int i = 0; i < 3; i++) {
		call_once();
		ck_assert(counts_calls(fd));
	}
	ck_assert_int_eq(send(fd, "no end of line", 14, MSG_NOSIGNAL), 14);
	ck_assert(counts_calls(fd));
	close(fd);
	wait_for_observers(0);
}
END_TEST

START_TEST(test_users_share_what_root_leaves_and_one_has_two)
{
	int fds[ROOT_METERS];

	for (int i = 0; i < OF_USER; i++)
		fds[i] = meter_as(i ? MAPPED : 1000, "\"meter\":1");
	close(meter_as(1000, "too many watch already"));
	close(meter_as(MAPPED + 1, "too many watch already"));
	fds[2] = meter_as(1001, "\"meter\":1");
	fds[3] = meter_as(1001, "\"meter\":1");
	fds[4] = meter_as(1002, "\"meter\":1");
	close(meter_as(1003, "too many watch already"));
	for (int i = OF_OTHERS; i < ROOT_METERS; i++)
		fds[i] = meter_as(0, "\"meter\":1");
	close(meter_as(0, "too many watch already"));
	close(fds[0]);
	wait_for_observers(ROOT_METERS - 1);
	fds[0] = meter_as(1000, "\"meter\":1");
	for (int i = 0; i < ROOT_METERS; i++)
		close(fds[i]);
	wait_for_observers(0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("meter");

	if (geteuid())
		return 77;
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_a_user_sees_calls_on_the_user_s_own_files_and_root_sees_all);
	tcase_add_test(t, test_counting_ends_with_the_connection);
	tcase_add_test(t, test_each_line_has_an_answer);
	tcase_add_test(t, test_users_share_what_root_leaves_and_one_has_two);
	return run_suite("control: meter", t);
}
