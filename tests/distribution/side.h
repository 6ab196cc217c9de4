/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One program directs several clients of libibverbs, the sides: itself, and children that it forks before it opens a
 * device. Each side registers its arena as memory. The director sees all arenas, so it can compare every byte.
 */
#ifndef SIDE_H
#define SIDE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define CHECK(ok) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, "FAIL %s:%d: %s (errno %m)\n", __FILE__, __LINE__, #ok); \
			_exit(1); \
		} \
	} while (0)

#define ALL_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The address of a QP, for its peer. */
struct address {
	uint32_t qpn;
	uint16_t lid; /* 0: by GID, on Ethernet */
	union ibv_gid gid;
};

struct connection {
	int access; /* the QP's access flags; default ALL_ACCESS */
	uint8_t timeout; /* default 14: 67 ms */
	uint8_t retry_cnt; /* this and rnr_retry: default 7 */
	uint8_t rnr_retry;
	bool no_retries; /* retry_cnt and rnr_retry are 0 */
};

struct side {
	unsigned char *arena;
	size_t size;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_qp *qp[8];
	pid_t pid; /* 0: ourselves */
	int fd; /* to the child */
};

/*
 * Allocate memory that has the same address in all sides made later. arena_of_file(): memory of a file, which a daemon
 * can find and map, too.
 */
unsigned char *arena_new(size_t size);
unsigned char *arena_of_file(size_t size);
/* Makes a side: a child, or this process. Opens no device. */
void side_init(struct side *s, unsigned char *arena, size_t size, bool child);
/* Runs fn on a side, with a copy of arg, which is copied back. fn must be in this program. Returns fn's result. */
int side_call(struct side *s, int (*fn)(struct side *, void *arg), void *arg, size_t size);
void side_end(struct side *s);
void side_kill(struct side *s);

/* To be run by side_call(), or directly on this process's own side. */
int side_open(struct side *s, void *unused); /* context, PD, CQ, MR of the whole arena */
struct ibv_qp *side_qp(struct side *s, enum ibv_qp_type type, bool with_srq);
struct address side_address(struct side *s, struct ibv_qp *qp);
void qp_to_init(struct ibv_qp *qp, const struct connection *how);
void qp_to_rtr(struct ibv_qp *qp, struct address peer, const struct connection *how);
void qp_to_rts(struct ibv_qp *qp, const struct connection *how);
void qp_connect(struct ibv_qp *qp, struct address peer, const struct connection *how);
void qp_to_error(struct ibv_qp *qp);
struct ibv_ah *side_ah(struct side *s, struct address peer);
/* Waits for the next completion. Returns false after `seconds` without one. */
bool next_wc(struct side *s, struct ibv_wc *wc, double seconds);

#endif
