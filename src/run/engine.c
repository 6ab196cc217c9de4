/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine process: its devices, the sysfs directory, and process trees as they come and go. */
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

#include "backends/soft/fabric.h"
#include "broker/broker.h"
#include "capture/capture.h"
#include "cpu/cpu.h"
#include "objects/objects.h"
#include "options/options.h"
#include "run/launch.h"
#include "run/park.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

enum {
	LATE_MS = 3000, /* that a tree's thread has to end after the tree's processes */
	SILENT_MS = 60000, /* that a run has to send its listener after it has connected */
	CROWDED_MS = 1000, /* the same while there is no room for another run */
};

struct host {
	struct uvd_run_launch *l;
	struct uvd_run_engine e;
	struct uvd_run_control *control;
	struct uvd_run_outputs outputs;
	pid_t program; /* 0: it has ended */
	struct uvd_run_tree *own; /* PROGRAM's process tree; NULL: it has ended */
	int status; /* PROGRAM's exit status */
	bool reported; /* to the launcher */
	struct uvd_run_tree *left; /* trees that have ended, but whose threads wait for somebody else */
	bool reap_later; /* a child may have ended that host_reap() has not seen */
	uint64_t show_at; /* when to show the counters next; CLOCK_MONOTONIC, ns */
};

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void host_settle(struct uvd_engine *core)
{
	uvd_run_settle(container_of(core, struct uvd_run_engine, core));
}

static int host_publish_port(struct uvd_device *dev, unsigned int port, bool up)
{
	struct uvd_run_engine *e = container_of(dev->engine, struct uvd_run_engine, core);
	char sys[PATH_MAX + 8];

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	return uvd_sysfs_set_port(sys, &dev->config, port, up);
}

static int host_publish_tables(struct uvd_device *dev, unsigned int port)
{
	struct uvd_run_engine *e = container_of(dev->engine, struct uvd_run_engine, core);
	char sys[PATH_MAX + 8];
	int err;

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	err = uvd_sysfs_set_tables(sys, &dev->config, port);
	/* The device is not published yet: then it will be as it is now; or no more. */
	return err == -ENOENT ? 0 : err;
}

/* Half the CPUs, as clients poll on the other half. With two threads on two CPUs, ib_write_bw -q 4 lost a tenth. */
static unsigned int num_threads(void)
{
	enum { MOST = 8 };
	long half = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	return half < 1 ? 1 : half > MOST ? MOST : half;
}

/* Devices of other backends send nothing that can be captured. A device of `soft` can still be added later. */
static void host_check_capture(const struct host *h)
{
	const struct uvd_run_options *o = h->l->options;

	for (unsigned int i = 0; i < o->num_devices; i++)
		if (!strcmp(o->devices[i].backend, uvd_plugin_soft.name))
			return;
	if (o->pcap)
		uvd_logf(h->e.log, UVD_WARN, "--pcap %s: it stays empty: no device has --backend soft", o->pcap);
}

/* Sets the plug-in `soft` up, before it has devices. Returns 0 or a negative errno, after a message. */
static int host_setup_soft(struct host *h)
{
	struct uvd_module *soft;
	int err = uvd_run_capture(&h->outputs, &h->e, h->l->options->pcap);

	if (err)
		return err;
	host_check_capture(h);
	soft = uvd_plugins_get(h->e.core.plugins, uvd_plugin_soft.name);
	uvd_fabric_set_threads(soft->data, num_threads());
	/* If two runs that are not joined try to connect, each finds no such QP, instead of one of its own. */
	uvd_fabric_set_random_qpn(soft->data);
	uvd_fabric_set_capture(soft->data, h->outputs.capture);
	uvd_module_put(soft);
	return 0;
}

static int host_setup(struct host *h)
{
	const bool lends = !uvd_cpu_lacks(uvd_cpu, UVD_CPU_LOANS);
	struct uvd_run_engine *e = &h->e;
	char sys[PATH_MAX + 8];
	int err;

	e->log = uvd_log_new(STDERR_FILENO, "uverbsctl run", h->l->options->log_level);
	err = uvd_run_root_open(e, h->l->root);
	if (!e->log || err)
		return err ? err : -ENOMEM;
	uvd_crash_start("uverbsctl run", uvd_dispatch_site);
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_run_devices_init(e);
	e->privilege = uvd_local_new(NULL, e->log);
	e->grants = e->privilege ? uvd_grants_new(lends, e->privilege, e->log) : NULL;
	if (!e->grants)
		return -ENOMEM;
	err = uvd_run_files_init(&e->files) ?: uvd_engine_init(&e->core, uvd_object_plugins, &h->l->options->limits, e->log) ?:
	      uvd_sysfs_create(sys, e->log) ?: uvd_run_cm_init(e);
	e->core.lends = lends;
	e->core.explain = h->l->options->parsed->explain;
	if (!err && !uvd_options_load_plugins(h->l->options->parsed, e->core.plugins, e->log))
		return -ENOENT;
	err = err ?: host_setup_soft(h);
	if (!err && (uvd_fleet_wire_start(&e->fleet.wire, &h->l->options->parsed->wire, e->log) ||
		     uvd_fleet_wire_give(&e->fleet.wire, e->core.plugins, e->log)))
		return -EADDRNOTAVAIL;
	uvd_run_ucaps_init(e);
	e->core.replug = uvd_fleet_replug;
	e->core.publish_tables = host_publish_tables;
	e->core.take_facts = uvd_object_take_facts;
	err = err ?: uvd_options_give_texts(h->l->options->parsed, &e->core) ?: uvd_run_devices_add(e, h->l->options);
	err = err ?: uvd_run_record(&h->outputs, e, h->l->options->trace);
	err = err ?: uvd_run_report_begin(&h->outputs, e, h->l->options);
	e->core.settle = host_settle;
	e->core.publish_port = host_publish_port;
	if (err)
		uvd_logf(e->log, UVD_ERR, "cannot set the device up: %s", uvd_errno_name(err));
	else
		h->control = uvd_run_control_new(e);
	return err;
}

