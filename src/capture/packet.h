/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes RoCE v2 packets. No state, no locks. */
#ifndef UVD_CAPTURE_PACKET_H
#define UVD_CAPTURE_PACKET_H

#include "capture/capture.h"

/* Ethernet, IPv6, UDP, and the longest headers of InfiniBand; padding and ICRC follow the payload. */
enum {
	UVD_PACKET_HEADERS = 14 + 40 + 8 + UVD_IB_HEADERS_MAX + UVD_IMMDT_BYTES,
	UVD_PACKET_TRAILER = UVD_IB_TRAILER_MAX,
	/* Bytes: a path MTU or an Ethernet frame is shorter, and the longest IP packet longer. */
	UVD_PACKET_MOST_PAYLOAD = 32768
};

/* Returns how many bytes of payload the longest packet of len bytes of the message has. */
uint32_t uvd_packet_payload(const struct uvd_capture_message *message, uint32_t len);
/* Returns how many packets len bytes of the message are. */
uint32_t uvd_packets_of(const struct uvd_capture_message *message, uint32_t len);
/*
 * Makes packet i of those of len bytes of the message, in `packet`, which has room for UVD_PACKET_HEADERS +
 * UVD_PACKET_TRAILER bytes and the payload. Returns its length.
 */
size_t uvd_packet_make(uint8_t *packet, const struct uvd_capture_message *message, const uint8_t *bytes, uint32_t len,
		       uint32_t i);

#endif
