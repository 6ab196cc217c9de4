/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs changes to plug-ins on threads: a change waits for clients, and the event loop must not. */
#include "control/plugin_jobs.h"

#include <ev.h>
#include <stdlib.h>

#include "util/util.h"

enum { MOST_JOBS = 16 };

struct uvd_control_plugins {
	struct uvd_control_plugin_config config;
	struct ev_async on_done;
	struct plugin_job *jobs; /* the event loop's */
	unsigned int num_jobs;
};

const struct uvd_control_plugin_config *uvd_plugin_job_config(const struct plugin_job *job)
{
	return &job->owner->config;
}

const struct uvd_control_plugin_config *uvd_control_plugins_config(const struct uvd_control_plugins *plugins)
{
	return &plugins->config;
}

static void plugin_job_free(struct plugin_job *job)
{
	json_decref(job->words);
	json_decref(job->answer);
	free(job);
}

static void plugin_job_finish(struct plugin_job *job)
{
	pthread_join(job->thread, NULL);
	uvd_control_finish(job->owner->config.control, job->number, job->answer);
	job->answer = NULL;
	plugin_job_free(job);
}

static void plugin_jobs_on_done(struct ev_loop *loop, struct ev_async *w, int events)
{
	struct uvd_control_plugins *plugins = w->data;
	struct plugin_job **p = &plugins->jobs, *job;

	while ((job = *p)) {
		if (!atomic_load(&job->done)) {
			p = &job->next;
			continue;
		}
		*p = job->next;
		plugins->num_jobs--;
		plugin_job_finish(job);
	}
}

static void *plugin_job_thread(void *arg)
{
	struct plugin_job *job = arg;
	const struct uvd_control_plugin_config *config = uvd_plugin_job_config(job);
	struct uvd_control_plugins *plugins = job->owner;

	job->answer = job->run(job);
	if (!job->answer)
		job->answer = uvd_control_refuse("no memory");
	atomic_store(&job->done, true);
	/* uvd_control_plugins_free() joins this thread: both are still there. */
	ev_async_send(config->loop, &plugins->on_done);
	return NULL;
}

static void plugin_job_gone(void *arg)
{
	struct plugin_job *job = arg;

	atomic_store(&job->stop, true);
}

json_t *uvd_plugin_job_start(struct uvd_control_plugins *plugins, json_t *words, json_t *(*run)(struct plugin_job *job),
			     bool changes, bool watched)
{
	/* Everybody may ask for the list: that leaves room for changes. */
	const unsigned int most = changes ? MOST_JOBS : MOST_JOBS / 4;
	struct plugin_job *job = plugins->num_jobs < most ? calloc(1, sizeof(*job)) : NULL;

	if (!job) {
		json_decref(words);
		return uvd_control_refuse("too many commands are waiting: ask again");
	}
	job->owner = plugins;
	job->words = words;
	job->run = run;
	if (uvd_thread_start(&job->thread, 0, plugin_job_thread, job)) {
		plugin_job_free(job);
		return uvd_control_refuse("no thread for it");
	}
	job->number = uvd_control_later(plugins->config.control);
	if (watched)
		uvd_control_watch(plugins->config.control, job->number, plugin_job_gone, job);
	job->next = plugins->jobs;
	plugins->jobs = job;
	plugins->num_jobs++;
	return NULL;
}

struct uvd_control_plugins *uvd_control_plugins_new(const struct uvd_control_plugin_config *config)
{
	struct uvd_control_plugins *plugins = calloc(1, sizeof(*plugins));

	if (!plugins)
		return NULL;
	plugins->config = *config;
	ev_async_init(&plugins->on_done, plugin_jobs_on_done);
	plugins->on_done.data = plugins;
	ev_async_start(config->loop, &plugins->on_done);
	return plugins;
}

void uvd_control_plugins_free(struct uvd_control_plugins *plugins)
{
	struct plugin_job *job, *next;

	if (!plugins)
		return;
	for (job = plugins->jobs; job; job = job->next)
		atomic_store(&job->stop, true);
	for (job = plugins->jobs; job; job = next) {
		next = job->next;
		plugin_job_finish(job);
	}
	ev_async_stop(plugins->config.loop, &plugins->on_done);
	free(plugins);
}
