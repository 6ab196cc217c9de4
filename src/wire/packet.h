/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The InfiniBand headers of a RoCE v2 packet: the InfiniBand specification, volume 1, chapter 9, annex A14 (XRC) and
 * annex A17 (RoCE v2). One table (packet.c) has the headers of each opcode; the parser and the builder both follow it.
 * The kernel has the same in rxe_opcode.c, rxe_hdr.h and ib_pack.h.
 *
 * No state, no locks, no memory of its own: any thread may call these functions.
 */
#ifndef UVD_WIRE_PACKET_H
#define UVD_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/* Bytes. */
enum {
	UVD_BTH_BYTES = 12,
	UVD_XRCETH_BYTES = 4,
	UVD_DETH_BYTES = 8,
	UVD_RETH_BYTES = 16,
	UVD_ATOMICETH_BYTES = 28,
	UVD_AETH_BYTES = 4,
	UVD_ATOMICACKETH_BYTES = 8,
	UVD_IMMDT_BYTES = 4,
	UVD_IETH_BYTES = 4,
	UVD_CNP_BYTES = 16, /* zeros behind the BTH of a congestion notification (A17.9.3) */
	UVD_ICRC_BYTES = 4,
	UVD_IB_HEADERS_MAX = UVD_BTH_BYTES + UVD_XRCETH_BYTES + UVD_ATOMICETH_BYTES,
	UVD_IB_TRAILER_MAX = 3 + UVD_ICRC_BYTES, /* the pad bytes, and the ICRC */
	UVD_IB_MTU_MIN = 256,
	UVD_IB_MTU_MAX = 4096, /* of a packet's payload */
	/* The longest datagram, that is: the payload of UDP. The longest headers have no payload, so this is a little more. */
	UVD_IB_DATAGRAM_MAX = UVD_IB_HEADERS_MAX + UVD_IB_MTU_MAX + UVD_ICRC_BYTES,
	UVD_ROCE_PORT = 4791, /* UDP */
	UVD_PSN_MASK = 0xffffff, /* also of QPNs and MSNs */
};

/* ---- opcodes ----------------------------------------------------------------------------------------------------- */

/* The first three bits of an opcode. UVD_TRANSPORT_RD (0x40) is not here: no adapter has it. */
enum uvd_transport {
	UVD_TRANSPORT_RC = 0x00,
	UVD_TRANSPORT_UC = 0x20,
	UVD_TRANSPORT_UD = 0x60,
	UVD_TRANSPORT_CNP = 0x80,
	UVD_TRANSPORT_XRC = 0xa0,
	UVD_TRANSPORT_MASK = 0xe0,
};

/* The last five bits of an opcode: the specification's names. */
enum uvd_operation {
	UVD_SEND_FIRST = 0x00,
	UVD_SEND_MIDDLE = 0x01,
	UVD_SEND_LAST = 0x02,
	UVD_SEND_LAST_WITH_IMMEDIATE = 0x03,
	UVD_SEND_ONLY = 0x04,
	UVD_SEND_ONLY_WITH_IMMEDIATE = 0x05,
	UVD_RDMA_WRITE_FIRST = 0x06,
	UVD_RDMA_WRITE_MIDDLE = 0x07,
	UVD_RDMA_WRITE_LAST = 0x08,
	UVD_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x09,
	UVD_RDMA_WRITE_ONLY = 0x0a,
	UVD_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x0b,
	UVD_RDMA_READ_REQUEST = 0x0c,
	UVD_RDMA_READ_RESPONSE_FIRST = 0x0d,
	UVD_RDMA_READ_RESPONSE_MIDDLE = 0x0e,
	UVD_RDMA_READ_RESPONSE_LAST = 0x0f,
	UVD_RDMA_READ_RESPONSE_ONLY = 0x10,
	UVD_ACKNOWLEDGE = 0x11,
	UVD_ATOMIC_ACKNOWLEDGE = 0x12,
	UVD_COMPARE_SWAP = 0x13,
	UVD_FETCH_ADD = 0x14,
	UVD_SEND_LAST_WITH_INVALIDATE = 0x16,
	UVD_SEND_ONLY_WITH_INVALIDATE = 0x17,
	UVD_ATOMIC_WRITE = 0x1d,
	UVD_OPERATION_MASK = 0x1f,
};

