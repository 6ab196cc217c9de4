/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long a loan of the broker may last. The engine process can be an attacker's, and a client can help it: neither gets more
 * time than a registration takes. The children are processes that do nothing, and no thread is borrowed.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/borrow.h"
#include "broker/child.h"
#include "broker/link.h"
#include "broker/register.h"
#include "broker/way.h"
#include "util/util.h"
#include "../suite.h"

enum { LOANS = 3, MEMORY_MIB = 10000 };

static struct uvd_children children;
static struct uvd_nodes nodes;
static _Atomic uint32_t registers[LOANS];
static struct uvd_log *quiet;

static struct uvd_child *loan(int i)
{
	return &children.list[i];
}

/* The loan has begun so many ms ago. */
static void begin_loan(int i, uint64_t ms, uint32_t mib)
{
	loan(i)->pid = fork();
	if (!loan(i)->pid) {
		for (;;)
			pause();
	}
	loan(i)->sock = -1;
	loan(i)->began = uvd_now_ns() / 1000000 - ms;
	loan(i)->registers = &registers[i];
	registers[i] = mib;
}

static void setup(void)
{
	memset(&children, 0, sizeof(children));
	memset(&nodes, 0, sizeof(nodes));
	memset((void *)registers, 0, sizeof(registers));
	children.most_mib = MEMORY_MIB;
	quiet = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);
}

static void teardown(void)
{
	for (int i = 0; i < LOANS; i++) {
		if (!loan(i)->pid)
			continue;
		kill(loan(i)->pid, SIGKILL);
		waitpid(loan(i)->pid, NULL, 0);
	}
	uvd_log_free(quiet);
}

