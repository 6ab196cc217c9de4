/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Answers the control socket's commands `status` and `restart`; the fleet answers the others. */
#include "control/control.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/schema.h>

enum { MOST_FILES = 4096, MOST_ACCOUNTS = 4096 /* that are listed */ };

static const double AT_LEAST = 0.05; /* seconds from the begin of one answer to the next */

struct file_facts {
	pid_t pid;
	uid_t uid;
	unsigned int objects;
	unsigned int types[UVD_OBJECT_COUNTS];
	unsigned int first, copied; /* its objects among all copies */
};

struct account_facts {
	pid_t pid;
	uint64_t pages;
};

struct node_facts {
	struct status_facts *all;
	struct file_facts *files;
	unsigned int num_files;
	struct uvd_device *dev; /* a reference; has the names of the files' types */
	json_t *node; /* everything but the files */
};

/* All that the thread needs; of the daemon it uses only `link`, and `loop` and `on_done` to report. */
struct status_facts {
	struct uvd_daemon *daemon;
	struct node_facts nodes[UVD_MAX_DEVICES];
	unsigned int num_nodes;
	struct uvd_object_copy *copies; /* of the objects of all files */
	unsigned int num_copies;
	struct account_facts *accounts;
	unsigned int num_accounts;
	json_t *rest;
	char *text; /* the answer; NULL: no memory */
};

/* ---- collecting, on the main thread ------------------------------------------------------------------------------ */

/* Runs with the node's lock held: opens and closes wait meanwhile. */
static void collect_file(void *arg, const struct uvd_opener *opener, struct uvd_file *file)
{
	struct node_facts *node = arg;
	struct status_facts *all = node->all;
	struct file_facts *f;

	if (node->num_files == MOST_FILES)
		return;
	f = &node->files[node->num_files++];
	f->pid = opener->tgid;
	f->uid = opener->fsuid;
	f->objects = atomic_load_explicit(&file->num_objects, memory_order_relaxed);
	uvd_control_count_types(file, f->types);
	f->first = all->num_copies;
	f->copied = uvd_control_copy(file, all->copies, &all->num_copies);
}

static bool collect_node(struct status_facts *all, struct node_facts *facts, const struct uvd_daemon_node *n)
{
	const struct uvd_device_config *config = &n->place.dev->config;
	struct uvd_cuse_counters counters;
	char rdev[32];

	facts->files = malloc(MOST_FILES * sizeof(*facts->files));
	if (!facts->files)
		return false;
	facts->all = all;
	facts->dev = uvd_device_get(n->place.dev);
	uvd_cuse_count(n->cuse, &counters);
	uvd_cuse_each_file(n->cuse, collect_file, facts);
	snprintf(rdev, sizeof(rdev), "%u:%u", major(uvd_cuse_rdev(n->cuse)), minor(uvd_cuse_rdev(n->cuse)));
	facts->node = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:i, s:i, s:o, s:I, s:b, s:o}", "node",
		uvd_cuse_path(n->cuse), "rdev", rdev, "device", config->ibdev, "backend", config->backend, "persona",
		config->persona, "abi", config->write_abi ? "write" : "ioctl", "ports", config->num_ports, "requests",
		(json_int_t)counters.requests, "workers", counters.workers, "open", counters.files, "objects",
		uvd_control_objects(n->place.dev), "refused", (json_int_t)uvd_device_refused(n->place.dev), "removed",
		n->place.state != UVD_PLACE_SERVES, "memlock", uvd_control_memlock(config));
	if (n->place.state == UVD_PLACE_SERVES)
		uvd_daemon_tell_absent(facts->node, n->place.dev);
	return facts->node;
}

static void collect_account(void *arg, pid_t pid, uint64_t pages)
{
	struct status_facts *facts = arg;

	if (facts->num_accounts < MOST_ACCOUNTS)
		facts->accounts[facts->num_accounts++] = (struct account_facts){ pid, pages };
}

/* Lists the User Capabilities that exist now: the name, and how many times devices have created it. */
static json_t *status_ucaps(struct uvd_ucaps *ucaps)
{
	json_t *list = json_array();

	uvd_lock(&ucaps->lock);
	for (unsigned int i = 0; i < ucaps->num; i++)
		if (ucaps->list[i].refs)
			json_array_append_new(list, json_pack("{s:s, s:i}", "name", ucaps->list[i].name, "users",
							      ucaps->list[i].refs));
	uvd_unlock(&ucaps->lock);
	return list;
}