/* All opcodes that uvd_packet_parse() knows: X(transport, operation). */
/* clang-format off */
#define UVD_CONNECTED_OPCODES(X, t) \
	X(t, SEND_FIRST) X(t, SEND_MIDDLE) X(t, SEND_LAST) X(t, SEND_LAST_WITH_IMMEDIATE) X(t, SEND_ONLY) \
	X(t, SEND_ONLY_WITH_IMMEDIATE) X(t, RDMA_WRITE_FIRST) X(t, RDMA_WRITE_MIDDLE) X(t, RDMA_WRITE_LAST) \
	X(t, RDMA_WRITE_LAST_WITH_IMMEDIATE) X(t, RDMA_WRITE_ONLY) X(t, RDMA_WRITE_ONLY_WITH_IMMEDIATE)
#define UVD_RELIABLE_OPCODES(X, t) \
	UVD_CONNECTED_OPCODES(X, t) \
	X(t, RDMA_READ_REQUEST) X(t, RDMA_READ_RESPONSE_FIRST) X(t, RDMA_READ_RESPONSE_MIDDLE) \
	X(t, RDMA_READ_RESPONSE_LAST) X(t, RDMA_READ_RESPONSE_ONLY) X(t, ACKNOWLEDGE) X(t, ATOMIC_ACKNOWLEDGE) \
	X(t, COMPARE_SWAP) X(t, FETCH_ADD) X(t, SEND_LAST_WITH_INVALIDATE) X(t, SEND_ONLY_WITH_INVALIDATE) \
	X(t, ATOMIC_WRITE)
#define UVD_OPCODES(X) \
	UVD_RELIABLE_OPCODES(X, RC) \
	UVD_CONNECTED_OPCODES(X, UC) \
	X(UD, SEND_ONLY) X(UD, SEND_ONLY_WITH_IMMEDIATE) \
	UVD_RELIABLE_OPCODES(X, XRC)
/* clang-format on */

/* Whole opcodes: UVD_RC_SEND_FIRST, UVD_UC_SEND_FIRST, UVD_UD_SEND_ONLY, UVD_XRC_RDMA_READ_REQUEST and so on. */
enum uvd_opcode {
#define UVD_OPCODE_ENUM(transport, operation) \
	UVD_##transport##_##operation = UVD_TRANSPORT_##transport | UVD_##operation,
	UVD_OPCODES(UVD_OPCODE_ENUM)
#undef UVD_OPCODE_ENUM
		UVD_CNP = 0x81, /* congestion notification */
};

/* What a packet of an opcode is. The headers stand in the packet in the order of their bits. */
enum {
	UVD_IS_REQUEST = 1 << 0, /* from requester to responder */
	UVD_IS_RESPONSE = 1 << 1,
	UVD_IS_FIRST = 1 << 2, /* of its message */
	UVD_IS_LAST = 1 << 3, /* the only packet of a message is both, one in the middle neither */
	UVD_IS_SEND = 1 << 4,
	UVD_IS_WRITE = 1 << 5, /* RDMA WRITE */
	UVD_IS_READ = 1 << 6, /* request or response */
	UVD_IS_ATOMIC = 1 << 7, /* compare & swap, fetch & add: request or response. Not ATOMIC WRITE */
	UVD_HAS_PAYLOAD = 1 << 8, /* it may have some */
	UVD_HAS_XRCETH = 1 << 9,
	UVD_HAS_DETH = 1 << 10,
	UVD_HAS_RETH = 1 << 11,
	UVD_HAS_ATOMICETH = 1 << 12,
	UVD_HAS_AETH = 1 << 13,
	UVD_HAS_ATOMICACKETH = 1 << 14,
	UVD_HAS_IMMDT = 1 << 15,
	UVD_HAS_IETH = 1 << 16,
	UVD_HAS_CNP = 1 << 17,
};

