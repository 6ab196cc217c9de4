/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The UDP sockets that carry RoCE v2: one for each local address. An ordinary user can have them; docs/wire.md has the
 * reasons for each option. Addresses are GIDs: an IPv4 address is ::ffff:a.b.c.d.
 *
 * Locking: several threads may send on one socket, each with a sender of its own, and several may receive, each with a
 * receiver of its own. A sender or a receiver is used by one thread at a time.
 */
#ifndef UVD_WIRE_SOCKET_H
#define UVD_WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <infiniband/verbs.h>
#include <uverbsd/log.h>

#include "wire/icrc.h"
#include "wire/packet.h"

enum {
	UVD_SOCKET_BATCH = 64, /* datagrams in one system call */
	UVD_SOCKET_IOV = 4, /* pieces of a payload */
	UVD_SOCKET_RCVBUF = 4 << 20, /* bytes: the default of uvd_socket_address.rcvbuf */
	UVD_SOCKET_ADDRESS_TEXT = 64,
};

/* ---- open -------------------------------------------------------------------------------------------------------- */

struct uvd_socket_address {
	union ibv_gid gid; /* an address of this machine, not a wildcard, not a group */
	uint32_t scope; /* of a link-local IPv6 address (fe80::/10): the index of its interface. Else 0 */
	uint16_t port; /* 0: UVD_ROCE_PORT */
	uint32_t rcvbuf; /* bytes to ask for, as SO_RCVBUF has them; 0: UVD_SOCKET_RCVBUF */
};

/*
 * Opens a socket, sets its options and binds it. Returns a descriptor, non-blocking and close-on-exec, or a negative errno:
 *   -EADDRINUSE     another engine or the kernel's rxe has the port
 *   -EADDRNOTAVAIL  no address of this machine, or of this network namespace
 *   -EINVAL         the address cannot be bound: a wildcard, a group, a link-local one without scope
 *   -EAFNOSUPPORT   the kernel has no IPv6
 * and what socket() and setsockopt() return. On failure it logs one line, which names the address, the port and the remedy.
 * The receive buffer is what the kernel permits: CAP_NET_ADMIN is not needed, and raises it above net.core.rmem_max.
 */
int uvd_socket_open_fd(const struct uvd_socket_address *address, struct uvd_log *log);

struct uvd_socket;

/*
 * Takes over a descriptor that uvd_socket_open_fd() has returned, also in another process. Needs no privilege: getsockname()
 * and getsockopt() alone. Returns NULL on failure: *err is -ENOMEM, or -EINVAL for a descriptor that is no such socket, which
 * stays the caller's.
 */
struct uvd_socket *uvd_socket_adopt(int fd, int *err);
/* Closes it. No thread may use it any more. NULL is allowed. */
void uvd_socket_free(struct uvd_socket *s);

/* The descriptor, for poll(): POLLIN: receive; POLLERR: uvd_socket_error(); POLLOUT: send again after -EAGAIN. */
int uvd_socket_fd(const struct uvd_socket *s);
const struct uvd_socket_address *uvd_socket_address(const struct uvd_socket *s);
/* Writes "192.0.2.1" or "fe80::1%2". Returns the text. */
const char *uvd_socket_address_text(const struct uvd_socket_address *a, char text[UVD_SOCKET_ADDRESS_TEXT]);

/* Gets a datagram, from its BTH to the end of its ICRC, in `num` pieces. The flow tells whether it was sent or received. */
typedef void uvd_socket_tap_fn(void *user, const struct uvd_udp_flow *flow, const struct iovec *iov, unsigned int num);
/*
 * Calls `tap` for each datagram that the kernel has taken to send, and for each that was received, damaged ones included. A datagram
 * that was received is told after all those that it can be an answer to. Call it before another thread uses the socket.
 */
void uvd_socket_set_tap(struct uvd_socket *s, uvd_socket_tap_fn *tap, void *user);

/* ---- send -------------------------------------------------------------------------------------------------------- */

/* One datagram. The caller fills it in, but for err. */
struct uvd_socket_out {
	union ibv_gid to; /* of the socket's family. A link-local one is of the socket's own link */
	uint16_t to_port; /* 0: the socket's own port */
	uint8_t head[UVD_IB_HEADERS_MAX], head_len; /* as uvd_packet_put_headers() writes them, with at least a BTH */
	uint8_t num_iov;
	struct iovec iov[UVD_SOCKET_IOV]; /* the payload, which the caller keeps until the call returns */
	int err; /* 0: sent; else a negative errno: the datagram is lost */
};

struct uvd_socket_sender;

/* Memory for one thread to send with. NULL: there is no memory. */
struct uvd_socket_sender *uvd_socket_sender_new(void);
void uvd_socket_sender_free(struct uvd_socket_sender *sender);
/* Bytes of one, for accounts. */
size_t uvd_socket_sender_bytes(void);

