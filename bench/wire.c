/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * wire: processor time of src/wire. "crc_SIZE" is the checksum as this CPU does it, "crc_tables_SIZE" by tables. "packet_SIZE" builds a
 * packet and its ICRC, and parses and checks it; "packet_id_SIZE" checks one whose IPv4 identification is not known.
 * "roce_SIZE" sends packets with a payload of SIZE bytes from one socket to another and checks them, "plain_SIZE" sends datagrams of
 * SIZE bytes between plain UDP sockets with the same calls. Both copy what arrives, as to a client's memory. "pair_SIZE" does that between
 * two processes, each of which waits for the other: the receiver asks for the next 32 datagrams while it takes 32. All take one message for each
 * datagram, but for "roce".
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/wire.h"

/* Processor time of this process, and of those that it had. */
static uint64_t wire_cpu_ns(void)
{
	const int whose[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
	uint64_t us = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage r;

		getrusage(whose[i], &r);
		us += (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000ull + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
	}
	return us * 1000;
}
#define BENCH_NOW wire_cpu_ns
#include "clock.h"

enum { BATCH = 32, MOST = UVD_IB_MTU_MAX };

struct wire_bench {
	uint8_t payload[MOST], memory[BATCH * MOST], datagram[UVD_IB_DATAGRAM_MAX];
	struct uvd_socket *from, *to;
	struct uvd_socket_sender *sender;
	struct uvd_socket_receiver *receiver;
	struct uvd_socket_out out[BATCH];
	int plain_from, plain_to;
	struct sockaddr_in plain_address;
	struct mmsghdr send[BATCH], receive[BATCH];
	struct iovec send_iov[BATCH], receive_iov[BATCH];
	struct sockaddr_in names[BATCH];
	uint8_t room[BATCH][MOST];
	volatile uint32_t sink;
};

/* ---- in memory --------------------------------------------------------------------------------------------------- */

static unsigned int bench_crc(struct wire_bench *w, unsigned long count, size_t size, bool by_tables)
{
	while (count--)
		w->sink = by_tables ? uvd_crc32_by_tables(w->sink, w->payload, size)
				    : uvd_crc32(w->sink, w->payload, size);
	return 1;
}

static unsigned int bench_packet(struct wire_bench *w, unsigned long count, uint32_t size, uint16_t ip_id)
{
	struct uvd_udp_flow flow = { .from_port = 49152, .to_port = UVD_ROCE_PORT };
	struct uvd_packet p = { .opcode = UVD_RC_RDMA_WRITE_ONLY, .payload_len = size }, got;
	uint16_t found;

	flow.from.raw[10] = flow.from.raw[11] = flow.to.raw[10] = flow.to.raw[11] = 0xff;
	while (count--) {
		const size_t head = uvd_packet_put_headers(&p, w->datagram);
		const uint32_t len = uvd_packet_bytes(head, size);
		uint32_t icrc;

		p.psn++;
		icrc = uvd_icrc(&flow, ip_id, w->datagram, len);
		memcpy(w->datagram + len - UVD_ICRC_BYTES, &icrc, UVD_ICRC_BYTES);
		if (uvd_packet_parse(&got, w->datagram, len) ||
		    !uvd_icrc_fits(&flow, uvd_icrc(&flow, 0, w->datagram, len), got.icrc, len, &found) ||
		    found != ip_id)
			return 0;
	}
	return 1;
}

/* ---- over loopback ----------------------------------------------------------------------------------------------- */

static unsigned int bench_roce(struct wire_bench *w, unsigned long count, uint32_t size)
{
	struct uvd_packet p = { .opcode = UVD_RC_RDMA_WRITE_MIDDLE, .payload_len = size }, got;
	const struct uvd_socket_in *in;
	uint16_t ip_id;

	while (count--) {
		for (int i = 0; i < BATCH; i++) {
			p.psn++;
			w->out[i].to = uvd_socket_address(w->to)->gid;
			w->out[i].head_len = uvd_packet_put_headers(&p, w->out[i].head);
			w->out[i].num_iov = 1;
			w->out[i].iov[0] = (struct iovec){ w->payload, size };
		}
		if (uvd_socket_send(w->from, w->sender, w->out, BATCH) != BATCH)
			return 0;
		for (int done = 0, n; done < BATCH; done += n) {
			n = uvd_socket_receive(w->to, w->receiver, &in);
			if (n <= 0)
				return 0;
			for (int i = 0; i < n; i++) {
				if (uvd_packet_parse(&got, in[i].bytes, in[i].len) ||
				    !uvd_socket_icrc_fits(w->to, &in[i], &got, &ip_id))
					return 0;
				memcpy(w->memory + (size_t)(done + i) * size, got.payload, size);
			}
		}
	}
	return BATCH;
}

/* Prepares the calls of a batch. */
static void plain_prepare(struct wire_bench *w, uint32_t size)
{
	for (int i = 0; i < BATCH; i++) {
		w->send_iov[i] = (struct iovec){ w->payload, size };
		w->send[i].msg_hdr = (struct msghdr){ .msg_name = &w->plain_address,
						      .msg_namelen = sizeof(w->plain_address),
						      .msg_iov = &w->send_iov[i],
						      .msg_iovlen = 1 };
		w->receive_iov[i] = (struct iovec){ w->room[i], MOST };
		w->receive[i].msg_hdr = (struct msghdr){ .msg_name = &w->names[i],
							 .msg_namelen = sizeof(w->names[i]),
							 .msg_iov = &w->receive_iov[i],
							 .msg_iovlen = 1 };
	}
}

static unsigned int bench_plain(struct wire_bench *w, unsigned long count, uint32_t size)
{
	while (count--) {
		plain_prepare(w, size);
		if (sendmmsg(w->plain_from, w->send, BATCH, MSG_DONTWAIT) != BATCH)
			return 0;
		for (int done = 0, n; done < BATCH; done += n) {
			n = recvmmsg(w->plain_to, w->receive, BATCH, MSG_DONTWAIT, NULL);
			if (n <= 0)
				return 0;
			for (int i = 0; i < n; i++)
				memcpy(w->memory + (size_t)(done + i) * size, w->room[i], size);
		}
	}
	return BATCH;
}

/* The receiver's process: asks for a batch by a datagram, and takes those that have come meanwhile. */
static int pair_receive(struct wire_bench *w, unsigned long count, uint32_t size, const struct sockaddr_in *to)
{
	struct pollfd p = { .fd = w->plain_to, .events = POLLIN };

	plain_prepare(w, size);
	for (unsigned long due = 0, asked = 0; due < count * BATCH;) {
		int n;

		while (asked < count && asked * BATCH < due + 2 * BATCH)
			if (sendto(w->plain_to, "", 1, 0, (const void *)to, sizeof(*to)) == 1)
				asked++;
		n = recvmmsg(w->plain_to, w->receive, BATCH, MSG_DONTWAIT, NULL);
		if (n < 0 && poll(&p, 1, 1000) <= 0)
			return 1;
		for (int i = 0; i < n; i++, due++)
			memcpy(w->memory + due % BATCH * size, w->room[i], size);
	}
	return 0;
}

static unsigned int bench_pair(struct wire_bench *w, unsigned long count, uint32_t size)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int status = 1;
	char byte;
	pid_t pid;

	if (getsockname(w->plain_from, (void *)&from, &len))
		return 0;
	pid = fork();
	if (!pid)
		_exit(pair_receive(w, count, size, &from));
	plain_prepare(w, size);
	for (unsigned long i = 0; i < count; i++) {
		struct pollfd p = { .fd = w->plain_from, .events = POLLOUT };

		if (recv(w->plain_from, &byte, 1, 0) != 1)
			return 0;
		for (int sent = 0, n; sent<BATCH; sent += n> 0 ? n : 0) {
			n = sendmmsg(w->plain_from, w->send + sent, BATCH - sent, MSG_DONTWAIT);
			if (n < 0)
				poll(&p, 1, 1000);
		}
	}
	return waitpid(pid, &status, 0) == pid && !status ? BATCH : 0;
}