struct uvd_opcode_info {
	const char *name; /* "RC_SEND_FIRST"; NULL: there is no such opcode */
	uint32_t is; /* bits of the enum above */
	uint8_t header_bytes; /* BTH and all that follows it up to the payload */
};

/* Returns the row of an opcode, whose name is NULL if there is no such opcode. Never NULL. */
const struct uvd_opcode_info *uvd_opcode_info(uint8_t opcode);

/* Operations whose messages are cut into packets. */
enum uvd_packet_message {
	UVD_MESSAGE_SEND,
	UVD_MESSAGE_SEND_WITH_IMMEDIATE,
	UVD_MESSAGE_SEND_WITH_INVALIDATE,
	UVD_MESSAGE_WRITE,
	UVD_MESSAGE_WRITE_WITH_IMMEDIATE,
	UVD_MESSAGE_READ_RESPONSE,
};

/* Returns the operation (enum uvd_operation) of a packet at this place of its message. OR a transport to it. */
uint8_t uvd_operation_of(enum uvd_packet_message message, bool is_first, bool is_last);

/* Returns the transport of a QP's packets: RC for a type that has none of its own. */
uint8_t uvd_transport_of(enum ibv_qp_type type);
/* Returns the operation (enum uvd_operation) of a request's packet. A READ or an atomic has one packet, whatever its place. */
uint8_t uvd_request_operation(enum ibv_wr_opcode opcode, bool is_first, bool is_last);
/* Returns the work request's opcode of a SEND or an RDMA WRITE, by the properties of its last packet's opcode. */
enum ibv_wr_opcode uvd_message_opcode(uint32_t is);

/* ---- acknowledgements -------------------------------------------------------------------------------------------- */

/* The syndrome of an AETH (9.7.5.1): two bits say which kind, five bits are its value. */
enum uvd_aeth {
	UVD_AETH_KIND = 0x60, /* mask */
	UVD_AETH_VALUE = 0x1f, /* mask */
	UVD_AETH_ACK_KIND = 0x00, /* value: credits */
	UVD_AETH_RNR = 0x20, /* value: the code of the RNR timer */
	UVD_AETH_NAK_KIND = 0x60, /* value: the reason */

	UVD_AETH_NO_CREDITS = 0x1f, /* a value of an acknowledgement: the responder does not count its receives */
	UVD_AETH_ACK = UVD_AETH_ACK_KIND | UVD_AETH_NO_CREDITS,
	UVD_AETH_SEQUENCE_ERROR = 0x60,
	UVD_AETH_INVALID_REQUEST = 0x61,
	UVD_AETH_ACCESS_ERROR = 0x62,
	UVD_AETH_OPERATION_ERROR = 0x63,
	UVD_AETH_INVALID_RD_REQUEST = 0x64,
};

/* Returns how many receives the value of an acknowledgement tells of, but for UVD_AETH_NO_CREDITS (the kernel's rvt_get_credit()). */
uint32_t uvd_aeth_credits(uint8_t value);

/* ---- a packet ---------------------------------------------------------------------------------------------------- */

/*
 * All that the headers of one packet say, in host byte order. Fields of headers that the opcode does not have are 0 after
 * uvd_packet_parse(), and ignored by uvd_packet_put_headers().
 */
struct uvd_packet {
	/* BTH. The transport version is always 0. */
	uint8_t opcode; /* enum uvd_opcode */
	uint8_t pad; /* 0 to 3 bytes behind the payload. put_headers() computes it, and ignores this field */
	bool solicited; /* SE: the receiver's event is solicited */
	bool migrated; /* M: the sender's path is in state MIGRATED */
	bool fecn, becn; /* congestion notifications. The ICRC covers neither */
	bool ack_req; /* A: the requester asks for an acknowledgement */
	uint16_t pkey;
	uint32_t dest_qpn; /* 24 bits, as psn, src_qpn, srqn and msn */
	uint32_t psn;

