/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "control/control.h"
#include "fuzz.h"
#include "util/util.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static FILE *fuzz_file(const char *folder, const char *name, const char *mode)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, mode);
	if (!file && *mode == 'w')
		fprintf(stderr, "%s: %s: %s\n", UVD_FUZZ_NAME, path, uvd_errno_name(errno));
	return file;
}

static bool fuzz_close(FILE *file)
{
	bool ok = file && !ferror(file);

	if (file && fclose(file))
		ok = false;
	return ok;
}

bool uvd_fuzz_write_program(const char *folder, const char *name, const struct uvd_prog *p)
{
	FILE *out = fuzz_file(folder, name, "we");

	if (!out)
		return false;
	fprintf(out, "# %s\n", p->name);
	uvd_prog_print(p, out);
	return fuzz_close(out);
}

bool uvd_fuzz_write_finding(const char *folder, const struct uvd_program_finding *found)
{
	FILE *out = fuzz_file(folder, "finding", "we");

	if (!out)
		return false;
	fprintf(out, "%d %u\n%s\n%s\n%s\n%s\n%s\n", found->kind, found->d.call, found->d.target, found->d.item,
		found->d.kernel, found->d.ours, found->text);
	return fuzz_close(out);
}

static void finding_line(FILE *in, char *to, size_t size)
{
	char line[512] = "";

	if (!fgets(line, sizeof(line), in))
		line[0] = 0;
	line[strcspn(line, "\n")] = 0;
	snprintf(to, size, "%s", line);
}

bool uvd_fuzz_read_finding(const char *folder, struct uvd_program_finding *found)
{
	FILE *in = fuzz_file(folder, "finding", "re");
	int kind = -1;
	char line[32];

	memset(found, 0, sizeof(*found));
	if (!in)
		return false;
	finding_line(in, line, sizeof(line));
	if (sscanf(line, "%d %u", &kind, &found->d.call) != 2)
		kind = -1;
	found->kind = kind;
	finding_line(in, found->d.target, sizeof(found->d.target));
	finding_line(in, found->d.item, sizeof(found->d.item));
	finding_line(in, found->d.kernel, sizeof(found->d.kernel));
	finding_line(in, found->d.ours, sizeof(found->d.ours));
	finding_line(in, found->text, sizeof(found->text));
	fclose(in);
	return kind >= 0;
}

void uvd_fuzz_count(const char *folder, unsigned long programs, unsigned long calls)
{
	FILE *out = fuzz_file(folder, "count", "we");

	if (out)
		fprintf(out, "%lu %lu\n", programs, calls);
	fuzz_close(out);
}

/* ---- an engine that hangs ---------------------------------------------------------------------------------------- */

/*
 * Such an engine answers no system call of its run's processes, not even the worker's own open(). So the worker kills it: from then
 * on the guardian answers, and the worker can write what it has found.
 */
static int engine_pidfd = -1;
static volatile sig_atomic_t engine_killed;

static void engine_kill(int sig)
{
	(void)sig;
	syscall(SYS_pidfd_send_signal, engine_pidfd, SIGKILL, NULL, 0);
	engine_killed = 1;
}

static void engine_watch(const struct uvd_fuzz *f)
{
	if (!f->control)
		return;
	engine_pidfd = uvd_control_pidfd(f->control);
	signal(SIGALRM, engine_kill);
}

/* Gives the engine this many seconds until the next call; 0: any number. */
static void engine_give_time(unsigned int seconds)
{
	if (engine_pidfd >= 0)
		alarm(seconds);
}

/* Returns the seconds that one program may take in all: a hang is tried again, and the look for leaks takes 10 s. */
static unsigned int program_seconds(const struct uvd_fuzz *f)
{
	return 4 * f->hang + 20;
}

/* Looks for the hang of an engine outside of the program's own calls, as when it closes the program's file. */
static void engine_check(const struct uvd_prog_run *run, const struct uvd_prog *p, struct uvd_program_finding *found)
{
	if (found->kind == UVD_PROGRAM_HANG && engine_pidfd >= 0 && !engine_killed)
		engine_kill(0);
	if (!engine_killed || found->kind == UVD_PROGRAM_HANG)
		return;
	memset(found, 0, sizeof(*found));
	found->kind = UVD_PROGRAM_HANG;
	found->d.call = uvd_program_last_call(run, p);
	snprintf(found->d.target, sizeof(found->d.target), "%s", p->calls[found->d.call].target);
	snprintf(found->text, sizeof(found->text), "hang: the device does not answer after the program");
}

/* ---- the kernel's log -------------------------------------------------------------------------------------------- */

static struct uvd_kernel_log *kernel_log; /* of the kernel's device; NULL: do not look at it */

static void kernel_log_watch(const struct uvd_fuzz *f)
{
	static struct uvd_kernel_log log;
	const int ret = uvd_kernel_log_open(&log, UVD_KERNEL_LOG);

	if (!ret)
		kernel_log = &log;
	else if (f->first)
		fprintf(stderr, "%s: %s: %s: reports of the kernel are not looked for\n", UVD_FUZZ_NAME, UVD_KERNEL_LOG,
			uvd_errno_name(-ret));
}

/* After the last program of a worker: a task of the kernel may still be about to report what that program has done. */
static void kernel_log_wait(struct uvd_program_finding *found)
{
	if (kernel_log && !found->kind)
		uvd_program_check_log(kernel_log, UVD_PROGRAM_LATE_MS, found);
}

