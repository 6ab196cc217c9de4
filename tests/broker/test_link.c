/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine process's side of the messages to the broker: what each function asks, and what it makes of the answer. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/link.h"
#include "broker/owners.h"
#include "util/util.h"
#include "../suite.h"

static struct uvd_link *engine;
static int broker, null_fd;
static pthread_t thread;

/* The broker answers one request. */
static struct {
	struct uvd_wire_request request;
	struct uvd_device_config device;
	struct uvd_wire_fds fds; /* of the request */
	int result, fd; /* what to answer, with two values; fd: -1 for none */
} deal;

static void link_begin(void)
{
	int pair[2];

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	engine = uvd_link_new(pair[0]);
	ck_assert_ptr_nonnull(engine);
	broker = pair[1];
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(null_fd, 0);
}

static void link_end(void)
{
	uvd_link_free(engine);
	close(broker);
	close(null_fd);
}

static void *broker_main(void *unused)
{
	struct uvd_wire_fds fds = uvd_wire_one_fd(deal.fd);

	ck_assert_int_eq(uvd_wire_asked_with(broker, UVD_WIRE_CONTROL, &deal.request, &deal.device, &deal.fds), 0);
	ck_assert_int_eq(uvd_wire_answer(broker,
					 &(struct uvd_wire_answer){ .version = UVD_WIRE_VERSION,
								    .op = deal.request.op,
								    .result = deal.result,
								    .num_fds = deal.fd >= 0,
								    .values = { 7, 9 } },
					 &fds),
			 0);
	return unused;
}

static void broker_answers(int result, int fd)
{
	deal.result = result;
	deal.fd = fd;
	ck_assert(!pthread_create(&thread, NULL, broker_main, NULL));
}

/* Returns the request that was answered. */
static const struct uvd_wire_request *broker_was_asked(enum uvd_wire_op op, uint32_t index, int64_t value)
{
	const struct uvd_wire_request *r = &deal.request;

	pthread_join(thread, NULL);
	ck_assert_msg(r->op == op && r->index == index && r->value == value, "%u: index %u, value %d", r->op, r->index,
		      (int)r->value);
	return r;
}

START_TEST(node_and_capability_have_a_number_and_a_channel)
{
	int number = -1, fd = -1;
	bool aside = false;
	dev_t rdev = 0;

	broker_answers(0, null_fd);
	ck_assert_int_eq(uvd_link_node(engine, 3, &number, &rdev, &fd), 0);
	broker_was_asked(UVD_WIRE_NODE, 3, -1);
	ck_assert(number == 7 && rdev == 9 && fd >= 0 && !close(fd));
	number = 4;
	broker_answers(-EEXIST, -1);
	ck_assert_int_eq(uvd_link_node(engine, 3, &number, &rdev, &fd), -EEXIST);
	broker_was_asked(UVD_WIRE_NODE, 3, 4);
	ck_assert(number == 4 && fd == -1);
	broker_answers(0, null_fd);
	ck_assert_int_eq(uvd_link_ucap(engine, "mlx5_perm", &rdev, &fd), 0);
	ck_assert_str_eq(broker_was_asked(UVD_WIRE_UCAP, 0, 0)->name, "mlx5_perm");
	ck_assert(rdev == 7 && fd >= 0 && !close(fd));
	broker_answers(-EINVAL, -1);
	ck_assert_int_eq(uvd_link_ucap_gone(engine, "mlx5_perm"), -EINVAL);
	ck_assert_str_eq(broker_was_asked(UVD_WIRE_UCAP_GONE, 0, 0)->name, "mlx5_perm");
	broker_answers(0, null_fd);
	ck_assert_int_eq(uvd_link_cm(engine, &rdev, &aside, &fd), 0);
	broker_was_asked(UVD_WIRE_CM, 0, 0);
	ck_assert(rdev == 7 && aside && fd >= 0 && !close(fd));
	broker_answers(-EEXIST, -1);
	ck_assert_int_eq(uvd_link_cm(engine, &rdev, &aside, &fd), -EEXIST);
	broker_was_asked(UVD_WIRE_CM, 0, 0);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(test_life_is_asked_for_and_a_level_that_does_not_exist_is_none)
{
	enum uvd_log_level level = UVD_DEBUG;
	unsigned int before = 0;

	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_life(engine, &before, &level), 0);
	broker_was_asked(UVD_WIRE_LIFE, 0, 0);
	ck_assert_uint_eq(before, 7);
	ck_assert_int_eq(level, UVD_INFO); /* the broker has said 9 */
	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_tell(engine, UVD_WIRE_LOG_LEVEL, UVD_WARN), 0);
	broker_was_asked(UVD_WIRE_LOG_LEVEL, UVD_WARN, 0);
}
END_TEST

START_TEST(device_follows_the_request)
{
	struct uvd_device_config config = { .ibdev = "some0" };

	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_add(engine, &config), 7);
	broker_was_asked(UVD_WIRE_ADD, 0, 0);
	ck_assert_str_eq(deal.device.ibdev, "some0");
	broker_answers(-ENOSPC, -1);
	ck_assert_int_eq(uvd_link_add(engine, &config), -ENOSPC);
	broker_was_asked(UVD_WIRE_ADD, 0, 0);
	strcpy(config.ibdev, "other0");
	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_tables(engine, 2, 1, &config), 0);
	broker_was_asked(UVD_WIRE_TABLES, 2, 1);
	ck_assert_str_eq(deal.device.ibdev, "other0");
}
END_TEST

