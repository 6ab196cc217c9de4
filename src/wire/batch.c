/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams are sent and received in batches. */
#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/internal.h"

enum {
	TRIES = 4, /* of a call that fails because of errors that ICMP has told, each of which one call reports */
	PIECES = 1 + UVD_SOCKET_IOV + 1, /* headers, payload, trailer */
	SEGMENTS = 64, /* datagrams in one message, as Linux 4.18 has it; newer ones take more */
	MESSAGE_BYTES = 65536, /* more than a message can have */
	SEGMENTS_BYTES =
		65535 - 40 - 8, /* of one message: what an IP packet of either version holds behind the UDP header */
	MESSAGES = 16, /* in one system call that receives */
};

union socket_control {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(sizeof(int))];
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

/*
 * Datagrams of one length that follow each other to one address are one message: the kernel takes it through its layers once (UDP_SEGMENT)
 * and cuts it up where the next layer cannot go on with it as a whole.
 */
struct uvd_socket_sender {
	struct uvd_socket_out *out[UVD_SOCKET_BATCH];
	struct iovec iov[UVD_SOCKET_BATCH * PIECES];
	uint8_t tail[UVD_SOCKET_BATCH][UVD_IB_TRAILER_MAX];
	struct mmsghdr msg[UVD_SOCKET_BATCH];
	unsigned int first[UVD_SOCKET_BATCH], num[UVD_SOCKET_BATCH]; /* the datagrams of message i */
	union socket_name to[UVD_SOCKET_BATCH];
	union socket_control control[UVD_SOCKET_BATCH];
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

static uint32_t socket_payload_len(const struct uvd_socket_out *out)
{
	uint32_t len = 0;

	for (unsigned int i = 0; i < out->num_iov; i++)
		len += out->iov[i].iov_len;
	return len;
}

static uint16_t socket_port_of(const struct uvd_socket *s, const struct uvd_socket_out *out)
{
	return out->to_port ?: s->address.port;
}

/* Stores pad bytes and the ICRC behind the payload. Returns their length. */
static size_t socket_put_tail(const struct uvd_socket *s, const struct uvd_socket_out *out, uint16_t ip_id,
			      uint8_t *tail)
{
	const struct uvd_udp_flow flow = { s->address.gid, out->to, s->address.port, socket_port_of(s, out) };
	const uint32_t payload_len = socket_payload_len(out), pad = uvd_packet_pad(payload_len);
	uint32_t icrc = uvd_icrc_begin(&flow, ip_id, out->head, uvd_packet_bytes(out->head_len, payload_len));

	icrc = uvd_crc32(icrc, out->head + UVD_BTH_BYTES, out->head_len - UVD_BTH_BYTES);
	for (unsigned int i = 0; i < out->num_iov; i++)
		icrc = uvd_crc32(icrc, out->iov[i].iov_base, out->iov[i].iov_len);
	memset(tail, 0, pad);
	icrc = htole32(uvd_crc32(icrc, tail, pad));
	memcpy(tail + pad, &icrc, UVD_ICRC_BYTES);
	return pad + UVD_ICRC_BYTES;
}

static unsigned int socket_num_pieces(const struct uvd_socket_out *out)
{
	return 1 + out->num_iov + 1;
}

/* Stores headers, payload and tail of a datagram: socket_num_pieces(). */
static void socket_put_pieces(const struct uvd_socket *s, struct uvd_socket_out *out, uint16_t ip_id, struct iovec *iov,
			      uint8_t *tail)
{
	*iov++ = (struct iovec){ out->head, out->head_len };
	for (unsigned int i = 0; i < out->num_iov; i++)
		*iov++ = out->iov[i];
	*iov = (struct iovec){ tail, socket_put_tail(s, out, ip_id, tail) };
}

static uint32_t socket_bytes_of(const struct uvd_socket_out *out)
{
	return uvd_packet_bytes(out->head_len, socket_payload_len(out));
}

/* How many datagrams from `first` on, up to n, can be one message: all but the last one have the same length, and the last is no longer. */
static unsigned int socket_count_segments(const struct uvd_socket *s, struct uvd_socket_out *const *out,
					  unsigned int first, unsigned int n)
{
	const uint32_t bytes = socket_bytes_of(out[first]);
	uint32_t sum = bytes, last = bytes;
	unsigned int i;

	for (i = first + 1; i < n && i - first < SEGMENTS && last == bytes; i++) {
		last = socket_bytes_of(out[i]);
		sum += last;
		if (last > bytes || sum > SEGMENTS_BYTES || memcmp(&out[i]->to, &out[first]->to, sizeof(out[i]->to)) ||
		    socket_port_of(s, out[i]) != socket_port_of(s, out[first]))
			break;
	}
	return i - first;
}

/* Asks the kernel to cut message i into datagrams of so many bytes. */
static void socket_set_segments(struct uvd_socket_sender *sender, unsigned int i, uint16_t bytes)
{
	struct msghdr *m = &sender->msg[i].msg_hdr;
	struct cmsghdr *c = &sender->control[i].header;

	m->msg_control = c;
	m->msg_controllen = CMSG_LEN(sizeof(bytes));
	*c = (struct cmsghdr){ m->msg_controllen, SOL_UDP, UDP_SEGMENT };
	memcpy(CMSG_DATA(c), &bytes, sizeof(bytes));
}

/*
 * Makes messages of the datagrams from `first` up to n. Returns their number. The kernel numbers the segments of a message of IPv4 from 0
 * on in the identification, which the ICRC covers.
 */
static unsigned int socket_prepare(const struct uvd_socket *s, struct uvd_socket_sender *sender, unsigned int first,
				   unsigned int n, bool segments)
{
	struct iovec *iov = sender->iov;
	unsigned int num = 0;

	for (unsigned int i = first; i < n; num++) {
		struct uvd_socket_out *out = sender->out[i];
		const unsigned int parts = segments ? socket_count_segments(s, sender->out, i, n) : 1;
		struct msghdr *m = &sender->msg[num].msg_hdr;

		*m = (struct msghdr){ .msg_name = &sender->to[num], .msg_iov = iov };
		m->msg_namelen = socket_name_of(&sender->to[num], &out->to, socket_port_of(s, out), s->address.scope);
		for (unsigned int j = 0; j < parts; j++, i++) {
			socket_put_pieces(s, sender->out[i], j, iov, sender->tail[i]);
			iov += socket_num_pieces(sender->out[i]);
		}
		m->msg_iovlen = iov - m->msg_iov;
		sender->first[num] = i - parts;
		sender->num[num] = parts;
		if (parts > 1)
			socket_set_segments(sender, num, socket_bytes_of(out));
	}
	return num;
}

/* Tells the tap of each datagram of message i. Caller holds tap_lock. */
static void socket_tap_out(const struct uvd_socket *s, const struct uvd_socket_sender *sender, unsigned int i)
{
	const struct iovec *iov = sender->msg[i].msg_hdr.msg_iov;

	for (unsigned int j = 0; j < sender->num[i]; j++) {
		const struct uvd_socket_out *out = sender->out[sender->first[i] + j];
		const struct uvd_udp_flow flow = { s->address.gid, out->to, s->address.port, socket_port_of(s, out) };
		const unsigned int pieces = socket_num_pieces(out);

		s->tap(s->tap_user, &flow, iov, pieces);
		iov += pieces;
	}
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

/* Sends the batch of n datagrams. Returns how many were handled; fewer than n: the socket's buffer is full. */
static unsigned int socket_send_batch(struct uvd_socket *s, struct uvd_socket_sender *sender, unsigned int n)
{
	unsigned int num = socket_prepare(s, sender, 0, n, atomic_load(&s->segments)), next = 0, done = 0, tries = 0;

	while (next < num) {
		const int sent = socket_send_some(s, sender, next, num);

		if (sent > 0) {
			for (int i = 0; i < sent; i++)
				for (unsigned int parts = sender->num[next++]; parts; parts--)
					sender->out[done++]->err = 0;
			tries = 0;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno == EINTR || (socket_may_be_told(errno) && ++tries < TRIES)) {
			continue;
		} else if (sender->num[next] > 1) {
			/* The kernel has sent none of them. EIO: the interface's packets cannot be cut up. */
			if (errno == EIO)
				atomic_store(&s->segments, false);
			num = socket_prepare(s, sender, done, n, false);
			next = tries = 0;
		} else {
			sender->out[done++]->err = -errno;
			next++;
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
				sender->out[n++] = &out[next];
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
	struct mmsghdr msg[MESSAGES];
	struct iovec iov[MESSAGES];
	union socket_name from[MESSAGES];
	union socket_control control[MESSAGES];
	unsigned int num, next; /* messages that the kernel has given, and the first that is not taken */
	uint32_t at; /* so much of it is taken */
	struct uvd_socket_in in[UVD_SOCKET_BATCH];
	uint8_t bytes[MESSAGES][MESSAGE_BYTES];
};

struct uvd_socket_receiver *uvd_socket_receiver_new(void)
{
	struct uvd_socket_receiver *r = calloc(1, sizeof(*r));

	for (unsigned int i = 0; r && i < MESSAGES; i++) {
		r->iov[i] = (struct iovec){ r->bytes[i], sizeof(r->bytes[i]) };
		r->msg[i].msg_hdr = (struct msghdr){
			.msg_name = &r->from[i], .msg_iov = &r->iov[i], .msg_iovlen = 1, .msg_control = &r->control[i]
		};
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

/* Returns the length of the message's datagrams, of which the last may be shorter. */
static uint32_t socket_segment_of(struct uvd_socket_receiver *r, const struct mmsghdr *msg)
{
	struct msghdr m = msg->msg_hdr; /* CMSG_NXTHDR() has no pointer to a constant one */
	int bytes;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
			continue;
		memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
		return bytes;
	}
	return msg->msg_len;
}

/* Takes the next datagram of the messages that are here. */
static void socket_take(struct uvd_socket_receiver *r, struct uvd_socket_in *in)
{
	const struct mmsghdr *msg = &r->msg[r->next];
	const uint32_t left = msg->msg_len - r->at, segment = socket_segment_of(r, msg);
	const uint32_t len = segment < left ? segment : left;

	socket_name_gid(&r->from[r->next], &in->from);
	in->from_port = socket_name_port(&r->from[r->next]);
	in->is_truncated = msg->msg_hdr.msg_flags & MSG_TRUNC || len > UVD_IB_DATAGRAM_MAX;
	in->bytes = r->bytes[r->next] + r->at;
	in->len = len < UVD_IB_DATAGRAM_MAX ? len : UVD_IB_DATAGRAM_MAX;
	r->at += len;
	if (r->at == msg->msg_len) {
		r->next++;
		r->at = 0;
	}
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

/* Returns 0 or a negative errno: the socket is broken. */
static int socket_receive_messages(struct uvd_socket *s, struct uvd_socket_receiver *r)
{
	int n, tries = 0;

	r->num = r->next = 0;
	for (unsigned int i = 0; i < MESSAGES; i++) {
		r->msg[i].msg_hdr.msg_namelen = sizeof(r->from[i]);
		r->msg[i].msg_hdr.msg_controllen = sizeof(r->control[i]);
	}
	do
		n = recvmmsg(s->fd, r->msg, MESSAGES, MSG_DONTWAIT, NULL);
	while (n < 0 && (errno == EINTR || (socket_may_be_told(errno) && ++tries < TRIES)));
	if (n < 0)
		return errno == EAGAIN || socket_may_be_told(errno) ? 0 : -errno;
	r->num = n;
	return 0;
}

int uvd_socket_receive(struct uvd_socket *s, struct uvd_socket_receiver *r, const struct uvd_socket_in **in)
{
	int n = 0, err;

	*in = r->in;
	if (!uvd_socket_receiver_has_rest(r)) {
		err = socket_receive_messages(s, r);
		if (err)
			return err;
	}
	while (n < UVD_SOCKET_BATCH && r->next < r->num)
		socket_take(r, &r->in[n++]);
	if (n && s->tap)
		socket_tap_in(s, r->in, n);
	return n;
}

bool uvd_socket_receiver_has_rest(const struct uvd_socket_receiver *r)
{
	return r->next < r->num;
}

bool uvd_socket_receiver_was_full(const struct uvd_socket_receiver *r)
{
	return r->num == MESSAGES;
}

bool uvd_socket_icrc_fits(const struct uvd_socket *s, const struct uvd_socket_in *in, const struct uvd_packet *packet,
			  uint16_t *ip_id)
{
	const struct uvd_udp_flow flow = { in->from, s->address.gid, in->from_port, s->address.port };

	return uvd_icrc_fits(&flow, uvd_icrc(&flow, 0, in->bytes, in->len), packet->icrc, in->len, ip_id);
}
