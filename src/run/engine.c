/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine process: process trees as they come and go. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/broker.h"
#include "run/host.h"
#include "util/util.h"

enum {
	LATE_MS = 3000, /* that a tree's thread has to end after the tree's processes */
	SILENT_MS = 60000, /* that a run has to send its listener after it has connected */
	CROWDED_MS = 1000, /* the same while there is no room for another run */
};

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static struct uvd_run_tree *tree_new(struct uvd_run_engine *e, int link)
{
	struct uvd_run_msg ready = { .kind = UVD_RUN_READY,
				     .pid_ns = uvd_run_pid_ns(),
				     .net_ns = uvd_run_net_ns(),
				     .wire = e->fleet.wire.options,
				     .outside = uvd_run_is_outside(link) };
	struct uvd_run_tree *tree = calloc(1, sizeof(*tree));
	const uid_t uid = geteuid(); /* a run that joins has the same user */

	if (tree)
		tree->account = uvd_account_get(e->core.accounts, &uid, 1);
	if (!tree || !tree->account) {
		free(tree);
		close(link);
		return NULL;
	}
	pthread_mutex_init(&tree->serving, NULL);
	uvd_run_lent_init(&tree->lent);
	uvd_run_parking_init(tree);
	tree->engine = e;
	tree->listener = tree->agent = -1;
	tree->link = link;
	tree->since = uvd_now_ns();
	tree->next = e->trees;
	e->trees = tree;
	strcpy(ready.root, e->root);
	uvd_run_send(link, &ready, NULL, 0);
	return tree;
}

static void tree_unlink(struct uvd_run_host *h, struct uvd_run_tree *tree)
{
	struct uvd_run_tree **p = &h->e.trees;

	while (*p != tree)
		p = &(*p)->next;
	*p = tree->next;
	if (h->own == tree)
		h->own = NULL;
}

static void tree_release(struct uvd_run_tree *tree)
{
	if (tree->notif)
		munmap(tree->notif, sizeof(*tree->notif));
	if (tree->listener >= 0)
		close(tree->listener);
	if (tree->agent >= 0)
		close(tree->agent);
	if (tree->link >= 0)
		close(tree->link);
	if (tree->call)
		uvd_run_call_free(tree->call);
	uvd_doorbells_stop(tree->direct.doorbells);
	uvd_account_put(tree->account);
	uvd_run_parking_fini(tree);
	uvd_run_lent_fini(&tree->lent);
	pthread_mutex_destroy(&tree->serving);
	free(tree);
}

static void tree_free(struct uvd_run_host *h, struct uvd_run_tree *tree)
{
	tree_unlink(h, tree);
	tree_release(tree);
}

static void run_tree_start(struct uvd_run_tree *tree, const struct uvd_run_msg *msg, int *fds)
{
	void *notif = mmap(NULL, sizeof(*tree->notif), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);

	close(fds[1]);
	tree->agent = fds[2];
	memcpy(tree->windows, msg->windows, sizeof(tree->windows));
	tree->mounted = msg->mounted;
	tree->slash = tree->mounted ? msg->slash : tree->engine->slash;
	tree->proc.base = msg->receives ? uvd_run_base_new(tree->engine) : 0;
	tree->chooses_ids = msg->chooses_ids;
	tree->filters = msg->filters;
	tree->busy_poll_ns = msg->busy_poll * UINT64_C(1000);
	uvd_run_ucaps_grant(tree, &msg->granted);
	if (notif != MAP_FAILED && (tree->proc.base || !msg->receives)) {
		tree->notif = notif;
		tree->listener = fds[0];
		if (!uvd_run_serve(tree))
			return;
		tree->listener = -1;
	}
	/* The guardian sees that the link is closed, and answers in our place. */
	close(fds[0]);
	close(tree->link);
	tree->link = -1;
}

static void link_event(struct uvd_run_tree *tree)
{
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS], err;

	err = uvd_run_receive(tree->link, &msg, fds);
	if (!err && tree->listener < 0 && uvd_run_listener_ok(&msg, fds)) {
		run_tree_start(tree, &msg, fds);
		return;
	}
	if (!err)
		uvd_run_drop_fds(fds);
	/* -EPIPE: the guardian has died, and the tree is served without it. Otherwise it is none of ours. */
	if (err != -EPIPE)
		uvd_logf(tree->engine->log, UVD_WARN, "--join: a process sent a message that no run sends");
	close(tree->link);
	tree->link = -1;
}

static void tree_say_bye(struct uvd_run_host *h, struct uvd_run_tree *tree)
{
	struct uvd_run_msg bye = { .kind = UVD_RUN_BYE, .stays = h->e.trees != tree || tree->next };

	if (tree->link >= 0 && (tree != h->own || h->l->join_sock >= 0))
		uvd_run_send(tree->link, &bye, NULL, 0);
	if (tree == h->own && h->l->join_sock < 0)
		h->l->link = dup(tree->link); /* uvd_run_engine_main() says bye after the cleanup */
}

