/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CRC-32 and the ICRC. Polynomials are reflected, as the specification's: the highest bit of a word stands for x^0. */
#include "wire/icrc.h"

#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "cpu/cpu.h"
#include "wire/packet.h"

#define CRC_POLYNOMIAL 0xedb88320u

/* ---- CRC-32 ------------------------------------------------------------------------------------------------------ */

/*
 * crc_tables[n][b] is the CRC, without inversions, of byte b and n bytes of 0 behind it. CRCs are linear: each row is made
 * of its entries 1, 2, 4, ..., 128.
 */
/* clang-format off */
#define CRC_2(x, a) (x), (x) ^ (a)
#define CRC_4(x, a, b) CRC_2(x, a), CRC_2((x) ^ (b), a)
#define CRC_8(x, a, b, c) CRC_4(x, a, b), CRC_4((x) ^ (c), a, b)
#define CRC_16(x, a, b, c, d) CRC_8(x, a, b, c), CRC_8((x) ^ (d), a, b, c)
#define CRC_32(x, a, b, c, d, e) CRC_16(x, a, b, c, d), CRC_16((x) ^ (e), a, b, c, d)
#define CRC_64(x, a, b, c, d, e, f) CRC_32(x, a, b, c, d, e), CRC_32((x) ^ (f), a, b, c, d, e)
#define CRC_128(x, a, b, c, d, e, f, g) CRC_64(x, a, b, c, d, e, f), CRC_64((x) ^ (g), a, b, c, d, e, f)
#define CRC_256(a, b, c, d, e, f, g, h) { CRC_128(0u, a, b, c, d, e, f, g), CRC_128(0u ^ (h), a, b, c, d, e, f, g) }
static const uint32_t crc_tables[8][256] = {
	CRC_256(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
	CRC_256(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
	CRC_256(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
	CRC_256(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
	CRC_256(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
	CRC_256(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
	CRC_256(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
	CRC_256(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
};
/* clang-format on */

/* Not inverted. Eight bytes at a time, each by its own table. */
static uint32_t crc_add(uint32_t crc, const uint8_t *b, size_t len)
{
	for (; len >= 8; b += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, b, sizeof(word));
		word = le64toh(word) ^ crc;
		crc = 0;
		for (int i = 0; i < 8; i++)
			crc ^= crc_tables[7 - i][word >> 8 * i & 0xff];
	}
	for (; len; b++, len--)
		crc = crc >> 8 ^ crc_tables[0][(crc ^ *b) & 0xff];
	return crc;
}

uint32_t uvd_crc32_by_tables(uint32_t crc, const void *bytes, size_t len)
{
	return ~crc_add(~crc, bytes, len);
}

uint32_t uvd_crc32(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	size_t done;

	crc = ~crc;
	done = uvd_cpu_crc32(&crc, b, len);
	return len > done ? ~crc_add(crc, b + done, len - done) : ~crc;
}

/* ---- the ICRC ---------------------------------------------------------------------------------------------------- */

enum {
	LRH_BYTES = 8,
	IPV4_BYTES = 20,
	IPV4_ID_AT = 4, /* the identification's first byte */
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	PSEUDO_MAX = LRH_BYTES + IPV6_BYTES + UDP_BYTES + UVD_BTH_BYTES,
};

bool uvd_gid_is_ipv4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
}

bool uvd_udp_flow_is_ipv4(const struct uvd_udp_flow *flow)
{
	return uvd_gid_is_ipv4(&flow->from) && uvd_gid_is_ipv4(&flow->to);
}

static uint8_t *icrc_put(uint8_t *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

static uint8_t *icrc_put_be16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	return icrc_put(at, &value, sizeof(value));
}

static uint8_t *icrc_put_ip(uint8_t *at, const struct uvd_udp_flow *flow, uint16_t ip_id, uint32_t udp_len)
{
	if (uvd_udp_flow_is_ipv4(flow)) {
		at = icrc_put(at, "\x45\xff", 2); /* version, five words; type of service */
		at = icrc_put_be16(at, IPV4_BYTES + udp_len);
		at = icrc_put_be16(at, ip_id);
		at = icrc_put(at, "\x40\x00\xff\x11\xff\xff", 6); /* do not fragment; time to live; UDP; checksum */
		at = icrc_put(at, flow->from.raw + 12, 4);
		return icrc_put(at, flow->to.raw + 12, 4);
	}
	at = icrc_put(at, "\x6f\xff\xff\xff", 4); /* version; traffic class and flow label */
	at = icrc_put_be16(at, udp_len);
	at = icrc_put(at, "\x11\xff", 2); /* UDP; hop limit */
	at = icrc_put(at, &flow->from, sizeof(flow->from));
	return icrc_put(at, &flow->to, sizeof(flow->to));
}

uint32_t uvd_icrc_begin(const struct uvd_udp_flow *flow, uint16_t ip_id, const uint8_t bth[12], uint32_t udp_payload)
{
	const uint32_t udp_len = UDP_BYTES + udp_payload;
	uint8_t pseudo[PSEUDO_MAX], *at = pseudo;

	memset(at, 0xff, LRH_BYTES);
	at = icrc_put_ip(at + LRH_BYTES, flow, ip_id, udp_len);
	at = icrc_put_be16(at, flow->from_port);
	at = icrc_put_be16(at, flow->to_port);
	at = icrc_put_be16(at, udp_len);
	at = icrc_put_be16(at, 0xffff); /* the checksum */
	at = icrc_put(at, bth, UVD_BTH_BYTES);
	at[4 - UVD_BTH_BYTES] = 0xff; /* FECN, BECN and reserved bits */
	return uvd_crc32(0, pseudo, at - pseudo);
}

uint32_t uvd_icrc(const struct uvd_udp_flow *flow, uint16_t ip_id, const uint8_t *bytes, uint32_t len)
{
	return uvd_crc32(uvd_icrc_begin(flow, ip_id, bytes, len), bytes + UVD_BTH_BYTES,
			 len - UVD_BTH_BYTES - UVD_ICRC_BYTES);
}

/* ---- the identification ------------------------------------------------------------------------------------------ */

/* Returns the product of two polynomials, modulo that of the CRC. */
static uint32_t crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	/* From the highest power of a down: the sum so far times x, and b. */
	for (int i = 0; i < 32; i++, a >>= 1) {
		product = product >> 1 ^ (CRC_POLYNOMIAL & -(product & 1));
		product ^= b & -(a & 1);
	}
	return product;
}

/* Returns the CRC difference `crc`, without the effect of n bytes that followed: the product with x^-8n. */
static uint32_t crc_undo(uint32_t crc, uint32_t n)
{
	/* [k][d]: x^(-8 d 16^k) */
	static const uint32_t undo[4][16] = {
		{ 0x80000000, 0x6567cb95, 0xd7125358, 0x1f81b6e1, 0x5b358fd3, 0xeb21cebf, 0x2ff880c5, 0x97fc423c,
		  0x2e9bb40b, 0x2fb98a7d, 0xd6f6fa3c, 0x2059d4a0, 0x36511375, 0x525983aa, 0x31619cb3, 0x0f125cae },
		{ 0x80000000, 0x12a59a49, 0x8df9403d, 0x9d764201, 0x5139de12, 0x17958e0b, 0xdb1c4863, 0xc31ec6b9,
		  0xba340226, 0x6b85d37b, 0x0ba861bc, 0x39b0d61c, 0xfb844d1f, 0xc9771684, 0x8073ef0c, 0xc3f881be },
		{ 0x80000000, 0x29c45641, 0x12fbc105, 0x8b712bc1, 0xecd30c55, 0x930588dc, 0x3c4c471a, 0x25cd5760,
		  0x3755ebd8, 0xe264a9e0, 0xc3a68b42, 0x219c9d64, 0x75cc86fa, 0xebcce135, 0x84773a36, 0x4e1b970f },
		{ 0x80000000, 0x24ee460c, 0x23783fcf, 0xea8683d0, 0x479933fc, 0x1e25ac62, 0x6523628c, 0x3704e154,
		  0xa39442a5, 0x4ff1fa8c, 0xbc26806e, 0x1b2888be, 0x7910287d, 0xb8721901, 0x7bea74c8, 0x655ffa6b },
	};

	for (int k = 0; k < 4; k++, n >>= 4)
		if (n % 16)
			crc = crc_multiply(undo[k][n % 16], crc);
	return crc;
}

bool uvd_icrc_fits(const struct uvd_udp_flow *flow, uint32_t icrc, uint32_t got, uint32_t udp_payload, uint16_t *ip_id)
{
	/* Bytes that the ICRC covers from the identification on. */
	const uint32_t n = IPV4_BYTES - IPV4_ID_AT + UDP_BYTES + udp_payload - UVD_ICRC_BYTES;
	uint32_t difference = icrc ^ got;

	*ip_id = 0;
	if (!difference)
		return true;
	if (!uvd_udp_flow_is_ipv4(flow))
		return false;
	/* The first four of these bytes, little-endian, were XORed with this: the identification, then flags that we know. */
	difference = crc_undo(difference, n);
	if (difference >> 16)
		return false;
	*ip_id = be16toh(difference);
	return true;
}
