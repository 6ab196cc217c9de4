/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The changes to plug-ins that wait or run, each on a thread of its own. */
#ifndef UVD_CONTROL_PLUGIN_JOBS_H
#define UVD_CONTROL_PLUGIN_JOBS_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "control/control.h"

/* A command that runs. Its thread uses the struct alone until `done`, but for `stop`. */
struct plugin_job {
	struct plugin_job *next;
	struct uvd_control_plugins *owner;
	json_t *words; /* of the command */
	json_t *(*run)(struct plugin_job *job); /* on the thread; returns the answer */
	unsigned long number; /* of the answer */
	pthread_t thread;
	json_t *answer;
	atomic_bool stop; /* its asker has gone, or the program ends */
	atomic_bool done;
};

/*
 * Starts the command and returns NULL: the answer comes later. Takes over `words`. changes: it may change
 * something. watched: the job ends with its asker. Returns an answer if it cannot be started.
 */
json_t *uvd_plugin_job_start(struct uvd_control_plugins *plugins, json_t *words, json_t *(*run)(struct plugin_job *job),
			     bool changes, bool watched);
const struct uvd_control_plugin_config *uvd_plugin_job_config(const struct plugin_job *job);

#endif
