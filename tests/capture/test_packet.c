/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages become the packets that RoCE v2 has for them. The expected bytes are scapy's. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

#include "capture/packet.h"
#include "../suite.h"

enum { ETH = 14, IPV4 = 20, UDP = 8, BTH = ETH + IPV4 + UDP, AFTER_BTH = BTH + 12 };

static uint8_t packet[UVD_PACKET_HEADERS + 4096 + UVD_PACKET_TRAILER];

static union ibv_gid gid(const char *text)
{
	union ibv_gid gid;

	ck_assert_int_eq(inet_pton(AF_INET6, text, &gid), 1);
	return gid;
}

static struct uvd_capture_message message(enum ibv_wr_opcode opcode, uint32_t length)
{
	return (struct uvd_capture_message){ .kind = UVD_CAPTURE_REQUEST,
					     .type = IBV_QPT_RC,
					     .opcode = opcode,
					     .from = gid("::ffff:192.0.2.1"),
					     .to = gid("::ffff:192.0.2.2"),
					     .traffic_class = 0x20,
					     .hop_limit = 7,
					     .pkey = 0xffff,
					     .from_qpn = 0x11,
					     .to_qpn = 0x22,
					     .psn = 0xfffffe,
					     .mtu = 1024,
					     .length = length };
}

static uint32_t be32_at(unsigned int at)
{
	uint32_t value;

	memcpy(&value, packet + at, sizeof(value));
	return be32toh(value);
}

static uint64_t be64_at(unsigned int at)
{
	return (uint64_t)be32_at(at) << 32 | be32_at(at + 4);
}

static void ck_assert_packet(const struct uvd_capture_message *m, const char *bytes, uint32_t len,
			     const uint8_t *expected, size_t size)
{
	ck_assert_uint_eq(uvd_packets_of(m, len), 1);
	ck_assert_uint_eq(uvd_packet_make(packet, m, (const uint8_t *)bytes, len, 0), size);
	ck_assert_mem_eq(packet, expected, size);
}

START_TEST(test_a_send_and_its_acknowledgement_are_byte_for_byte_those_of_scapy)
{
	static const uint8_t send[] = {
		0x02, 0x00, 0xc0, 0x00, 0x02, 0x02, 0x02, 0x00, 0xc0, 0x00, 0x02, 0x01, 0x08, 0x00, 0x45, 0x20, 0x00,
		0x34, 0x00, 0x00, 0x40, 0x00, 0x07, 0x11, 0xef, 0x95, 0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00, 0x02, 0x02,
		0xc0, 0x33, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00, 0x04, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x22, 0x80,
		0xff, 0xff, 0xfe, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0xc7, 0xa5, 0x4e, 0xd5,
	};
	static const uint8_t ack[] = {
		0x02, 0x00, 0xc0, 0x00, 0x02, 0x01, 0x02, 0x00, 0xc0, 0x00, 0x02, 0x02, 0x08, 0x00, 0x45, 0x20,
		0x00, 0x30, 0x00, 0x00, 0x40, 0x00, 0x07, 0x11, 0xef, 0x99, 0xc0, 0x00, 0x02, 0x02, 0xc0, 0x00,
		0x02, 0x01, 0xc0, 0x33, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x40, 0xff, 0xff, 0x00, 0x00,
		0x00, 0x11, 0x00, 0xff, 0xff, 0xfe, 0x1f, 0x00, 0x00, 0x01, 0x3c, 0xb5, 0x75, 0x0e,
	};
	struct uvd_capture_message m = message(IBV_WR_SEND, 5);
	const union ibv_gid from = m.from;

	ck_assert_packet(&m, "hello", 5, send, sizeof(send));
	m.kind = UVD_CAPTURE_ACK;
	m.from = m.to;
	m.to = from;
	m.from_qpn = 0x22;
	m.to_qpn = 0x11;
	m.syndrome = UVD_AETH_ACK;
	m.msn = 1;
	ck_assert_packet(&m, "", 0, ack, sizeof(ack));
}
END_TEST

/* Makes packet i, and checks its opcode and PSN. Returns its length. */
static size_t make(const struct uvd_capture_message *m, uint32_t len, uint32_t i, uint8_t opcode, uint32_t psn)
{
	static const uint8_t bytes[4096];
	const size_t size = uvd_packet_make(packet, m, bytes, len, i);

	ck_assert_uint_eq(packet[BTH], opcode);
	ck_assert_uint_eq(be32_at(BTH + 8) & 0xffffff, psn);
	return size;
}