/* Does the broker let the loan go on? */
static bool goes_on(int i)
{
	siginfo_t info = {};

	uvd_children_check(&children, quiet);
	if (loan(i)->began)
		return true;
	ck_assert_int_eq(waitid(P_PID, loan(i)->pid, &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(info.si_status, SIGKILL);
	return false;
}

START_TEST(test_loan_has_ten_seconds_and_more_only_while_it_registers_much)
{
	static const struct {
		uint64_t ms;
		uint32_t mib;
		bool goes_on;
	} loans[] = {
		{ 9000, 0, true },
		{ 10000, 0, false },
		{ 11500, 100, true },
		{ 12000, 100, false },
		{ 150000, MEMORY_MIB, true },
		{ 210000, MEMORY_MIB, false },
		{ 290000, UVD_LOAN_MIB, false },
	};

	begin_loan(0, loans[_i].ms, loans[_i].mib);
	ck_assert_int_eq(goes_on(0), loans[_i].goes_on);
}
END_TEST

START_TEST(test_no_loan_lasts_longer_than_five_minutes)
{
	children.most_mib = UINT32_MAX;
	begin_loan(0, 290000, UVD_LOAN_MIB);
	begin_loan(1, 300000, UVD_LOAN_MIB);
	ck_assert(goes_on(0));
	ck_assert(!goes_on(1));
}
END_TEST

/* More than the machine's memory cannot be registered at once. */
START_TEST(test_loans_have_together_the_time_to_register_the_machines_memory)
{
	begin_loan(0, 15000, MEMORY_MIB - 300);
	begin_loan(1, 15000, MEMORY_MIB);
	begin_loan(2, 15000, MEMORY_MIB);
	ck_assert(goes_on(0));
	ck_assert(goes_on(1));
	ck_assert(!goes_on(2));
}
END_TEST

START_TEST(test_killed_loan_is_killed_once)
{
	begin_loan(0, 11000, 0);
	ck_assert(!goes_on(0));
	waitpid(loan(0)->pid, NULL, 0);
	uvd_children_check(&children, quiet);
	uvd_children_ended(&children, loan(0)->pid);
	ck_assert_int_eq(loan(0)->pid, 0);
}
END_TEST

/* ---- a user's share ---------------------------------------------------------------------------------------------- */

/* Starts a child for a loan of this test's own thread, which is root's or a user's. */
static int start_loan(void)
{
	struct uvd_ways ways = { .dir = -1, .held = -1 };
	int pair[2], ret;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ret = uvd_children_start(&children, UVD_WIRE_LOAN, pair[1], getpid(),
				 &(struct uvd_child_files){ .nodes = &nodes, .ways = &ways, .queues = -1 });
	close(pair[1]);
	return ret < 0 ? ret : 0;
}

/* A child that has passed its descriptor holds no file of the client's: then a registration may take its time. */
START_TEST(test_few_loans_of_a_user_may_be_senders_and_a_quarter_of_all_may_register)
{
	unsigned int n = 0;

	ck_assert(geteuid() || !setresuid(1000, 1000, 1000));
	while (!start_loan())
		n++;
	ck_assert_uint_eq(n, UVD_WAY_SHARE);
	for (unsigned int i = 0; i < UVD_LOANS_OF_USER; i++) {
		*loan(i)->registers |= UVD_LOAN_PASSED;
		if (start_loan() == 0)
			n++;
	}
	ck_assert_uint_eq(n, UVD_LOANS_OF_USER);
	ck_assert_int_eq(start_loan(), -EAGAIN);
	for (unsigned int i = 0; i < n; i++) {
		kill(loan(i)->pid, SIGKILL);
		waitpid(loan(i)->pid, NULL, 0);
		loan(i)->pid = 0;
	}
}
END_TEST

/* A loan that is over waits for its exit, and so for a file of the client's: it keeps its place, and is no loan that does not end. */
START_TEST(test_engine_process_waits_for_no_child_that_is_killed_but_for_the_end_of_one_that_is_over)
{
	int pair[2];
	char c;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	begin_loan(0, 11000, _i ? UVD_LOAN_OVER : 0);
	loan(0)->sock = pair[1];
	ck_assert(!goes_on(0));
	ck_assert_int_eq(recv(pair[0], &c, 1, MSG_DONTWAIT), _i ? -1 : 0);
	ck_assert_int_ne(loan(0)->pid, 0);
	close(pair[0]);
}
END_TEST

/* ---- what a child says ------------------------------------------------------------------------------------------- */

enum { NUMBER = 7, HANDLE = 9, LENGTH_MIB = 300, PAST_MS = 50 };

static struct {
	uint32_t when_stopped, when_passed, when_registering, afterwards;
} seen;

/* The functions of the broker, and what replaces them. */
int __wrap_uvd_waits(pid_t tid, const struct uvd_nodes *of, enum uvd_wait_for what, struct uvd_wait *wait);
bool __wrap_uvd_process_role_take(enum uvd_process_role role);
int __wrap_uvd_borrow_seize(struct uvd_borrow *b, pid_t tid);
int __wrap_uvd_borrow_stop(struct uvd_borrow *b);
long __wrap_uvd_way_pass(struct uvd_ways *ways, int place, struct uvd_borrow *b, int fd);
int64_t __wrap_uvd_borrow_register_by(struct uvd_borrow *b, long number, const struct uvd_reg_order *order,
				      bool *executed);
int __wrap_uvd_borrow_release(struct uvd_borrow *b, const long *result);

/* Plays a child that an attacker has taken over: it makes this memory writable, and writes to it. NULL: nothing. */
static void *taken_over_writes;

int __wrap_uvd_waits(pid_t tid, const struct uvd_nodes *of, enum uvd_wait_for what, struct uvd_wait *wait)
{
	*wait = (struct uvd_wait){};
	if (!taken_over_writes)
		return 0;
	if (mprotect(taken_over_writes, 1, PROT_READ | PROT_WRITE))
		return -errno;
	*(volatile uint8_t *)taken_over_writes = 1;
	return 0;
}

bool __wrap_uvd_process_role_take(enum uvd_process_role role)
{
	return true;
}

int __wrap_uvd_borrow_seize(struct uvd_borrow *b, pid_t tid)
{
	return 0;
}

int __wrap_uvd_borrow_stop(struct uvd_borrow *b)
{
	seen.when_stopped = registers[0];
	return 0;
}

long __wrap_uvd_way_pass(struct uvd_ways *ways, int place, struct uvd_borrow *b, int fd)
{
	ck_assert_int_eq(place, UVD_WAY_OWN);
	seen.when_passed = registers[0];
	return NUMBER;
}

int64_t __wrap_uvd_borrow_register_by(struct uvd_borrow *b, long number, const struct uvd_reg_order *order,
				      bool *executed)
{
	ck_assert_int_eq(number, NUMBER);
	ck_assert(registers[0] & UVD_LOAN_PASSED);
	seen.when_registering = registers[0] & UVD_LOAN_MIB;
	usleep(PAST_MS * 1000);
	*executed = true;
	return HANDLE;
}

int __wrap_uvd_borrow_release(struct uvd_borrow *b, const long *result)
{
	seen.afterwards = registers[0] & UVD_LOAN_MIB;
	return 0;
}

static void *serve_loan(void *arg)
{
	struct uvd_borrower borrower = { .tid = getpid() };
	struct uvd_ways ways = {};

	ck_assert_int_eq(uvd_owners_of(borrower.tid, &borrower.owners), 0);
	uvd_loan_serve(*(int *)arg, &borrower,
		       &(struct uvd_child_files){ .nodes = &nodes, .ways = &ways, .queues = -1 }, &registers[0]);
	return NULL;
}

/* Returns the first value of the answer. */
static int64_t loan_step(int sock, struct uvd_wire_request r, int fd)
{
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2];

	ck_assert_int_eq(uvd_link_loan_step(sock, &r, fd, values, &out), 0);
	uvd_wire_close(&out);
	return values[0];
}

/* The thread's way into the call and out of it has no more than ten seconds: a client can hold both up. */
START_TEST(test_child_says_how_much_the_thread_registers_at_this_moment)
{
	struct uvd_wire_request registers = { .op = UVD_WIRE_REGISTER, .reg.length = (uint64_t)LENGTH_MIB << 20 };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pthread_t thread;
	struct stat st;
	int pair[2];

	ck_assert_int_eq(fstat(null, &st), 0);
	nodes.adapters[0] = st.st_rdev;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, serve_loan, &pair[1]), 0);
	loan_step(pair[0], (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = getpid() }, -1);
	ck_assert_int_eq(loan_step(pair[0], registers, null), HANDLE);
	loan_step(pair[0], (struct uvd_wire_request){ .op = UVD_WIRE_RELEASE }, -1);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(seen.when_stopped, 0);
	ck_assert_uint_eq(seen.when_passed, 0);
	ck_assert_uint_eq(seen.when_registering, LENGTH_MIB);
	ck_assert_uint_gt(seen.afterwards, 0);
	ck_assert_uint_lt(seen.afterwards, LENGTH_MIB);
	close(pair[0]);
	close(pair[1]);
	close(null);
}
END_TEST

