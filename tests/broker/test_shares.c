/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Each user's share of the broker's children for loans, whichever engine process asks for them, and of senders. */
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "broker/child.h"
#include "broker/owners.h"
#include "broker/sender.h"
#include "broker/way.h"
#include "lives.h"

enum { USER = 1000, OTHER = 1001, MAPPED = 100000, TABLE = 32, SHARE = 2 };

/* ---- the count ------------------------------------------------------------------------------------------------------ */

static struct uvd_owners table[TABLE];

static const struct uvd_owners *table_entry(const void *arg, unsigned int i)
{
	return table[i].num ? &table[i] : NULL;
}

static bool may_take(struct uvd_owners owners)
{
	return uvd_owners_may_take(&owners, SHARE, TABLE, table_entry, NULL);
}

static struct uvd_owners alone(uid_t uid)
{
	return (struct uvd_owners){ 1, { uid } };
}

START_TEST(test_user_has_a_share_and_leaves_the_others_theirs)
{
	memset(table, 0, sizeof(table));
	table[3] = alone(USER);
	ck_assert(may_take(alone(USER)));
	table[31] = alone(USER);
	ck_assert(!may_take(alone(USER)));
	ck_assert(may_take(alone(OTHER)));
	ck_assert(may_take(alone(0)));
	table[3].num = 0;
	ck_assert(may_take(alone(USER)));
}
END_TEST

START_TEST(test_ids_of_one_user_namespace_have_its_owners_share)
{
	const struct uvd_owners third = { 2, { MAPPED + 2, USER } };

	memset(table, 0, sizeof(table));
	table[0] = (struct uvd_owners){ 2, { MAPPED, USER } };
	table[1] = (struct uvd_owners){ 3, { MAPPED + 1, MAPPED, USER } };
	ck_assert(!may_take(third));
	ck_assert(!may_take(alone(USER)));
	ck_assert(may_take((struct uvd_owners){ 2, { MAPPED + 2, OTHER } }));
}
END_TEST

/* Nobody but root counts against root's part: a user namespace that root owns is its users'. */
START_TEST(test_root_leaves_the_last_quarter_to_others)
{
	memset(table, 0, sizeof(table));
	for (int i = 0; i < TABLE * 3 / 4; i++) {
		ck_assert(may_take(alone(0)));
		table[i] = alone(0);
	}
	ck_assert(!may_take(alone(0)));
	ck_assert(may_take(alone(USER)));
	ck_assert(may_take((struct uvd_owners){ 2, { MAPPED, 0 } }));
}
END_TEST

/* ---- the places of one process -------------------------------------------------------------------------------------- */

static struct uvd_ways ways;

START_TEST(test_place_is_a_users_until_it_is_put)
{
	const struct uvd_owners user = alone(USER), other = alone(OTHER), root = alone(0);
	int places[UVD_WAY_CHILDREN], n = 0;

	uvd_ways_init(&ways);
	while ((places[n] = uvd_ways_take(&ways, &user)) >= 0)
		n++;
	ck_assert_int_eq(n, UVD_WAY_SHARE);
	ck_assert_int_eq(places[n], -EAGAIN);
	ck_assert_int_ge(uvd_ways_take(&ways, &other), 0);
	ck_assert(uvd_ways_put(&ways, places[0]));
	ck_assert_int_eq(uvd_ways_take(&ways, &user), places[0]);
	for (n = 0; uvd_ways_take(&ways, &root) >= 0; n++)
		;
	ck_assert_int_eq(n, UVD_WAY_CHILDREN * 3 / 4);
	uvd_ways_fini(&ways);
}
END_TEST

