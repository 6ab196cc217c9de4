/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "fuzz.h"
#include "util/util.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char who[] = "uverbsctl fuzz";

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static FILE *fuzz_file(const char *folder, const char *name, const char *mode)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, mode);
	if (!file && *mode == 'w')
		fprintf(stderr, "%s: %s: %s\n", who, path, uvd_errno_name(errno));
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

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* A hang counts if it happens again: other load on the machine can make a program slow. */
static void worker_check(const struct uvd_fuzz *f, struct uvd_prog_run *run, const struct uvd_prog *p,
			 struct uvd_program_finding *found)
{
	uvd_program_check(run, p, f->control, true, found);
	for (unsigned int i = 0; found->kind == UVD_PROGRAM_HANG && !f->trial && i < UVD_PROGRAM_RACES; i++) {
		struct uvd_program_finding again;

		uvd_program_check(run, p, f->control, true, &again);
		if (again.kind)
			return;
		if (i + 1 == UVD_PROGRAM_RACES)
			found->kind = UVD_PROGRAM_FINE;
	}
}

static int worker_trial(const struct uvd_fuzz *f, struct uvd_prog_run *run, struct uvd_prog *p)
{
	struct uvd_program_finding found = {};
	char path[PATH_MAX];
	unsigned int times;

	snprintf(path, sizeof(path), "%s/current.prog", f->folder);
	if (!uvd_prog_load(p, who, path))
		return 2;
	if (f->emit)
		return uvd_prog_emit(run, p, f->emit, "Written by uverbsctl fuzz.") ? 2 : 0;
	times = uvd_prog_races(p) ? UVD_PROGRAM_RACES : 1;
	for (unsigned int i = 0; i < times && !found.kind; i++)
		worker_check(f, run, p, &found);
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
		uvd_prog_generate_fuzz(p, list, f->seed + n * f->step);
		calls += p->num_calls;
		if (!uvd_fuzz_write_program(f->folder, "current.prog", p))
			return 2;
		worker_check(f, run, p, &found);
		if (run->trouble[0])
			fprintf(stderr, "%s: %s: %s\n", who, p->name, run->trouble);
	}
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
	int status = 2;

	if (list && p)
		run = uvd_program_open(who, f->control ? f->control : "", f->device, node);
	if (run && uvd_program_list_read(list, uvd_program_is_kernel(node, run->driver_id))) {
		run->patience = f->hang;
		status = f->trial ? worker_trial(f, run, p) : worker_random(f, run, p, list);
		uvd_prog_list_free(list);
	}
	if (run)
		uvd_prog_run_free(run);
	free(list);
	free(p);
	return status;
}
