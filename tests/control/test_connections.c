/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connections of several users to the control socket (src/control/server.c). Needs root, to act as several users. */
#include <check.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "account/account.h"
#include "control/control.h"
#include "../suite.h"

enum { EACH = 8, ALL = 64, USER = 1000, MAPPED = 100000, UNKNOWN = 200000, COMMAND_SECONDS = 5 };

static char folder[] = "/tmp/uverbsd-control-XXXXXX", path[64];
static struct ev_loop *loop;
static struct uvd_control *control;
static struct uvd_accounts *accounts;
static unsigned long later;
static void (*watched)(void *arg); /* "wait" watches its client; NULL: it does not */

static json_t *answer(void *arg, const char *command, bool may_change)
{
	if (!strcmp(command, "accounts"))
		return uvd_control_accounts(control, accounts);
	if (strcmp(command, "wait"))
		return json_pack("{s:s, s:b}", "command", command, "may_change", may_change);
	if (later)
		uvd_control_join(control, later);
	else
		later = uvd_control_later(control);
	if (watched)
		uvd_control_watch(control, later, watched, NULL);
	return NULL;
}

/* The user ids from MAPPED on are those of USER's namespace. Nobody knows of what namespace those from UNKNOWN on are. */
static int owners(void *arg, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	if (uid < MAPPED)
		return 0;
	uids[0] = USER;
	return uid < UNKNOWN ? 1 : -ESRCH;
}

static void set_up(void)
{
	struct uvd_account_limits limits;
	int err;

	strcpy(folder, "/tmp/uverbsd-control-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/control", folder);
	later = 0;
	loop = ev_loop_new(EVBACKEND_POLL);
	control = uvd_control_new(loop, path, answer, NULL, NULL, &err);
	ck_assert_ptr_nonnull(control);
	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	uvd_control_charge(control, accounts, owners, NULL);
}

static void is_left(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	ck_abort_msg("user %u still has %lu of resource %d", uid, (unsigned long)used, res);
}

static void tear_down(void)
{
	uvd_control_free(control);
	uvd_accounts_each(accounts, is_left, NULL);
	uvd_accounts_free(accounts);
	ev_loop_destroy(loop);
	rmdir(folder);
}

static void turn_loop(void)
{
	for (int i = 0; i < 4; i++)
		ev_run(loop, EVRUN_NOWAIT);
}

static int connect_as(uid_t uid)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(sa.sun_path, path);
	ck_assert_int_eq(seteuid(uid), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(seteuid(0), 0);
	turn_loop();
	return fd;
}

