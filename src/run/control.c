/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket of a run, in its folder; the tree finds it by UVERBSD_CONTROL. It has a thread and an event loop of
 * its own: the engine's thread must not wait for clients. A run goes on without one.
 */
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "control.h"
#include "run/engine.h"

struct uvd_run_control {
	struct uvd_run_engine *engine;
	char sysfs[PATH_MAX + 8];
	struct ev_loop *loop;
	struct ev_async end;
	struct uvd_control *control;
	pthread_t thread;
};

static struct uvd_device *device(void *arg, unsigned int i)
{
	struct uvd_run_engine *e = arg;

	return i < e->num_devices ? e->devices[i] : NULL;
}

static json_t *answer(void *arg, const char *command, bool may_change)
{
	struct uvd_run_control *c = arg;

	return uvd_control_port(command, may_change, device, c->engine, c->sysfs);
}

static void on_end(struct ev_loop *loop, struct ev_async *w, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

static void *serve(void *arg)
{
	struct uvd_run_control *c = arg;

	ev_run(c->loop, 0);
	return NULL;
}

static void release(struct uvd_run_control *c)
{
	uvd_control_free(c->control);
	if (c->loop)
		ev_loop_destroy(c->loop);
	free(c);
}

struct uvd_run_control *uvd_run_control_new(struct uvd_run_engine *e)
{
	struct uvd_run_control *c = calloc(1, sizeof(*c));
	char path[PATH_MAX + 16];
	int err;

	if (!c)
		return NULL;
	c->engine = e;
	snprintf(c->sysfs, sizeof(c->sysfs), "%s/sys", e->root);
	snprintf(path, sizeof(path), "%s/" UVD_RUN_CONTROL, e->root);
	c->loop = strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path) ? ev_loop_new(EVFLAG_AUTO) : NULL;
	c->control = c->loop ? uvd_control_new(c->loop, path, answer, c, e->log, &err) : NULL;
	if (!c->control) {
		release(c);
		return NULL;
	}
	ev_async_init(&c->end, on_end);
	ev_async_start(c->loop, &c->end);
	if (pthread_create(&c->thread, NULL, serve, c)) {
		release(c);
		return NULL;
	}
	return c;
}

void uvd_run_control_free(struct uvd_run_control *c)
{
	if (!c)
		return;
	ev_async_send(c->loop, &c->end);
	pthread_join(c->thread, NULL);
	release(c);
}
