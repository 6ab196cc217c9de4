/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Event files: completion channels and the async event file. */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include "abi.h"

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	signals += sig > 0;
}

static void on_signal(int sig, int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	sigaction(sig, &action, NULL);
}

START_TEST(test_event_01_read_of_a_closed_empty_channel_is_eio)
{
	struct bed bed = make_event_bed(16);
	char event[8];

	close_node(bed.fd);
	ck_assert_int_ne(poll_events(bed.channel, 2000), 0);
	expect_choice("event-01", read_event(bed.channel, event, sizeof(event)), EIO);
}
END_TEST

START_TEST(test_event_02_empty_nonblocking_read_is_eagain)
{
	struct bed bed = make_event_bed(16);
	char event[16];

	set_nonblock(bed.channel);
	set_nonblock(bed.async_fd);
	expect(read_event(bed.channel, event, sizeof(event)), EAGAIN);
	expect(read_event(bed.async_fd, event, sizeof(event)), EAGAIN);
}
END_TEST

START_TEST(test_event_02_signal_ends_a_blocking_read)
{
	struct itimerval soon = { .it_value.tv_usec = 200000, .it_interval.tv_usec = 200000 };
	int async_fd, channel, fd = open_context(&async_fd);
	char event[16];

	expect_ok(uv_create_channel(fd, UV_WRITE, &channel));
	on_signal(SIGALRM, 0);
	setitimer(ITIMER_REAL, &soon, NULL);
	expect(read_event(channel, event, sizeof(event)), EINTR);
	setitimer(ITIMER_REAL, &soon, NULL);
	expect(read_event(async_fd, event, sizeof(event)), EINTR);
}
END_TEST

START_TEST(test_event_03_short_read_is_einval_and_keeps_the_event)
{
	struct bed bed = make_event_bed(16);
	struct ib_uverbs_comp_event_desc event;

	set_nonblock(bed.channel);
	expect(read_event(bed.channel, &event, 4), EAGAIN); /* the size is checked only if there is an event */
	make_event(&bed);
	ck_assert_int_ne(poll_events(bed.channel, 2000), 0);
	expect_choice("event-03", read_event(bed.channel, &event, 4), EINVAL);
	if (choice("event-03"))
		return;
	ck_assert_int_eq(read_event(bed.channel, &event, sizeof(event)), sizeof(event));
}
END_TEST

START_TEST(test_event_04_one_event_a_read)
{
	struct bed bed = make_event_bed(64);
	uint64_t events[8];

	for (int i = 0; i < 3; i++)
		make_event(&bed);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_ne(poll_events(bed.channel, 2000), 0);
		ck_assert_int_eq(read_event(bed.channel, events, sizeof(events)), 8);
		ck_assert_uint_eq(events[0], 0x1111222233334444);
	}
	set_nonblock(bed.channel);
	expect(read_event(bed.channel, events, sizeof(events)), EAGAIN);
}
END_TEST

START_TEST(test_event_04_event_whose_copy_faults_is_gone_and_counted)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct bed bed = make_event_bed(16);
	char event[8];

	make_event(&bed);
	ck_assert_int_ne(poll_events(bed.channel, 2000), 0);
	expect(read_event(bed.channel, uv_guard(NULL, 4), 8), EFAULT);
	set_nonblock(bed.channel);
	expect(read_event(bed.channel, event, sizeof(event)), EAGAIN);
	expect_ok(uv_destroy_qp(bed.fd, UV_WRITE, bed.qp.handle, NULL));
	expect_ok(uv_destroy_cq(bed.fd, UV_WRITE, bed.cq, &resp));
	ck_assert_uint_eq(resp.comp_events_reported, 1);
}
END_TEST

START_TEST(test_event_05_poll_tells_queued_empty_and_closed)
{
	struct bed bed = make_event_bed(16);
	char event[8];

	ck_assert_int_eq(poll_events(bed.channel, 0), 0);
	ck_assert_int_eq(poll_events(bed.async_fd, 0), 0);
	make_event(&bed);
	ck_assert_int_eq(poll_events(bed.channel, 2000), POLLIN | POLLRDNORM);
	ck_assert_int_eq(read_event(bed.channel, event, sizeof(event)), 8);
	ck_assert_int_eq(poll_events(bed.channel, 0), 0);
	close_node(bed.fd);
	ck_assert_int_eq(!!(poll_events(bed.channel, 2000) & (choice("event-01") ? POLLHUP : POLLERR)), 1);
}
END_TEST

START_TEST(test_event_06_sigio_on_an_event_and_on_closing)
{
	struct bed bed = make_event_bed(16);

	on_signal(SIGIO, SA_RESTART);
	fcntl(bed.channel, F_SETOWN, getpid());
	fcntl(bed.channel, F_SETFL, O_ASYNC | O_NONBLOCK);
	ck_assert_int_eq(signals, 0);
	make_event(&bed);
	for (int i = 0; i < 200 && !signals; i++)
		usleep(10000);
	ck_assert_int_ge(signals, 1);
	signals = 0;
	close_node(bed.fd);
	for (int i = 0; i < 200 && !signals; i++)
		usleep(10000);
	ck_assert_int_ge(signals, 1);
}
END_TEST

