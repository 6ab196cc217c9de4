/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The file of a capture, its two buffers, and the thread that writes one while the other is filled. */
#include "capture/capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/packet.h"
#include "util/util.h"

/* The format of pcap: draft-ietf-opsawg-pcap. Fields are in the byte order of the machine. */
struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t reserved[2];
	uint32_t snaplen, link_type;
};

struct pcap_packet {
	uint32_t s, ns, captured, length;
};

enum {
	PCAP_MAGIC_NS = 0xa1b23c4d,
	LINK_ETHERNET = 1,
	OUT_BYTES = 1 << 20,
	HOPS = 64, /* of datagrams: Linux's default. A socket does not tell the time to live */
	SNAPLEN = UVD_PACKET_HEADERS + UVD_PACKET_MOST_PAYLOAD + UVD_PACKET_TRAILER
};

/* The header of each message in a buffer. Its len bytes follow. */
struct told {
	struct uvd_capture_message message;
	uint64_t ns; /* CLOCK_REALTIME */
	uint32_t len;
};

struct half {
	uint8_t *bytes;
	size_t used;
};

struct uvd_capture {
	int fd;
	size_t size; /* of each half */
	pthread_t thread;
	pthread_mutex_t lock; /* of all that follows, but for what only the thread uses */
	pthread_cond_t more;
	struct half halves[2];
	struct half *filled; /* the thread uses the other one without the lock */
	bool waits; /* the thread, for `more` */
	bool ended;
	uint64_t lost;
	/* Only the thread uses these; uvd_capture_end(), when it has exited: */
	uint8_t *out;
	size_t out_used;
	int err;
	uint64_t packets, written; /* packets made; of those, so many are in the file */
	off_t bytes_written; /* of the header and of these packets */
};

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Returns 0 or a negative errno. */
static int capture_write(int fd, const uint8_t *bytes, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, bytes, len);
		if (!n || (n < 0 && errno != EINTR))
			return n ? -errno : -EIO;
		if (n > 0) {
			bytes += n;
			len -= n;
		}
	}
	return 0;
}

/*
 * After an error nothing more is written, and the file ends with the last whole packet before: readers complain of one that
 * is cut off. A pipe keeps what it got.
 */
static void capture_flush(struct uvd_capture *c)
{
	if (!c->err) {
		c->err = capture_write(c->fd, c->out, c->out_used);
		if (c->err)
			(void)!ftruncate(c->fd, c->bytes_written);
	}
	if (!c->err) {
		c->bytes_written += c->out_used;
		c->written = c->packets;
	}
	c->out_used = 0;
}

static void capture_write_message(struct uvd_capture *c, const struct told *t, const uint8_t *bytes)
{
	const uint32_t num = uvd_packets_of(&t->message, t->len);

	for (uint32_t i = 0; i < num; i++) {
		struct pcap_packet p = { .s = t->ns / 1000000000, .ns = t->ns % 1000000000 };
		uint8_t *packet;

		if (OUT_BYTES - c->out_used < sizeof(p) + SNAPLEN)
			capture_flush(c);
		packet = c->out + c->out_used + sizeof(p);
		p.captured = p.length = uvd_packet_make(packet, &t->message, bytes, t->len, i);
		memcpy(packet - sizeof(p), &p, sizeof(p));
		c->out_used += sizeof(p) + p.captured;
		c->packets++;
	}
}

static void capture_write_half(struct uvd_capture *c, struct half *half)
{
	struct told t;

	for (size_t at = 0; at < half->used && !c->err; at += sizeof(t) + t.len) {
		memcpy(&t, half->bytes + at, sizeof(t));
		capture_write_message(c, &t, half->bytes + at + sizeof(t));
	}
	capture_flush(c);
	half->used = 0;
}

