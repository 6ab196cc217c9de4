/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include "util/names.h"

#define ROW(prefix, name) \
	{ \
#name, prefix##name \
	}

const struct uvd_named uvd_access_flag_names[] = {
	ROW(IBV_ACCESS_, LOCAL_WRITE),	 ROW(IBV_ACCESS_, REMOTE_WRITE),     ROW(IBV_ACCESS_, REMOTE_READ),
	ROW(IBV_ACCESS_, REMOTE_ATOMIC), ROW(IBV_ACCESS_, MW_BIND),	     ROW(IBV_ACCESS_, ZERO_BASED),
	ROW(IBV_ACCESS_, ON_DEMAND),	 ROW(IBV_ACCESS_, HUGETLB),	     { "FLUSH_GLOBAL", 1 << 8 },
	{ "FLUSH_PERSISTENT", 1 << 9 },	 ROW(IBV_ACCESS_, RELAXED_ORDERING), { NULL },
};

const struct uvd_named uvd_qp_attr_names[] = {
	ROW(IBV_QP_, STATE),
	ROW(IBV_QP_, CUR_STATE),
	ROW(IBV_QP_, EN_SQD_ASYNC_NOTIFY),
	ROW(IBV_QP_, ACCESS_FLAGS),
	ROW(IBV_QP_, PKEY_INDEX),
	ROW(IBV_QP_, PORT),
	ROW(IBV_QP_, QKEY),
	ROW(IBV_QP_, AV),
	ROW(IBV_QP_, PATH_MTU),
	ROW(IBV_QP_, TIMEOUT),
	ROW(IBV_QP_, RETRY_CNT),
	ROW(IBV_QP_, RNR_RETRY),
	ROW(IBV_QP_, RQ_PSN),
	ROW(IBV_QP_, MAX_QP_RD_ATOMIC),
	ROW(IBV_QP_, ALT_PATH),
	ROW(IBV_QP_, MIN_RNR_TIMER),
	ROW(IBV_QP_, SQ_PSN),
	ROW(IBV_QP_, MAX_DEST_RD_ATOMIC),
	ROW(IBV_QP_, PATH_MIG_STATE),
	ROW(IBV_QP_, CAP),
	ROW(IBV_QP_, DEST_QPN),
	ROW(IBV_QP_, RATE_LIMIT),
	{ NULL },
};

const struct uvd_named uvd_wc_status_names[] = {
	ROW(IBV_WC_, SUCCESS),
	ROW(IBV_WC_, LOC_LEN_ERR),
	ROW(IBV_WC_, LOC_QP_OP_ERR),
	ROW(IBV_WC_, LOC_EEC_OP_ERR),
	ROW(IBV_WC_, LOC_PROT_ERR),
	ROW(IBV_WC_, WR_FLUSH_ERR),
	ROW(IBV_WC_, MW_BIND_ERR),
	ROW(IBV_WC_, BAD_RESP_ERR),
	ROW(IBV_WC_, LOC_ACCESS_ERR),
	ROW(IBV_WC_, REM_INV_REQ_ERR),
	ROW(IBV_WC_, REM_ACCESS_ERR),
	ROW(IBV_WC_, REM_OP_ERR),
	ROW(IBV_WC_, RETRY_EXC_ERR),
	ROW(IBV_WC_, RNR_RETRY_EXC_ERR),
	ROW(IBV_WC_, LOC_RDD_VIOL_ERR),
	ROW(IBV_WC_, REM_INV_RD_REQ_ERR),
	ROW(IBV_WC_, REM_ABORT_ERR),
	ROW(IBV_WC_, INV_EECN_ERR),
	ROW(IBV_WC_, INV_EEC_STATE_ERR),
	ROW(IBV_WC_, FATAL_ERR),
	ROW(IBV_WC_, RESP_TIMEOUT_ERR),
	ROW(IBV_WC_, GENERAL_ERR),
	{ NULL },
};

const struct uvd_named uvd_qp_type_names[] = {
	ROW(IBV_QPT_, RC),	 ROW(IBV_QPT_, UC),	  ROW(IBV_QPT_, UD),	 ROW(IBV_QPT_, RAW_PACKET),
	ROW(IBV_QPT_, XRC_SEND), ROW(IBV_QPT_, XRC_RECV), ROW(IBV_QPT_, DRIVER), { NULL },
};

