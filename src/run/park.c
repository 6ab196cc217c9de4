/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A parked call is carried out anew when its file has an event, as in the loop of the kernel's ucma_get_event(). So whoever makes
 * the event neither touches the memory of the client that waits for it, nor waits for that client: it puts the call into a list and
 * writes to an eventfd, which the tree's thread polls beside the listener while calls are parked. The call keeps a reference to its
 * file, as the kernel's does: it goes on when another thread closes the fd, or puts another file in its place.
 *
 * The filter has WAIT_KILLABLE_RECV, so a signal does not end the caller's wait. The thread looks for signals of the callers in /proc,
 * and ends calls with ERESTARTSYS: from that the kernel makes EINTR, or a restart, as the signal's handler asks for (SA_RESTART).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "account/account.h"
#include "run/park.h"

/*
 * The kernel's own errno: it never reaches a program. The kernel only replaces it if the thread has been told of a signal (its flag
 * TIF_SIGPENDING), see parked_is_told().
 */
enum { KERNEL_ERESTARTSYS = 512 };

struct parked_call {
	struct uvd_cm_waiter waiter;
	struct list_head of_tree, of_ready;
	struct uvd_run_tree *tree;
	struct uvd_run_cm_file *file; /* a reference */
	struct uvd_run_cm_write write;
	struct seccomp_notif notif;
	pid_t tid;
	_Atomic uint64_t *lent;
	bool in_file; /* uvd_cm_wait() has put the waiter into the list of its file, perhaps some time ago */
	bool seen_signal; /* the last look has found a signal that may be another thread's */
};

void uvd_run_parking_init(struct uvd_run_tree *tree)
{
	struct uvd_run_parking *parking = &tree->parking;

	pthread_mutex_init(&parking->lock, NULL);
	INIT_LIST_HEAD(&parking->calls);
	INIT_LIST_HEAD(&parking->ready);
	parking->event = -1;
}

