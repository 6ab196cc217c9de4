/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control commands `trace` and `explain`: their connection becomes a trace of the calls that the engine serves from then on, or
 * of the explanations.
 */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account/account.h"
#include "control/control.h"
#include "core/core.h"
#include "trace/trace.h"
#include "util/util.h"

/* MOST_OF_OTHERS: recorders of users who may change nothing; that leaves room for root. LOOK: seconds. */
_Static_assert((int)UVD_MAX_OBSERVERS == (int)UVD_WHOLE_TRACES, "the table of limits says how many there are");
enum { MOST = UVD_MAX_OBSERVERS, MOST_OF_OTHERS = 2, LOOK = 1 };

struct uvd_control_traces {
	struct ev_loop *loop;
	struct uvd_control *control;
	struct uvd_engine *engine;
	void (*program)(void *arg, pid_t pid, char *name, size_t size);
	void *arg;
	struct ev_timer look; /* runs while there is a recorder */
	struct {
		struct uvd_recorder *recorder; /* NULL: unused */
		bool others;
		struct uvd_account *account; /* pays for it; a reference, or NULL */
	} list[MOST];
};

/* Returns what follows the verb, or NULL if the command has another one. */
static const char *trace_arguments(const char *command, const char *verb)
{
	const size_t len = strlen(verb);

	return !strncmp(command, verb, len) && (!command[len] || command[len] == ' ') ? command + len : NULL;
}

bool uvd_control_is_trace(const char *command)
{
	return trace_arguments(command, "trace") || trace_arguments(command, "explain");
}

static void traces_end(struct uvd_control_traces *traces, unsigned int i)
{
	if (!traces->list[i].recorder)
		return;
	uvd_recorder_free(traces->list[i].recorder);
	traces->list[i].recorder = NULL;
	uvd_account_uncharge(traces->list[i].account, UVD_RES_TRACES, 1);
	uvd_account_put(traces->list[i].account);
}

/* Frees the recorders whose readers have gone. Returns whether one is left. */
static bool traces_reap(struct uvd_control_traces *traces)
{
	bool left = false;

	for (unsigned int i = 0; i < MOST; i++) {
		if (traces->list[i].recorder && uvd_recorder_ended(traces->list[i].recorder))
			traces_end(traces, i);
		left |= traces->list[i].recorder != NULL;
	}
	return left;
}

static void traces_on_look(struct ev_loop *loop, struct ev_timer *w, int events)
{
	if (!traces_reap(w->data))
		ev_timer_stop(loop, w);
}

/* Returns an unused entry, or -1: all users together have as many as they may. */
static int traces_slot(const struct uvd_control_traces *traces, bool may_change)
{
	unsigned int others = 0;
	int slot = -1;

	for (unsigned int i = 0; i < MOST; i++) {
		if (!traces->list[i].recorder) {
			slot = i;
			continue;
		}
		others += traces->list[i].others;
	}
	return may_change || others < MOST_OF_OTHERS ? slot : -1;
}

/* Charges a user who may change nothing within the share. */
static bool traces_charge(struct uvd_account *account, bool may_change)
{
	if (!may_change)
		return uvd_account_try(account, UVD_RES_TRACES, 1);
	uvd_account_charge_anyway(account, UVD_RES_TRACES, 1);
	return true;
}

static json_t *traces_start(struct uvd_control_traces *traces, bool explanations, pid_t pid, bool may_change)
{
	const uid_t uid = uvd_control_asker(traces->control);
	const struct uvd_recorder_config config = { .pid = pid,
						    .one_user = !may_change,
						    .uid = uid,
						    .explanations = explanations,
						    .greeting = "{\"trace\":1}\n",
						    .program = traces->program,
						    .arg = traces->arg };
	struct uvd_account *account = uvd_control_account(traces->control);
	struct uvd_recorder *recorder;
	int slot, err;

	traces_reap(traces);
	slot = traces_slot(traces, may_change);
	if (slot < 0 || !traces_charge(account, may_change))
		return uvd_control_refuse("too many traces are running: end one of them first");
	recorder = uvd_recorder_new(traces->engine, uvd_control_fd(traces->control), &config, &err);
	if (!recorder) {
		uvd_account_uncharge(account, UVD_RES_TRACES, 1);
		return uvd_control_refuse(err == -EBUSY ? "too many traces are running: end one of them first"
							: uvd_errno_name(err));
	}
	uvd_control_take(traces->control);
	traces->list[slot].recorder = recorder;
	traces->list[slot].others = !may_change;
	traces->list[slot].account = uvd_account_ref(account);
	ev_timer_again(traces->loop, &traces->look);
	return NULL;
}

json_t *uvd_control_trace(struct uvd_control_traces *traces, const char *command, bool may_change)
{
	const char *calls = trace_arguments(command, "trace"), *more = calls ?: trace_arguments(command, "explain");
	unsigned int pid = 0;
	char rest;

	if (!traces)
		return uvd_control_refuse("no memory");
	if (*more && (sscanf(more, " %9u %c", &pid, &rest) != 1 || !pid))
		return uvd_control_refuse(calls ? "usage: trace [PID]" : "usage: explain [PID]");
	return traces_start(traces, !calls, pid, may_change);
}

struct uvd_control_traces *uvd_control_traces_new(struct ev_loop *loop, struct uvd_control *control,
						  struct uvd_engine *engine,
						  void (*program)(void *arg, pid_t pid, char *name, size_t size),
						  void *arg)
{
	struct uvd_control_traces *traces = calloc(1, sizeof(*traces));

	if (!traces)
		return NULL;
	traces->loop = loop;
	traces->control = control;
	traces->engine = engine;
	traces->program = program;
	traces->arg = arg;
	ev_init(&traces->look, traces_on_look);
	traces->look.repeat = LOOK;
	traces->look.data = traces;
	return traces;
}

void uvd_control_traces_free(struct uvd_control_traces *traces)
{
	if (!traces)
		return;
	for (unsigned int i = 0; i < MOST; i++)
		traces_end(traces, i);
	ev_timer_stop(traces->loop, &traces->look);
	free(traces);
}