static json_t *collect_rest(struct uvd_daemon *d)
{
	struct uvd_grant_counters g;

	uvd_grants_count(d->grants, &g);
	return json_pack("{s:i, s:s, s:s, s:o, s:{s:b, s:I, s:I, s:I, s:I, s:I, s:i}}", "pid",
			 d->link ? getppid() : getpid(), "transport", "cuse", "sysfs", d->options->sysfs, "ucaps",
			 status_ucaps(&d->engine.ucaps), "grants", "enabled", d->options->grant_fds, "granted",
			 (json_int_t)g.granted, "fell_back", (json_int_t)g.fell_back, "gone", (json_int_t)g.gone,
			 "late", (json_int_t)g.late, "killed", (json_int_t)g.killed, "under_way", g.under_way);
}

static void status_facts_free(struct status_facts *facts)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		free(facts->nodes[i].files);
		json_decref(facts->nodes[i].node);
		if (facts->nodes[i].dev)
			uvd_device_put(facts->nodes[i].dev);
	}
	free(facts->copies);
	free(facts->accounts);
	json_decref(facts->rest);
	free(facts->text);
	free(facts);
}

static bool status_collect(struct status_facts *facts, struct uvd_daemon *d)
{
	facts->copies = malloc(UVD_CONTROL_OBJECTS * sizeof(*facts->copies));
	if (!facts->copies)
		return false;
	for (unsigned int i = 0; i < UVD_COUNT(d->nodes); i++)
		if (d->nodes[i].cuse && !collect_node(facts, &facts->nodes[facts->num_nodes++], &d->nodes[i]))
			return false;
	facts->accounts = malloc(MOST_ACCOUNTS * sizeof(*facts->accounts));
	if (!facts->accounts)
		return false;
	uvd_mm_table_each(d->engine.mms, collect_account, facts);
	facts->rest = collect_rest(d);
	return facts->rest;
}

/* ---- formatting, on the thread ----------------------------------------------------------------------------------- */

/* An engine process sees no /proc, so it asks the broker. */
static FILE *open_comm(struct uvd_link *link, pid_t pid)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = pid, .index = UVD_WIRE_COMM };
	struct uvd_wire_fds out;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (!link)
		return fopen(path, "re");
	return pid > 0 && !uvd_link_ask(link, &r, NULL, &out) ? fdopen(out.fd[0], "re") : NULL;
}

void uvd_daemon_program(void *daemon, pid_t pid, char *comm, size_t size)
{
	struct uvd_daemon *d = daemon;
	FILE *f = open_comm(d->link, pid);

	if (!f || !fgets(comm, size, f))
		*comm = 0;
	comm[strcspn(comm, "\n")] = 0;
	if (f)
		fclose(f);
}

static json_t *write_files(struct uvd_daemon *d, const struct node_facts *node)
{
	json_t *files = json_array();
	char comm[32];

	for (const struct file_facts *f = node->files; f < node->files + node->num_files; f++) {
		uvd_daemon_program(d, f->pid, comm, sizeof(comm));
		json_array_append_new(files,
				      json_pack("{s:i, s:I, s:o, s:i, s:o, s:o?}", "pid", f->pid, "uid",
						(json_int_t)f->uid, "program", uvd_control_text(comm), "objects",
						f->objects, "types", uvd_control_types(node->dev, f->types), "tree",
						uvd_control_tree(node->dev, node->all->copies + f->first, f->copied)));
	}
	return files;
}

static json_t *write_accounts(const struct status_facts *facts)
{
	json_t *accounts = json_array();
	char comm[32];

	for (const struct account_facts *a = facts->accounts; a < facts->accounts + facts->num_accounts; a++) {
		uvd_daemon_program(facts->daemon, a->pid, comm, sizeof(comm));
		json_array_append_new(accounts, json_pack("{s:i, s:o, s:I}", "pid", a->pid, "program",
							  uvd_control_text(comm), "pages", (json_int_t)a->pages));
	}
	return accounts;
}