static void host_finish_report(struct host *h)
{
	const struct uvd_run_options *o = h->l->options;

	if (h->e.report && uvd_run_report_finish(&h->outputs, &h->e, o->report_format) && o->report_fails && !h->status)
		h->status = UVD_RUN_FINDINGS;
}

static void host_teardown(struct host *h)
{
	struct uvd_run_engine *e = &h->e;
	char sys[PATH_MAX + 8];

	uvd_run_control_free(h->control);
	/* A thread that still waits in a client's memory may use all this later: leak it, as the process exits next. */
	if (!h->left && uvd_grants_drain(e->grants, 3000) && uvd_run_files_settle(&e->files, 3000)) {
		uvd_grants_free(e->grants);
		uvd_local_free(e->privilege);
		uvd_run_files_fini(&e->files);
		uvd_run_cm_fini(e);
		uvd_run_record_end(&h->outputs);
		host_finish_report(h);
		uvd_run_devices_fini(e);
		uvd_engine_fini(&e->core);
		uvd_run_capture_end(&h->outputs);
		uvd_capture_free(h->outputs.capture);
	} else {
		uvd_run_record_end(&h->outputs);
		host_finish_report(h);
		uvd_run_capture_end(&h->outputs);
	}
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_sysfs_destroy(sys);
	uvd_run_root_close(e);
	uvd_dir_remove(AT_FDCWD, e->root);
	uvd_log_free(e->log);
}

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

static void tree_unlink(struct host *h, struct uvd_run_tree *tree)
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

static void tree_free(struct host *h, struct uvd_run_tree *tree)
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

static void tree_say_bye(struct host *h, struct uvd_run_tree *tree)
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
static void tree_look_at_end(struct host *h, struct uvd_run_tree *tree, int closing)
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

static void host_release_left(struct host *h)
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
static void host_reap(struct host *h)
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

static void host_sigchld(struct host *h, int sigchld)
{
	struct signalfd_siginfo info;

	if (read(sigchld, &info, sizeof(info)) == sizeof(info))
		host_reap(h);
}

static void host_report(struct host *h)
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

static bool tree_is_silent(const struct host *h, const struct uvd_run_tree *tree, uint64_t ms)
{
	return tree != h->own && tree->listener < 0 && tree->link >= 0 && uvd_now_ns() - tree->since > ms * 1000000;
}

/* Returns the oldest one, if it is that old, or NULL. New trees come first in the list. */
static struct uvd_run_tree *host_find_silent(const struct host *h, uint64_t ms)
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
static void host_drop_silent(struct host *h)
{
	struct uvd_run_tree *tree;

	while ((tree = host_find_silent(h, host_silent_ms())))
		tree_free(h, tree);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* full: there is no room for another tree, unless a silent one makes it. */
static void join_event(struct host *h, bool full)
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

static bool host_done(struct host *h)
{
	if (h->e.trees || h->program)
		return false;
	return h->l->join_sock < 0 || uvd_run_join_end(h->l);
}

static void launcher_gone(struct host *h)
{
	close(h->l->up);
	h->l->up = -1;
	uvd_run_drop_stderr();
}

/* closing: as for tree_look_at_end() */
static void trees_events(struct host *h, const struct pollfd *p, unsigned int num, int closing)
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
static int host_patience(const struct host *h, int most)
{
	enum { END_LOOK_MS = 2, REAP_MS = 20 };

	for (const struct uvd_run_tree *t = h->e.trees; t; t = t->next)
		if (t->ended)
			return END_LOOK_MS;
	return h->reap_later && most > REAP_MS ? REAP_MS : most;
}

/* Brings the files of the counters up to date twice a second. Returns in how many ms to call it again. */
static int host_show_counters(struct host *h)
{
	const uint64_t ms = 1000000, now = uvd_now_ns();

	if (now >= h->show_at) {
		uvd_run_show_counters(&h->e);
		h->show_at = now + 500 * ms;
	}
	return (h->show_at - now) / ms + 1;
}

static void host_loop(struct host *h, int sigchld)
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
	struct host *h = calloc(1, sizeof(*h));
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
	err = host_setup(h);
	if (err)
		_exit(UVD_RUN_FAILED); /* the guardian stops PROGRAM and removes the folder */
	h->own = tree_new(&h->e, l->link);
	l->link = -1;
	host_loop(h, sigchld);
	host_teardown(h);
	if (l->link >= 0)
		uvd_run_send(l->link, &bye, NULL, 0);
	if (!h->reported)
		uvd_run_report(l->up, h->status, false);
	free(h);
	exit(0);
}
