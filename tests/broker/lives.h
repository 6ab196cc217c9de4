/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs a broker whose engine processes execute a function of the test. Broker and engine processes share *shared. */
#ifndef UVD_TEST_LIVES_H
#define UVD_TEST_LIVES_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <uverbsd/log.h>
#include "broker/broker.h"
#include "../suite.h"

enum { END_MS = 1000 };

static struct shared {
	int starts, left, renewed, renewed_asked, withdrawn, fds;
	pid_t broker;
} * shared;

static dev_t node_rdev; /* of the node that op_node() reports; a test sets it before the broker runs */

static int op_node(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	*rdev = node_rdev;
	*fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

static int op_index(void *arg, unsigned int index)
{
	return 0;
}

static int op_withdraw(void *arg, unsigned int index)
{
	shared->withdrawn++;
	return 0;
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
	shared->renewed++;
	shared->renewed_asked += asked;
	return 0;
}

static const struct uvd_broker_ops ops = {
	.node = op_node,
	.publish = op_index,
	.withdraw = op_withdraw,
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

static inline int run_lives(int (*engine)(void *arg, int sock))
{
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "test", UVD_ERR);
	const struct uvd_broker_config config = { .ops = &ops, .log = log, .end_ms = END_MS };
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared->broker = getpid();
	if (uvd_broker_run(&config, engine, &status) < 0)
		_exit(status);
	uvd_log_free(log);
	return status;
}

static inline struct uvd_link *be_ready(int sock)
{
	struct uvd_link *link = uvd_link_new(sock);

	shared->starts++;
	if (uvd_link_tell(link, UVD_WIRE_READY, 0))
		_exit(90);
	return link;
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&ts, &ts))
		;
}

static volatile sig_atomic_t told __attribute__((unused));

static inline void on_term(int sig)
{
	told = 1;
}

static inline bool wait_until_told(void)
{
	for (int i = 0; i < 500 && !told; i++)
		sleep_ms(10);
	return told;
}

/* Returns the exit status for main(). */
static inline int run_tests(const char *name, const TTest *const *tests, unsigned int num)
{
	TCase *t = tcase_create(name);

	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_set_timeout(t, 60);
	for (unsigned int i = 0; i < num; i++)
		tcase_add_test(t, tests[i]);
	return run_suite(name, t);
}

#endif
