/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine process: its devices, the sysfs directory, and process trees as they come and go. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "objects/objects.h"
#include "options/options.h"
#include "run/launch.h"
#include "sysfs/sysfs.h"
#include "trace/trace.h"
#include "util/util.h"

struct host {
	struct uvd_run_launch *l;
	struct uvd_run_engine e;
	struct uvd_run_control *control;
	struct uvd_recorder *recorder; /* --trace, or NULL */
	struct uvd_capture *capture; /* --pcap, or NULL */
	pid_t program; /* 0: it has ended */
	struct uvd_run_tree *own; /* PROGRAM's process tree; NULL: it has ended */
	int status; /* PROGRAM's exit status */
	bool reported; /* to the launcher */
	bool reap_later; /* a child may have ended that host_reap() has not seen */
	uint64_t show_at; /* when to show the counters next; CLOCK_MONOTONIC, ns */
};

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int add_devices(struct uvd_run_engine *e, const struct uvd_run_options *o)
{
	int err = 0;

	for (unsigned int i = 0; i < o->num_devices && !err; i++) {
		struct uvd_device_config config = o->devices[i];

		if (config.number < 0)
			config.number = i;
		err = uvd_run_device_add(e, &config);
	}
	return err;
}

static void host_settle(struct uvd_engine *core)
{
	uvd_run_files_settle(&container_of(core, struct uvd_run_engine, core)->files, 1000);
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

/*
 * Runs have numbers of their own: if two that are not joined try to connect, each finds no such QP, instead of one of
 * its own with the same number.
 */
static uint32_t own_first_qpn(void)
{
	return 0x100 + uvd_random(0xfffe00);
}

/* --trace. Returns 0 or a negative errno, after a message. */
static int host_record(struct host *h)
{
	const struct uvd_recorder_config config = { .program = uvd_run_program_name };
	const char *path = h->l->options->trace;
	int fd, err = 0;

	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		err = -errno;
	else
		h->recorder = uvd_recorder_new(&h->e.core, fd, &config, &err);
	if (!err)
		return 0;
	if (fd >= 0)
		close(fd);
	uvd_logf(h->e.log, UVD_ERR, "--trace %s: %s", path, uvd_errno_name(err));
	return err;
}

/* The trace ends when all files are closed, so that it has their ends. */
static void host_record_end(struct host *h)
{
	int err = uvd_recorder_free(h->recorder);

	h->recorder = NULL;
	if (err)
		uvd_logf(h->e.log, UVD_ERR, "--trace %s: the trace is not complete: %s", h->l->options->trace,
			 uvd_errno_name(err));
}

/* Returns a new or emptied file, or a negative errno. A pipe could keep the end of the run waiting. */
static int host_open_pcap(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !ftruncate(fd, 0))
		return fd;
	close(fd);
	return -EINVAL;
}

/* --pcap. Returns 0 or a negative errno, after a message. */
static int host_capture(struct host *h)
{
	const char *path = h->l->options->pcap;
	int fd, err = 0;

	if (!path)
		return 0;
	fd = host_open_pcap(path);
	if (fd < 0)
		err = fd;
	else
		h->capture = uvd_capture_new(fd, 0, &err);
	if (!err)
		return 0;
	if (fd >= 0)
		close(fd);
	uvd_logf(h->e.log, UVD_ERR, "--pcap %s: %s%s", path, uvd_errno_name(err),
		 err == -EINVAL ? ": it must be a regular file" : "");
	return err;
}

static void host_capture_end(struct host *h)
{
	const char *path = h->l->options->pcap;
	struct uvd_capture_result result;

	if (!h->capture)
		return;
	result = uvd_capture_end(h->capture);
	if (result.err)
		uvd_logf(h->e.log, UVD_ERR, "--pcap %s: only the first %" PRIu64 " packets are in the file: %s", path,
			 result.packets, uvd_errno_name(result.err));
	if (result.lost)
		uvd_logf(h->e.log, UVD_WARN,
			 "--pcap %s: %" PRIu64 " packets lost: they came faster than they could be written", path,
			 result.lost);
}

/* Sets the plug-in `soft` up, before it has devices. Returns 0 or a negative errno, after a message. */
static int host_setup_soft(struct host *h)
{
	struct uvd_module *soft;
	int err = host_capture(h);

	if (err)
		return err;
	soft = uvd_plugins_get(h->e.core.plugins, uvd_plugin_soft.name);
	uvd_fabric_set_threads(soft->data, num_threads());
	uvd_fabric_set_first_qpn(soft->data, own_first_qpn());
	uvd_fabric_set_capture(soft->data, h->capture);
	uvd_module_put(soft);
	return 0;
}

