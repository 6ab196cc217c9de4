/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include "persona/persona.h"

/* A locally administered EUI-64: 02, "uverbs" in ASCII, 00. No adapter was ever sold with such a GUID. */
#define UVD_GUID_BASE 0x0275766572627300ull

static const struct uvd_persona *const personas[] = { &uvd_persona_hfi1, &uvd_persona_rxe };

const struct uvd_persona *uvd_persona_at(unsigned int i)
{
	return i < UVD_COUNT(personas) ? personas[i] : NULL;
}

const struct uvd_persona *uvd_persona_find(const char *name)
{
	for (size_t i = 0; i < UVD_COUNT(personas); i++)
		if (!strcmp(personas[i]->name, name))
			return personas[i];
	return NULL;
}

int uvd_persona_ops(const struct uvd_persona *persona, const struct uvd_backend *backend, struct uvd_backend *ops)
{
	*ops = *backend;
	if (!persona->queues)
		return 0;
	/* As in rxe: of the data-path commands its uverbs_cmd_mask has only POST_SEND and REQ_NOTIFY_CQ. */
	ops->poll_cq = NULL;
	ops->post_recv = NULL;
	ops->post_srq_recv = NULL;
	return uvd_backend_maps_queues(backend) ? 0 : -EOPNOTSUPP;
}

/* Port 1 has the node's GUID, as on most adapters. */
void uvd_config_set_guid(struct uvd_device_config *config, uint64_t guid)
{
	config->node_guid = htobe64(guid);
	config->sys_image_guid = htobe64(guid);
	/* The persona may be a plug-in's, which is not found by name here: port_default() has set the GID if has_ip_gid. */
	if (IN6_IS_ADDR_V4MAPPED(config->ports[0].gids[0].raw))
		return;
	for (unsigned int p = 0; p < UVD_MAX_PORTS; p++) {
		config->ports[p].gids[0].global.subnet_prefix = htobe64(0xfe80ull << 48);
		config->ports[p].gids[0].global.interface_id = htobe64(guid + p);
	}
}

static void port_default(struct uvd_port_config *port, const struct uvd_persona *persona, uint16_t lid)
{
	*port = (struct uvd_port_config){
		.link_layer = persona->link_layer,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.active_width = 2, /* 4X */
		.active_speed = 32, /* EDR */
		.gid_tbl_len = 8,
		.num_gids = 1,
		.num_pkeys = 1,
		.pkeys = { 0xffff },
	};
	if (persona->has_ip_gid)
		port->gids[0] = (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	if (persona->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		port->lid = lid;
		port->sm_lid = 1;
		port->num_pkeys = 2;
		port->pkeys[1] = 0x7fff;
	}
}

/* Similar to the limits of real adapters, so that programs find the sizes that they expect. */
static const struct uvd_limits default_limits = {
	.max_mr_size = 1ull << 40,
	.max_qp = 65536,
	.max_qp_wr = 16384,
	.max_sge = 32,
	.max_cq = 65536,
	.max_cqe = (1 << 20) - 1,
	.max_mr = 1 << 20,
	.max_mw = 1 << 20,
	.max_pd = 65536,
	.max_ah = 65536,
	.max_srq = 65536,
	.max_srq_wr = 16384,
	.max_srq_sge = 32,
	.max_qp_rd_atom = 16,
	.max_qp_init_rd_atom = 16,
	.max_mcast_grp = 8192,
	.max_mcast_qp_attach = 64,
	.max_xrcd = 65536,
	.max_counters = 65536,
	.max_inline_data = 512,
};

void uvd_config_default(struct uvd_device_config *config, const struct uvd_persona *persona, unsigned int index)
{
	memset(config, 0, sizeof(*config));
	snprintf(config->ibdev, sizeof(config->ibdev), "%s%u", persona->ibdev_prefix, index);
	config->number = index;
	snprintf(config->backend, sizeof(config->backend), "soft");
	snprintf(config->persona, sizeof(config->persona), "%s", persona->name);
	snprintf(config->fw_ver, sizeof(config->fw_ver), "%s", persona->fw_ver);
	snprintf(config->board_id, sizeof(config->board_id), "%s", persona->board_id);
	config->vendor_id = persona->vendor_id;
	config->vendor_part_id = persona->vendor_part_id;
	config->hw_ver = persona->hw_ver;
	config->hidden_caps = persona->unusable_caps;
	config->num_ports = 1;
	config->num_comp_vectors = 4;
	config->memory = UVD_MEMORY_AUTO;
	/* Fill in all ports, so that a caller that wants more than one only has to set num_ports. */
	for (unsigned int p = 0; p < UVD_MAX_PORTS; p++)
		port_default(&config->ports[p], persona, p * UVD_MAX_DEVICES + index + 1);
	uvd_config_set_guid(config, UVD_GUID_BASE + index * UVD_MAX_PORTS);
	config->limits = default_limits;
}
