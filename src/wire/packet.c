/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of opcodes, and the parser and the builder that follow it. */
#include "wire/packet.h"

#include <endian.h>
#include <string.h>

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Bytes of the headers that these bits stand for. */
#define HEADER_BYTES(bits) \
	(UVD_BTH_BYTES + ((bits)&UVD_HAS_XRCETH ? UVD_XRCETH_BYTES : 0) + ((bits)&UVD_HAS_DETH ? UVD_DETH_BYTES : 0) + \
	 ((bits)&UVD_HAS_RETH ? UVD_RETH_BYTES : 0) + ((bits)&UVD_HAS_ATOMICETH ? UVD_ATOMICETH_BYTES : 0) + \
	 ((bits)&UVD_HAS_AETH ? UVD_AETH_BYTES : 0) + ((bits)&UVD_HAS_ATOMICACKETH ? UVD_ATOMICACKETH_BYTES : 0) + \
	 ((bits)&UVD_HAS_IMMDT ? UVD_IMMDT_BYTES : 0) + ((bits)&UVD_HAS_IETH ? UVD_IETH_BYTES : 0) + \
	 ((bits)&UVD_HAS_CNP ? UVD_CNP_BYTES : 0))

/* What a packet of each operation is, in every transport that has it. */
enum {
	ONLY = UVD_IS_FIRST | UVD_IS_LAST,
	SEND = UVD_IS_REQUEST | UVD_IS_SEND | UVD_HAS_PAYLOAD,
	WRITE = UVD_IS_REQUEST | UVD_IS_WRITE | UVD_HAS_PAYLOAD,
	READ = UVD_IS_RESPONSE | UVD_IS_READ | UVD_HAS_PAYLOAD,

	IS_SEND_FIRST = SEND | UVD_IS_FIRST,
	IS_SEND_MIDDLE = SEND,
	IS_SEND_LAST = SEND | UVD_IS_LAST,
	IS_SEND_LAST_WITH_IMMEDIATE = SEND | UVD_IS_LAST | UVD_HAS_IMMDT,
	IS_SEND_ONLY = SEND | ONLY,
	IS_SEND_ONLY_WITH_IMMEDIATE = SEND | ONLY | UVD_HAS_IMMDT,
	IS_RDMA_WRITE_FIRST = WRITE | UVD_IS_FIRST | UVD_HAS_RETH,
	IS_RDMA_WRITE_MIDDLE = WRITE,
	IS_RDMA_WRITE_LAST = WRITE | UVD_IS_LAST,
	IS_RDMA_WRITE_LAST_WITH_IMMEDIATE = WRITE | UVD_IS_LAST | UVD_HAS_IMMDT,
	IS_RDMA_WRITE_ONLY = WRITE | ONLY | UVD_HAS_RETH,
	IS_RDMA_WRITE_ONLY_WITH_IMMEDIATE = WRITE | ONLY | UVD_HAS_RETH | UVD_HAS_IMMDT,
	IS_RDMA_READ_REQUEST = UVD_IS_REQUEST | UVD_IS_READ | ONLY | UVD_HAS_RETH,
	IS_RDMA_READ_RESPONSE_FIRST = READ | UVD_IS_FIRST | UVD_HAS_AETH,
	IS_RDMA_READ_RESPONSE_MIDDLE = READ,
	IS_RDMA_READ_RESPONSE_LAST = READ | UVD_IS_LAST | UVD_HAS_AETH,
	IS_RDMA_READ_RESPONSE_ONLY = READ | ONLY | UVD_HAS_AETH,
	IS_ACKNOWLEDGE = UVD_IS_RESPONSE | ONLY | UVD_HAS_AETH,
	IS_ATOMIC_ACKNOWLEDGE = UVD_IS_RESPONSE | UVD_IS_ATOMIC | ONLY | UVD_HAS_AETH | UVD_HAS_ATOMICACKETH,
	IS_COMPARE_SWAP = UVD_IS_REQUEST | UVD_IS_ATOMIC | ONLY | UVD_HAS_ATOMICETH,
	IS_FETCH_ADD = UVD_IS_REQUEST | UVD_IS_ATOMIC | ONLY | UVD_HAS_ATOMICETH,
	IS_SEND_LAST_WITH_INVALIDATE = SEND | UVD_IS_LAST | UVD_HAS_IETH,
	IS_SEND_ONLY_WITH_INVALIDATE = SEND | ONLY | UVD_HAS_IETH,
	IS_ATOMIC_WRITE = UVD_IS_REQUEST | ONLY | UVD_HAS_RETH | UVD_HAS_PAYLOAD,
	IS_CNP = ONLY | UVD_HAS_CNP,
};

