/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a worker does with a request. There are three classes:
 *
 *   - Requests that wait for no client are served where they are read. An interrupt is one, and so is an open: it reads
 *     /proc/TID/status and opens /proc/TID/pagemap, which take no lock that the opener's memory or threads can hold. (The
 *     kernel looks at exec_update_lock, but an exec takes that after the last other thread has ended, and the opener's waits
 *     for our answer.)
 *   - Calls (ioctl, write) wait for their clients' memory. One is carried out if another worker goes on reading the channel,
 *     and if its user has a part of his share of calls free (turns.h); else it waits for its turn.
 *   - With a broker an open is a call: the broker's child reads the path that the opener opens from the opener's memory. Its
 *     question is in progress for as long as the child waits for that memory, and so the share bounds both the workers and
 *     the children that a user has.
 *   - The last close of a file can wait for a transfer of the file's objects, and that for memory. So it needs another reader,
 *     too, but nobody refuses it.
 *
 * Interrupts are served here, as libfuse does not know the requests that wait for their turn.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "cuse/internal.h"
#include "util/util.h"

/* A request that libfuse has not seen, or an interrupt. The kernel may know it no more: that is no error. */
static void serve_answer(struct uvd_cuse *c, uint64_t unique, int err)
{
	const struct fuse_out_header header = { .len = sizeof(header), .error = err, .unique = unique };
	ssize_t n = write(fuse_session_fd(c->se), &header, sizeof(header));

	(void)n;
}

/* ---- interrupts -------------------------------------------------------------------------------------------------- */

/* Has a worker the request? Then the tick learns that its client has a signal. */
static bool serve_interrupt_worker(struct uvd_cuse *c, uint64_t unique)
{
	for (struct worker *w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		if (atomic_load(&w->unique) != unique)
			continue;
		atomic_store(&w->interrupted, unique);
		return true;
	}
	return false;
}

/*
 * The request may have been answered: then the kernel ignores our answer. Or a worker has it in its hands, on the way from the
 * channel or from the queue: then the kernel sends the interrupt once more.
 */
static void serve_interrupt(struct uvd_cuse *c, const struct fuse_in_header *in)
{
	const struct fuse_interrupt_in *arg = (const void *)(in + 1);
	struct uvd_turn *turn;

	if (uvd_turns_interrupt(&c->turns, arg->unique, &turn)) {
		if (turn)
			serve_answer(c, turn->unique, -EINTR);
		uvd_turn_free(turn);
		return;
	}
	if (serve_interrupt_worker(c, arg->unique) || uvd_cuse_is_granting(c, arg->unique))
		return;
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	serve_answer(c, in->unique, -EAGAIN);
}

/* The kernel gives back what we answered to the open. */
static struct cuse_file *serve_file(uint64_t fh)
{
	return (struct cuse_file *)(uintptr_t)fh;
}

/* ---- requests that can wait for a client ------------------------------------------------------------------------- */

/* It may be that we can give a thread's priority away, but not back: then another thread takes its place. */
static void serve_set_nice(struct worker *w, int nice)
{
	if (nice == w->nice || (nice && w->cuse->never_nice))
		return;
	if (uvd_thread_set_nice(nice))
		w->nice = nice;
	else
		w->leaves = w->cuse->never_nice = true;
}

static void serve_process(struct worker *w, void **memory, void *request, size_t size)
{
	const struct fuse_buf buf = { .mem = request, .size = size };

	atomic_store(&w->unique, ((const struct fuse_in_header *)request)->unique);
	w->memory = memory;
	uvd_cuse_process(w, &buf);
	atomic_fetch_add_explicit(&w->served, 1, memory_order_relaxed);
	atomic_store(&w->unique, 0);
}

/* So many workers may be away from the channel for the others to be left to those who open, and to those who close. */
static unsigned int serve_most(const struct fuse_in_header *in)
{
	return in->opcode == FUSE_RELEASE ? MAX_WORKERS : in->opcode == FUSE_OPEN ? MAX_OPENERS : MAX_CALLERS;
}

void uvd_cuse_spend(struct worker *w, struct uvd_account *account)
{
	uint64_t now = uvd_thread_cpu_ns();

	uvd_account_spend(account, now - w->cpu_ns);
	w->cpu_ns = now;
}

/* struct uvd_worker.given_up: the call is in the share of the user whose memory it waits for. */
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

/* Carries out a request that has its share, on a worker that has left the readers. */
static void serve_carry_out(struct worker *w, struct uvd_account *account, bool close, void **memory, void *request,
			    size_t size)
{
	serve_set_nice(w, uvd_account_nice(account, 0));
	w->account = account;
	w->worker.given_up = serve_given_up;
	serve_process(w, memory, request, size);
	w->account = NULL;
	uvd_cuse_spend(w, account);
	serve_set_nice(w, 0);
	serve_leave(w, account, close);
	uvd_cuse_join_readers(w->cuse);
}

/* Returns as uvd_turns_enter() does; 0: it was carried out. */
static int serve_or_queue(struct worker *w, struct uvd_account *account, bool close)
{
	const struct fuse_in_header *in = w->buf.mem;
	struct uvd_turns *turns = &w->cuse->turns;
	int ret = uvd_turns_enter(turns, account, close, in->unique, in, w->buf.size);

	if (ret)
		return ret;
	if (!uvd_cuse_leave_readers(w->cuse, serve_most(in)))
		return uvd_turns_postpone(turns, account, close, in->unique, in, w->buf.size);
	serve_carry_out(w, account, close, &w->buf.mem, w->buf.mem, w->buf.size);
	return 0;
}

/* Takes the account's reference over. NULL: err says why. */
static void serve_waiting(struct worker *w, struct uvd_account *account, int err, bool close)
{
	const uint64_t unique = ((const struct fuse_in_header *)w->buf.mem)->unique;
	int ret = account ? serve_or_queue(w, account, close) : err;

	uvd_account_put(account);
	/* A close that cannot wait is carried out at the end: its file is still in the list. */
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

	if (!w->cuse->config.link) {
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

	switch (in->opcode) {
	case FUSE_INTERRUPT:
		serve_interrupt(w->cuse, in);
		break;
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
	bool close;

	if (!uvd_turns_any(&c->turns) || !uvd_cuse_leave_readers(c, MAX_CALLERS))
		return false;
	w->turn = uvd_turns_take(&c->turns);
	if (!w->turn) {
		uvd_cuse_join_readers(c);
		return false;
	}
	account = w->turn->account;
	close = w->turn->close;
	serve_carry_out(w, account, close, (void **)&w->turn, w->turn->request, w->turn->size);
	free(w->turn);
	uvd_account_put(account);
	return true;
}

void uvd_cuse_answer_waiting(struct uvd_cuse *c)
{
	struct uvd_turn *turn;

	while ((turn = uvd_turns_end(&c->turns))) {
		serve_answer(c, turn->unique, turn->close ? 0 : -EIO);
		uvd_turn_free(turn);
	}
}
