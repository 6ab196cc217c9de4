/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds and opens the adapter, and takes its names, ports and tables over into the device's configuration. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "backends/backends.h"
#include "backends/verbs/verbs.h"

/* ---- finding it -------------------------------------------------------------------------------------------------- */

static struct ibv_device *hca_find(struct ibv_device **list, const char *name)
{
	for (; list && *list; list++)
		if (!strcmp(ibv_get_device_name(*list), name))
			return *list;
	return NULL;
}

/* Writes the adapters' names, "a, b", to text. */
static void hca_names(struct ibv_device **list, char *text, size_t size)
{
	size_t len = 0;

	snprintf(text, size, "none");
	for (; list && *list && len < size; list++)
		len += snprintf(text + len, size - len, "%s%s", len ? ", " : "", ibv_get_device_name(*list));
}

void hca_node_path(const struct ibv_device *device, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "/dev/infiniband/%s", device->dev_name);
}

bool hca_is_cuse(const struct ibv_device *device)
{
	char path[PATH_MAX], link[64], target[PATH_MAX] = "";
	struct stat st;

	hca_node_path(device, path);
	if (stat(path, &st) || !S_ISCHR(st.st_mode))
		return false;
	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u/subsystem", major(st.st_rdev), minor(st.st_rdev));
	return readlink(link, target, sizeof(target) - 1) > 0 && strstr(target, "cuse");
}

static int hca_refuse(const struct hca_device *dev, int err, const char *why)
{
	uvd_logf(dev->ibdev->log, UVD_ERR, "%s: --hca %s: %s", dev->ibdev->config.ibdev, dev->hca, why);
	return err;
}

static int hca_open_found(struct hca_device *dev, struct ibv_device *device)
{
	char why[160], node[96];
	int ret;

	if (hca_is_cuse(device))
		return hca_refuse(dev, -ELOOP, "it is a device of uverbsd, and not an adapter");
	errno = 0;
	dev->adapter = ibv_open_device(device);
	if (dev->adapter)
		return 0;
	/* libibverbs looks for another node then, and tells ENOENT. */
	ret = hca_errno();
	snprintf(node, sizeof(node), "/dev/infiniband/%s", device->dev_name);
	if (faccessat(AT_FDCWD, node, R_OK | W_OK, AT_EACCESS) && errno == EACCES) {
		snprintf(why, sizeof(why), "no permission to open %s: EACCES", node);
		return hca_refuse(dev, -EACCES, why);
	}
	snprintf(why, sizeof(why), "libibverbs does not open it: %s", uvd_errno_name(ret));
	return hca_refuse(dev, ret, why);
}

static int hca_find_and_open(struct hca_device *dev)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device = hca_find(list, dev->hca);
	char names[256], why[320];
	int ret;

	if (device) {
		ret = hca_open_found(dev, device);
	} else if (!strcmp(dev->hca, dev->ibdev->config.ibdev)) {
		ret = hca_refuse(dev, -ELOOP, "it is this device itself, and not an adapter");
	} else {
		hca_names(list, names, sizeof(names));
		snprintf(why, sizeof(why), "there is no such adapter; libibverbs finds: %s", names);
		ret = hca_refuse(dev, -ENODEV, why);
	}
	if (list)
		ibv_free_device_list(list);
	return ret;
}

/* libibverbs loads those of all adapters when it finds one whose provider is not loaded. */
void uvd_verbs_load_providers(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list)
		ibv_free_device_list(list);
}

/* ---- what only some adapters have -------------------------------------------------------------------------------- */

static bool hca_has_xrc(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return (attr->orig_attr.device_cap_flags & IBV_DEVICE_XRC) && verbs_get_ctx_op(adapter, open_xrcd) &&
	       verbs_get_ctx_op(adapter, close_xrcd) && verbs_get_ctx_op(adapter, create_srq_ex) &&
	       verbs_get_ctx_op(adapter, get_srq_num) && verbs_get_ctx_op(adapter, create_qp_ex);
}

static bool hca_has_dm(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return attr->max_dm_size && verbs_get_ctx_op(adapter, alloc_dm) && verbs_get_ctx_op(adapter, free_dm) &&
	       verbs_get_ctx_op(adapter, reg_dm_mr);
}

