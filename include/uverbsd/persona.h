/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A persona: how a device poses for a stock provider of libibverbs. The provider finds the device by its names and
 * ids. From then on it uses its own ABI: driver data behind the core structs, and queue layouts.
 */
#ifndef UVERBSD_PERSONA_H
#define UVERBSD_PERSONA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/config.h>
#include <uverbsd/counters.h>
#include <uverbsd/queue.h>
#include <uverbsd/schema.h>

/* Queues that the provider maps: their layout, and the driver data that tells the provider where they are. */
struct uvd_persona_queues {
	const struct uvd_queue_ops *ops;
	size_t header; /* bytes before the first entry */
	/*
	 * Return the shape of a queue. Callers have checked the sizes against the device's limits. shape_sq also
	 * raises cap's max_send_sge and max_inline_data to what the client gets.
	 */
	struct uvd_queue_shape (*shape_sq)(struct ibv_qp_cap *cap);
	struct uvd_queue_shape (*shape_rq)(uint32_t max_wr, uint32_t max_sge);
	struct uvd_queue_shape (*shape_cq)(uint32_t cqe);
	/*
	 * Write the driver's part of a response to buf. Return its length in bytes, at most UVD_PERSONA_RESPONSE. A
	 * queue that does not exist is NULL.
	 */
	size_t (*cq_response)(void *buf, const struct uvd_queue *cq);
	size_t (*qp_response)(void *buf, const struct uvd_queue *sq, const struct uvd_queue *rq);
	size_t (*srq_response)(void *buf, const struct uvd_queue *rq, uint32_t srq_num);
	/*
	 * RESIZE_CQ uses cq_response. MODIFY_SRQ has no response: srq_modify_place returns the client's address in its
	 * driver data (UVD_PERSONA_SRQ_MODIFY bytes), and srq_modify_response makes the bytes to write there.
	 */
	uint64_t (*srq_modify_place)(const void *in);
	size_t (*srq_modify_response)(void *buf, const struct uvd_queue *rq);
};

enum { UVD_PERSONA_RESPONSE = 64, UVD_PERSONA_SRQ_MODIFY = 8 };

/* A file of sysfs that shows the sum of some counters. */
struct uvd_counter_file {
	const char *name;
	uint32_t counters; /* bits 1 << enum uvd_port_counter; 0: the file shows 0 */
};

struct uvd_persona {
	const char *name; /* "hfi1" */
	const char *ibdev_prefix; /* device names are this and a number: "hfi1_" */
	uint16_t driver_id; /* enum rdma_driver_id, RDMA_DRIVER_HFI1 */
	int abi_version; /* of the provider's ABI, in sysfs */
	const char *modalias; /* in sysfs; the provider matches it; "": there is no bus device */
	const char *board_id, *fw_ver, *node_desc;
	uint32_t vendor_id, vendor_part_id, hw_ver; /* in query_device */
	bool has_hw_rev; /* the driver has a file hw_rev, which shows hw_ver */
	const struct uvd_counter_file *hw_counters; /* of a port, with the driver's names; ends with a name of NULL */
	uint8_t link_layer; /* of its ports */
	uint32_t unusable_caps; /* IBV_DEVICE_* that the backend may have, but the provider has no functions for */
	/*
	 * Each port has a GID that is made from its GUID. If has_ip_gid, it has ::ffff:127.0.0.1 instead, and under
	 * `run` ::1, if the machine has that address: the provider asks the kernel for the MAC address behind a GID, so
	 * each GID must be an address of an interface.
	 */
	bool has_ip_gid;
	const struct uvd_feature *feature; /* what it adds to the tree; may be NULL */
	/*
	 * Here the plug-ins of before have the queues whose functions do not know doorbells that were refused
	 * (queue.h). A persona with such queues is refused.
	 */
	const void *queues_before;
	const struct uvd_persona_queues *queues; /* NULL: the provider posts and polls by calls */
};

#endif