START_TEST(test_a_message_is_cut_into_packets_of_the_path_mtu_whose_numbers_wrap)
{
	struct uvd_capture_message m = message(IBV_WR_RDMA_WRITE_WITH_IMM, 3 * 1024 + 1);

	m.remote_addr = UINT64_C(0x123456789abcdef0);
	m.rkey = 0x55;
	m.imm_data = htobe32(0xcafe);
	ck_assert_uint_eq(uvd_packets_of(&m, 2048), 2);
	ck_assert_uint_eq(make(&m, 2048, 0, 0x06, 0xfffffe), AFTER_BTH + 16 + 1024 + 4);
	ck_assert_uint_eq(be64_at(AFTER_BTH), m.remote_addr);
	ck_assert_uint_eq(be32_at(AFTER_BTH + 8), 0x55);
	ck_assert_uint_eq(be32_at(AFTER_BTH + 12), 3 * 1024 + 1);
	ck_assert_uint_eq(make(&m, 2048, 1, 0x07, 0xffffff), AFTER_BTH + 1024 + 4);
	ck_assert_uint_eq(packet[BTH + 8] & 0x80, 0);
	/* The rest is told by another call. */
	m.offset = 2048;
	ck_assert_uint_eq(uvd_packets_of(&m, 1025), 2);
	make(&m, 1025, 0, 0x07, 0);
	ck_assert_uint_eq(make(&m, 1025, 1, 0x09, 1), AFTER_BTH + 4 + 1 + 3 + 4);
	ck_assert_uint_eq(be32_at(AFTER_BTH), 0xcafe);
	ck_assert_uint_eq(packet[BTH + 1] >> 4 & 3, 3); /* bytes of padding */
	ck_assert_uint_eq(packet[BTH + 8] & 0x80, 0x80); /* asks for an acknowledgement */
}
END_TEST

START_TEST(test_each_operation_has_its_opcodes)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode opcode;
		uint32_t length;
		uint8_t expected[3];
	} rows[] = {
		{ IBV_QPT_RC, IBV_WR_SEND, 0, { 0x04 } },
		{ IBV_QPT_RC, IBV_WR_SEND, 3000, { 0x00, 0x01, 0x02 } },
		{ IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, 1, { 0x05 } },
		{ IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, 2048, { 0x00, 0x03 } },
		{ IBV_QPT_RC, IBV_WR_SEND_WITH_INV, 1024, { 0x17 } },
		{ IBV_QPT_RC, IBV_WR_SEND_WITH_INV, 1025, { 0x00, 0x16 } },
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, 1024, { 0x0a } },
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, 3072, { 0x06, 0x07, 0x08 } },
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, 0, { 0x0b } },
		{ IBV_QPT_RC, IBV_WR_ATOMIC_WRITE, 8, { 0x1d } },
		{ IBV_QPT_UC, IBV_WR_SEND, 3000, { 0x20, 0x21, 0x22 } },
		{ IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, 2000, { 0x26, 0x29 } },
		{ IBV_QPT_UD, IBV_WR_SEND, 2048, { 0x64 } },
		{ IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, 9, { 0x65 } },
		{ IBV_QPT_XRC_SEND, IBV_WR_SEND, 2000, { 0xa0, 0xa2 } },
	};

	for (unsigned int r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct uvd_capture_message m = message(rows[r].opcode, rows[r].length);
		uint32_t num = 0;

		m.type = rows[r].type;
		m.psn = 5;
		while (num < 3 && (!num || rows[r].expected[num])) {
			make(&m, m.length, num, rows[r].expected[num], 5 + num);
			num++;
		}
		ck_assert_uint_eq(uvd_packets_of(&m, m.length), num);
	}
}
END_TEST

START_TEST(test_a_read_asks_for_its_length_and_its_answer_has_an_aeth_at_both_ends)
{
	struct uvd_capture_message m = message(IBV_WR_RDMA_READ, 3000);

	ck_assert_uint_eq(make(&m, 0, 0, 0x0c, 0xfffffe), AFTER_BTH + 16 + 4);
	ck_assert_uint_eq(be32_at(AFTER_BTH + 12), 3000);
	m.kind = UVD_CAPTURE_READ_RESPONSE;
	m.syndrome = UVD_AETH_ACK;
	m.msn = 9;
	ck_assert_uint_eq(make(&m, 3000, 0, 0x0d, 0xfffffe), AFTER_BTH + 4 + 1024 + 4);
	ck_assert_uint_eq(be32_at(AFTER_BTH), 0x1f000009);
	ck_assert_uint_eq(make(&m, 3000, 1, 0x0e, 0xffffff), AFTER_BTH + 1024 + 4);
	ck_assert_uint_eq(make(&m, 3000, 2, 0x0f, 0), AFTER_BTH + 4 + 952 + 4);
	m.length = 0;
	make(&m, 0, 0, 0x10, 0xfffffe);
}
END_TEST