/* A loan that does not wait for its sender is as one whose sender has taken too long. */
START_TEST(test_sender_that_outlives_its_loan_keeps_its_place_until_it_is_reaped)
{
	const struct uvd_owners user = alone(USER);
	int place;

	uvd_ways_init(&ways);
	place = uvd_ways_take(&ways, &user);
	*uvd_sender_errand(&ways, place) = (struct uvd_errand){ .pidfd = -1, .fd = -1, .dir = -1 };
	uvd_ways_end(&ways);
	ck_assert_int_eq(uvd_sender_run(&ways, place), -EPERM);
	/* Until then its user has one place less. */
	for (int i = 1; i < UVD_WAY_SHARE; i++)
		ck_assert_int_ge(uvd_ways_take(&ways, &user), 0);
	ck_assert_int_eq(uvd_ways_take(&ways, &user), -EAGAIN);
	while (!uvd_ways_put(&ways, place))
		sleep_ms(1);
	ck_assert(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
	ck_assert_int_eq(uvd_ways_take(&ways, &user), place);
	uvd_ways_fini(&ways);
}
END_TEST

START_TEST(test_place_whose_sender_lives_is_not_free)
{
	const struct uvd_owners user = alone(USER);
	int place;

	uvd_ways_init(&ways);
	place = uvd_ways_take(&ways, &user);
	ways.places[place].pid = fork();
	if (!ways.places[place].pid) {
		for (;;)
			pause();
	}
	ck_assert(!uvd_ways_put(&ways, place));
	for (int i = 1; i < UVD_WAY_SHARE; i++)
		ck_assert_int_ge(uvd_ways_take(&ways, &user), 0);
	ck_assert_int_eq(uvd_ways_take(&ways, &user), -EAGAIN);
	kill(ways.places[place].pid, SIGKILL);
	while (!uvd_ways_put(&ways, place))
		sleep_ms(1);
	ck_assert_int_eq(uvd_ways_take(&ways, &user), place);
	uvd_ways_fini(&ways);
}
END_TEST

/* ---- the broker's children ------------------------------------------------------------------------------------------- */

static pid_t start_user(uid_t uid)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		_exit(91);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setresuid(uid, uid, uid) || write(ready[1], "x", 1) != 1)
			_exit(92);
		for (;;)
			pause();
	}
	if (read(ready[0], &c, 1) != 1)
		_exit(93);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Sends the signal to the broker's children but this engine process. */
static void signal_children(int sig)
{
	char path[64];
	pid_t child;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", shared->broker, shared->broker);
	f = fopen(path, "r");
	while (f && fscanf(f, "%d", &child) == 1)
		if (child != getpid())
			kill(child, sig);
	fclose(f);
}

/* Children of closed loans may still be exiting. */
static bool gets_loan_soon(struct uvd_link *link, pid_t tid)
{
	for (int i = 0; i < 3000; i++) {
		if (uvd_link_loan(link, tid, NULL) >= 0)
			return true;
		sleep_ms(10);
	}
	return false;
}

static int takes_all_of_a_user(void *arg, int sock)
{
	const pid_t user = start_user(USER), other = start_user(OTHER);
	struct uvd_link *link = be_ready(sock);
	int loan, last = -1, n = 0;

	for (; (loan = uvd_link_loan(link, user, NULL)) >= 0; n++)
		last = loan;
	if (n != UVD_WAY_SHARE || loan != -EAGAIN)
		return 4;
	if (uvd_link_loan(link, other, NULL) < 0 || uvd_link_loan(link, getpid(), NULL) < 0)
		return 5;
	close(last);
	if (!gets_loan_soon(link, user))
		return 6;
	if (uvd_link_loan(link, INT32_MAX, NULL) != -ESRCH)
		return 7;
	return 0;
}

START_TEST(test_engine_cannot_make_one_user_take_all_loans)
{
	ck_assert_int_eq(run_lives(takes_all_of_a_user), 0);
}
END_TEST

/* The children of the first engine process do not end: they are stopped. */
static int leaves_loans_to_the_next(void *arg, int sock)
{
	const pid_t user = start_user(USER), other = start_user(OTHER);
	struct uvd_link *link = be_ready(sock);
	int loan;

	if (shared->starts == 1) {
		while ((loan = uvd_link_loan(link, user, NULL)) >= 0)
			;
		signal_children(SIGSTOP);
		raise(SIGKILL);
	}
	loan = uvd_link_loan(link, user, NULL);
	if (loan != -EAGAIN)
		return 4;
	if (uvd_link_loan(link, other, NULL) < 0)
		return 5;
	signal_children(SIGCONT);
	return gets_loan_soon(link, user) ? 0 : 6;
}