void uvd_run_parking_fini(struct uvd_run_tree *tree)
{
	if (tree->parking.event >= 0)
		close(tree->parking.event);
	pthread_mutex_destroy(&tree->parking.lock);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

/*
 * struct uvd_cm_waiter.ready. Caller holds the lock of struct uvd_cm. After uvd_cm_wait_end() of this call it does not run, so the
 * tree cannot end meanwhile.
 */
static void parked_ready(struct uvd_cm_waiter *waiter)
{
	struct parked_call *p = container_of(waiter, struct parked_call, waiter);
	struct uvd_run_parking *parking = &p->tree->parking;
	bool first;

	uvd_lock(&parking->lock);
	first = list_empty(&parking->ready);
	list_add_tail(&p->of_ready, &parking->ready);
	uvd_unlock(&parking->lock);
	if (first)
		eventfd_write(parking->event, 1);
}

static struct parked_call *parking_next_ready(struct uvd_run_parking *parking)
{
	struct parked_call *p = NULL;

	uvd_lock(&parking->lock);
	if (!list_empty(&parking->ready)) {
		p = list_first_entry(&parking->ready, struct parked_call, of_ready);
		list_del_init(&p->of_ready);
	}
	uvd_unlock(&parking->lock);
	return p;
}

/* Gives back all that the call has. The caller has its answer, or needs none. */
static void parked_free(struct parked_call *p)
{
	struct uvd_run_tree *tree = p->tree;

	if (p->in_file)
		uvd_cm_wait_end(p->file->file, &p->waiter);
	uvd_lock(&tree->parking.lock);
	list_del_init(&p->of_ready);
	uvd_unlock(&tree->parking.lock);
	list_del_init(&p->of_tree);
	tree->parking.num--;
	uvd_run_lent_give(tree, p->lent);
	uvd_account_uncharge(tree->account, UVD_RES_PARKED, 1);
	uvd_run_cm_file_put(p->file);
	free(p);
}

static void parking_forget_killed(struct uvd_run_tree *tree)
{
	struct parked_call *p, *next;

	list_for_each_entry_safe(p, next, &tree->parking.calls, of_tree)
		if (!uvd_run_valid(tree->listener, p->notif.id))
			parked_free(p);
}

/* Callers that were killed may still be charged for: looks for them before the limit refuses the call. */
static int parking_charge(struct uvd_run_tree *tree)
{
	if (uvd_account_try(tree->account, UVD_RES_PARKED, 1))
		return 0;
	parking_forget_killed(tree);
	return uvd_account_charge(tree->account, UVD_RES_PARKED, 1);
}

/* Most trees park no call: the eventfd is made for the first one. */
static int parking_open(struct uvd_run_parking *parking)
{
	if (parking->event < 0)
		parking->event = uvd_fd_raise(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	return parking->event < 0 ? -ENOMEM : 0;
}

/* Returns the current call as a parked one, which does not wait yet; or NULL, and a negative errno in *err. */
static struct parked_call *parked_new(struct uvd_run_tree *tree, struct uvd_run_cm_file *f,
				      const struct uvd_run_cm_write *w, long *err)
{
	struct uvd_run_parking *parking = &tree->parking;
	struct parked_call *p;

	*err = parking_open(parking) ?: parking_charge(tree);
	if (*err)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p)
		p->lent = uvd_run_lent_take(tree, tree->notif->n.id);
	if (!p || !p->lent) {
		uvd_account_uncharge(tree->account, UVD_RES_PARKED, 1);
		free(p);
		*err = -ENOMEM;
		return NULL;
	}
	p->waiter.ready = parked_ready;
	p->tree = tree;
	p->file = f;
	atomic_fetch_add(&f->refs, 1);
	p->write = *w;
	p->notif = tree->notif->n;
	p->tid = tree->tid;
	INIT_LIST_HEAD(&p->of_ready);
	list_add_tail(&p->of_tree, &parking->calls);
	if (!parking->num++)
		parking->look_at = uvd_now_ns() + UVD_RUN_PARK_LOOK_NS;
	return p;
}

/* ---- the call itself --------------------------------------------------------------------------------------------- */

/* A client changes that by F_SETFL, which we do not see. The number may stand for another file by now. */
static bool parking_is_nonblock(struct uvd_run_tree *tree, const struct uvd_run_cm_file *f, int fd)
{
	struct uvd_run_inode inode;
	const struct uvd_run_slot *slot = uvd_run_caller_fd(tree, fd, &inode);
	unsigned int flags;

	if (!slot) {
		uvd_run_caller(tree);
		return false;
	}
	return uvd_run_inode_equal(&inode, &f->inode) && !uvd_run_flags_read(slot->fdinfo, &flags) &&
	       flags & O_NONBLOCK;
}

/* The result of a write that ended with ret: pieces of a writev() that are done count. */
static long parking_result(const struct uvd_run_cm_write *w, long ret)
{
	return ret < 0 && w->done.sum ? w->done.sum : ret;
}

/* Carries the write out. Returns the final result of the call, or UVD_CM_WAITS. */
static long parking_try(struct uvd_run_tree *tree, struct uvd_run_cm_file *f, struct uvd_run_cm_write *w)
{
	long ret = uvd_run_cm_write(tree, f, w);

	if (ret == UVD_CM_WAITS && parking_is_nonblock(tree, f, w->args.fd))
		ret = -EAGAIN;
	return ret == UVD_CM_WAITS ? ret : parking_result(w, ret);
}

/* Tries until the call has its result or waits: an event may come just before the wait. Returns as parking_try() does. */
static long parked_wait(struct parked_call *p)
{
	long ret = UVD_CM_WAITS;

	while (ret == UVD_CM_WAITS && !uvd_cm_wait(p->file->file, &p->waiter)) {
		p->in_file = false;
		ret = parking_try(p->tree, p->file, &p->write);
	}
	if (ret == UVD_CM_WAITS)
		p->in_file = true;
	return ret;
}

long uvd_run_park(struct uvd_run_tree *tree, struct uvd_run_cm_file *f, const struct uvd_run_cm_write *write)
{
	struct uvd_run_cm_write w = *write;
	long ret = parking_try(tree, f, &w);
	struct parked_call *p;

	if (ret != UVD_CM_WAITS)
		return ret;
	p = parked_new(tree, f, &w, &ret);
	if (!p)
		return parking_result(&w, ret);
	ret = parked_wait(p);
	if (ret == UVD_CM_WAITS)
		return UVD_RUN_ANSWERED;
	parked_free(p);
	return ret;
}

/*
 * Makes the parked call the current one. Returns false if its caller was killed: its number may be another thread's. The caller that
 * still waits after the tick was read keeps its number until the next one.
 */
static bool parked_select(struct parked_call *p)
{
	struct uvd_run_tree *tree = p->tree;

	if (!uvd_run_valid(tree->listener, p->notif.id))
		return false;
	tree->notif->n = p->notif;
	tree->tid = p->tid;
	uvd_run_caller_waits(tree);
	return uvd_run_valid(tree->listener, p->notif.id);
}

static void parked_answer(struct parked_call *p, long result)
{
	uvd_run_answer_late(p->tree, p->notif.id, result);
	parked_free(p);
}

/* Its file has had an event: all that wait for one are told, and often another one has taken it. */
static void parked_resume(struct parked_call *p)
{
	struct uvd_run_inode inode;
	long ret;

	p->in_file = uvd_cm_wait(p->file->file, &p->waiter);
	if (p->in_file)
		return;
	if (!parked_select(p)) {
		parked_free(p);
		return;
	}
	if (uvd_run_caller_fd(p->tree, p->write.args.fd, &inode) || uvd_run_caller(p->tree))
		ret = parking_try(p->tree, p->file, &p->write);
	else
		ret = parking_result(&p->write, -EFAULT); /* its memory cannot be reached */
	if (ret == UVD_CM_WAITS)
		ret = parked_wait(p);
	if (ret != UVD_CM_WAITS)
		parked_answer(p, ret);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* Facts about a thread, from /proc. Signals are masks: 1 << (signal - 1). */
struct parked_status {
	char state;
	pid_t tgid; /* as the caller's numbers are */
	unsigned int threads;
	uint64_t own, shared; /* pending signals of the thread, and of its process, that would end its call */
	uint64_t blocked;
};

/* Signals that do nothing where they have no handler. The kernel takes them from its list when a thread is told of them. */
static const uint64_t parked_harmless = UINT64_C(1) << (SIGCHLD - 1) | UINT64_C(1) << (SIGCONT - 1) |
					UINT64_C(1) << (SIGURG - 1) | UINT64_C(1) << (SIGWINCH - 1);

static uint64_t parked_field(const char *text, const char *name, int base)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, base) : 0;
}

