/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --wire: the addresses with which the engine is on the wire, and what a device on the wire has by default. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/internal.h"
#include "persona/persona.h"
#include "util/util.h"

/* Of a route (linux/route.h), and of an IPv6 address (linux/if_addr.h). */
enum { ROUTE_UP = 1, ROUTE_REJECT = 0x200, TEMPORARY = 1, DAD_FAILED = 8, DEPRECATED = 0x20, TENTATIVE = 0x40 };

/* Returns a message that is valid until the thread's next one. */
__attribute__((format(printf, 1, 2))) static const char *wire_wrong(const char *fmt, ...)
{
	static __thread char message[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	return message;
}

/* ---- one address ------------------------------------------------------------------------------------------------- */

/* Reads an interface's name, or its index as uvd_socket_address_text() writes it. Returns 0 if there is none. */
static unsigned int scope_read(const char *text)
{
	char name[IF_NAMESIZE], *end;
	const unsigned long index = strtoul(text, &end, 10);

	return *text && !*end && if_indextoname(index, name) ? index : if_nametoindex(text);
}

static bool gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Returns NULL if one host can have this address, and packets with it leave the engine. */
static const char *wire_check(const char *item, const union ibv_gid *gid)
{
	const uint8_t *r = gid->raw;
	const bool is_ipv4 = uvd_gid_is_ipv4(gid);

	if (is_ipv4 ? !r[12] : IN6_IS_ADDR_UNSPECIFIED((const struct in6_addr *)gid))
		return wire_wrong(
			"has `%s`, which stands for any address: name addresses of this machine, or give `auto`", item);
	if (is_ipv4 ? r[12] >= 0xe0 : r[0] == 0xff)
		return wire_wrong("has `%s`, which is no address of one machine: name addresses of this machine", item);
	if (is_ipv4 ? r[12] == IN_LOOPBACKNET && !r[13] && !r[14] && r[15] == 1
		    : IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)gid))
		return wire_wrong(
			"has `%s`, which each engine has for itself: name an address that other hosts reach; between engines of "
			"one machine 127.0.0.2 and so on",
			item);
	return NULL;
}

static const char *wire_read(const char *item, struct uvd_socket_address *a)
{
	char text[INET6_ADDRSTRLEN + 1] = "";
	const char *scope = strchr(item, '%');

	*a = (struct uvd_socket_address){};
	snprintf(text, sizeof(text), "%.*s", (int)(scope ? scope - item : (ptrdiff_t)strlen(item)), item);
	if (!uvd_option_read_ip(text, &a->gid))
		return wire_wrong("has `%s`, which is not an address such as 192.0.2.2, 2001:db8::2 or fe80::2%%eth0",
				  item);
	if (gid_is_link_local(&a->gid) != !!scope)
		return wire_wrong(
			scope ? "has `%s`: only a link-local address needs its interface"
			      : "has `%s`, a link-local address: give its interface, too, as in fe80::2%%eth0",
			item);
	a->scope = scope ? scope_read(scope + 1) : 0;
	if (scope && !a->scope)
		return wire_wrong("has `%s`, but there is no interface `%s`: `ip link` shows them", item, scope + 1);
	return wire_check(item, &a->gid);
}

static bool wire_has(const struct uvd_wire_options *w, const struct uvd_socket_address *a)
{
	for (unsigned int i = 0; i < w->num; i++)
		/* Two interfaces can have the same link-local address, but a table of GIDs cannot have it twice. */
		if (!memcmp(&w->list[i].gid, &a->gid, sizeof(a->gid)))
			return true;
	return false;
}

/* ---- auto -------------------------------------------------------------------------------------------------------- */

/* Reads a line of /proc/net/route: of IPv4. Returns whether it is a default route. */
static bool route4_read(const char *line, char name[IF_NAMESIZE], unsigned int *metric)
{
	unsigned int to, mask, flags;

	return sscanf(line, "%15s %x %*x %x %*u %*u %u %x", name, &to, &flags, metric, &mask) == 5 && !to && !mask &&
	       (flags & (ROUTE_UP | ROUTE_REJECT)) == ROUTE_UP;
}

