/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl fuzz: starts the workers, shrinks what they find, and writes it. */
#include "../commands.h"
#include "fuzz.h"
#include "util/util.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 64, TRIAL_HANG = 10 };

/* Shrinking: what is looked for, and where. */
struct shrinking {
	const struct uvd_fuzz *f;
	const struct uvd_program_finding *wanted;
	char folder[PATH_MAX];
	unsigned int trials;
};

/* ---- what a worker's engine said ---------------------------------------------------------------------------------- */

static bool log_has(const char *folder, const char *text)
{
	char path[PATH_MAX + 8], line[1024];
	bool found = false;
	FILE *in;

	snprintf(path, sizeof(path), "%s/log", folder);
	in = fopen(path, "re");
	while (in && !found && fgets(line, sizeof(line), in))
		found = strstr(line, text);
	if (in)
		fclose(in);
	return found;
}

static void log_copy(const char *folder, FILE *out)
{
	char path[PATH_MAX + 8], block[4096];
	FILE *in;
	size_t len;

	snprintf(path, sizeof(path), "%s/log", folder);
	in = fopen(path, "re");
	while (in && (len = fread(block, 1, sizeof(block), in)))
		fwrite(block, 1, len, out);
	if (in)
		fclose(in);
}

/* ---- shrinking --------------------------------------------------------------------------------------------------- */

/* Runs the program on a fresh device, or on the device that was given. Returns false if there is no answer. */
static bool shrink_trial(struct shrinking *s, const struct uvd_prog *p, struct uvd_program_finding *found)
{
	struct uvd_fuzz f = *s->f;
	char path[PATH_MAX + 16];

	if (uvd_fuzz_stopped())
		return false;
	snprintf(path, sizeof(path), "%s/finding", s->folder);
	unlink(path);
	s->trials++;
	if (s->wanted->kind == UVD_PROGRAM_HANG && f.hang > TRIAL_HANG)
		f.hang = TRIAL_HANG;
	if (!uvd_fuzz_write_program(s->folder, "current.prog", p))
		return false;
	uvd_fuzz_run(&f, s->folder, "trial", NULL);
	return uvd_fuzz_read_finding(s->folder, found);
}

static bool shrink_still(void *arg, const struct uvd_prog *p)
{
	struct shrinking *s = arg;
	struct uvd_program_finding found;

	return shrink_trial(s, p, &found) && uvd_program_same(&found, s->wanted);
}

/* Writes the program in C: the calls of one more run. Returns false if that failed. */
static bool finding_write_c(const struct uvd_fuzz *f, const struct shrinking *s, const struct uvd_prog *p,
			    const char *name)
{
	unlink(name);
	uvd_fuzz_write_program(s->folder, "current.prog", p);
	uvd_fuzz_run(f, s->folder, "trial", name);
	return !access(name, F_OK);
}

static FILE *finding_open(const char *name)
{
	FILE *out = fopen(name, "we");

	if (!out)
		fprintf(stderr, "%s: %s: %s\n", UVD_FUZZ_NAME, name, uvd_errno_name(errno));
	return out;
}

static bool finding_close(FILE *out, const char *name)
{
	const bool bad = ferror(out);

	if (!fclose(out) && !bad)
		return true;
	fprintf(stderr, "%s: %s: cannot write: %s\n", UVD_FUZZ_NAME, name, uvd_errno_name(errno));
	return false;
}

/* Writes the program, or prints it if it cannot be written: it has no other copy. Returns true if it is written. */
static bool finding_write_program(const struct shrinking *s, const struct uvd_prog *p, const char *name)
{
	FILE *out = finding_open(name);

	if (out) {
		fprintf(out, "# %s\n# From %s.\n", s->wanted->text, p->name);
		uvd_prog_print(p, out);
		if (finding_close(out, name))
			return true;
	}
	uvd_prog_print(p, stdout);
	return false;
}

static bool finding_write_log(const struct shrinking *s, const char *name)
{
	FILE *out = finding_open(name);

	if (!out)
		return false;
	log_copy(s->folder, out);
	return finding_close(out, name);
}

