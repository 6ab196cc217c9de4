/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* mistakes.c: what all mistakes begin with, two QPs. */
#ifndef TESTS_RUN_MISTAKES_H
#define TESTS_RUN_MISTAKES_H

#include "../distribution/side.h"

enum { BYTES = 1 << 16, QKEY = 0x11 };

/* The plan says what the two ends do. A mistake changes it before it is done. */
struct plan {
	enum ibv_qp_type type_a, type_b;
	int qp_access, mr_access;
	enum ibv_qp_state b_state; /* the last one that b gets */
	enum ibv_mtu mtu_b;
	uint32_t psn_b, dest_a, dest_b; /* dest: added to the right number */
	uint16_t pkey_b;
	uint8_t dest_rd_atomic, gid_byte;
	int cqe, messages, receives;
	size_t mr_bytes;
	struct ibv_send_wr wr;
	struct ibv_sge sge, recv_sge;
	uint64_t apart; /* bytes from one receive to the next */
};

extern struct plan plan;
extern struct ibv_context *ctx;
extern struct ibv_pd *pd, *other_pd;
extern struct ibv_cq *cq;
extern struct ibv_qp *a, *b;
extern struct ibv_mr *mr, *other_mr;
extern struct ibv_srq *srq;
extern struct ibv_xrcd *xrcd;
extern unsigned char *bytes;
extern union ibv_gid gid;
extern struct ibv_port_attr port;
extern int pkey_index;

struct ibv_qp *qp_new(enum ibv_qp_type type);
void av_set(struct ibv_ah_attr *av);
/* Brings both QPs to their states. */
void both_connect(void);

#endif
