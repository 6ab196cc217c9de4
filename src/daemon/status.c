/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Answers the control socket's commands `status` and `restart`; the fleet answers the others. */
#include "broker/broker.h"
#include "control/control.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double AT_LEAST = 0.05; /* seconds from the begin of one answer to the next */

/* All that the thread needs; of the daemon it uses only `privilege`, and `loop` and `on_done` to report. */
struct status_facts {
	struct uvd_daemon *daemon;
	struct uvd_status *status;
	json_t *rest; /* the answer, but for what `status` has */
	char *text; /* the answer; NULL: no memory */
};

/* ---- collecting, on the main thread ------------------------------------------------------------------------------ */

/* Runs with the node's lock held: opens and closes wait meanwhile. */
static void collect_file(void *arg, const struct uvd_opener *opener, struct uvd_file *file)
{
	uvd_status_add_file(arg, file, opener->tgid, opener->fsuid);
}

static bool collect_node(struct uvd_status *s, const struct uvd_daemon_node *n)
{
	const bool serves = n->place.state == UVD_PLACE_SERVES;
	struct uvd_cuse_counters counters;
	json_t *node;

	node = uvd_status_add_device(s, n->place.dev, uvd_cuse_path(n->cuse), uvd_cuse_rdev(n->cuse), !serves);
	if (!node)
		return false;
	uvd_cuse_each_file(n->cuse, collect_file, s);
	uvd_cuse_count(n->cuse, &counters);
	json_object_set_new(node, "requests", json_integer((json_int_t)counters.requests));
	json_object_set_new(node, "workers", json_integer(counters.workers));
	if (serves)
		uvd_daemon_tell_absent(node, n->place.dev);
	return true;
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
	json_t *rest;

	uvd_grants_count(d->grants, &g);
	rest = json_pack("{s:i, s:i, s:s, s:s, s:s, s:o, s:o, s:{s:b, s:I, s:I, s:I, s:I, s:I, s:i}}", "pid",
			 (int)d->machine->pid(), "restarts", (int)d->restarts, "log_level",
			 uvd_log_level_name(uvd_log_most(d->log)), "transport", "cuse", "sysfs", d->options->sysfs,
			 "ucaps", status_ucaps(&d->engine.ucaps), "wire", uvd_fleet_wire_status(&d->fleet.wire),
			 "grants", "enabled", d->options->grant_fds, "granted", (json_int_t)g.granted, "fell_back",
			 (json_int_t)g.fell_back, "gone", (json_int_t)g.gone, "late", (json_int_t)g.late, "killed",
			 (json_int_t)g.killed, "under_way", g.under_way);
	/* The broker's version is this one, or it would not understand us. */
	if (rest && d->options->separate)
		json_object_set_new(rest, "broker_version", json_integer(UVD_WIRE_VERSION));
	return rest;
}

static void status_facts_free(struct status_facts *facts)
{
	if (facts->status)
		uvd_status_free(facts->status);
	json_decref(facts->rest);
	free(facts->text);
	free(facts);
}

static bool status_collect(struct status_facts *facts, struct uvd_daemon *d)
{
	facts->status = uvd_status_new();
	if (!facts->status)
		return false;
	for (unsigned int i = 0; i < UVD_COUNT(d->nodes); i++)
		if (d->nodes[i].cuse && !collect_node(facts->status, &d->nodes[i]))
			return false;
	uvd_status_add_memory(facts->status, d->engine.mms);
	uvd_status_add_cm(facts->status, d->cm.cm);
	facts->rest = collect_rest(d);
	return facts->rest;
}

/* ---- formatting, on the thread ----------------------------------------------------------------------------------- */

void uvd_daemon_program(void *daemon, pid_t pid, char *comm, size_t size)
{
	struct uvd_daemon *d = daemon;
	int fd = d->privilege->ops->open_comm(d->privilege, pid);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");

	if (!f || !fgets(comm, size, f))
		*comm = 0;
	comm[strcspn(comm, "\n")] = 0;
	if (f)
		fclose(f);
}

static void *status_thread(void *arg)
{
	struct status_facts *facts = arg;
	struct uvd_daemon *d = facts->daemon;

	uvd_status_format(facts->status, facts->rest, uvd_daemon_program, d);
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
	err = d->machine->restart(d);
	if (err == -EOPNOTSUPP)
		return uvd_control_refuse(
			"only with two processes (--separate yes, the default); restart the whole daemon, as by `systemctl restart uverbsd`");
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