/* The same of /proc/net/ipv6_route. */
static bool route6_read(const char *line, char name[IF_NAMESIZE], unsigned int *metric)
{
	unsigned int bits, flags;
	char to[33];

	return sscanf(line, "%32s %x %*s %*x %*s %x %*x %*x %x %15s", to, &bits, metric, &flags, name) == 5 && !bits &&
	       strspn(to, "0") == 32 && (flags & (ROUTE_UP | ROUTE_REJECT)) == ROUTE_UP;
}

/* Stores the interface of the default route with the least metric. Returns false if there is none. */
static bool route_default(const char *path, bool (*read_line)(const char *, char *, unsigned int *),
			  char best[IF_NAMESIZE])
{
	unsigned int metric, least = 0;
	char line[256], name[IF_NAMESIZE];
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (!read_line(line, name, &metric) || (found && metric >= least))
			continue;
		found = true;
		least = metric;
		strcpy(best, name);
	}
	if (f)
		fclose(f);
	return found;
}

static void wire_add(struct uvd_wire_options *w, const union ibv_gid *gid)
{
	const struct uvd_socket_address a = { .gid = *gid };

	if (w->num < UVD_MAX_WIRES && !wire_check("", gid) && !wire_has(w, &a))
		w->list[w->num++] = a;
}

/* getifaddrs() calls a further address of eth0 by its label, such as eth0:1. */
static bool label_is_of(const char *label, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(label, name, len) && (!label[len] || label[len] == ':');
}

static void wire_add_ipv4(struct uvd_wire_options *w, const char *name)
{
	struct ifaddrs *all, *i;

	if (getifaddrs(&all))
		return;
	for (i = all; i; i = i->ifa_next) {
		union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !label_is_of(i->ifa_name, name))
			continue;
		memcpy(gid.raw + 12, &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
		wire_add(w, &gid);
	}
	freeifaddrs(all);
}

/*
 * Leaves out link-local addresses, which are those of one link, and temporary ones, which the machine loses soon; and those
 * that cannot be bound (yet).
 */
static void wire_add_ipv6(struct uvd_wire_options *w, const char *name)
{
	const unsigned int unfit = TEMPORARY | DAD_FAILED | DEPRECATED | TENTATIVE;
	FILE *f = fopen("/proc/net/if_inet6", "re");
	char line[128], of[IF_NAMESIZE];
	union ibv_gid gid;
	unsigned int flags;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*x %*x %*x %x %15s", &flags, of) != 2 || flags & unfit || strcmp(of, name))
			continue;
		for (int i = 0; i < 16; i++)
			if (sscanf(line + 2 * i, "%2hhx", &gid.raw[i]) != 1)
				gid.raw[i] = 0;
		if (!gid_is_link_local(&gid))
			wire_add(w, &gid);
	}
	if (f)
		fclose(f);
}

static const char *wire_auto(struct uvd_wire_options *w)
{
	char name[IF_NAMESIZE];

	if (!route_default("/proc/net/route", route4_read, name) &&
	    !route_default("/proc/net/ipv6_route", route6_read, name))
		return "finds no default route: name addresses, which `ip address` shows";
	wire_add_ipv4(w, name);
	wire_add_ipv6(w, name);
	return w->num ? NULL
		      : wire_wrong("finds no address of %s, the interface of the default route: name addresses, which "
				   "`ip address` shows",
				   name);
}

/* ---- the option -------------------------------------------------------------------------------------------------- */

static const char *wire_read_list(struct uvd_wire_options *w, const char *text)
{
	const char *wrong;
	char item[64];

	for (w->num = 0; uvd_option_next_item(&text, item, sizeof(item)); w->num++) {
		if (w->num == UVD_MAX_WIRES)
			return wire_wrong("has more than %d addresses", UVD_MAX_WIRES);
		wrong = wire_read(item, &w->list[w->num]);
		if (wrong)
			return wrong;
		if (wire_has(w, &w->list[w->num]))
			return wire_wrong("has `%s` twice: name each address once", item);
	}
	return w->num ? NULL : "is empty: name addresses of this machine, or give `auto`";
}

