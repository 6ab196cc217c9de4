/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The state table of queue pairs: the valid transitions, and the attributes that each requires and allows. */
#include <uverbsd/backend.h>
#include "explain/explain.h"

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

/* The states to go through from cur to next, by the shortest way, as bits; without both. 0: there is no way. */
static unsigned int states_between(enum ibv_qp_state cur, enum ibv_qp_state next)
{
	unsigned int way[NUM_STATES] = { 0 }, seen = 1u << cur, before;

	do {
		before = seen;
		for (int from = 0; from < NUM_STATES; from++)
			for (int to = 0; to < NUM_STATES && before >> from & 1; to++)
				if (qp_state_table[from][to].valid && !(seen >> to & 1)) {
					seen |= 1u << to;
					way[to] = way[from] | 1u << to;
				}
	} while (seen != before && !(seen >> next & 1));
	return way[next] & ~(1u << next);
}

static struct uvd_why no_transition(enum ibv_qp_state cur, enum ibv_qp_state next)
{
	if (next == IBV_QPS_SQE)
		return uvd_why(MODIFY_TO_SQE, { 0 });
	return uvd_why(MODIFY_NO_TRANSITION, { cur }, { next }, { states_between(cur, next) });
}

struct uvd_why uvd_modify_qp_why(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type, int mask)
{
	struct masks masks = { 0, 0 };
	int missing, extra;

	if ((unsigned int)cur >= NUM_STATES)
		return uvd_why(RANGE, { .word = "cur_qp_state" }, { cur }, { 0 }, { NUM_STATES - 1 });
	if ((unsigned int)next >= NUM_STATES)
		return uvd_why(RANGE, { .word = "qp_state" }, { next }, { 0 }, { NUM_STATES - 1 });
	if ((mask & IBV_QP_CUR_STATE) && cur != IBV_QPS_RTR && cur != IBV_QPS_RTS && cur != IBV_QPS_SQD &&
	    cur != IBV_QPS_SQE)
		return uvd_why(MODIFY_EXTRA, { cur }, { next }, { IBV_QP_CUR_STATE });
	if (!qp_state_table[cur][next].valid)
		return no_transition(cur, next);
	if ((unsigned int)type < NUM_TYPES)
		masks = qp_state_table[cur][next].by_type[type];
	missing = masks.required & ~mask;
	extra = mask & ~(masks.required | masks.optional | IBV_QP_STATE);
	if (missing)
		return uvd_why(MODIFY_MISSING, { cur }, { next }, { missing });
	return extra ? uvd_why(MODIFY_EXTRA, { cur }, { next }, { extra }) : (struct uvd_why){ .reason = NULL };
}

bool uvd_modify_qp_is_ok(enum ibv_qp_state cur, enum ibv_qp_state next, enum ibv_qp_type type, int mask)
{
	return !uvd_modify_qp_why(cur, next, type, mask).reason;
}