/*
 * Sends datagrams in their order, appends pad bytes and the ICRC to each. Returns how many were handled: their `err` is set.
 * Fewer than `num`: the socket's buffer is full; wait for POLLOUT and call again with the rest. An err is this one datagram's,
 * and others may pass:
 *   -EMSGSIZE              longer than the MTU of the interface or of the path, as far as the kernel knows it
 *   -ENETUNREACH, -EHOSTUNREACH, -EACCES   no route
 *   -EPERM                 a firewall
 *   -ENOBUFS               the interface's queue is full
 *   -EAFNOSUPPORT          not the socket's family
 * Errors that ICMP has told are not among them: uvd_socket_error() has those.
 */
unsigned int uvd_socket_send(struct uvd_socket *s, struct uvd_socket_sender *sender, struct uvd_socket_out *out,
			     unsigned int num);

/* ---- receive ----------------------------------------------------------------------------------------------------- */

/* One datagram, valid until the receiver's next call. */
struct uvd_socket_in {
	union ibv_gid from;
	uint16_t from_port; /* the sender may change it at any time: rxe does */
	bool is_truncated; /* the datagram was longer than UVD_IB_DATAGRAM_MAX: it is no packet */
	const uint8_t *bytes;
	uint32_t len;
};

struct uvd_socket_receiver;

/* Memory for one thread to receive with, 1 MiB. NULL: there is none. */
struct uvd_socket_receiver *uvd_socket_receiver_new(void);
void uvd_socket_receiver_free(struct uvd_socket_receiver *receiver);
/* Bytes of one, for accounts. */
size_t uvd_socket_receiver_bytes(void);

/*
 * Receives what has arrived, without waiting: up to UVD_SOCKET_BATCH datagrams. Returns their number and *in, an array of the
 * receiver's. 0: nothing is there. A negative errno: the socket is broken (-EBADF, -ENOMEM); errors that ICMP has told are
 * none of these. A receiver that has a rest serves the same socket again.
 */
int uvd_socket_receive(struct uvd_socket *s, struct uvd_socket_receiver *receiver, const struct uvd_socket_in **in);
/* Are datagrams left that the last system call has brought? */
bool uvd_socket_receiver_has_rest(const struct uvd_socket_receiver *receiver);
/* Has the last system call brought as much as it can? Then there may be more. */
bool uvd_socket_receiver_was_full(const struct uvd_socket_receiver *receiver);

/*
 * Does the ICRC of a received datagram fit? `packet` is what uvd_packet_parse() has made of it. *ip_id: see
 * uvd_icrc_fits().
 */
bool uvd_socket_icrc_fits(const struct uvd_socket *s, const struct uvd_socket_in *in, const struct uvd_packet *packet,
			  uint16_t *ip_id);

/* ---- errors that the network has told ---------------------------------------------------------------------------- */

enum { UVD_SOCKET_QUOTE = 64 };

/*
 * An error about a datagram that was sent. Anybody can send ICMP messages, so it is a hint: compare the quote with packets in
 * flight, and let it end nothing.
 */
struct uvd_socket_error {
	int err; /* a negative errno: -EMSGSIZE, -ECONNREFUSED (no socket on that port), -EHOSTUNREACH, -ENETUNREACH, ... */
	uint32_t mtu; /* with -EMSGSIZE: bytes of an IP packet that the path carries. Else 0 */
	bool is_local; /* our own kernel's finding, not an ICMP message */
	union ibv_gid to; /* the destination of that datagram */
	uint16_t to_port;
	union ibv_gid by; /* the router or machine that complains; zeros: not known */
	uint8_t quote[UVD_SOCKET_QUOTE]; /* the first bytes of that datagram, from its BTH on */
	uint32_t quote_len; /* 0: it has no quote */
};

/* Takes one error from the socket's queue, without waiting. Returns 1; 0: there is none; or a negative errno. */
int uvd_socket_error(struct uvd_socket *s, struct uvd_socket_error *error);

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/*
 * Returns the largest InfiniBand MTU (256 to 4096) whose packets fit into IP packets of link_mtu bytes, with the longest
 * headers; 0: none. As the kernel's iboe_get_mtu(), which takes all for IPv6.
 */
uint32_t uvd_wire_mtu(uint32_t link_mtu, bool is_ipv4);
/* Returns the MTU in bytes of the interface that has the socket's address, or a negative errno. */
int uvd_socket_link_mtu(const struct uvd_socket *s);
/* Returns the MTU in bytes of the route from the socket's address to `to`, as far as the kernel knows it, or a negative errno. */
int uvd_socket_route_mtu(const struct uvd_socket *s, const union ibv_gid *to);
/* Returns the bytes of the receive buffer, as the kernel counts them: twice what SO_RCVBUF was set to. */
uint32_t uvd_socket_rcvbuf(const struct uvd_socket *s);
/*
 * Returns how many packets of this MTU a receive buffer of so many bytes holds, at least. The kernel counts what a packet takes of
 * its memory (skb->truesize): 8448 bytes for 4096, 2304 for 1024.
 */
uint32_t uvd_wire_packets(uint32_t rcvbuf, uint32_t mtu);

#endif
