/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The configuration of a device: its names, ports, addresses and limits, from the command line and the INI file
 * (src/options/options.c). It is plain data without pointers. A device has a copy of its own.
 */
#ifndef UVERBSD_CONFIG_H
#define UVERBSD_CONFIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { UVD_MAX_DEVICE_UCAPS = 8, UVD_UCAP_NAME = 32 /* bytes, with the final 0 */ };
enum { UVD_MAX_PORTS = 4, UVD_MAX_GIDS = 16, UVD_MAX_PKEYS = 16, UVD_MAX_DEVICES = 64 };
enum { UVD_NODE_NUMBERS = 1024 /* uverbs0 to uverbs1023 */ };

struct uvd_port_config {
	uint16_t lid, sm_lid; /* InfiniBand only; 0 on Ethernet */
	uint8_t lmc, sm_sl;
	uint8_t link_layer; /* IBV_LINK_LAYER_INFINIBAND or IBV_LINK_LAYER_ETHERNET */
	enum ibv_mtu max_mtu, active_mtu; /* active_mtu 0: what the wire carries, before the device is made */
	uint8_t active_width, active_speed; /* as in struct ibv_port_attr */
	/*
	 * The state is IBV_PORT_DOWN, not IBV_PORT_ACTIVE. A device's state can change at any time: read it by
	 * uvd_config_port_down().
	 */
	bool down;
	/* The size of the table, and the used slots, which come first. Those of an adapter can have slots of zeros between. */
	unsigned int gid_tbl_len, num_gids;
	/* Bit i: gids[i] is an address that the machine has lost, so its slot is empty. Changes at any time: uvd_config_has_gid(). */
	uint32_t lost_gids;
	/*
	 * By default one GID is made from the port's GUID (uvd_config_default()). If the persona has IP GIDs, it is
	 * ::ffff:127.0.0.1, and under `run` ::1 may follow.
	 */
	union ibv_gid gids[UVD_MAX_GIDS];
	unsigned int num_pkeys;
	uint16_t pkeys[UVD_MAX_PKEYS];
};

/* Returns the port_cap_flags of a port without an adapter, for query_port() and sysfs. */
static inline uint32_t uvd_config_port_caps(const struct uvd_port_config *port)
{
	(void)port;
	return IBV_PORT_CM_SUP;
}

/* Does the port have a GID in this slot? May be called from any thread, without a lock. */
static inline bool uvd_config_has_gid(const struct uvd_port_config *port, unsigned int index)
{
	return index < port->num_gids && !(__atomic_load_n(&port->lost_gids, __ATOMIC_RELAXED) >> index & 1);
}

/* The adapter of a backend says this of a GID. */
struct uvd_gid_attr {
	uint8_t type; /* enum ibv_gid_type */
	char ndev[16]; /* the name of its network device; "": unknown, or none */
};

/* Is the port down? May be called from any thread, without a lock. */
static inline bool uvd_config_port_down(const struct uvd_port_config *port)
{
	return __atomic_load_n(&port->down, __ATOMIC_RELAXED);
}

/* The limits of a device, as query_device() reports them. Sizes are bytes, all others are counts. */
struct uvd_limits {
	uint64_t max_mr_size;
	uint64_t max_dm_size; /* all device memory together */
	int max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_mw, max_pd, max_ah, max_srq, max_srq_wr,
		max_srq_sge;
	int max_qp_rd_atom, max_qp_init_rd_atom, max_mcast_grp, max_mcast_qp_attach;
	int max_xrcd, max_counters;
	uint32_t max_inline_data; /* bytes */
};

struct uvd_ucap_names {
	unsigned int num;
	char names[UVD_MAX_DEVICE_UCAPS][UVD_UCAP_NAME];
};

/*
 * Is this a valid name of a User Capability? It becomes a node beside the device's own, so it has 1 to 31 letters,
 * digits, '_', '-' or '.', does not begin with '.', and is neither uverbsN nor rdma_cm.
 */
static inline bool uvd_ucap_name_ok(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	size_t len = strlen(name);

	if ((!strncmp(name, "uverbs", 6) && 6 + strspn(name + 6, "0123456789") == len) || !strcmp(name, "rdma_cm"))
		return false;
	return len && len < UVD_UCAP_NAME && *name != '.' && strspn(name, good) == len;
}

/* Is the name in the list? */
static inline bool uvd_ucap_named(const struct uvd_ucap_names *n, const char *name)
{
	for (unsigned int i = 0; i < n->num; i++)
		if (!strcmp(n->names[i], name))
			return true;
	return false;
}

/* Special values of uvd_device_config.memlock. */
#define UVD_MEMLOCK_CLIENT 0ull /* the client's own RLIMIT_MEMLOCK */
#define UVD_MEMLOCK_UNLIMITED UINT64_MAX

/* The ways in which an adapter can reach the memory that a client registers. */
enum uvd_memory {
	UVD_MEMORY_REFUSE, /* it does not: nothing is registered */
	UVD_MEMORY_BOUNCE, /* by copies in buffers of the engine; peers cannot */
	UVD_MEMORY_BORROW, /* the client's own thread registers it with the adapter; where that fails, bounce */
	UVD_MEMORY_AUTO, /* BORROW if this device can do that without harm, else BOUNCE: the core chooses when it makes the device */
};

/* Those that a device is on the wire with, and others. */
enum { UVD_MAX_WIRES = 8, UVD_MAX_IPS = 8, UVD_MAX_ADDRESSES = UVD_MAX_WIRES + UVD_MAX_IPS };

/* IP addresses, as the GIDs that stand for them: of an IPv4 address the mapped one. */
struct uvd_ips {
	unsigned int num;
	uint32_t lost; /* bit i: the machine has lost gids[i] */
	union ibv_gid gids[UVD_MAX_ADDRESSES];
};

struct uvd_device_config {
	char ibdev[IBV_SYSFS_NAME_MAX]; /* such as hfi1_0 */
	int number; /* N of uverbsN; -1: the next free one */
	char backend[16], persona[16];
	bool write_abi; /* answer the ioctl probe with ENOTTY, so that libibverbs uses write() */
	__be64 node_guid, sys_image_guid;
	char fw_ver[64], board_id[64];
	uint32_t vendor_id, vendor_part_id, hw_ver; /* for query_device() */
	uint32_t hidden_caps; /* IBV_DEVICE_*: what query_device() does not announce, though the device has it */
	unsigned int num_ports, num_comp_vectors;
	struct uvd_port_config ports[UVD_MAX_PORTS]; /* ports[0] is port 1 */
	struct uvd_limits limits;
	uint64_t memlock; /* bytes that a client may register, or UVD_MEMLOCK_* */
	struct uvd_ucap_names ucaps; /* User Capabilities that the device creates */
	char hca[IBV_SYSFS_NAME_MAX]; /* backend verbs: the adapter that it forwards to; "": none */
	unsigned int memory; /* backend verbs: enum uvd_memory, how the adapter reaches clients' memory */
	struct uvd_gid_attr gid_attrs[UVD_MAX_PORTS][UVD_MAX_GIDS]; /* backend verbs: of ports[].gids */
	char node_desc[64]; /* NodeDescription, which subnet tools show (InfiniBand 14.2.5.2); "": the persona's */
	/*
	 * Addresses of the machine that the device has beside the loopback addresses, on all ports: where the persona has IP GIDs, they
	 * are the first ones; elsewhere only the connection manager knows them.
	 */
	struct uvd_ips ips;
	/* So many of them, the first ones, have a socket on the wire. 0: other hosts cannot be reached. */
	unsigned int num_wires;
};

#endif
