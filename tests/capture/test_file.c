/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The file of a capture: all that was told and fits, whole packets, and a count of what did not fit. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/capture.h"
#include "../suite.h"

enum { HEADER = 24, PACKET_HEADER = 16, THREADS = 4, EACH = 2000, PAYLOAD = 1000 };

/* A frame goes into the file as it is. */
static const struct uvd_capture_message frame = { .kind = UVD_CAPTURE_FRAME };

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Calls fn, if it is not NULL, for each packet of a file of whole packets. Returns their number. */
static uint64_t each_packet(const uint8_t *file, size_t size, void (*fn)(const uint8_t *packet, uint32_t len))
{
	uint64_t packets = 0;
	size_t at = HEADER;

	ck_assert_uint_ge(size, HEADER);
	ck_assert_uint_eq(word_at(file), 0xa1b23c4d);
	ck_assert_uint_eq(word_at(file + 20), 1); /* Ethernet */
	while (at < size) {
		const uint32_t len = word_at(file + at + 8);

		ck_assert_uint_lt(word_at(file + at + 4), 1000000000);
		ck_assert_uint_eq(len, word_at(file + at + 12));
		at += PACKET_HEADER + len;
		ck_assert_uint_le(at, size);
		if (fn)
			fn(file + at - len, len);
		packets++;
	}
	return packets;
}

static void *tell_in_order(void *arg)
{
	static atomic_int next_thread;
	const int thread = next_thread++;
	uint8_t bytes[64] = { thread };

	for (int i = 0; i < EACH; i++) {
		memcpy(bytes + 1, &i, sizeof(i));
		uvd_capture_add(arg, &frame, bytes, sizeof(bytes));
	}
	return NULL;
}

static int next_of[THREADS];

static void is_in_order(const uint8_t *packet, uint32_t len)
{
	int i;

	ck_assert_uint_eq(len, 64);
	memcpy(&i, packet + 1, sizeof(i));
	ck_assert_int_eq(i, next_of[packet[0]]++);
}

START_TEST(test_all_that_threads_tell_is_in_the_file_in_their_order)
{
	int fd = memfd_create("capture", 0), err;
	struct uvd_capture *c = uvd_capture_new(dup(fd), 0, &err);
	struct uvd_capture_result result;
	pthread_t threads[THREADS];
	uint8_t *file;
	off_t size;

	ck_assert_ptr_nonnull(c);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, tell_in_order, c), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	result = uvd_capture_end(c);
	uvd_capture_add(c, &frame, "late", 4); /* is ignored */
	uvd_capture_free(c);
	ck_assert_int_eq(result.err, 0);
	ck_assert_uint_eq(result.lost, 0);
	ck_assert_uint_eq(result.packets, THREADS * EACH);
	size = lseek(fd, 0, SEEK_END);
	file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_uint_eq(each_packet(file, size, is_in_order), THREADS * EACH);
	munmap(file, size);
	close(fd);
}
END_TEST

struct reader {
	int fd;
	uint8_t *bytes;
	size_t size;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	ssize_t n;

	while ((n = read(r->fd, r->bytes + r->size, 65536)) > 0)
		r->size += n;
	return NULL;
}

START_TEST(test_nobody_waits_for_a_file_that_is_slow_and_what_is_lost_is_counted)
{
	enum { TOLD = 2000 };
	struct reader reader = { .bytes = malloc((size_t)TOLD * 2 * PAYLOAD) };
	struct uvd_capture_result result;
	const uint8_t bytes[PAYLOAD] = {};
	struct uvd_capture *c;
	pthread_t thread;
	int ends[2], err;

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
	c = uvd_capture_new(ends[1], 8192, &err);
	ck_assert_ptr_nonnull(c);
	/* The pipe and both buffers take fewer, as nobody reads. */
	for (int i = 0; i < TOLD; i++)
		uvd_capture_add(c, &frame, bytes, sizeof(bytes));
	reader.fd = ends[0];
	ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &reader), 0);
	result = uvd_capture_end(c);
	uvd_capture_free(c);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result.err, 0);
	ck_assert_uint_gt(result.lost, TOLD / 2);
	ck_assert_uint_gt(result.packets, 0);
	ck_assert_uint_eq(result.packets + result.lost, TOLD);
	ck_assert_uint_eq(each_packet(reader.bytes, reader.size, NULL), result.packets);
	free(reader.bytes);
	close(ends[0]);
}
END_TEST