#define SIZE(size) \
	static unsigned int crc_##size(void *arg, unsigned long count) \
	{ \
		return bench_crc(arg, count, size, false); \
	} \
	static unsigned int crc_tables_##size(void *arg, unsigned long count) \
	{ \
		return bench_crc(arg, count, size, true); \
	} \
	static unsigned int packet_##size(void *arg, unsigned long count) \
	{ \
		return bench_packet(arg, count, size, 0); \
	} \
	static unsigned int packet_id_##size(void *arg, unsigned long count) \
	{ \
		return bench_packet(arg, count, size, 0x1234); \
	} \
	static unsigned int roce_##size(void *arg, unsigned long count) \
	{ \
		return bench_roce(arg, count, size); \
	} \
	static unsigned int plain_##size(void *arg, unsigned long count) \
	{ \
		return bench_plain(arg, count, size); \
	} \
	static unsigned int pair_##size(void *arg, unsigned long count) \
	{ \
		return bench_pair(arg, count, size); \
	}

SIZE(64)
SIZE(1024)
SIZE(4096)

#define ROWS(size) \
	{ "crc_" #size, crc_##size }, { "crc_tables_" #size, crc_tables_##size }, { "packet_" #size, packet_##size }, \
		{ "packet_id_" #size, packet_id_##size }, { "roce_" #size, roce_##size }, \
		{ "pair_" #size, pair_##size }, \
	{ \
		"plain_" #size, plain_##size \
	}

static const struct bench all[] = { ROWS(64), ROWS(1024), ROWS(4096), { NULL, NULL } };

/* Opens a socket at 127.0.0.HOST and any port that is free for both. */
static struct uvd_socket *bench_open(uint8_t host, uint16_t port)
{
	struct uvd_socket_address a = { .port = port };
	int fd, err;

	memcpy(a.gid.raw, (uint8_t[16]){ [10] = 0xff, 0xff, 127, 0, 0, host }, sizeof(a.gid.raw));
	fd = uvd_socket_open_fd(&a, NULL);
	return fd < 0 ? NULL : uvd_socket_adopt(fd, &err);
}

static int bench_plain_socket(struct sockaddr_in *address)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = UVD_SOCKET_RCVBUF;
	socklen_t len = sizeof(*address);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return bind(fd, (void *)address, len) || getsockname(fd, (void *)address, &len) ? -1 : fd;
}

int main(void)
{
	static struct wire_bench w;
	struct sockaddr_in unused;

	for (size_t i = 0; i < sizeof(w.payload); i++)
		w.payload[i] = i * 7;
	for (uint16_t port = 20000 + getpid() % 10000; !w.from || !w.to; port++) {
		uvd_socket_free(w.from);
		uvd_socket_free(w.to);
		w.from = bench_open(12, port);
		w.to = bench_open(13, port);
	}
	w.sender = uvd_socket_sender_new();
	w.receiver = uvd_socket_receiver_new();
	w.plain_from = bench_plain_socket(&unused);
	w.plain_to = bench_plain_socket(&w.plain_address);
	if (!w.sender || !w.receiver || w.plain_from < 0 || w.plain_to < 0)
		return 1;
	return bench_serve(all, &w);
}
