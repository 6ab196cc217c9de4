/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's loop: the engine process exits, is killed, must terminate, or sends invalid messages. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <uverbsd/log.h>
#include "broker/broker.h"
#include "broker/child.h"
#include "util/util.h"
#include "../suite.h"

static struct shared {
	int left, asked;
	pid_t engine;
} * shared;

static int op_node(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	shared->asked++;
	*number = 5;
	*rdev = 77;
	*fd = dup(1);
	return index ? -EINVAL : 0;
}

static int op_index(void *arg, unsigned int index)
{
	return index ? -EINVAL : 0;
}

static int op_port(void *arg, unsigned int index, unsigned int port, bool up)
{
	return 0;
}

static int op_counters(void *arg, unsigned int index, unsigned int port, const uint64_t *values)
{
	return 0;
}

static int op_ucap(void *arg, const char *name, dev_t *rdev, int *fd)
{
	return -EINVAL;
}

static int op_name(void *arg, const char *name)
{
	return -EINVAL;
}

static int op_cm(void *arg, dev_t *rdev, bool *aside, int *fd)
{
	return -EEXIST;
}

static int op_cm_gone(void *arg)
{
	return -EINVAL;
}

static int op_ready(void *arg)
{
	return 0;
}

static void op_leave(void *arg)
{
	shared->left++;
}

static int op_renew(void *arg, bool asked)
{
	return 0;
}

static const struct uvd_broker_ops ops = {
	.node = op_node,
	.publish = op_index,
	.withdraw = op_index,
	.port = op_port,
	.counters = op_counters,
	.ucap = op_ucap,
	.ucap_gone = op_name,
	.cm = op_cm,
	.cm_gone = op_cm_gone,
	.ready = op_ready,
	.leave = op_leave,
	.renew = op_renew,
};

static int run(int (*engine)(void *arg, int sock))
{
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);
	const struct uvd_broker_config config = { .ops = &ops, .log = log };
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (uvd_broker_run(&config, engine, &status) < 0)
		_exit(status);
	uvd_log_free(log);
	return status;
}

static int ends(void *arg, int sock)
{
	return 3;
}

START_TEST(test_exit_status_is_the_engines)
{
	ck_assert_int_eq(run(ends), 3);
}
END_TEST

static int dies(void *arg, int sock)
{
	raise(SIGKILL);
	return 0;
}

START_TEST(test_killed_engine_is_status_1)
{
	ck_assert_int_eq(run(dies), 1);
}
END_TEST

static int talks_nonsense(void *arg, int sock)
{
	send(sock, "hello", 5, 0);
	pause();
	return 0;
}

static int asks_a_question_of_the_loop(void *arg, int sock)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_PEER, .tid = 1 };

	send(sock, &r, sizeof(r), 0);
	pause();
	return 0;
}

START_TEST(test_engine_that_talks_nonsense_is_killed)
{
	ck_assert_int_eq(run(talks_nonsense), 1);
	ck_assert_int_eq(run(asks_a_question_of_the_loop), 1);
}
END_TEST

static int closes(void *arg, int sock)
{
	close(sock);
	pause();
	return 0;
}

START_TEST(test_engine_that_hangs_up_is_killed)
{
	ck_assert_int_eq(run(closes), 1);
}
END_TEST

static volatile sig_atomic_t told;

static void on_term(int sig)
{
	told = 1;
}

static int has_broker_told(void *arg, int sock)
{
	signal(SIGTERM, on_term);
	kill(getppid(), SIGTERM);
	for (int i = 0; i < 500 && !told; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	return told && shared->left == 1 ? 0 : 4;
}

START_TEST(test_sigterm_goes_to_the_engine_after_the_devices_were_withdrawn)
{
	ck_assert_int_eq(run(has_broker_told), 0);
}
END_TEST

static int asks(void *arg, int sock)
{
	struct uvd_link *link = uvd_link_new(sock);
	int number = -1, fd, none;
	dev_t rdev;

	if (uvd_link_node(link, 0, &number, &rdev, &fd) || number != 5 || rdev != 77 || fd < 0)
		return 5;
	if (uvd_link_node(link, 1, &number, &rdev, &none) != -EINVAL || none != -1)
		return 6;
	/* The broker closes the descriptor of a failed NODE. Otherwise it would run out of descriptors here. */
	for (int i = 0; i < 5000; i++)
		if (uvd_link_node(link, 1, &number, &rdev, &none) != -EINVAL)
			return 7;
	/* More nodes than there is room for in the table: those before no longer exist. */
	for (int i = 0; i < 600; i++)
		if (uvd_link_node(link, 0, &number, &rdev, &fd) || fd < 0 || close(fd))
			return 9;
	return uvd_link_port(link, 0, 1, true) || uvd_link_port(link, 0, 0, true) != -EINVAL ? 8 : 0;
}

START_TEST(test_answers_arrive)
{
	ck_assert(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 256, 256 }));
	ck_assert_int_eq(run(asks), 0);
}
END_TEST

static int borrows_all(void *arg, int sock)
{
	const struct uvd_wire_request question = { .op = UVD_WIRE_OPEN, .tid = 1, .index = UVD_WIRE_STAT };
	struct uvd_link *link = uvd_link_new(sock);
	struct uvd_wire_fds out;
	int n = 0, loan;

	while ((loan = uvd_link_loan(link, getpid(), NULL)) >= 0)
		n++;
	/* More than 192 if this takes longer than a loan that asks for nothing lasts. */
	if (n < 192 || loan != -EAGAIN)
		return 5;
	return uvd_link_ask(link, &question, NULL, &out) ? 6 : 0;
}

START_TEST(test_loans_take_no_questions_place)
{
	ck_assert(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, 1024 }));
	ck_assert_int_eq(run(borrows_all), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("serve");

	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_exit_status_is_the_engines);
	tcase_add_test(t, test_killed_engine_is_status_1);
	tcase_add_test(t, test_engine_that_talks_nonsense_is_killed);
	tcase_add_test(t, test_engine_that_hangs_up_is_killed);
	tcase_add_test(t, test_sigterm_goes_to_the_engine_after_the_devices_were_withdrawn);
	tcase_add_test(t, test_answers_arrive);
	tcase_add_test(t, test_loans_take_no_questions_place);
	return run_suite("serve", t);
}
