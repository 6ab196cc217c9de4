/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls that are refused, about the QPs of a soft device. */
#ifndef TESTS_OBJECTS_WHY_QPS_H
#define TESTS_OBJECTS_WHY_QPS_H

#define BACKEND "soft"
#include "why.h"

static uint32_t pd, cq;
static struct uv_qp qp;

static void why_setup(void)
{
	setup();
	h.engine.take_facts = uvd_object_take_facts;
	uv_driver_id();
	log_begin();
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

static void make_qp_of(uint8_t type)
{
	struct uv_qp_attr attr = uv_qp_attr(pd, cq);

	attr.type = type;
	attr.cap.max_recv_wr = 12;
	ck_assert_int_eq(uv_create_qp(h.fd, UV_WRITE, &attr, &qp), 0);
}

static int modify(struct ib_uverbs_modify_qp cmd)
{
	cmd.qp_handle = qp.handle;
	return uv_modify_qp(h.fd, UV_WRITE, &cmd);
}

enum {
	TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
};

static struct ib_uverbs_modify_qp to_init(void)
{
	return (struct ib_uverbs_modify_qp){ .attr_mask = TO_INIT, .qp_state = IBV_QPS_INIT, .port_num = 1 };
}

static struct ib_uverbs_modify_qp to_rtr(void)
{
	return (struct ib_uverbs_modify_qp){
		.attr_mask = TO_RTR,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.dest = { .dlid = 1, .port_num = 1 },
	};
}

static struct ib_uverbs_modify_qp to_rts(void)
{
	return (struct ib_uverbs_modify_qp){ .attr_mask = TO_RTS, .qp_state = IBV_QPS_RTS, .max_rd_atomic = 1 };
}

/* Makes a QP of this type and moves it to this state. */
static void qp_in(uint8_t type, enum ibv_qp_state state)
{
	make_qp_of(type);
	if (state >= IBV_QPS_INIT)
		ck_assert_int_eq(modify(to_init()), 0);
	if (state >= IBV_QPS_RTR)
		ck_assert_int_eq(modify(to_rtr()), 0);
	if (state >= IBV_QPS_RTS)
		ck_assert_int_eq(modify(to_rts()), 0);
}

#define MODIFY_IN(state, base, ...) \
	({ \
		struct ib_uverbs_modify_qp _cmd = base; \
		__attribute__((unused)) struct ib_uverbs_modify_qp *c = &_cmd; \
		qp_in(IBV_QPT_RC, state); \
		__VA_ARGS__; \
		modify(_cmd); \
	})

#endif