/* Headers that a transport adds: each request of XRC names its SRQ (A14), each packet of UD its sender. */
#define ADDED_RC(is) 0
#define ADDED_UC(is) 0
#define ADDED_UD(is) UVD_HAS_DETH
#define ADDED_XRC(is) ((is)&UVD_IS_REQUEST ? UVD_HAS_XRCETH : 0)

static const struct uvd_opcode_info opcodes[256] = {
#define ROW(transport, operation) \
	[UVD_##transport##_##operation] = { \
		.name = #transport "_" #operation, \
		.is = IS_##operation | ADDED_##transport(IS_##operation), \
		.header_bytes = HEADER_BYTES(IS_##operation | ADDED_##transport(IS_##operation)), \
	},
	UVD_OPCODES(ROW)
#undef ROW
		[UVD_CNP] = { .name = "CNP", .is = IS_CNP, .header_bytes = HEADER_BYTES(IS_CNP) },
};

const struct uvd_opcode_info *uvd_opcode_info(uint8_t opcode)
{
	return &opcodes[opcode];
}

uint8_t uvd_operation_of(enum uvd_packet_message message, bool is_first, bool is_last)
{
	/* The packets before the last one have no immediate data, and nothing to invalidate. */
	static const struct {
		uint8_t first, middle, last, only;
	} places[] = {
		[UVD_MESSAGE_SEND] = { UVD_SEND_FIRST, UVD_SEND_MIDDLE, UVD_SEND_LAST, UVD_SEND_ONLY },
		[UVD_MESSAGE_SEND_WITH_IMMEDIATE] = { UVD_SEND_FIRST, UVD_SEND_MIDDLE, UVD_SEND_LAST_WITH_IMMEDIATE,
						      UVD_SEND_ONLY_WITH_IMMEDIATE },
		[UVD_MESSAGE_SEND_WITH_INVALIDATE] = { UVD_SEND_FIRST, UVD_SEND_MIDDLE, UVD_SEND_LAST_WITH_INVALIDATE,
						       UVD_SEND_ONLY_WITH_INVALIDATE },
		[UVD_MESSAGE_WRITE] = { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE, UVD_RDMA_WRITE_LAST,
					UVD_RDMA_WRITE_ONLY },
		[UVD_MESSAGE_WRITE_WITH_IMMEDIATE] = { UVD_RDMA_WRITE_FIRST, UVD_RDMA_WRITE_MIDDLE,
						       UVD_RDMA_WRITE_LAST_WITH_IMMEDIATE,
						       UVD_RDMA_WRITE_ONLY_WITH_IMMEDIATE },
		[UVD_MESSAGE_READ_RESPONSE] = { UVD_RDMA_READ_RESPONSE_FIRST, UVD_RDMA_READ_RESPONSE_MIDDLE,
						UVD_RDMA_READ_RESPONSE_LAST, UVD_RDMA_READ_RESPONSE_ONLY },
	};

	if (is_first)
		return is_last ? places[message].only : places[message].first;
	return is_last ? places[message].last : places[message].middle;
}

uint8_t uvd_transport_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return UVD_TRANSPORT_UC;
	case IBV_QPT_UD:
		return UVD_TRANSPORT_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return UVD_TRANSPORT_XRC;
	default:
		return UVD_TRANSPORT_RC;
	}
}

uint8_t uvd_request_operation(enum ibv_wr_opcode opcode, bool is_first, bool is_last)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return UVD_RDMA_READ_REQUEST;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return UVD_COMPARE_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return UVD_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return UVD_ATOMIC_WRITE;
	case IBV_WR_SEND_WITH_INV:
		return uvd_operation_of(UVD_MESSAGE_SEND_WITH_INVALIDATE, is_first, is_last);
	case IBV_WR_SEND_WITH_IMM:
		return uvd_operation_of(UVD_MESSAGE_SEND_WITH_IMMEDIATE, is_first, is_last);
	case IBV_WR_RDMA_WRITE:
		return uvd_operation_of(UVD_MESSAGE_WRITE, is_first, is_last);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return uvd_operation_of(UVD_MESSAGE_WRITE_WITH_IMMEDIATE, is_first, is_last);
	default:
		return uvd_operation_of(UVD_MESSAGE_SEND, is_first, is_last);
	}
}

