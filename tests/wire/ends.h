/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two sockets of the wire over loopback. */
#ifndef UVD_TESTS_WIRE_ENDS_H
#define UVD_TESTS_WIRE_ENDS_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "packets.h"
#include "../suite.h"

struct ends {
	struct uvd_socket *a, *b;
	struct uvd_socket_sender *sender;
	struct uvd_socket_receiver *receiver;
};

static inline struct uvd_socket_address address_of(const char *text, uint16_t port)
{
	struct uvd_socket_address a = { .port = port };

	ck_assert_int_eq(inet_pton(AF_INET6, text, &a.gid), 1);
	return a;
}

static inline struct uvd_socket *open_at(const char *text, uint16_t port, uint32_t rcvbuf)
{
	struct uvd_socket_address a = address_of(text, port);
	int fd, err;

	a.rcvbuf = rcvbuf;
	fd = uvd_socket_open_fd(&a, NULL);
	return fd < 0 ? NULL : uvd_socket_adopt(fd, &err);
}

/* Opens both ends at a port that nobody else has: other tests may run beside this one. */
static inline struct ends ends_open(const char *a, const char *b, uint32_t rcvbuf)
{
	struct ends e = { .sender = uvd_socket_sender_new(), .receiver = uvd_socket_receiver_new() };

	srandom(getpid());
	for (int i = 0; i < 100 && !(e.a && e.b); i++) {
		const uint16_t port = 20000 + random() % 10000;

		uvd_socket_free(e.a);
		uvd_socket_free(e.b);
		e.a = open_at(a, port, 0);
		e.b = open_at(b, port, rcvbuf);
	}
	ck_assert(e.a && e.b && e.sender && e.receiver);
	return e;
}

static inline void ends_close(struct ends *e)
{
	uvd_socket_free(e->a);
	uvd_socket_free(e->b);
	uvd_socket_sender_free(e->sender);
	uvd_socket_receiver_free(e->receiver);
}

static inline struct uvd_socket_out out_of(const struct uvd_packet *p, const union ibv_gid *to, const uint8_t *payload)
{
	struct uvd_socket_out out = { .to = *to, .err = 1 };

	out.head_len = uvd_packet_put_headers(p, out.head);
	if (p->payload_len) {
		out.num_iov = 2; /* in two pieces, of which the first has an odd length */
		out.iov[0] = (struct iovec){ (void *)payload, p->payload_len / 2 | 1 };
		out.iov[1] = (struct iovec){ (void *)(payload + (p->payload_len / 2 | 1)),
					     p->payload_len - (p->payload_len / 2 | 1) };
	}
	return out;
}

static inline void wait_readable(struct uvd_socket *s)
{
	struct pollfd p = { .fd = uvd_socket_fd(s), .events = POLLIN };

	ck_assert_int_eq(poll(&p, 1, 10000), 1);
}

/* Fills the datagrams with all opcodes in turn. */
static inline void make_many(struct uvd_socket_out *out, unsigned int num, const union ibv_gid *to,
			     const uint8_t *payload)
{
	for (unsigned int i = 0; i < num; i++) {
		struct uvd_packet p = packet_of(all_opcodes[i % NUM_OPCODES], payload_of(all_opcodes[i % NUM_OPCODES]));

		p.psn = i;
		out[i] = out_of(&p, to, payload);
	}
}

#endif
