/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages with whatever fields: what the requests of a client can make of them, and what they cannot. No packet is longer than its
 * room, and the file has whole packets, all of the bytes, and no others.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/packet.h"
#include "../suite.h"

enum {
	MESSAGES = 20000,
	CHUNK = 256 << 10,
	CANARY = 64,
	ROOM = UVD_PACKET_HEADERS + UVD_PACKET_MOST_PAYLOAD + UVD_PACKET_TRAILER
};

static uint8_t bytes[CHUNK], packet[ROOM + CANARY];

/* Of each value the ends are as likely as the middle. */
static uint32_t any32(void)
{
	static const uint32_t ends[] = { 0, 1, 2, 3, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, UINT32_MAX };
	const unsigned int i = random() % 16;

	return i < sizeof(ends) / sizeof(ends[0]) ? ends[i] : (uint32_t)random() << 1 ^ (uint32_t)random();
}

static union ibv_gid any_gid(void)
{
	union ibv_gid gid;

	for (size_t i = 0; i < sizeof(gid.raw); i++)
		gid.raw[i] = random();
	/* A group, IPv4, a group of IPv4, or none of these. */
	if (random() % 4 == 0)
		gid.raw[0] = 0xff;
	if (random() % 2) {
		memset(gid.raw, 0, 10);
		gid.raw[10] = gid.raw[11] = 0xff;
		gid.raw[12] = random() % 2 ? 0xe0 : gid.raw[12];
	}
	return gid;
}

static struct uvd_capture_message any_message(void)
{
	struct uvd_capture_message m = {
		.kind = random() % (UVD_CAPTURE_FRAME + 1),
		.type = random() % 12,
		.opcode = random() % 16,
		.from = any_gid(),
		.to = any_gid(),
		.flow_label = any32(),
		.traffic_class = random(),
		.hop_limit = random(),
		.pkey = random(),
		.from_qpn = any32(),
		.to_qpn = any32(),
		.psn = any32(),
		/* 128 is that of a QP without a path MTU. */
		.mtu = random() % 8 ? 128u << random() % 6 : 0,
		.length = any32(),
		.offset = any32(),
		.qkey = any32(),
		.srqn = any32(),
		.remote_addr = any32(),
		.rkey = any32(),
		.compare_add = any32(),
		.swap = any32(),
		.value = any32(),
		.imm_data = any32(),
		.invalidate_rkey = any32(),
		.solicited = random() % 2,
		.syndrome = random(),
		.msn = any32(),
	};

	return m;
}

static uint32_t any_len(void)
{
	static const uint32_t ends[] = {
		0, 1, 3, 127, 128, 129, 4095, 4096, 4097, 32767, 32768, 32769, CHUNK - 1, CHUNK
	};
	const unsigned int i = random() % 20;

	return i < sizeof(ends) / sizeof(ends[0]) ? ends[i] : random() % CHUNK;
}

static void expect_canary(void)
{
	static const uint8_t intact[CANARY] = { [0 ... CANARY - 1] = 0xca };

	ck_assert_mem_eq(packet + ROOM, intact, CANARY);
}

START_TEST(test_no_packet_is_longer_than_its_room)
{
	memset(packet, 0xca, sizeof(packet));
	srandom(1);
	for (int i = 0; i < MESSAGES; i++) {
		const struct uvd_capture_message m = any_message();
		const uint32_t len = any_len(), payload = uvd_packet_payload(&m, len), num = uvd_packets_of(&m, len);

		/* capture.c counts longer ones as lost. */
		if (payload > UVD_PACKET_MOST_PAYLOAD)
			continue;
		ck_assert_uint_ge((uint64_t)num * payload, len);
		for (uint32_t n = 0; n < num; n += 1 + random() % 16) {
			const size_t size = uvd_packet_make(packet, &m, bytes, len, n);

			ck_assert_uint_le(size, UVD_PACKET_HEADERS + payload + UVD_PACKET_TRAILER);
		}
		expect_canary();
	}
}
END_TEST

/* The buffers hold a few messages, so most do not fit, and some fit exactly. */
START_TEST(test_file_has_whole_packets_whatever_was_told)
{
	const int fd = memfd_create("pcap", MFD_CLOEXEC), copy = dup(fd);
	struct uvd_capture_result result;
	struct uvd_capture *c;
	uint64_t told = 0, found = 0;
	struct stat st;
	uint8_t *file;
	int err;

	srandom(2);
	c = uvd_capture_new(fd, CHUNK + 4096, &err);
	ck_assert_ptr_nonnull(c);
	for (int i = 0; i < MESSAGES / 10; i++) {
		const struct uvd_capture_message m = any_message();
		const uint32_t len = any_len();

		told += uvd_packets_of(&m, len);
		uvd_capture_add(c, &m, bytes, len);
	}
	result = uvd_capture_end(c);
	uvd_capture_free(c);
	ck_assert_int_eq(result.err, 0);
	ck_assert_uint_eq(result.packets + result.lost, told);
	ck_assert_int_eq(fstat(copy, &st), 0);
	file = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, copy, 0);
	/* A header of 24 bytes, and one of 16 before each packet, whose third word is the packet's length. */
	for (off_t at = 24; at < st.st_size; found++) {
		uint32_t head[4];

		ck_assert_int_le(at + (off_t)sizeof(head), st.st_size);
		memcpy(head, file + at, sizeof(head));
		ck_assert_uint_eq(head[2], head[3]);
		ck_assert_uint_le(head[2], ROOM);
		at += sizeof(head) + head[2];
		ck_assert_int_le(at, st.st_size);
	}
	ck_assert_uint_eq(found, result.packets);
	munmap(file, st.st_size);
	close(copy);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("hostile");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_no_packet_is_longer_than_its_room);
	tcase_add_test(t, test_file_has_whole_packets_whatever_was_told);
	return run_suite("capture: hostile messages", t);
}
