/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A network that delays packets and changes their order, as filters ask for. Its packets are no longer the QP's: they arrive although it is
 * reset or destroyed meanwhile. The engine keeps them, charged to the QP's user, until they are sent: none longer than its delay. One
 * thread sends them, which starts with the first one.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "backends/soft/wire/internal.h"

struct wire_kept {
	struct list_head of_kept;
	uint64_t nr, at; /* when it is sent: CLOCK_MONOTONIC, ns */
	struct uvd_account *account; /* a reference, or NULL */
	uint32_t charged; /* bytes */
	struct uvd_socket *socket;
	struct uvd_socket_out out;
	uint8_t payload[];
};

static void later_free(struct wire_kept *kept)
{
	uvd_uncharge_bytes(kept->account, kept->charged);
	uvd_account_put(kept->account);
	free(kept);
}

static void later_send(struct wire_kept *kept, struct uvd_socket_sender *memory)
{
	enum { WAIT_MS = 20 };
	struct pollfd pfd = { .fd = uvd_socket_fd(kept->socket), .events = POLLOUT };

	/* If the socket's buffer stays full, the packet is lost. */
	if (!uvd_socket_send(kept->socket, memory, &kept->out, 1) && poll(&pfd, 1, WAIT_MS) > 0)
		uvd_socket_send(kept->socket, memory, &kept->out, 1);
}

/* Takes the next packet that is due out of the list, or waits. Returns NULL at the end. Caller holds kept_lock. */
static struct wire_kept *later_next(struct soft_wire *wire)
{
	struct wire_kept *kept;

	while (!wire->kept_stop) {
		if (list_empty(&wire->kept)) {
			pthread_cond_wait(&wire->kept_changed, &wire->kept_lock);
			continue;
		}
		kept = list_first_entry(&wire->kept, struct wire_kept, of_kept);
		if (kept->at <= uvd_now_ns()) {
			list_del_init(&kept->of_kept);
			return kept;
		}
		uvd_cond_wait_until(&wire->kept_changed, &wire->kept_lock, kept->at);
	}
	return NULL;
}

static void *later_thread(void *arg)
{
	struct uvd_socket_sender *memory = uvd_socket_sender_new();
	struct soft_wire *wire = arg;
	struct wire_kept *kept;

	pthread_mutex_lock(&wire->kept_lock);
	while ((kept = later_next(wire))) {
		pthread_mutex_unlock(&wire->kept_lock);
		/* Without memory the network loses it. */
		if (memory)
			later_send(kept, memory);
		later_free(kept);
		pthread_mutex_lock(&wire->kept_lock);
	}
	pthread_mutex_unlock(&wire->kept_lock);
	uvd_socket_sender_free(memory);
	return NULL;
}

/* Behind all that are due before, and those that are due at the same time. Caller holds kept_lock. */
static void later_insert(struct soft_wire *wire, struct wire_kept *kept)
{
	struct list_head *at = wire->kept.prev;

	while (at != &wire->kept && list_entry(at, struct wire_kept, of_kept)->at > kept->at)
		at = at->prev;
	list_add(&kept->of_kept, at);
	pthread_cond_signal(&wire->kept_changed);
}

static struct wire_kept *later_new(struct soft_qp *qp, struct uvd_socket *socket, const struct uvd_socket_out *out)
{
	const uint32_t len = out->num_iov ? out->iov[0].iov_len : 0, size = sizeof(struct wire_kept) + len;
	struct uvd_account *account = qp->qp.account;
	struct wire_kept *kept;

	if (uvd_charge_bytes(account, size))
		return NULL;
	kept = malloc(size);
	if (!kept) {
		uvd_uncharge_bytes(account, size);
		return NULL;
	}
	kept->account = account ? uvd_account_ref(account) : NULL;
	kept->charged = size;
	kept->socket = socket;
	kept->out = *out;
	if (len) {
		memcpy(kept->payload, out->iov[0].iov_base, len);
		kept->out.iov[0].iov_base = kept->payload;
	}
	return kept;
}

uint64_t wire_later_add(struct soft_qp *qp, struct uvd_socket *socket, const struct uvd_socket_out *out, uint64_t ns)
{
	struct soft_wire *wire = qp->dev->fabric->wire;
	struct wire_kept *kept = later_new(qp, socket, out);
	uint64_t nr = 0;

	if (!kept)
		return 0;
	pthread_mutex_lock(&wire->kept_lock);
	if (!wire->kept_runs)
		wire->kept_runs = !uvd_thread_start(&wire->kept_thread, 0, later_thread, wire);
	if (wire->kept_runs) {
		nr = kept->nr = ++wire->kept_nr;
		kept->at = uvd_now_ns() + ns;
		later_insert(wire, kept);
	}
	pthread_mutex_unlock(&wire->kept_lock);
	if (nr)
		wire_count_kept(qp, out);
	else
		later_free(kept);
	return nr;
}

void wire_later_hurry(struct soft_wire *wire, uint64_t nr)
{
	struct wire_kept *kept;

	pthread_mutex_lock(&wire->kept_lock);
	list_for_each_entry(kept, &wire->kept, of_kept) {
		if (kept->nr != nr)
			continue;
		list_del_init(&kept->of_kept);
		kept->at = 0;
		later_insert(wire, kept);
		break;
	}
	pthread_mutex_unlock(&wire->kept_lock);
}

bool wire_later_takes(struct soft_qp *qp, struct uvd_socket *socket, const struct uvd_socket_out *out,
		      enum uvd_fate fate, uint64_t hold_ns, uint64_t delay_ns)
{
	const bool holds = fate == UVD_FATE_HOLD && !qp->wire->held_nr;
	uint64_t nr;

	if (!holds && !delay_ns)
		return false;
	nr = wire_later_add(qp, socket, out, delay_ns + (holds ? hold_ns : 0));
	if (nr && holds) {
		qp->wire->held_nr = nr;
		qp->wire->held_is_overtaken = false;
	} else if (nr) {
		wire_later_overtake(qp->wire);
	}
	return nr;
}

void wire_later_overtake(struct soft_wire_qp *w)
{
	w->held_is_overtaken = w->held_nr;
}

void wire_later_flushed(struct soft_wire_qp *w)
{
	if (!w->held_is_overtaken)
		return;
	wire_later_hurry(w->wire, w->held_nr);
	w->held_nr = 0;
	w->held_is_overtaken = false;
}

bool soft_wire_holds(const struct soft_qp *qp)
{
	return qp->wire && qp->wire->held_nr;
}

void wire_later_init(struct soft_wire *wire)
{
	pthread_mutex_init(&wire->kept_lock, NULL);
	uvd_cond_init(&wire->kept_changed);
	INIT_LIST_HEAD(&wire->kept);
}

void wire_later_destroy(struct soft_wire *wire)
{
	struct wire_kept *kept, *next;

	pthread_mutex_lock(&wire->kept_lock);
	wire->kept_stop = true;
	pthread_cond_signal(&wire->kept_changed);
	pthread_mutex_unlock(&wire->kept_lock);
	if (wire->kept_runs)
		pthread_join(wire->kept_thread, NULL);
	list_for_each_entry_safe(kept, next, &wire->kept, of_kept)
		later_free(kept);
	pthread_cond_destroy(&wire->kept_changed);
	pthread_mutex_destroy(&wire->kept_lock);
}
