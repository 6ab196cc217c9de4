/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CRC-32 and the ICRC beside their definitions, and beside a packet that scapy has made. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "packets.h"
#include "../suite.h"

enum { BYTES = 4500 };

static uint8_t bytes[BYTES + 16];

/* The definition: one bit after the other. */
static uint32_t crc_by_bits(uint32_t crc, const uint8_t *b, size_t len)
{
	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= b[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void fill(void)
{
	srandom(1);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = random();
}

static struct uvd_udp_flow flow_between(const char *from, const char *to)
{
	struct uvd_udp_flow flow = { .from_port = 0xd903, .to_port = UVD_ROCE_PORT };

	ck_assert_int_eq(inet_pton(AF_INET6, from, &flow.from), 1);
	ck_assert_int_eq(inet_pton(AF_INET6, to, &flow.to), 1);
	return flow;
}

START_TEST(test_the_crc_is_that_of_ethernet)
{
	ck_assert_uint_eq(uvd_crc32(0, "123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(uvd_crc32(0, NULL, 0), 0);
	ck_assert_uint_eq(uvd_crc32(0x12345678, NULL, 0), 0x12345678);
}
END_TEST

START_TEST(test_all_ways_have_the_crc_of_the_definition_for_each_length_and_alignment)
{
	fill();
	for (size_t len = 0; len < BYTES; len += len < 300 ? 1 : 61) {
		const uint8_t *b = bytes + len % 16;
		const uint32_t want = crc_by_bits(0xabcdef01, b, len);

		ck_assert_uint_eq(uvd_crc32_by_tables(0xabcdef01, b, len), want);
		ck_assert_uint_eq(uvd_crc32(0xabcdef01, b, len), want);
	}
}
END_TEST

START_TEST(test_pieces_have_the_crc_of_the_whole)
{
	fill();
	for (size_t first = 0; first < 200; first++)
		ck_assert_uint_eq(uvd_crc32(uvd_crc32(0, bytes, first), bytes + first, BYTES - first),
				  crc_by_bits(0, bytes, BYTES));
}
END_TEST

START_TEST(test_the_icrc_is_over_ones_where_routers_write)
{
	static const uint8_t bth[] = { 0x04, 0x70, 0xff, 0xff, 0xc0, 0,	  0,   0x22,
				       0x80, 0xff, 0xff, 0xfe, 'h',  'i', '!', 0 };
	/* Written out by hand: LRH, IPv4 or IPv6, UDP, BTH and the rest. */
	uint8_t ipv4[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x45, 0xff, 0,    48,   0xbd,
			   0xbc, 0x40, 0,    0xff, 17,	 0xff, 0xff, 192,  0,	 2,    1,    192,  0,
			   2,	 2,    0xd9, 0x03, 0x12, 0xb7, 0,    28,   0xff, 0xff, 0x04, 0x70, 0xff,
			   0xff, 0xff, 0,    0,	   0x22, 0x80, 0xff, 0xff, 0xfe, 'h',  'i',  '!',  0 };
	uint8_t ipv6[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x6f, 0xff, 0xff, 0xff, 0,	 28,   17,
			   0xff, 0xfd, 0x98, 0,	   0,	 0,    0,    0,	   0,	 0,    0,    0,	   0,	 0,    0,
			   0,	 1,    0xfd, 0x98, 0,	 0,    0,    0,	   0,	 0,    0,    0,	   0,	 0,    0,
			   0,	 0,    2,    0xd9, 0x03, 0x12, 0xb7, 0,	   28,	 0xff, 0xff, 0x04, 0x70, 0xff, 0xff,
			   0xff, 0,    0,    0x22, 0x80, 0xff, 0xff, 0xfe, 'h',	 'i',  '!',  0 };
	const struct uvd_udp_flow v4 = flow_between("::ffff:192.0.2.1", "::ffff:192.0.2.2");
	const struct uvd_udp_flow v6 = flow_between("fd98::1", "fd98::2");

	ck_assert_uint_eq(uvd_icrc(&v4, 0xbdbc, bth, sizeof(bth) + 4), crc_by_bits(0, ipv4, sizeof(ipv4)));
	ck_assert_uint_eq(uvd_icrc(&v6, 0xbdbc, bth, sizeof(bth) + 4), crc_by_bits(0, ipv6, sizeof(ipv6)));
	ck_assert_uint_eq(uvd_crc32(uvd_icrc_begin(&v6, 0, bth, sizeof(bth) + 4), bth + 12, 4),
			  crc_by_bits(0, ipv6, sizeof(ipv6)));
}
END_TEST

START_TEST(test_the_icrc_of_a_packet_of_scapy_is_found)
{
	/* BTH(opcode="RC_SEND_ONLY", padcount=3, migreq=1, dqpn=0x22, ackreq=1, psn=0xfffffe) / "hello", 3 zeros */
	static const uint8_t send[] = { 0x04, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x22, 0x80, 0xff, 0xff, 0xfe,
					0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0xc7, 0xa5, 0x4e, 0xd5 };
	struct uvd_udp_flow flow = flow_between("::ffff:192.0.2.1", "::ffff:192.0.2.2");
	struct uvd_packet p;

	flow.from_port = 0xc033;
	ck_assert_int_eq(uvd_packet_parse(&p, send, sizeof(send)), UVD_PACKET_OK);
	ck_assert_uint_eq(p.icrc, uvd_icrc(&flow, 0, send, sizeof(send)));
}
END_TEST

START_TEST(test_a_packet_tells_the_identification_of_its_ipv4_header)
{
	const struct uvd_udp_flow flow = flow_between("::ffff:10.0.0.1", "::ffff:10.0.0.2");

	fill();
	for (uint32_t len = 16; len <= UVD_IB_DATAGRAM_MAX; len += 4) {
		const uint16_t want = random();
		uint16_t id = ~want;

		ck_assert(uvd_icrc_fits(&flow, uvd_icrc(&flow, 0, bytes, len), uvd_icrc(&flow, want, bytes, len), len,
					&id));
		ck_assert_uint_eq(id, want);
	}
}
END_TEST

/* A longest UDP datagram is no packet, but its ICRC is computed before that is known. */
START_TEST(test_the_identification_of_the_longest_datagram_is_found)
{
	const struct uvd_udp_flow flow = flow_between("::ffff:10.0.0.1", "::ffff:10.0.0.2");
	uint8_t *big = calloc(1, 65504);
	uint16_t id;

	ck_assert(
		uvd_icrc_fits(&flow, uvd_icrc(&flow, 0, big, 65504), uvd_icrc(&flow, 0x8001, big, 65504), 65504, &id));
	ck_assert_uint_eq(id, 0x8001);
	free(big);
}
END_TEST

START_TEST(test_one_damaged_bit_is_found)
{
	const struct uvd_udp_flow v4 = flow_between("::ffff:10.0.0.1", "::ffff:10.0.0.2");
	const struct uvd_udp_flow v6 = flow_between("fd98::1", "fd98::2");
	const uint32_t len = 300;
	uint16_t id;

	fill();
	for (unsigned int bit = 0; bit < (len - 4) * 8; bit += 7) {
		const uint32_t icrc4 = uvd_icrc(&v4, 0x1234, bytes, len), icrc6 = uvd_icrc(&v6, 0, bytes, len);

		bytes[bit / 8] ^= 1 << bit % 8;
		if (bit / 8 != 4) { /* FECN, BECN and reserved bits are not covered */
			ck_assert(!uvd_icrc_fits(&v4, uvd_icrc(&v4, 0, bytes, len), icrc4, len, &id));
			ck_assert(!uvd_icrc_fits(&v6, uvd_icrc(&v6, 0, bytes, len), icrc6, len, &id));
		} else {
			ck_assert(uvd_icrc_fits(&v6, uvd_icrc(&v6, 0, bytes, len), icrc6, len, &id));
		}
		bytes[bit / 8] ^= 1 << bit % 8;
	}
}
END_TEST

START_TEST(test_with_ipv4_one_of_65536_damages_is_missed_and_none_with_ipv6)
{
	const struct uvd_udp_flow v4 = flow_between("::ffff:10.0.0.1", "::ffff:10.0.0.2");
	const struct uvd_udp_flow v6 = flow_between("fd98::1", "fd98::2");
	enum { TRIES = 400000 };
	unsigned int missed4 = 0, missed6 = 0;
	uint16_t id;

	srandom(2);
	for (int i = 0; i < TRIES; i++) {
		const uint32_t a = random() << 1 ^ random(), b = random() << 1 ^ random();

		missed4 += uvd_icrc_fits(&v4, a, b, 1044, &id);
		missed6 += uvd_icrc_fits(&v6, a, b, 1044, &id);
	}
	ck_assert_uint_le(missed4, 3 * TRIES / 65536 + 3); /* 6 are expected */
	ck_assert_uint_eq(missed6, 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("icrc");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_the_crc_is_that_of_ethernet);
	tcase_add_test(t, test_all_ways_have_the_crc_of_the_definition_for_each_length_and_alignment);
	tcase_add_test(t, test_pieces_have_the_crc_of_the_whole);
	tcase_add_test(t, test_the_icrc_is_over_ones_where_routers_write);
	tcase_add_test(t, test_the_icrc_of_a_packet_of_scapy_is_found);
	tcase_add_test(t, test_a_packet_tells_the_identification_of_its_ipv4_header);
	tcase_add_test(t, test_the_identification_of_the_longest_datagram_is_found);
	tcase_add_test(t, test_one_damaged_bit_is_found);
	tcase_add_test(t, test_with_ipv4_one_of_65536_damages_is_missed_and_none_with_ipv6);
	return run_suite("wire icrc", t);
}
