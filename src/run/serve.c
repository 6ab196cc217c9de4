/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One thread for each listener receives the calls and answers them. It also controls on which core the kernel wakes the
 * other side.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/internal.h"
#include "run/link.h"
#include "run/park.h"

/*
 * With SYNC_WAKE_UP the kernel wakes the other side on the core of the thread that wakes it. A caller that goes to
 * sleep brings us to its core, which is good. But an answer brings the caller to our core, and two callers that poll
 * would then share that core, one time slice each. So the flag is on while we wait for a call. During an answer it is
 * on only if the same thread made the call before: then no other caller competes for the core.
 */
static void sync_wake(struct uvd_run_tree *tree, bool on)
{
	unsigned long flags = on ? SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0;

	if (on == tree->sync || !tree->can_sync)
		return;
	tree->can_sync = !ioctl(tree->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
	tree->sync = on;
}

/* Its caller is not the one of the current call, so it must not come to our core. */
void uvd_run_answer_late(struct uvd_run_tree *tree, uint64_t id, long result)
{
	sync_wake(tree, false);
	uvd_run_reply(tree->listener, id, result);
	tree->last = 0; /* it competes for the core with whoever calls next */
}

static long run_server_answer_call(struct uvd_run_tree *tree)
{
	struct uvd_run_args args;

	if (!tree->tid)
		return UVD_RUN_CONTINUE;
	uvd_run_decode(&tree->notif->n.data, &args);
	switch (args.op) {
	case UVD_RUN_SETID:
		uvd_run_caller_setid(tree);
		return UVD_RUN_CONTINUE;
	case UVD_RUN_NETLINK:
		uvd_run_direct_asked(tree);
		return -EPROTONOSUPPORT;
	case UVD_RUN_LIMIT:
		return uvd_run_direct_limit(tree, &args);
	case UVD_RUN_EXEC:
		uvd_run_direct_exec(tree);
		uvd_run_caller_exec(tree);
		return UVD_RUN_CONTINUE;
	case UVD_RUN_CLOSE:
		uvd_run_caller_closes(tree, args.fd);
		return UVD_RUN_CONTINUE;
	case UVD_RUN_EXIT:
		uvd_run_report_exit(tree, args.fd);
		return UVD_RUN_CONTINUE;
	case UVD_RUN_RING:
		tree->many_ways = true;
		return UVD_RUN_CONTINUE;
	case UVD_RUN_WRITE:
	case UVD_RUN_WRITEV:
	case UVD_RUN_READ:
	case UVD_RUN_IOCTL:
	case UVD_RUN_DUP:
	case UVD_RUN_FSTAT:
		return uvd_run_node_call(tree, &args);
	default:
		if (uvd_run_caller(tree) && uvd_run_is_fstat(&tree->call->caller, &args))
			return uvd_run_node_call(tree, &args);
		return uvd_run_answer_path(tree, &args);
	}
}

/*
 * A thread that serves a tree. If the work of a call holds it up another thread replaces it, and from then on it must
 * not touch the tree.
 */
struct server {
	struct uvd_worker worker;
	struct uvd_run_tree *tree;
	bool is_replaced;
	bool is_same_caller; /* the same thread made the call before */
	/* The answer to the current call, not sent yet: run_server_replace() sends it if the thread is held up. */
	bool owes_answer;
	int listener;
	uint64_t id;
	long result;
};

static void run_server_reply(struct server *server)
{
	if (server->owes_answer)
		uvd_run_reply(server->listener, server->id, server->result);
	server->owes_answer = false;
}

static void give_answer(struct server *server)
{
	if (server->owes_answer)
		sync_wake(server->tree, server->is_same_caller && !server->tree->busy_poll_ns);
	run_server_reply(server);
}

/* struct uvd_worker.answer */
static void answer_now(struct uvd_worker *worker)
{
	give_answer((struct server *)worker);
}

/*
 * Does the work, then answers the call, unless the work asks for the answer earlier: a caller that runs would take the
 * core from this thread.
 */
static void do_work(struct server *server, struct uvd_work work)
{
	struct uvd_run_tree *tree = server->tree;
	struct uvd_run_file *file;

	/* If ours is the last reference put it after the work: the put closes the file, which waits for the work. */
	file = uvd_run_file_put_unless_last(tree->file) ? NULL : tree->file;
	work.run(work.arg, &server->worker);
	give_answer(server);
	if (file)
		uvd_run_file_put(file);
}

/* Receives a call. Returns 0 or a negative errno. */
static int run_server_recv(struct uvd_run_tree *tree)
{
	int err = uvd_run_recv(tree->listener, tree->notif);

	tree->tid = tree->notif->n.pid;
	return err;
}

/*
 * The same, if the numbers of the tree are the guardian's: waits for a call, and has the guardian receive it. If that has died the
 * calls are received here, as the processes would wait for ever, but the kernel tells no number that means something here.
 */
static int run_server_recv_by_agent(struct uvd_run_tree *tree)
{
	enum { ENDED_US = 1000 };
	struct pollfd call = { .fd = tree->listener, .events = POLLIN };
	int err;

	if (poll(&call, 1, -1) < 0)
		return -errno;
	if (!(call.revents & POLLIN)) {
		usleep(ENDED_US); /* the tree has ended, and the main thread stops this one as soon as it sees that */
		return -ENOENT;
	}
	err = uvd_run_agent_recv(tree->agent);
	if (err == -EPIPE) {
		err = uvd_run_recv(tree->listener, tree->notif);
		tree->tid = 0;
		return err;
	}
	tree->tid = (unsigned int)tree->notif->n.pid % UVD_PROC_NUMBERS + tree->proc.base;
	return err;
}

static void serve_one(struct server *server)
{
	struct uvd_run_tree *tree = server->tree;
	pid_t tid;

	if (tree->proc.base ? run_server_recv_by_agent(tree) : run_server_recv(tree))
		return; /* a signal that tells us to stop, or the caller was killed before */
	uvd_run_caller_waits(tree);
	tid = tree->tid;
	server->result = run_server_answer_call(tree);
	server->listener = tree->listener;
	server->id = tree->notif->n.id;
	server->owes_answer = server->result != UVD_RUN_ANSWERED;
	server->is_same_caller = tid == tree->last;
	tree->last = tid;

	const struct uvd_work work = uvd_call_take_work(tree->call);

	if (work.run)
		do_work(server, work);
	else
		give_answer(server);
}

/*
 * The C library registers memory of each thread, to which the kernel writes after every context switch, for restartable
 * sequences. We have none of these, but two switches for each call. If the kernel refuses, that does no harm.
 */
static void forgo_rseq(void)
{
	enum { SIZE = 32 };

	syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, SIZE, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}

/* The launcher has blocked the signals that it forwards, SIGUSR1 among them, and this process has inherited that. */
static void accept_wake_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Polls for a call, or an event for a parked one, for busy_poll_ns. Returns false if none has come: the thread may sleep. */
static bool call_comes_soon(struct uvd_run_tree *tree)
{
	struct pollfd call[] = {
		{ .fd = tree->listener, .events = POLLIN },
		{ .fd = tree->parking.event, .events = POLLIN },
	};
	const uint64_t end = tree->busy_poll_ns ? uvd_now_ns() + tree->busy_poll_ns : 0;
	bool is_there = false;

	while (!is_there && end && uvd_now_ns() < end && !atomic_load(&tree->stop))
		is_there = poll(call, tree->parking.num ? 2 : 1, 0);
	return is_there;
}

static void *run_server_thread(void *arg)
{
	struct server *server = arg;
	struct uvd_run_tree *tree = server->tree;

	/* This thread's own stack may have overflowed when a handler of a crash needs one. */
	uvd_crash_stack_set(__builtin_alloca(uvd_crash_stack_size() + 1));
	accept_wake_signal();
	forgo_rseq();
	while (!server->is_replaced && !atomic_load(&tree->stop)) {
		/* If a call comes while we poll the flag stays off, and the client stays on a core of its own. */
		if (!call_comes_soon(tree))
			sync_wake(tree, true);
		if (!tree->parking.num || uvd_run_parking_serve(tree))
			serve_one(server);
	}
	if (!server->is_replaced) {
		uvd_run_parking_end(tree);
		/* A close of what an agent has sent may wait. */
		uvd_run_callers_fini(tree);
		atomic_store(&tree->stopped, true);
	}
	free(server);
	return NULL;
}

static void run_server_replace(struct uvd_worker *worker);

static int server_start(struct uvd_run_tree *tree)
{
	struct server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->worker.answer = answer_now;
	server->worker.held_up = run_server_replace;
	server->tree = tree;
	err = -pthread_create(&tree->thread, NULL, run_server_thread, server);
	if (err)
		free(server);
	return err;
}

/*
 * struct uvd_worker.held_up: the thread waits in a client's memory. Starts a new thread for the tree, and sends the
 * answer that the old one owes. The new thread takes the tree over as it is, because the old one does not touch it
 * after its work. If no thread can be started, the old one goes on serving the tree.
 */
static void run_server_replace(struct uvd_worker *worker)
{
	struct server *server = (struct server *)worker;
	struct uvd_run_tree *tree = server->tree;
	pthread_t old;

	uvd_lock(&tree->serving);
	old = tree->thread;
	server->is_replaced = true;
	if (server_start(tree)) {
		server->is_replaced = false;
	} else {
		pthread_detach(old);
		run_server_reply(server);
	}
	uvd_unlock(&tree->serving);
}

static void run_server_on_signal(int signal)
{
}

int uvd_run_serve(struct uvd_run_tree *tree)
{
	struct sigaction sa = { .sa_handler = run_server_on_signal }; /* not SA_RESTART */

	sigaction(SIGUSR1, &sa, NULL);
	(void)uvd_guard_start();
	tree->can_sync = true;
	uvd_run_callers_init(tree);
	tree->call = uvd_run_call_new(tree);
	return tree->call ? server_start(tree) : -ENOMEM;
}

void uvd_run_serve_stop(struct uvd_run_tree *tree)
{
	atomic_store(&tree->stop, true);
	if (tree->agent >= 0)
		shutdown(tree->agent, SHUT_RDWR); /* its thread may wait for the agent's answer */
}

/*
 * Before Linux 6.11 only a signal wakes a receiver whose last caller has ended. It is sent repeatedly, as it may arrive
 * just before the receiver sleeps.
 */
bool uvd_run_serve_ended(struct uvd_run_tree *tree)
{
	if (!atomic_load(&tree->stopped)) {
		uvd_lock(&tree->serving);
		pthread_kill(tree->thread, SIGUSR1);
		uvd_unlock(&tree->serving);
		return false;
	}
	/* All processes of the tree have ended, so no loan waits for its seizure or its turn. */
	return !atomic_load(&tree->lending);
}
