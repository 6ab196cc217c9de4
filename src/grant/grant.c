/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "account/account.h"
#include "broker/broker.h"
#include "client/client.h"
#include "grant/grant.h"
#include "grant/left.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include <uverbsd/registration.h>
#include "util/util.h"

enum {
	TICK_MS = 20,
	/*
	 * A client waits a second at most. The limit is not shorter because a grant can take most of it on a busy
	 * machine, and a program that gets EINTR from GET_CONTEXT gives up. Few grants get stuck at all: see
	 * has_waited().
	 */
	LATE_TICKS = 50,
	/*
	 * A loan takes milliseconds. After 10 s the watchdog kills the client's process: its thread may run anywhere
	 * with our registers, so it cannot be released.
	 */
	LOAN_TICKS = 500,
	/*
	 * A registration can pin and clear many pages: it gets a tick more for each MiB, five minutes at most.
	 */
	MAX_LOAN_TICKS = 15000,
	WAIT_NS = 5000000,
	MAX_LOANS = UVD_WHOLE_LOANS, /* of all users together: each is a thread */
	STACK = 256 << 10,
	LEFT_TICKS = 10, /* how often the watchdog looks at what loans have left */
};

struct uvd_grants {
	struct uvd_log *log;
	struct uvd_privilege *privilege;
	bool enabled;
	pthread_t watchdog;
	pthread_mutex_t lock; /* protects what follows, and the jobs on the list */
	pthread_cond_t changed;
	bool draining, watching, stop;
	struct list_head turns; /* grants that wait, the first one first */
	struct list_head jobs; /* for the watchdog; each until the client's thread is released */
	struct list_head left; /* uvd_grant_left, for the watchdog */
	unsigned int under_way; /* jobs whose clients wait */
	unsigned int num_jobs; /* jobs that are not done; if the client was killed, until it is dead */
	atomic_ulong granted, fell_back, gone, late, killed;
};

/* ---- one grant --------------------------------------------------------------------------------------------------- */

static int no_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	return -EFAULT;
}

static int no_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return -EFAULT;
}

static int no_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	return -EFAULT;
}

/* Access to the memory of a client that no longer waits: -EFAULT. */
static const struct uvd_mem_ops grant_no_memory = { .read = no_read, .write = no_write, .writev = no_writev };

void uvd_grant_give_up(struct uvd_call *call)
{
	call->caller.mem = &grant_no_memory;
	uvd_call_granted(call, -ESRCH);
}

/* Call it before the client runs on: a program that then hears from the client and asks us must find the grant over. */
static void end_job(struct uvd_grant_job *job)
{
	struct uvd_grants *g = job->grants;

	pthread_mutex_lock(&g->lock);
	g->under_way--;
	pthread_mutex_unlock(&g->lock);
	job->ended(job);
}

/* Returns what uvd_call_granted() returns. */
static long end_call(struct uvd_grant_job *job, int64_t fd)
{
	long result = uvd_call_granted(job->call, fd);

	end_job(job);
	return result;
}

static void give_up(struct uvd_grant_job *job)
{
	uvd_grant_give_up(job->call);
	end_job(job);
}

/* Stops the thread. Makes the socket pair of `file`, if the call has one, and passes the client's end. Returns as pass() of the privileged operations does. */
static long loan_take(struct uvd_privilege *p, struct uvd_loan *l, struct uvd_event_file *file)
{
	int err = p->ops->stop(p, l), end;

	if (err)
		return l->way = err == -EMFILE ? -EPERM : err; /* our own EMFILE must not reach the client */
	end = file ? uvd_event_file_open(file) : -1;
	l->way = p->ops->pass(p, l, end);
	if (end >= 0)
		close(end);
	return l->way;
}