static bool parked_read_status(struct uvd_run_tree *tree, pid_t tid, struct parked_status *s)
{
	int fd = tree->proc.open(&tree->proc, tid, "status", O_RDONLY);
	uint64_t blocked, acts;
	const char *state;
	char text[4096];
	ssize_t n;

	if (fd < 0)
		return false;
	n = uvd_status_read(fd, text, sizeof(text));
	close(fd);
	if (n <= 0)
		return false;
	blocked = parked_field(text, "\nSigBlk:\t", 16);
	acts = ~parked_field(text, "\nSigIgn:\t", 16) & ~(parked_harmless & ~parked_field(text, "\nSigCgt:\t", 16));
	state = strstr(text, "\nState:\t");
	*s = (struct parked_status){
		.state = state ? state[strlen("\nState:\t")] : 0,
		.tgid = (pid_t)parked_field(text, "\nTgid:\t", 10) + tree->proc.base,
		.threads = parked_field(text, "\nThreads:\t", 10),
		.own = parked_field(text, "\nSigPnd:\t", 16) & ~blocked & acts,
		.shared = parked_field(text, "\nShdPnd:\t", 16) & ~blocked & acts,
		.blocked = blocked,
	};
	return true;
}

enum parked_signal {
	PARKED_NONE,
	PARKED_TOLD, /* the thread has been told of a signal: it acts on it as soon as its call ends */
	PARKED_MAYBE, /* a signal of the process waits for this thread, or for another one */
};

