/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Compares one GET with what a client does without the verb: an RDMA READ of the slots, and another one of the key and
 * the value that a slot points to. Both go through one process, with an RC QP that is connected to itself.
 */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client.h"

enum { ROUNDS = 2000, VALUE = 64 };

struct bench {
	struct ibv_context *context;
	struct ibv_mr *mr, *local; /* the table; where READs arrive */
	struct kv_memory memory;
	struct kv_published store;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int driver_id;
	uint8_t buf[1024];
};

static const char bench_key[] = "key-17";

static void bench_must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* ---- the QP ------------------------------------------------------------------------------------------------------ */

static void bench_connect(struct bench *b)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_port_attr port;
	union ibv_gid gid;

	bench_must(!ibv_query_port(b->context, 1, &port) && !ibv_query_gid(b->context, 1, 0, &gid), "the port");
	bench_must(!ibv_modify_qp(b->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		   "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = b->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = 1, .dlid = port.lid },
	};
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh = (struct ibv_global_route){ .dgid = gid, .hop_limit = 1 };
	}
	bench_must(!ibv_modify_qp(b->qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		   "RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .max_rd_atomic = 1 };
	bench_must(!ibv_modify_qp(b->qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC),
		   "RTS");
}

static void bench_open(struct bench *b)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	b->context = kv_open();
	b->driver_id = uverbsd_driver_id(b->context->cmd_fd);
	b->mr = kv_register(b->context, &b->memory);
	bench_must(!kv_call_publish(b->context, b->driver_id, b->mr, &b->store), "PUBLISH");
	b->local = ibv_reg_mr(b->mr->pd, b->buf, sizeof(b->buf), IBV_ACCESS_LOCAL_WRITE);
	b->cq = ibv_create_cq(b->context, 8, NULL, NULL, 0);
	bench_must(b->local && b->cq, "objects");
	init.send_cq = init.recv_cq = b->cq;
	b->qp = ibv_create_qp(b->mr->pd, &init);
	bench_must(!!b->qp, "a QP");
	bench_connect(b);
}

/* ---- the two ways ------------------------------------------------------------------------------------------------ */

static void bench_read(struct bench *b, uint64_t offset, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)b->buf, .length = len, .lkey = b->local->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)b->memory.header + offset, .rkey = b->mr->rkey },
	}, *bad;
	struct ibv_wc wc = {};
	int n;

	bench_must(!ibv_post_send(b->qp, &wr, &bad), "ibv_post_send");
	do
		n = ibv_poll_cq(b->cq, 1, &wc);
	while (!n);
	bench_must(n == 1 && wc.status == IBV_WC_SUCCESS, "a READ");
}

/* Returns where the value is. */
static const uint8_t *bench_by_reads(struct bench *b)
{
	const uint16_t len = sizeof(bench_key);
	const uint64_t hash = kv_hash(bench_key, len);
	const struct kv_slot *slot = (const struct kv_slot *)b->buf, *const end = slot + KV_WINDOW;

	bench_read(b, sizeof(struct kv_header) + (hash & (b->memory.header->num_slots - 1)) * sizeof(*slot),
		   KV_WINDOW * sizeof(*slot));
	while (slot < end && (slot->hash != hash || slot->key_len != len))
		slot++;
	bench_must(slot < end, "the slot");
	bench_read(b, slot->offset, len + slot->value_len);
	return b->buf + len;
}

static const uint8_t *bench_by_get(struct bench *b)
{
	uint32_t len = sizeof(b->buf);

	bench_must(!kv_call_get(b->context, b->driver_id, b->store.number, b->store.key, bench_key, sizeof(bench_key),
				b->buf, &len) &&
			   len == VALUE,
		   "a GET");
	return b->buf;
}

static int bench_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double bench_median(struct bench *b, const uint8_t *(*get)(struct bench *b), const uint8_t *want)
{
	double *us = calloc(ROUNDS, sizeof(*us)), median;

	bench_must(!!us, "memory");
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const double start = bench_now();
		const uint8_t *value = get(b);

		us[i] = bench_now() - start;
		bench_must(!memcmp(value, want, VALUE), "the value");
	}
	qsort(us, ROUNDS, sizeof(*us), bench_compare);
	median = us[ROUNDS / 2];
	free(us);
	return median;
}

int kv_bench(void)
{
	static struct bench b;
	uint8_t value[VALUE];
	double reads, gets;

	for (unsigned int i = 0; i < VALUE; i++)
		value[i] = i;
	bench_open(&b);
	bench_must(!kv_memory_set(&b.memory, bench_key, sizeof(bench_key), value, VALUE), "set");
	reads = bench_median(&b, bench_by_reads, value);
	gets = bench_median(&b, bench_by_get, value);
	printf("two RDMA READs %.1f us, one KV_GET %.1f us (medians of %d, a value of %d bytes)\n", reads, gets, ROUNDS,
	       VALUE);
	return 0;
}