/* 700 events exceed what a socket buffers by default. */
START_TEST(test_event_07_events_have_no_limit)
{
	const int events = choice("event-07") ? -choice("event-07")->err : 700;
	struct bed bed = make_event_bed(1023);
	struct ib_uverbs_destroy_cq_resp resp;
	char event[8];

	for (int i = 0; i < events; i++)
		make_event(&bed);
	for (int i = 0; i < events; i++) {
		ck_assert_msg(poll_events(bed.channel, 2000), "event %d of %d is missing", i, events);
		ck_assert_int_eq(read_event(bed.channel, event, sizeof(event)), 8);
	}
	ck_assert_int_eq(poll_events(bed.channel, 0), 0);
	expect_ok(uv_destroy_qp(bed.fd, UV_WRITE, bed.qp.handle, NULL));
	expect_ok(uv_destroy_cq(bed.fd, UV_WRITE, bed.cq, &resp));
	ck_assert_uint_eq(resp.comp_events_reported, events);
}
END_TEST

/* Closing the uverbs fd drops an unread event. */
START_TEST(test_event_07_closing_drops_what_is_queued)
{
	struct bed bed = make_event_bed(16);
	char event[8];

	make_event(&bed);
	ck_assert_int_ne(poll_events(bed.channel, 2000), 0);
	close_node(bed.fd);
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = bed.channel }, 1, 20000), 1); /* POLLERR or POLLHUP */
	expect_choice("event-01", read_event(bed.channel, event, sizeof(event)), EIO);
}
END_TEST

/* A CQ overflows. The event's element is the CQ's user handle, whichever front made the CQ. */
START_TEST(test_event_08_async_event_carries_the_user_handle)
{
	struct uv_cq_attr attr = { .user_handle = 0xfeedfacecafe, .cqe = 1, .channel = -1, .event_fd = -1 };
	struct ib_uverbs_async_event_desc event = {};
	struct uv_qp_attr qp_attr;
	struct bed bed = {};
	uint32_t cqe;

	bed.fd = open_context(&bed.async_fd);
	expect_ok(uv_alloc_pd(bed.fd, UV_WRITE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, _i, &attr, &bed.cq, &cqe));
	qp_attr = uv_qp_attr(bed.pd, bed.cq);
	expect_ok(uv_create_qp(bed.fd, _i, &qp_attr, &bed.qp));
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	flush_to_error(&bed, cqe + 1);
	ck_assert_int_ne(poll_events(bed.async_fd, 2000), 0);
	ck_assert_int_eq(read_event(bed.async_fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 0xfeedfacecafe);
	ck_assert_uint_eq(event.event_type, IBV_EVENT_CQ_ERR);
}
END_TEST

/* The event file named at creation gets the object's events; the default event file does not. */
START_TEST(test_event_08_named_event_file_is_used)
{
	struct uv_cq_attr attr = { .user_handle = 0xabcdef, .cqe = 1, .channel = -1 };
	struct ib_uverbs_async_event_desc event = {};
	struct uv_qp_attr qp_attr;
	struct bed bed = {};
	uint32_t cqe;

	bed.fd = open_context(&bed.async_fd);
	expect_ok(uv_alloc_async_fd(bed.fd, &attr.event_fd));
	expect_ok(uv_alloc_pd(bed.fd, UV_WRITE, &bed.pd));
	expect_ok(uv_create_cq(bed.fd, UV_METHOD, &attr, &bed.cq, &cqe));
	qp_attr = uv_qp_attr(bed.pd, bed.cq);
	expect_ok(uv_create_qp(bed.fd, UV_WRITE, &qp_attr, &bed.qp));
	expect_ok(qp_to_init(bed.fd, bed.qp.handle));
	flush_to_error(&bed, cqe + 1);
	ck_assert_int_ne(poll_events(attr.event_fd, 2000), 0);
	ck_assert_int_eq(read_event(attr.event_fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.element, 0xabcdef);
	ck_assert_int_eq(poll_events(bed.async_fd, 0), 0);
}
END_TEST

START_TEST(test_event_09_async_file_outlives_the_uverbs_file)
{
	int async_fd, fd = open_context(&async_fd);
	char event[16];

	set_nonblock(async_fd);
	uv_close(fd);
	usleep(200000);
	expect_choice("event-09", read_event(async_fd, event, sizeof(event)), EAGAIN);
}
END_TEST

TCase *case_event(void)
{
	TCase *tc = tcase_create("event");

	tcase_add_test(tc, test_event_01_read_of_a_closed_empty_channel_is_eio);
	tcase_add_test(tc, test_event_02_empty_nonblocking_read_is_eagain);
	tcase_add_test(tc, test_event_02_signal_ends_a_blocking_read);
	tcase_add_test(tc, test_event_03_short_read_is_einval_and_keeps_the_event);
	tcase_add_test(tc, test_event_04_one_event_a_read);
	tcase_add_test(tc, test_event_04_event_whose_copy_faults_is_gone_and_counted);
	tcase_add_test(tc, test_event_05_poll_tells_queued_empty_and_closed);
	tcase_add_test(tc, test_event_06_sigio_on_an_event_and_on_closing);
	tcase_add_test(tc, test_event_07_events_have_no_limit);
	tcase_add_test(tc, test_event_07_closing_drops_what_is_queued);
	tcase_add_loop_test(tc, test_event_08_async_event_carries_the_user_handle, 0, UV_FRONTS);
	tcase_add_test(tc, test_event_08_named_event_file_is_used);
	tcase_add_test(tc, test_event_09_async_file_outlives_the_uverbs_file);
	return tc;
}
