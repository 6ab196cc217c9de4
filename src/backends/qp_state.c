/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The state table of queue pairs: the valid transitions, and the attributes that each requires and allows. */
#include <uverbsd/backend.h>

/* QP types that user programs cannot create, but the table has. */
enum { SMI = 0, GSI = 1, NUM_TYPES = IBV_QPT_XRC_RECV + 1 };
enum { NUM_STATES = IBV_QPS_ERR + 1 };

struct masks {
	int required, optional; /* enum ibv_qp_attr_mask */
};

/* For a QP type that it does not list, a valid transition requires and allows no attributes. */
static const struct {
	bool valid;
	struct masks by_type[NUM_TYPES];
} qp_state_table[NUM_STATES][NUM_STATES] = {
	[IBV_QPS_RESET][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_RESET][IBV_QPS_INIT] = { .valid = true, .by_type = {
		[SMI] = { IBV_QP_PKEY_INDEX | IBV_QP_QKEY, 0 },
		[GSI] = { IBV_QP_PKEY_INDEX | IBV_QP_QKEY, 0 },
		[IBV_QPT_RC] = { IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0 },
		[IBV_QPT_UC] = { IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0 },
		[IBV_QPT_UD] = { IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
		[IBV_QPT_RAW_PACKET] = { IBV_QP_PORT, 0 },
		[IBV_QPT_XRC_SEND] = { IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0 },
		[IBV_QPT_XRC_RECV] = { IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0 },
	} },
	[IBV_QPS_INIT][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_INIT][IBV_QPS_INIT] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[GSI] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[IBV_QPT_RC] = { 0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT },
		[IBV_QPT_UC] = { 0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT },
		[IBV_QPT_UD] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
		[IBV_QPT_XRC_SEND] = { 0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT },
		[IBV_QPT_XRC_RECV] = { 0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT },
	} },
	[IBV_QPS_INIT][IBV_QPS_RTR] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[GSI] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[IBV_QPT_RC] = {
			IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH,
		},
		[IBV_QPT_UC] = {
			IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_DEST_QPN,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH,
		},
		[IBV_QPT_UD] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[IBV_QPT_XRC_SEND] = {
			IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_DEST_QPN,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH,
		},
		[IBV_QPT_XRC_RECV] = {
			IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH,
		},
	} },
	[IBV_QPS_INIT][IBV_QPS_ERR] = { .valid = true },
	[IBV_QPS_RTR][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_RTR][IBV_QPS_RTS] = { .valid = true, .by_type = {
		[SMI] = { IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[GSI] = { IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_RC] = {
			IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
			IBV_QP_SQ_PSN,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_UC] = {
			IBV_QP_SQ_PSN,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_UD] = { IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_RAW_PACKET] = { 0, IBV_QP_RATE_LIMIT },
		[IBV_QPT_XRC_SEND] = {
			IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
			IBV_QP_SQ_PSN,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_XRC_RECV] = {
			IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		},
	} },
	[IBV_QPS_RTR][IBV_QPS_ERR] = { .valid = true },
	[IBV_QPS_RTS][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_RTS][IBV_QPS_RTS] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[GSI] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_RC] = {
			0,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_UC] = { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE },
		[IBV_QPT_UD] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_RAW_PACKET] = { 0, IBV_QP_RATE_LIMIT },
		[IBV_QPT_XRC_SEND] = {
			0,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_XRC_RECV] = {
			0,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		},
	} },
	[IBV_QPS_RTS][IBV_QPS_SQD] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		[GSI] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		[IBV_QPT_RC] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		[IBV_QPT_UC] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		[IBV_QPT_UD] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		[IBV_QPT_XRC_SEND] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		[IBV_QPT_XRC_RECV] = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	} },
	[IBV_QPS_RTS][IBV_QPS_ERR] = { .valid = true },
	[IBV_QPS_SQD][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_SQD][IBV_QPS_RTS] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[GSI] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_RC] = {
			0,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_UC] = { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE },
		[IBV_QPT_UD] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_XRC_SEND] = {
			0,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_XRC_RECV] = {
			0,
			IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE,
		},
	} },
	[IBV_QPS_SQD][IBV_QPS_SQD] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[GSI] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[IBV_QPT_RC] = {
			0,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
			IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH |
			IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_UC] = {
			0,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_UD] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[IBV_QPT_XRC_SEND] = {
			0,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
			IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH |
			IBV_QP_PATH_MIG_STATE,
		},
		[IBV_QPT_XRC_RECV] = {
			0,
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
			IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE,
		},
	} },
	[IBV_QPS_SQD][IBV_QPS_ERR] = { .valid = true },
	[IBV_QPS_SQE][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_SQE][IBV_QPS_RTS] = { .valid = true, .by_type = {
		[SMI] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[GSI] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPT_UC] = { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
		[IBV_QPT_UD] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	} },
	[IBV_QPS_SQE][IBV_QPS_ERR] = { .valid = true },
	[IBV_QPS_ERR][IBV_QPS_RESET] = { .valid = true },
	[IBV_QPS_ERR][IBV_QPS_ERR] = { .valid = true },
};

bool uvd_modify_qp_is_ok(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type, int mask)
{
	struct masks masks = { 0, 0 };

	if ((unsigned int)cur >= NUM_STATES || (unsigned int)next >= NUM_STATES)
		return false;
	if ((mask & IBV_QP_CUR_STATE) && cur != IBV_QPS_RTR && cur != IBV_QPS_RTS && cur != IBV_QPS_SQD &&
	    cur != IBV_QPS_SQE)
		return false;
	if (!qp_state_table[cur][next].valid)
		return false;
	if ((unsigned int)type < NUM_TYPES)
		masks = qp_state_table[cur][next].by_type[type];
	return (mask & masks.required) == masks.required && !(mask & ~(masks.required | masks.optional | IBV_QP_STATE));
}
