/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Mapped queues of the persona rxe: the test is the transport that shares their memory, and the provider that uses them. */
#ifndef TESTS_OBJECTS_QUEUES_H
#define TESTS_OBJECTS_QUEUES_H

#include <rdma/rdma_user_rxe.h>
#include <time.h>
#include "tests.h"

/* The shared memory of this stand-in for a transport. */
static struct {
	unsigned int num, refuse_from; /* get() fails from this call on, counted from 1; 0: never */
	unsigned int gets;
	uint64_t offset;
} shared;

static inline int get(void *owner, size_t length, uint8_t **memory, uint64_t *offset)
{
	ck_assert(owner == &shared && length && length % 4096 == 0);
	shared.gets++;
	if (shared.refuse_from && shared.gets >= shared.refuse_from)
		return -ENFILE;
	*memory = calloc(1, length);
	*offset = shared.offset += 1 << 20;
	shared.num++;
	return 0;
}

static inline void put(void *owner, uint8_t *memory, size_t length, uint64_t offset)
{
	ck_assert(owner == &shared && offset <= shared.offset);
	free(memory);
	shared.num--;
}

static const struct uvd_share_ops share_ops = { get, put };

static uint32_t pd, cq;

static inline void begin(bool mapped)
{
	struct ib_uverbs_get_context_resp resp;

	harness_close(&h);
	harness_init(&h, "soft");
	uvd_config_default(&h.config, &uvd_persona_rxe, 0);
	harness_start(&h, &uvd_mem_process);
	memset(&shared, 0, sizeof(shared));
	if (mapped) {
		h.file->share = &share_ops;
		h.file->share_owner = &shared;
	}
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
}

struct cq_answer {
	struct ib_uverbs_create_cq_resp core;
	struct rxe_create_cq_resp driver;
};

static inline int create_cq(uint32_t cqe, struct cq_answer *resp, size_t room)
{
	struct ib_uverbs_create_cq cmd = { .cqe = cqe, .comp_channel = -1 };

	memset(resp, 0, sizeof(*resp));
	return harness_write(&h, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), resp, sizeof(resp->core) + room);
}

static inline uint32_t new_cq(void)
{
	struct cq_answer resp;

	ck_assert_int_eq(create_cq(10, &resp, sizeof(resp.driver)), 0);
	return resp.core.cq_handle;
}

static inline void destroy_cq(uint32_t handle)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq cmd = { .cq_handle = handle };

	ck_assert_int_eq(WRITE(&h, DESTROY_CQ, &cmd, &resp), 0);
}

struct qp_answer {
	struct ib_uverbs_create_qp_resp core;
	struct rxe_create_qp_resp driver;
};

static inline int create_qp(uint32_t send_cq, uint32_t max_wr, struct qp_answer *resp)
{
	struct ib_uverbs_create_qp cmd = {
		.pd_handle = pd,
		.send_cq_handle = send_cq,
		.recv_cq_handle = send_cq,
		.qp_type = IBV_QPT_RC,
		.max_send_wr = max_wr,
		.max_recv_wr = 3,
		.max_send_sge = 1,
		.max_recv_sge = 1,
	};

	memset(resp, 0, sizeof(*resp));
	return harness_write(&h, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), resp, sizeof(*resp));
}

/* ---- traffic ----------------------------------------------------------------------------------------------------- */

static struct qp_answer qps[2];

static inline struct uvd_queue *queue_of(uint32_t handle, const struct uvd_object_row *row, bool send)
{
	struct uvd_uobject *uobj;
	struct uvd_queue *q;

	ck_assert_int_eq(uvd_uobject_get(h.file, row, handle, UVD_UOBJ_READ, &uobj), 0);
	if (row == &uvd_object_cq)
		q = ((struct uvd_cq *)uobj->object)->queue;
	else
		q = send ? ((struct uvd_qp *)uobj->object)->sq : ((struct uvd_qp *)uobj->object)->rq;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return q;
}

/* Returns the producer's next entry, zeroed. publish() passes it to the device. */
static inline void *next_entry(const struct uvd_queue *q)
{
	struct rxe_queue_buf *buf = (struct rxe_queue_buf *)q->memory;
	void *entry = buf->data + ((size_t)buf->producer_index << buf->log2_elem_size);

	return memset(entry, 0, 1u << buf->log2_elem_size);
}

