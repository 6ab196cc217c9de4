/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of privileged operations, of a process that has the privileges and of one that asks the broker. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "broker/broker.h"
#include "../suite.h"

static struct uvd_link *link_;
static struct uvd_privilege *local, *by_broker;

static void setup(void)
{
	link_ = uvd_link_new(-1);
	by_broker = uvd_link_privilege(link_);
	local = uvd_local_new(NULL, NULL);
}

static void teardown(void)
{
	uvd_link_free(link_);
	uvd_local_free(local);
}

static void has_all(const struct uvd_privilege_ops *ops)
{
	void (*const *op)(void) = (void (*const *)(void))ops;

	for (size_t i = 0; i < sizeof(*ops) / sizeof(*op); i++)
		ck_assert_msg(op[i] != NULL, "operation %zu is missing", i);
}

START_TEST(test_both_tables_have_every_operation)
{
	has_all(local->ops);
	has_all(by_broker->ops);
	ck_assert_ptr_ne(local->ops, by_broker->ops);
}
END_TEST

/* The socket of the loan, and the end of it at which the broker's process gets its requests. */
struct asked {
	int ours, theirs;
	struct uvd_loan_place place;
	struct uvd_loan loan;
	struct uvd_wire_request r;
	struct uvd_wire_fds in;
};

static void asked_begin(struct asked *a)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	*a = (struct asked){ .ours = pair[0], .theirs = pair[1], .place = { -1, pair[0] } };
	a->loan = (struct uvd_loan){ .place = &a->place, .b = { .pidfd = -1, .memfd = -1, .mapsfd = -1 } };
}

/* The answer waits in the socket before the question is asked. */
static void asked_answer(struct asked *a, enum uvd_wire_op op, int64_t first, int64_t second)
{
	const struct uvd_wire_answer answer = { .version = UVD_WIRE_VERSION, .op = op, .values = { first, second } };

	ck_assert_int_eq(uvd_wire_answer(a->theirs, &answer, &uvd_wire_no_fds), 0);
}

static void asked_take(struct asked *a)
{
	ck_assert_int_eq(uvd_wire_asked(a->theirs, UVD_WIRE_LOAN, &a->r, &a->in), 0);
}

static void asked_end(struct asked *a)
{
	uvd_wire_close(&a->in);
	close(a->ours);
	close(a->theirs);
}

START_TEST(test_broker_is_asked_to_pass_the_descriptor)
{
	struct asked a;

	asked_begin(&a);
	asked_answer(&a, UVD_WIRE_TAKE, 7, 0);
	ck_assert_int_eq(by_broker->ops->stop(by_broker, &a.loan), 0);
	ck_assert_int_eq(by_broker->ops->pass(by_broker, &a.loan, STDIN_FILENO), 7);
	asked_take(&a);
	ck_assert_uint_eq(a.r.op, UVD_WIRE_TAKE);
	ck_assert_uint_eq(a.r.index, 0);
	ck_assert(!a.loan.b.dead && !a.loan.lost && !a.loan.killed);
	asked_end(&a);
}
END_TEST

/* The loan must go on to its release: so the broker is asked, but not to pass what comes with the request. */
START_TEST(test_broker_is_not_asked_to_pass_what_stands_for_no_descriptor)
{
	struct asked a;

	asked_begin(&a);
	asked_answer(&a, UVD_WIRE_TAKE, -EPERM, 0);
	ck_assert_int_eq(by_broker->ops->pass(by_broker, &a.loan, -1), -EPERM);
	asked_take(&a);
	ck_assert_uint_eq(a.r.index, 1);
	asked_end(&a);
}
END_TEST

START_TEST(test_without_a_descriptor_nothing_is_passed)
{
	struct uvd_loan_place place = { -1, -1 };
	struct uvd_loan l = { .place = &place, .b = { .pidfd = -1, .memfd = -1, .mapsfd = -1 } };

	ck_assert_int_eq(local->ops->pass(local, &l, -1), -EPERM);
}
END_TEST

START_TEST(test_loan_is_dead_if_the_broker_says_so_or_its_process_is_gone)
{
	struct asked a;

	asked_begin(&a);
	asked_answer(&a, UVD_WIRE_TAKE, -ESRCH, 1);
	ck_assert_int_eq(by_broker->ops->pass(by_broker, &a.loan, STDIN_FILENO), -ESRCH);
	ck_assert(a.loan.b.dead && !a.loan.killed);
	asked_end(&a);

	asked_begin(&a);
	shutdown(a.theirs, SHUT_RDWR);
	ck_assert_int_eq(by_broker->ops->pass(by_broker, &a.loan, STDIN_FILENO), -ESRCH);
	ck_assert(a.loan.b.dead && a.loan.killed && a.loan.hung_up && !a.loan.lost);
	asked_end(&a);
}
END_TEST

/* The broker has a limit of its own, which an engine process cannot lengthen. */
START_TEST(test_engine_process_ends_no_loan_that_lasts_too_long)
{
	const struct uvd_loan l = { .b = { .tid = getpid(), .tracer = getpid(), .pidfd = -1 } };

	ck_assert(!by_broker->ops->end_overdue(by_broker, &l));
	ck_assert(local->ops->end_overdue(local, &l));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("privilege");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_both_tables_have_every_operation);
	tcase_add_test(t, test_broker_is_asked_to_pass_the_descriptor);
	tcase_add_test(t, test_broker_is_not_asked_to_pass_what_stands_for_no_descriptor);
	tcase_add_test(t, test_without_a_descriptor_nothing_is_passed);
	tcase_add_test(t, test_loan_is_dead_if_the_broker_says_so_or_its_process_is_gone);
	tcase_add_test(t, test_engine_process_ends_no_loan_that_lasts_too_long);
	return run_suite("privilege", t);
}
