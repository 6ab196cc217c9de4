/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of identifiers: IPv4, IPv6, and AF_IB, which has a GID and a service id. */
#include <endian.h>
#include <string.h>
#include "cm/internal.h"

size_t cm_addr_size(uint16_t family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case UVD_AF_IB:
		return sizeof(struct uvd_sockaddr_ib);
	default:
		return 0;
	}
}

bool cm_addr_is_any(const union cm_addr *addr)
{
	static const uint8_t zero[16];

	switch (addr->family) {
	case AF_INET:
		return !addr->in.sin_addr.s_addr;
	case AF_INET6:
		return !memcmp(&addr->in6.sin6_addr, zero, sizeof(zero));
	case UVD_AF_IB: /* or loopback: cma_any_addr() */
		return !memcmp(addr->ib.gid, zero, sizeof(zero)) || cm_addr_is_loopback(addr);
	default:
		return true;
	}
}

bool cm_addr_is_loopback(const union cm_addr *addr)
{
	static const uint8_t one[16] = { [15] = 1 };

	switch (addr->family) {
	case AF_INET:
		return ntohl(addr->in.sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return !memcmp(&addr->in6.sin6_addr, one, sizeof(one));
	case UVD_AF_IB:
		return !memcmp(addr->ib.gid, one, sizeof(one));
	default:
		return false;
	}
}

bool cm_addr_is_multicast(const union cm_addr *addr)
{
	switch (addr->family) {
	case AF_INET:
		return ntohl(addr->in.sin_addr.s_addr) >> 28 == 0xe;
	case AF_INET6:
		return addr->in6.sin6_addr.s6_addr[0] == 0xff;
	case UVD_AF_IB:
		return addr->ib.gid[0] == 0xff;
	default:
		return false;
	}
}

bool cm_addr_equal(const union cm_addr *a, const union cm_addr *b)
{
	if (a->family != b->family)
		return false;
	switch (a->family) {
	case AF_INET:
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	case AF_INET6:
		return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	default:
		return !memcmp(a->ib.gid, b->ib.gid, sizeof(a->ib.gid));
	}
}

/* AF_IB: the port is the low 16 bits of the service id, as far as the mask has them. */
uint16_t cm_addr_port(const union cm_addr *addr)
{
	switch (addr->family) {
	case AF_INET:
		return ntohs(addr->in.sin_port);
	case AF_INET6:
		return ntohs(addr->in6.sin6_port);
	case UVD_AF_IB:
		return (uint16_t)(be64toh(addr->ib.sid) & be64toh(addr->ib.sid_mask));
	default:
		return 0;
	}
}

void cm_addr_set_port(union cm_addr *addr, uint16_t port)
{
	switch (addr->family) {
	case AF_INET:
		addr->in.sin_port = htons(port);
		break;
	case AF_INET6:
		addr->in6.sin6_port = htons(port);
		break;
	case UVD_AF_IB:
		addr->ib.sid = htobe64((be64toh(addr->ib.sid) & ~UINT64_C(0xffff)) | port);
		addr->ib.sid_mask = htobe64(be64toh(addr->ib.sid_mask) | 0xffff);
		break;
	}
}

void cm_addr_gid(const union cm_addr *addr, uint8_t gid[16])
{
	memset(gid, 0, 16);
	switch (addr->family) {
	case AF_INET:
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &addr->in.sin_addr, 4);
		break;
	case AF_INET6:
		memcpy(gid, &addr->in6.sin6_addr, 16);
		break;
	case UVD_AF_IB:
		memcpy(gid, addr->ib.gid, 16);
		break;
	}
}

void cm_addr_target(const union cm_addr *dst, const union cm_addr *src, union cm_addr *target)
{
	*target = *dst;
	if (!cm_addr_is_any(dst))
		return;
	*target = *src;
	cm_addr_set_port(target, cm_addr_port(dst));
}