/*
 * Has the kernel told this thread of a signal? It tells one thread of a signal to the process: the first one, unless that has the
 * signal blocked or has ended; then any that has it unblocked. Before a stop (SIGSTOP, SIGTSTP) it tells all.
 */
static enum parked_signal parked_is_told(struct parked_call *p)
{
	struct parked_status s, first;
	uint64_t shared;

	if (!parked_read_status(p->tree, p->tid, &s))
		return PARKED_NONE;
	if (s.own)
		return PARKED_TOLD;
	shared = s.shared;
	if (s.threads == 1 || s.tgid == p->tid)
		return shared ? PARKED_TOLD : PARKED_NONE;
	if (!parked_read_status(p->tree, s.tgid, &first))
		return PARKED_NONE;
	if (first.state == 'T')
		return PARKED_TOLD;
	if (first.state != 'Z' && first.state != 'X')
		shared &= first.blocked;
	return shared ? PARKED_MAYBE : PARKED_NONE;
}

/*
 * Ends the call if a signal has come for its caller. A signal that may be another thread's is given time until the next look. If it
 * is still there then, the call ends with EINTR: ERESTARTSYS would reach the program if the thread were not told of the signal.
 */
static void parked_look(struct parked_call *p)
{
	const bool seen = p->seen_signal;
	enum parked_signal signal;

	if (!parked_select(p)) {
		parked_free(p);
		return;
	}
	signal = parked_is_told(p);
	p->seen_signal = signal == PARKED_MAYBE;
	if (signal == PARKED_TOLD)
		parked_answer(p, parking_result(&p->write, -KERNEL_ERESTARTSYS));
	else if (signal == PARKED_MAYBE && seen)
		parked_answer(p, parking_result(&p->write, -EINTR));
}

/*
 * Looks at some of the parked calls, those first at which it has not looked for the longest time. The next look is as much later as
 * keeps all looks below some percent of a processor, however many calls are parked.
 */
static void parking_look(struct uvd_run_tree *tree)
{
	enum { AT_ONCE = 32, PAUSE = 32 /* 3 percent */ };
	struct uvd_run_parking *parking = &tree->parking;
	const uint64_t begin = uvd_now_ns();
	uint64_t end, pause;

	for (unsigned int i = 0, num = parking->num; i < num && i < AT_ONCE; i++) {
		struct parked_call *p = list_first_entry(&parking->calls, struct parked_call, of_tree);

		list_del_init(&p->of_tree);
		list_add_tail(&p->of_tree, &parking->calls);
		parked_look(p);
	}
	end = uvd_now_ns();
	pause = (end - begin) * PAUSE;
	parking->look_at = end + (pause > UVD_RUN_PARK_LOOK_NS ? pause : UVD_RUN_PARK_LOOK_NS);
}

/* ---- the thread of the tree -------------------------------------------------------------------------------------- */

static int parking_patience(const struct uvd_run_parking *parking)
{
	const uint64_t ms = 1000000, now = uvd_now_ns();

	return now >= parking->look_at ? 0 : (int)((parking->look_at - now) / ms) + 1;
}

bool uvd_run_parking_serve(struct uvd_run_tree *tree)
{
	struct uvd_run_parking *parking = &tree->parking;
	struct pollfd p[] = {
		{ .fd = tree->listener, .events = POLLIN },
		{ .fd = parking->event, .events = POLLIN },
	};
	struct parked_call *call;
	eventfd_t count;

	if (poll(p, UVD_COUNT(p), parking_patience(parking)) < 0)
		return false; /* a signal that tells us to stop */
	if (p[1].revents) {
		eventfd_read(parking->event, &count);
		while ((call = parking_next_ready(parking)))
			parked_resume(call);
	}
	if (p[0].revents & POLLHUP)
		parking_forget_killed(tree);
	else if (uvd_now_ns() >= parking->look_at)
		parking_look(tree);
	return p[0].revents & POLLIN;
}

void uvd_run_parking_end(struct uvd_run_tree *tree)
{
	struct parked_call *p, *next;

	list_for_each_entry_safe(p, next, &tree->parking.calls, of_tree)
		parked_free(p);
}
