/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Socket addresses as text: 192.0.2.1:7174, [2001:db8::1]:7174, and ib:GID/SID or ib:GID/SID/MASK of InfiniBand. */
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/uapi_later.h>

#include "call/call.h"

union address {
	uint16_t family;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct uvd_sockaddr_ib ib;
};

/* The number after the address, if there is one: up to the end of the text. */
static bool parse_port(const char *text, in_port_t *port)
{
	unsigned long value;
	char *end;

	if (!*text)
		return true;
	value = strtoul(text + 1, &end, 10);
	*port = htons(value);
	return *text == ':' && text[1] && !*end && value <= UINT16_MAX;
}

static bool parse_in(const char *text, struct sockaddr_in *in)
{
	char host[INET_ADDRSTRLEN] = "";
	const size_t len = strcspn(text, ":");

	in->sin_family = AF_INET;
	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	return inet_pton(AF_INET, host, &in->sin_addr) == 1 && parse_port(text + len, &in->sin_port);
}

static bool parse_in6(const char *text, struct sockaddr_in6 *in6)
{
	const size_t len = *text == '[' ? strcspn(text, "]") : strlen(text);
	char host[INET6_ADDRSTRLEN] = "";

	in6->sin6_family = AF_INET6;
	if (*text == '[' && !text[len])
		return false;
	if (len - (*text == '[') >= sizeof(host))
		return false;
	memcpy(host, text + (*text == '['), len - (*text == '['));
	return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 &&
	       (*text != '[' || parse_port(text + len + 1, &in6->sin6_port));
}

static bool parse_ib(const char *text, struct uvd_sockaddr_ib *ib)
{
	char host[INET6_ADDRSTRLEN] = "", *end;
	const size_t len = strcspn(text, "/");

	ib->family = UVD_AF_IB;
	ib->sid_mask = UINT64_MAX;
	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	if (inet_pton(AF_INET6, host, ib->gid) != 1)
		return false;
	if (!text[len])
		return true;
	ib->sid = htobe64(strtoull(text + len + 1, &end, 0));
	if (*end == '/')
		ib->sid_mask = htobe64(strtoull(end + 1, &end, 0));
	return !*end;
}

size_t uvd_sockaddr_parse(const char *text, uint8_t *to, size_t room)
{
	union address addr = {};
	size_t len = sizeof(addr.in6);
	bool ok;

	if (!strncmp(text, "ib:", 3)) {
		ok = parse_ib(text + 3, &addr.ib);
		len = sizeof(addr.ib);
	} else if (parse_in(text, &addr.in)) {
		ok = true;
		len = sizeof(addr.in);
	} else {
		addr = (union address){};
		ok = parse_in6(text, &addr.in6);
	}
	if (!ok || len > room)
		return 0;
	memcpy(to, &addr, len);
	return len;
}

bool uvd_sockaddr_format(const uint8_t *data, size_t len, char text[UVD_SOCKADDR_TEXT])
{
	union address addr = {};
	char host[INET6_ADDRSTRLEN];

	memcpy(&addr, data, len < sizeof(addr) ? len : sizeof(addr));
	if (addr.family == AF_INET && len >= sizeof(addr.in))
		snprintf(text, UVD_SOCKADDR_TEXT, "%s:%u", inet_ntop(AF_INET, &addr.in.sin_addr, host, sizeof(host)),
			 ntohs(addr.in.sin_port));
	else if (addr.family == AF_INET6 && len >= sizeof(addr.in6))
		snprintf(text, UVD_SOCKADDR_TEXT, "[%s]:%u",
			 inet_ntop(AF_INET6, &addr.in6.sin6_addr, host, sizeof(host)), ntohs(addr.in6.sin6_port));
	else if (addr.family == UVD_AF_IB && len >= sizeof(addr.ib))
		snprintf(text, UVD_SOCKADDR_TEXT, "ib:%s/0x%" PRIx64 "/0x%" PRIx64,
			 inet_ntop(AF_INET6, addr.ib.gid, host, sizeof(host)), be64toh(addr.ib.sid),
			 be64toh(addr.ib.sid_mask));
	else
		return false;
	return true;
}
