/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams of RoCE v2, as anybody may send them. The first byte says whether they came over IPv4 or IPv6 and whether their
 * ICRC is made right; the identification of an IPv4 header follows, then the datagram.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/gen.h"
#include "tests/wire/packets.h"

enum { OVER_IPV6 = 1, WITH_ICRC = 2, FLOW_BYTES = 3 };

static const char *packet_result; /* of the last input */

/* Bits that a sender leaves 0, and that no field has. Clears them in headers of this kind. */
static void packet_clear_reserved(uint8_t *headers, uint32_t is)
{
	headers[1] &= 0xcf; /* pad: compared by itself */
	headers[4] &= 0xc0;
	headers[8] &= 0x80;
	if (is & UVD_HAS_XRCETH)
		headers[UVD_BTH_BYTES] = 0;
	if (is & UVD_HAS_DETH)
		headers[UVD_BTH_BYTES + 4] = 0;
	if (is & UVD_HAS_CNP)
		memset(headers + UVD_BTH_BYTES, 0, UVD_CNP_BYTES);
}

static void packet_expect(bool holds)
{
	if (!holds)
		abort();
}

/* The parser finds all headers inside of the datagram, and the builder would write them as they came. */
static void packet_check(const struct uvd_packet *p, const uint8_t *bytes, size_t len)
{
	const struct uvd_opcode_info *info = uvd_opcode_info(p->opcode);
	uint8_t sent[UVD_IB_HEADERS_MAX], again[UVD_IB_HEADERS_MAX];

	packet_expect(info->name && p->opcode == bytes[0]);
	packet_expect(p->payload == bytes + info->header_bytes && p->payload_len <= UVD_IB_MTU_MAX);
	packet_expect(info->header_bytes + p->payload_len + p->pad + UVD_ICRC_BYTES == len);
	packet_expect(uvd_packet_bytes(info->header_bytes, p->payload_len) == len);
	packet_expect(p->pad == uvd_packet_pad(p->payload_len));
	packet_expect(uvd_packet_put_headers(p, again) == info->header_bytes);
	memcpy(sent, bytes, info->header_bytes);
	packet_clear_reserved(sent, info->is);
	packet_clear_reserved(again, 0);
	packet_expect(!memcmp(sent, again, info->header_bytes));
	for (uint32_t mtu = UVD_IB_MTU_MIN; mtu <= UVD_IB_MTU_MAX; mtu *= 2)
		packet_expect(!uvd_packet_fits_mtu(p, mtu) || p->payload_len <= mtu);
}

/* An ICRC that is right is found to be, whatever the identification. */
static void packet_check_icrc(const struct uvd_packet *p, const struct uvd_udp_flow *flow, const uint8_t *bytes,
			      size_t len, uint16_t ip_id, bool is_right)
{
	const bool is_ipv4 = uvd_udp_flow_is_ipv4(flow);
	uint16_t found;
	const bool fits = uvd_icrc_fits(flow, uvd_icrc(flow, 0, bytes, len), p->icrc, len, &found);

	packet_expect(!is_right || (fits && found == (is_ipv4 ? ip_id : 0)));
	packet_expect(!fits || uvd_icrc(flow, found, bytes, len) == p->icrc);
}

static void packet_run(const uint8_t *data, size_t size)
{
	struct uvd_udp_flow flow = { .from_port = 49152, .to_port = UVD_ROCE_PORT };
	enum uvd_packet_fault fault;
	struct uvd_packet p;
	uint16_t ip_id;
	uint8_t *bytes;
	size_t len;

	if (size < FLOW_BYTES)
		return;
	len = size - FLOW_BYTES;
	bytes = malloc(len ?: 1); /* ends where AddressSanitizer looks */
	if (!bytes)
		abort();
	memcpy(bytes, data + FLOW_BYTES, len);
	ip_id = data[1] << 8 | data[2];
	flow.from.raw[0] = flow.to.raw[0] = data[0] & OVER_IPV6 ? 0xfd : 0;
	flow.from.raw[10] = flow.from.raw[11] = flow.to.raw[10] = flow.to.raw[11] = 0xff;
	flow.to.raw[15] = 1;
	if (data[0] & WITH_ICRC && len >= UVD_BTH_BYTES + UVD_ICRC_BYTES) {
		const uint32_t icrc = htole32(uvd_icrc(&flow, ip_id, bytes, len));

		memcpy(bytes + len - UVD_ICRC_BYTES, &icrc, UVD_ICRC_BYTES);
	}
	fault = uvd_packet_parse(&p, bytes, len);
	packet_result = fault ? uvd_packet_fault_name(fault) : uvd_opcode_info(p.opcode)->name;
	if (!fault) {
		packet_check(&p, bytes, len);
		packet_check_icrc(&p, &flow, bytes, len, ip_id, data[0] & WITH_ICRC);
	}
	free(bytes);
}

/* Often another opcode, or a length that is a multiple of 4: other changes of these make no packet. */
static size_t packet_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	if (size > FLOW_BYTES && fuzz_chance(gen, 15)) {
		data[FLOW_BYTES] = all_opcodes[fuzz_any(gen, NUM_OPCODES)];
		return size;
	}
	if (fuzz_chance(gen, 15)) {
		const size_t len = FLOW_BYTES + fuzz_any(gen, 40) * 4, to = len < max ? len : max;

		if (to > size)
			memset(data + size, 0, to - size);
		return to;
	}
	return fuzz_mutate_bytes(gen, data, size, max);
}

static size_t packet_seed(unsigned int n, uint8_t *data, size_t max, char name[64])
{
	struct uvd_packet p;

	if (n >= NUM_OPCODES || max < FLOW_BYTES + UVD_IB_DATAGRAM_MAX)
		return 0;
	p = packet_of(all_opcodes[n], payload_of(all_opcodes[n]));
	snprintf(name, 64, "%s", uvd_opcode_info(p.opcode)->name);
	memcpy(data, (uint8_t[]){ WITH_ICRC | (n & OVER_IPV6), 0x12, n }, FLOW_BYTES);
	return FLOW_BYTES + datagram_of(&p, 0, data + FLOW_BYTES);
}

static void packet_tell(void)
{
	puts(packet_result ?: "too short for a flow");
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_packet",
	.run = packet_run,
	.mutate = packet_mutate,
	.seed = packet_seed,
	.tell = packet_tell,
};
