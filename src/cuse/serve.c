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
 *   - The last close of a file can wait for a transfer of the file's objects, and that for memory. So it needs another reader,
 *     too, but nobody refuses it.
 *
 * Interrupts are served here, as libfuse does not know the requests that wait for their turn.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "cuse/internal.h"
#include "util/util.h"

enum { MANY_CALLS = 2, MANY_NICE = 5 /* of each call beyond so many of one user's */ };

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

/* ---- requests that can wait for a client ------------------------------------------------------------------------- */

/* It may be that we can give a thread's priority away, but not back: then another thread takes its place. */
static void serve_set_nice(struct worker *w, int nice)
{
	if (nice == w->nice || (nice && w->cuse->never_nice))
		return;
	if (!setpriority(PRIO_PROCESS, w->tid, nice))
		w->nice = nice;
	else
		w->leaves = w->cuse->never_nice = true;
}

/* One user's many calls must not take the processors from another's few. */
static int serve_nice_of(struct uvd_account *account)
{
	return uvd_account_uid(account) && uvd_account_used(account, UVD_RES_CALLS) > MANY_CALLS ? MANY_NICE : 0;
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

/* Carries out a request that has its share, on a worker that has left the readers. */
static void serve_carry_out(struct worker *w, struct uvd_account *account, bool close, void **memory, void *request,
			    size_t size)
{
	serve_set_nice(w, serve_nice_of(account));
	serve_process(w, memory, request, size);
	serve_set_nice(w, 0);
	uvd_turns_leave(&w->cuse->turns, account, close);
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
	if (!uvd_cuse_leave_readers(w->cuse, close ? MAX_WORKERS : MAX_CALLERS))
		return uvd_turns_postpone(turns, account, close, in->unique, in, w->buf.size);
	serve_carry_out(w, account, close, &w->buf.mem, w->buf.mem, w->buf.size);
	return 0;
}

/* file: the kernel gives back what we answered to the open. */
static void serve_waiting(struct worker *w, const struct fuse_in_header *in, uint64_t file, bool close)
{
	struct cuse_file *f = (struct cuse_file *)(uintptr_t)file;
	const uint64_t unique = in->unique;
	struct uvd_account *account = close ? uvd_account_ref(f->opener.account) : uvd_cuse_call_account(f, in->uid, in->pid);
	int ret = account ? serve_or_queue(w, account, close) : -ENOMEM;

	uvd_account_put(account);
	/* A close that cannot wait is carried out at the end: its file is still in the list. */
	if (ret < 0)
		serve_answer(w->cuse, unique, close ? 0 : ret);
}

/* With a broker an open asks its child process, which may wait. */
static void serve_open(struct worker *w)
{
	bool leaves = w->cuse->config.link && uvd_cuse_leave_readers(w->cuse, MAX_CALLERS);

	serve_process(w, &w->buf.mem, w->buf.mem, w->buf.size);
	if (leaves)
		uvd_cuse_join_readers(w->cuse);
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
		serve_waiting(w, in, ((const struct fuse_ioctl_in *)arg)->fh, false);
		break;
	case FUSE_WRITE:
		serve_waiting(w, in, ((const struct fuse_write_in *)arg)->fh, false);
		break;
	case FUSE_RELEASE:
		serve_waiting(w, in, ((const struct fuse_release_in *)arg)->fh, true);
		break;
	case FUSE_OPEN:
		serve_open(w);
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
