/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a worker serves a request:
 *
 *   - A request that waits for no client is served by the worker that has read it. Interrupts are such requests, and
 *     so are opens: an open reads /proc/TID/status and opens /proc/TID/pagemap, which take no lock that the opener's
 *     memory or threads can hold. (The kernel takes exec_update_lock there. An exec takes it only after the other
 *     threads of the process have ended, and the opener's thread waits for our answer.)
 *   - A call (ioctl, write) can wait for its client's memory. It is carried out if another worker goes on reading the
 *     channel, and if a part of its user's share of calls is free (turns.h). Otherwise it waits for its turn.
 *   - With a broker an open is a call: the broker's child reads the path that the opener opens from the opener's
 *     memory. The worker waits as long as the child does, so the share bounds both the workers and the children that a
 *     user occupies.
 *   - The last close of a file can wait for a transfer of the file's objects, and so for memory. It needs another
 *     reader, too, but is never refused.
 *
 *   - A call that waits for an event of its file is parked (turns.h): no worker waits. libfuse forgets the request, so it can process
 *     it again from the start.
 *
 * Interrupts are handled here because libfuse does not know the requests that wait for their turn or for an event.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "cuse/internal.h"
#include "util/util.h"

/* Answers a request that libfuse has not seen, or an interrupt. Ignores errors: the request may be gone. */
static void serve_answer(struct uvd_cuse *c, uint64_t unique, int err)
{
	const struct fuse_out_header header = { .len = sizeof(header), .error = err, .unique = unique };
	ssize_t n = write(fuse_session_fd(c->se), &header, sizeof(header));

	(void)n;
}

/* fh is the pointer that dev_open() gave to the kernel. */
static struct cuse_file *serve_file(uint64_t fh)
{
	return (struct cuse_file *)(uintptr_t)fh;
}

/* Only a write() is parked. */
static struct cuse_file *serve_file_of(const struct uvd_turn *turn)
{
	const struct fuse_in_header *in = (const void *)turn->request;

	return serve_file(((const struct fuse_write_in *)(in + 1))->fh);
}

/* Answers a call that waits no longer, and frees it. Its file is open until then. */
static void serve_end_turn(struct uvd_cuse *c, struct uvd_turn *turn, int err)
{
	const uint64_t unique = turn->unique;

	if (turn->state == UVD_TURN_ENDS)
		c->config.kind->wait_end(serve_file_of(turn), &turn->waiter);
	uvd_turn_free(turn);
	serve_answer(c, unique, err);
}

/* ---- interrupts -------------------------------------------------------------------------------------------------- */

/* If a worker serves the request, tells it that the client has a signal, and returns true. */
static bool serve_interrupt_worker(struct uvd_cuse *c, uint64_t unique)
{
	for (struct worker *w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		uint64_t seen = unique;

		if (atomic_compare_exchange_strong(&w->unique, &seen, unique | WORKER_HAS_SIGNAL) ||
		    seen == (unique | WORKER_HAS_SIGNAL))
			return true;
	}
	return false;
}

/*
 * A request that is not found has been answered, or a worker has just taken it from the channel or from its queue, or is just
 * parking it. The answer EAGAIN makes the kernel send the interrupt again, unless the request has been answered: then the kernel
 * ignores it.
 */
static void serve_interrupt(struct uvd_cuse *c, const struct fuse_in_header *in)
{
	const struct fuse_interrupt_in *arg = (const void *)(in + 1);
	struct uvd_turn *turn;

	if (uvd_turns_interrupt(&c->turns, arg->unique, &turn)) {
		if (turn)
			serve_end_turn(c, turn, -EINTR);
		return;
	}
	if (serve_interrupt_worker(c, arg->unique) || uvd_cuse_is_granting(c, arg->unique))
		return;
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	serve_answer(c, in->unique, -EAGAIN);
}

/* ---- calls that wait for an event -------------------------------------------------------------------------------- */

/* struct uvd_cm_waiter.ready: called with the lock of the file's events held. */
static void serve_ready(struct uvd_cm_waiter *waiter)
{
	struct uvd_turn *turn = container_of(waiter, struct uvd_turn, waiter);
	struct uvd_cuse *c = serve_file_of(turn)->cuse;

	if (uvd_turns_ready(&c->turns, turn))
		uvd_cuse_wake(c);
}

/* Parks a call that is held. */
static void serve_park_turn(struct uvd_cuse *c, struct uvd_turn *turn)
{
	const struct uvd_cuse_kind *kind = c->config.kind;
	struct cuse_file *f = serve_file_of(turn);
	bool waits;
	int ret;

	turn->waiter.ready = serve_ready;
	waits = kind->wait(f, &turn->waiter);
	ret = uvd_turns_park(&c->turns, turn, waits);
	if (ret > 0)
		uvd_cuse_wake(c);
	if (ret >= 0)
		return;
	if (waits)
		kind->wait_end(f, &turn->waiter);
	serve_end_turn(c, turn, ret);
}

/*
 * Parks the call that the worker has carried out without an answer; or answers it, if its client has a signal or its user is at a
 * limit. turn: the request; NULL: it is in the worker's buffer.
 */
static void serve_park(struct worker *w, struct uvd_account *account, struct uvd_turn *turn, bool has_signal)
{
	const struct fuse_in_header *in = w->buf.mem;
	int err = has_signal ? -EINTR : 0;

	w->waits = false;
	if (!turn)
		turn = uvd_turn_copy(account, in->unique, in, w->buf.size);
	if (!turn) {
		serve_answer(w->cuse, in->unique, err ? err : -ENOMEM);
		return;
	}
	err = err ? err : uvd_turn_hold(turn);
	if (err)
		serve_end_turn(w->cuse, turn, err);
	else
		serve_park_turn(w->cuse, turn);
}

/* ---- requests that can wait for a client ------------------------------------------------------------------------- */

/*
 * Without privilege a thread can raise its nice value, but not lower it again. If lowering fails, the worker exits, so
 * that another thread takes its place, and no worker of the node raises its nice value any more.
 */
static void serve_set_nice(struct worker *w, int nice)
{
	if (nice == w->nice || (nice && w->cuse->never_nice))
		return;
	if (uvd_thread_set_nice(nice))
		w->nice = nice;
	else
		w->leaves = w->cuse->never_nice = true;
}

/* Returns whether the client had a signal meanwhile. */
static bool serve_process(struct worker *w, void **memory, void *request, size_t size)
{
	const struct fuse_buf buf = { .mem = request, .size = size };

	atomic_store(&w->unique, ((const struct fuse_in_header *)request)->unique);
	w->memory = memory;
	uvd_cuse_process(w, &buf);
	atomic_fetch_add_explicit(&w->served, 1, memory_order_relaxed);
	return atomic_exchange(&w->unique, 0) & WORKER_HAS_SIGNAL;
}

/* Returns how many workers may be away from the channel with this request: the rest is for opens and closes. */
static unsigned int serve_most(const struct fuse_in_header *in)
{
	return in->opcode == FUSE_RELEASE ? MAX_WORKERS : in->opcode == FUSE_OPEN ? MAX_OPENERS : MAX_CALLERS;
}

void uvd_cuse_spend(struct worker *w, struct uvd_account *account)
{
	uvd_account_spend(account, uvd_thread_cpu_since(&w->cpu_ns));
}

/* struct uvd_worker.given_up: moves the call to the share of the user whose memory it waits for. */
static void serve_given_up(struct uvd_worker *worker, struct uvd_account *owner)
{
	struct worker *w = (struct worker *)worker;

	if (!w->account)
		return;
	w->is_lost = true;
	uvd_turns_leave(&w->cuse->turns, w->account, false);
	if (owner && uvd_account_try(owner, UVD_RES_CALLS, 1))
		w->blamed = uvd_account_ref(owner);
}

static void serve_leave(struct worker *w, struct uvd_account *account, bool close)
{
	if (!w->is_lost)
		uvd_turns_leave(&w->cuse->turns, account, close);
	else if (w->blamed)
		uvd_account_uncharge(w->blamed, UVD_RES_CALLS, 1);
	uvd_account_put(w->blamed);
	w->blamed = NULL;
	w->is_lost = false;
}

/*
 * Carries out a request that is charged to its user's share, on a worker that has left the readers. If w->waits is set then,
 * serve_park() must follow, with the result.
 */
static bool serve_carry_out(struct worker *w, struct uvd_account *account, bool close, void **memory, void *request,
			    size_t size)
{
	bool has_signal;

	serve_set_nice(w, uvd_account_nice(account, 0));
	w->account = account;
	w->worker.given_up = serve_given_up;
	has_signal = serve_process(w, memory, request, size);
	w->account = NULL;
	uvd_cuse_spend(w, account);
	serve_set_nice(w, 0);
	serve_leave(w, account, close);
	uvd_cuse_join_readers(w->cuse);
	return has_signal;
}

/* Returns as uvd_turns_enter() does; 0: it was carried out. */
static int serve_or_queue(struct worker *w, struct uvd_account *account, bool close)
{
	const struct fuse_in_header *in = w->buf.mem;
	struct uvd_turns *turns = &w->cuse->turns;
	int ret = uvd_turns_enter(turns, account, close, in->unique, in, w->buf.size);
	bool has_signal;

	if (ret)
		return ret;
	if (!uvd_cuse_leave_readers(w->cuse, serve_most(in)))
		return uvd_turns_postpone(turns, account, close, in->unique, in, w->buf.size);
	has_signal = serve_carry_out(w, account, close, &w->buf.mem, w->buf.mem, w->buf.size);
	if (w->waits)
		serve_park(w, account, NULL, has_signal);
	return 0;
}

/* Takes over the reference to account. account NULL: answers err. */
static void serve_waiting(struct worker *w, struct uvd_account *account, int err, bool close)
{
	const uint64_t unique = ((const struct fuse_in_header *)w->buf.mem)->unique;
	int ret = account ? serve_or_queue(w, account, close) : err;

	uvd_account_put(account);
	/* A close that cannot be queued is answered now. Its file stays on the list, and uvd_cuse_stop() closes it. */
	if (ret < 0)
		serve_answer(w->cuse, unique, close ? 0 : ret);
}

static void serve_call(struct worker *w, const struct fuse_in_header *in, uint64_t file)
{
	serve_waiting(w, uvd_cuse_call_account(serve_file(file), in->uid, in->pid), -ENOMEM, false);
}

static void serve_close(struct worker *w, uint64_t file)
{
	serve_waiting(w, uvd_account_ref(serve_file(file)->opener.account), -ENOMEM, true);
}

static void serve_open(struct worker *w, const struct fuse_in_header *in)
{
	struct uvd_account *account;
	int err;

	/* A file of queues is opened by a process of the broker's: nobody is asked. */
	if (!w->cuse->config.clients->open_waits || w->cuse->config.kind->fuse) {
		serve_process(w, &w->buf.mem, w->buf.mem, w->buf.size);
		return;
	}
	account = uvd_cuse_open_account(w->cuse, in->pid, &err);
	serve_waiting(w, account, err, false);
}

void uvd_cuse_serve(struct worker *w)
{
	const struct fuse_in_header *in = w->buf.mem;
	const void *arg = in + 1;

	if (in->opcode == FUSE_INTERRUPT) {
		serve_interrupt(w->cuse, in);
		return;
	}
	if (!w->cuse->config.kind->open && !w->cuse->config.kind->fuse) { /* no request of it waits */
		serve_process(w, &w->buf.mem, w->buf.mem, w->buf.size);
		return;
	}
	switch (in->opcode) {
	case FUSE_IOCTL:
		serve_call(w, in, ((const struct fuse_ioctl_in *)arg)->fh);
		break;
	case FUSE_WRITE:
		serve_call(w, in, ((const struct fuse_write_in *)arg)->fh);
		break;
	case FUSE_RELEASE:
		serve_close(w, ((const struct fuse_release_in *)arg)->fh);
		break;
	case FUSE_OPEN:
		serve_open(w, in);
		break;
	default:
		serve_process(w, &w->buf.mem, w->buf.mem, w->buf.size);
	}
}

bool uvd_cuse_serve_next(struct worker *w)
{
	struct uvd_cuse *c = w->cuse;
	struct uvd_account *account;
	struct uvd_turn *turn;
	bool has_signal;

	if (!uvd_turns_any(&c->turns) || !uvd_cuse_leave_readers(c, MAX_CALLERS))
		return false;
	w->turn = turn = uvd_turns_take(&c->turns);
	if (!turn) {
		uvd_cuse_join_readers(c);
		return false;
	}
	account = turn->account;
	has_signal = serve_carry_out(w, account, turn->close, (void **)&w->turn, turn->request, turn->size);
	if (w->waits)
		serve_park(w, account, turn, has_signal);
	else if (w->turn)
		uvd_turn_free(turn);
	else /* a grant has the memory */
		uvd_account_put(account);
	w->turn = NULL;
	return true;
}

void uvd_cuse_answer_waiting(struct uvd_cuse *c)
{
	struct uvd_turn *turn;

	while ((turn = uvd_turns_end(&c->turns)))
		serve_end_turn(c, turn, turn->close ? 0 : -EIO);
}
