/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "filters/wc.h"

#define WC_NAME(name, what) name,
const char *const uvd_wc_names[UVD_WC_KINDS] = { UVD_WC_OPTIONS(WC_NAME) };

enum uvd_wc_kind uvd_wc_kind(enum ibv_wc_opcode opcode)
{
	switch (opcode) {
	case IBV_WC_RDMA_WRITE:
		return UVD_WC_WRITE;
	case IBV_WC_RDMA_READ:
		return UVD_WC_READ;
	case IBV_WC_COMP_SWAP:
	case IBV_WC_FETCH_ADD:
		return UVD_WC_ATOMIC;
	case IBV_WC_BIND_MW:
		return UVD_WC_BIND_MW;
	case IBV_WC_LOCAL_INV:
		return UVD_WC_LOCAL_INV;
	default:
		return opcode & IBV_WC_RECV ? UVD_WC_RECV : UVD_WC_SEND;
	}
}