static bool lasts(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

static void say(int fd, const char *command)
{
	ck_assert_int_eq(send(fd, command, strlen(command), MSG_NOSIGNAL), strlen(command));
	turn_loop();
}

static bool hears(int fd, const char *text)
{
	char line[256] = "";

	return recv(fd, line, sizeof(line) - 1, 0) > 0 && strstr(line, text);
}

START_TEST(test_a_further_connection_takes_the_place_of_the_same_users_oldest)
{
	int other = connect_as(USER + 1), fds[20];

	for (int i = 0; i < 20; i++)
		fds[i] = connect_as(USER);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(lasts(fds[i]), i >= 20 - EACH);
	ck_assert(lasts(other));
	say(other, "now\n");
	ck_assert(hears(other, "\"may_change\":false"));
	say(fds[19], "now\n");
	ck_assert(hears(fds[19], "now"));
}
END_TEST

START_TEST(test_who_waits_for_an_answer_is_not_pushed_out)
{
	int fds[EACH], late = connect_as(USER), root = connect_as(0), more;

	say(root, "wait\n");
	say(late, "wait\n");
	for (int i = 0; i < 30; i++)
		connect_as(USER);
	for (int i = 0; i < 100; i++)
		connect_as(0);
	for (int i = 0; i < EACH; i++) {
		fds[i] = connect_as(USER + 1);
		say(fds[i], "wait\n");
	}
	more = connect_as(USER + 1);
	ck_assert(!lasts(more));
	ck_assert(lasts(root) && lasts(late));
	uvd_control_finish_text(control, later, "{\"at\":\"last\"}");
	ck_assert(hears(root, "last") && hears(late, "last"));
	for (int i = 0; i < EACH; i++)
		ck_assert(hears(fds[i], "last"));
}
END_TEST

START_TEST(test_root_gets_a_connection_when_all_are_taken)
{
	int first = -1, root, fd;

	for (int i = 0; i < ALL; i++) {
		fd = connect_as(USER + i / EACH);
		first = i ? first : fd;
	}
	ck_assert(!lasts(connect_as(USER + ALL)));
	ck_assert(lasts(first));
	root = connect_as(0);
	say(root, "now\n");
	ck_assert(hears(root, "\"may_change\":true"));
}
END_TEST

/* Root can ask more while all its questions wait. */
START_TEST(test_root_asks_while_many_of_its_questions_wait)
{
	int waiting[2 * EACH], fd;

	for (int i = 0; i < 2 * EACH; i++) {
		waiting[i] = connect_as(0);
		say(waiting[i], "wait\n");
	}
	fd = connect_as(0);
	say(fd, "now\n");
	ck_assert(hears(fd, "now"));
	for (int i = 0; i < 2 * EACH; i++)
		ck_assert(lasts(waiting[i]));
}
END_TEST

static int gone;

static void on_gone(void *arg)
{
	gone++;
}

/* A change that waits ends with its asker, and only with that one. */
START_TEST(test_a_watched_client_that_goes_away_is_told_once)
{
	int first = connect_as(0), second = connect_as(0);

	gone = 0;
	watched = on_gone;
	say(first, "wait\n");
	ck_assert_int_eq(gone, 0);
	say(first, "more bytes\n");
	ck_assert_int_eq(gone, 0);
	ck_assert(lasts(first));
	close(first);
	turn_loop();
	ck_assert_int_eq(gone, 1);
	later = 0;
	say(second, "wait\n");
	uvd_control_finish(control, later, json_pack("{s:s}", "at", "last"));
	ck_assert(hears(second, "last"));
	close(second);
	turn_loop();
	ck_assert_int_eq(gone, 1);
	watched = NULL;
}
END_TEST

/* One more of any of the ids is refused, and another user's is not. */
static void check_that_they_share(uid_t first, uid_t more)
{
	int fds[EACH], fd;

	for (int i = 0; i < EACH; i++) {
		fds[i] = connect_as(first + i);
		say(fds[i], "wait\n");
	}
	fd = connect_as(more);
	ck_assert(hears(fd, "as many connections to the control socket as it may have"));
	fd = connect_as(USER + 1);
	say(fd, "now\n");
	ck_assert(hears(fd, "now"));
	uvd_control_finish_text(control, later, "{\"at\":\"last\"}");
	for (int i = 0; i < EACH; i++)
		ck_assert(hears(fds[i], "last"));
}

START_TEST(test_mapped_ids_share_the_connections_of_their_namespaces_owner)
{
	check_that_they_share(MAPPED, USER);
}
END_TEST

START_TEST(test_clients_whose_owners_nobody_knows_share_one_users_connections)
{
	check_that_they_share(UNKNOWN, UNKNOWN + EACH);
}
END_TEST

START_TEST(test_idle_connection_of_a_mapped_id_makes_room_for_another_of_the_same_owner)
{
	int fds[EACH + 1];

	for (int i = 0; i <= EACH; i++)
		fds[i] = connect_as(MAPPED + i);
	ck_assert(hears(fds[0], "has replaced this one"));
	for (int i = 1; i <= EACH; i++)
		ck_assert(lasts(fds[i]));
}
END_TEST

START_TEST(test_client_is_told_that_all_connections_are_in_use)
{
	for (int i = 0; i < ALL; i++)
		connect_as(USER + i / EACH);
	ck_assert(hears(connect_as(USER + ALL), "all connections to the control socket are in use"));
}
END_TEST

START_TEST(test_connections_without_a_command_give_way_when_all_are_in_use)
{
	int first = connect_as(USER), second = connect_as(USER), fd;
	const double begun = ev_time();

	for (int i = 2; i < ALL; i++)
		connect_as(USER + i / EACH);
	ck_assert(!lasts(connect_as(USER + ALL)));
	ck_assert(lasts(first));
	while (ev_time() < begun + 1.01)
		ev_run(loop, EVRUN_NOWAIT);
	fd = connect_as(USER + ALL);
	ck_assert(lasts(fd));
	ck_assert(hears(first, "no complete command after 1 s"));
	/* The same for the user's next connection: its first one has just begun, and stays. */
	ck_assert(lasts(connect_as(USER + ALL)));
	ck_assert(hears(second, "no complete command after 1 s"));
	ck_assert(lasts(fd));
	say(fd, "now\n");
	ck_assert(hears(fd, "now"));
}
END_TEST

START_TEST(test_connection_without_a_whole_command_is_closed_after_its_time_and_others_stay)
{
	int silent = connect_as(USER), half = connect_as(USER), waits = connect_as(USER);
	const double begun = ev_time();
	char c;

	say(half, "no");
	say(waits, "wait\n");
	while (lasts(silent) || lasts(half))
		ev_run(loop, EVRUN_ONCE);
	ck_assert(ev_time() - begun > COMMAND_SECONDS - 0.5);
	ck_assert(hears(silent, "no complete command"));
	ck_assert(hears(half, "no complete command"));
	turn_loop();
	ck_assert_int_eq(recv(silent, &c, 1, 0), 0);
	ck_assert(lasts(waits));
	uvd_control_finish_text(control, later, "{\"at\":\"last\"}");
	ck_assert(hears(waits, "last"));
}
END_TEST

START_TEST(test_accounts_name_the_connections_of_others_and_not_the_askers)
{
	int fd = connect_as(USER), other = connect_as(MAPPED);

	say(fd, "accounts\n");
	ck_assert(hears(fd, "\"uid\":1000,\"resource\":\"connections\",\"used\":1"));
	say(other, "accounts\n");
	ck_assert(hears(other, "{\"accounts\":[],\"quotas\":[]}"));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("connections");

	if (geteuid())
		return 77;
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_a_further_connection_takes_the_place_of_the_same_users_oldest);
	tcase_add_test(t, test_who_waits_for_an_answer_is_not_pushed_out);
	tcase_add_test(t, test_root_gets_a_connection_when_all_are_taken);
	tcase_add_test(t, test_root_asks_while_many_of_its_questions_wait);
	tcase_add_test(t, test_mapped_ids_share_the_connections_of_their_namespaces_owner);
	tcase_add_test(t, test_clients_whose_owners_nobody_knows_share_one_users_connections);
	tcase_add_test(t, test_idle_connection_of_a_mapped_id_makes_room_for_another_of_the_same_owner);
	tcase_add_test(t, test_client_is_told_that_all_connections_are_in_use);
	tcase_add_test(t, test_connections_without_a_command_give_way_when_all_are_in_use);
	tcase_add_test(t, test_connection_without_a_whole_command_is_closed_after_its_time_and_others_stay);
	tcase_add_test(t, test_accounts_name_the_connections_of_others_and_not_the_askers);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_a_watched_client_that_goes_away_is_told_once);
	return run_suite("control: connections", t);
}