START_TEST(test_what_loans_leave_counts_for_the_next_engine_process_until_it_is_reaped)
{
	ck_assert_int_eq(run_lives(leaves_loans_to_the_next), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

/* ---- what an engine process leaves ---------------------------------------------------------------------------------- */

static int connect_question(int sock, int *mine)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION,
				      .op = UVD_WIRE_CONNECT,
				      .index = UVD_WIRE_QUESTIONS };
	struct uvd_wire_fds fds = uvd_wire_no_fds;
	struct uvd_wire_answer a;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fds.fd[0] = pair[1];
	*mine = pair[0];
	if (uvd_wire_ask(sock, &r, &fds) || uvd_wire_answered(sock, r.op, &a, &fds))
		return -EPIPE;
	close(pair[1]);
	return a.result;
}

static int leaves_questions_to_the_next(void *arg, int sock)
{
	int mine, n = 0, ret;

	be_ready(sock);
	while (!(ret = connect_question(sock, &mine)))
		n++;
	if (n != UVD_QUESTIONS_MAX || ret != -EAGAIN)
		return 4;
	if (shared->starts == 2) {
		signal_children(SIGKILL);
		return 0;
	}
	signal_children(SIGSTOP);
	raise(SIGKILL);
	return 5;
}

START_TEST(test_questions_that_clients_hold_up_are_no_part_of_the_next_engine_process)
{
	ck_assert_int_eq(run_lives(leaves_questions_to_the_next), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

/* The parent learns of the death of a process that is traced only when its tracer has: until then it seems to be held up. */
static int is_held_up(void *arg, int sock)
{
	const pid_t engine = getpid();
	int traced[2];
	char c;

	be_ready(sock);
	if (shared->starts > 4)
		return 0;
	if (pipe(traced))
		return 4;
	if (!fork()) {
		if (ptrace(PTRACE_SEIZE, engine, 0, 0) || write(traced[1], "x", 1) != 1)
			_exit(1);
		sleep_ms(30000);
		_exit(0);
	}
	if (read(traced[0], &c, 1) != 1)
		return 5;
	raise(SIGKILL);
	return 6;
}

START_TEST(test_broker_leaves_no_more_than_three_engine_processes_that_cannot_exit)
{
	ck_assert_int_eq(run_lives(is_held_up), 1);
	ck_assert_int_eq(shared->starts, 4);
}
END_TEST

/* SIGTERM: the broker ends although children do not. */
static int leaves_loans_behind(void *arg, int sock)
{
	const pid_t user = start_user(USER);
	struct uvd_link *link = be_ready(sock);

	while (uvd_link_loan(link, user, NULL) >= 0)
		;
	signal_children(SIGSTOP);
	signal(SIGTERM, on_term);
	kill(shared->broker, SIGTERM);
	return wait_until_told() ? 0 : 4;
}

START_TEST(test_sigterm_does_not_wait_for_what_loans_leave)
{
	ck_assert_int_eq(run_lives(leaves_loans_behind), 0);
	signal_children(SIGKILL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_user_has_a_share_and_leaves_the_others_theirs,
		test_ids_of_one_user_namespace_have_its_owners_share,
		test_root_leaves_the_last_quarter_to_others,
		test_place_is_a_users_until_it_is_put,
		test_sender_that_outlives_its_loan_keeps_its_place_until_it_is_reaped,
		test_place_whose_sender_lives_is_not_free,
		test_engine_cannot_make_one_user_take_all_loans,
		test_what_loans_leave_counts_for_the_next_engine_process_until_it_is_reaped,
		test_questions_that_clients_hold_up_are_no_part_of_the_next_engine_process,
		test_broker_leaves_no_more_than_three_engine_processes_that_cannot_exit,
		test_sigterm_does_not_wait_for_what_loans_leave,
	};

	return run_tests("shares of loans", tests, sizeof(tests) / sizeof(tests[0]));
}
