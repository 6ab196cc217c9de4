/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's loop. It never waits for a client: children do whatever may have to wait. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/loop.h"
#include "broker/serve.h"
#include "util/util.h"

enum {
	NICE_0 = 20, /* RLIMIT_NICE's value for nice 0 */
	END_MS = 20000, /* for the engine process to end after SIGTERM */
	HANG_UP_MS = 5000, /* for it to end after it has closed its socket */
	CORPSE_MS = 1000, /* after SIGKILL, or its first thread's exit; a thread that waits for a client stays longer */
	TICK_MS = 200,
	STARTS_MS = 60000,
};

static uint64_t now_ms(void)
{
	return uvd_now_ns() / 1000000;
}

static void reap_children(struct broker *b)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == b->engine) {
			b->engine = 0;
			b->engine_status = status;
		}
		for (int i = 0; i < MAX_ABANDONED; i++)
			if (b->abandoned[i] == pid)
				b->abandoned[i] = 0;
		uvd_children_ended(&b->children, pid);
	}
}

/* Each abandoned engine process keeps its memory: clients must not make the broker leave one after the other. NULL: there are enough. */
static pid_t *broker_abandoned_place(struct broker *b)
{
	for (int i = 0; i < MAX_ABANDONED; i++)
		if (!b->abandoned[i])
			return &b->abandoned[i];
	return NULL;
}

/* At most MAX_STARTS in STARTS_MS: an engine process that dies again and again must not keep the machine busy. */
static bool broker_may_start(const struct broker *b)
{
	return b->num_starts < MAX_STARTS || now_ms() - b->starts[b->num_starts % MAX_STARTS] > STARTS_MS;
}

static void tell_to_end(struct broker *b)
{
	if (!b->end_by)
		b->end_by = now_ms() + (b->config->end_ms ? b->config->end_ms : END_MS);
	b->config->ops->leave(b->config->arg);
	if (b->engine)
		kill(b->engine, SIGTERM);
}

