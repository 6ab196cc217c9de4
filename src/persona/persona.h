/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A persona: how the device poses for a stock libibverbs provider, which finds it by its names and ids and then speaks
 * the provider's dialect with it (driver data behind the core structs, queue layouts).
 */
#ifndef UVD_PERSONA_H
#define UVD_PERSONA_H

#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/config.h>
#include <uverbsd/queue.h>
#include <uverbsd/schema.h>

/* Queues that the provider maps: their layout, and the driver data that tells the provider where they are. */
struct uvd_persona_queues {
	const struct uvd_queue_ops *ops;
	size_t header; /* bytes before the first entry */
	/* The client's sizes are within the device's limits. shape_sq sets cap's sizes of a request to what the client gets. */
	struct uvd_queue_shape (*shape_sq)(struct ibv_qp_cap *cap);
	struct uvd_queue_shape (*shape_rq)(uint32_t max_wr, uint32_t max_sge);
	struct uvd_queue_shape (*shape_cq)(uint32_t cqe);
	/* The driver's part of a response: how many bytes, at most UVD_PERSONA_RESPONSE. A queue that there is not: NULL. */
	size_t (*cq_response)(void *buf, const struct uvd_queue *cq);
	size_t (*qp_response)(void *buf, const struct uvd_queue *sq, const struct uvd_queue *rq);
	size_t (*srq_response)(void *buf, const struct uvd_queue *rq, uint32_t srq_num);
	/* RESIZE_CQ is answered as CREATE_CQ. MODIFY_SRQ has no response: its driver data name the place, in UVD_PERSONA_SRQ_MODIFY bytes. */
	uint64_t (*srq_modify_place)(const void *in);
	size_t (*srq_modify_response)(void *buf, const struct uvd_queue *rq);
};

enum { UVD_PERSONA_RESPONSE = 64, UVD_PERSONA_SRQ_MODIFY = 8 };

struct uvd_persona {
	const char *name; /* "hfi1" */
	const char *ibdev_prefix; /* device names are this and a number: "hfi1_" */
	uint16_t driver_id; /* enum rdma_driver_id, RDMA_DRIVER_HFI1 */
	int abi_version; /* of the provider's ABI, in sysfs */
	const char *modalias; /* in sysfs, what the provider matches; "": there is no bus device */
	const char *board_id, *fw_ver, *node_desc;
	uint32_t vendor_id, vendor_part_id, hw_ver; /* in query_device */
	uint8_t link_layer; /* of its ports */
	/*
	 * GIDs of each port: one made from its GUID, and before that ::ffff:127.0.0.1, if has_ip_gid. The provider asks the
	 * kernel for the MAC address behind a GID, so it must be an address that the host has a route to.
	 */
	bool has_ip_gid;
	const struct uvd_feature *feature; /* what it adds to the tree; may be NULL */
	const struct uvd_persona_queues *queues; /* NULL: the provider posts and polls by calls */
};

extern const struct uvd_persona uvd_persona_hfi1, uvd_persona_rxe;
/*
 * Copies the functions of a backend that a device with this persona has: all, but a provider with mapped queues has no commands
 * to poll and to post receives. -EOPNOTSUPP: the backend has no mapped queues.
 */
int uvd_persona_ops(const struct uvd_persona *persona, const struct uvd_backend *backend, struct uvd_backend *ops);
/* By name, or NULL. */
const struct uvd_persona *uvd_persona_find(const char *name);
/* One after the other, from 0; NULL: there are no more. */
const struct uvd_persona *uvd_persona_at(unsigned int i);
/*
 * A configuration with the persona's and the backend's defaults for device `index` of the engine (LID index + 1, GUIDs that
 * differ by device...): what `uverbsd` without options makes.
 */
void uvd_config_default(struct uvd_device_config *config, const struct uvd_persona *persona, unsigned int index);
/* Another node GUID (host order), and the port GUIDs in the GID tables that follow from it. */
void uvd_config_set_guid(struct uvd_device_config *config, uint64_t guid);

#endif
