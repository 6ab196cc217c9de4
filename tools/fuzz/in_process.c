/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A worker of `uverbsctl fuzz --in-process`. It starts a child that has the device and makes the calls, one program after
 * the other. What the child is about to do is in memory that both share: when the child dies, the worker has the program.
 * Then another child goes on behind it.
 */
#include "fuzz.h"
#include "../program/in_process.h"
#include "util/util.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char who[] = "uverbsctl fuzz";

/*
 * The close of a file has waited for its work, so little can be on its way; but machines are busy. Shrinking makes many
 * trials of a program that is known to leak.
 */
enum { LEAK_SECONDS = 10, LEAK_TRIAL_SECONDS = 1 };

/* The worker and its child share this memory. */
struct batch {
	struct uvd_prog p; /* that the child is running, or has just run */
	struct uvd_program_finding found;
	unsigned long programs, calls; /* of all children */
	bool ended; /* the child has ended by itself */
	bool unusable; /* the device could not be opened, which is no finding */
};

struct in_process {
	const struct uvd_fuzz *f;
	struct uvd_prog_run *run; /* shared with the child, too */
	struct uvd_prog_list list;
	struct batch *batch;
	double end; /* when to stop, by uvd_fuzz_now() */
};

/* ---- the child --------------------------------------------------------------------------------------------------- */

static void child_give_up(struct in_process *w, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", who, w->batch->p.name, why);
	w->batch->unusable = true;
	_exit(1);
}

/* Runs the program of the batch on the device of this process, and looks at what it has left. */
static void child_program(struct in_process *w)
{
	struct batch *b = w->batch;
	char left[sizeof(b->found.text) - 64];
	int node;

	uvd_prog_run_reset(w->run, &b->p);
	b->calls += b->p.num_calls;
	alarm(w->run->patience);
	node = uvd_in_process_open();
	if (node < 0)
		child_give_up(w, "it cannot open its device");
	uvd_prog_run_calls(w->run, &b->p, node);
	uvd_in_process_close();
	alarm(0);
	if (w->run->trouble[0])
		fprintf(stderr, "%s: %s: %s\n", who, b->p.name, w->run->trouble);
	else
		uvd_program_check_model(w->run, &b->p, &b->found);
	if (!b->found.kind &&
	    uvd_in_process_leaks(left, sizeof(left), w->f->trial ? LEAK_TRIAL_SECONDS : LEAK_SECONDS)) {
		b->found.kind = UVD_PROGRAM_LEAK;
		snprintf(b->found.text, sizeof(b->found.text), "leak: after the program the device has %s", left);
	}
}

static void child_random(struct in_process *w)
{
	struct batch *b = w->batch;

	while (b->programs < w->f->programs && !b->found.kind && uvd_fuzz_goes_on(w->f, w->end)) {
		uvd_prog_generate_fuzz(&b->p, &w->list, w->f->seed + b->programs * w->f->step);
		b->programs++;
		uvd_prog_arena_clear();
		child_program(w);
	}
}

/* The program of the batch, until it has a finding. */
static void child_trial(struct in_process *w)
{
	const unsigned int times = uvd_prog_races(&w->batch->p) ? UVD_PROGRAM_RACES : 1;

	for (unsigned int i = 0; i < times && !w->batch->found.kind; i++) {
		uvd_prog_arena_clear();
		child_program(w);
	}
}

/* Ends by exit(), so that a sanitizer can report leaks. */
static void child_main(struct in_process *w, void (*what)(struct in_process *w))
{
	signal(SIGPIPE, SIG_IGN);
	if (uvd_prog_arena_make() || uvd_in_process_start())
		_exit(2);
	what(w);
	uvd_in_process_stop();
	w->batch->ended = true;
	exit(0);
}

/* ---- the worker -------------------------------------------------------------------------------------------------- */

/* The finding of a child that has not ended by itself. */
static void child_died(struct in_process *w, int status)
{
	struct uvd_program_finding *found = &w->batch->found;
	const struct uvd_prog *p = &w->batch->p;
	const unsigned int call = uvd_program_last_call(w->run, p);

	found->d.call = call;
	snprintf(found->d.target, sizeof(found->d.target), "%s", p->calls[call].target);
	found->kind = UVD_PROGRAM_LOST;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		found->kind = UVD_PROGRAM_HANG;
		snprintf(found->text, sizeof(found->text), "hang: call %u, %s, did not return in %u seconds", call + 1,
			 found->d.target, w->run->patience);
	} else if (WIFSIGNALED(status)) {
		snprintf(found->text, sizeof(found->text), "lost: the engine died by SIG%s in call %u, %s",
			 sigabbrev_np(WTERMSIG(status)), call + 1, found->d.target);
	} else {
		snprintf(found->text, sizeof(found->text), "lost: the engine exited with status %d in call %u, %s",
			 WEXITSTATUS(status), call + 1, found->d.target);
	}
}