/*
 * Looks at a tree whose processes have ended. The main thread waits for none: a call's memory, a file that an agent has
 * sent, or a loan may keep the tree's thread for as long as somebody else likes. Such a tree is put aside.
 * closing: the ms until files that were closed are looked at again; -1: there are none. A file of another tree that was
 * opened again through /proc, and closed, also looks as if it were being closed, so these are not waited for for long.
 */
static void tree_look_at_end(struct uvd_run_host *h, struct uvd_run_tree *tree, int closing)
{
	enum { CLOSING_MS = 100 };
	const bool late = uvd_now_ns() - tree->ended > LATE_MS * UINT64_C(1000000);

	if (uvd_run_serve_ended(tree)) {
		if (closing >= 0 && closing <= CLOSING_MS && !late)
			return;
		pthread_join(tree->thread, NULL);
		tree_say_bye(h, tree);
		tree_free(h, tree);
	} else if (late) {
		uvd_logf(h->e.log, UVD_WARN,
			 "a thread waits in the memory of a process that has ended: it is left behind");
		tree_say_bye(h, tree);
		if (tree->link >= 0)
			close(tree->link);
		tree->link = -1;
		tree_unlink(h, tree);
		tree->next = h->left;
		h->left = tree;
	}
}

static void host_release_left(struct uvd_run_host *h)
{
	struct uvd_run_tree **p = &h->left, *tree;

	while ((tree = *p)) {
		if (!uvd_run_serve_ended(tree)) {
			p = &tree->next;
			continue;
		}
		*p = tree->next;
		pthread_join(tree->thread, NULL);
		tree_release(tree);
	}
}

/* ---- PROGRAM ----------------------------------------------------------------------------------------------------- */

/*
 * We adopt the tree's orphans, as only an ancestor may access their memory: reap them, too. To a wait for children a
 * thread of theirs that is stopped for a loan looks like a child that has changed its state. The stop must stay for the
 * loan's thread, so this function looks first, and looks again later if it finds one: children that have ended may be
 * behind it.
 */
static void host_reap(struct uvd_run_host *h)
{
	siginfo_t info;
	int status;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD) || !info.si_pid)
			break;
		if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) {
			h->reap_later = true;
			return;
		}
		if (waitpid(info.si_pid, &status, WNOHANG | __WNOTHREAD) == h->program) {
			h->program = 0;
			h->status = uvd_run_exit_status(status);
		}
	}
	h->reap_later = false;
}

static void host_sigchld(struct uvd_run_host *h, int sigchld)
{
	struct signalfd_siginfo info;

	if (read(sigchld, &info, sizeof(info)) == sizeof(info))
		host_reap(h);
}

static void host_report(struct uvd_run_host *h)
{
	/* The report decides about the status, and comes when all processes have ended. */
	if (h->program || h->reported || h->e.report)
		return;
	/* The last process has ended: report after the tree's end, without `stays`: the launcher waits for the cleanup. */
	if (h->own && h->own->listener >= 0 && uvd_run_hung_up(h->own->listener))
		return;
	h->reported = true;
	uvd_run_report(h->l->up, h->status, h->own);
}

/* ---- connections that say nothing --------------------------------------------------------------------------------- */

static bool tree_is_silent(const struct uvd_run_host *h, const struct uvd_run_tree *tree, uint64_t ms)
{
	return tree != h->own && tree->listener < 0 && tree->link >= 0 && uvd_now_ns() - tree->since > ms * 1000000;
}

/* Returns the oldest one, if it is that old, or NULL. New trees come first in the list. */
static struct uvd_run_tree *host_find_silent(const struct uvd_run_host *h, uint64_t ms)
{
	struct uvd_run_tree *found = NULL;

	for (struct uvd_run_tree *t = h->e.trees; t; t = t->next)
		if (tree_is_silent(h, t, ms))
			found = t;
	return found;
}

static unsigned int host_silent_ms(void)
{
	const char *text = getenv("UVERBSD_RUN_SILENT_MS"); /* for tests */

	return text ? strtoul(text, NULL, 10) : SILENT_MS;
}