/* ---- what a child can write ------------------------------------------------------------------------------------------ */

static struct uvd_nodes *table;
static const struct uvd_nodes *view;

/* Starts a child that makes `at` writable when it is asked, and returns its answer. */
static int taken_over(enum uvd_wire_kind kind, const volatile void *at)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION,
				      .op = kind == UVD_WIRE_LOAN ? UVD_WIRE_SEIZE : UVD_WIRE_PEER,
				      .tid = getpid() };
	struct uvd_wire_fds in = uvd_wire_no_fds, out = uvd_wire_no_fds;
	struct uvd_ways ways = { .dir = -1 };
	struct uvd_wire_answer a;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	taken_over_writes = (void *)at;
	ck_assert_int_gt(uvd_children_start(&children, kind, pair[1], getpid(),
					    &(struct uvd_child_files){ .nodes = view, .ways = &ways, .queues = -1 }),
			 0);
	taken_over_writes = NULL;
	close(pair[1]);
	ck_assert(!uvd_wire_ask(pair[0], &r, &in) && !uvd_wire_answered(pair[0], r.op, &a, &out));
	uvd_wire_close(&out);
	close(pair[0]);
	return a.result;
}

/* The page of a loan that lasts, and its place. */
static _Atomic uint32_t *lasting_loan(void)
{
	struct uvd_ways ways = { .dir = -1 };
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_gt(uvd_children_start(&children, UVD_WIRE_LOAN, pair[1], getpid(),
					    &(struct uvd_child_files){ .nodes = view, .ways = &ways, .queues = -1 }),
			 0);
	return loan(0)->registers;
}

START_TEST(test_child_cannot_write_the_table)
{
	static const enum uvd_wire_kind kinds[] = { UVD_WIRE_LOAN, UVD_WIRE_QUESTIONS };

	ck_assert_int_eq(uvd_nodes_new(&table, &view), 0);
	table->rdev[0] = 7;
	ck_assert_uint_eq(view->rdev[0], 7);
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_int_eq(taken_over(kinds[i], view), -EACCES);
		ck_assert_int_eq(taken_over(kinds[i], table), -ENOMEM); /* it is not there */
	}
	ck_assert_uint_eq(view->root_clients, 0);
}
END_TEST

START_TEST(test_child_cannot_write_what_another_loan_registers)
{
	_Atomic uint32_t *page;

	ck_assert_int_eq(uvd_nodes_new(&table, &view), 0);
	page = lasting_loan();
	ck_assert_int_eq(taken_over(UVD_WIRE_LOAN, page), -ENOMEM);
	ck_assert_int_eq(taken_over(UVD_WIRE_QUESTIONS, page), -ENOMEM);
	ck_assert_uint_eq(*page, 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("children");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_loan_has_ten_seconds_and_more_only_while_it_registers_much, 0, 7);
	tcase_add_test(t, test_no_loan_lasts_longer_than_five_minutes);
	tcase_add_test(t, test_loans_have_together_the_time_to_register_the_machines_memory);
	tcase_add_test(t, test_killed_loan_is_killed_once);
	tcase_add_test(t, test_few_loans_of_a_user_may_be_senders_and_a_quarter_of_all_may_register);
	tcase_add_loop_test(
		t, test_engine_process_waits_for_no_child_that_is_killed_but_for_the_end_of_one_that_is_over, 0, 2);
	tcase_add_test(t, test_child_says_how_much_the_thread_registers_at_this_moment);
	tcase_add_test(t, test_child_cannot_write_the_table);
	tcase_add_test(t, test_child_cannot_write_what_another_loan_registers);
	return run_suite("broker: how long a loan lasts", t);
}