static void *status_thread(void *arg)
{
	struct status_facts *facts = arg;
	struct uvd_daemon *d = facts->daemon;
	json_t *devices = json_array();

	for (unsigned int i = 0; i < facts->num_nodes; i++) {
		json_object_set_new(facts->nodes[i].node, "files", write_files(d, &facts->nodes[i]));
		json_array_append(devices, facts->nodes[i].node);
	}
	json_object_set_new(facts->rest, "devices", devices);
	json_object_set_new(facts->rest, "memlock", write_accounts(facts));
	facts->text = json_dumps(facts->rest, JSON_COMPACT);
	ev_async_send(d->loop, &d->status_answer.on_done);
	return NULL;
}

/* ---- scheduling -------------------------------------------------------------------------------------------------- */

static void status_begin(struct uvd_daemon *d)
{
	struct uvd_daemon_status *s = &d->status_answer;

	s->begun = ev_time();
	s->number = s->next;
	s->next = 0;
	s->facts = calloc(1, sizeof(*s->facts));
	if (s->facts) {
		s->facts->daemon = d;
		if (status_collect(s->facts, d) && !uvd_thread_start(&s->thread, 0, status_thread, s->facts))
			return;
		status_facts_free(s->facts);
		s->facts = NULL;
	}
	uvd_control_finish_text(d->control, s->number, "{\"error\":\"no memory or no thread for the answer\"}");
}

/* Schedules the next answer if a client waits for one. Never begins it at once: the asker is still being handled. */
static void status_continue(struct uvd_daemon *d)
{
	struct uvd_daemon_status *s = &d->status_answer;
	double wait = s->begun + AT_LEAST - ev_time();

	if (!s->next || s->facts || ev_is_active(&s->pause))
		return;
	ev_timer_set(&s->pause, wait > 0 && wait < AT_LEAST ? wait : 0, 0);
	ev_timer_start(d->loop, &s->pause);
}

static void on_status_pause(struct ev_loop *loop, struct ev_timer *w, int events)
{
	status_begin(w->data);
}

static void on_status_done(struct ev_loop *loop, struct ev_async *w, int events)
{
	struct uvd_daemon *d = w->data;
	struct uvd_daemon_status *s = &d->status_answer;

	if (!s->facts)
		return;
	pthread_join(s->thread, NULL);
	uvd_control_finish_text(d->control, s->number, s->facts->text ? s->facts->text : "{\"error\":\"no memory\"}");
	status_facts_free(s->facts);
	s->facts = NULL;
	status_continue(d);
}

json_t *uvd_daemon_status(void *daemon)
{
	struct uvd_daemon *d = daemon;
	struct uvd_daemon_status *s = &d->status_answer;

	if (s->next)
		uvd_control_join(d->control, s->next);
	else
		s->next = uvd_control_later(d->control);
	status_continue(d);
	return NULL;
}

void uvd_daemon_status_init(struct uvd_daemon *d)
{
	struct uvd_daemon_status *s = &d->status_answer;

	ev_init(&s->pause, on_status_pause);
	s->pause.data = d;
	ev_async_init(&s->on_done, on_status_done);
	s->on_done.data = d;
	ev_async_start(d->loop, &s->on_done);
}

void uvd_daemon_status_fini(struct uvd_daemon *d)
{
	struct uvd_daemon_status *s = &d->status_answer;

	if (s->facts) {
		pthread_join(s->thread, NULL);
		status_facts_free(s->facts);
		s->facts = NULL;
	}
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* The broker ends this process by a signal. The loop handles the signal after it has sent the answer. */
static json_t *restart_answer(struct uvd_daemon *d, bool may_change)
{
	int err;

	if (!may_change)
		return uvd_control_refuse("only root and the user that serves the device may do that");
	if (!d->link)
		return uvd_control_refuse(
			"only with two processes (--separate yes, the default); restart the whole daemon, as by `systemctl restart uverbsd`");
	err = uvd_link_tell(d->link, UVD_WIRE_RESTART, 0);
	if (err == -EAGAIN)
		return uvd_control_refuse("too many restarts within a minute: wait, and ask again");
	if (err)
		return uvd_control_refuse("the daemon is ending");
	uvd_control_pass_on(d->control);
	return json_pack("{s:s}", "restart", "begins");
}

json_t *uvd_daemon_answer(void *daemon, const char *command, bool may_change)
{
	struct uvd_daemon *d = daemon;

	return strcmp(command, "restart") ? uvd_fleet_answer(&d->fleet, command, may_change)
					  : restart_answer(d, may_change);
}
