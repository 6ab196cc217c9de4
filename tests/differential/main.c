/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * differential [OPTION...] KERNEL-NODE OUR-NODE: the same programs on both nodes; see README.md.
 *
 *	--list FILE	the known differences, docs/abi-differences.md (required)
 *	--kernel N.N	the kernel whose rows of the list hold (default: the running one)
 *	--corpus DIR	run every program in it; a listed difference that none of them shows is a failure
 *	--sweep		run every call that succeeds, with every single change to it
 *	--random N	run N random programs, from --seed S (default 1)
 *	--seconds S	start no random program after S seconds
 *	--cpu N		make the calls of our node on this CPU, where the daemon runs
 *	--keep DIR	write failing programs to it, shrunk
 *	--show FILE	run one program, and print both sides' answers to each call
 *	--print S	print the random program of seed S; T/P: part P of target T of the sweep
 *
 * $CK_TAP_LOG_FILE_NAME gets a TAP line for each program of the corpus, and one for the random ones.
 */
#include <dirent.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include "program/program.h"

enum { MAX_FOUND = 60 };

struct tester {
	struct uvd_prog_list list;
	struct uvd_prog_run *kernel, *ours;
	FILE *tap;
	const char *keep;
	unsigned int failed, passed;
	/* Findings so far, so that each is reported and shrunk once. */
	unsigned int num_found, again;
	struct uvd_prog_difference found[MAX_FOUND];
};

/* Returns false if the program itself is wrong. */
static bool run_both(struct tester *t, const struct uvd_prog *p, struct uvd_prog_difference *d)
{
	uvd_prog_run_start(t->kernel, p);
	uvd_prog_run_start(t->ours, p);
	uvd_prog_run_wait(t->kernel);
	uvd_prog_run_wait(t->ours);
	if (t->kernel->trouble[0] || t->ours->trouble[0]) {
		printf("%s: %s\n", p->name, t->kernel->trouble[0] ? t->kernel->trouble : t->ours->trouble);
		return false;
	}
	uvd_prog_compare(&t->list, p, t->kernel, t->ours, d);
	return true;
}

/* ---- findings ---------------------------------------------------------------------------------------------------- */

struct wanted {
	struct tester *t;
	const struct uvd_prog_difference *d;
};

static bool still(void *arg, const struct uvd_prog *p)
{
	const struct wanted *w = arg;
	struct uvd_prog_difference d;

	return run_both(w->t, p, &d) && uvd_prog_same_difference(&d, w->d);
}

static void keep(struct tester *t, const struct uvd_prog *p, const struct uvd_prog_difference *d)
{
	char path[512];
	FILE *out;

	/* Keep random programs only: a program of the corpus is a file already. */
	if (!t->keep || strncmp(p->name, UVD_PROG_SEED, strlen(UVD_PROG_SEED)))
		return;
	snprintf(path, sizeof(path), "%s/found-%s-%s.prog", t->keep, d->target[0] == '#' ? "number" : d->target,
		 p->name + strlen(UVD_PROG_SEED));
	out = fopen(path, "w");
	if (!out) {
		perror(path);
		return;
	}
	fprintf(out, "# From %s. ", p->name);
	uvd_prog_difference_print(d, out);
	uvd_prog_print(p, out);
	fclose(out);
	printf("kept as %s\n", path);
}

static bool is_known(const struct tester *t, const struct uvd_prog_difference *d)
{
	for (unsigned int i = 0; i < t->num_found; i++)
		if (uvd_prog_same_difference(&t->found[i], d))
			return true;
	return false;
}

/* Runs the program up to 3 times. Returns true if it hangs or differs again; *d is then that difference. */
static bool hangs_again(struct tester *t, const struct uvd_prog *p, struct uvd_prog_difference *d)
{
	struct uvd_prog_difference now;

	for (int i = 0; i < 3; i++) {
		if (!run_both(t, p, &now) || !now.found)
			continue;
		*d = now;
		return true;
	}
	return false;
}