static bool hca_has_counters(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return verbs_get_ctx_op(adapter, create_counters) && verbs_get_ctx_op(adapter, destroy_counters) &&
	       verbs_get_ctx_op(adapter, read_counters) && verbs_get_ctx_op(adapter, attach_counters_point_flow) &&
	       hca_tries_counters(adapter);
}

static bool hca_has_flow(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return (attr->orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) &&
	       verbs_get_ctx_op(adapter, ibv_create_flow) && verbs_get_ctx_op(adapter, ibv_destroy_flow);
}

static bool hca_has_raw(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return attr->raw_packet_caps || attr->orig_attr.max_raw_ethy_qp > 0;
}

static bool hca_has_rereg(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return hca_tries_rereg(adapter);
}

/* A limit of an adapter that its provider does not tell is 0, too: then clients would not use the objects. */
static bool hca_has_rss(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	return attr->max_wq_type_rq && attr->rss_caps.max_rwq_indirection_tables &&
	       verbs_get_ctx_op(adapter, create_wq) && verbs_get_ctx_op(adapter, modify_wq) &&
	       verbs_get_ctx_op(adapter, destroy_wq) && verbs_get_ctx_op(adapter, create_rwq_ind_table) &&
	       verbs_get_ctx_op(adapter, destroy_rwq_ind_table) && verbs_get_ctx_op(adapter, create_qp_ex);
}

static const struct {
	enum hca_feature feature;
	bool (*has)(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr);
} hca_optional[] = {
	{ HCA_XRC, hca_has_xrc },     { HCA_DM, hca_has_dm },	{ HCA_COUNTERS, hca_has_counters },
	{ HCA_FLOW, hca_has_flow },   { HCA_RAW, hca_has_raw }, { HCA_RSS, hca_has_rss },
	{ HCA_REREG, hca_has_rereg },
};

unsigned int hca_features(struct ibv_context *adapter, const struct ibv_device_attr_ex *attr)
{
	unsigned int features = 0;

	for (size_t i = 0; i < sizeof(hca_optional) / sizeof(hca_optional[0]); i++)
		if (hca_optional[i].has(adapter, attr))
			features |= hca_optional[i].feature;
	return features;
}

/* RAW_PACKET QPs and flows, and what has no use without them: counters of flows, and tables, which only such QPs have. */
enum { HCA_OF_RAW_PACKETS = HCA_RAW | HCA_FLOW | HCA_COUNTERS | HCA_RSS };

#define HCA_ABSENT "RAW_PACKET QPs, flows, counters and work queues"

/*
 * The kernel lets only a process with CAP_NET_RAW create RAW_PACKET QPs and flows. Here that process is the engine, after it
 * has checked the client's capability. With an engine that has no capabilities every creation would fail with EPERM, also that
 * of a client with the capability. So the device has no such objects, and clients find that out before they create one.
 */
static void hca_drop_raw_packets(struct hca_device *dev)
{
	if (!(dev->features & HCA_OF_RAW_PACKETS) || hca_has_capability(1u << CAP_NET_RAW))
		return;
	dev->features &= ~HCA_OF_RAW_PACKETS;
	dev->without_raw = true;
	uvd_logf(
		dev->ibdev->log, UVD_INFO,
		"%s: no " HCA_ABSENT ", although %s has some of them: the kernel refuses them "
		"to this process, which has no CAP_NET_RAW; clients have them with `--separate no` and that capability",
		dev->ibdev->config.ibdev, dev->hca);
}

const char *uvd_verbs_absent(const struct uvd_ibdev *ibdev)
{
	return hca_device(ibdev)->without_raw ? HCA_ABSENT : NULL;
}

/* ---- taking it over ---------------------------------------------------------------------------------------------- */

/* Slots that are empty stay zero. */
static void port_take_gids(struct ibv_context *adapter, uint8_t number, struct uvd_port_config *port,
			   struct uvd_gid_attr attrs[UVD_MAX_GIDS])
{
	struct ibv_gid_entry entry;
	char name[IF_NAMESIZE];