const struct uvd_named uvd_qp_state_names[] = {
	ROW(IBV_QPS_, RESET), ROW(IBV_QPS_, INIT), ROW(IBV_QPS_, RTR), ROW(IBV_QPS_, RTS),
	ROW(IBV_QPS_, SQD),   ROW(IBV_QPS_, SQE),  ROW(IBV_QPS_, ERR), { NULL },
};

const struct uvd_named uvd_event_names[] = {
	ROW(IBV_EVENT_, CQ_ERR),
	ROW(IBV_EVENT_, QP_FATAL),
	ROW(IBV_EVENT_, QP_REQ_ERR),
	ROW(IBV_EVENT_, QP_ACCESS_ERR),
	ROW(IBV_EVENT_, COMM_EST),
	ROW(IBV_EVENT_, SQ_DRAINED),
	ROW(IBV_EVENT_, PATH_MIG),
	ROW(IBV_EVENT_, PATH_MIG_ERR),
	ROW(IBV_EVENT_, DEVICE_FATAL),
	ROW(IBV_EVENT_, PORT_ACTIVE),
	ROW(IBV_EVENT_, PORT_ERR),
	ROW(IBV_EVENT_, LID_CHANGE),
	ROW(IBV_EVENT_, PKEY_CHANGE),
	ROW(IBV_EVENT_, SM_CHANGE),
	ROW(IBV_EVENT_, SRQ_ERR),
	ROW(IBV_EVENT_, SRQ_LIMIT_REACHED),
	ROW(IBV_EVENT_, QP_LAST_WQE_REACHED),
	ROW(IBV_EVENT_, CLIENT_REREGISTER),
	ROW(IBV_EVENT_, GID_CHANGE),
	ROW(IBV_EVENT_, WQ_FATAL),
	{ NULL },
};

const struct uvd_named uvd_wr_opcode_names[] = {
	{ "RDMA WRITE", IBV_WR_RDMA_WRITE },
	{ "RDMA WRITE with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "SEND", IBV_WR_SEND },
	{ "SEND with immediate data", IBV_WR_SEND_WITH_IMM },
	{ "RDMA READ", IBV_WR_RDMA_READ },
	{ "CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "LOCAL_INV", IBV_WR_LOCAL_INV },
	{ "BIND_MW", IBV_WR_BIND_MW },
	{ "SEND with invalidation", IBV_WR_SEND_WITH_INV },
	{ "ATOMIC WRITE", IBV_WR_ATOMIC_WRITE },
	{ NULL },
};

uint32_t uvd_wr_opcode_of(uint32_t wc_opcode)
{
	switch (wc_opcode) {
	case IBV_WC_RDMA_WRITE:
		return IBV_WR_RDMA_WRITE;
	case IBV_WC_RDMA_READ:
		return IBV_WR_RDMA_READ;
	case IBV_WC_COMP_SWAP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case IBV_WC_FETCH_ADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	case IBV_WC_LOCAL_INV:
		return IBV_WR_LOCAL_INV;
	case IBV_WC_BIND_MW:
		return IBV_WR_BIND_MW;
	case IBV_WC_ATOMIC_WRITE:
		return IBV_WR_ATOMIC_WRITE;
	default:
		return IBV_WR_SEND;
	}
}

const char *uvd_name_of(const struct uvd_named *names, uint64_t value)
{
	while (names->name && names->value != value)
		names++;
	return names->name ? names->name : "?";
}

const struct uvd_named *uvd_named_find(const struct uvd_named *names, const char *name)
{
	while (names->name && strcmp(names->name, name) != 0)
		names++;
	return names->name ? names : NULL;
}

const char *uvd_flag_names(const struct uvd_named *names, uint64_t flags, const char *between, char *text, size_t size)
{
	size_t len = 0;

	*text = 0;
	for (; names->name && len < size; names++) {
		if (!(flags & names->value))
			continue;
		flags &= ~names->value;
		len += snprintf(text + len, size - len, "%s%s", len ? between : "", names->name);
	}
	if (flags && len < size)
		snprintf(text + len, size - len, "%s0x%llx", len ? between : "", (unsigned long long)flags);
	return text;
}