static void borrow_client(struct uvd_grants *g, struct uvd_loan *l, struct uvd_grant_job *job)
{
	struct uvd_privilege *p = g->privilege;
	struct uvd_call *call = job->call;
	struct uvd_registration *registration = call->grant.registration;
	const bool replaces = call->grant.replaces;
	const long interrupted = -EINTR;
	long answered = call->result, result;
	atomic_ulong *counter;
	int64_t fd = registration ? p->ops->register_memory(p, l, registration) : loan_take(p, l, call->grant.file);

	/* A thread that is killed in a call has the result that was there at its entry. */
	if (registration && fd < 0 && !registration->executed && p->ops->dying(p, l->b.tid))
		fd = -ESRCH;
	if (call->grant.replaces && !l->b.dead && fd != -ESRCH)
		call->not_replaced = job->replace(job, p, l);
	/* From here on only descriptors reach the client's memory: its thread id may become another thread's. */
	call->caller.mem = l->b.mapsfd < 0 ? &grant_no_memory : &uvd_mem_procfd;
	call->caller.memfd = l->b.memfd;
	call->caller.mapsfd = l->b.mapsfd;
	if (l->b.dead || (fd == -ESRCH && !(registration && registration->executed))) {
		give_up(job);
		(*(l->killed ? &g->killed : &g->gone))++;
		/* After give_up(): the release reaps the client, and its parent may then look for what is left. */
		p->ops->release(p, l, l->lost, l->lost ? &interrupted : NULL);
		return;
	}
	result = end_call(job, fd);
	counter = registration ? NULL : (fd >= 0 || replaces) && result >= 0 ? &g->granted : &g->fell_back;
	if (counter)
		(*counter)++;
	if (p->ops->release(p, l, result < 0 && fd >= 0 && !registration, result == answered ? NULL : &result)) {
		if (counter)
			(*counter)--;
		g->gone++;
	}
}

/*
 * The thread is seized and waits. Installs the adapter's device file in the client, where the transport can. Returns 0
 * or a negative errno. Looks for filters before: a thread that cannot be borrowed could not close the number. (Another
 * thread of the client can give it a filter after that. Then the client keeps a descriptor, as it may do anyway.)
 */
static int grant_pass(struct uvd_grant_job *job, struct uvd_loan *l)
{
	if (!job->pass)
		return 0;
	l->b.may_be_parent = true;
	l->b.filters = job->filters;
	if (uvd_borrow_is_filtered(&l->b))
		return -EPERM;
	l->number = job->pass(job, job->call->grant.registration->fd);
	return l->number < 0 ? (int)l->number : 0;
}

/* In this order: a thread that was killed stops waiting before it takes the signal that it dies of. */
bool uvd_grants_is_killed(struct uvd_grants *g, struct uvd_caller *c)
{
	return g->privilege->ops->dying(g->privilege, c->tid) || !uvd_caller_waits(c);
}

