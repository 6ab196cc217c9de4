/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "check.h"
#include "control/control.h"
#include "util/util.h"
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The engine learns of a close some time after it. What it still has after this time, and after it has answered that
 * often, is a leak: on a busy machine the time alone is not enough, and many answers can take minutes.
 */
enum { LEAK_SECONDS = 10, LEAK_ANSWERS = 200, LEAK_WAIT_US = 2000, LEAK_LATER_US = 50000 };

static json_t *control_json(const char *control, const char *command)
{
	char *line = uvd_control_ask(control, command);
	json_t *json = uvd_control_parse(line);

	free(line);
	return json;
}

/* Appends "N WHAT" for each object that a device still has. Returns false if nobody answers. */
static bool leaks_objects(const char *control, char *text, size_t size)
{
	json_t *status = control_json(control, "status"), *device, *count;
	const char *name;
	size_t i;

	json_array_foreach(json_object_get(status, "devices"), i, device)
		json_object_foreach(json_object_get(device, "objects"), name, count)
			if (json_integer_value(count))
				snprintf(text + strlen(text), size - strlen(text), " %lld %s,",
					 (long long)json_integer_value(count), name);
	json_decref(status);
	return status;
}

static void leaks_charges(const char *control, char *text, size_t size)
{
	json_t *accounts = control_json(control, "accounts"), *row;
	size_t i;

	json_array_foreach(json_object_get(accounts, "accounts"), i, row) {
		long long used = json_integer_value(json_object_get(row, "used"));
		const char *what = json_string_value(json_object_get(row, "resource"));

		if (used)
			snprintf(text + strlen(text), size - strlen(text), " %lld %s charged,", used,
				 what ? what : "?");
	}
	json_decref(accounts);
}

enum uvd_program_left uvd_program_leaks(const char *control, char *text, size_t size)
{
	uint64_t end = uvd_now_ns() + LEAK_SECONDS * 1000000000ull;

	for (int i = 0; i < LEAK_ANSWERS || uvd_now_ns() < end; i++) {
		text[0] = 0;
		if (!leaks_objects(control, text, size))
			return UVD_PROGRAM_LEFT_UNKNOWN;
		leaks_charges(control, text, size);
		if (!text[0])
			return UVD_PROGRAM_LEFT_NOTHING;
		usleep(i < LEAK_ANSWERS / 2 ? LEAK_WAIT_US : LEAK_LATER_US);
	}
	text[strlen(text) - 1] = 0; /* the comma */
	return UVD_PROGRAM_LEFT_MUCH;
}

unsigned int uvd_program_last_call(const struct uvd_prog_run *run, const struct uvd_prog *p)
{
	unsigned int i = 0;

	while (i + 1 < p->num_calls && run->records[i].done)
		i++;
	return i;
}

static void check_ended(const struct uvd_prog_run *run, const struct uvd_prog *p, struct uvd_program_finding *found)
{
	const unsigned int i = uvd_program_last_call(run, p);

	found->d.call = i;
	snprintf(found->d.target, sizeof(found->d.target), "%s", p->calls[i].target);
	if (WTERMSIG(run->status) == SIGALRM) {
		found->kind = UVD_PROGRAM_HANG;
		snprintf(found->text, sizeof(found->text), "hang: call %u, %s, did not return in %u seconds", i + 1,
			 found->d.target, run->patience);
		return;
	}
	found->kind = UVD_PROGRAM_KILLED;
	snprintf(found->text, sizeof(found->text), "killed: SIG%s in call %u, %s", sigabbrev_np(WTERMSIG(run->status)),
		 i + 1, found->d.target);
}

static void check_lost(struct uvd_program_finding *found)
{
	found->kind = UVD_PROGRAM_LOST;
	snprintf(found->text, sizeof(found->text), "lost: the device does not answer after the program");
}

void uvd_program_check_model(const struct uvd_prog_run *run, const struct uvd_prog *p,
			     struct uvd_program_finding *found)
{
	uvd_prog_model_check(p, run, &found->d);
	if (!found->d.found)
		uvd_prog_model_check_cm(p, run, &found->d);
	if (!found->d.found)
		return;
	found->kind = UVD_PROGRAM_MODEL;
	snprintf(found->text, sizeof(found->text), "model: call %u, %s: %s is %s, %s expected", found->d.call + 1,
		 found->d.target, found->d.item, found->d.ours, found->d.kernel);
}

static void check_left(const struct uvd_prog_run *run, const char *control, struct uvd_program_finding *found)
{
	char left[128];
	const enum uvd_program_left what = uvd_program_leaks(control, left, sizeof(left));

	if (what == UVD_PROGRAM_LEFT_MUCH) {
		found->kind = UVD_PROGRAM_LEAK;
		snprintf(found->text, sizeof(found->text), "leak: after the program the device has%s", left);
	} else if (uvd_prog_find_driver(run->node) < 0) {
		check_lost(found); /* its engine died when it closed the program's file */
	} else if (what == UVD_PROGRAM_LEFT_UNKNOWN) {
		found->kind = UVD_PROGRAM_LEAK;
		snprintf(found->text, sizeof(found->text), "leak: unknown, as nobody answers at %.200s", control);
	}
}

bool uvd_program_check_log(struct uvd_kernel_log *log, int ms, struct uvd_program_finding *found)
{
	uvd_kernel_log_look(log, ms);
	if (!log->begins)
		return false;
	memset(found, 0, sizeof(*found));
	found->kind = UVD_PROGRAM_REPORT;
	snprintf(found->d.kernel, sizeof(found->d.kernel), "%s", log->begins);
	snprintf(found->text, sizeof(found->text), "report: the kernel says after the program: %s", log->report);
	return true;
}

void uvd_program_check(struct uvd_prog_run *run, const struct uvd_prog *p, const char *control, bool model,
		       struct uvd_kernel_log *log, struct uvd_program_finding *found)
{
	memset(found, 0, sizeof(*found));
	uvd_prog_run_start(run, p);
	uvd_prog_run_wait(run);
	/* A report also tells why a program hangs or is killed, so it comes first. */
	if (log && uvd_program_check_log(log, 0, found))
		return;
	/* After a hang the device may be what hangs: it is not asked. */
	if (WIFSIGNALED(run->status) && WTERMSIG(run->status) == SIGALRM) {
		check_ended(run, p, found);
		return;
	}
	if (uvd_prog_find_driver(run->node) < 0) {
		check_lost(found);
		return;
	}
	if (WIFSIGNALED(run->status)) {
		check_ended(run, p, found);
		return;
	}
	if (model && !run->trouble[0])
		uvd_program_check_model(run, p, found);
	if (!found->kind && control)
		check_left(run, control, found);
}

bool uvd_program_same(const struct uvd_program_finding *a, const struct uvd_program_finding *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == UVD_PROGRAM_REPORT)
		return !strcmp(a->d.kernel, b->d.kernel);
	return a->kind != UVD_PROGRAM_MODEL || (!strcmp(a->d.target, b->d.target) && !strcmp(a->d.ours, b->d.ours) &&
						!strcmp(a->d.kernel, b->d.kernel));
}