/* Locally administered, as the GUIDs of engines without a wire, and without multicast's bit. The last byte is the device's and port's. */
static uint64_t wire_random_guid(void)
{
	const uint64_t high = uvd_random(1 << 24), low = uvd_random(1 << 24);

	return UINT64_C(2) << 56 | high << 32 | low << 8;
}

const char *uvd_option_set_wire(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_options *o = base;
	struct uvd_wire_options *w = &o->wire;

	/* The broker has opened the sockets, and told their addresses: `auto` may be others by now. */
	if (o->wire_is_known)
		return NULL;
	w->num = 0;
	w->guid = w->guid ?: wire_random_guid();
	return strcmp(text, "auto") ? wire_read_list(w, text) : wire_auto(w);
}

const char *uvd_option_set_known_wire(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_options *o = base;
	int end = 0;

	o->wire_is_known = true;
	if (sscanf(text, "%" SCNx64 ",%n", &o->wire.guid, &end) != 1 || !end)
		return "is none";
	return wire_read_list(&o->wire, text + end);
}

void uvd_options_wire_text(const struct uvd_wire_options *w, char text[UVD_WIRE_TEXT])
{
	char item[UVD_SOCKET_ADDRESS_TEXT];
	size_t len = 0;

	*text = 0;
	for (unsigned int i = 0; i < w->num; i++)
		len += snprintf(text + len, UVD_WIRE_TEXT - len, "%s%s", i ? "," : "",
				uvd_socket_address_text(&w->list[i], item));
}

bool uvd_options_same_wire(const struct uvd_wire_options *a, const struct uvd_wire_options *b)
{
	if (a->num != b->num)
		return false;
	for (unsigned int i = 0; i < a->num; i++)
		if (memcmp(&a->list[i].gid, &b->list[i].gid, sizeof(a->list[i].gid)) ||
		    a->list[i].scope != b->list[i].scope)
			return false;
	return true;
}

/* ---- devices on the wire ----------------------------------------------------------------------------------------- */

void uvd_option_device_is_ethernet(struct uvd_device_config *config)
{
	for (struct uvd_port_config *port = config->ports; port < config->ports + UVD_MAX_PORTS; port++) {
		uvd_option_port_is_ethernet(port);
		port->gids[0] = (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
		port->num_gids = 1;
	}
}

void uvd_option_wire_begin(const struct uvd_wire_options *w, struct uvd_device_config *config, unsigned int index)
{
	uvd_option_device_is_ethernet(config);
	for (struct uvd_port_config *port = config->ports; port < config->ports + UVD_MAX_PORTS; port++)
		port->active_mtu = 0;
	uvd_config_set_guid(config, w->guid + (uint64_t)index * UVD_MAX_PORTS);
}

/* Puts the wire's addresses first. Those that do not fit are left out: the last ones. */
static unsigned int gids_put_first(union ibv_gid *gids, unsigned int num, unsigned int max,
				   const struct uvd_wire_options *w)
{
	union ibv_gid all[UVD_MAX_WIRES + UVD_MAX_GIDS];
	unsigned int n = 0;

	for (; n < w->num; n++)
		all[n] = w->list[n].gid;
	for (unsigned int i = 0; i < num; i++)
		if (!wire_has(w, &(struct uvd_socket_address){ .gid = gids[i] }))
			all[n++] = gids[i];
	n = n < max ? n : max;
	memcpy(gids, all, n * sizeof(*gids));
	return n;
}

const char *uvd_option_wire_end(const struct uvd_wire_options *w, struct uvd_device_config *config)
{
	for (unsigned int i = 0; i < config->num_ports; i++)
		if (config->ports[i].link_layer != IBV_LINK_LAYER_ETHERNET)
			return "--link-layer infiniband: a device on the wire is Ethernet: leave out one of this and --wire";
	for (struct uvd_port_config *port = config->ports; port < config->ports + UVD_MAX_PORTS; port++) {
		port->num_gids = gids_put_first(port->gids, port->num_gids, UVD_MAX_GIDS, w);
		if (port->gid_tbl_len < port->num_gids)
			port->gid_tbl_len = port->num_gids;
	}
	config->ips.num = gids_put_first(config->ips.gids, config->ips.num, UVD_MAX_ADDRESSES, w);
	config->num_wires = w->num;
	return NULL;
}
