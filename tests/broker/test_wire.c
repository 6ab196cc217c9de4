/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages between the engine process and the broker, over real sockets: each side rejects what the table forbids. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/wire.h"
#include "../suite.h"

static int pair[2];
static struct uvd_wire_fds fds;
static struct uvd_wire_request got;

static void set_up(void)
{
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
}

static void tear_down(void)
{
	close(pair[0]);
	close(pair[1]);
}

static struct uvd_wire_request peer_request(void)
{
	return (struct uvd_wire_request){ .version = UVD_WIRE_VERSION, .op = UVD_WIRE_PEER, .tid = 42 };
}

static int sent(const struct uvd_wire_request *r, enum uvd_wire_kind kind)
{
	ck_assert_int_eq(uvd_wire_ask(pair[0], r, &uvd_wire_no_fds), 0);
	return uvd_wire_asked(pair[1], kind, &got, &fds);
}

START_TEST(test_good_request_arrives)
{
	struct uvd_wire_request r = peer_request();

	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), 0);
	ck_assert_mem_eq(&got, &r, sizeof(r));
}
END_TEST

START_TEST(test_truncated_and_oversized_requests_are_refused)
{
	struct {
		struct uvd_wire_request r;
		char more;
	} big = { .r = peer_request() };

	ck_assert_int_eq(send(pair[0], &big, sizeof(big.r) - 1, 0), sizeof(big.r) - 1);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_QUESTIONS, &got, &fds), -EPROTO);
	ck_assert_int_eq(send(pair[0], &big, sizeof(big.r) + 1, 0), sizeof(big.r) + 1);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_QUESTIONS, &got, &fds), -EPROTO);
	ck_assert_int_eq(send(pair[0], &big, 1, 0), 1);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_QUESTIONS, &got, &fds), -EPROTO);
}
END_TEST

START_TEST(test_unknown_operations_and_versions_are_refused)
{
	struct uvd_wire_request r = peer_request();

	r.version++;
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
	r = peer_request();
	r.op = UVD_WIRE_OPS;
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
	r.op = UVD_WIRE_NONE;
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
	r.op = UINT32_MAX;
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
}
END_TEST

START_TEST(test_operation_of_another_socket_is_refused)
{
	struct uvd_wire_request r = peer_request();

	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
	ck_assert_int_eq(sent(&r, UVD_WIRE_LOAN), -EPROTO);
	r = (struct uvd_wire_request){ .version = UVD_WIRE_VERSION, .op = UVD_WIRE_NODE };
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
}
END_TEST

START_TEST(test_what_an_operation_does_not_use_must_be_0)
{
	struct uvd_wire_request r;

	for (int i = 0; i < 6; i++) {
		r = peer_request();
		r.tid = i == 0 ? 0 : i == 1 ? -1 : 42;
		r.index = i == 2;
		r.value = i == 3;
		r.flag = i == 4;
		r.name[0] = i == 5 ? 'x' : 0;
		ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
	}
	r = (struct uvd_wire_request){
		.version = UVD_WIRE_VERSION, .op = UVD_WIRE_OPEN, .tid = 42, .index = UVD_WIRE_FILES
	};
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
	r = (struct uvd_wire_request){ .version = UVD_WIRE_VERSION, .op = UVD_WIRE_ADAPTER, .index = UVD_MAX_DEVICES };
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
	r = (struct uvd_wire_request){ .version = UVD_WIRE_VERSION, .op = UVD_WIRE_READY, .tid = 42 };
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
	r = (struct uvd_wire_request){ .version = UVD_WIRE_VERSION, .op = UVD_WIRE_READY, .pad = 1 };
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
}
END_TEST

START_TEST(test_data_of_a_driver_fit_into_the_registration)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_REGISTER };
	struct uvd_wire_fds file = uvd_wire_no_fds;

	for (uint32_t len = UVD_REG_DRIVER_DATA; len <= UVD_REG_DRIVER_DATA + 1; len++) {
		r.reg.driver_data_len = len;
		file.fd[0] = pair[0];
		ck_assert_int_eq(uvd_wire_ask(pair[0], &r, &file), 0);
		ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_LOAN, &got, &fds),
				 len <= UVD_REG_DRIVER_DATA ? 0 : -EPROTO);
		uvd_wire_close(&fds);
	}
}
END_TEST

START_TEST(test_only_the_request_of_counters_has_counters)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_COUNTERS, .value = 1 };

	r.counters[UVD_PORT_COUNTERS - 1] = 7;
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), 0);
	r.op = UVD_WIRE_PORT;
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
}
END_TEST

