/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of RoCE v2: Ethernet, IPv4 or IPv6, UDP, and the headers of the InfiniBand specification, volume 1, chapter 9
 * and annex A17.
 */
#include "capture/packet.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

enum {
	ETH_BYTES = 14,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	ROCE_PORT = 4791,
	FIRST_UDP_PORT = 0xc000, /* requesters use ports from here on */
};

/* The first three bits of an opcode. */
enum { RC = 0x00, UC = 0x20, UD = 0x60, XRC = 0xa0 };

/* The last five bits, of the packets of a message. Those behind FIRST and MIDDLE are the last packet's, or the only one's. */
struct opcodes {
	uint8_t first, middle, last, only;
};

static const struct opcodes send_opcodes = { 0x00, 0x01, 0x02, 0x04 }, write_opcodes = { 0x06, 0x07, 0x08, 0x0a },
			    read_response_opcodes = { 0x0d, 0x0e, 0x0f, 0x10 };

enum { READ_REQUEST = 0x0c, ACK = 0x11, ATOMIC_ACK = 0x12, CMP_SWAP = 0x13, FETCH_ADD = 0x14, ATOMIC_WRITE = 0x1d };

/* A packet while it is made. */
struct maker {
	const struct uvd_capture_message *m;
	uint8_t *at; /* the next byte */
	bool is_first, is_last; /* of the message */
	uint32_t psn;
	const uint8_t *payload;
	uint32_t payload_len;
};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void put_bytes(struct maker *k, const void *bytes, size_t len)
{
	memcpy(k->at, bytes, len);
	k->at += len;
}

static void put_u8(struct maker *k, uint8_t value)
{
	*k->at++ = value;
}

static void put_be16(struct maker *k, uint16_t value)
{
	value = htobe16(value);
	put_bytes(k, &value, sizeof(value));
}

static void put_be32(struct maker *k, uint32_t value)
{
	value = htobe32(value);
	put_bytes(k, &value, sizeof(value));
}

static void put_be64(struct maker *k, uint64_t value)
{
	value = htobe64(value);
	put_bytes(k, &value, sizeof(value));
}

/* ---- checksums --------------------------------------------------------------------------------------------------- */

enum { SLICE = 8 }; /* bytes that are looked up together */

/* [n][b]: the CRC of byte b, and n bytes of 0 behind it. */
static uint32_t crc_tables[SLICE][256];

static void make_crc_tables(void)
{
	for (unsigned int i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		crc_tables[0][i] = crc;
	}
	for (unsigned int n = 1; n < SLICE; n++)
		for (unsigned int i = 0; i < 256; i++)
			crc_tables[n][i] = crc_tables[n - 1][i] >> 8 ^ crc_tables[0][crc_tables[n - 1][i] & 0xff];
}

static uint32_t crc_of_slice(uint32_t crc, const uint8_t bytes[SLICE])
{
	uint32_t next = 0;

	for (int i = 0; i < SLICE; i++)
		next ^= crc_tables[SLICE - 1 - i][bytes[i] ^ (i < 4 ? crc >> 8 * i & 0xff : 0)];
	return next;
}

uint32_t uvd_crc32(uint32_t crc, const void *bytes, size_t len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const uint8_t *b = bytes;

	pthread_once(&once, make_crc_tables);
	crc = ~crc;
	for (; len >= SLICE; b += SLICE, len -= SLICE)
		crc = crc_of_slice(crc, b);
	for (size_t i = 0; i < len; i++)
		crc = crc >> 8 ^ crc_tables[0][(crc ^ b[i]) & 0xff];
	return ~crc;
}

/* RFC 1071: adds the 16-bit words of the bytes. An odd last byte counts as if 0 followed. */
static uint32_t sum_words(uint32_t sum, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		sum += bytes[i] << 8 | bytes[i + 1];
	return len % 2 ? sum + (bytes[len - 1] << 8) : sum;
}