START_TEST(test_each_packet_of_a_message_that_is_lost_counts)
{
	const struct uvd_capture_message m = { .opcode = IBV_WR_SEND, .type = IBV_QPT_RC, .mtu = 1024, .length = 3000 };
	int err, fd = memfd_create("capture", 0);
	struct uvd_capture *c = uvd_capture_new(fd, 2048, &err);
	const uint8_t bytes[3000] = {};
	struct uvd_capture_result result;

	ck_assert_ptr_nonnull(c);
	uvd_capture_add(c, &m, bytes, sizeof(bytes));
	result = uvd_capture_end(c);
	uvd_capture_free(c);
	ck_assert_uint_eq(result.lost, 3);
	ck_assert_uint_eq(result.packets, 0);
}
END_TEST

START_TEST(test_a_packet_that_no_network_has_is_not_made)
{
	int err, fd = memfd_create("capture", 0);
	struct uvd_capture *c = uvd_capture_new(fd, 0, &err);
	uint8_t *bytes = calloc(1, 100000);
	struct uvd_capture_result result;

	ck_assert_ptr_nonnull(c);
	uvd_capture_add(c, &frame, bytes, 100000);
	result = uvd_capture_end(c);
	uvd_capture_free(c);
	ck_assert_uint_eq(result.lost, 1);
	free(bytes);
}
END_TEST

START_TEST(test_a_write_that_fails_is_told)
{
	int err, ends[2], full = open("/dev/full", O_WRONLY);
	struct uvd_capture_result result;
	struct uvd_capture *c;

	ck_assert_ptr_null(uvd_capture_new(full, 0, &err));
	ck_assert_int_eq(err, -ENOSPC);
	close(full);

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(ends), 0);
	c = uvd_capture_new(ends[1], 0, &err);
	ck_assert_ptr_nonnull(c);
	close(ends[0]);
	uvd_capture_add(c, &frame, "nobody reads this", 17);
	result = uvd_capture_end(c);
	uvd_capture_free(c);
	ck_assert_int_eq(result.err, -EPIPE);
	ck_assert_uint_eq(result.packets, 0);
}
END_TEST

START_TEST(test_a_full_file_system_leaves_whole_packets)
{
	const struct rlimit limit = { 100000, RLIM_INFINITY };
	const uint8_t bytes[PAYLOAD] = {};
	int err, fd = memfd_create("capture", 0);
	struct uvd_capture *c = uvd_capture_new(dup(fd), 0, &err);
	struct uvd_capture_result result;
	uint8_t *file;
	off_t size;

	ck_assert_ptr_nonnull(c);
	/* Like a full file system: a write writes what fits, and the next one fails. */
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 3000; i++)
		uvd_capture_add(c, &frame, bytes, sizeof(bytes));
	result = uvd_capture_end(c);
	uvd_capture_free(c);
	ck_assert_int_eq(result.err, -EFBIG);
	ck_assert_uint_eq(result.lost, 0);
	size = lseek(fd, 0, SEEK_END);
	file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_uint_eq(each_packet(file, size, NULL), result.packets);
	munmap(file, size);
	close(fd);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("file");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_all_that_threads_tell_is_in_the_file_in_their_order);
	tcase_add_test(t, test_nobody_waits_for_a_file_that_is_slow_and_what_is_lost_is_counted);
	tcase_add_test(t, test_each_packet_of_a_message_that_is_lost_counts);
	tcase_add_test(t, test_a_packet_that_no_network_has_is_not_made);
	tcase_add_test(t, test_a_write_that_fails_is_told);
	tcase_add_test(t, test_a_full_file_system_leaves_whole_packets);
	return run_suite("capture file", t);
}
