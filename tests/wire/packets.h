/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets whose every field has a value of its own. */
#ifndef UVD_TEST_WIRE_PACKETS_H
#define UVD_TEST_WIRE_PACKETS_H

#include <endian.h>
#include <string.h>

#include "wire/wire.h"

#define OPCODE_VALUE(transport, operation) UVD_##transport##_##operation,
static const uint8_t all_opcodes[] = { UVD_OPCODES(OPCODE_VALUE) UVD_CNP };
enum { NUM_OPCODES = sizeof(all_opcodes) };

/* Returns a packet that says in each header of its opcode what no other field says. Those that it does not have are 0. */
static inline struct uvd_packet packet_of(uint8_t opcode, uint32_t payload_len)
{
	const uint32_t is = uvd_opcode_info(opcode)->is;
	struct uvd_packet p = {
		.opcode = opcode,
		.pad = uvd_packet_pad(payload_len),
		.solicited = opcode & 1,
		.migrated = !(opcode & 1),
		.fecn = opcode & 2,
		.becn = opcode & 4,
		.ack_req = opcode & 8,
		.pkey = 0x8123,
		.dest_qpn = 0xfedcba,
		.psn = 0xfffff0 + opcode % 16,
		.payload_len = payload_len,
	};

	if (is & UVD_HAS_XRCETH)
		p.srqn = 0x313233;
	if (is & UVD_HAS_DETH) {
		p.qkey = 0x80010203;
		p.src_qpn = 0x414243;
	}
	if (is & (UVD_HAS_RETH | UVD_HAS_ATOMICETH)) {
		p.va = UINT64_C(0xf1f2f3f4f5f6f7f8);
		p.rkey = 0x91929394;
	}
	if (is & UVD_HAS_RETH)
		p.length = 0x7fffff01;
	if (is & UVD_HAS_ATOMICETH) {
		p.swap_add = UINT64_C(0xa1a2a3a4a5a6a7a8);
		p.compare = UINT64_C(0xb1b2b3b4b5b6b7b8);
	}
	if (is & UVD_HAS_AETH) {
		p.syndrome = UVD_AETH_RNR | 14;
		p.msn = 0xc1c2c3;
	}
	if (is & UVD_HAS_ATOMICACKETH)
		p.original = UINT64_C(0xd1d2d3d4d5d6d7d8);
	if (is & UVD_HAS_IMMDT)
		p.imm = 0xe1e2e3e4;
	if (is & UVD_HAS_IETH)
		p.invalidate_rkey = 0x81828384;
	return p;
}

/* Returns how many bytes of payload a packet of the opcode may well have. */
static inline uint32_t payload_of(uint8_t opcode)
{
	const uint32_t is = uvd_opcode_info(opcode)->is;

	if (!(is & UVD_HAS_PAYLOAD))
		return 0;
	if ((opcode & UVD_OPERATION_MASK) == UVD_ATOMIC_WRITE)
		return 8;
	return is & UVD_IS_LAST ? 13 : UVD_IB_MTU_MIN;
}

/* Makes the whole datagram: headers, a payload of ascending bytes, pad bytes, and this ICRC. Returns its length. */
static inline uint32_t datagram_of(const struct uvd_packet *p, uint32_t icrc, uint8_t *to)
{
	const size_t headers = uvd_packet_put_headers(p, to);
	const uint32_t len = uvd_packet_bytes(headers, p->payload_len);

	for (uint32_t i = 0; i < p->payload_len; i++)
		to[headers + i] = i + 1;
	memset(to + headers + p->payload_len, 0, uvd_packet_pad(p->payload_len));
	icrc = htole32(icrc);
	memcpy(to + len - UVD_ICRC_BYTES, &icrc, UVD_ICRC_BYTES);
	return len;
}

#endif