	uint32_t srqn; /* XRCETH */
	uint32_t qkey, src_qpn; /* DETH */
	uint64_t va; /* RETH, AtomicETH */
	uint32_t rkey; /* RETH, AtomicETH */
	uint32_t length; /* RETH: bytes of the whole message */
	uint64_t swap_add, compare; /* AtomicETH: the value to swap in or to add; compare is 0 for FETCH_ADD */
	uint8_t syndrome; /* AETH: enum uvd_aeth */
	uint32_t msn; /* AETH */
	uint64_t original; /* AtomicAckETH: the value before the operation */
	uint32_t imm; /* ImmDt, in host order: htobe32() makes a completion's imm_data of it */
	uint32_t invalidate_rkey; /* IETH */

	/*
	 * parse(): inside the parsed bytes, which the caller keeps; not aligned. put_headers() reads the length only: the
	 * payload may be anywhere.
	 */
	const uint8_t *payload;
	uint32_t payload_len; /* bytes, without padding */
	uint32_t icrc; /* as read: parse() does not check it. Compare it with uvd_icrc() */
};

/* Why a datagram is no packet. Such a datagram gets no answer. */
enum uvd_packet_fault {
	UVD_PACKET_OK,
	UVD_PACKET_TOO_SHORT, /* for the headers of its opcode and an ICRC */
	UVD_PACKET_BAD_LENGTH, /* not a multiple of 4 bytes */
	UVD_PACKET_BAD_VERSION, /* the transport version is not 0 */
	UVD_PACKET_BAD_OPCODE, /* unknown, or one that we do not have: RD, FLUSH */
	UVD_PACKET_BAD_PAD, /* more pad bytes than bytes follow the headers */
	UVD_PACKET_TOO_LONG, /* more payload than UVD_IB_MTU_MAX */
	UVD_PACKET_HAS_PAYLOAD, /* its opcode has none */
	UVD_PACKET_FAULTS,
};

/* Returns a name for messages and counters: "too short". */
const char *uvd_packet_fault_name(enum uvd_packet_fault fault);

/*
 * Parses a datagram, from its BTH to the end of its ICRC. Reads each byte of the headers and of the ICRC once, and none
 * behind `len`. Tolerates anything. Ignores reserved bits. On a fault *p is undefined.
 * It does not check what depends on a QP: see uvd_packet_fits_mtu().
 */
enum uvd_packet_fault uvd_packet_parse(struct uvd_packet *p, const uint8_t *bytes, size_t len);

/*
 * Writes the headers, from the BTH to the payload, with reserved bits 0 and the pad count that payload_len needs. `to` has
 * room for UVD_IB_HEADERS_MAX bytes. Returns their length; 0: there is no such opcode. The caller appends the payload,
 * uvd_packet_pad(payload_len) zeros, and the ICRC.
 */
size_t uvd_packet_put_headers(const struct uvd_packet *p, uint8_t *to);

/* Returns how many zeros follow a payload of so many bytes. */
static inline uint32_t uvd_packet_pad(uint32_t payload_len)
{
	return -payload_len & 3;
}

/* Returns the bytes of the whole datagram, with its ICRC. */
static inline uint32_t uvd_packet_bytes(size_t header_bytes, uint32_t payload_len)
{
	return header_bytes + payload_len + uvd_packet_pad(payload_len) + UVD_ICRC_BYTES;
}

/*
 * Does the payload have the length that a packet at this place of its message must have at this path MTU? The first and
 * those in the middle: the MTU; the last: 1 byte up to the MTU; the only one: up to the MTU (C9-92, rxe's
 * rxe_resp_check_length()); an ATOMIC WRITE: 8 bytes. A responder answers a request of another length with a NAK (invalid
 * request). True for opcodes without payload.
 */
bool uvd_packet_fits_mtu(const struct uvd_packet *p, uint32_t mtu);

/* Returns the PSN n behind this one; n may be negative. */
static inline uint32_t uvd_psn_add(uint32_t psn, int32_t n)
{
	return (psn + (uint32_t)n) & UVD_PSN_MASK;
}

/* Returns a - b of two 24-bit PSNs: -2^23 to 2^23 - 1 (rxe's psn_compare()). */
static inline int32_t uvd_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
