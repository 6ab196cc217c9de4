/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets of an engine on the wire, and the thread that receives from them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "backends/soft/wire/internal.h"

/* ---- senders ----------------------------------------------------------------------------------------------------- */

struct wire_sender *wire_sender_get(struct soft_wire *wire)
{
	struct wire_sender *sender;

	pthread_mutex_lock(&wire->lock);
	sender = wire->senders;
	if (sender)
		wire->senders = sender->next;
	pthread_mutex_unlock(&wire->lock);
	if (sender)
		return sender;
	sender = malloc(sizeof(*sender));
	if (!sender)
		return NULL;
	sender->num = 0;
	sender->memory = uvd_socket_sender_new();
	if (sender->memory)
		return sender;
	free(sender);
	return NULL;
}

void wire_sender_put(struct soft_wire *wire, struct wire_sender *sender)
{
	pthread_mutex_lock(&wire->lock);
	sender->next = wire->senders;
	wire->senders = sender;
	pthread_mutex_unlock(&wire->lock);
}

void wire_sender_flush(struct wire_sender *sender, struct uvd_socket *socket, bool may_wait)
{
	enum { WAIT_MS = 20 };
	unsigned int sent = 0;

	while (sent < sender->num) {
		struct pollfd pfd = { .fd = uvd_socket_fd(socket), .events = POLLOUT };

		sent += uvd_socket_send(socket, sender->memory, sender->out + sent, sender->num - sent);
		if (sent < sender->num && (!may_wait || poll(&pfd, 1, WAIT_MS) <= 0))
			break;
	}
	sender->num = 0;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static void receive_one(struct soft_wire *wire, struct uvd_socket *socket, const struct uvd_socket_in *in)
{
	struct uvd_packet packet;
	struct soft_qp *qp;
	uint16_t ip_id;

	/* Unknown QPs, damaged packets and others are dropped in silence: nobody learns from us which QPs there are. */
	if (in->is_truncated || uvd_packet_parse(&packet, in->bytes, in->len) != UVD_PACKET_OK ||
	    !uvd_socket_icrc_fits(socket, in, &packet, &ip_id))
		return;
	qp = soft_fabric_get_qp(wire->fabric, packet.dest_qpn);
	if (!qp)
		return;
	wire_deliver(qp, socket, in, &packet);
	soft_ref_put(&qp->ref);
}

static void receive_from(struct soft_wire *wire, struct uvd_socket *socket, struct uvd_socket_receiver *receiver)
{
	const struct uvd_socket_in *in;
	int num;

	do {
		num = uvd_socket_receive(socket, receiver, &in);
		for (int i = 0; i < num; i++)
			receive_one(wire, socket, &in[i]);
	} while (num == UVD_SOCKET_BATCH);
}

/* ICMP errors are hints: they end nothing. */
static void take_errors(struct uvd_socket *socket)
{
	struct uvd_socket_error error;

	while (uvd_socket_error(socket, &error) > 0)
		;
}

static void *wire_thread(void *arg)
{
	struct pollfd fds[SOFT_WIRE_ADDRESSES + 1];
	struct soft_wire *wire = arg;
	struct uvd_socket_receiver *receiver = uvd_socket_receiver_new();

	while (receiver) {
		const unsigned int num = __atomic_load_n(&wire->num, __ATOMIC_ACQUIRE);
		uint64_t count;

		for (unsigned int i = 0; i < num; i++)
			fds[i] = (struct pollfd){ .fd = uvd_socket_fd(wire->sockets[i]), .events = POLLIN };
		fds[num] = (struct pollfd){ .fd = wire->wake, .events = POLLIN };
		if (poll(fds, num + 1, -1) < 0)
			continue;
		if (fds[num].revents && read(wire->wake, &count, sizeof(count)) > 0 && !wire->running)
			break;
		for (unsigned int i = 0; i < num; i++) {
			if (fds[i].revents & POLLERR)
				take_errors(wire->sockets[i]);
			if (fds[i].revents & POLLIN)
				receive_from(wire, wire->sockets[i], receiver);
		}
	}
	uvd_socket_receiver_free(receiver);
	return NULL;
}

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

struct uvd_socket *wire_socket_of(struct soft_wire *wire, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < wire->num; i++)
		if (!memcmp(&uvd_socket_address(wire->sockets[i])->gid, gid, sizeof(*gid)))
			return wire->sockets[i];
	return NULL;
}

static void wake_receiver(struct soft_wire *wire)
{
	const uint64_t one = 1;
	ssize_t written = write(wire->wake, &one, sizeof(one));

	(void)written; /* a full counter wakes it as well */
}

static struct soft_wire *wire_new(struct uvd_fabric *fabric)
{
	struct soft_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return NULL;
	wire->fabric = fabric;
	wire->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wire->wake < 0) {
		free(wire);
		return NULL;
	}
	pthread_mutex_init(&wire->lock, NULL);
	return wire;
}

void soft_wire_destroy(struct soft_wire *wire)
{
	struct wire_sender *sender;

	if (!wire)
		return;
	if (wire->running) {
		wire->running = false;
		wake_receiver(wire);
		pthread_join(wire->thread, NULL);
	}
	for (unsigned int i = 0; i < wire->num; i++)
		uvd_socket_free(wire->sockets[i]);
	while ((sender = wire->senders)) {
		wire->senders = sender->next;
		uvd_socket_sender_free(sender->memory);
		free(sender);
	}
	close(wire->wake);
	pthread_mutex_destroy(&wire->lock);
	free(wire);
}

int soft_wire_add(struct uvd_fabric *fabric, int fd)
{
	struct soft_wire *wire = fabric->wire ?: wire_new(fabric);
	int err = 0;

	if (!wire)
		return -ENOMEM;
	fabric->wire = wire;
	if (wire->num == SOFT_WIRE_ADDRESSES)
		return -ENOSPC;
	wire->sockets[wire->num] = uvd_socket_adopt(fd, &err);
	if (!wire->sockets[wire->num])
		return err;
	__atomic_store_n(&wire->num, wire->num + 1, __ATOMIC_RELEASE);
	if (!wire->running) {
		wire->running = true;
		err = uvd_thread_start(&wire->thread, 0, wire_thread, wire);
		wire->running = !err;
	}
	wake_receiver(wire);
	return err;
}
