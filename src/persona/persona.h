/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A persona: how the device poses for a stock libibverbs provider, which finds it by its names and ids and then speaks
 * the provider's dialect with it (driver data behind the core structs, queue layouts).
 */
#ifndef UVD_PERSONA_H
#define UVD_PERSONA_H

#include <stdint.h>
#include <uverbsd/config.h>
#include <uverbsd/schema.h>

struct uvd_persona {
	const char *name; /* "hfi1" */
	const char *ibdev_prefix; /* device names are this and a number: "hfi1_" */
	uint16_t driver_id; /* enum rdma_driver_id, RDMA_DRIVER_HFI1 */
	int abi_version; /* of the provider's ABI, in sysfs */
	const char *modalias; /* in sysfs, what the provider matches */
	const char *board_id, *fw_ver, *node_desc;
	uint32_t vendor_id, vendor_part_id, hw_ver; /* in query_device */
	uint8_t link_layer; /* of its ports */
	const struct uvd_feature *feature; /* what it adds to the tree; may be NULL */
};

extern const struct uvd_persona uvd_persona_hfi1;
/* By name, or NULL. */
const struct uvd_persona *uvd_persona_find(const char *name);
/* One after the other, from 0; NULL: there are no more. */
const struct uvd_persona *uvd_persona_at(unsigned int i);
/*
 * A configuration with the persona's and the backend's defaults for device `index` of the engine (LID index + 1, GUIDs that
 * differ by device...): what `uverbsd` without options makes.
 */
void uvd_config_default(struct uvd_device_config *config, const struct uvd_persona *persona, unsigned int index);
/* Another node GUID (host order), and the port GUIDs in slot 0 of the GID tables that follow from it. */
void uvd_config_set_guid(struct uvd_device_config *config, uint64_t guid);

#endif
