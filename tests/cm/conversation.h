/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two files of the connection manager in this process, and commands on them. Commands return 0 or a negative errno, if a comment
 * does not say otherwise.
 */
#ifndef UVD_TESTS_CONVERSATION_H
#define UVD_TESTS_CONVERSATION_H

#include "../suite.h"
#include "cm/cm.h"
#include "cm/internal.h"
#include "cm/message.h"
#include "host/host.h"
#include "persona/persona.h"

struct conversation {
	struct uvd_engine engine;
	struct uvd_account *account;
	struct uvd_device *dev; /* NULL: it was removed */
	struct uvd_cm *cm;
	struct uvd_cm_file *a, *b;
	struct uvd_caller caller;
	/* what the last call of `events` said of file a */
	unsigned int num_events, num_added;
};

/* A device with the addresses of this persona: rxe's port is Ethernet, hfi1's InfiniBand. */
void conversation_begin_with(struct conversation *v, const struct uvd_persona *persona,
			     const struct uvd_account_limits *limits);
void conversation_begin(struct conversation *v); /* rxe; no limits */
/* Closes both files, and checks that nothing is charged any more. */
void conversation_end(struct conversation *v);

/* One command. The struct's response address is set if there is a response. */
long conv_write(struct conversation *v, struct uvd_cm_file *f, uint32_t command, void *in, size_t in_size, void *out,
		size_t out_size);
#define CONV(v, f, COMMAND, in, out) \
	conv_write(v, f, RDMA_USER_CM_CMD_##COMMAND, in, sizeof(*(in)), out, sizeof(*(out)))

uint32_t conv_create(struct conversation *v, struct uvd_cm_file *f, uint16_t ps, uint64_t uid);
/* Returns events_reported, or a negative errno. */
long conv_destroy(struct conversation *v, struct uvd_cm_file *f, uint32_t id);
/* 127.0.0.1, or any address (0) */
int conv_bind(struct conversation *v, struct uvd_cm_file *f, uint32_t id, uint32_t address, uint16_t port);
int conv_resolve(struct conversation *v, struct uvd_cm_file *f, uint32_t id, uint32_t address, uint16_t port);
int conv_route(struct conversation *v, struct uvd_cm_file *f, uint32_t id);
int conv_listen(struct conversation *v, struct uvd_cm_file *f, uint32_t id, unsigned int backlog);
int conv_connect(struct conversation *v, struct uvd_cm_file *f, uint32_t id, const char *data);
int conv_accept(struct conversation *v, struct uvd_cm_file *f, uint32_t id, uint64_t uid, bool valid, const char *data);
int conv_reject(struct conversation *v, struct uvd_cm_file *f, uint32_t id, const char *data);
int conv_disconnect(struct conversation *v, struct uvd_cm_file *f, uint32_t id);
/* GET_EVENT: returns 0, a negative errno, or UVD_CM_WAITS. */
int conv_event(struct conversation *v, struct uvd_cm_file *f, struct rdma_ucm_event_resp *ev);
/* The next event must be this one, of this identifier. */
struct rdma_ucm_event_resp conv_expect(struct conversation *v, struct uvd_cm_file *f, enum cm_event_type type,
				       uint32_t id);
/* There must be none. */
void conv_expect_none(struct conversation *v, struct uvd_cm_file *f);

/* A listener on file b, bound to the port. */
uint32_t conv_listener(struct conversation *v, uint16_t ps, uint16_t port, unsigned int backlog);
/* An identifier of file a that has its route to the port. */
uint32_t conv_ready(struct conversation *v, uint16_t ps, uint16_t port);

enum { CONV_PORT = 7400, CONV_UID = 0xa0, CONV_LISTENER_UID = 0xb0, CONV_CHILD_UID = 0xc0 };

/* A connection between a and b, which both have reported. */
struct pair {
	uint32_t listener, active, passive;
};
struct pair conv_requested(struct conversation *v); /* b has the request */
struct pair conv_replied(struct conversation *v); /* b has accepted, a has the response */
struct pair conv_established(struct conversation *v);

/* The identifier's timer runs out. */
void conv_time_out(struct conversation *v, uint32_t id);

#endif
