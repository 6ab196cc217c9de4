/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's loop. It waits for no client: what can have to wait is done in children. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/serve.h"
#include "broker/waiting.h"
#include "broker/way.h"
#include "util/util.h"

enum {
	MAX_CHILDREN = 256, /* sockets of the engine process; it has fewer threads that can wait */
	LOAN_MS = 10000, /* a loan takes milliseconds */
	END_MS = 20000, /* for the engine process to end when it was asked to */
	CORPSE_MS = 1000, /* after SIGKILL; a thread that a client holds up stays longer */
	TICK_MS = 200,
};

struct broker {
	const struct uvd_broker_config *config;
	int sock, signals;
	pid_t engine;
	int engine_status; /* of waitpid(); valid where engine is 0 */
	struct uvd_nodes *nodes;
	unsigned int next_node;
	struct uvd_ways ways;
	uint64_t end_by; /* ms; 0: the engine process shall go on */
	bool asked, killed;
	struct broker_child {
		pid_t pid; /* 0: free */
		uint64_t kill_at; /* ms; 0: never */
	} children[MAX_CHILDREN];
};

static uint64_t now_ms(void)
{
	return uvd_now_ns() / 1000000;
}

/* ---- children ------------------------------------------------------------------------------------------------------ */

/* A child keeps its socket, the folder of names, and stderr. */
static void keep_only(int *sock, int *dir)
{
	int high = fcntl(*sock, F_DUPFD_CLOEXEC, 10), high_dir = *dir < 0 ? -1 : fcntl(*dir, F_DUPFD_CLOEXEC, 10);

	if (high < 0 || dup3(high, 3, O_CLOEXEC) < 0 || (high_dir >= 0 && dup3(high_dir, 4, O_CLOEXEC) < 0))
		_exit(1);
	*sock = 3;
	*dir = high_dir < 0 ? -1 : 4;
	close_range(*dir < 0 ? 4 : 5, ~0u, 0);
}

static void child_main(struct broker *b, enum uvd_wire_kind kind, int sock)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* the terminal's is for the broker: this process ends with its socket */
	keep_only(&sock, &b->ways.dir);
	b->ways.next = getpid(); /* a name that no other loan has: each makes one */
	mprotect(b->nodes, sizeof(*b->nodes), PROT_READ);
	if (kind == UVD_WIRE_QUESTIONS) {
		if (!uvd_role_take(UVD_ROLE_QUESTIONS))
			_exit(1);
		uvd_questions_serve(sock, b->nodes);
	} else {
		uvd_loan_serve(sock, b->nodes, &b->ways);
	}
	_exit(0);
}

static int start_child(struct broker *b, enum uvd_wire_kind kind, int sock)
{
	struct broker_child *c = b->children;
	pid_t pid;

	if (kind == UVD_WIRE_CONTROL)
		return -EINVAL;
	while (c < b->children + MAX_CHILDREN && c->pid)
		c++;
	if (c == b->children + MAX_CHILDREN)
		return -EAGAIN;
	pid = fork();
	if (!pid)
		child_main(b, kind, sock);
	if (pid < 0)
		return -errno;
	*c = (struct broker_child){ pid, kind == UVD_WIRE_LOAN ? now_ms() + LOAN_MS : 0 };
	return 0;
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
		for (struct broker_child *c = b->children; c < b->children + MAX_CHILDREN; c++)
			if (c->pid == pid)
				c->pid = 0;
	}
}

