/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The broker's successive engine processes: when the broker starts another one, when it does not, and what a new one
 * inherits from the last.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "broker/child.h"
#include "lives.h"

/* ---- when another one is started --------------------------------------------------------------------------------- */

static int crashes_once(void *arg, int sock)
{
	be_ready(sock);
	if (shared->starts == 1)
		raise(SIGKILL);
	return 0;
}

START_TEST(test_killed_engine_is_followed_by_another)
{
	ck_assert_int_eq(run_lives(crashes_once), 0);
	ck_assert_int_eq(shared->starts, 2);
	ck_assert_int_eq(shared->renewed, 1);
	ck_assert_int_eq(shared->renewed_asked, 0);
}
END_TEST

static int crashes_always(void *arg, int sock)
{
	be_ready(sock);
	raise(SIGKILL);
	return 0;
}

START_TEST(test_after_five_starts_within_a_minute_the_broker_gives_up)
{
	ck_assert_int_eq(run_lives(crashes_always), 1);
	ck_assert_int_eq(shared->starts, 5);
	ck_assert_int_eq(shared->renewed, 4);
}
END_TEST

static int crashes_before_it_is_ready(void *arg, int sock)
{
	shared->starts++;
	raise(SIGKILL);
	return 0;
}

START_TEST(test_engine_that_was_never_ready_is_not_started_again)
{
	ck_assert_int_eq(run_lives(crashes_before_it_is_ready), 1);
	ck_assert_int_eq(shared->starts, 1);
	ck_assert_int_eq(shared->renewed, 0);
}
END_TEST

static int exits_by_itself(void *arg, int sock)
{
	be_ready(sock);
	return 3;
}

START_TEST(test_engine_that_exits_by_itself_ends_the_broker_with_its_status)
{
	ck_assert_int_eq(run_lives(exits_by_itself), 3);
	ck_assert_int_eq(shared->starts, 1);
}
END_TEST

static int talks_nonsense_once(void *arg, int sock)
{
	be_ready(sock);
	if (shared->starts > 1)
		return 0;
	send(sock, "hello", 5, 0);
	pause();
	return 1;
}