int uvd_broker_restart(struct broker *b)
{
	if (b->asked || !b->ready)
		return -EINVAL;
	if (!broker_may_start(b) || !broker_abandoned_place(b))
		return -EAGAIN;
	if (!b->restart)
		uvd_logf(b->config->log, UVD_INFO, "restart requested: the engine process ends");
	b->restart = true;
	tell_to_end(b);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void kill_engine(struct broker *b)
{
	if (b->engine && !b->killed)
		kill(b->engine, SIGKILL);
	if (!b->killed)
		b->end_by = now_ms() + CORPSE_MS;
	b->killed = b->dead = true;
}

/* The engine process closes its socket only by its exit, so after -EPIPE the exit status follows soon. */
static void end_soon(struct broker *b, int err)
{
	if (err != -EPIPE)
		kill_engine(b);
	else if (!b->end_by)
		b->end_by = now_ms() + HANG_UP_MS;
}

/*
 * The kernel reports the exit of a process after its last thread has exited. A thread that waits for a client's
 * memory delays that, and keeps the socket open. So look whether the first thread has exited.
 */
static void look_for_corpse(struct broker *b)
{
	if (!b->engine || b->dead || uvd_process_lives(b->engine, NULL))
		return;
	b->dead = true;
	b->end_by = now_ms() + CORPSE_MS;
}

static void ask_to_end(struct broker *b)
{
	if (b->asked)
		return;
	b->asked = true;
	tell_to_end(b);
}

void uvd_broker_pass_hup(struct broker *b)
{
	if (!b->hup || !b->ready || !b->engine || b->dead)
		return;
	b->hup = false;
	kill(b->engine, SIGHUP);
}

static void on_signals(struct broker *b)
{
	struct signalfd_siginfo info;

	while (read(b->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			ask_to_end(b);
		else if (info.ssi_signo == SIGHUP)
			b->hup = true;
	}
	uvd_broker_pass_hup(b);
	reap_children(b);
}

static void check_adapters(struct broker *b)
{
	if (!b->config->ops->check || !b->engine || now_ms() < b->check_at)
		return;
	b->config->ops->check(b->config->arg, b->engine);
	b->check_at = now_ms() + TICK_MS;
}

/* Serves until the engine process has ended, or was killed and cannot exit: in the second case b->engine is not 0. */
static void serve_engine(struct broker *b)
{
	struct pollfd p[] = { { .fd = b->signals, .events = POLLIN }, { .fd = b->sock, .events = POLLIN } };
	int err, n;

	while (b->engine) {
		n = poll(p, 2, TICK_MS);
		if (n < 0 && errno != EINTR)
			kill_engine(b);
		if (n > 0 && p[0].revents)
			on_signals(b);
		err = n > 0 && p[1].revents ? uvd_broker_answer(b) : 0;
		if (err) {
			p[1].fd = -1;
			end_soon(b, err);
		}
		if (!n)
			look_for_corpse(b);
		uvd_children_check(&b->children, b->config->log);
		check_adapters(b);
		if (b->end_by && now_ms() > b->end_by) {
			if (b->killed)
				break;
			kill_engine(b);
		}
	}
}

/* Is another engine process to follow? Not after one that exited by itself: the log has its reason. */
static bool broker_wants_another(const struct broker *b)
{
	return !b->asked && b->ready && (b->restart || b->engine || WIFSIGNALED(b->engine_status));
}

/* Did the engine process die from the signal that told it to end, before it had a handler? */
static bool ended_as_told(const struct broker *b)
{
	return b->asked && !b->engine && WIFSIGNALED(b->engine_status) &&
	       (WTERMSIG(b->engine_status) == SIGTERM || WTERMSIG(b->engine_status) == SIGINT);
}

static void tell_end(const struct broker *b, bool another)
{
	const char *then = another ? "; clients must open the device again" : "";

	if (b->engine)
		uvd_logf(b->config->log, UVD_WARN,
			 "the engine process is held up by a client's memory; not waiting for it%s", then);
	else if (WIFSIGNALED(b->engine_status) && !b->killed && !ended_as_told(b))
		uvd_logf(b->config->log, UVD_ERR, "the engine process was killed by signal %s%s",
			 sigabbrev_np(WTERMSIG(b->engine_status)) ?: "?", then);
	else if (another)
		uvd_logf(b->config->log, UVD_INFO, "the engine process has ended%s", then);
}

static int exit_status(const struct broker *b, bool another)
{
	if (another || b->engine)
		return 1;
	if (ended_as_told(b))
		return 0;
	return WIFEXITED(b->engine_status) ? WEXITSTATUS(b->engine_status) : 1;
}

/*
 * Call after the engine process has ended, or was killed and cannot exit. Returns true if another one is to be
 * started; else *status is the broker's exit status.
 */
static bool broker_renew(struct broker *b, int *status)
{
	const bool another = broker_wants_another(b);
	pid_t *place = broker_abandoned_place(b);

	close(b->sock);
	uvd_queue_files_end(&b->queues);
	uvd_children_hang_up(&b->children);
	tell_end(b, another);
	*status = exit_status(b, another);
	if (!another)
		return false;
	if (!broker_may_start(b)) {
		uvd_logf(b->config->log, UVD_ERR, "%u engine processes were started within %u s: giving up", MAX_STARTS,
			 STARTS_MS / 1000);
		return false;
	}
	if (b->engine && !place) {
		uvd_logf(b->config->log, UVD_ERR,
			 "clients' memory holds up %u engine processes that are dead: giving up", MAX_ABANDONED + 1);
		return false;
	}
	if (b->engine)
		*place = b->engine;
	return !b->config->ops->renew(b->config->arg, b->restart);
}

/* ---- the start ------------------------------------------------------------------------------------------------------ */

static int broker_block_signals(sigset_t *before)
{
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGHUP);
	sigaddset(&mine, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mine, before);
	return signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Call in a new engine process: closes what belongs to the broker. */
static void leave_broker(struct broker *b)
{
	close(b->sock);
	close(b->signals);
	uvd_children_close(&b->children);
	uvd_ways_fini(&b->ways);
	munmap((void *)b->view, sizeof(*b->view));
	sigprocmask(SIG_SETMASK, &b->before, NULL);
}

/*
 * Returns the engine process's end of the socket in the engine process, and -1 in the broker. In the broker b->engine
 * is negative if no engine process could be started.
 */
static int broker_start_engine(struct broker *b)
{
	int pair[2];

	b->engine = -1;
	b->ready = b->restart = b->dead = b->killed = false;
	b->end_by = 0;
	for (unsigned int i = 0; i < UVD_NODES_MAX; i++)
		b->nodes->rdev[i] = 0; /* a thread that waits on an old node is no client any more */
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		b->nodes->adapters[i] = 0;
	b->nodes->queues = 0;
	b->starts[b->num_starts++ % MAX_STARTS] = now_ms();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		goto failed;
	b->sock = pair[0];
	b->engine = fork();
	if (!b->engine) {
		leave_broker(b);
		return pair[1];
	}
	close(pair[1]);
	if (b->engine > 0)
		return -1;
	close(b->sock);
failed:
	uvd_logf(b->config->log, UVD_ERR, "cannot start an engine process: %s", uvd_errno_name(errno));
	return -1;
}

/* Call before the first engine process: the later ones are started with the same rights. Returns false if it fails. */
static bool prepare_broker(struct broker *b)
{
	b->signals = broker_block_signals(&b->before);
	if (b->signals < 0 || uvd_nodes_new(&b->nodes, &b->view))
		return false;
	b->nodes->root_clients = b->config->root_clients;
	uvd_children_init(&b->children);
	uvd_ways_init(&b->ways);
	uvd_queue_files_init(&b->queues);
	/* A loan's process that became the client's user makes its name there, too. */
	if (b->ways.dir >= 0)
		fchmod(b->ways.dir, 01777);
	/*
	 * Lets a thread of the engine process that has raised its nice value lower it to 0 again. If this fails (a
	 * service manager may have taken CAP_SYS_RESOURCE away), such a thread ends and another takes its place.
	 */
	(void)setrlimit(RLIMIT_NICE, &(struct rlimit){ NICE_0, NICE_0 });
	/*
	 * An adapter reaches buffers and queues of the engine process, which are pinned for all clients together. The clients'
	 * accounts limit them. If this fails, the limit that the process has been started with holds, too.
	 */
	(void)setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	return uvd_process_role_take(UVD_PROCESS_BROKER);
}

static int run_engines(struct broker *b, int (*engine)(void *arg, int sock), int *status)
{
	int sock;

	do {
		*status = 1;
		sock = broker_start_engine(b);
		if (sock >= 0) {
			*status = engine(b->config->arg, sock);
			return -1;
		}
		if (b->engine < 0)
			return 1;
		serve_engine(b);
	} while (broker_renew(b, status));
	return *status;
}

int uvd_broker_run(const struct uvd_broker_config *config, int (*engine)(void *arg, int sock), int *status)
{
	struct broker *b = calloc(1, sizeof(*b));
	int ret;

	*status = 1;
	if (!b)
		return 1;
	b->config = config;
	b->least_level = b->level = uvd_log_most(config->log);
	if (!prepare_broker(b))
		return 1;
	ret = run_engines(b, engine, status);
	if (ret >= 0) {
		uvd_children_close(&b->children); /* of those that have not exited yet */
		uvd_ways_fini(&b->ways);
		close(b->signals);
	}
	free(b);
	return ret;
}
