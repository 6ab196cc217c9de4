/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files of one device, with the kernel's names and formats (drivers/infiniband/core/sysfs.c and the PCI core).
 * Files whose value would be an invention, such as the statistics of the connection manager, are left out.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "persona/persona.h"
#include "sysfs/internal.h"

/* Writes one of several files, unless an earlier write failed. `err` keeps the first error. */
#define put(err, dir, ...) ((err) = (err) ? (err) : uvd_dir_put(dir, __VA_ARGS__))

static int put_guid(int dir, const char *path, __be64 guid)
{
	char text[UVD_GUID_TEXT];

	return uvd_dir_put(dir, path, "%s\n", uvd_guid_text(be64toh(guid), text));
}

/* ---- the files of a port ----------------------------------------------------------------------------------------- */

/* The folder into which a port's files are written: of a device that has none yet, or to replace published ones. */
struct port_files {
	int dir; /* becomes, or is, class/infiniband/IBDEV */
	unsigned int port; /* from 1 */
	bool replace;
	int err; /* the first error */
};

/* Does the file have this text? Under `run` the client owns the folder too: do not wait for the writer of a FIFO. */
static bool file_has(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const size_t len = strlen(text);
	char buf[128];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	return n == (ssize_t)len && !memcmp(buf, text, len);
}

/* Writes ports/N/NAME, unless it has this text already. */
__attribute__((format(printf, 3, 4))) static void put_file(struct port_files *files, const char *name, const char *fmt,
							   ...)
{
	char path[64], text[96];
	va_list ap;
	int err;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), "ports/%u/%s", files->port, name);
	if (!files->replace)
		err = files->err ? 0 : uvd_dir_put(files->dir, path, "%s", text);
	else
		err = file_has(files->dir, path, text) ? 0 : uvd_dir_replace(files->dir, path, text);
	files->err = files->err ? files->err : err;
}

static void put_gid(struct port_files *files, const char *name, const union ibv_gid *gid)
{
	const uint8_t *r = gid->raw;

	put_file(files, name, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", r[0], r[1],
		 r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14], r[15]);
}

