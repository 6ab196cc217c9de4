/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Intel Omni-Path, version 1 of its ABI. If sysfs shows that version, the stock provider (libhfi1verbs) maps nothing:
 * it posts, polls and arms CQs by commands, so it works on a device that clients cannot map. It sends no driver data
 * at all, so this persona needs no feature.
 */
#include <rdma/ib_user_ioctl_verbs.h>
#include "persona/persona.h"

/*
 * The driver has some 200 counters. Most count events of its hardware, which the soft engine does not have: these are the
 * ones that its RC state machine counts, and that we have too.
 */
static const struct uvd_counter_file hfi1_hw_counters[] = {
	{ "RnrNak", 1u << UVD_PORT_RNR_RCVD },
	{ "RcTimeOut", 1u << UVD_PORT_RETRIES | 1u << UVD_PORT_RETRY_EXCEEDED },
	{ NULL },
};

const struct uvd_persona uvd_persona_hfi1 = {
	.name = "hfi1",
	.ibdev_prefix = "hfi1_",
	.driver_id = RDMA_DRIVER_HFI1,
	.abi_version = 1,
	.modalias = "pci:v00008086d000024F0sv00008086sd000024F0bc02sc08i00",
	.board_id = "uverbsd",
	.fw_ver = UVD_VERSION,
	.node_desc = "uverbsd",
	/* The ids of the real adapter: programs look up their tuning by them. */
	.vendor_id = 0x1175,
	.vendor_part_id = 0x24f0,
	.hw_ver = 0x10,
	.has_hw_rev = true,
	.hw_counters = hfi1_hw_counters,
	.link_layer = IBV_LINK_LAYER_INFINIBAND,
	.unusable_caps = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC,
};