START_TEST(test_atomics_have_their_operands_and_the_answer_the_old_value)
{
	struct uvd_capture_message m = message(IBV_WR_ATOMIC_CMP_AND_SWP, 8);

	m.compare_add = 3;
	m.swap = 4;
	ck_assert_uint_eq(make(&m, 0, 0, 0x13, 0xfffffe), AFTER_BTH + 28 + 4);
	ck_assert_uint_eq(be64_at(AFTER_BTH + 12), 4);
	ck_assert_uint_eq(be64_at(AFTER_BTH + 20), 3);
	m.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	make(&m, 0, 0, 0x14, 0xfffffe);
	ck_assert_uint_eq(be64_at(AFTER_BTH + 12), 3);
	m.kind = UVD_CAPTURE_ATOMIC_RESPONSE;
	m.value = 77;
	ck_assert_uint_eq(make(&m, 0, 0, 0x12, 0xfffffe), AFTER_BTH + 12 + 4);
	ck_assert_uint_eq(be64_at(AFTER_BTH + 4), 77);
}
END_TEST

START_TEST(test_datagrams_and_xrc_name_what_they_are_for)
{
	struct uvd_capture_message m = message(IBV_WR_SEND, 4);

	m.type = IBV_QPT_UD;
	m.qkey = 0x11111111;
	ck_assert_uint_eq(make(&m, 4, 0, 0x64, 0xfffffe), AFTER_BTH + 8 + 4 + 4);
	ck_assert_uint_eq(be32_at(AFTER_BTH), 0x11111111);
	ck_assert_uint_eq(be32_at(AFTER_BTH + 4), 0x11);
	m.type = IBV_QPT_XRC_SEND;
	m.srqn = 0x99;
	ck_assert_uint_eq(make(&m, 4, 0, 0xa4, 0xfffffe), AFTER_BTH + 4 + 4 + 4);
	ck_assert_uint_eq(be32_at(AFTER_BTH), 0x99);
}
END_TEST