enum ibv_wr_opcode uvd_message_opcode(uint32_t is)
{
	if (is & UVD_IS_WRITE)
		return is & UVD_HAS_IMMDT ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	if (is & UVD_HAS_IETH)
		return IBV_WR_SEND_WITH_INV;
	return is & UVD_HAS_IMMDT ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

uint32_t uvd_aeth_credits(uint8_t value)
{
	/* Powers of two, and between two of them their mean. */
	if (value < 2)
		return value;
	return value % 2 ? 3u << (value - 3) / 2 : 1u << value / 2;
}

bool uvd_packet_fits_mtu(const struct uvd_packet *p, uint32_t mtu)
{
	const uint32_t is = opcodes[p->opcode].is;

	if (!(is & UVD_HAS_PAYLOAD))
		return true;
	if ((p->opcode & UVD_OPERATION_MASK) == UVD_ATOMIC_WRITE)
		return p->payload_len == sizeof(uint64_t);
	if (!(is & UVD_IS_LAST))
		return p->payload_len == mtu;
	return p->payload_len <= mtu && (is & UVD_IS_FIRST || p->payload_len);
}

const char *uvd_packet_fault_name(enum uvd_packet_fault fault)
{
	static const char *const names[UVD_PACKET_FAULTS] = {
		[UVD_PACKET_OK] = "ok",
		[UVD_PACKET_TOO_SHORT] = "too short",
		[UVD_PACKET_BAD_LENGTH] = "not a multiple of 4 bytes",
		[UVD_PACKET_BAD_VERSION] = "unknown transport version",
		[UVD_PACKET_BAD_OPCODE] = "unknown opcode",
		[UVD_PACKET_BAD_PAD] = "more pad bytes than bytes",
		[UVD_PACKET_TOO_LONG] = "more payload than any MTU",
		[UVD_PACKET_HAS_PAYLOAD] = "payload where the opcode has none",
	};

	return names[fault];
}

/* ---- parse ------------------------------------------------------------------------------------------------------- */

static uint16_t packet_take_be16(const uint8_t **at)
{
	uint16_t value;

	memcpy(&value, *at, sizeof(value));
	*at += sizeof(value);
	return be16toh(value);
}

static uint32_t packet_take_be32(const uint8_t **at)
{
	uint32_t value;

	memcpy(&value, *at, sizeof(value));
	*at += sizeof(value);
	return be32toh(value);
}

static uint64_t packet_take_be64(const uint8_t **at)
{
	uint64_t value;

	memcpy(&value, *at, sizeof(value));
	*at += sizeof(value);
	return be64toh(value);
}

/* Bits of the BTH: of its second byte, and of its second and third word. */
enum {
	BTH_SOLICITED = 0x80,
	BTH_MIGRATED = 0x40,
	BTH_PAD_SHIFT = 4,
	BTH_PAD = 3,
	BTH_VERSION = 0x0f,
};
#define BTH_FECN 0x80000000u
#define BTH_BECN 0x40000000u
#define BTH_ACK_REQ 0x80000000u

/* Returns the transport version. */
static uint8_t packet_take_bth(struct uvd_packet *p, const uint8_t **at)
{
	uint8_t flags;
	uint32_t word;

	p->opcode = *(*at)++;
	flags = *(*at)++;
	p->solicited = flags & BTH_SOLICITED;
	p->migrated = flags & BTH_MIGRATED;
	p->pad = flags >> BTH_PAD_SHIFT & BTH_PAD;
	p->pkey = packet_take_be16(at);
	word = packet_take_be32(at);
	p->fecn = word & BTH_FECN;
	p->becn = word & BTH_BECN;
	p->dest_qpn = word & UVD_PSN_MASK;
	word = packet_take_be32(at);
	p->ack_req = word & BTH_ACK_REQ;
	p->psn = word & UVD_PSN_MASK;
	return flags & BTH_VERSION;
}

static void packet_take_extended(struct uvd_packet *p, const uint8_t *at, uint32_t is)
{
	if (is & UVD_HAS_XRCETH)
		p->srqn = packet_take_be32(&at) & UVD_PSN_MASK;
	if (is & UVD_HAS_DETH) {
		p->qkey = packet_take_be32(&at);
		p->src_qpn = packet_take_be32(&at) & UVD_PSN_MASK;
	}
	if (is & (UVD_HAS_RETH | UVD_HAS_ATOMICETH)) {
		p->va = packet_take_be64(&at);
		p->rkey = packet_take_be32(&at);
	}
	if (is & UVD_HAS_RETH)
		p->length = packet_take_be32(&at);
	if (is & UVD_HAS_ATOMICETH) {
		p->swap_add = packet_take_be64(&at);
		p->compare = packet_take_be64(&at);
	}
	if (is & UVD_HAS_AETH) {
		const uint32_t word = packet_take_be32(&at);

		p->syndrome = word >> 24;
		p->msn = word & UVD_PSN_MASK;
	}
	if (is & UVD_HAS_ATOMICACKETH)
		p->original = packet_take_be64(&at);
	if (is & UVD_HAS_IMMDT)
		p->imm = packet_take_be32(&at);
	if (is & UVD_HAS_IETH)
		p->invalidate_rkey = packet_take_be32(&at);
}

enum uvd_packet_fault uvd_packet_parse(struct uvd_packet *p, const uint8_t *bytes, size_t len)
{
	const struct uvd_opcode_info *info;
	const uint8_t *at = bytes;
	size_t left;
	uint32_t icrc;