/* The loan is over. Its account stays charged until its sender is gone. */
static void grant_leave(struct uvd_grants *g, struct uvd_grant_left *left, struct uvd_account *account,
			struct uvd_loan_place place)
{
	if (uvd_left_begin(left, account, place, g->privilege))
		return;
	pthread_mutex_lock(&g->lock);
	list_add(&left->of_grants, &g->left);
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void *grant_thread(void *arg)
{
	struct uvd_grant_job *job = arg;
	struct uvd_grants *g = job->grants;
	struct uvd_privilege *p = g->privilege;
	struct uvd_loan l = { .place = &job->place, .number = -1, .way = -EPERM };
	int nice = uvd_account_nice(job->account, 0);
	bool late;
	int err;

	if (nice)
		uvd_thread_set_nice(nice);
	err = p->ops->seize(p, &l, job->call->caller.tid, nice);
	if (err)
		err = -EPERM;
	pthread_mutex_lock(&g->lock);
	late = job->answered;
	job->answered = true;
	if (!late && !err)
		job->loan = &l;
	while (late && !job->over)
		pthread_cond_wait(&g->changed, &g->lock);
	pthread_mutex_unlock(&g->lock);

	if (!late && !err)
		err = grant_pass(job, &l);
	/* A thread that has been killed is not one that cannot be borrowed: no line says so, and no data is copied. */
	if (!late && err && uvd_grants_is_killed(g, &job->call->caller))
		err = -ESRCH;
	if (late) {
		/* The watchdog has answered and ended the call: see end_instead(). */
	} else if (err) {
		if (!job->call->grant.registration)
			g->fell_back++;
		job->reply(job, end_call(job, err));
	} else if (job->reply(job, job->call->result)) {
		/* The kernel did not take the reply: the connection was aborted, and the client has run on before. */
		g->gone++;
		give_up(job);
	} else {
		borrow_client(g, &l, job);
	}
	/* The lock keeps the loan open while the watchdog uses it to kill the client. */
	pthread_mutex_lock(&g->lock);
	job->loan = NULL;
	list_del_init(&job->of_grants);
	pthread_mutex_unlock(&g->lock);
	p->ops->close(p, &l);
	uvd_account_spend(job->account, uvd_thread_cpu_ns() + l.cpu_ns);
	grant_leave(g, job->left, job->account, job->place);
	job->done(job);
	/* Only now: after a drain, the caller may free what the job used. */
	pthread_mutex_lock(&g->lock);
	g->num_jobs--;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
	/*
	 * If the client's thread is still seized (the seize was late, the descriptor not passed, or the reply not taken), it runs on when
	 * this thread ends.
	 */
	return NULL;
}

/*
 * PTRACE_SEIZE can block: an exec in another thread of the client holds the mutex that it needs (cred_guard_mutex),
 * and waits for the calling thread to die. That thread cannot die before its call is answered. So the watchdog answers
 * a dying thread at its next tick, and every other one after LATE_TICKS. Caller holds g->lock.
 */
static bool has_waited(const struct uvd_grant_job *job)
{
	struct uvd_privilege *p = job->grants->privilege;

	return !job->answered && (job->ticks > LATE_TICKS || p->ops->dying(p, job->call->caller.tid));
}

/* Caller holds g->lock. */
static struct uvd_grant_job *find_waiting(struct uvd_grants *g)
{
	struct uvd_grant_job *job;

