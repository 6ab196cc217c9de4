/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Options whose values are lists of addresses. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include "options/internal.h"

bool uvd_option_next_item(const char **text, char *item, size_t size)
{
	size_t len = strcspn(*text, ",");

	if (!**text)
		return false;
	snprintf(item, size, "%.*s", (int)len, *text);
	*text += len + ((*text)[len] == ',');
	return true;
}

const char *uvd_option_set_gids(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_port_config *port = base;
	char item[64];

	for (port->num_gids = 0; uvd_option_next_item(&text, item, sizeof(item)); port->num_gids++) {
		union ibv_gid *gid = &port->gids[port->num_gids];

		if (port->num_gids == UVD_MAX_GIDS)
			return "has too many GIDs";
		if (inet_pton(AF_INET6, item, gid) != 1)
			return "is not a GID such as fe80::2:c903:ab:cdef";
		gid->global.interface_id = htobe64(be64toh(gid->global.interface_id) + nth);
	}
	if (!port->num_gids)
		return "is empty";
	if (port->gid_tbl_len < port->num_gids)
		port->gid_tbl_len = port->num_gids;
	return NULL;
}

bool uvd_option_read_ip(const char *text, union ibv_gid *gid)
{
	*gid = (union ibv_gid){ .raw = { [10] = 0xff, 0xff } };
	return inet_pton(AF_INET, text, gid->raw + 12) == 1 || inet_pton(AF_INET6, text, gid) == 1;
}

/* Puts the addresses before those that the port has. Those without room are left out: the last ones. */
static void port_put_ips(struct uvd_port_config *port, const struct uvd_ips *ips)
{
	const unsigned int had = port->num_gids, room = UVD_MAX_GIDS - ips->num;

	port->num_gids = ips->num + (had < room ? had : room);
	memmove(port->gids + ips->num, port->gids, (port->num_gids - ips->num) * sizeof(port->gids[0]));
	memcpy(port->gids, ips->gids, ips->num * sizeof(port->gids[0]));
	if (port->gid_tbl_len < port->num_gids)
		port->gid_tbl_len = port->num_gids;
}

/* Whether the machine has the addresses is seen when the device is published: this may run where no socket can be made. */
const char *uvd_option_set_ips(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_device_config *config = base;
	struct uvd_ips *ips = &config->ips;
	char item[64];

	if (ips->num)
		return "was given twice";
	for (; uvd_option_next_item(&text, item, sizeof(item)); ips->num++) {
		if (ips->num == UVD_MAX_IPS)
			return "has too many addresses";
		if (!uvd_option_read_ip(item, &ips->gids[ips->num]))
			return "is not an address such as 192.0.2.2 or 2001:db8::2";
	}
	if (!ips->num)
		return "is empty";
	/* Other tables have GIDs of InfiniBand. */
	for (unsigned int p = 0; p < UVD_MAX_PORTS; p++)
		if (IN6_IS_ADDR_V4MAPPED(config->ports[p].gids[0].raw))
			port_put_ips(&config->ports[p], ips);
	return NULL;
}
