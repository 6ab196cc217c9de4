/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A client of a device of the verbs backend whose adapter is fake_verbs.h: the fixture, and what every test needs of
 * verbs. A test that copies to or from client memory can block the copy.
 */
#ifndef UVD_TESTS_VERBS_BACKEND_CLIENT_H
#define UVD_TESTS_VERBS_BACKEND_CLIENT_H

#include <check.h>
#include <pthread.h>
#include "backends/verbs/verbs.h"
#include "fake_verbs.h"
#include "harness.h"

enum { CLIENT_BYTES = 4096 };

/* A QP, connected to itself unless client_connect() is called, with a region of memory. */
struct client {
	int fd;
	uint32_t pd, cq;
	struct uv_qp qp;
	struct uv_mr mr;
	char *mem; /* CLIENT_BYTES */
};

extern struct harness h;

/* Makes the device. client_init() lets a test change h.config or the limits before client_start(). */
void client_init(const struct uvd_account_limits *limits);
void client_start(void);
void client_setup(void);
void client_teardown(void);

/* Makes a context in the file, a PD, a CQ, a region and a connected QP. */
void client_open(struct client *c, int fd);
/* Another QP and region of the same PD and CQ. */
void client_open_beside(struct client *c, const struct client *first);
/* Gives c another QP, which receives from a new SRQ. Returns the SRQ's handle. */
uint32_t client_open_with_srq(struct client *c);
void client_connect(const struct client *c, uint32_t qpn);
int client_reset(const struct client *c);
/* Both change their QPs at once, to the error state. Does the second one wait until the adapter has carried out the first? */
bool client_changes_wait(const struct client *first, const struct client *second);

/* Posts one request of the bytes [offset, offset + len) of the client's memory. Each returns 0 or a negative errno. */
int client_send(const struct client *c, uint64_t wr_id, size_t offset, size_t len, unsigned int flags);
int client_write(const struct client *c, uint64_t wr_id, size_t offset, size_t len, void *remote);
int client_read(const struct client *c, uint64_t wr_id, size_t offset, size_t len, const void *remote);
int client_recv(const struct client *c, uint64_t wr_id, size_t offset, size_t len);
/* Posts one receive of the first len bytes to the SRQ of this handle. */
int client_post_srq(const struct client *c, uint32_t srq, uint64_t wr_id, size_t len);
/* Polls one completion. Returns 1, 0 or a negative errno. */
int client_poll(const struct client *c, struct ib_uverbs_wc *wc);
/* Asserts that the next completion is a success of this request. */
void client_expect(const struct client *c, uint64_t wr_id);
void client_expect_none(const struct client *c);

/* The next asynchronous event of the client's context: a descriptor, and the type of an event that it waits for. */
int client_async_fd(const struct client *c);
unsigned int client_async_event(int fd);
struct ib_uverbs_async_event_desc client_async_event_whole(int fd);

/* The user of the fixture's files is charged this much. */
uint64_t client_bytes(void);
/* Marks the contexts of all clients: their threads have had the device files. */
void client_lend(void);
/*
 * The adapter keeps these contexts, and the account stays charged for them for ever: takes the charges out of the account, so
 * that the fixture finds it empty.
 */
void client_uncharge_left(unsigned int contexts);
/* The same of objects that the adapter has not destroyed, in contexts that it has closed. */
void client_uncharge_rings(void);
struct hca_device *client_device(void);

/* ---- copies that block ------------------------------------------------------------------------------------------- */

/* A copy from or to this address of client memory waits until copy_release(). */
void copy_block(const void *addr);
/* Waits until a thread is in that copy. */
void copy_wait(void);
void copy_release(void);

/* Runs fn in a thread. */
struct worker {
	pthread_t thread;
	const struct client *client;
	int ret; /* after worker_join() */
	int (*fn)(const struct client *c);
};

void worker_start(struct worker *w, const struct client *c, int (*fn)(const struct client *c));
int worker_join(struct worker *w);

/* Waits until the worker waits in pthread_cond_wait() or its fn has returned. Returns whether it waits. */
bool worker_waits(void);

#endif