static void *capture_main(void *arg)
{
	struct uvd_capture *c = arg;
	struct half *half;

	pthread_mutex_lock(&c->lock);
	while (c->filled->used || !c->ended) {
		if (!c->filled->used) {
			c->waits = true;
			pthread_cond_wait(&c->more, &c->lock);
			c->waits = false;
			continue;
		}
		half = c->filled;
		c->filled = half == c->halves ? c->halves + 1 : c->halves;
		pthread_mutex_unlock(&c->lock);
		capture_write_half(c, half);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- the movers -------------------------------------------------------------------------------------------------- */

static uint64_t capture_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* Copies what is told, with its time. Caller holds the lock: so times ascend. Returns false if it does not fit. */
static bool capture_fill(struct uvd_capture *c, struct told *t, const struct iovec *iov, unsigned int num)
{
	struct half *half = c->filled;

	if (uvd_packet_payload(&t->message, t->len) > UVD_PACKET_MOST_PAYLOAD ||
	    sizeof(*t) + t->len > c->size - half->used)
		return false;
	t->ns = capture_now_ns();
	memcpy(half->bytes + half->used, t, sizeof(*t));
	half->used += sizeof(*t);
	for (unsigned int i = 0; i < num; i++) {
		if (iov[i].iov_len)
			memcpy(half->bytes + half->used, iov[i].iov_base, iov[i].iov_len);
		half->used += iov[i].iov_len;
	}
	return true;
}

/* t->len is the sum of the pieces. */
static void capture_add(struct uvd_capture *c, struct told *t, const struct iovec *iov, unsigned int num)
{
	pthread_mutex_lock(&c->lock);
	if (!c->ended && !capture_fill(c, t, iov, num))
		c->lost += uvd_packets_of(&t->message, t->len);
	if (c->waits)
		pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

void uvd_capture_add(struct uvd_capture *c, const struct uvd_capture_message *message, const void *bytes, uint32_t len)
{
	struct told t = { .message = *message, .len = len };
	const struct iovec iov = { (void *)bytes, len };

	capture_add(c, &t, &iov, 1);
}

void uvd_capture_add_datagram(struct uvd_capture *c, const struct uvd_udp_flow *flow, const struct iovec *iov,
			      unsigned int num)
{
	struct told t = { .message = { .kind = UVD_CAPTURE_DATAGRAM,
				       .from = flow->from,
				       .to = flow->to,
				       .from_port = flow->from_port,
				       .to_port = flow->to_port,
				       .hop_limit = HOPS } };

	for (unsigned int i = 0; i < num; i++)
		t.len += iov[i].iov_len;
	capture_add(c, &t, iov, num);
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static void capture_put_header(struct uvd_capture *c)
{
	const struct pcap_header header = { PCAP_MAGIC_NS, 2, 4, { 0 }, SNAPLEN, LINK_ETHERNET };

	memcpy(c->out, &header, sizeof(header));
	c->out_used = sizeof(header);
	capture_flush(c);
}

void uvd_capture_free(struct uvd_capture *c)
{
	if (!c)
		return;
	pthread_cond_destroy(&c->more);
	pthread_mutex_destroy(&c->lock);
	free(c->halves[0].bytes);
	free(c->halves[1].bytes);
	free(c->out);
	free(c);
}

struct uvd_capture *uvd_capture_new(int fd, size_t buffer, int *err)
{
	struct uvd_capture *c = calloc(1, sizeof(*c));

	*err = -ENOMEM;
	if (!c)
		return NULL;
	c->fd = fd;
	c->size = buffer ?: UVD_CAPTURE_BUFFER;
	c->filled = c->halves;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	c->halves[0].bytes = malloc(c->size);
	c->halves[1].bytes = malloc(c->size);
	c->out = malloc(OUT_BYTES);
	if (c->halves[0].bytes && c->halves[1].bytes && c->out) {
		capture_put_header(c);
		*err = c->err ?: uvd_thread_start(&c->thread, 0, capture_main, c);
	}
	if (!*err)
		return c;
	uvd_capture_free(c);
	return NULL;
}

struct uvd_capture_result uvd_capture_end(struct uvd_capture *c)
{
	pthread_mutex_lock(&c->lock);
	c->ended = true;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	if (close(c->fd) && !c->err)
		c->err = -errno;
	/* No message counts as lost since `ended` was set. */
	return (struct uvd_capture_result){ .err = c->err, .packets = c->written, .lost = c->lost };
}