START_TEST(plugin_is_a_name_or_the_number_of_an_option)
{
	int why = -1;

	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_plugin(engine, 5, 2, "kv.so", &why), 7);
	ck_assert_str_eq(broker_was_asked(UVD_WIRE_PLUGIN, 5, 0)->name, "kv.so");
	broker_answers(0, null_fd);
	ck_assert_int_eq(uvd_link_plugin(engine, 5, 2, NULL, &why), 7);
	broker_was_asked(UVD_WIRE_PLUGIN_OPTION, 5, 2);
	ck_assert(why >= 0 && !close(why));
	broker_answers(-EINVAL, -1);
	ck_assert_int_eq(uvd_link_plugin(engine, 5, 2, "kv.so", &why), -EINVAL);
	broker_was_asked(UVD_WIRE_PLUGIN, 5, 0);
}
END_TEST

START_TEST(state_of_a_port_is_told)
{
	uint64_t counters[UVD_PORT_COUNTERS];

	for (unsigned int i = 0; i < UVD_PORT_COUNTERS; i++)
		counters[i] = 100 + i;
	for (unsigned int up = 0; up < 2; up++) {
		broker_answers(0, -1);
		ck_assert_int_eq(uvd_link_port(engine, 2, 3, up), 0);
		ck_assert_uint_eq(broker_was_asked(UVD_WIRE_PORT, 2, 3)->flag, up);
	}
	broker_answers(-EINVAL, -1);
	ck_assert_int_eq(uvd_link_counters(engine, 2, 1, counters), -EINVAL);
	ck_assert(!memcmp(broker_was_asked(UVD_WIRE_COUNTERS, 2, 1)->counters, counters, sizeof(counters)));
	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_tell(engine, UVD_WIRE_PUBLISH, 4), 0);
	broker_was_asked(UVD_WIRE_PUBLISH, 4, 0);
}
END_TEST

/* The kernel says 0 of a process that is outside of our pid namespace: the broker is not asked, as it would break the protocol. */
START_TEST(owners_of_a_peer_are_those_that_the_broker_finds)
{
	static const uid_t owners[] = { 1000, 0 };
	uid_t found[4] = { 0 };
	int packed = uvd_owners_pack(owners, 2);

	ck_assert_int_ge(packed, 0);
	broker_answers(0, packed);
	ck_assert_int_eq(uvd_link_peer_owners(engine, 77, 1000, found, 4), 2);
	ck_assert_int_eq(broker_was_asked(UVD_WIRE_PEER_OWNERS, 0, 1000)->tid, 77);
	ck_assert(found[0] == 1000 && found[1] == 0);
	close(packed);
	broker_answers(0, -1);
	ck_assert_int_eq(uvd_link_peer_owners(engine, 77, 1000, found, 4), -EIO);
	broker_was_asked(UVD_WIRE_PEER_OWNERS, 0, 1000);
	for (pid_t pid = 0; pid > -2; pid--)
		ck_assert_int_eq(uvd_link_peer_owners(engine, pid, 1000, found, 4), -ESRCH);
}
END_TEST

/* Our copy of the broker's end is closed: the end of the broker's child is seen, and no descriptor stays. */
START_TEST(loan_has_one_end_of_a_new_socket)
{
	const unsigned int before = suite_num_fds();
	char byte;
	int sock;

	broker_answers(0, -1);
	sock = uvd_link_loan(engine, 77, NULL);
	ck_assert_int_ge(sock, 0);
	broker_was_asked(UVD_WIRE_CONNECT, UVD_WIRE_LOAN, 77);
	ck_assert_int_eq(send(deal.fds.fd[0], "x", 1, 0), 1);
	ck_assert(recv(sock, &byte, 1, 0) == 1 && byte == 'x');
	uvd_wire_close(&deal.fds);
	ck_assert_int_eq(recv(sock, &byte, 1, MSG_DONTWAIT), 0);
	close(sock);
	ck_assert_uint_eq(suite_num_fds(), before);
	broker_answers(-EAGAIN, -1);
	ck_assert_int_eq(uvd_link_loan(engine, 77, NULL), -EAGAIN);
	broker_was_asked(UVD_WIRE_CONNECT, UVD_WIRE_LOAN, 77);
	uvd_wire_close(&deal.fds);
	ck_assert_uint_eq(suite_num_fds(), before);
}
END_TEST

static void ask_tell(void)
{
	uvd_link_tell(engine, UVD_WIRE_PUBLISH, 0);
}

static void ask_add(void)
{
	static const struct uvd_device_config config;

	uvd_link_add(engine, &config);
}

START_TEST(process_ends_without_its_broker)
{
	static void (*const ask[])(void) = { ask_tell, ask_add };
	int status;
	pid_t pid;

	shutdown(broker, SHUT_RDWR);
	pid = fork();
	if (!pid) {
		ask[_i]();
		_exit(0);
	}
	ck_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("link");

	tcase_add_checked_fixture(t, link_begin, link_end);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, node_and_capability_have_a_number_and_a_channel);
	tcase_add_test(t, test_life_is_asked_for_and_a_level_that_does_not_exist_is_none);
	tcase_add_test(t, device_follows_the_request);
	tcase_add_test(t, plugin_is_a_name_or_the_number_of_an_option);
	tcase_add_test(t, state_of_a_port_is_told);
	tcase_add_test(t, owners_of_a_peer_are_those_that_the_broker_finds);
	tcase_add_test(t, loan_has_one_end_of_a_new_socket);
	tcase_add_loop_test(t, process_ends_without_its_broker, 0, 2);
	return run_suite("link", t);
}