/* Writes the width and speed codes of struct ibv_port_attr in the kernel's format: "100 Gb/sec (4X EDR)". */
static void put_rate(struct port_files *files, const struct uvd_port_config *port)
{
	static const struct {
		uint8_t code, lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	static const struct {
		uint8_t code;
		unsigned int tenths; /* of a Gb/sec per lane */
		const char *name;
	} speeds[] = { { 1, 25, "SDR" },   { 2, 50, "DDR" },   { 4, 100, "QDR" },  { 8, 100, "FDR10" },
		       { 16, 140, "FDR" }, { 32, 250, "EDR" }, { 64, 500, "HDR" }, { 128, 1000, "NDR" } };
	unsigned int w = 0, s = 0;

	for (unsigned int i = 0; i < UVD_COUNT(widths); i++)
		if (widths[i].code == port->active_width)
			w = i;
	for (unsigned int i = 0; i < UVD_COUNT(speeds); i++)
		if (speeds[i].code == port->active_speed)
			s = i;
	unsigned int rate = speeds[s].tenths * widths[w].lanes;
	put_file(files, "rate", "%u%s Gb/sec (%uX %s)\n", rate / 10, rate % 10 ? ".5" : "", widths[w].lanes,
		 speeds[s].name);
}

static bool ip_is(const struct sockaddr *sa, const union ibv_gid *gid)
{
	const union ibv_gid mapped = { .raw = { [10] = 0xff, 0xff } };

	if (!sa)
		return false;
	if (sa->sa_family == AF_INET)
		return !memcmp(gid->raw, mapped.raw, 12) &&
		       !memcmp(gid->raw + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	return sa->sa_family == AF_INET6 && !memcmp(gid->raw, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
}

/* Stores the name of the interface that has this address; "": none has. */
static void find_ndev(const union ibv_gid *gid, char name[IF_NAMESIZE])
{
	struct ifaddrs *all, *i;

	*name = 0;
	if (getifaddrs(&all))
		return;
	for (i = all; i && !*name; i = i->ifa_next)
		if (ip_is(i->ifa_addr, gid))
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(all);
}

/* A port without an adapter is on no network device: "lo" stands for it, but where the device has an address of the machine's. */
static void gid_ndev(const struct uvd_device_config *config, const union ibv_gid *gid, const struct uvd_gid_attr *attr,
		     char name[IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, "%s", config->hca[0] ? attr->ndev : "lo");
	for (unsigned int i = 0; i < config->ips.num; i++)
		if (!memcmp(gid, &config->ips.gids[i], sizeof(*gid)))
			find_ndev(gid, name);
	/* The machine has all addresses 127.x.y.z, of which getifaddrs() tells one. */
	if (!*name && IN6_IS_ADDR_V4MAPPED(gid->raw) && gid->raw[12] == IN_LOOPBACKNET)
		snprintf(name, IF_NAMESIZE, "lo");
}

/*
 * Empty slots have all their files too, because libibverbs treats a missing type as a broken table. An empty ndevs file
 * means "no network device" (reading the kernel's file fails with EINVAL, which a plain file cannot do).
 */
static void put_gids(struct port_files *files, const struct uvd_device_config *config)
{
	static const union ibv_gid none;
	const struct uvd_port_config *port = &config->ports[files->port - 1];
	bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
	char name[48];

	for (unsigned int i = 0; i < port->gid_tbl_len; i++) {
		const struct uvd_gid_attr *attr = &config->gid_attrs[files->port - 1][i];
		const union ibv_gid *gid = uvd_config_has_gid(port, i) ? &port->gids[i] : &none;
		char ndev[IF_NAMESIZE] = "";

		if (ethernet && memcmp(gid, &none, sizeof(none)))
			gid_ndev(config, gid, attr, ndev);
		snprintf(name, sizeof(name), "gids/%u", i);
		put_gid(files, name, gid);
		snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
		put_file(files, name, "%s\n",
			 ethernet && attr->type != IBV_GID_TYPE_ROCE_V1 ? "RoCE v2" : "IB/RoCE v1");
		snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
		put_file(files, name, "%s%s", ndev, *ndev ? "\n" : "");
	}
}

static void put_pkeys(struct port_files *files, const struct uvd_port_config *port)
{
	char name[48];

	for (unsigned int i = 0; i < port->num_pkeys; i++) {
		snprintf(name, sizeof(name), "pkeys/%u", i);
		put_file(files, name, "0x%04x\n", port->pkeys[i]);
	}
	for (unsigned int i = port->num_pkeys; files->replace && i < UVD_MAX_PKEYS; i++) {
		snprintf(name, sizeof(name), "ports/%u/pkeys/%u", files->port, i);
		uvd_dir_remove(files->dir, name);
	}
}

static void put_state(struct port_files *files, bool up)
{
	put_file(files, "state", "%s\n", up ? "4: ACTIVE" : "1: DOWN");
	put_file(files, "phys_state", "%s\n", up ? "5: LinkUp" : "3: Disabled");
}

int uvd_sysfs_replace_state(int dir, unsigned int port, bool up)
{
	struct port_files files = { .dir = dir, .port = port, .replace = true };

	put_state(&files, up);
	return files.err;
}

/* All but the counters. */
static int put_port(struct port_files *files, const struct uvd_device_config *config)
{
	const struct uvd_port_config *port = &config->ports[files->port - 1];

	put_state(files, !uvd_config_port_down(port));
	put_file(files, "link_layer", "%s\n", port->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	put_file(files, "lid", "0x%x\n", port->lid);
	put_file(files, "lid_mask_count", "%d\n", port->lmc);
	put_file(files, "sm_lid", "0x%x\n", port->sm_lid);
	put_file(files, "sm_sl", "%d\n", port->sm_sl);
	put_file(files, "cap_mask", "0x%08x\n", uvd_config_port_caps(port));
	put_rate(files, port);
	put_pkeys(files, port);
	put_gids(files, config);
	return files->err;
}

int uvd_sysfs_replace_port(int dir, unsigned int port, const struct uvd_device_config *config)
{
	return put_port(&(struct port_files){ .dir = dir, .port = port, .replace = true }, config);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* The network device of the device's first address, whatever the link layer: programs look for its addresses there. */
static int fill_net_device(int dir, const struct uvd_device_config *config)
{
	const union ibv_gid *first = config->ips.num ? &config->ips.gids[0] : &config->ports[0].gids[0];
	char path[64], ndev[IF_NAMESIZE];

	gid_ndev(config, first, &config->gid_attrs[0][0], ndev);
	if (!*ndev)
		return 0;
	snprintf(path, sizeof(path), "device/net/%s/uevent", ndev);
	return uvd_dir_put(dir, path, "INTERFACE=%s\n", ndev);
}

/* The files of the bus device. The ids and the class come from the modalias, if it is that of a PCI function. */
static int fill_bus_device(int dir, const struct uvd_device_config *config, const char *modalias)
{
	unsigned int vendor, device, subvendor, subdevice, base, sub, iface;
	char path[96], target[96];
	int err = 0;

	if (*modalias)
		put(err, dir, "device/modalias", "%s\n", modalias);
	put(err, dir, "device/numa_node", "-1\n");
	if (sscanf(modalias, "pci:v%8xd%8xsv%8xsd%8xbc%2xsc%2xi%2x", &vendor, &device, &subvendor, &subdevice, &base,
		   &sub, &iface) == 7) {
		put(err, dir, "device/vendor", "0x%04x\n", vendor);
		put(err, dir, "device/device", "0x%04x\n", device);
		put(err, dir, "device/subsystem_vendor", "0x%04x\n", subvendor);
		put(err, dir, "device/subsystem_device", "0x%04x\n", subdevice);
		put(err, dir, "device/class", "0x%02x%02x%02x\n", base, sub, iface);
	}
	err = err ? err : fill_net_device(dir, config);
	snprintf(path, sizeof(path), "device/infiniband_verbs/uverbs%d", config->number);
	snprintf(target, sizeof(target), "../../../../infiniband_verbs/uverbs%d", config->number);
	return err ? err : uvd_dir_link(dir, path, target);
}

int uvd_sysfs_fill_ibdev(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona)
{
	int err = 0;

	put(err, dir, "uevent", "NAME=%s\n", config->ibdev);
	put(err, dir, "node_type", "1: CA\n");
	put(err, dir, "node_desc", "%s\n", *config->node_desc ? config->node_desc : persona->node_desc);
	put(err, dir, "fw_ver", "%s\n", config->fw_ver);
	put(err, dir, "board_id", "%s\n", config->board_id);
	if (persona->has_hw_rev)
		put(err, dir, "hw_rev", "%x\n", config->hw_ver);
	err = err ? err : put_guid(dir, "node_guid", config->node_guid);
	err = err ? err : put_guid(dir, "sys_image_guid", config->sys_image_guid);
	for (unsigned int p = 1; p <= config->num_ports && !err; p++)
		err = put_port(&(struct port_files){ .dir = dir, .port = p }, config)
			      ?: uvd_sysfs_fill_counters(dir, p, persona);
	return err ? err : fill_bus_device(dir, config, persona->modalias);
}

int uvd_sysfs_fill_uverbs(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona,
			  dev_t node)
{
	char target[96];
	int err = 0;

	put(err, dir, "ibdev", "%s\n", config->ibdev);
	put(err, dir, "abi_version", "%d\n", persona->abi_version);
	put(err, dir, "dev", "%u:%u\n", major(node), minor(node));
	put(err, dir, "uevent", "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/uverbs%d\nDEVMODE=0666\n", major(node),
	    minor(node), config->number);
	snprintf(target, sizeof(target), "../../infiniband/%s/device", config->ibdev);
	return err ? err : uvd_dir_link(dir, "device", target);
}