/* Reports and shrinks an unlisted difference. Returns false for a hang that does not recur: no failure. */
static bool report(struct tester *t, const struct uvd_prog *p, struct uvd_prog_difference *d)
{
	struct wanted wanted = { t, d };
	static struct uvd_prog small;

	if ((!strcmp(d->kernel, UVD_PROG_HANG) || !strcmp(d->ours, UVD_PROG_HANG)) && !hangs_again(t, p, d)) {
		/* Other load on the machine can make a program exceed its time limit. */
		printf("---- %s: a hang that did not happen again: ", p->name);
		uvd_prog_difference_print(d, stdout);
		return false;
	}
	if (is_known(t, d)) {
		t->again++;
		return true;
	}
	printf("---- %s: ", p->name);
	uvd_prog_difference_print(d, stdout);
	small = *p;
	if (still(&wanted, &small)) {
		small.num_calls = d->call + 1;
		uvd_prog_shrink(&small, still, &wanted);
	} else {
		printf("(did not happen again)\n");
	}
	uvd_prog_print(&small, stdout);
	keep(t, &small, d);
	fflush(stdout);
	if (t->num_found < MAX_FOUND)
		t->found[t->num_found++] = *d;
	return true;
}

/* ---- the corpus -------------------------------------------------------------------------------------------------- */

static void tap(struct tester *t, bool ok, const char *name)
{
	if (t->tap)
		fprintf(t->tap, "%sok - differential: %s\n", ok ? "" : "not ", name);
	if (ok)
		t->passed++;
	else
		t->failed++;
}

static int is_program(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && !strcmp(entry->d_name + len - 5, ".prog");
}

static void run_corpus(struct tester *t, const char *dir)
{
	static struct uvd_prog p;
	struct dirent **names;
	struct uvd_prog_difference d;
	char path[512];
	int n = scandir(dir, &names, is_program, alphasort);

	if (n <= 0) {
		printf("%s: no programs\n", dir);
		tap(t, false, "the corpus");
		return;
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (!uvd_prog_load(&p, "differential", path) || !run_both(t, &p, &d)) {
			tap(t, false, names[i]->d_name);
			continue;
		}
		tap(t, !d.found || !report(t, &p, &d), names[i]->d_name);
	}
	for (unsigned int i = 0; i < t->list.num; i++) {
		if (t->list.rows[i].hits || t->list.rows[i].sometimes)
			continue;
		printf("%s: listed, but no program of the corpus shows it\n", t->list.rows[i].name);
		snprintf(path, sizeof(path), "%s is still a difference", t->list.rows[i].name);
		tap(t, false, path);
	}
	printf("corpus: %d programs\n", n);
}

/* ---- random programs --------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void run_random(struct tester *t, uint64_t seed, unsigned int count, double seconds)
{
	unsigned int found = t->num_found, again = t->again, n, calls = 0;
	static struct uvd_prog p;
	double began = now();
	struct uvd_prog_difference d;
	char name[160];

	for (n = 0; n < count && now() - began < seconds && t->num_found < MAX_FOUND; n++) {
		uvd_prog_generate(&p, &t->list, seed + n);
		calls += p.num_calls;
		if (!run_both(t, &p, &d)) {
			uvd_prog_print(&p, stdout);
			t->num_found++;
		} else if (d.found) {
			report(t, &p, &d);
		}
	}
	printf("random: %u programs, %u calls, seeds %llu to %llu, %.0f s, %u differences%s\n", n, calls,
	       (unsigned long long)seed, (unsigned long long)(seed + n - 1), now() - began, t->num_found - found,
	       t->again > again ? ", some of them often" : "");
	snprintf(name, sizeof(name), "%u random programs from seed %llu", n, (unsigned long long)seed);
	tap(t, t->num_found == found && t->again == again, name);
}

static void run_sweep(struct tester *t)
{
	unsigned int found = t->num_found, programs = 0, calls = 0;
	static struct uvd_prog p;
	double began = now();
	struct uvd_prog_difference d;

	for (unsigned int target = 0; uvd_prog_sweep(&p, &t->list, target, 0); target++)
		for (unsigned int part = 0; uvd_prog_sweep(&p, &t->list, target, part) && t->num_found < MAX_FOUND;
		     part++) {
			programs++;
			calls += p.num_calls;
			if (!run_both(t, &p, &d))
				t->num_found++;
			else if (d.found)
				report(t, &p, &d);
		}
	printf("sweep: %u programs, %u calls, %.0f s, %u differences\n", programs, calls, now() - began,
	       t->num_found - found);
	tap(t, t->num_found == found, "what succeeds, with one thing changed");
}

/* ---- one program ------------------------------------------------------------------------------------------------- */