START_TEST(test_restart_is_a_bare_request_to_the_broker_itself)
{
	const struct uvd_wire_request good = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_RESTART };
	struct uvd_wire_answer a = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_RESTART, .num_fds = 1 }, back;
	struct uvd_wire_fds one = { { 0, -1, -1 } };
	struct uvd_wire_request r = good;

	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), 0);
	ck_assert_int_eq(sent(&r, UVD_WIRE_QUESTIONS), -EPROTO);
	ck_assert_int_eq(sent(&r, UVD_WIRE_LOAN), -EPROTO);
	for (int i = 0; i < 5; i++) {
		r = good;
		r.tid = i == 0;
		r.index = i == 1;
		r.value = i == 2;
		r.flag = i == 3;
		r.name[0] = i == 4 ? 'x' : 0;
		ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
	}
	ck_assert_int_eq(uvd_wire_ask(pair[0], &good, &one), 0);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_CONTROL, &got, &fds), -EPROTO);
	ck_assert_int_eq(uvd_wire_answer(pair[1], &a, &one), 0);
	ck_assert_int_eq(uvd_wire_answered(pair[0], UVD_WIRE_RESTART, &back, &fds), -EPROTO);
}
END_TEST

START_TEST(test_device_comes_whole_and_with_its_operation_only)
{
	struct {
		struct uvd_wire_request r;
		struct uvd_device_config device;
		char more;
	} m = { .r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_ADD }, .device = { .ibdev = "new" } };
	const size_t whole = sizeof(m.r) + sizeof(m.device),
		     sizes[] = { 1, sizeof(m.r) - 1, sizeof(m.r), whole - 1, whole + 1 };
	struct uvd_device_config device;

	ck_assert_int_eq(uvd_wire_ask_with(pair[0], &m.r, &m.device), 0);
	ck_assert_int_eq(uvd_wire_asked_with(pair[1], UVD_WIRE_CONTROL, &got, &device, &fds), 0);
	ck_assert_mem_eq(&device, &m.device, sizeof(device));
	for (unsigned int i = 0; i < 5; i++) {
		ck_assert_int_eq(send(pair[0], &m, sizes[i], 0), sizes[i]);
		ck_assert_int_eq(uvd_wire_asked_with(pair[1], UVD_WIRE_CONTROL, &got, &device, &fds), -EPROTO);
	}
	/*
	 * uvd_wire_asked() rejects an ADD with its device, and one without. uvd_wire_asked_with() rejects a device of
	 * READY.
	 */
	ck_assert_int_eq(uvd_wire_ask_with(pair[0], &m.r, &m.device), 0);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_CONTROL, &got, &fds), -EPROTO);
	ck_assert_int_eq(uvd_wire_ask(pair[0], &m.r, &uvd_wire_no_fds), 0);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_CONTROL, &got, &fds), -EPROTO);
	m.r.op = UVD_WIRE_READY;
	ck_assert_int_eq(uvd_wire_ask_with(pair[0], &m.r, &m.device), 0);
	ck_assert_int_eq(uvd_wire_asked_with(pair[1], UVD_WIRE_CONTROL, &got, &device, &fds), -EPROTO);
}
END_TEST

/* uvd_wire_answer() must not wait for a peer that reads no answers. */
START_TEST(test_answer_that_finds_no_room_is_eagain)
{
	struct uvd_wire_answer a = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_READY };
	int err = 0;

	for (int i = 0; i < 100000 && !err; i++)
		err = uvd_wire_answer(pair[1], &a, &uvd_wire_no_fds);
	ck_assert_int_eq(err, -EAGAIN);
}
END_TEST

START_TEST(test_name_must_end)
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_UCAP };

	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
	memset(r.name, 'x', sizeof(r.name));
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), -EPROTO);
	r.name[sizeof(r.name) - 1] = 0;
	ck_assert_int_eq(sent(&r, UVD_WIRE_CONTROL), 0);
}
END_TEST

static unsigned int open_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST(test_descriptors_that_nobody_wants_are_closed)
{
	struct uvd_wire_request r = peer_request();
	struct uvd_wire_fds two = { { 0, 1, -1, -1 } };
	unsigned int before = open_fds();

	ck_assert_int_eq(uvd_wire_ask(pair[0], &r, &two), 0);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_QUESTIONS, &got, &fds), -EPROTO);
	ck_assert_uint_eq(open_fds(), before);
	/* A TAKE without its descriptor is rejected. */
	r = (struct uvd_wire_request){ .version = UVD_WIRE_VERSION, .op = UVD_WIRE_TAKE };
	ck_assert_int_eq(sent(&r, UVD_WIRE_LOAN), -EPROTO);
}
END_TEST