/* Writes the report, if the last program had one, to the folder. */
static void kernel_log_end(const struct uvd_fuzz *f)
{
	char path[PATH_MAX];
	int ret;

	if (!kernel_log)
		return;
	snprintf(path, sizeof(path), "%s/log", f->folder);
	ret = kernel_log->begins ? uvd_kernel_log_write(kernel_log, path) : 0;
	if (ret)
		fprintf(stderr, "%s: %s: %s\n", UVD_FUZZ_NAME, path, uvd_errno_name(-ret));
	uvd_kernel_log_close(kernel_log);
	kernel_log = NULL;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* A hang counts if it happens again: other load on the machine can make a program slow. */
static void worker_try(const struct uvd_fuzz *f, struct uvd_prog_run *run, const struct uvd_prog *p,
		       struct uvd_program_finding *found)
{
	uvd_program_check(run, p, f->control, true, kernel_log, found);
	for (unsigned int i = 0; found->kind == UVD_PROGRAM_HANG && !f->trial && i < UVD_PROGRAM_RACES; i++) {
		struct uvd_program_finding again;

		uvd_program_check(run, p, f->control, true, kernel_log, &again);
		if (again.kind == UVD_PROGRAM_REPORT)
			*found = again;
		if (again.kind)
			return;
		if (i + 1 == UVD_PROGRAM_RACES)
			found->kind = UVD_PROGRAM_FINE;
	}
}

static void worker_check(const struct uvd_fuzz *f, struct uvd_prog_run *run, const struct uvd_prog *p,
			 struct uvd_program_finding *found)
{
	worker_try(f, run, p, found);
	engine_check(run, p, found);
}

/* Runs the program once more, and writes its calls in C. */
static int worker_emit(const struct uvd_fuzz *f, struct uvd_prog_run *run, struct uvd_prog *p)
{
	enum { AFTER = 2 };
	int ret;

	engine_give_time(f->hang + AFTER);
	ret = uvd_prog_emit(run, p, f->emit, "Written by uverbsctl fuzz.");
	engine_give_time(0);
	return ret ? 2 : 0;
}

static int worker_trial(const struct uvd_fuzz *f, struct uvd_prog_run *run, struct uvd_prog *p)
{
	struct uvd_program_finding found = {};
	char path[PATH_MAX];
	unsigned int times;

	snprintf(path, sizeof(path), "%s/current.prog", f->folder);
	if (!uvd_prog_load(p, UVD_FUZZ_NAME, path))
		return 2;
	if (f->emit)
		return worker_emit(f, run, p);
	times = uvd_prog_races(p) ? UVD_PROGRAM_RACES : 1;
	for (unsigned int i = 0; i < times && !found.kind; i++) {
		engine_give_time(program_seconds(f));
		worker_check(f, run, p, &found);
	}
	engine_give_time(0);
	kernel_log_wait(&found);
	return uvd_fuzz_write_finding(f->folder, &found) ? found.kind != UVD_PROGRAM_FINE : 2;
}

double uvd_fuzz_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

bool uvd_fuzz_goes_on(const struct uvd_fuzz *f, double end)
{
	char stop[PATH_MAX];

	snprintf(stop, sizeof(stop), "%s/stop", f->folder);
	return uvd_fuzz_now() < end && access(stop, F_OK);
}

static int worker_random(const struct uvd_fuzz *f, struct uvd_prog_run *run, struct uvd_prog *p,
			 const struct uvd_prog_list *list)
{
	struct uvd_program_finding found = {};
	unsigned long n, calls = 0;
	const double end = uvd_fuzz_now() + f->seconds;

	for (n = 0; n < f->programs && !found.kind && uvd_fuzz_goes_on(f, end); n++) {
		(f->cm ? uvd_prog_generate_cm : uvd_prog_generate_fuzz)(p, list, f->seed + n * f->step);
		calls += p->num_calls;
		engine_give_time(program_seconds(f));
		if (!uvd_fuzz_write_program(f->folder, "current.prog", p))
			return 2;
		worker_check(f, run, p, &found);
		if (run->trouble[0])
			fprintf(stderr, "%s: %s: %s\n", UVD_FUZZ_NAME, p->name, run->trouble);
	}
	engine_give_time(0);
	kernel_log_wait(&found);
	uvd_fuzz_count(f->folder, n, calls);
	if (!found.kind)
		return 0;
	return uvd_fuzz_write_finding(f->folder, &found) ? 1 : 2;
}

int uvd_fuzz_worker(const struct uvd_fuzz *f)
{
	struct uvd_prog_list *list = calloc(1, sizeof(*list));
	struct uvd_prog *p = calloc(1, sizeof(*p));
	struct uvd_prog_run *run = NULL;
	char node[PATH_MAX];
	bool is_kernel;
	int status = 2;

	if (list && p)
		run = uvd_program_open(UVD_FUZZ_NAME, f->control ? f->control : "", f->device, node);
	is_kernel = run && uvd_program_is_kernel(node, run->driver_id);
	if (is_kernel)
		kernel_log_watch(f);
	if (run && uvd_program_list_read(list, is_kernel)) {
		run->patience = f->hang;
		engine_watch(f);
		status = f->trial ? worker_trial(f, run, p) : worker_random(f, run, p, list);
		uvd_prog_list_free(list);
	}
	kernel_log_end(f);
	if (run)
		uvd_prog_run_free(run);
	free(list);
	free(p);
	return status;
}
