/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC-32, and the invariant CRC (ICRC) of RoCE v2 packets for a program that has UDP sockets and sees no IP headers: the
 * InfiniBand specification, volume 1, 7.8.1 and A17.3.3; in the kernel rxe_icrc.c.
 *
 * The ICRC covers ones in the place of an LRH, then the packet from its IP header to its pad bytes, with ones in the fields
 * that routers change: type of service, time to live and checksum (IPv4); traffic class, flow label and hop limit (IPv6);
 * UDP's checksum; the first byte of the BTH's second word (FECN, BECN). It is stored little-endian.
 *
 * No state, no locks, no memory: any thread may call these functions.
 */
#ifndef UVD_WIRE_ICRC_H
#define UVD_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/*
 * CRC-32 as Ethernet's and zlib's, of `len` more bytes: begin with 0. Uses uvd_cpu_crc32() where the CPU has it, and tables
 * elsewhere. bytes may be NULL if len is 0.
 */
uint32_t uvd_crc32(uint32_t crc, const void *bytes, size_t len);
/* The same by tables alone, for tests and benchmarks. */
uint32_t uvd_crc32_by_tables(uint32_t crc, const void *bytes, size_t len);

/* What the ICRC covers below the BTH, and what all packets from here to there have in common. */
struct uvd_udp_flow {
	union ibv_gid from, to; /* IPv4 if both are mapped addresses (::ffff:a.b.c.d) */
	uint16_t from_port, to_port; /* host order */
};

/* Is the address an IPv4 one, ::ffff:a.b.c.d? */
bool uvd_gid_is_ipv4(const union ibv_gid *gid);
/* Do its packets have IPv4 headers? Otherwise IPv6. */
bool uvd_udp_flow_is_ipv4(const struct uvd_udp_flow *flow);

/*
 * Begins an ICRC: covers everything up to the end of the BTH. ip_id: the identification, for IPv4 only. udp_payload: bytes of
 * the datagram, from its BTH to the end of its ICRC. Continue with uvd_crc32() over what follows the BTH, piece by
 * piece: extended headers, payload, pad bytes. The result is the ICRC; htole32() makes the packet's last four bytes of it.
 */
uint32_t uvd_icrc_begin(const struct uvd_udp_flow *flow, uint16_t ip_id, const uint8_t bth[12], uint32_t udp_payload);

/* Returns the ICRC of a whole datagram of `len` bytes, of which the last four, its ICRC, are not read. len is at least 16. */
uint32_t uvd_icrc(const struct uvd_udp_flow *flow, uint16_t ip_id, const uint8_t *bytes, uint32_t len);

/*
 * Is `got` the ICRC of the packet? `icrc`: computed with the identification 0; `got`: the packet's. udp_payload: as above.
 * IPv6: they must be equal: 32 bits of check. IPv4: the ICRC covers an identification that no socket tells. CRCs are
 * linear: the difference between the two tells it (*ip_id), unless the packet is damaged. 16 bits of check remain. The
 * flags must be "do not fragment", as rxe and adapters set them.
 */
bool uvd_icrc_fits(const struct uvd_udp_flow *flow, uint32_t icrc, uint32_t got, uint32_t udp_payload, uint16_t *ip_id);

#endif