/* With its tracer a thread dies that was stopped in its hands; one that was only to be borrowed goes on. */
static void end_long_loans(struct broker *b)
{
	for (struct broker_child *c = b->children; c < b->children + MAX_CHILDREN; c++) {
		if (!c->pid || !c->kill_at || c->kill_at > now_ms())
			continue;
		uvd_log_limited(b->config->log, UVD_WARN, "a loan for an event file does not end: its process is killed");
		kill(c->pid, SIGKILL);
		c->kill_at = 0;
	}
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

static void add_node(struct broker *b, dev_t rdev)
{
	b->nodes->rdev[b->next_node++ % UVD_NODES_MAX] = rdev;
}

static int carry_out(struct broker *b, const struct uvd_wire_request *r, const struct uvd_wire_fds *in, struct uvd_wire_answer *a,
		     int *fd)
{
	const struct uvd_broker_ops *ops = b->config->ops;
	void *arg = b->config->arg;
	int number = 0, err;
	dev_t rdev = 0;

	switch (r->op) {
	case UVD_WIRE_CONNECT:
		return start_child(b, r->index, in->fd[0]);
	case UVD_WIRE_NODE:
		err = ops->node(arg, r->index, &number, &rdev, fd);
		a->values[0] = number;
		a->values[1] = rdev;
		if (!err)
			add_node(b, rdev);
		return err;
	case UVD_WIRE_PUBLISH:
		return ops->publish(arg, r->index);
	case UVD_WIRE_WITHDRAW:
		return ops->withdraw(arg, r->index);
	case UVD_WIRE_PORT:
		return r->value > 0 && r->value < 256 ? ops->port(arg, r->index, r->value, r->flag) : -EINVAL;
	case UVD_WIRE_UCAP:
		err = ops->ucap(arg, r->name, &rdev, fd);
		a->values[0] = rdev;
		return err;
	case UVD_WIRE_UCAP_GONE:
		return ops->ucap_gone(arg, r->name);
	case UVD_WIRE_READY:
		return ops->ready(arg);
	}
	return -EINVAL;
}

/* 0; -EPIPE: the engine process is gone; another negative errno: it says what no engine process would say. */
static int answer_request(struct broker *b)
{
	struct uvd_wire_fds in, out = uvd_wire_no_fds;
	struct uvd_wire_request r;
	struct uvd_wire_answer a;
	int err = uvd_wire_asked(b->sock, UVD_WIRE_CONTROL, &r, &in);

	if (err && err != -EMFILE) {
		if (err != -EPIPE)
			uvd_logf(b->config->log, UVD_ERR, "the engine process sent a request that is none (%s): it is killed",
				 strerrorname_np(-err));
		return err;
	}
	a = (struct uvd_wire_answer){ .version = UVD_WIRE_VERSION, .op = r.op };
	a.result = err ? err : carry_out(b, &r, &in, &a, &out.fd[0]);
	if (a.result < 0)
		uvd_wire_close(&out);
	a.num_fds = out.fd[0] >= 0;
	err = uvd_wire_answer(b->sock, &a, &out);
	uvd_wire_close(&in);
	uvd_wire_close(&out);
	return err;
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void kill_engine(struct broker *b)
{
	if (b->engine && !b->killed)
		kill(b->engine, SIGKILL);
	if (!b->killed)
		b->end_by = now_ms() + CORPSE_MS;
	b->killed = true;
}

/* It closes its socket when it ends, and not before: then its exit status follows. */
static void end_soon(struct broker *b, int err)
{
	if (err != -EPIPE)
		kill_engine(b);
	else if (!b->end_by)
		b->end_by = now_ms() + CORPSE_MS;
}

static void ask_to_end(struct broker *b)
{
	if (b->asked)
		return;
	b->asked = true;
	b->end_by = now_ms() + END_MS;
	b->config->ops->leave(b->config->arg);
	if (b->engine)
		kill(b->engine, SIGTERM);
}

static void on_signals(struct broker *b)
{
	struct signalfd_siginfo info;

	while (read(b->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			ask_to_end(b);
	}
	reap_children(b);
}

static int exit_status(struct broker *b)
{
	if (b->engine)
		uvd_logf(b->config->log, UVD_WARN, "the engine process is held up by a client's memory; not waiting for it");
	else if (WIFSIGNALED(b->engine_status) && !b->killed)
		uvd_logf(b->config->log, UVD_ERR, "the engine process was killed by signal %s",
			 sigabbrev_np(WTERMSIG(b->engine_status)) ?: "?");
	return !b->engine && WIFEXITED(b->engine_status) ? WEXITSTATUS(b->engine_status) : 1;
}

static int serve(struct broker *b)
{
	struct pollfd p[] = { { .fd = b->signals, .events = POLLIN }, { .fd = b->sock, .events = POLLIN } };
	int err;

	while (b->engine) {
		if (poll(p, 2, TICK_MS) < 0 && errno != EINTR)
			kill_engine(b);
		if (p[0].revents)
			on_signals(b);
		err = p[1].revents ? answer_request(b) : 0;
		if (err) {
			p[1].fd = -1;
			p[1].revents = 0;
			end_soon(b, err);
		}
		end_long_loans(b);
		if (b->end_by && now_ms() > b->end_by) {
			if (b->killed)
				break;
			kill_engine(b);
		}
	}
	return exit_status(b);
}

/* ---- the start ------------------------------------------------------------------------------------------------------ */

static int block_signals(sigset_t *before)
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

int uvd_broker_run(const struct uvd_broker_config *config, int (*engine)(void *arg, int sock), int *status)
{
	struct broker *b = calloc(1, sizeof(*b));
	sigset_t before;
	int pair[2];

	*status = 1;
	if (!b || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(b);
		return 1;
	}
	b->config = config;
	b->nodes = mmap(NULL, sizeof(*b->nodes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	b->signals = block_signals(&before);
	if (b->nodes == MAP_FAILED || b->signals < 0)
		return 1;
	b->nodes->root_clients = config->root_clients;
	b->engine = fork();
	if (!b->engine) {
		close(pair[0]);
		close(b->signals);
		munmap(b->nodes, sizeof(*b->nodes));
		free(b);
		sigprocmask(SIG_SETMASK, &before, NULL);
		*status = engine(config->arg, pair[1]);
		return -1;
	}
	close(pair[1]);
	b->sock = pair[0];
	uvd_ways_init(&b->ways);
	/* A loan is made as the client's own user where that is enough. */
	if (b->ways.dir >= 0)
		fchmod(b->ways.dir, 01777);
	if (b->engine > 0 && !uvd_role_take(UVD_ROLE_BROKER))
		kill_engine(b);
	if (b->engine > 0)
		*status = serve(b);
	uvd_ways_fini(&b->ways);
	close(b->signals);
	close(b->sock);
	free(b);
	return *status;
}
