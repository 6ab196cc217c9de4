/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The broker survives, or exits in time, when the engine process is stopped or reads no answers, a descriptor table is
 * full, or a child of the broker is killed.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include "lives.h"
#include "util/util.h"

static int stops(void *arg, int sock)
{
	signal(SIGTERM, on_term);
	be_ready(sock);
	kill(shared->broker, SIGTERM);
	raise(SIGSTOP);
	return 0;
}

START_TEST(test_stopped_engine_does_not_keep_the_broker_from_its_end)
{
	uint64_t begun = uvd_now_ns();

	ck_assert_int_eq(run_lives(stops), 1);
	ck_assert_int_eq(shared->starts, 1);
	ck_assert_uint_lt(uvd_now_ns() - begun, (END_MS + 5000) * 1000000ull);
	ck_assert_uint_ge(uvd_now_ns() - begun, END_MS * 1000000ull);
}
END_TEST

static int reads_no_answer(void *arg, int sock)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_READY };

	if (shared->starts++)
		return 0;
	for (int i = 0; i < 100000; i++)
		if (send(sock, &r, sizeof(r), MSG_NOSIGNAL) < 0)
			break;
	pause();
	return 4;
}

START_TEST(test_engine_that_reads_no_answer_is_killed)
{
	ck_assert_int_eq(run_lives(reads_no_answer), 0);
	ck_assert_int_eq(shared->starts, 2);
}
END_TEST

/* While the broker's descriptor table is full, requests fail with EMFILE; afterwards they succeed again. */
static int fills_the_brokers_table(void *arg, int sock)
{
	struct rlimit none, before;
	struct uvd_link *link = be_ready(sock);
	int number = -1, fd, loan, ret;
	dev_t rdev;

	if (prlimit(shared->broker, RLIMIT_NOFILE, NULL, &before))
		return 3;
	none = (struct rlimit){ 3, before.rlim_max };
	if (prlimit(shared->broker, RLIMIT_NOFILE, &none, NULL))
		return 4;
	ret = uvd_link_node(link, 0, &number, &rdev, &fd);
	loan = uvd_link_loan(link, getpid(), NULL);
	if (prlimit(shared->broker, RLIMIT_NOFILE, &before, NULL))
		return 5;
	if (ret != -EMFILE || fd != -1 || loan != -EMFILE)
		return 6;
	ret = uvd_link_node(link, 0, &number, &rdev, &fd);
	loan = uvd_link_loan(link, getpid(), NULL);
	return ret || fd < 0 || loan < 0 ? 7 : 0;
}

START_TEST(test_full_table_of_the_broker_is_an_error_and_passes)
{
	ck_assert_int_eq(run_lives(fills_the_brokers_table), 0);
}
END_TEST

/*
 * The engine process cannot receive the descriptor that it asked for. The broker must then withdraw the node: the
 * engine process does not serve it.
 */
static int has_a_full_table(void *arg, int sock)
{
	struct uvd_link *link = be_ready(sock);
	struct rlimit none, before;
	int number = -1, fd, loan, ret;
	dev_t rdev;

	if (prlimit(0, RLIMIT_NOFILE, NULL, &before))
		return 3;
	none = (struct rlimit){ 3, before.rlim_max };
	if (prlimit(0, RLIMIT_NOFILE, &none, NULL))
		return 4;
	ret = uvd_link_node(link, 0, &number, &rdev, &fd);
	loan = uvd_link_loan(link, getpid(), NULL);
	if (prlimit(0, RLIMIT_NOFILE, &before, NULL))
		return 5;
	if (ret != -EMFILE || fd != -1 || loan != -EMFILE || shared->withdrawn != 1)
		return 6;
	ret = uvd_link_node(link, 0, &number, &rdev, &fd);
	loan = uvd_link_loan(link, getpid(), NULL);
	return ret || fd < 0 || loan < 0 ? 7 : 0;
}

START_TEST(test_full_table_of_the_engine_is_an_error_and_passes)
{
	ck_assert_int_eq(run_lives(has_a_full_table), 0);
}
END_TEST

static void kill_other_children(void)
{
	pid_t child = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", shared->broker, shared->broker);
	f = fopen(path, "r");
	while (f && fscanf(f, "%d", &child) == 1)
		if (child != getpid())
			kill(child, SIGKILL);
	fclose(f);
}

/* The broker answers STATUS for any thread, whether it waits in a call or not. */
static int ask_for_status(struct uvd_link *link)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = 1, .index = UVD_WIRE_STATUS };
	struct uvd_wire_fds out;
	int ret = uvd_link_ask(link, &r, NULL, &out);

	uvd_wire_close(&out);
	return ret;
}

static int loses_those_that_wait_for_questions(void *arg, int sock)
{
	struct uvd_link *link = be_ready(sock);

	if (ask_for_status(link))
		return 4;
	kill_other_children();
	return ask_for_status(link) ? 5 : 0;
}

START_TEST(test_next_question_finds_another_child_where_one_was_killed)
{
	ck_assert_int_eq(run_lives(loses_those_that_wait_for_questions), 0);
}
END_TEST

/* When a child of the broker is killed, only the loan that it served fails. */
static int loses_a_child(void *arg, int sock)
{
	struct uvd_wire_request seize = { .op = UVD_WIRE_SEIZE, .tid = 1 };
	struct uvd_link *link = be_ready(sock);
	int loan = uvd_link_loan(link, getpid(), NULL), number = -1, fd;
	struct uvd_wire_fds out;
	dev_t rdev;

	kill_other_children();
	if (uvd_link_loan_step(loan, &seize, -1, NULL, &out) != -EPIPE)
		return 5;
	return uvd_link_loan(link, getpid(), NULL) < 0 || uvd_link_node(link, 0, &number, &rdev, &fd) ? 6 : 0;
}

START_TEST(test_killed_child_is_an_error_of_one_loan)
{
	ck_assert_int_eq(run_lives(loses_a_child), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_stopped_engine_does_not_keep_the_broker_from_its_end,
		test_engine_that_reads_no_answer_is_killed,
		test_full_table_of_the_broker_is_an_error_and_passes,
		test_full_table_of_the_engine_is_an_error_and_passes,
		test_next_question_finds_another_child_where_one_was_killed,
		test_killed_child_is_an_error_of_one_loan,
	};

	return run_tests("failures", tests, sizeof(tests) / sizeof(tests[0]));
}
