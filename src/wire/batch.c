/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams are sent and received in batches. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/internal.h"

enum {
	TRIES = 4, /* of a call that fails because of errors that ICMP has told, each of which one call reports */
	PIECES = 1 + UVD_SOCKET_IOV + 1, /* headers, payload, trailer */
};

/*
 * Can the error of a call be one that an ICMP message has told? The kernel reports it once, to whatever call comes next,
 * although it is about an earlier datagram, and has queued it for uvd_socket_error().
 */
static bool socket_may_be_told(int err)
{
	switch (err) {
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EMSGSIZE:
	case EPROTO:
	case ENOPROTOOPT:
	case EOPNOTSUPP:
	case EHOSTDOWN:
	case ENONET:
	case EACCES:
		return true;
	default:
		return false;
	}
}

/* ---- send -------------------------------------------------------------------------------------------------------- */

struct uvd_socket_sender {
	struct mmsghdr msg[UVD_SOCKET_BATCH];
	struct uvd_socket_out *out[UVD_SOCKET_BATCH]; /* whose message it is */
	union socket_name to[UVD_SOCKET_BATCH];
	struct iovec iov[UVD_SOCKET_BATCH][PIECES];
	uint8_t tail[UVD_SOCKET_BATCH][UVD_IB_TRAILER_MAX];
};

struct uvd_socket_sender *uvd_socket_sender_new(void)
{
	return calloc(1, sizeof(struct uvd_socket_sender));
}

void uvd_socket_sender_free(struct uvd_socket_sender *sender)
{
	free(sender);
}

size_t uvd_socket_sender_bytes(void)
{
	return sizeof(struct uvd_socket_sender);
}

/* Stores pad bytes and the ICRC behind the payload. Returns their length. */
static size_t socket_put_tail(const struct uvd_socket *s, const struct uvd_socket_out *out, uint16_t to_port,
			      uint32_t payload_len, uint8_t *tail)
{
	const struct uvd_udp_flow flow = { s->address.gid, out->to, s->address.port, to_port };
	const uint32_t pad = uvd_packet_pad(payload_len);
	uint32_t icrc = uvd_icrc_begin(&flow, 0, out->head, uvd_packet_bytes(out->head_len, payload_len));

	icrc = uvd_crc32(icrc, out->head + UVD_BTH_BYTES, out->head_len - UVD_BTH_BYTES);
	for (unsigned int i = 0; i < out->num_iov; i++)
		icrc = uvd_crc32(icrc, out->iov[i].iov_base, out->iov[i].iov_len);
	memset(tail, 0, pad);
	icrc = htole32(uvd_crc32(icrc, tail, pad));
	memcpy(tail + pad, &icrc, UVD_ICRC_BYTES);
	return pad + UVD_ICRC_BYTES;
}

/* Makes message i of the batch. */
static void socket_prepare(const struct uvd_socket *s, struct uvd_socket_sender *sender, unsigned int i,
			   struct uvd_socket_out *out)
{
	const uint16_t to_port = out->to_port ?: s->address.port;
	struct iovec *iov = sender->iov[i];
	unsigned int n = 0;
	uint32_t payload_len = 0;

	iov[n++] = (struct iovec){ out->head, out->head_len };
	for (unsigned int j = 0; j < out->num_iov; j++) {
		iov[n++] = out->iov[j];
		payload_len += out->iov[j].iov_len;
	}
	iov[n++] = (struct iovec){ sender->tail[i], socket_put_tail(s, out, to_port, payload_len, sender->tail[i]) };
	sender->out[i] = out;
	sender->msg[i].msg_hdr = (struct msghdr){
		.msg_name = &sender->to[i],
		.msg_namelen = socket_name_of(&sender->to[i], &out->to, to_port, s->address.scope),
		.msg_iov = iov,
		.msg_iovlen = n,
	};
}

/* Tells the tap of message i. Caller holds tap_lock. */
static void socket_tap_out(const struct uvd_socket *s, const struct uvd_socket_sender *sender, unsigned int i)
{
	const struct msghdr *m = &sender->msg[i].msg_hdr;
	const struct uvd_udp_flow flow = { s->address.gid, sender->out[i]->to, s->address.port,
					   socket_name_port(&sender->to[i]) };

	s->tap(s->tap_user, &flow, m->msg_iov, m->msg_iovlen);
}

