/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A message's packets of RoCE v2: Ethernet, IPv4 or IPv6 and UDP are made here, the rest by src/wire. */
#include "capture/packet.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

enum {
	ETH_BYTES = 14,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	FIRST_UDP_PORT = 0xc000, /* requesters use ports from here on */
};

/* A packet while it is made. */
struct maker {
	const struct uvd_capture_message *m;
	uint8_t *at; /* the next byte */
	bool is_first, is_last; /* of the message */
	uint32_t psn;
	const uint8_t *payload;
	uint32_t payload_len;
	uint16_t ip_id;
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

/* ---- checksums --------------------------------------------------------------------------------------------------- */

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

/* ---- Ethernet, IP, UDP ------------------------------------------------------------------------------------------- */

/* The GID of a group begins with ff; a group of IPv4 is one of 224.0.0.0/4. Others get a local address, made of the GID. */
static void put_mac(struct maker *k, const union ibv_gid *gid)
{
	if (gid->raw[0] == 0xff) {
		put_be16(k, 0x3333);
	} else if (uvd_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe) {
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
	put_be16(k, k->ip_id);
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

/* Without a wire, both directions of a connection use one port, so that tools show them as one flow. */
static struct uvd_udp_flow flow_of(const struct uvd_capture_message *m)
{
	if (m->kind == UVD_CAPTURE_DATAGRAM)
		return (struct uvd_udp_flow){ m->from, m->to, m->from_port, m->to_port };
	return (struct uvd_udp_flow){ .from = m->from,
				      .to = m->to,
				      .from_port = FIRST_UDP_PORT | ((m->from_qpn ^ m->to_qpn) & 0x3fff),
				      .to_port = UVD_ROCE_PORT };
}

static void put_udp(struct maker *k, const struct uvd_udp_flow *flow)
{
	put_be16(k, flow->from_port);
	put_be16(k, flow->to_port);
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

static uint8_t operation_of(const struct maker *k)
{
	switch (k->m->kind) {
	case UVD_CAPTURE_READ_RESPONSE:
		return uvd_operation_of(UVD_MESSAGE_READ_RESPONSE, k->is_first, k->is_last);
	case UVD_CAPTURE_ATOMIC_RESPONSE:
		return UVD_ATOMIC_ACKNOWLEDGE;
	case UVD_CAPTURE_ACK:
		return UVD_ACKNOWLEDGE;
	default:
		return uvd_request_operation(k->m->opcode, k->is_first, k->is_last);
	}
}

/* RC has all operations: an operation that the type of QP does not have becomes RC's, as the file has whole packets only. */
static uint8_t opcode_of(const struct maker *k)
{
	const uint8_t operation = operation_of(k), opcode = uvd_transport_of(k->m->type) | operation;

	return uvd_opcode_info(opcode)->name ? opcode : UVD_TRANSPORT_RC | operation;
}

/* All that the message says. The opcode decides which headers, and so which of it, the packet has. */
static void put_headers(struct maker *k)
{
	const struct uvd_capture_message *m = k->m;
	const bool is_request = m->kind == UVD_CAPTURE_REQUEST, swaps = m->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	const bool is_reliable = m->type != IBV_QPT_UC && m->type != IBV_QPT_UD;
	const struct uvd_packet p = {
		.opcode = opcode_of(k),
		.solicited = is_request && k->is_last && m->solicited,
		.migrated = true,
		.ack_req = is_request && is_reliable && k->is_last,
		.pkey = m->pkey,
		.dest_qpn = m->to_qpn,
		.psn = k->psn,
		.srqn = m->srqn,
		.qkey = m->qkey,
		.src_qpn = m->from_qpn,
		.va = m->remote_addr,
		.rkey = m->rkey,
		.length = m->length,
		.swap_add = swaps ? m->swap : m->compare_add,
		.compare = swaps ? m->compare_add : 0,
		.syndrome = m->syndrome,
		.msn = m->msn,
		.original = m->value,
		.imm = be32toh(m->imm_data),
		.invalidate_rkey = m->invalidate_rkey,
		.payload_len = k->payload_len,
	};

	k->at += uvd_packet_put_headers(&p, k->at);
}

static void put_payload(struct maker *k)
{
	const uint32_t zeros = 0;

	if (k->payload_len)
		put_bytes(k, k->payload, k->payload_len);
	put_bytes(k, &zeros, uvd_packet_pad(k->payload_len));
}

static void put_icrc(struct maker *k, const struct uvd_udp_flow *flow, const uint8_t *bth)
{
	const uint32_t icrc = htole32(uvd_icrc(flow, 0, bth, k->at + UVD_ICRC_BYTES - bth));

	put_bytes(k, &icrc, sizeof(icrc));
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

/* Returns the identification that the ICRC of a datagram tells; 0: none. */
static uint16_t ip_id_of(const struct uvd_udp_flow *flow, const uint8_t *bytes, uint32_t len)
{
	uint32_t icrc;
	uint16_t id;

	if (len < UVD_BTH_BYTES + UVD_ICRC_BYTES)
		return 0;
	memcpy(&icrc, bytes + len - UVD_ICRC_BYTES, sizeof(icrc));
	return uvd_icrc_fits(flow, uvd_icrc(flow, 0, bytes, len), le32toh(icrc), len, &id) ? id : 0;
}

size_t uvd_packet_make(uint8_t *packet, const struct uvd_capture_message *m, const uint8_t *bytes, uint32_t len,
		       uint32_t i)
{
	struct maker k = maker_of(packet, m, bytes, len, i);
	const struct uvd_udp_flow flow = flow_of(m);
	const bool is_ipv4 = uvd_udp_flow_is_ipv4(&flow);
	uint8_t *ip = packet + ETH_BYTES, *udp = ip + (is_ipv4 ? IPV4_BYTES : IPV6_BYTES);
	size_t udp_len;

	if (m->kind == UVD_CAPTURE_FRAME) {
		memcpy(packet, bytes, len);
		return len;
	}
	if (m->kind == UVD_CAPTURE_DATAGRAM)
		k.ip_id = ip_id_of(&flow, bytes, len);
	put_mac(&k, &m->to);
	put_mac(&k, &m->from);
	put_be16(&k, is_ipv4 ? 0x0800 : 0x86dd);
	if (is_ipv4)
		put_ipv4(&k);
	else
		put_ipv6(&k);
	put_udp(&k, &flow);
	if (m->kind == UVD_CAPTURE_DATAGRAM) {
		put_bytes(&k, bytes, len);
	} else {
		put_headers(&k);
		put_payload(&k);
		put_icrc(&k, &flow, udp + UDP_BYTES);
	}
	udp_len = k.at - udp;
	finish_ip(ip, is_ipv4, udp_len);
	if (!is_ipv4)
		finish_udp_of_ipv6(ip, udp_len);
	return k.at - packet;
}
