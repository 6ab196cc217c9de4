/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket of a run, in the run's folder. Programs of the process tree find it by the environment variable
 * UVERBSD_CONTROL. It has a thread and an event loop of its own, because the engine's main thread must not wait for
 * clients. A run works without it.
 */
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/broker.h"
#include "control/control.h"
#include "options/options.h"
#include "run/internal.h"
#include "util/util.h"

struct uvd_run_control {
	struct uvd_run_engine *engine;
	struct ev_loop *loop;
	struct ev_async end;
	struct uvd_control *control;
	pthread_t thread;
};

static void run_control_on_end(struct ev_loop *loop, struct ev_async *w, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

static void *run_control_thread(void *arg)
{
	struct uvd_run_control *c = arg;

	ev_run(c->loop, 0);
	return NULL;
}

static void run_control_release(struct uvd_run_control *c)
{
	uvd_fleet_end(&c->engine->fleet);
	uvd_control_free(c->control);
	if (c->loop)
		ev_loop_destroy(c->loop);
	free(c);
}

void uvd_run_program_name(void *arg, pid_t pid, char *name, size_t size)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, size, f))
		*name = 0;
	name[strcspn(name, "\n")] = 0;
	if (f)
		fclose(f);
}

/* The user who runs PROGRAM pays for it, whatever its user namespaces. */
static int run_control_owners(void *arg, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	return uid == geteuid() ? 0 : uvd_peer_owners(pid, uid, uids, max);
}

static struct uvd_run_control *run_control_start(struct uvd_run_engine *e)
{
	struct uvd_run_control *c = calloc(1, sizeof(*c));
	char path[PATH_MAX + 16];
	int err;

	if (!c)
		return NULL;
	c->engine = e;
	snprintf(path, sizeof(path), "%s/" UVD_RUN_CONTROL, e->root);
	c->loop = strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path) ? ev_loop_new(EVFLAG_AUTO) : NULL;
	c->control = c->loop ? uvd_control_new(c->loop, path, uvd_fleet_answer, &e->fleet, e->log, &err) : NULL;
	if (!c->control) {
		run_control_release(c);
		return NULL;
	}
	uvd_control_charge(c->control, e->core.accounts, run_control_owners, NULL);
	ev_async_init(&c->end, run_control_on_end);
	ev_async_start(c->loop, &c->end);
	uvd_fleet_begin(&e->fleet, c->loop, c->control);
	if (pthread_create(&c->thread, NULL, run_control_thread, c)) {
		run_control_release(c);
		return NULL;
	}
	return c;
}

struct uvd_run_control *uvd_run_control_new(struct uvd_run_engine *e)
{
	struct uvd_run_control *c = run_control_start(e);

	if (!c)
		uvd_fleet_end(&e->fleet);
	return c;
}

void uvd_run_control_free(struct uvd_run_control *c)
{
	if (!c)
		return;
	ev_async_send(c->loop, &c->end);
	pthread_join(c->thread, NULL);
	run_control_release(c);
}