	if (len < UVD_BTH_BYTES + UVD_ICRC_BYTES)
		return UVD_PACKET_TOO_SHORT;
	if (len % 4)
		return UVD_PACKET_BAD_LENGTH;
	*p = (struct uvd_packet){ 0 };
	if (packet_take_bth(p, &at))
		return UVD_PACKET_BAD_VERSION;
	info = &opcodes[p->opcode];
	if (!info->name)
		return UVD_PACKET_BAD_OPCODE;
	if (len < info->header_bytes + (size_t)UVD_ICRC_BYTES)
		return UVD_PACKET_TOO_SHORT;
	left = len - info->header_bytes - UVD_ICRC_BYTES;
	if (p->pad > left)
		return UVD_PACKET_BAD_PAD;
	left -= p->pad;
	if (left > UVD_IB_MTU_MAX)
		return UVD_PACKET_TOO_LONG;
	if (left && !(info->is & UVD_HAS_PAYLOAD))
		return UVD_PACKET_HAS_PAYLOAD;
	packet_take_extended(p, at, info->is);
	p->payload = bytes + info->header_bytes;
	p->payload_len = left;
	memcpy(&icrc, bytes + len - UVD_ICRC_BYTES, sizeof(icrc));
	p->icrc = le32toh(icrc);
	return UVD_PACKET_OK;
}

/* ---- build ------------------------------------------------------------------------------------------------------- */

static uint8_t *packet_put_be16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *packet_put_be32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *packet_put_be64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *packet_put_bth(const struct uvd_packet *p, uint8_t *at)
{
	*at++ = p->opcode;
	*at++ = (p->solicited ? BTH_SOLICITED : 0) | (p->migrated ? BTH_MIGRATED : 0) |
		uvd_packet_pad(p->payload_len) << BTH_PAD_SHIFT;
	at = packet_put_be16(at, p->pkey);
	at = packet_put_be32(at, (p->fecn ? BTH_FECN : 0) | (p->becn ? BTH_BECN : 0) | (p->dest_qpn & UVD_PSN_MASK));
	return packet_put_be32(at, (p->ack_req ? BTH_ACK_REQ : 0) | (p->psn & UVD_PSN_MASK));
}

size_t uvd_packet_put_headers(const struct uvd_packet *p, uint8_t *to)
{
	const struct uvd_opcode_info *info = &opcodes[p->opcode];
	const uint32_t is = info->is;
	uint8_t *at;

	if (!info->name)
		return 0;
	at = packet_put_bth(p, to);
	if (is & UVD_HAS_XRCETH)
		at = packet_put_be32(at, p->srqn & UVD_PSN_MASK);
	if (is & UVD_HAS_DETH) {
		at = packet_put_be32(at, p->qkey);
		at = packet_put_be32(at, p->src_qpn & UVD_PSN_MASK);
	}
	if (is & (UVD_HAS_RETH | UVD_HAS_ATOMICETH)) {
		at = packet_put_be64(at, p->va);
		at = packet_put_be32(at, p->rkey);
	}
	if (is & UVD_HAS_RETH)
		at = packet_put_be32(at, p->length);
	if (is & UVD_HAS_ATOMICETH) {
		at = packet_put_be64(at, p->swap_add);
		at = packet_put_be64(at, p->compare);
	}
	if (is & UVD_HAS_AETH)
		at = packet_put_be32(at, (uint32_t)p->syndrome << 24 | (p->msn & UVD_PSN_MASK));
	if (is & UVD_HAS_ATOMICACKETH)
		at = packet_put_be64(at, p->original);
	if (is & UVD_HAS_IMMDT)
		at = packet_put_be32(at, p->imm);
	if (is & UVD_HAS_IETH)
		at = packet_put_be32(at, p->invalidate_rkey);
	if (is & UVD_HAS_CNP)
		memset(at, 0, UVD_CNP_BYTES);
	return info->header_bytes;
}