START_TEST(test_engine_that_talks_nonsense_is_followed_by_another)
{
	ck_assert_int_eq(run_lives(talks_nonsense_once), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

/*
 * The first thread exits, another stays. The kernel does not report the exit to the parent before the last one exits.
 */
static int leaves_a_thread_behind(void *arg, int sock)
{
	pthread_t thread;

	be_ready(sock);
	if (shared->starts > 1)
		return 0;
	pthread_create(&thread, NULL, sleep_for_ever, NULL);
	syscall(SYS_exit, 0);
	return 1;
}

START_TEST(test_corpse_with_a_live_thread_is_noticed)
{
	ck_assert_int_eq(run_lives(leaves_a_thread_behind), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

static int hangs_up_and_exits_later(void *arg, int sock)
{
	be_ready(sock);
	close(sock);
	sleep_ms(2000);
	return 0;
}

START_TEST(test_broker_sleeps_until_an_engine_that_has_hung_up_exits)
{
	const clock_t before = clock();

	ck_assert_int_eq(run_lives(hangs_up_and_exits_later), 0);
	ck_assert_int_eq(shared->starts, 1);
	ck_assert_int_lt((clock() - before) * 1000 / CLOCKS_PER_SEC, 700);
}
END_TEST

/* ---- a restart --------------------------------------------------------------------------------------------------------- */

static int asks_for_a_restart(void *arg, int sock)
{
	struct uvd_link *link;

	signal(SIGTERM, on_term);
	link = be_ready(sock);
	if (shared->starts == 2)
		return shared->left == 1 ? 0 : 4;
	if (uvd_link_tell(link, UVD_WIRE_RESTART, 0))
		return 5;
	return wait_until_told() ? 0 : 6;
}

START_TEST(test_restart_ends_the_engine_and_starts_another)
{
	ck_assert_int_eq(run_lives(asks_for_a_restart), 0);
	ck_assert_int_eq(shared->starts, 2);
	ck_assert_int_eq(shared->renewed_asked, 1);
}
END_TEST

static int asks_and_stays(void *arg, int sock)
{
	struct uvd_link *link;

	signal(SIGTERM, SIG_IGN);
	link = be_ready(sock);
	if (shared->starts == 2)
		return 0;
	if (!uvd_link_tell(link, UVD_WIRE_RESTART, 0))
		sleep_for_ever(NULL);
	return 5;
}

START_TEST(test_restart_does_not_wait_for_an_engine_that_does_not_end)
{
	ck_assert_int_eq(run_lives(asks_and_stays), 0);
	ck_assert_int_eq(shared->starts, 2);
	ck_assert_int_eq(shared->renewed_asked, 1);
}
END_TEST

/* A compromised engine process must not make the broker start engine processes forever. */
static int asks_again_and_again(void *arg, int sock)
{
	struct uvd_link *link;
	int ret;

	signal(SIGTERM, on_term);
	link = uvd_link_new(sock);
	shared->starts++;
	if (uvd_link_tell(link, UVD_WIRE_RESTART, 0) != -EINVAL)
		return 7; /* RESTART must be refused before READY */
	if (uvd_link_tell(link, UVD_WIRE_READY, 0))
		return 8;
	ret = uvd_link_tell(link, UVD_WIRE_RESTART, 0);
	if (shared->starts == 5)
		return ret == -EAGAIN ? 0 : 9;
	return ret || !wait_until_told() ? 10 : 0;
}

START_TEST(test_restart_is_refused_after_five_starts_within_a_minute)
{
	ck_assert_int_eq(run_lives(asks_again_and_again), 0);
	ck_assert_int_eq(shared->starts, 5);
}
END_TEST

static int asks_and_then_the_broker_is_told_to_end(void *arg, int sock)
{
	struct uvd_link *link;

	signal(SIGTERM, on_term);
	link = be_ready(sock);
	if (shared->starts > 1 || uvd_link_tell(link, UVD_WIRE_RESTART, 0))
		return 5;
	kill(shared->broker, SIGTERM);
	sleep_ms(300);
	return 0;
}

START_TEST(test_signal_during_a_restart_ends_the_broker)
{
	ck_assert_int_eq(run_lives(asks_and_then_the_broker_is_told_to_end), 0);
	ck_assert_int_eq(shared->starts, 1);
}
END_TEST

/* SIGTERM still kills this process, as it kills an engine process that has not installed its handlers yet. */
static int has_no_handlers(void *arg, int sock)
{
	shared->starts++;
	kill(shared->broker, SIGTERM);
	sleep_for_ever(NULL);
	return 4;
}

START_TEST(test_signal_before_the_engine_can_handle_one_is_a_clean_end)
{
	ck_assert_int_eq(run_lives(has_no_handlers), 0);
	ck_assert_int_eq(shared->starts, 1);
	ck_assert_int_eq(shared->left, 1);
}
END_TEST

/* ---- what the next one inherits ---------------------------------------------------------------------------------- */

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int counts_its_fds(void *arg, int sock)
{
	struct uvd_link *link = be_ready(sock);
	int n = count_fds();

	if (shared->starts == 2)
		return n == shared->fds ? 0 : 4;
	shared->fds = n;
	/* The broker now has many descriptors that the next engine process must not inherit. */
	for (int i = 0; i < 20; i++)
		if (uvd_link_loan(link, getpid(), NULL) < 0)
			return 5;
	raise(SIGKILL);
	return 0;
}

START_TEST(test_engine_has_no_descriptor_of_the_brokers)
{
	int before = count_fds();

	ck_assert_int_eq(run_lives(counts_its_fds), 0);
	ck_assert_int_eq(shared->fds, before + 1);
}
END_TEST

enum { LOANS_OF_ROOT = UVD_LOANS_MAX - UVD_LOANS_MAX / 4 };

static int takes_all_children(void *arg, int sock)
{
	struct uvd_link *link = be_ready(sock);
	int loan = 0, n = 0;

	/* Children of the last engine process may still be exiting. */
	for (int tries = 0; tries < 1000 && n < LOANS_OF_ROOT; tries++) {
		loan = uvd_link_loan(link, getpid(), NULL);
		if (loan >= 0)
			n++;
		else if (loan == -EAGAIN)
			sleep_ms(10);
		else
			return 4;
	}
	if (n < LOANS_OF_ROOT || uvd_link_loan(link, getpid(), NULL) != -EAGAIN)
		return 5;
	if (shared->starts == 1)
		raise(SIGKILL);
	return 0;
}

START_TEST(test_children_end_with_their_engine_and_leave_their_places)
{
	ck_assert_int_eq(run_lives(takes_all_children), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

/*
 * A forked process keeps the engine process's sockets open, as a remaining thread of a dead engine process would. The
 * broker's children must exit nevertheless.
 */
static int takes_all_children_and_leaves_a_copy(void *arg, int sock)
{
	if (!shared->starts) {
		struct uvd_link *link = uvd_link_new(sock);

		for (int i = 0; i < LOANS_OF_ROOT; i++)
			if (uvd_link_loan(link, getpid(), NULL) < 0)
				return 4;
		if (!fork()) {
			sleep_ms(20000);
			_exit(0);
		}
		be_ready(sock);
		raise(SIGKILL);
	}
	return takes_all_children(arg, sock);
}

START_TEST(test_children_end_although_a_corpse_has_their_sockets)
{
	ck_assert_int_eq(run_lives(takes_all_children_and_leaves_a_copy), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

/* Starts an ordinary user's process that blocks in a write to a stopped terminal. */
static pid_t start_writer(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct stat st;
	pid_t pid;

	ck_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert(slave >= 0 && !fstat(slave, &st) && !tcflow(slave, TCOOFF));
	node_rdev = st.st_rdev;
	pid = fork();
	if (pid)
		return pid;
	if (setgroups(0, NULL) || setresgid(65533, 65533, 65533) || setresuid(65534, 65534, 65534))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit((int)write(slave, "x", 1));
}

static pid_t writer;

static int asks_about_the_last_ones_client(void *arg, int sock)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_PEER, .tid = writer };
	struct uvd_link *link = be_ready(sock);
	int number = -1, fd, ret = 0;
	struct uvd_wire_fds out;
	dev_t rdev;

	if (shared->starts == 1 && uvd_link_node(link, 0, &number, &rdev, &fd))
		return 4;
	for (int ms = 0; ms < 5000; ms += 10) {
		ret = uvd_link_ask(link, &r, NULL, &out);
		uvd_wire_close(&out);
		if (!ret || shared->starts > 1)
			break;
		sleep_ms(10); /* the writer may not have reached its write() yet */
	}
	if (shared->starts > 1)
		return ret == -ESRCH ? 0 : 5;
	if (ret)
		return 6;
	raise(SIGKILL);
	return 0;
}

/* The broker must forget the last engine process's nodes: another device may have their device number by now. */
START_TEST(test_node_of_the_last_engine_is_none_of_the_next_ones)
{
	writer = start_writer();
	ck_assert_int_eq(run_lives(asks_about_the_last_ones_client), 0);
	ck_assert_int_eq(shared->starts, 2);
	kill(writer, SIGKILL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_killed_engine_is_followed_by_another,
		test_after_five_starts_within_a_minute_the_broker_gives_up,
		test_engine_that_was_never_ready_is_not_started_again,
		test_engine_that_exits_by_itself_ends_the_broker_with_its_status,
		test_engine_that_talks_nonsense_is_followed_by_another,
		test_corpse_with_a_live_thread_is_noticed,
		test_broker_sleeps_until_an_engine_that_has_hung_up_exits,
		test_restart_ends_the_engine_and_starts_another,
		test_restart_does_not_wait_for_an_engine_that_does_not_end,
		test_restart_is_refused_after_five_starts_within_a_minute,
		test_signal_during_a_restart_ends_the_broker,
		test_signal_before_the_engine_can_handle_one_is_a_clean_end,
		test_engine_has_no_descriptor_of_the_brokers,
		test_children_end_with_their_engine_and_leave_their_places,
		test_children_end_although_a_corpse_has_their_sockets,
		test_node_of_the_last_engine_is_none_of_the_next_ones,
	};

	return run_tests("lives", tests, sizeof(tests) / sizeof(tests[0]));
}