/* Adds up the 16-bit words of the bytes, as RFC 1071 does. */
static uint32_t ones_sum(uint32_t sum, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

START_TEST(test_other_gids_are_ipv6_with_a_checksum)
{
	struct uvd_capture_message m = message(IBV_WR_SEND, 6);
	uint8_t masked[8 + 128];
	size_t size, udp;
	uint32_t crc;

	m.to = gid("fe80::2:c903:ab:cdef");
	m.flow_label = 0x12345;
	size = uvd_packet_make(packet, &m, (const uint8_t *)"sixsix", 6, 0);
	udp = size - ETH - 40;
	ck_assert_uint_eq(size, ETH + 40 + UDP + 12 + 8 + 4);
	ck_assert_uint_eq(be32_at(ETH), 0x62012345);
	ck_assert_mem_eq(packet + ETH + 24, &m.to, 16);
	ck_assert_uint_eq(ones_sum(ones_sum(17 + udp, packet + ETH + 8, 32), packet + ETH + 40, udp), 0xffff);
	/* The ICRC, with all that it leaves out as ones. */
	memset(masked, 0xff, 8);
	memcpy(masked + 8, packet + ETH, size - ETH);
	masked[8] |= 0xf;
	masked[9] = masked[10] = masked[11] = masked[8 + 7] = masked[8 + 46] = masked[8 + 47] = masked[8 + 52] = 0xff;
	memcpy(&crc, packet + size - 4, 4);
	ck_assert_uint_eq(le32toh(crc), uvd_crc32(0, masked, 8 + size - ETH - 4));
}
END_TEST

START_TEST(test_the_crc_is_that_of_ethernet)
{
	ck_assert_uint_eq(uvd_crc32(0, "123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(uvd_crc32(uvd_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}
END_TEST

START_TEST(test_groups_have_the_ethernet_addresses_of_groups)
{
	static const uint8_t ipv6[] = { 0x33, 0x33, 0, 0, 0, 5 }, ipv4[] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 };
	struct uvd_capture_message m = message(IBV_WR_SEND, 0);

	m.to = gid("ff0e::5");
	uvd_packet_make(packet, &m, (const uint8_t *)"", 0, 0);
	ck_assert_mem_eq(packet, ipv6, 6);
	m.to = gid("::ffff:225.129.2.3");
	uvd_packet_make(packet, &m, (const uint8_t *)"", 0, 0);
	ck_assert_mem_eq(packet, ipv4, 6);
}
END_TEST

START_TEST(test_a_frame_stays_what_it_is)
{
	struct uvd_capture_message m = { .kind = UVD_CAPTURE_FRAME };
	const char *frame = "an Ethernet frame that a raw QP sends";

	ck_assert_uint_eq(uvd_packets_of(&m, strlen(frame)), 1);
	ck_assert_uint_eq(uvd_packet_make(packet, &m, (const uint8_t *)frame, strlen(frame), 0), strlen(frame));
	ck_assert_mem_eq(packet, frame, strlen(frame));
}
END_TEST

/* A packet as another host has sent it, with this identification in its IP header. */
static uint32_t foreign_datagram(const struct uvd_udp_flow *flow, uint16_t ip_id, uint8_t bytes[64])
{
	const struct uvd_packet p = { .opcode = UVD_RC_ACKNOWLEDGE, .dest_qpn = 0x22, .psn = 7 };
	const uint32_t len = uvd_packet_put_headers(&p, bytes) + UVD_ICRC_BYTES;
	const uint32_t icrc = htole32(uvd_icrc(flow, ip_id, bytes, len));

	memcpy(bytes + len - UVD_ICRC_BYTES, &icrc, sizeof(icrc));
	return len;
}

START_TEST(test_a_datagram_keeps_its_bytes_and_ports_and_has_the_identification_that_its_icrc_tells)
{
	struct uvd_capture_message m = {
		.kind = UVD_CAPTURE_DATAGRAM, .from_port = 50000, .to_port = 4791, .hop_limit = 64
	};
	uint8_t bytes[64];
	struct uvd_udp_flow flow;
	uint32_t len;

	m.from = gid("::ffff:192.0.2.1");
	m.to = gid("::ffff:192.0.2.2");
	flow = (struct uvd_udp_flow){ m.from, m.to, m.from_port, m.to_port };
	len = foreign_datagram(&flow, 0x1234, bytes);
	ck_assert_uint_eq(uvd_packet_make(packet, &m, bytes, len, 0), BTH + len);
	ck_assert_mem_eq(packet + BTH, bytes, len);
	ck_assert_uint_eq(be32_at(ETH + 2), (IPV4 + UDP + len) << 16 | 0x1234);
	ck_assert_uint_eq(be32_at(ETH + IPV4), 50000u << 16 | 4791);
	bytes[15] ^= 1;
	uvd_packet_make(packet, &m, bytes, len, 0);
	ck_assert_uint_eq(be32_at(ETH + 2), (IPV4 + UDP + len) << 16);
	ck_assert_uint_eq(uvd_packet_make(packet, &m, bytes, 3, 0), BTH + 3);
	ck_assert_mem_eq(packet + BTH, bytes, 3);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("packet");

	tcase_add_test(t, test_a_send_and_its_acknowledgement_are_byte_for_byte_those_of_scapy);
	tcase_add_test(t, test_a_message_is_cut_into_packets_of_the_path_mtu_whose_numbers_wrap);
	tcase_add_test(t, test_each_operation_has_its_opcodes);
	tcase_add_test(t, test_a_read_asks_for_its_length_and_its_answer_has_an_aeth_at_both_ends);
	tcase_add_test(t, test_atomics_have_their_operands_and_the_answer_the_old_value);
	tcase_add_test(t, test_datagrams_and_xrc_name_what_they_are_for);
	tcase_add_test(t, test_other_gids_are_ipv6_with_a_checksum);
	tcase_add_test(t, test_the_crc_is_that_of_ethernet);
	tcase_add_test(t, test_groups_have_the_ethernet_addresses_of_groups);
	tcase_add_test(t, test_a_frame_stays_what_it_is);
	tcase_add_test(t, test_a_datagram_keeps_its_bytes_and_ports_and_has_the_identification_that_its_icrc_tells);
	return run_suite("capture packet", t);
}
