/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets of an engine on the wire, and the thread that receives from them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
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

void wire_sender_flush(struct soft_qp *qp, struct wire_sender *sender, struct uvd_socket *socket, bool may_wait)
{
	enum { WAIT_MS = 20 };
	unsigned int sent = 0;

	while (sent < sender->num) {
		struct pollfd pfd = { .fd = uvd_socket_fd(socket), .events = POLLOUT };

		sent += uvd_socket_send(socket, sender->memory, sender->out + sent, sender->num - sent);
		if (sent < sender->num && (!may_wait || poll(&pfd, 1, WAIT_MS) <= 0))
			break;
	}
	wire_count_sent(qp, socket, sender, sent);
	sender->num = 0;
}

/* ---- room for packets that wait ---------------------------------------------------------------------------------- */

struct wire_letter *wire_letter_get(struct soft_wire *wire)
{
	struct wire_letter *letter;

	pthread_mutex_lock(&wire->letters_lock);
	letter = wire->letters;
	if (letter) {
		wire->letters = letter->next;
		wire->num_letters--;
	}
	pthread_mutex_unlock(&wire->letters_lock);
	return letter ?: malloc(WIRE_LETTER_BYTES);
}

void wire_letters_put(struct soft_wire *wire, struct wire_letter *first)
{
	struct wire_letter *letter;

	pthread_mutex_lock(&wire->letters_lock);
	while (first && wire->num_letters < WIRE_FREE_LETTERS) {
		letter = first;
		first = letter->next;
		letter->next = wire->letters;
		wire->letters = letter;
		wire->num_letters++;
	}
	pthread_mutex_unlock(&wire->letters_lock);
	while ((letter = first)) {
		first = letter->next;
		free(letter);
	}
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* QPs for which a batch has brought something, each with a reference. */
struct touched {
	struct soft_qp *qps[UVD_SOCKET_BATCH];
	unsigned int num;
};

static void defer_touched(struct touched *touched)
{
	for (unsigned int i = 0; i < touched->num; i++) {
		wire_defer(touched->qps[i]);
		soft_ref_put(&touched->qps[i]->ref);
	}
	touched->num = 0;
}

/* Takes over the reference. */
static void touch(struct touched *touched, struct soft_qp *qp)
{
	for (unsigned int i = 0; i < touched->num; i++) {
		if (touched->qps[i] == qp) {
			soft_ref_put(&qp->ref);
			return;
		}
	}
	if (touched->num == UVD_SOCKET_BATCH)
		defer_touched(touched);
	touched->qps[touched->num++] = qp;
}

static void receive_one(struct soft_wire *wire, struct uvd_socket *socket, const struct uvd_socket_in *in,
			struct touched *touched)
{
	struct uvd_packet packet;
	struct soft_qp *qp = NULL;
	unsigned int drop;
	uint16_t ip_id;

	drop = in->is_truncated ? UVD_PACKET_TOO_LONG : uvd_packet_parse(&packet, in->bytes, in->len);
	if (!drop && !uvd_socket_icrc_fits(socket, in, &packet, &ip_id))
		drop = WIRE_DROP_ICRC;
	if (!drop) {
		qp = soft_fabric_get_qp(wire->fabric, packet.dest_qpn);
		drop = qp ? 0 : WIRE_DROP_NO_QP;
	}
	/* Unknown QPs, damaged packets and others are dropped in silence: nobody learns from us which QPs there are. */
	if (drop) {
		wire_count_drop(wire, socket, drop);
		return;
	}
	if (wire_deliver(qp, socket, in, &packet))
		touch(touched, qp);
	else
		soft_ref_put(&qp->ref);
}

/* Has a receiver been held up in memory of this user before? Then its QPs get no other one. Caller holds wire->lock. */
static bool is_slow(const struct soft_wire *wire, uid_t user)
{
	for (unsigned int i = 0; i < wire->num_slow; i++)
		if (wire->slow[i] == user)
			return true;
	return wire->num_slow == WIRE_SLOW_USERS;
}

/* May this thread run the QP itself? Not if nobody could take over from it, or if the QP's user has stopped one before. */
static bool may_run_here(struct soft_wire *wire, struct soft_qp *qp)
{
	bool may;

	if (!wire_is_short(qp))
		return false;
	pthread_mutex_lock(&wire->lock);
	may = wire->num_spare && !is_slow(wire, uvd_account_person(qp->qp.account));
	pthread_mutex_unlock(&wire->lock);
	return may;
}

/*
 * Runs the QPs. A single one with little to do is run here, which saves waking a thread of its user; that thread wakes for all others.
 */
static void run_touched(struct wire_receiver *receiver, struct touched *touched)
{
	struct soft_wire *wire = receiver->wire;

	if (touched->num == 1 && may_run_here(wire, touched->qps[0])) {
		receiver->user = uvd_account_person(touched->qps[0]->qp.account);
		wire->run(touched->qps[0], &receiver->worker);
		return;
	}
	defer_touched(touched);
}

/* Delivers all that one system call brings. */
static void receive_some(struct wire_receiver *receiver, struct uvd_socket *socket)
{
	struct touched touched = { .num = 0 };
	const struct uvd_socket_in *in;

	do {
		const int num = uvd_socket_receive(socket, receiver->memory, &in);

		for (int i = 0; i < num; i++)
			receive_one(receiver->wire, socket, &in[i], &touched);
	} while (uvd_socket_receiver_has_rest(receiver->memory));
	run_touched(receiver, &touched);
}

static void receive_from(struct wire_receiver *receiver, struct uvd_socket *socket)
{
	do
		receive_some(receiver, socket);
	while (uvd_socket_receiver_was_full(receiver->memory) && !atomic_load(&receiver->is_replaced));
}

/* Receives until another thread has taken over, or the end. */
static void receive_all(struct wire_receiver *receiver)
{
	struct pollfd fds[SOFT_WIRE_ADDRESSES + 1];
	struct soft_wire *wire = receiver->wire;

	while (!atomic_load(&receiver->is_replaced) && !atomic_load(&wire->stop)) {
		const unsigned int num = __atomic_load_n(&wire->num, __ATOMIC_ACQUIRE);
		uint64_t count;

		for (unsigned int i = 0; i < num; i++)
			fds[i] = (struct pollfd){ .fd = uvd_socket_fd(wire->sockets[i]), .events = POLLIN };
		fds[num] = (struct pollfd){ .fd = wire->wake, .events = POLLIN };
		if (poll(fds, num + 1, -1) < 0)
			continue;
		if (fds[num].revents && read(wire->wake, &count, sizeof(count)) < 0)
			continue;
		for (unsigned int i = 0; i < num && !atomic_load(&receiver->is_replaced); i++) {
			if (fds[i].revents & POLLERR)
				wire_take_errors(wire, wire->sockets[i]);
			if (fds[i].revents & POLLIN)
				receive_from(receiver, wire->sockets[i]);
		}
	}
}

/* ---- the receiver's threads: one receives, and another waits to take over ----------------------------------------- */

static void wake_receiver(struct soft_wire *wire)
{
	const uint64_t one = 1;
	ssize_t written = write(wire->wake, &one, sizeof(one));

	(void)written; /* a full counter wakes it as well */
}

/* struct uvd_worker.held_up: a client's memory does not answer. */
static void receiver_held_up(struct uvd_worker *worker)
{
	struct wire_receiver *receiver = container_of(worker, struct wire_receiver, worker);
	struct soft_wire *wire = receiver->wire;

	pthread_mutex_lock(&wire->lock);
	if (wire->num_slow < WIRE_SLOW_USERS)
		wire->slow[wire->num_slow++] = receiver->user;
	atomic_store(&receiver->is_replaced, true);
	wire->active = NULL;
	pthread_cond_signal(&wire->turn);
	pthread_mutex_unlock(&wire->lock);
}

static bool start_receiver(struct soft_wire *wire);

static void *receiver_thread(void *arg)
{
	struct wire_receiver *receiver = arg;
	struct soft_wire *wire = receiver->wire;

	pthread_mutex_lock(&wire->lock);
	for (;;) {
		while (wire->active && !atomic_load(&wire->stop))
			pthread_cond_wait(&wire->turn, &wire->lock);
		if (atomic_load(&wire->stop))
			break;
		wire->active = receiver;
		wire->num_spare--;
		atomic_store(&receiver->is_replaced, false);
		/* Without a spare thread all QPs are run by threads of their users. */
		if (!wire->num_spare)
			start_receiver(wire);
		pthread_mutex_unlock(&wire->lock);
		receive_all(receiver);
		pthread_mutex_lock(&wire->lock);
		wire->num_spare++;
		if (wire->active == receiver)
			wire->active = NULL;
	}
	pthread_mutex_unlock(&wire->lock);
	return NULL;
}

/* Starts one more thread, which waits for its turn. Caller holds wire->lock. */
static bool start_receiver(struct soft_wire *wire)
{
	struct wire_receiver *receiver;

	if (wire->num_receivers == WIRE_RECEIVERS)
		return false;
	receiver = &wire->receivers[wire->num_receivers];
	receiver->wire = wire;
	receiver->worker = (struct uvd_worker){ .held_up = receiver_held_up };
	receiver->memory = uvd_socket_receiver_new();
	if (!receiver->memory)
		return false;
	if (uvd_thread_start(&receiver->thread, 0, receiver_thread, receiver)) {
		uvd_socket_receiver_free(receiver->memory);
		return false;
	}
	wire->num_receivers++;
	wire->num_spare++;
	return true;
}

/* Returns false if a thread does not come back from a client's memory. */
static bool end_receivers(struct soft_wire *wire)
{
	enum { END_S = 3 };
	struct timespec end;
	bool all = true;

	atomic_store(&wire->stop, true);
	wake_receiver(wire);
	pthread_mutex_lock(&wire->lock);
	pthread_cond_broadcast(&wire->turn);
	pthread_mutex_unlock(&wire->lock);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += END_S;
	for (unsigned int i = 0; i < wire->num_receivers; i++) {
		if (pthread_timedjoin_np(wire->receivers[i].thread, NULL, &end))
			all = false;
		else
			uvd_socket_receiver_free(wire->receivers[i].memory);
	}
	return all;
}

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

struct uvd_socket *wire_socket_of(struct soft_wire *wire, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < wire->num; i++)
		if (!memcmp(&uvd_socket_address(wire->sockets[i])->gid, gid, sizeof(*gid)))
			return wire->sockets[i];
	return NULL;
}

