/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queries that backends without an adapter answer from the configuration, and the list of backends. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/backend.h>
#include "backends/backends.h"
#include "cpu/cpu.h"

const struct uvd_backend *uvd_backend_at(unsigned int i)
{
	static const struct uvd_backend *const backends[] = { &uvd_backend_null, &uvd_backend_soft,
							      &uvd_backend_verbs };

	return i < sizeof(backends) / sizeof(backends[0]) ? backends[i] : NULL;
}

const struct uvd_backend *uvd_backend_find(const char *name)
{
	const struct uvd_backend *backend;

	for (unsigned int i = 0; (backend = uvd_backend_at(i)); i++)
		if (!strcmp(backend->name, name))
			return backend;
	return NULL;
}

static unsigned int most_pkeys(const struct uvd_device_config *config)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < config->num_ports; i++)
		if (config->ports[i].num_pkeys > most)
			most = config->ports[i].num_pkeys;
	return most;
}

int uvd_config_query_device(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata)
{
	const struct uvd_device_config *config = &dev->config;
	const struct uvd_limits *limits = &config->limits;
	struct ibv_device_attr *orig = &attr->orig_attr;

	if (uvd_udata_inlen(udata) || uvd_udata_outlen(udata))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	memcpy(orig->fw_ver, config->fw_ver, sizeof(orig->fw_ver) - 1);
	orig->node_guid = config->node_guid;
	orig->sys_image_guid = config->sys_image_guid;
	orig->max_mr_size = limits->max_mr_size;
	orig->page_size_cap = uvd_cpu_page_size();
	orig->vendor_id = config->vendor_id;
	orig->vendor_part_id = config->vendor_part_id;
	orig->hw_ver = config->hw_ver;
	orig->device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT;
	orig->max_qp = limits->max_qp;
	orig->max_qp_wr = limits->max_qp_wr;
	orig->max_sge = limits->max_sge;
	orig->max_sge_rd = limits->max_sge;
	orig->max_cq = limits->max_cq;
	orig->max_cqe = limits->max_cqe;
	orig->max_mr = limits->max_mr;
	orig->max_pd = limits->max_pd;
	orig->max_qp_rd_atom = limits->max_qp_rd_atom;
	orig->max_qp_init_rd_atom = limits->max_qp_init_rd_atom;
	orig->max_res_rd_atom = limits->max_qp_rd_atom * limits->max_qp;
	orig->atomic_cap = IBV_ATOMIC_HCA;
	orig->max_mw = limits->max_mw;
	orig->max_mcast_grp = limits->max_mcast_grp;
	orig->max_mcast_qp_attach = limits->max_mcast_qp_attach;
	orig->max_total_mcast_qp_attach = limits->max_mcast_grp * limits->max_mcast_qp_attach;
	orig->max_ah = limits->max_ah;
	orig->max_srq = limits->max_srq;
	orig->max_srq_wr = limits->max_srq_wr;
	orig->max_srq_sge = limits->max_srq_sge;
	orig->max_pkeys = most_pkeys(config);
	orig->local_ca_ack_delay = 15;
	orig->phys_port_cnt = config->num_ports;
	attr->device_cap_flags_ex = orig->device_cap_flags;
	attr->max_dm_size = limits->max_dm_size;
	attr->phys_port_cnt_ex = config->num_ports;
	return 0;
}

int uvd_config_query_port(struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr)
{
	const struct uvd_port_config *config = &dev->config.ports[port - 1];
	const bool down = uvd_config_port_down(config);

	memset(attr, 0, sizeof(*attr));
	attr->state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	/* The physical states of the InfiniBand specification: 3 disabled, 5 link up. */
	attr->phys_state = down ? 3 : 5;
	attr->max_mtu = config->max_mtu;
	attr->active_mtu = config->active_mtu;
	attr->gid_tbl_len = config->gid_tbl_len;
	attr->port_cap_flags = uvd_config_port_caps(config);
	attr->max_msg_sz = UINT32_C(1) << 31;
	attr->pkey_tbl_len = config->num_pkeys;
	attr->lid = config->lid;
	attr->sm_lid = config->sm_lid;
	attr->lmc = config->lmc;
	attr->sm_sl = config->sm_sl;
	attr->max_vl_num = 1;
	attr->active_width = config->active_width;
	attr->active_speed = config->active_speed;
	attr->link_layer = config->link_layer;
	if (config->link_layer == IBV_LINK_LAYER_ETHERNET)
		attr->flags = IBV_QPF_GRH_REQUIRED;
	return 0;
}

int uvd_config_query_port_speed(struct uvd_ibdev *dev, uint8_t port, uint64_t *speed)
{
	/* Units of 100 Mb/s a lane, by bit of enum ib_port_speed; number of lanes, by bit of enum ib_port_width. */
	static const uint16_t speeds[] = { 25, 50, 100, 100, 140, 250, 500, 1000 };
	static const uint8_t lanes[] = { 1, 4, 8, 12, 2 };
	const struct uvd_port_config *config = &dev->config.ports[port - 1];
	const unsigned int speed_bit = __builtin_ffs(config->active_speed),
			   width_bit = __builtin_ffs(config->active_width);

	*speed = 0;
	if (speed_bit && width_bit && width_bit <= sizeof(lanes))
		*speed = (uint64_t)speeds[speed_bit - 1] * lanes[width_bit - 1];
	return 0;
}

int uvd_config_query_gid(struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry)
{
	const struct uvd_port_config *config = &dev->config.ports[port - 1];

	if (index >= config->gid_tbl_len)
		return -EINVAL;
	if (!uvd_config_has_gid(config, index))
		return -ENODATA;
	memset(entry, 0, sizeof(*entry));
	entry->gid = config->gids[index];
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = config->link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
	return 0;
}