	list_for_each_entry(job, &g->jobs, of_grants)
		if (has_waited(job))
			return job;
	return NULL;
}

static unsigned int loan_ticks(const struct uvd_registration *r)
{
	const uint64_t ticks = LOAN_TICKS + (r ? r->order.length >> 20 : 0);

	return ticks < MAX_LOAN_TICKS ? ticks : MAX_LOAN_TICKS;
}

/* Caller holds g->lock. A client can hold up a loan by its threads and memory: hence the limit. */
static void end_long_loans(struct uvd_grants *g)
{
	struct uvd_grant_job *job;

	list_for_each_entry(job, &g->jobs, of_grants)
		if (job->loan && job->ticks == job->max_ticks &&
		    g->privilege->ops->end_overdue(g->privilege, job->loan))
			g->killed++;
}

/* Answers and ends the call; the job's thread only calls done() then. Caller holds g->lock; it is dropped meanwhile. */
static void end_instead(struct uvd_grants *g, struct uvd_grant_job *job)
{
	job->answered = true;
	job->ticks > LATE_TICKS ? g->late++ : g->gone++;
	pthread_mutex_unlock(&g->lock);
	give_up(job);
	job->reply(job, -EINTR);
	pthread_mutex_lock(&g->lock);
	job->over = true;
	pthread_cond_broadcast(&g->changed);
}

static void *grant_watchdog(void *arg)
{
	struct uvd_grants *g = arg;
	struct uvd_grant_job *job;
	struct timespec tick = { .tv_nsec = TICK_MS * 1000000l };
	unsigned int ticks = 0;

	pthread_mutex_lock(&g->lock);
	while (!g->stop) {
		if (list_empty(&g->jobs) && list_empty(&g->left)) {
			pthread_cond_wait(&g->changed, &g->lock);
			continue;
		}
		pthread_mutex_unlock(&g->lock);
		nanosleep(&tick, NULL);
		pthread_mutex_lock(&g->lock);
		list_for_each_entry(job, &g->jobs, of_grants)
			job->ticks++;
		while ((job = find_waiting(g)))
			end_instead(g, job);
		end_long_loans(g);
		if (!(++ticks % LEFT_TICKS) && uvd_left_look(&g->left, g->privilege))
			pthread_cond_broadcast(&g->changed);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* ---- all grants -------------------------------------------------------------------------------------------------- */

struct uvd_grants *uvd_grants_new(bool enabled, struct uvd_privilege *privilege, struct uvd_log *log)
{
	struct uvd_grants *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->log = log;
	g->privilege = privilege;
	g->enabled = enabled;
	INIT_LIST_HEAD(&g->jobs);
	INIT_LIST_HEAD(&g->turns);
	INIT_LIST_HEAD(&g->left);
	pthread_mutex_init(&g->lock, NULL);
	uvd_cond_init(&g->changed);
	return g;
}

void uvd_grants_free(struct uvd_grants *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
	if (g->watching)
		pthread_join(g->watchdog, NULL);
	uvd_left_drop(&g->left, g->privilege);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/*
 * Has another grant of the user waited for longer? Without this order a program that registers all the time would take each
 * loan that gets free. Caller holds g->lock.
 */
static bool turn_is_anothers(const struct uvd_grants *g, const struct uvd_grant_job *job)
{
	const struct uvd_grant_turn *t;

	list_for_each_entry(t, &g->turns, of_turns)
		if (uvd_account_is_same(t->account, job->account))
			return t != job->turn;
	return false;
}

/* Caller holds g->lock. */
static void turn_begin(struct uvd_grants *g, const struct uvd_grant_job *job)
{
	if (job->turn->account || !job->account)
		return;
	job->turn->account = uvd_account_ref(job->account);
	list_add_tail(&job->turn->of_turns, &g->turns);
}

/* Caller holds g->lock. */
static void turn_end(struct uvd_grant_turn *turn)
{
	if (!turn->account)
		return;
	list_del_init(&turn->of_turns);
	uvd_account_put(turn->account);
	turn->account = NULL;
}

void uvd_grants_turn_end(struct uvd_grants *g, struct uvd_grant_turn *turn)
{
	pthread_mutex_lock(&g->lock);
	turn_end(turn);
	/* The next one need not wait for its 5 ms. */
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

void uvd_grants_wait(struct uvd_grants *g)
{
	pthread_mutex_lock(&g->lock);
	uvd_cond_wait_until(&g->changed, &g->lock, uvd_now_ns() + WAIT_NS);
	pthread_mutex_unlock(&g->lock);
}

/*
 * Charges the job's account if it is the job's turn. Caller does not hold g->lock: a charge that is refused is logged.
 * Returns 0; -EAGAIN: not now; -EPERM: never.
 */
static int grant_charge(struct uvd_grants *g, struct uvd_grant_job *job)
{
	bool is_anothers;

	pthread_mutex_lock(&g->lock);
	is_anothers = turn_is_anothers(g, job);
	pthread_mutex_unlock(&g->lock);
	if (is_anothers)
		return -EAGAIN;
	if (!uvd_account_charge(job->account, UVD_RES_LOANS, 1))
		return 0;
	return uvd_account_may_hold(job->account, UVD_RES_LOANS, 1) ? -EAGAIN : -EPERM;
}

/* Takes what the job needs besides its thread: one whose transport passes the descriptor needs no sender. */
static int grant_take_place(struct uvd_grants *g, struct uvd_grant_job *job)
{
	struct uvd_owners owners;
	int err = 0;

	job->place = (struct uvd_loan_place){ -1, -1, 0 };
	job->left = malloc(sizeof(*job->left));
	if (!job->left)
		return -ENOMEM;
	if (!job->pass) {
		owners.num = uvd_account_uids(job->account, owners.uid, UVD_OWNERS_MAX);
		err = g->privilege->ops->place_take(g->privilege, &job->place, job->call->caller.tid, &owners);
	}
	if (err)
		free(job->left);
	return err;
}

/* The job's thread has not started. */
static void grant_put_place(struct uvd_grants *g, struct uvd_grant_job *job)
{
	g->privilege->ops->place_drop(g->privilege, &job->place);
	g->privilege->ops->place_put(g->privilege, &job->place);
	free(job->left);
}

/* Caller holds g->lock. */
static int grant_start_thread(struct uvd_grants *g, struct uvd_grant_job *job)
{
	int err;

	if (g->draining)
		return -EPERM;
	if (g->num_jobs >= MAX_LOANS)
		return -EAGAIN;
	if (!g->watching && uvd_thread_start(&g->watchdog, STACK, grant_watchdog, g))
		return -EAGAIN;
	g->watching = true;
	turn_end(job->turn);
	job->grants = g;
	job->answered = job->over = false;
	job->ticks = 0;
	/* Now: once the call has ended, the client can deregister the region, and then the registration is gone. */
	job->max_ticks = loan_ticks(job->call->grant.registration);
	job->loan = NULL;
	list_add(&job->of_grants, &g->jobs);
	g->under_way++;
	g->num_jobs++;
	/* Under the lock: the watchdog must not see the job, nor the job end, before the thread is known to exist. */
	err = uvd_thread_start(NULL, STACK, grant_thread, job);
	if (!err) {
		pthread_cond_broadcast(&g->changed);
		return 0;
	}
	list_del_init(&job->of_grants);
	g->under_way--;
	g->num_jobs--;
	return -EAGAIN;
}

/* Takes all that the job needs, and starts its thread. */
static int grant_begin(struct uvd_grants *g, struct uvd_grant_job *job)
{
	int err = grant_charge(g, job);

	if (err)
		return err;
	err = grant_take_place(g, job);
	if (err)
		goto uncharge;
	pthread_mutex_lock(&g->lock);
	err = grant_start_thread(g, job);
	pthread_mutex_unlock(&g->lock);
	if (!err)
		return 0;
	grant_put_place(g, job);
uncharge:
	uvd_account_uncharge(job->account, UVD_RES_LOANS, 1);
	return err;
}

int uvd_grants_start(struct uvd_grants *g, struct uvd_grant_job *job)
{
	int err = g->enabled && job->call->caller.tid > 0 ? grant_begin(g, job) : -EPERM;

	if (err == -EAGAIN) {
		pthread_mutex_lock(&g->lock);
		turn_begin(g, job);
		pthread_mutex_unlock(&g->lock);
	}
	return err;
}

bool uvd_grants_can_wait(struct uvd_grants *g)
{
	bool can;

	pthread_mutex_lock(&g->lock);
	can = g->enabled && !g->draining;
	pthread_mutex_unlock(&g->lock);
	return can;
}

bool uvd_grants_drain(struct uvd_grants *g, unsigned int milliseconds)
{
	const uint64_t end = uvd_now_ns() + milliseconds * UINT64_C(1000000);
	bool none;

	pthread_mutex_lock(&g->lock);
	g->draining = true;
	g->privilege->ops->end_loans(g->privilege);
	while (g->num_jobs && uvd_cond_wait_until(&g->changed, &g->lock, end))
		;
	none = !g->num_jobs;
	pthread_mutex_unlock(&g->lock);
	return none;
}

void uvd_grants_count(struct uvd_grants *g, struct uvd_grant_counters *counters)
{
	pthread_mutex_lock(&g->lock);
	*counters = (struct uvd_grant_counters){
		.granted = g->granted,
		.fell_back = g->fell_back,
		.gone = g->gone,
		.late = g->late,
		.killed = g->killed,
		.under_way = g->under_way,
	};
	pthread_mutex_unlock(&g->lock);
}