static int host_setup(struct host *h)
{
	struct uvd_run_engine *e = &h->e;
	char sys[PATH_MAX + 8];
	int err;

	e->log = uvd_log_new(STDERR_FILENO, "uverbsctl run", h->l->options->log_level);
	strcpy(e->root, h->l->root);
	e->rootfd = open(e->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!e->log || e->rootfd < 0)
		return -ENOMEM;
	uvd_crash_start("uverbsctl run", uvd_dispatch_site);
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_run_devices_init(e);
	e->grants = uvd_grants_new(true, NULL, e->log);
	if (!e->grants)
		return -ENOMEM;
	err = uvd_run_files_init(&e->files) ?: uvd_engine_init(&e->core, uvd_object_plugins, &h->l->options->limits, e->log) ?:
	      uvd_sysfs_create(sys, e->log);
	e->core.lends = true;
	if (!err && !uvd_options_load_plugins(h->l->options->parsed, e->core.plugins, e->log))
		return -ENOENT;
	err = err ?: host_setup_soft(h);
	uvd_run_ucaps_init(e);
	e->core.replug = uvd_run_control_replug;
	e->core.publish_tables = host_publish_tables;
	e->core.take_facts = uvd_object_take_facts;
	err = err ?: uvd_options_give_filters(h->l->options->parsed, &e->core) ?: add_devices(e, h->l->options);
	err = err ?: host_record(h);
	e->core.settle = host_settle;
	e->core.publish_port = host_publish_port;
	if (err)
		uvd_logf(e->log, UVD_ERR, "cannot set the device up: %s", uvd_errno_name(err));
	else
		h->control = uvd_run_control_new(e);
	return err;
}

static void host_teardown(struct host *h)
{
	struct uvd_run_engine *e = &h->e;
	char sys[PATH_MAX + 8];

	uvd_run_control_free(h->control);
	/* A thread that still waits in a client's memory may use all this later: leak it, as the process exits next. */
	if (uvd_grants_drain(e->grants, 3000) && uvd_run_files_settle(&e->files, 3000)) {
		uvd_grants_free(e->grants);
		uvd_run_files_fini(&e->files);
		host_record_end(h);
		uvd_run_devices_fini(e);
		uvd_engine_fini(&e->core);
		host_capture_end(h);
		uvd_capture_free(h->capture);
	} else {
		host_record_end(h);
		host_capture_end(h);
	}
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_sysfs_destroy(sys);
	close(e->rootfd);
	uvd_dir_remove(AT_FDCWD, e->root);
	uvd_log_free(e->log);
}

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static struct uvd_run_tree *tree_new(struct uvd_run_engine *e, int link)
{
	struct uvd_run_msg ready = { .kind = UVD_RUN_READY };
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
	tree->engine = e;
	tree->listener = tree->agent = -1;
	tree->link = link;
	tree->next = e->trees;
	e->trees = tree;
	strcpy(ready.root, e->root);
	uvd_run_send(link, &ready, NULL, 0);
	return tree;
}

static void tree_free(struct host *h, struct uvd_run_tree *tree)
{
	struct uvd_run_tree **p = &h->e.trees;

	while (*p != tree)
		p = &(*p)->next;
	*p = tree->next;
	if (h->own == tree)
		h->own = NULL;
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
	uvd_account_put(tree->account);
	pthread_mutex_destroy(&tree->serving);
	free(tree);
}