	for (unsigned int i = 0; i < port->gid_tbl_len; i++) {
		if (ibv_query_gid_ex(adapter, number, i, &entry, 0))
			continue;
		port->gids[i] = entry.gid;
		port->num_gids = i + 1;
		attrs[i].type = entry.gid_type;
		if (entry.ndev_ifindex && if_indextoname(entry.ndev_ifindex, name))
			snprintf(attrs[i].ndev, sizeof(attrs[i].ndev), "%s", name);
	}
}

static void port_take_pkeys(struct ibv_context *adapter, uint8_t number, unsigned int table,
			    struct uvd_port_config *port)
{
	__be16 key;

	for (port->num_pkeys = 0; port->num_pkeys < table && port->num_pkeys < UVD_MAX_PKEYS; port->num_pkeys++) {
		if (ibv_query_pkey(adapter, number, port->num_pkeys, &key))
			break;
		port->pkeys[port->num_pkeys] = be16toh(key);
	}
}

int hca_take_port(struct uvd_ibdev *ibdev, uint8_t number, struct uvd_port_config *port,
		  struct uvd_gid_attr gid_attrs[UVD_MAX_GIDS])
{
	struct hca_device *dev = hca_device(ibdev);
	struct ibv_context *adapter = dev->adapter;
	struct ibv_port_attr attr;
	int ret;

	if (atomic_load(&dev->dead))
		return -EIO;
	ret = hca_result(ibv_query_port(adapter, number, &attr));
	if (ret)
		return ret;
	*port = (struct uvd_port_config){
		.lid = attr.lid,
		.sm_lid = attr.sm_lid,
		.lmc = attr.lmc,
		.sm_sl = attr.sm_sl,
		.link_layer =
			attr.link_layer == IBV_LINK_LAYER_UNSPECIFIED ? IBV_LINK_LAYER_INFINIBAND : attr.link_layer,
		.max_mtu = attr.max_mtu,
		.active_mtu = attr.active_mtu,
		.active_width = attr.active_width,
		.active_speed = attr.active_speed,
		.down = attr.state != IBV_PORT_ACTIVE,
		.gid_tbl_len = attr.gid_tbl_len < UVD_MAX_GIDS ? attr.gid_tbl_len : UVD_MAX_GIDS,
	};
	port_take_gids(adapter, number, port, gid_attrs);
	port_take_pkeys(adapter, number, attr.pkey_tbl_len, port);
	return 0;
}

static int hca_take_over(struct hca_device *dev)
{
	struct uvd_device_config *config = &dev->ibdev->config;
	struct ibv_device_attr_ex attr = {};
	int ret = hca_result(ibv_query_device_ex(dev->adapter, NULL, &attr));

	if (ret)
		return hca_refuse(dev, ret, "it does not answer a query");
	dev->features = hca_features(dev->adapter, &attr);
	hca_drop_raw_packets(dev);
	config->node_guid = attr.orig_attr.node_guid;
	config->sys_image_guid = attr.orig_attr.sys_image_guid;
	if (attr.orig_attr.fw_ver[0])
		snprintf(config->fw_ver, sizeof(config->fw_ver), "%s", attr.orig_attr.fw_ver);
	config->limits.max_inline_data = HCA_MAX_INLINE; /* each QP has a limit of its own */
	config->num_comp_vectors = dev->adapter->num_comp_vectors;
	config->num_ports = attr.orig_attr.phys_port_cnt < UVD_MAX_PORTS ? attr.orig_attr.phys_port_cnt : UVD_MAX_PORTS;
	for (unsigned int p = 0; p < config->num_ports; p++) {
		ret = hca_take_port(dev->ibdev, p + 1, &config->ports[p], config->gid_attrs[p]);
		if (ret)
			return hca_refuse(dev, ret, "a port does not answer a query");
	}
	return 0;
}

int hca_adapter_open(struct hca_device *dev)
{
	int ret;

	snprintf(dev->hca, sizeof(dev->hca), "%s", dev->ibdev->config.hca);
	if (!dev->hca[0]) {
		uvd_logf(dev->ibdev->log, UVD_ERR,
			 "%s: the backend verbs needs --hca NAME: `uverbsctl hca list` lists the adapters",
			 dev->ibdev->config.ibdev);
		return -EINVAL;
	}
	ret = hca_find_and_open(dev);
	if (ret)
		return ret;
	ret = hca_take_over(dev);
	if (ret)
		ibv_close_device(dev->adapter);
	return ret;
}
