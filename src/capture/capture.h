/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Captures: the traffic of the soft engine as RoCE v2 packets in a pcap file, for `uverbsctl run --pcap`. The engine tells
 * of messages; this room makes packets of them. A mover never waits for the file: it copies a message into a buffer of
 * limited size, and a thread of the capture makes and writes its packets. The packets of a message that does not fit are
 * lost, and counted.
 */
#ifndef UVD_CAPTURE_H
#define UVD_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <infiniband/verbs.h>

#include "wire/wire.h"

struct uvd_capture;

enum uvd_capture_kind {
	UVD_CAPTURE_REQUEST, /* `opcode` says which; bytes: of its payload. A READ or an atomic has none */
	UVD_CAPTURE_READ_RESPONSE,
	UVD_CAPTURE_ATOMIC_RESPONSE, /* value */
	UVD_CAPTURE_ACK, /* positive or negative, by `syndrome` */
	UVD_CAPTURE_DATAGRAM, /* see uvd_capture_add_datagram() */
	UVD_CAPTURE_FRAME, /* bytes: an Ethernet frame, which has no other fields */
};

/* A message, or a part of it that begins with a packet. */
struct uvd_capture_message {
	enum uvd_capture_kind kind;
	enum ibv_qp_type type; /* of the requester's QP */
	enum ibv_wr_opcode opcode; /* of the request, also in responses */
	union ibv_gid from, to;
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
	uint16_t pkey;
	uint32_t from_qpn, to_qpn;
	uint32_t psn; /* of the message's first packet */
	uint32_t mtu; /* bytes: of the payload of each packet but the last */
	uint32_t length; /* bytes: of the message, or of what a READ asks for */
	uint32_t offset; /* in the message, of the first byte that is told here: a multiple of mtu */
	uint32_t qkey; /* UD */
	uint32_t srqn; /* XRC, requests */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add, swap; /* atomics, as in the work request */
	uint64_t value; /* of an atomic response */
	uint32_t imm_data; /* big-endian */
	uint32_t invalidate_rkey;
	bool solicited;
	uint8_t syndrome; /* enum uvd_aeth, of responses */
	uint32_t msn; /* of responses */
	uint16_t from_port, to_port; /* of datagrams. All others get ports that are made of their QPs */
};

struct uvd_capture_result {
	int err; /* the negative errno of a write that failed: the file lacks what came after it; or 0 */
	uint64_t packets, lost; /* packets in the file; packets that did not fit into the buffer */
};

enum {
	UVD_CAPTURE_BUFFER = 32 << 20, /* bytes. There are two such buffers: one is filled while the other is written */
};

/*
 * Begins the file with its header, and starts the thread. Takes over fd. buffer: bytes of each of the two buffers, 0 for
 * the default. Returns NULL on failure: *err is a negative errno, and fd is still the caller's.
 */
struct uvd_capture *uvd_capture_new(int fd, size_t buffer, int *err);
/*
 * Tells a message, or the part of it with these len bytes. Call it for a message's parts in their order, and in the order
 * in which packets would be on the wire. Any thread may call it, under any lock: it copies and returns.
 */
void uvd_capture_add(struct uvd_capture *capture, const struct uvd_capture_message *message, const void *bytes,
		     uint32_t len);
/*
 * Tells a datagram that was sent or received on the wire: what UDP carries, from the BTH to the ICRC, in num pieces. Its packet gets the
 * IPv4 identification that the ICRC tells, or 0. Otherwise as uvd_capture_add().
 */
void uvd_capture_add_datagram(struct uvd_capture *capture, const struct uvd_udp_flow *flow, const struct iovec *iov,
			      unsigned int num);
/* Writes what was told so far, and closes the file. What is told later is ignored. Call it once. */
struct uvd_capture_result uvd_capture_end(struct uvd_capture *capture);
/* Call it after uvd_capture_end(), when no thread uses the capture. NULL is allowed. */
void uvd_capture_free(struct uvd_capture *capture);

#endif
