/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A worker of `uverbsctl fuzz --in-process`. It starts a child that has the device and makes the calls, one program after
 * the other. When the child dies, another one goes on behind it.
 */
#include "fuzz.h"
#include "../program/child.h"

/* Shrinking makes many trials of a program that is known to leak. */
enum { LEAK_TRIAL_SECONDS = 1 };

struct in_process {
	const struct uvd_fuzz *f;
	struct uvd_child child;
	struct uvd_prog_list list;
	double end; /* when to stop, by uvd_fuzz_now() */
};

/* Runs in the child. */
static void child_random(void *arg)
{
	struct in_process *w = arg;
	struct uvd_child_shared *s = w->child.shared;

	while (s->programs < w->f->programs && !s->found.kind && uvd_fuzz_goes_on(w->f, w->end)) {
		uvd_prog_generate_fuzz(&s->p, &w->list, w->f->seed + s->programs * w->f->step);
		s->programs++;
		uvd_child_program(&w->child);
	}
}

/* Does the program hang again? Other load on the machine can make a program slow. */
static bool hangs_again(struct in_process *w)
{
	const struct uvd_program_finding first = w->child.shared->found;
	bool again = false;

	for (int i = 0; i < UVD_PROGRAM_RACES && !again; i++)
		again = !uvd_child_run(&w->child, uvd_child_trial, &w->child) && w->child.shared->found.kind;
	w->child.shared->found = first;
	return again;
}

static int in_process_random(struct in_process *w)
{
	const struct uvd_fuzz *f = w->f;
	struct uvd_child_shared *s = w->child.shared;

	while (s->programs < f->programs && !s->found.kind && uvd_fuzz_goes_on(f, w->end)) {
		if (uvd_child_run(&w->child, child_random, w))
			return 2;
		if (s->found.kind == UVD_PROGRAM_HANG && !hangs_again(w))
			s->found.kind = UVD_PROGRAM_FINE;
	}
	uvd_fuzz_count(f->folder, s->programs, s->calls);
	if (!s->found.kind)
		return 0;
	return uvd_fuzz_write_program(f->folder, "current.prog", &s->p) && uvd_fuzz_write_finding(f->folder, &s->found)
		       ? 1
		       : 2;
}

static int in_process_trial(struct in_process *w)
{
	const struct uvd_fuzz *f = w->f;
	struct uvd_child_shared *s = w->child.shared;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/current.prog", f->folder);
	if (!uvd_prog_load(&s->p, UVD_FUZZ_NAME, path))
		return 2;
	if (f->emit)
		return uvd_prog_emit(w->child.run, &s->p, f->emit, "Written by uverbsctl fuzz.") ? 2 : 0;
	if (uvd_child_run(&w->child, uvd_child_trial, &w->child) || !uvd_fuzz_write_finding(f->folder, &s->found))
		return 2;
	return s->found.kind != UVD_PROGRAM_FINE;
}

int uvd_fuzz_in_process(const struct uvd_fuzz *f)
{
	struct in_process w = { .f = f, .end = uvd_fuzz_now() + f->seconds };
	int status = 2;

	if (!uvd_child_init(&w.child, UVD_FUZZ_NAME, f->num_run_options, f->run_options) &&
	    uvd_program_list_read(&w.list, false)) {
		w.child.run->patience = f->hang;
		w.child.model = true;
		w.child.leak_seconds = f->trial ? LEAK_TRIAL_SECONDS : UVD_CHILD_LEAK_SECONDS;
		status = f->trial ? in_process_trial(&w) : in_process_random(&w);
		uvd_prog_list_free(&w.list);
	}
	uvd_child_free(&w.child);
	return status;
}