static void show_values(const struct uvd_prog_record *r)
{
	for (unsigned int i = 0; i < r->num_regions; i++)
		for (unsigned int f = 0; f < r->regions[i].fields.n; f++) {
			uint64_t value;

			if (uvd_prog_output(r, r->regions[i].fields.f[f].name, &value))
				printf(" %s=%#llx", r->regions[i].fields.f[f].name, (unsigned long long)value);
		}
	printf("\n");
}

static int show(struct tester *t, const char *path)
{
	static struct uvd_prog p;
	struct uvd_prog_difference d;

	if (!uvd_prog_load(&p, "differential", path) || !run_both(t, &p, &d))
		return 1;
	for (unsigned int i = 0; i < p.num_calls; i++) {
		uvd_prog_call_print(&p.calls[i], stdout);
		printf("    kernel  %s",
		       t->kernel->records[i].done ? uvd_prog_result(&t->kernel->records[i]) : "not done");
		show_values(&t->kernel->records[i]);
		printf("    uverbsd %s", t->ours->records[i].done ? uvd_prog_result(&t->ours->records[i]) : "not done");
		show_values(&t->ours->records[i]);
	}
	for (unsigned int i = 0; i < t->list.num; i++)
		if (t->list.rows[i].hits)
			printf("listed: %s\n", t->list.rows[i].name);
	if (d.found)
		uvd_prog_difference_print(&d, stdout);
	return d.found;
}

static int print_program(struct uvd_prog *p, const struct uvd_prog_list *list, const char *which)
{
	unsigned int target, part;

	if (sscanf(which, "%u/%u", &target, &part) != 2)
		uvd_prog_generate(p, list, strtoull(which, NULL, 0));
	else if (!uvd_prog_sweep(p, list, target, part))
		return 1;
	printf("# %s\n", p->name);
	uvd_prog_print(p, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "list", 1, NULL, 'l' },    { "corpus", 1, NULL, 'c' },
						 { "random", 1, NULL, 'r' },  { "seed", 1, NULL, 's' },
						 { "keep", 1, NULL, 'k' },    { "show", 1, NULL, 'w' },
						 { "seconds", 1, NULL, 't' }, { "cpu", 1, NULL, 'u' },
						 { "sweep", 0, NULL, 'x' },   { "print", 1, NULL, 'p' },
						 { "kernel", 1, NULL, 'K' },  {} };
	const char *list = NULL, *corpus = NULL, *one = NULL, *print = NULL, *release = NULL;
	const char *tap_file = getenv("CK_TAP_LOG_FILE_NAME");
	struct utsname running;
	static struct tester t;
	static struct uvd_prog p;
	unsigned int count = 0;
	bool sweeping = false;
	double seconds = 1e9;
	uint64_t seed = 1;
	int opt, cpu = -1;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (opt) {
		case 'l':
			list = optarg;
			break;
		case 'K':
			release = optarg;
			break;
		case 'c':
			corpus = optarg;
			break;
		case 'r':
			count = strtoul(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'x':
			sweeping = true;
			break;
		case 'u':
			cpu = atoi(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		case 'k':
			t.keep = optarg;
			break;
		case 'w':
			one = optarg;
			break;
		case 'p':
			print = optarg;
			break;
		default:
			return 2;
		}
	}
	if (!release && !uname(&running))
		release = running.release;
	if (list && uvd_prog_list_read(&t.list, list))
		uvd_prog_list_keep_kernel(&t.list, release);
	if (print && t.list.num)
		return print_program(&p, &t.list, print);
	if (argc - optind != 2 || !t.list.num) {
		fprintf(stderr, "usage: %s --list FILE [OPTION...] KERNEL-NODE OUR-NODE\n", argv[0]);
		return 2;
	}
	t.kernel = uvd_prog_run_new(argv[optind], -1);
	t.ours = uvd_prog_run_new(argv[optind + 1], cpu);
	if (!t.kernel || !t.ours) {
		fprintf(stderr, "%s: no device that answers\n", argv[optind + !!t.kernel]);
		return 2;
	}
	if (one)
		return show(&t, one);
	t.tap = tap_file ? fopen(tap_file, "w") : NULL;
	if (corpus)
		run_corpus(&t, corpus);
	if (sweeping)
		run_sweep(&t);
	if (count)
		run_random(&t, seed, count, seconds);
	printf("%u passed, %u failed\n", t.passed, t.failed);
	if (t.tap)
		fclose(t.tap);
	return t.failed ? 1 : 0;
}