static void finding_write(const struct uvd_fuzz *f, struct shrinking *s, struct uvd_prog *p)
{
	static const char *const endings[] = { "prog", "c", "log" };
	char names[3][PATH_MAX + 8];
	bool written[3];
	int n, left = 0;

	for (unsigned int i = 0; i < 3; i++)
		snprintf(names[i], sizeof(names[i]), "%s.%s", f->output, endings[i]);
	p->check_model = s->wanted->kind == UVD_PROGRAM_MODEL;
	p->check_log = s->wanted->kind == UVD_PROGRAM_REPORT;
	/* An engine can die when it closes the program's file: a check for leaks waits for that. */
	p->check_leaks = s->wanted->kind == UVD_PROGRAM_LEAK || (s->wanted->kind == UVD_PROGRAM_LOST && !f->device);
	written[0] = finding_write_program(s, p, names[0]);
	written[2] = finding_write_log(s, names[2]); /* before the next run, which has a log of its own */
	written[1] = finding_write_c(f, s, p, names[1]);
	for (n = 0; n < 3; n++)
		left += written[n];
	for (n = 0; n < 3; n++)
		if (written[n]) {
			left--;
			printf("%s%s", names[n], left > 1 ? ", " : left ? " and " : " written\n");
		}
}

/* The first line of a worker's program is `# seed N`. */
static void seed_read(const char *path, char *name, size_t size)
{
	char line[64] = "";
	FILE *in = fopen(path, "re");

	if (in && fgets(line, sizeof(line), in) && !strncmp(line, "# ", 2))
		snprintf(name, size, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
	if (in)
		fclose(in);
}

/* Reports the finding of a worker. */
static void finding_report(const struct uvd_fuzz *f, const char *folder, const struct uvd_program_finding *found)
{
	struct shrinking s = { .f = f, .wanted = found };
	struct uvd_prog *p = calloc(1, sizeof(*p));
	char path[PATH_MAX + 16];
	unsigned int before;

	snprintf(path, sizeof(path), "%s/current.prog", folder);
	snprintf(s.folder, sizeof(s.folder), "%s", folder);
	printf("%s\n", found->text);
	fflush(stdout);
	if (p && uvd_prog_load(p, UVD_FUZZ_NAME, path)) {
		seed_read(path, p->name, sizeof(p->name));
		before = p->num_calls;
		if (shrink_still(&s, p)) {
			uvd_prog_shrink(p, shrink_still, &s);
			printf("%u calls shrunk to %u by %u trials\n", before, p->num_calls, s.trials);
			shrink_still(&s, p); /* so that the log is of this program */
		} else if (uvd_fuzz_stopped()) {
			printf("the program is not shrunk\n");
		} else {
			printf("it did not happen again on a fresh device: the program is not shrunk\n");
		}
		finding_write(f, &s, p);
	}
	free(p);
}

/* ---- the jobs ---------------------------------------------------------------------------------------------------- */

static void fuzz_count_add(const char *folder, unsigned long *programs, unsigned long *calls)
{
	char path[PATH_MAX + 16];
	unsigned long n, c;
	FILE *in;

	snprintf(path, sizeof(path), "%s/count", folder);
	in = fopen(path, "re");
	if (in && fscanf(in, "%lu %lu", &n, &c) == 2) {
		*programs += n;
		*calls += c;
	}
	if (in)
		fclose(in);
}

static void folder_remove(const char *folder)
{
	static const char *const names[] = { "current.prog", "finding", "count", "log", "stop" };
	char path[PATH_MAX + 16];

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

struct job {
	char folder[PATH_MAX];
	int status;
};

/* Makes a folder for each job, and starts the workers. */
static bool jobs_start(const struct uvd_fuzz *f, struct job *jobs, pid_t *pids)
{
	const char *tmp = getenv("TMPDIR");

	for (unsigned int i = 0; i < f->jobs; i++) {
		struct uvd_fuzz one = *f;

		snprintf(jobs[i].folder, sizeof(jobs[i].folder), "%s/uverbsd-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
		if (!mkdtemp(jobs[i].folder)) {
			fprintf(stderr, "%s: %s: %s\n", UVD_FUZZ_NAME, jobs[i].folder, uvd_errno_name(errno));
			jobs[i].folder[0] = 0;
			return false;
		}
		one.seed = f->seed + i;
		one.step = f->jobs;
		one.first = !i;
		pids[i] = uvd_fuzz_start(&one, jobs[i].folder, "worker", NULL);
		if (pids[i] < 0)
			jobs[i].status = 2;
	}
	return true;
}

/* Tells the workers to end after the program that they are running. */
static void jobs_stop(const struct uvd_fuzz *f, const struct job *jobs)
{
	char path[PATH_MAX + 8];
	int fd;

	for (unsigned int i = 0; i < f->jobs; i++) {
		if (!jobs[i].folder[0])
			continue;
		snprintf(path, sizeof(path), "%s/stop", jobs[i].folder);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
	}
}

/* Waits for all workers. The first finding, the first failure or a signal ends the others. */
static void jobs_wait(const struct uvd_fuzz *f, struct job *jobs, pid_t *pids)
{
	bool told = false;
	int i, status;

	while ((i = uvd_fuzz_wait(f, pids, f->jobs, true, &status)) >= 0 || (uvd_fuzz_stopped() && !told)) {
		if (i >= 0)
			jobs[i].status = status;
		if (i < 0 || status) {
			jobs_stop(f, jobs);
			told |= i < 0;
		}
	}
}

/* Returns the exit status that the job stands for, and reports its finding. */
static int job_end(const struct uvd_fuzz *f, struct job *job)
{
	struct uvd_program_finding found;

	if (uvd_fuzz_read_finding(job->folder, &found) && found.kind) {
		finding_report(f, job->folder, &found);
		return 1;
	}
	if (log_has(job->folder, "Sanitizer")) {
		printf("a sanitizer's report:\n");
		log_copy(job->folder, stdout);
		return 1;
	}
	/* A worker that did not end in time was killed. */
	if (job->status && !uvd_fuzz_stopped())
		log_copy(job->folder, stderr);
	return job->status && !uvd_fuzz_stopped() ? 2 : 0;
}

static int fuzz_jobs(const struct uvd_fuzz *f)
{
	struct job *jobs = calloc(f->jobs, sizeof(*jobs));
	pid_t pids[MAX_JOBS] = {};
	unsigned long programs = 0, calls = 0;
	int status;

	uvd_fuzz_signals_block();
	status = jobs && jobs_start(f, jobs, pids) ? 0 : 2;
	if (jobs && status)
		jobs_stop(f, jobs);
	if (jobs)
		jobs_wait(f, jobs, pids);
	for (unsigned int i = 0; jobs && i < f->jobs && jobs[i].folder[0]; i++) {
		int one = status == 1 ? 1 : job_end(f, &jobs[i]);

		fuzz_count_add(jobs[i].folder, &programs, &calls);
		if (one == 1 || !status)
			status = one;
		folder_remove(jobs[i].folder);
	}
	if (status != 2)
		printf("%lu programs, %lu calls, seeds from %llu%s\n", programs, calls, (unsigned long long)f->seed,
		       status ? "" : ", nothing found");
	free(jobs);
	return status ? status : uvd_fuzz_stopped() ? 128 + uvd_fuzz_stopped() : 0;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* The options of the command line: those for the workers, and two of this process alone. */
struct fuzz_options {
	struct uvd_fuzz f;
	const char *worker, *trial;
};

static int fuzz_command(const struct uvd_args *args)
{
	struct fuzz_options *o = args->options;
	struct uvd_fuzz *f = &o->f;

	f->device = args->num_words ? args->words[0] : args->device;
	f->run_options = args->rest;
	f->num_run_options = args->num_rest;
	f->trial = o->trial;
	f->folder = o->trial ? o->trial : o->worker;
	if (f->cm && f->in_process)
		return uvd_args_wrong(args, "--rdma-cm and --in-process exclude each other");
	if (f->device && (f->num_run_options || f->in_process))
		return uvd_args_wrong(args, "DEVICE `%s` and %s exclude each other", f->device,
				      f->in_process ? "--in-process" : "options of `uverbsctl run`");
	if (!f->folder)
		return fuzz_jobs(f);
	if (f->in_process)
		return uvd_fuzz_in_process(f);
	f->control = getenv("UVERBSD_CONTROL");
	return uvd_fuzz_worker(f);
}

static const struct fuzz_options fuzz_defaults = {
	.f = { .output = "FINDING", .jobs = 1, .hang = 30, .programs = ~0ul >> 8, .seconds = 60, .seed = 1, .step = 1 },
};

const struct uvd_command uvd_command_fuzz = {
	.name = "fuzz",
	.purpose = "look for bugs of a device with random programs of calls",
	.words = "[DEVICE] [-- RUN-OPTION...]",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl fuzz --seconds 600 --jobs 4", "devices of its own, without root" },
			{ "uverbsctl fuzz -- --persona hfi1 --backend null", "with these options of `uverbsctl run`" },
			{ "uverbsctl fuzz /dev/infiniband/uverbs0", "this device, ours or the kernel's" },
			{ "uverbsctl fuzz --in-process --seconds 600",
			  "the device is part of the worker: many times as fast" },
			{},
		},
	.text =
		(const char *const[]){
			"Makes random calls until one shows a bug: the engine dies, a call does not return, a result contradicts the model of "
			"the handle table, objects stay, or the kernel reports a bug of its own. Then it drops the calls that the bug does not "
			"need, and writes FINDING.prog, which `uverbsctl replay` runs, and FINDING.c, which needs no part of uverbsd. "
			"docs/fuzzing.md has an example.",
			NULL },
	.takes = UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "seconds", .arg = "N", .help = "end after N seconds (default: 60)",
			  UVD_STORE(struct fuzz_options, f.seconds, REAL) },
			{ "programs", .arg = "N", .help = "end after N programs of calls",
			  UVD_STORE(struct fuzz_options, f.programs, NUMBER) },
			{ "seed", .arg = "S",
			  .help = "the first program's seed (default: 1); the same seed makes the same calls",
			  UVD_STORE(struct fuzz_options, f.seed, NUMBER) },
			{ "in-process",
			  .help = "each worker is its own device, without `uverbsctl run` and without system calls on it",
			  UVD_STORE(struct fuzz_options, f.in_process, FLAG) },
			{ "rdma-cm", .help = "make commands of /dev/infiniband/rdma_cm, and none of the device",
			  UVD_STORE(struct fuzz_options, f.cm, FLAG) },
			{ "jobs", .arg = "N", .help = "use that many devices, with a worker each (default: 1)",
			  UVD_STORE(struct fuzz_options, f.jobs, NUMBER), .min = 1, .max = MAX_JOBS },
			{ "hang", .arg = "SECONDS",
			  .help = "how long a program may take; longer is a hang (default: 30)",
			  UVD_STORE(struct fuzz_options, f.hang, NUMBER), .min = 1, .max = 1000000 },
			{ "output", .arg = "NAME", .help = "write NAME.prog, NAME.c and NAME.log (default: FINDING)",
			  .values = UVD_VALUES_FILE, UVD_STORE(struct fuzz_options, f.output, TEXT) },
			/* Those of a worker. */
			{ "internal-step", .arg = "N", UVD_STORE(struct fuzz_options, f.step, NUMBER) },
			{ "internal-worker", .arg = "FOLDER", UVD_STORE(struct fuzz_options, worker, TEXT) },
			{ "internal-trial", .arg = "FOLDER", UVD_STORE(struct fuzz_options, trial, TEXT) },
			{ "internal-emit", .arg = "FILE", UVD_STORE(struct fuzz_options, f.emit, TEXT) },
			{},
		},
	.size = sizeof(struct fuzz_options),
	.defaults = &fuzz_defaults,
	.exits =
		(const struct uvd_command_exit[]){
			{ "0", "nothing was found" },
			{ "1", "something was found" },
			{ "2", "the command line is wrong, or fuzzing is impossible" },
			{},
		},
	.run = fuzz_command,
};