static uint16_t checksum_of(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void store_be16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

/*
 * Appends the invariant CRC: over 8 bytes of ones in the place of an LRH, then the packet from its IP header on, with ones
 * for all that a router may change. Little-endian, as the CRC of Ethernet.
 */
static void put_icrc(struct maker *k, const uint8_t *ip, bool is_ipv4)
{
	enum { LRH_BYTES = 8, MOST = LRH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES };
	const size_t ip_bytes = is_ipv4 ? IPV4_BYTES : IPV6_BYTES, headers = ip_bytes + UDP_BYTES + BTH_BYTES;
	uint8_t masked[MOST], *copy = masked + LRH_BYTES;
	uint32_t crc;

	memset(masked, 0xff, LRH_BYTES);
	memcpy(copy, ip, headers);
	if (is_ipv4) {
		copy[1] = copy[8] = 0xff; /* type of service, time to live */
		store_be16(copy + 10, 0xffff); /* header checksum */
	} else {
		copy[0] |= 0x0f; /* traffic class and flow label */
		memset(copy + 1, 0xff, 3);
		copy[7] = 0xff; /* hop limit */
	}
	store_be16(copy + ip_bytes + 6, 0xffff); /* UDP's checksum */
	copy[ip_bytes + UDP_BYTES + 4] = 0xff; /* FECN, BECN and reserved bits of the BTH */
	crc = uvd_crc32(0, masked, LRH_BYTES + headers);
	crc = htole32(uvd_crc32(crc, ip + headers, k->at - ip - headers));
	put_bytes(k, &crc, sizeof(crc));
}

/* ---- Ethernet, IP, UDP ------------------------------------------------------------------------------------------- */

static bool is_ipv4_gid(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
}

static bool is_ipv4_message(const struct uvd_capture_message *m)
{
	return is_ipv4_gid(&m->from) && is_ipv4_gid(&m->to);
}

/* The GID of a group begins with ff; a group of IPv4 is one of 224.0.0.0/4. Others get a local address, made of the GID. */
static void put_mac(struct maker *k, const union ibv_gid *gid)
{
	if (gid->raw[0] == 0xff) {
		put_be16(k, 0x3333);
	} else if (is_ipv4_gid(gid) && gid->raw[12] >> 4 == 0xe) {
		put_be16(k, 0x0100);
		put_u8(k, 0x5e);
		put_u8(k, gid->raw[13] & 0x7f);
		put_bytes(k, gid->raw + 14, 2);
		return;
	} else {
		put_be16(k, 0x0200);
	}
	put_bytes(k, gid->raw + 12, 4);
}

static void put_ipv4(struct maker *k)
{
	const struct uvd_capture_message *m = k->m;

	put_u8(k, 0x45); /* version 4, five words */
	put_u8(k, m->traffic_class);
	put_be16(k, 0); /* the length is stored later, as is the checksum */
	put_be16(k, 0);
	put_be16(k, 0x4000); /* do not fragment */
	put_u8(k, m->hop_limit);
	put_u8(k, IPPROTO_UDP);
	put_be16(k, 0);
	put_bytes(k, m->from.raw + 12, 4);
	put_bytes(k, m->to.raw + 12, 4);
}

static void put_ipv6(struct maker *k)
{
	const struct uvd_capture_message *m = k->m;

	put_be32(k, 6u << 28 | (uint32_t)m->traffic_class << 20 | (m->flow_label & 0xfffff));
	put_be16(k, 0);
	put_u8(k, IPPROTO_UDP);
	put_u8(k, m->hop_limit);
	put_bytes(k, &m->from, sizeof(m->from));
	put_bytes(k, &m->to, sizeof(m->to));
}

/* Both directions of a connection use one port, so that tools show them as one flow. */
static void put_udp(struct maker *k)
{
	put_be16(k, FIRST_UDP_PORT | ((k->m->from_qpn ^ k->m->to_qpn) & 0x3fff));
	put_be16(k, ROCE_PORT);
	put_be32(k, 0);
}

/* Stores the lengths and the checksums of the packet, which is complete but for its ICRC. */
static void finish_ip(uint8_t *ip, bool is_ipv4, size_t udp_len)
{
	uint8_t *udp = ip + (is_ipv4 ? IPV4_BYTES : IPV6_BYTES);

	store_be16(udp + 4, udp_len);
	if (is_ipv4) {
		store_be16(ip + 2, IPV4_BYTES + udp_len);
		store_be16(ip + 10, checksum_of(sum_words(0, ip, IPV4_BYTES)));
	} else {
		store_be16(ip + 4, udp_len);
	}
}

/* Over IPv6 a UDP checksum of 0 is an error for most receivers. Call it when the ICRC is there, which does not depend on it. */
static void finish_udp_of_ipv6(uint8_t *ip, size_t udp_len)
{
	uint32_t sum = sum_words(udp_len + IPPROTO_UDP, ip + 8, 2 * sizeof(union ibv_gid));

	store_be16(ip + IPV6_BYTES + 6, checksum_of(sum_words(sum, ip + IPV6_BYTES, udp_len)) ?: 0xffff);
}

/* ---- InfiniBand -------------------------------------------------------------------------------------------------- */

static bool maker_is_atomic(const struct uvd_capture_message *m)
{
	return m->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || m->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool maker_is_write(const struct uvd_capture_message *m)
{
	return m->opcode == IBV_WR_RDMA_WRITE || m->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(const struct uvd_capture_message *m)
{
	return m->opcode == IBV_WR_SEND_WITH_IMM || m->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint8_t transport_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return UC;
	case IBV_QPT_UD:
		return UD;
	case IBV_QPT_XRC_SEND:
		return XRC;
	default:
		return RC;
	}
}

static uint8_t place_in(const struct opcodes *of, const struct maker *k)
{
	if (k->is_first)
		return k->is_last ? of->only : of->first;
	return k->is_last ? of->last : of->middle;
}

static uint8_t request_opcode(const struct maker *k)
{
	const struct uvd_capture_message *m = k->m;
	uint8_t opcode;

	switch (m->opcode) {
	case IBV_WR_RDMA_READ:
		return READ_REQUEST;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return CMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return ATOMIC_WRITE;
	case IBV_WR_SEND_WITH_INV:
		if (k->is_last)
			return k->is_first ? 0x17 : 0x16;
		break;
	default:
		break;
	}
	opcode = place_in(maker_is_write(m) ? &write_opcodes : &send_opcodes, k);
	return k->is_last && has_imm(m) ? opcode + 1 : opcode;
}

static uint8_t opcode_of(const struct maker *k)
{
	const uint8_t transport = transport_of(k->m->type);

	switch (k->m->kind) {
	case UVD_CAPTURE_READ_RESPONSE:
		return transport | place_in(&read_response_opcodes, k);
	case UVD_CAPTURE_ATOMIC_RESPONSE:
		return transport | ATOMIC_ACK;
	case UVD_CAPTURE_ACK:
		return transport | ACK;
	default:
		return transport | request_opcode(k);
	}
}

static void put_bth(struct maker *k)
{
	enum { SOLICITED = 0x80, MIGRATED = 0x40, ASKS_FOR_ACK = 0x80 };
	const struct uvd_capture_message *m = k->m;
	const bool is_request = m->kind == UVD_CAPTURE_REQUEST;
	const bool is_reliable = m->type != IBV_QPT_UC && m->type != IBV_QPT_UD;
	uint8_t flags = MIGRATED | (-k->payload_len & 3) << 4;

	if (is_request && k->is_last && m->solicited)
		flags |= SOLICITED;
	put_u8(k, opcode_of(k));
	put_u8(k, flags);
	put_be16(k, m->pkey);
	put_be32(k, m->to_qpn & 0xffffff);
	put_u8(k, is_request && is_reliable && k->is_last ? ASKS_FOR_ACK : 0);
	put_u8(k, k->psn >> 16);
	put_be16(k, k->psn);
}

static void put_reth(struct maker *k)
{
	put_be64(k, k->m->remote_addr);
	put_be32(k, k->m->rkey);
	put_be32(k, k->m->length);
}

static void put_atomic_eth(struct maker *k)
{
	const struct uvd_capture_message *m = k->m;
	const bool swaps = m->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	put_be64(k, m->remote_addr);
	put_be32(k, m->rkey);
	/* The header has the value to swap or to add first, then the one to compare with. */
	put_be64(k, swaps ? m->swap : m->compare_add);
	put_be64(k, swaps ? m->compare_add : 0);
}

static void put_request_headers(struct maker *k)
{
	const struct uvd_capture_message *m = k->m;

	if (m->type == IBV_QPT_XRC_SEND)
		put_be32(k, m->srqn & 0xffffff);
	if (m->type == IBV_QPT_UD) {
		put_be32(k, m->qkey);
		put_be32(k, m->from_qpn & 0xffffff);
	}
	if (maker_is_atomic(m))
		put_atomic_eth(k);
	else if (k->is_first &&
		 (maker_is_write(m) || m->opcode == IBV_WR_RDMA_READ || m->opcode == IBV_WR_ATOMIC_WRITE))
		put_reth(k);
	if (k->is_last && has_imm(m))
		put_bytes(k, &m->imm_data, sizeof(m->imm_data));
	if (k->is_last && m->opcode == IBV_WR_SEND_WITH_INV)
		put_be32(k, m->invalidate_rkey);
}

static void put_response_headers(struct maker *k)
{
	const struct uvd_capture_message *m = k->m;

	/* The packets in the middle of the answer to a READ have none. */
	if (k->is_first || k->is_last)
		put_be32(k, (uint32_t)m->syndrome << 24 | (m->msn & 0xffffff));
	if (m->kind == UVD_CAPTURE_ATOMIC_RESPONSE)
		put_be64(k, m->value);
}

static void put_payload(struct maker *k)
{
	const uint32_t zeros = 0;

	if (k->payload_len)
		put_bytes(k, k->payload, k->payload_len);
	put_bytes(k, &zeros, -k->payload_len & 3);
}

/* ---- a message --------------------------------------------------------------------------------------------------- */

/* Is all of the message one packet, whatever its length? */
static bool is_one_packet(const struct uvd_capture_message *m)
{
	if (m->kind == UVD_CAPTURE_REQUEST)
		return m->type == IBV_QPT_UD || m->opcode == IBV_WR_RDMA_READ || maker_is_atomic(m);
	return m->kind != UVD_CAPTURE_READ_RESPONSE;
}

uint32_t uvd_packet_payload(const struct uvd_capture_message *m, uint32_t len)
{
	return is_one_packet(m) || !m->mtu || len < m->mtu ? len : m->mtu;
}

uint32_t uvd_packets_of(const struct uvd_capture_message *m, uint32_t len)
{
	return len ? (len - 1) / uvd_packet_payload(m, len) + 1 : 1;
}

static struct maker maker_of(uint8_t *packet, const struct uvd_capture_message *m, const uint8_t *bytes, uint32_t len,
			     uint32_t i)
{
	const uint32_t mtu = uvd_packet_payload(m, len);
	const uint32_t skip = i * mtu;
	struct maker k = { .m = m, .at = packet, .is_first = true, .is_last = true };

	k.payload = bytes + skip;
	k.payload_len = len - skip < mtu ? len - skip : mtu;
	k.psn = m->psn;
	if (!is_one_packet(m)) {
		k.is_first = !m->offset && !i;
		k.is_last = m->offset + skip + k.payload_len >= m->length;
		k.psn += (m->mtu ? m->offset / m->mtu : 0) + i;
	}
	return k;
}

size_t uvd_packet_make(uint8_t *packet, const struct uvd_capture_message *m, const uint8_t *bytes, uint32_t len,
		       uint32_t i)
{
	struct maker k = maker_of(packet, m, bytes, len, i);
	const bool is_ipv4 = is_ipv4_message(m);
	uint8_t *ip = packet + ETH_BYTES;
	size_t udp_len;

	if (m->kind == UVD_CAPTURE_FRAME) {
		memcpy(packet, bytes, len);
		return len;
	}
	put_mac(&k, &m->to);
	put_mac(&k, &m->from);
	put_be16(&k, is_ipv4 ? 0x0800 : 0x86dd);
	if (is_ipv4)
		put_ipv4(&k);
	else
		put_ipv6(&k);
	put_udp(&k);
	put_bth(&k);
	if (m->kind == UVD_CAPTURE_REQUEST)
		put_request_headers(&k);
	else
		put_response_headers(&k);
	put_payload(&k);
	udp_len = k.at - ip - (is_ipv4 ? IPV4_BYTES : IPV6_BYTES) + ICRC_BYTES;
	finish_ip(ip, is_ipv4, udp_len);
	put_icrc(&k, ip, is_ipv4);
	if (!is_ipv4)
		finish_udp_of_ipv6(ip, udp_len);
	return k.at - packet;
}