static void run_tree_start(struct uvd_run_tree *tree, const struct uvd_run_msg *msg, int *fds)
{
	void *notif = mmap(NULL, sizeof(*tree->notif), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);

	close(fds[1]);
	tree->agent = fds[2];
	memcpy(tree->windows, msg->windows, sizeof(tree->windows));
	tree->mounted = msg->mounted;
	tree->chooses_ids = msg->chooses_ids;
	/* PROGRAM waits in its exec until the listener is served, so it has set no filter of its own yet. */
	tree->filters = uvd_borrow_num_filters(msg->status);
	tree->busy_poll_ns = msg->busy_poll * UINT64_C(1000);
	uvd_run_ucaps_grant(tree, &msg->granted);
	if (notif != MAP_FAILED) {
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
	int fds[UVD_RUN_LINK_FDS];

	if (!uvd_run_receive(tree->link, &msg, fds)) {
		if (msg.kind == UVD_RUN_LISTENER && tree->listener < 0 && fds[0] >= 0 && fds[1] >= 0)
			run_tree_start(tree, &msg, fds);
		return;
	}
	close(tree->link); /* the guardian has died; the tree is served without it */
	tree->link = -1;
}

/*
 * Waits until the files that the tree closed are gone, but not for long: a file of another tree that was opened again
 * through /proc, and closed, also looks as if it were being closed.
 */
static void wait_for_closes(struct uvd_run_files *files)
{
	int ms;

	for (int i = 0; i < 100; i++) {
		ms = uvd_run_files_closed(files);
		if (ms < 0 || ms > 100)
			return;
		usleep(1000 * ms);
	}
}

static void tree_end(struct host *h, struct uvd_run_tree *tree)
{
	struct uvd_run_msg bye = { .kind = UVD_RUN_BYE, .stays = h->e.trees != tree || tree->next };

	uvd_run_serve_end(tree);
	wait_for_closes(&h->e.files);
	if (tree->link >= 0 && (tree != h->own || h->l->join_sock >= 0))
		uvd_run_send(tree->link, &bye, NULL, 0);
	if (tree == h->own && h->l->join_sock < 0)
		h->l->link = dup(tree->link); /* uvd_run_engine_main() says bye after the cleanup */
	tree_free(h, tree);
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
	if (h->program || h->reported)
		return;
	/* The last process has ended: report after tree_end(), without `stays`: the launcher waits for the cleanup. */
	if (h->own && h->own->listener >= 0 && uvd_run_hung_up(h->own->listener))
		return;
	h->reported = true;
	uvd_run_report(h->l->up, h->status, h->own);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void join_event(struct host *h)
{
	int link = accept4(h->l->join_sock, NULL, NULL, SOCK_CLOEXEC);

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

static void trees_events(struct host *h, const struct pollfd *p, unsigned int num)
{
	struct uvd_run_tree *tree = h->e.trees, *next;

	for (unsigned int i = 0; i + 1 < num && tree; i += 2, tree = next) {
		next = tree->next;
		if (p[i].revents)
			link_event(tree);
		if (p[i + 1].revents & POLLHUP)
			tree_end(h, tree);
		else if (tree->link < 0 && tree->listener < 0)
			tree_free(h, tree);
	}
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
	enum { REAP_MS = 20, FIXED = 5, MAX = FIXED + 2 * 128 };
	struct pollfd p[MAX];
	eventfd_t looks;
	int wait = -1, show;

	while (!host_done(h)) {
		unsigned int n = FIXED;

		p[0] = (struct pollfd){ .fd = sigchld, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = h->e.files.inotify, .events = POLLIN };
		p[2] = (struct pollfd){ .fd = h->l->up };
		p[4] = (struct pollfd){ .fd = h->e.files.look, .events = POLLIN };
		for (struct uvd_run_tree *t = h->e.trees; t && n < MAX; t = t->next) {
			p[n++] = (struct pollfd){ .fd = t->link, .events = POLLIN };
			p[n++] = (struct pollfd){ .fd = t->listener }; /* for POLLHUP: its thread receives calls */
		}
		/* While there is no room for another tree, runs that join wait to be accepted. */
		p[3] = (struct pollfd){ .fd = n < MAX ? h->l->join_sock : -1, .events = POLLIN };
		show = host_show_counters(h);
		if (h->reap_later && show > REAP_MS)
			show = REAP_MS;
		if (poll(p, n, wait < 0 || wait > show ? show : wait) < 0)
			continue;
		if (p[4].revents)
			eventfd_read(h->e.files.look, &looks);
		wait = uvd_run_files_closed(&h->e.files);
		trees_events(h, p + FIXED, n - FIXED);
		if (p[0].revents)
			host_sigchld(h, sigchld);
		else if (h->reap_later)
			host_reap(h);
		if (p[3].revents)
			join_event(h);
		if (p[2].revents)
			launcher_gone(h);
		host_report(h);
	}
}

void uvd_run_engine_main(struct uvd_run_launch *l)
{
	struct host h = { .l = l, .program = fork() };
	struct uvd_run_msg bye = { .kind = UVD_RUN_BYE };
	int sigchld, err;

	if (!h.program) {
		close(l->link);
		uvd_run_program_main(l);
	}
	close(l->program_end);
	sigchld = uvd_run_background((int[]){ l->link, l->up, l->join_sock, l->join_lock }, 4);
	if (h.program < 0 || sigchld < 0)
		_exit(UVD_RUN_FAILED);
	err = host_setup(&h);
	if (err)
		_exit(UVD_RUN_FAILED); /* the guardian stops PROGRAM and removes the folder */
	h.own = tree_new(&h.e, l->link);
	l->link = -1;
	host_loop(&h, sigchld);
	host_teardown(&h);
	if (l->link >= 0)
		uvd_run_send(l->link, &bye, NULL, 0);
	if (!h.reported)
		uvd_run_report(l->up, h.status, false);
	exit(0);
}