/* sendmmsg() of messages from `first` on, up to message n. */
static int socket_send_some(struct uvd_socket *s, struct uvd_socket_sender *sender, unsigned int first, unsigned int n)
{
	int sent, err;

	if (!s->tap)
		return sendmmsg(s->fd, sender->msg + first, n - first, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* An answer can arrive before the call returns: socket_tap_in() waits. */
	pthread_mutex_lock(&s->tap_lock);
	sent = sendmmsg(s->fd, sender->msg + first, n - first, MSG_DONTWAIT | MSG_NOSIGNAL);
	err = errno;
	for (int i = 0; i < sent; i++)
		socket_tap_out(s, sender, first + i);
	pthread_mutex_unlock(&s->tap_lock);
	errno = err;
	return sent;
}

/* Sends the batch of n messages. Returns how many were handled; fewer than n: the socket's buffer is full. */
static unsigned int socket_send_batch(struct uvd_socket *s, struct uvd_socket_sender *sender, unsigned int n)
{
	unsigned int done = 0, tries = 0;

	while (done < n) {
		const int sent = socket_send_some(s, sender, done, n);

		if (sent > 0) {
			for (int i = 0; i < sent; i++)
				sender->out[done++]->err = 0;
			tries = 0;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR && (!socket_may_be_told(errno) || ++tries == TRIES)) {
			sender->out[done++]->err = -errno;
			tries = 0;
		}
	}
	return done;
}

unsigned int uvd_socket_send(struct uvd_socket *s, struct uvd_socket_sender *sender, struct uvd_socket_out *out,
			     unsigned int num)
{
	unsigned int n, done, next = 0;

	while (next < num) {
		for (n = 0; n < UVD_SOCKET_BATCH && next < num; next++)
			if (uvd_gid_is_ipv4(&out[next].to) == s->is_ipv4)
				socket_prepare(s, sender, n++, &out[next]);
			else
				out[next].err = -EAFNOSUPPORT;
		done = socket_send_batch(s, sender, n);
		if (done < n)
			return sender->out[done] - out;
	}
	return num;
}

/* ---- receive ----------------------------------------------------------------------------------------------------- */

struct uvd_socket_receiver {
	struct mmsghdr msg[UVD_SOCKET_BATCH];
	struct iovec iov[UVD_SOCKET_BATCH];
	union socket_name from[UVD_SOCKET_BATCH];
	struct uvd_socket_in in[UVD_SOCKET_BATCH];
	uint8_t bytes[UVD_SOCKET_BATCH][UVD_IB_DATAGRAM_MAX];
};

struct uvd_socket_receiver *uvd_socket_receiver_new(void)
{
	struct uvd_socket_receiver *r = calloc(1, sizeof(*r));

	for (unsigned int i = 0; r && i < UVD_SOCKET_BATCH; i++) {
		r->iov[i] = (struct iovec){ r->bytes[i], sizeof(r->bytes[i]) };
		r->msg[i].msg_hdr = (struct msghdr){ .msg_name = &r->from[i],
						     .msg_namelen = sizeof(r->from[i]),
						     .msg_iov = &r->iov[i],
						     .msg_iovlen = 1 };
	}
	return r;
}

void uvd_socket_receiver_free(struct uvd_socket_receiver *receiver)
{
	free(receiver);
}

size_t uvd_socket_receiver_bytes(void)
{
	return sizeof(struct uvd_socket_receiver);
}

/* Stores what message i says, and prepares it for the next call. */
static void socket_take(struct uvd_socket_receiver *r, unsigned int i)
{
	struct msghdr *m = &r->msg[i].msg_hdr;
	struct uvd_socket_in *in = &r->in[i];

	socket_name_gid(&r->from[i], &in->from);
	in->from_port = socket_name_port(&r->from[i]);
	in->is_truncated = m->msg_flags & MSG_TRUNC;
	in->bytes = r->bytes[i];
	in->len = r->msg[i].msg_len;
	m->msg_namelen = sizeof(r->from[i]);
}

static void socket_tap_in(struct uvd_socket *s, const struct uvd_socket_in *in, unsigned int num)
{
	pthread_mutex_lock(&s->tap_lock);
	for (unsigned int i = 0; i < num; i++) {
		const struct uvd_udp_flow flow = { in[i].from, s->address.gid, in[i].from_port, s->address.port };
		const struct iovec iov = { (void *)in[i].bytes, in[i].len };

		s->tap(s->tap_user, &flow, &iov, 1);
	}
	pthread_mutex_unlock(&s->tap_lock);
}

int uvd_socket_receive(struct uvd_socket *s, struct uvd_socket_receiver *r, const struct uvd_socket_in **in)
{
	int n, tries = 0;

	*in = r->in;
	do
		n = recvmmsg(s->fd, r->msg, UVD_SOCKET_BATCH, MSG_DONTWAIT, NULL);
	while (n < 0 && (errno == EINTR || (socket_may_be_told(errno) && ++tries < TRIES)));
	if (n < 0)
		return errno == EAGAIN || socket_may_be_told(errno) ? 0 : -errno;
	for (int i = 0; i < n; i++)
		socket_take(r, i);
	if (s->tap)
		socket_tap_in(s, r->in, n);
	return n;
}

bool uvd_socket_icrc_fits(const struct uvd_socket *s, const struct uvd_socket_in *in, const struct uvd_packet *packet,
			  uint16_t *ip_id)
{
	const struct uvd_udp_flow flow = { in->from, s->address.gid, in->from_port, s->address.port };

	return uvd_icrc_fits(&flow, uvd_icrc(&flow, 0, in->bytes, in->len), packet->icrc, in->len, ip_id);
}
