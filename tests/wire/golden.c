/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writes a pcap file to standard output with a packet of each opcode, over IPv4 and over IPv6, and tells on standard error
 * one line for each: what it says, as NAME=VALUE. test_golden.py compares that with what other programs read.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "packets.h"

enum { ETH = 14, IPV4 = 20, IPV6 = 40, UDP = 8, ROOM = ETH + IPV6 + UDP + UVD_IB_DATAGRAM_MAX };

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static uint32_t sum_of(uint32_t sum, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
	return sum;
}

static uint16_t checksum_of(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Writes the headers below the BTH in front of `datagram`. Returns the frame's first byte. */
static uint8_t *put_below(const struct uvd_udp_flow *flow, uint8_t *datagram, uint32_t len)
{
	const bool is_ipv4 = uvd_udp_flow_is_ipv4(flow);
	uint8_t *udp = datagram - UDP, *ip = udp - (is_ipv4 ? IPV4 : IPV6), *eth = ip - ETH;

	put16(udp, flow->from_port);
	put16(udp + 2, flow->to_port);
	put16(udp + 4, UDP + len);
	put16(udp + 6, 0);
	memcpy(eth, "\x02\0\0\0\0\2\x02\0\0\0\0\1", 12);
	put16(eth + 12, is_ipv4 ? 0x0800 : 0x86dd);
	if (is_ipv4) {
		memcpy(ip, "\x45\x02\0\0\0\0\x40\0\x40\x11\0\0", 12);
		put16(ip + 2, IPV4 + UDP + len);
		memcpy(ip + 12, flow->from.raw + 12, 4);
		memcpy(ip + 16, flow->to.raw + 12, 4);
		put16(ip + 10, checksum_of(sum_of(0, ip, IPV4)));
	} else {
		memcpy(ip, "\x60\x21\x23\x45\0\0\x11\x40", 8);
		put16(ip + 4, UDP + len);
		memcpy(ip + 8, &flow->from, 16);
		memcpy(ip + 24, &flow->to, 16);
		put16(udp + 6, checksum_of(sum_of(sum_of(UDP + len + 17, ip + 8, 32), udp, UDP + len)));
	}
	return eth;
}

static void write_all(const void *bytes, size_t len)
{
	if (write(STDOUT_FILENO, bytes, len) != (ssize_t)len)
		exit(1);
}

static void tell(const struct uvd_packet *p, uint32_t icrc)
{
	const struct uvd_opcode_info *info = uvd_opcode_info(p->opcode);

	fprintf(stderr,
		"name=%s is=%#x opcode=%u solicited=%u migrated=%u pad=%u pkey=%u fecn=%u becn=%u dest_qpn=%u ack_req=%u psn=%u ",
		info->name, info->is, p->opcode, p->solicited, p->migrated, p->pad, p->pkey, p->fecn, p->becn,
		p->dest_qpn, p->ack_req, p->psn);
	fprintf(stderr,
		"srqn=%u qkey=%u src_qpn=%u va=%lu rkey=%u length=%u swap_add=%lu compare=%lu syndrome=%u msn=%u ",
		p->srqn, p->qkey, p->src_qpn, p->va, p->rkey, p->length, p->swap_add, p->compare, p->syndrome, p->msn);
	fprintf(stderr, "original=%lu imm=%u invalidate_rkey=%u payload_len=%u icrc=%u\n", p->original, p->imm,
		p->invalidate_rkey, p->payload_len, icrc);
}

static void write_packet(uint8_t opcode, const char *from, const char *to)
{
	static uint8_t room[ROOM];
	const struct uvd_packet p = packet_of(opcode, payload_of(opcode));
	struct uvd_udp_flow flow = { .from_port = 0xc123, .to_port = UVD_ROCE_PORT };
	uint8_t *datagram = room + ETH + IPV6 + UDP, *frame;
	uint32_t header[4] = { 1 }, icrc, len = datagram_of(&p, 0, datagram);

	if (inet_pton(AF_INET6, from, &flow.from) != 1 || inet_pton(AF_INET6, to, &flow.to) != 1)
		exit(1);
	icrc = uvd_icrc(&flow, 0, datagram, len);
	datagram_of(&p, icrc, datagram);
	frame = put_below(&flow, datagram, len);
	header[2] = header[3] = datagram + len - frame;
	write_all(header, sizeof(header));
	write_all(frame, header[2]);
	tell(&p, icrc);
}

int main(void)
{
	static const uint32_t pcap[] = { 0xa1b23c4d, 4 << 16 | 2, 0, 0, ROOM, 1 };

	write_all(pcap, sizeof(pcap));
	for (unsigned int i = 0; i < NUM_OPCODES; i++) {
		write_packet(all_opcodes[i], "::ffff:192.0.2.1", "::ffff:192.0.2.2");
		write_packet(all_opcodes[i], "fd00::1", "fd00::2");
	}
	return 0;
}