/* Runs `what` in a child. Returns 0; or -1 if there is no child, or it could not make its device. */
static int child_run(struct in_process *w, void (*what)(struct in_process *w))
{
	const unsigned long before = w->batch->calls;
	int status;
	pid_t pid;

	w->batch->found = (struct uvd_program_finding){};
	w->batch->ended = w->batch->unusable = false;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		/* The child does not outlive its worker. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_main(w, what);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (pid < 0 || w->batch->unusable || (!w->batch->ended && w->batch->calls == before))
		return -1;
	if (!w->batch->ended)
		child_died(w, status);
	return 0;
}

/* Does the program hang again? Other load on the machine can make a program slow. */
static bool hangs_again(struct in_process *w)
{
	const struct uvd_program_finding first = w->batch->found;
	bool again = false;

	for (int i = 0; i < UVD_PROGRAM_RACES && !again; i++)
		again = !child_run(w, child_trial) && w->batch->found.kind;
	w->batch->found = first;
	return again;
}

static int in_process_random(struct in_process *w)
{
	const struct uvd_fuzz *f = w->f;
	struct batch *b = w->batch;

	while (b->programs < f->programs && !b->found.kind && uvd_fuzz_goes_on(f, w->end)) {
		if (child_run(w, child_random))
			return 2;
		if (b->found.kind == UVD_PROGRAM_HANG && !hangs_again(w))
			b->found.kind = UVD_PROGRAM_FINE;
	}
	uvd_fuzz_count(f->folder, b->programs, b->calls);
	if (!b->found.kind)
		return 0;
	return uvd_fuzz_write_program(f->folder, "current.prog", &b->p) && uvd_fuzz_write_finding(f->folder, &b->found)
		       ? 1
		       : 2;
}

static int in_process_trial(struct in_process *w)
{
	const struct uvd_fuzz *f = w->f;
	struct batch *b = w->batch;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/current.prog", f->folder);
	if (!uvd_prog_load(&b->p, who, path))
		return 2;
	if (f->emit)
		return uvd_prog_emit(w->run, &b->p, f->emit, "Written by uverbsctl fuzz.") ? 2 : 0;
	if (child_run(w, child_trial) || !uvd_fuzz_write_finding(f->folder, &b->found))
		return 2;
	return b->found.kind != UVD_PROGRAM_FINE;
}

static int in_process_worker(const struct uvd_fuzz *f, const struct uvd_options *o)
{
	struct in_process w = { .f = f, .end = uvd_fuzz_now() + f->seconds };
	const int driver = uvd_in_process_driver(o);
	int status = 2;

	w.batch = mmap(NULL, sizeof(*w.batch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w.batch == MAP_FAILED)
		return 2;
	uvd_in_process_options(o);
	if (driver >= 0 && !uvd_in_process_learn())
		w.run = uvd_prog_run_new_with(&uvd_in_process_ops, "/dev/infiniband/uverbs0", driver);
	if (w.run && uvd_program_list_read(&w.list, false)) {
		w.run->patience = f->hang;
		status = f->trial ? in_process_trial(&w) : in_process_random(&w);
		uvd_prog_list_free(&w.list);
	}
	if (w.run)
		uvd_prog_run_free(w.run);
	munmap(w.batch, sizeof(*w.batch));
	return status;
}

int uvd_fuzz_in_process(const struct uvd_fuzz *f)
{
	static char name[] = "uverbsctl fuzz --in-process", level[] = "--log-level", error[] = "error";
	char **argv = calloc(f->num_run_options + 4, sizeof(*argv));
	struct uvd_options o;
	int status = 2;

	if (!argv)
		return 2;
	argv[0] = name;
	argv[1] = level;
	argv[2] = error;
	for (int i = 0; i < f->num_run_options; i++)
		argv[3 + i] = f->run_options[i];
	if (uvd_options_parse(&o, UVD_PROGRAM_RUN, name, f->num_run_options + 3, argv) < 0) {
		status = in_process_worker(f, &o);
		uvd_options_free(&o);
	}
	free(argv);
	return status;
}