/* A run has its filter within a moment, unless it is stopped. A connection without one must not keep the engine. */
static void host_drop_silent(struct uvd_run_host *h)
{
	struct uvd_run_tree *tree;

	while ((tree = host_find_silent(h, host_silent_ms())))
		tree_free(h, tree);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* full: there is no room for another tree, unless a silent one makes it. */
static void join_event(struct uvd_run_host *h, bool full)
{
	struct uvd_run_tree *silent = full ? host_find_silent(h, CROWDED_MS) : NULL;
	int link;

	if (full && !silent)
		return;
	if (silent)
		tree_free(h, silent);
	link = accept4(h->l->join_sock, NULL, NULL, SOCK_CLOEXEC);
	if (link >= 0)
		tree_new(&h->e, link);
}

static bool host_done(struct uvd_run_host *h)
{
	if (h->e.trees || h->program)
		return false;
	return h->l->join_sock < 0 || uvd_run_join_end(h->l);
}

static void launcher_gone(struct uvd_run_host *h)
{
	close(h->l->up);
	h->l->up = -1;
	uvd_run_drop_stderr();
}

/* closing: as for tree_look_at_end() */
static void trees_events(struct uvd_run_host *h, const struct pollfd *p, unsigned int num, int closing)
{
	struct uvd_run_tree *tree = h->e.trees, *next;

	for (unsigned int i = 0; i + 1 < num && tree; i += 2, tree = next) {
		next = tree->next;
		if (p[i].revents)
			link_event(tree);
		if (tree->ended) {
			tree_look_at_end(h, tree, closing);
		} else if (p[i + 1].revents & POLLHUP) {
			tree->ended = uvd_now_ns();
			uvd_run_serve_stop(tree);
		} else if (tree->link < 0 && tree->listener < 0) {
			tree_free(h, tree);
		}
	}
}

/* In how many ms to look again at trees that end, and at children; most: at the latest. */
static int host_patience(const struct uvd_run_host *h, int most)
{
	enum { END_LOOK_MS = 2, REAP_MS = 20 };

	for (const struct uvd_run_tree *t = h->e.trees; t; t = t->next)
		if (t->ended)
			return END_LOOK_MS;
	return h->reap_later && most > REAP_MS ? REAP_MS : most;
}

/* Brings the files of the counters up to date twice a second. Returns in how many ms to call it again. */
static int host_show_counters(struct uvd_run_host *h)
{
	const uint64_t ms = 1000000, now = uvd_now_ns();

	if (now >= h->show_at) {
		uvd_run_show_counters(&h->e);
		h->show_at = now + 500 * ms;
	}
	return (h->show_at - now) / ms + 1;
}

static void host_loop(struct uvd_run_host *h, int sigchld)
{
	enum { FIXED = 6, MAX = FIXED + 2 * 128 };
	struct pollfd p[MAX];
	eventfd_t looks;
	int wait = -1, show;
	bool full;

	while (!host_done(h)) {
		unsigned int n = FIXED;

		p[0] = (struct pollfd){ .fd = sigchld, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = h->e.files.inotify, .events = POLLIN };
		p[2] = (struct pollfd){ .fd = h->l->up };
		p[4] = (struct pollfd){ .fd = h->e.files.look, .events = POLLIN };
		p[5] = (struct pollfd){ .fd = h->e.cm_files.epoll, .events = POLLIN };
		for (struct uvd_run_tree *t = h->e.trees; t && n < MAX; t = t->next) {
			p[n++] = (struct pollfd){ .fd = t->link, .events = POLLIN };
			/* For POLLHUP: its thread receives calls. */
			p[n++] = (struct pollfd){ .fd = t->ended ? -1 : t->listener };
		}
		full = n == MAX;
		/* While there is no room for another tree, runs that join wait to be accepted. */
		p[3] = (struct pollfd){ .fd = full && !host_find_silent(h, CROWDED_MS) ? -1 : h->l->join_sock,
					.events = POLLIN };
		show = host_patience(h, host_show_counters(h));
		if (poll(p, n, wait < 0 || wait > show ? show : wait) < 0)
			continue;
		if (p[4].revents)
			eventfd_read(h->e.files.look, &looks);
		wait = uvd_run_files_closed(&h->e.files);
		if (p[5].revents)
			uvd_run_cm_files_closed(&h->e.cm_files);
		trees_events(h, p + FIXED, n - FIXED, wait);
		host_drop_silent(h);
		host_release_left(h);
		if (p[0].revents)
			host_sigchld(h, sigchld);
		else if (h->reap_later)
			host_reap(h);
		if (p[3].revents)
			join_event(h, full);
		if (p[2].revents)
			launcher_gone(h);
		host_report(h);
	}
}

void uvd_run_engine_main(struct uvd_run_launch *l)
{
	/* Not on the stack: it is large, and a run uses little of it. */
	struct uvd_run_host *h = calloc(1, sizeof(*h));
	const pid_t program = h ? fork() : -1;
	const int fork_err = errno;
	struct uvd_run_msg bye = { .kind = UVD_RUN_BYE };
	int sigchld, err;

	if (!program) {
		close(l->link);
		uvd_run_program_main(l);
	}
	close(l->program_end);
	sigchld = uvd_run_background((int[]){ l->link, l->up, l->join_sock, l->join_lock }, 4);
	if (program < 0 || sigchld < 0) {
		/* Without PROGRAM the guardian may not wait for this process, and not see its end. */
		fprintf(stderr, "uverbsctl run: cannot start: %s\n", uvd_errno_name(program < 0 ? fork_err : -sigchld));
		rmdir(l->root);
		_exit(UVD_RUN_FAILED);
	}
	h->l = l;
	h->program = program;
	err = uvd_run_host_setup(h);
	if (err)
		_exit(UVD_RUN_FAILED); /* the guardian stops PROGRAM and removes the folder */
	h->own = tree_new(&h->e, l->link);
	l->link = -1;
	host_loop(h, sigchld);
	uvd_run_host_teardown(h);
	if (l->link >= 0)
		uvd_run_send(l->link, &bye, NULL, 0);
	if (!h->reported)
		uvd_run_report(l->up, h->status, false);
	free(h);
	exit(0);
}
