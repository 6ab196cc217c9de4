/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queues, indirection tables, and QPs that receive by a table: the fixture, and the calls of a client that is root's.
 * Each call returns 0 or a negative errno.
 */
#ifndef UVD_TESTS_VERBS_BACKEND_WQ_VERBS_H
#define UVD_TESTS_VERBS_BACKEND_WQ_VERBS_H

#include "client.h"

enum { WQ_MAX_WR = 40, WQ_MAX_SGE = 3, WQ_USER_HANDLE = 0x77 };

struct wq {
	uint32_t handle, num;
};

extern struct client wq_client;
extern int wq_events; /* what is made after wq_start() reports to it */
extern struct ib_uverbs_ex_create_wq_resp wq_resp; /* of the last creation */

/* Begins, with an adapter that has work queues or has none. The test may add rules before wq_start(). */
void wq_init(bool has);
void wq_start(void);
void wq_setup(void);
void wq_teardown(void);

int create_wq_with(uint32_t type, uint32_t flags, struct wq *wq);
int create_wq(struct wq *wq);
int modify_wq(const struct wq *wq, struct ib_uverbs_ex_modify_wq cmd);
int modify_wq_state(const struct wq *wq, uint32_t state);
/* reported: the events that the client has read; or NULL. */
int destroy_wq(const struct wq *wq, uint32_t *reported);

/* A table of these two work queues, or of the first one. */
int create_table(const struct wq *first, const struct wq *second, uint32_t *handle);
int destroy_table(uint32_t handle);
/* Makes a work queue and a table of it. Returns the table's handle. */
uint32_t some_table(struct wq *wq);

/* hash: the driver data, of len bytes. */
int create_qp_with(uint32_t table, const void *hash, size_t len, uint32_t *handle);
int create_qp(uint32_t table, uint32_t *handle);
int destroy_qp(uint32_t handle);
struct uverbsd_rx_hash toeplitz(void);

#endif
