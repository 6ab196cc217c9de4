/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files of one device, with the kernel's names and formats (drivers/infiniband/core/sysfs.c and the PCI core).
 * Files whose value would be an invention, such as the statistics of the connection manager, are left out.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "persona/persona.h"
#include "sysfs/internal.h"

/* Writes one of several files, unless an earlier write failed. `err` keeps the first error. */
#define put(err, dir, ...) ((err) = (err) ? (err) : uvd_dir_put(dir, __VA_ARGS__))

static int put_guid(int dir, const char *path, __be64 guid)
{
	uint64_t g = be64toh(guid);

	return uvd_dir_put(dir, path, "%04x:%04x:%04x:%04x\n", (unsigned int)(g >> 48),
			   (unsigned int)(g >> 32 & 0xffff), (unsigned int)(g >> 16 & 0xffff),
			   (unsigned int)(g & 0xffff));
}

static int put_gid(int dir, const char *path, const union ibv_gid *gid)
{
	const uint8_t *r = gid->raw;

	return uvd_dir_put(dir, path, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", r[0],
			   r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
			   r[15]);
}

/* Writes the width and speed codes of struct ibv_port_attr in the kernel's format: "100 Gb/sec (4X EDR)". */
static int put_rate(int dir, const char *path, const struct uvd_port_config *port)
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
	return uvd_dir_put(dir, path, "%u%s Gb/sec (%uX %s)\n", rate / 10, rate % 10 ? ".5" : "", widths[w].lanes,
			   speeds[s].name);
}

/*
 * Empty slots have all their files too, because libibverbs treats a missing type as a broken table. An empty ndevs file
 * means "no network device" (reading the kernel's file fails with EINVAL, which a plain file cannot do).
 */
static int put_gids(int dir, const char *prefix, const struct uvd_port_config *port)
{
	static const union ibv_gid none;
	bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
	char path[96];
	int err = 0;

	for (unsigned int i = 0; i < port->gid_tbl_len && !err; i++) {
		bool used = i < port->num_gids;
		snprintf(path, sizeof(path), "%s/gids/%u", prefix, i);
		err = put_gid(dir, path, used ? &port->gids[i] : &none);
		snprintf(path, sizeof(path), "%s/gid_attrs/types/%u", prefix, i);
		put(err, dir, path, "%s\n", ethernet ? "RoCE v2" : "IB/RoCE v1");
		snprintf(path, sizeof(path), "%s/gid_attrs/ndevs/%u", prefix, i);
		put(err, dir, path, "%s", ethernet && used ? "lo\n" : "");
	}
	return err;
}

static const char *state_text(bool up)
{
	return up ? "4: ACTIVE" : "1: DOWN";
}

static const char *phys_state_text(bool up)
{
	return up ? "5: LinkUp" : "3: Disabled";
}

int uvd_sysfs_fill_state(int dir, unsigned int port, bool up)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "ports/%u/state", port);
	err = uvd_dir_replace(dir, path, state_text(up));
	snprintf(path, sizeof(path), "ports/%u/phys_state", port);
	return err ? err : uvd_dir_replace(dir, path, phys_state_text(up));
}

static int sysfs_fill_port(int dir, unsigned int number, const struct uvd_port_config *port,
			   const struct uvd_persona *persona)
{
	bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
	char prefix[32], path[96];
	int err = 0;

	snprintf(prefix, sizeof(prefix), "ports/%u", number);
#define FILE_(name) (snprintf(path, sizeof(path), "%s/%s", prefix, name), path)
	put(err, dir, FILE_("state"), "%s\n", state_text(!port->down));
	put(err, dir, FILE_("phys_state"), "%s\n", phys_state_text(!port->down));
	put(err, dir, FILE_("link_layer"), "%s\n", ethernet ? "Ethernet" : "InfiniBand");
	put(err, dir, FILE_("lid"), "0x%x\n", port->lid);
	put(err, dir, FILE_("lid_mask_count"), "%d\n", port->lmc);
	put(err, dir, FILE_("sm_lid"), "0x%x\n", port->sm_lid);
	put(err, dir, FILE_("sm_sl"), "%d\n", port->sm_sl);
	put(err, dir, FILE_("cap_mask"), "0x%08x\n", uvd_config_port_caps(port));
	err = err ? err : put_rate(dir, FILE_("rate"), port);
	for (unsigned int i = 0; i < port->num_pkeys && !err; i++) {
		snprintf(path, sizeof(path), "%s/pkeys/%u", prefix, i);
		put(err, dir, path, "0x%04x\n", port->pkeys[i]);
	}
#undef FILE_
	err = err ? err : uvd_sysfs_fill_counters(dir, number, persona);
	return err ? err : put_gids(dir, prefix, port);
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
	snprintf(path, sizeof(path), "device/infiniband_verbs/uverbs%d", config->number);
	snprintf(target, sizeof(target), "../../../../infiniband_verbs/uverbs%d", config->number);
	return err ? err : uvd_dir_link(dir, path, target);
}

int uvd_sysfs_fill_ibdev(int dir, const struct uvd_device_config *config, const struct uvd_persona *persona)
{
	int err = 0;

	put(err, dir, "uevent", "NAME=%s\n", config->ibdev);
	put(err, dir, "node_type", "1: CA\n");
	put(err, dir, "node_desc", "%s\n", persona->node_desc);
	put(err, dir, "fw_ver", "%s\n", config->fw_ver);
	put(err, dir, "board_id", "%s\n", config->board_id);
	if (persona->has_hw_rev)
		put(err, dir, "hw_rev", "%x\n", config->hw_ver);
	err = err ? err : put_guid(dir, "node_guid", config->node_guid);
	err = err ? err : put_guid(dir, "sys_image_guid", config->sys_image_guid);
	for (unsigned int p = 0; p < config->num_ports && !err; p++)
		err = sysfs_fill_port(dir, p + 1, &config->ports[p], persona);
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
