/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The header in the first 40 bytes of a UD receive, as the kernel's rxe receives it: a GRH on InfiniBand, the packet's
 * IPv6 header on RoCE v2, or 20 bytes of zeros and its IPv4 header if both GIDs stand for IPv4 addresses.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "wire/wire.h"

enum { UDP_BYTES = 8, IPV4_BYTES = 20, IBA_TRANSPORT = 0x1b };

/* Bytes from BTH to ICRC: both, DETH, ImmDt if there is one, and the padded payload. */
static uint16_t iba_bytes(const struct soft_arrival *arrival)
{
	const uint32_t imm = arrival->opcode == IBV_WR_SEND_WITH_IMM ? 4 : 0;

	return ((arrival->length + 3) & ~3u) + 12 + 8 + imm + 4;
}

static void put16(uint8_t *at, uint16_t value)
{
	value = htons(value);
	memcpy(at, &value, sizeof(value));
}

/* RFC 1071. The checksum's own bytes must be 0. */
static uint16_t ipv4_checksum(const uint8_t header[IPV4_BYTES])
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_BYTES; i += 2)
		sum += header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void make_ipv4(uint8_t *header, const struct soft_arrival *arrival, const union ibv_gid *from)
{
	memset(header, 0, IPV4_BYTES);
	header[0] = 0x45; /* version 4, five words */
	header[1] = arrival->ah.grh.traffic_class;
	put16(header + 2, IPV4_BYTES + UDP_BYTES + iba_bytes(arrival));
	put16(header + 6, 0x4000); /* do not fragment */
	header[8] = arrival->ah.grh.hop_limit;
	header[9] = IPPROTO_UDP;
	memcpy(header + 12, from->raw + 12, 4);
	memcpy(header + 16, arrival->ah.grh.dgid.raw + 12, 4);
	put16(header + 10, ipv4_checksum(header));
}

static const union ibv_gid *source_of(const struct soft_arrival *arrival)
{
	return arrival->port ? &arrival->port->gids[arrival->ah.grh.sgid_index % UVD_MAX_GIDS] : &arrival->from;
}

uint8_t soft_packet_type(const struct soft_arrival *arrival)
{
	enum { HAS_UDP = 8, IPV6 = 1, IPV4 = 2 };

	return HAS_UDP | (uvd_gid_is_ipv4(source_of(arrival)) && uvd_gid_is_ipv4(&arrival->ah.grh.dgid) ? IPV4 : IPV6);
}

void soft_make_grh(uint8_t grh[SOFT_GRH_BYTES], const struct soft_arrival *arrival)
{
	const bool ethernet = !arrival->port || arrival->port->link_layer == IBV_LINK_LAYER_ETHERNET;
	const struct ibv_global_route *route = &arrival->ah.grh;
	const union ibv_gid *from = source_of(arrival);
	const uint32_t first = htonl(6u << 28 | (uint32_t)route->traffic_class << 20 | (route->flow_label & 0xfffff));

	if (ethernet && uvd_gid_is_ipv4(from) && uvd_gid_is_ipv4(&route->dgid)) {
		memset(grh, 0, SOFT_GRH_BYTES - IPV4_BYTES);
		make_ipv4(grh + SOFT_GRH_BYTES - IPV4_BYTES, arrival, from);
		return;
	}
	memcpy(grh, &first, 4);
	put16(grh + 4, iba_bytes(arrival) + (ethernet ? UDP_BYTES : 0));
	grh[6] = ethernet ? IPPROTO_UDP : IBA_TRANSPORT;
	grh[7] = route->hop_limit;
	memcpy(grh + 8, from, 16);
	memcpy(grh + 24, &route->dgid, 16);
}