/* A message has at most UVD_WIRE_FDS descriptors. The receiver must not store further ones behind its array. */
START_TEST(test_more_descriptors_than_any_message_has_are_refused)
{
	union {
		char room[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct {
		struct uvd_wire_fds fds;
		int behind[8];
	} in;
	struct uvd_wire_request r = peer_request();
	struct iovec iov = { &r, sizeof(r) };
	unsigned int before = open_fds();

	for (unsigned int num = 1; num <= 8; num++) {
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = CMSG_LEN(num * sizeof(int)) };

		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = m.msg_controllen };
		memset(CMSG_DATA(&control.align), 0, num * sizeof(int));
		memset(&in, 0x55, sizeof(in));
		ck_assert_int_eq(sendmsg(pair[0], &m, 0), sizeof(r));
		ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_QUESTIONS, &got, &in.fds), -EPROTO);
		for (unsigned int i = 0; i < 8; i++)
			ck_assert_int_eq(in.behind[i], 0x55555555);
		ck_assert_uint_eq(open_fds(), before);
	}
}
END_TEST

START_TEST(test_answer_to_something_else_is_refused)
{
	struct uvd_wire_answer a = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_OPEN, .num_fds = 1 }, back;
	struct uvd_wire_fds one = { { 0, -1, -1, -1 } }, two = { { 0, 1, -1, -1 } };
	unsigned int before = open_fds();

	ck_assert_int_eq(uvd_wire_answer(pair[1], &a, &one), 0);
	ck_assert_int_eq(uvd_wire_answered(pair[0], UVD_WIRE_PEER, &back, &fds), -EPROTO);
	ck_assert_int_eq(uvd_wire_answer(pair[1], &a, &two), 0);
	ck_assert_int_eq(uvd_wire_answered(pair[0], UVD_WIRE_OPEN, &back, &fds), -EPROTO);
	ck_assert_int_eq(uvd_wire_answer(pair[1], &a, &uvd_wire_no_fds), 0);
	ck_assert_int_eq(uvd_wire_answered(pair[0], UVD_WIRE_OPEN, &back, &fds), -EPROTO);
	a.result = -EPERM;
	ck_assert_int_eq(uvd_wire_answer(pair[1], &a, &one), 0);
	ck_assert_int_eq(uvd_wire_answered(pair[0], UVD_WIRE_OPEN, &back, &fds), -EPROTO);
	ck_assert_uint_eq(open_fds(), before);
}
END_TEST

START_TEST(test_other_side_gone_is_epipe)
{
	struct uvd_wire_request r = peer_request();

	close(pair[0]);
	ck_assert_int_eq(uvd_wire_asked(pair[1], UVD_WIRE_QUESTIONS, &got, &fds), -EPIPE);
	ck_assert_int_eq(uvd_wire_ask(pair[1], &r, &uvd_wire_no_fds), -EPIPE);
}
END_TEST

/* Of random messages, the receiver accepts only those that the table allows. */
START_TEST(test_random_messages)
{
	struct uvd_wire_request r;

	srandom(1);
	for (int n = 0; n < 20000; n++) {
		enum uvd_wire_kind kind = random() % UVD_WIRE_KINDS;
		int err;

		memset(&r, 0, sizeof(r));
		r.version = random() % 20 ? UVD_WIRE_VERSION : random();
		r.op = random() % (UVD_WIRE_OPS + 2);
		for (int i = random() % 4; i > 0; i--)
			((unsigned char *)&r)[8 + random() % (sizeof(r) - 8)] = random();
		err = sent(&r, kind);
		ck_assert(!err || err == -EPROTO);
		if (!err)
			ck_assert(got.version == UVD_WIRE_VERSION && got.op > UVD_WIRE_NONE && got.op < UVD_WIRE_OPS &&
				  !got.pad);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("wire");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_good_request_arrives);
	tcase_add_test(t, test_truncated_and_oversized_requests_are_refused);
	tcase_add_test(t, test_unknown_operations_and_versions_are_refused);
	tcase_add_test(t, test_operation_of_another_socket_is_refused);
	tcase_add_test(t, test_what_an_operation_does_not_use_must_be_0);
	tcase_add_test(t, test_data_of_a_driver_fit_into_the_registration);
	tcase_add_test(t, test_only_the_request_of_counters_has_counters);
	tcase_add_test(t, test_restart_is_a_bare_request_to_the_broker_itself);
	tcase_add_test(t, test_device_comes_whole_and_with_its_operation_only);
	tcase_add_test(t, test_answer_that_finds_no_room_is_eagain);
	tcase_add_test(t, test_name_must_end);
	tcase_add_test(t, test_descriptors_that_nobody_wants_are_closed);
	tcase_add_test(t, test_more_descriptors_than_any_message_has_are_refused);
	tcase_add_test(t, test_answer_to_something_else_is_refused);
	tcase_add_test(t, test_other_side_gone_is_epipe);
	tcase_add_test(t, test_random_messages);
	return run_suite("wire", t);
}