static struct soft_wire *wire_new(struct uvd_fabric *fabric, soft_wire_run_fn *run)
{
	struct soft_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return NULL;
	wire->fabric = fabric;
	wire->run = run;
	wire->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wire->wake < 0) {
		free(wire);
		return NULL;
	}
	pthread_mutex_init(&wire->lock, NULL);
	pthread_mutex_init(&wire->told_lock, NULL);
	uvd_cond_init(&wire->turn);
	pthread_mutex_init(&wire->letters_lock, NULL);
	wire_later_init(wire);
	return wire;
}

bool soft_wire_destroy(struct soft_wire *wire)
{
	struct wire_sender *sender;
	struct wire_letter *letter;

	if (!wire)
		return true;
	if (!end_receivers(wire))
		return false;
	wire_later_destroy(wire);
	for (unsigned int i = 0; i < wire->num; i++)
		uvd_socket_free(wire->sockets[i]);
	while ((sender = wire->senders)) {
		wire->senders = sender->next;
		uvd_socket_sender_free(sender->memory);
		free(sender);
	}
	while ((letter = wire->letters)) {
		wire->letters = letter->next;
		free(letter);
	}
	pthread_mutex_destroy(&wire->letters_lock);
	close(wire->wake);
	pthread_cond_destroy(&wire->turn);
	pthread_mutex_destroy(&wire->told_lock);
	pthread_mutex_destroy(&wire->lock);
	free(wire);
	return true;
}

int soft_wire_add(struct uvd_fabric *fabric, int fd, soft_wire_run_fn *run)
{
	struct soft_wire *wire = fabric->wire ?: wire_new(fabric, run);
	int err = 0;

	if (!wire)
		return -ENOMEM;
	fabric->wire = wire;
	if (wire->num == SOFT_WIRE_ADDRESSES)
		return -ENOSPC;
	wire->sockets[wire->num] = uvd_socket_adopt(fd, &err);
	if (!wire->sockets[wire->num])
		return err;
	wire_capture(wire->sockets[wire->num], fabric->capture);
	__atomic_store_n(&wire->num, wire->num + 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&wire->lock);
	if (!wire->num_receivers && !start_receiver(wire))
		err = -EAGAIN;
	pthread_mutex_unlock(&wire->lock);
	wake_receiver(wire);
	return err;
}
