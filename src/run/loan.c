/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls whose thread registers memory with an adapter (grant/grant.h). The thread of ours that traces the caller must not
 * be the one that serves the tree: the filter traps the ioctl() that the caller executes for us, and the server lets the
 * kernel carry it out. So a loan takes the current call over, and leaves the tree another one.
 *
 * The caller gets the adapter's device file by SECCOMP_IOCTL_NOTIF_ADDFD. It waits so that only a fatal signal ends its
 * wait (WAIT_KILLABLE_RECV), so it stops for us on its way out of the call and not before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "account/account.h"
#include "run/internal.h"

struct run_loan {
	struct uvd_call call; /* of the tree until the loan takes it over */
	struct uvd_grant_job job; /* the rest is for the loan */
	struct uvd_grant_turn turn;
	struct uvd_run_tree *tree; /* until the call is answered */
	struct uvd_run_file *file; /* a reference */
	uint64_t id; /* of the call's notification */
	_Atomic uint64_t *lent; /* where the guardian finds this id */
	atomic_bool answered;
};

static struct run_loan *loan_of_call(struct uvd_call *call)
{
	return container_of(call, struct run_loan, call);
}

struct uvd_call *uvd_run_call_new(struct uvd_run_tree *tree)
{
	struct run_loan *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->call.works_later = true;
	l->call.caller = uvd_run_caller_init(tree);
	return &l->call;
}

void uvd_run_call_free(struct uvd_call *call)
{
	free(loan_of_call(call));
}

/* ---- the caller, while it waits for the loan's answer ------------------------------------------------------------ */

static bool loan_waits(struct uvd_caller *c)
{
	struct run_loan *l = container_of(c, struct run_loan, call.caller);

	return !atomic_load(&l->answered) && uvd_run_valid(l->tree->listener, l->id);
}

static int loan_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	int err = uvd_mem_process.read(c, dst, src, len);

	return loan_waits(c) ? err : -EFAULT;
}

static int loan_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return loan_waits(c) ? uvd_mem_process.write(c, dst, src, len) : -EFAULT;
}

static int loan_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	return loan_waits(c) ? uvd_mem_process.writev(c, v, n) : -EFAULT;
}

static const struct uvd_mem_ops loan_mem = { .read = loan_read, .write = loan_write, .writev = loan_writev };

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static int loan_pass(struct uvd_grant_job *job, int fd)
{
	const struct run_loan *l = container_of(job, struct run_loan, job);

	return uvd_run_add_fd(l->tree->listener, l->id, fd, -1, O_CLOEXEC, false);
}

static int loan_reply(struct uvd_grant_job *job, long result)
{
	struct run_loan *l = container_of(job, struct run_loan, job);
	struct uvd_run_tree *tree = l->tree;
	int err;

	atomic_store(&l->answered, true);
	err = uvd_run_reply(tree->listener, l->id, result);
	uvd_run_lent_give(tree, l->lent);
	/* From here on the tree may be freed. */
	atomic_fetch_sub(&tree->lending, 1);
	return err;
}

static void loan_ended(struct uvd_grant_job *job)
{
	uvd_run_file_put(container_of(job, struct run_loan, job)->file);
}

static void loan_done(struct uvd_grant_job *job)
{
	struct run_loan *l = container_of(job, struct run_loan, job);

	uvd_account_put(job->account);
	free(l);
}

/* ---- its start --------------------------------------------------------------------------------------------------- */

/* The call is answered without a loan. */
static void loan_refuse(struct run_loan *l, int err)
{
	/* The end of a tree refuses loans: a thread that has been killed is not one that cannot be borrowed. */
	const long result = uvd_call_granted(
		&l->call, uvd_grants_is_killed(l->tree->engine->grants, &l->call.caller) ? -ESRCH : err);

	loan_ended(&l->job);
	loan_reply(&l->job, result);
	loan_done(&l->job);
}

/*
 * struct uvd_work.run: as many threads are borrowed as may be at once. Waits for a turn, as the ranks of a program may
 * register all at the same time. Another thread serves the tree meanwhile.
 */
static void loan_wait_for_turn(void *arg, struct uvd_worker *worker)
{
	const uint64_t end = uvd_now_ns() + UVD_GRANT_TURN_NS;
	struct run_loan *l = arg;
	struct uvd_grants *grants = l->tree->engine->grants;

	worker->held_up(worker);
	while (uvd_now_ns() < end && uvd_grants_can_wait(grants) && loan_waits(&l->call.caller)) {
		uvd_grants_wait(grants);
		if (!uvd_grants_start(grants, &l->job))
			return;
	}
	uvd_grants_turn_end(grants, &l->turn);
	loan_refuse(l, uvd_grants_can_wait(grants) ? -EAGAIN : -EPERM);
}

long uvd_run_lend(struct uvd_run_tree *tree, struct uvd_run_file *f)
{
	struct run_loan *l = loan_of_call(tree->call);
	_Atomic uint64_t *lent;
	struct uvd_call *fresh;

	/* The agent opens files of callers that this process must not trace (Yama), or cannot: ptrace() takes a number. */
	if (tree->agent >= 0)
		return uvd_call_granted(tree->call, -EPERM);
	fresh = uvd_run_call_new(tree);
	lent = fresh ? uvd_run_lent_take(tree, tree->notif->n.id) : NULL;
	if (!lent) {
		if (fresh)
			uvd_run_call_free(fresh);
		return uvd_call_granted(tree->call, -EAGAIN);
	}
	l->job = (struct uvd_grant_job){
		.call = &l->call,
		.account = uvd_account_ref(tree->account),
		.reply = loan_reply,
		.pass = loan_pass,
		.ended = loan_ended,
		.done = loan_done,
		.turn = &l->turn,
		.filters = tree->filters,
	};
	l->tree = tree;
	l->file = f;
	l->id = tree->notif->n.id;
	l->lent = lent;
	l->call.caller.mem = &loan_mem;
	l->call.caller.proc = &uvd_proc_local;
	l->call.caller.waits = loan_waits;
	atomic_fetch_add(&f->refs, 1);
	atomic_fetch_add(&tree->lending, 1);
	/* Before the start: after it the job belongs to the loan. */
	tree->call = fresh;
	if (uvd_grants_start(tree->engine->grants, &l->job))
		fresh->work = (struct uvd_work){ .run = loan_wait_for_turn, .arg = l };
	return UVD_RUN_ANSWERED;
}