static inline void publish(const struct uvd_queue *q)
{
	struct rxe_queue_buf *buf = (struct rxe_queue_buf *)q->memory;

	__atomic_store_n(&buf->producer_index, (buf->producer_index + 1) & buf->index_mask, __ATOMIC_RELEASE);
}

static inline int modify_qp(int i, const struct ib_uverbs_modify_qp *attr)
{
	struct ib_uverbs_modify_qp cmd = *attr;

	cmd.qp_handle = qps[i].core.qp_handle;
	return WRITE_IN(&h, MODIFY_QP, &cmd);
}

static inline int to_state(int i, enum ibv_qp_state state)
{
	return modify_qp(i, &(struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE, .qp_state = state });
}

static inline void to_init(int i)
{
	const struct ib_uverbs_modify_qp init = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};

	ck_assert_int_eq(modify_qp(i, &init), 0);
}

static inline void to_rtr(int i, uint8_t rnr_timer)
{
	struct ib_uverbs_modify_qp rtr = {
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qps[!i].core.qpn,
		.min_rnr_timer = rnr_timer,
		.dest = { .port_num = 1, .is_global = 1 },
	};

	memcpy(rtr.dest.dgid, &h.config.ports[0].gids[0], sizeof(rtr.dest.dgid));
	ck_assert_int_eq(modify_qp(i, &rtr), 0);
}

static inline void to_rts(int i, uint8_t rnr_retry)
{
	const struct ib_uverbs_modify_qp rts = {
		.attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC,
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.rnr_retry = rnr_retry,
	};

	ck_assert_int_eq(modify_qp(i, &rts), 0);
}

static inline void connect_qp(int i, uint8_t rnr_timer, uint8_t rnr_retry)
{
	to_init(i);
	to_rtr(i, rnr_timer);
	to_rts(i, rnr_retry);
}

static inline void begin_traffic(uint8_t rnr_timer, uint8_t rnr_retry)
{
	begin(true);
	cq = new_cq();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(create_qp(cq, 4, &qps[i]), 0);
	for (int i = 0; i < 2; i++)
		connect_qp(i, rnr_timer, rnr_retry);
}

static inline int ring(int i)
{
	struct ib_uverbs_post_send post = { .qp_handle = qps[i].core.qp_handle,
					    .wqe_size = sizeof(struct ib_uverbs_send_wr) };
	struct ib_uverbs_post_send_resp resp;

	return WRITE(&h, POST_SEND, &post, &resp);
}

/* Posts a send of 0 bytes, and does not ring the doorbell. */
static inline void add_nothing(int i, uint64_t wr_id)
{
	const struct uvd_queue *sq = queue_of(qps[i].core.qp_handle, &uvd_object_qp, true);
	struct rxe_send_wqe *wqe = next_entry(sq);

	wqe->wr.wr_id = wr_id;
	wqe->wr.opcode = IBV_WR_SEND;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	publish(sq);
}

static inline void send_nothing(int i, uint64_t wr_id)
{
	add_nothing(i, wr_id);
	ck_assert_int_eq(ring(i), 0);
}

static inline void post_recv(int i, uint64_t wr_id)
{
	const struct uvd_queue *rq = queue_of(qps[i].core.qp_handle, &uvd_object_qp, false);

	((struct rxe_recv_wqe *)next_entry(rq))->wr_id = wr_id;
	publish(rq);
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Polls the mapped CQ as the provider does, for `seconds` at most. */
static inline bool next_wc(struct ib_uverbs_wc *wc, double seconds)
{
	struct rxe_queue_buf *buf = (struct rxe_queue_buf *)queue_of(cq, &uvd_object_cq, false)->memory;
	double end = now() + seconds;

	while (__atomic_load_n(&buf->producer_index, __ATOMIC_ACQUIRE) == buf->consumer_index)
		if (now() > end)
			return false;
	memcpy(wc, buf->data + ((size_t)buf->consumer_index << buf->log2_elem_size), sizeof(*wc));
	__atomic_store_n(&buf->consumer_index, (buf->consumer_index + 1) & buf->index_mask, __ATOMIC_RELEASE);
	return true;
}

#endif
