/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs a fuzz target without a fuzzer.
 *
 *   fuzz-TARGET FILE|FOLDER...                     executes each file once, and the empty input
 *   fuzz-TARGET --mutate NUMBER [--seed N] FILE|FOLDER...   and NUMBER changed inputs: each one change away from the last
 *   fuzz-TARGET --tell FILE|FOLDER...              and tells of each what it does, if the target can
 *   fuzz-TARGET --bench FILE|FOLDER...             serves bench/bench.py (bench/clock.h): replay, and mutate
 *   fuzz-TARGET --seeds FOLDER                     writes the seeds that the target makes itself
 *   fuzz-TARGET --dictionary                       prints a dictionary
 *
 * Before an input is executed, --mutate stores it in the file that $FUZZ_LAST names: after a crash it is there.
 */
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BENCH_CLOCK CLOCK_PROCESS_CPUTIME_ID
#include "bench/clock.h"
#include "fuzz/gen.h"

struct input {
	size_t size;
	uint8_t *data;
	char *name;
};

static struct {
	unsigned int num, room;
	struct input *inputs;
} corpus;

static void replay_stop(const char *what)
{
	perror(what);
	exit(2);
}

static void corpus_add(const uint8_t *data, size_t size, const char *name)
{
	struct input in = { size, malloc(size + 1), strdup(name) };

	if (corpus.num == corpus.room) {
		corpus.room = corpus.room * 2 + 16;
		corpus.inputs = realloc(corpus.inputs, corpus.room * sizeof(in));
	}
	if (!in.data || !in.name || !corpus.inputs)
		replay_stop("corpus");
	memcpy(in.data, data, size);
	corpus.inputs[corpus.num++] = in;
}

static void corpus_read_file(const char *path)
{
	static uint8_t bytes[FUZZ_MAX_INPUT];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n < 0)
		replay_stop(path);
	close(fd);
	corpus_add(bytes, n, path);
}

static void corpus_read(const char *path)
{
	struct dirent **names;
	char file[4096];
	struct stat st;
	int n;

	if (stat(path, &st))
		replay_stop(path);
	if (!S_ISDIR(st.st_mode)) {
		corpus_read_file(path);
		return;
	}
	n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		replay_stop(path);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			corpus_read(file);
		free(names[i]);
	}
	free(names);
}

/* ---- what the options do ----------------------------------------------------------------------------------------- */

/* The input that is executed, in a file that survives a crash. */
static uint8_t *replay_last(size_t **size)
{
	const char *path = getenv("FUZZ_LAST");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	uint8_t *at;

	if (path && (fd < 0 || ftruncate(fd, FUZZ_MAX_INPUT + sizeof(size_t))))
		replay_stop(path);
	at = mmap(NULL, FUZZ_MAX_INPUT + sizeof(size_t), PROT_READ | PROT_WRITE,
		  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		replay_stop("FUZZ_LAST");
	*size = (size_t *)(at + FUZZ_MAX_INPUT);
	return at;
}

static void mutate_and_run(unsigned long number, unsigned int seed)
{
	size_t *size;
	uint8_t *data = replay_last(&size);
	struct fuzz_gen gen;

	fuzz_gen_init(&gen, seed);
	for (unsigned long i = 0; i < number; i++) {
		if (i % 16 == 0) {
			const struct input *in = &corpus.inputs[fuzz_any(&gen, corpus.num)];

			memcpy(data, in->data, in->size);
			*size = in->size;
		}
		*size = fuzz_mutate(data, *size, FUZZ_MAX_INPUT, fuzz_any(&gen, -1u));
		fuzz_target.run(data, *size);
	}
}

static unsigned int bench_replay(void *arg, unsigned long count)
{
	for (unsigned long i = 0, at = 0; i < count; i++, at = at + 1 == corpus.num ? 0 : at + 1)
		fuzz_target.run(corpus.inputs[at].data, corpus.inputs[at].size);
	return 1;
}

static void replay_tell(void)
{
	for (unsigned int i = 0; i < corpus.num && fuzz_target.tell; i++) {
		fuzz_target.run(corpus.inputs[i].data, corpus.inputs[i].size);
		printf("%s: ", corpus.inputs[i].name);
		fuzz_target.tell();
	}
}

static unsigned int bench_mutate(void *arg, unsigned long count)
{
	mutate_and_run(count, 1);
	return 1;
}

static const struct bench benches[] = { { "replay", bench_replay }, { "mutate", bench_mutate }, { NULL, NULL } };

static int write_seeds(const char *folder)
{
	static uint8_t data[FUZZ_MAX_INPUT];
	char name[64], path[4096];
	size_t size;
	FILE *f;

	for (unsigned int n = 0; fuzz_target.seed; n++) {
		size = fuzz_target.seed(n, data, sizeof(data), name);
		if (!size)
			break;
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		f = fopen(path, "we");
		if (!f || fwrite(data, 1, size, f) != size || fclose(f))
			replay_stop(path);
	}
	return 0;
}

struct replay_options {
	unsigned long mutate;
	unsigned int seed;
	bool bench, dictionary, tell;
	const char *seeds;
};

static void replay_options_parse(struct replay_options *o, int argc, char **argv)
{
	static const struct option rows[] = { { "mutate", required_argument, NULL, 'm' },
					      { "seed", required_argument, NULL, 's' },
					      { "bench", no_argument, NULL, 'b' },
					      { "seeds", required_argument, NULL, 'w' },
					      { "dictionary", no_argument, NULL, 'd' },
					      { "tell", no_argument, NULL, 't' },
					      {} };
	int opt;

	while ((opt = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		if (opt == 'm')
			o->mutate = strtoul(optarg, NULL, 0);
		else if (opt == 's')
			o->seed = strtoul(optarg, NULL, 0);
		else if (opt == 'w')
			o->seeds = optarg;
		else if (opt == 't')
			o->tell = true;
		else if (opt == 'b' || opt == 'd')
			*(opt == 'b' ? &o->bench : &o->dictionary) = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	struct replay_options o = { .seed = 1 };

	replay_options_parse(&o, argc, argv);
	if (fuzz_target.init)
		fuzz_target.init();
	if (o.dictionary && fuzz_target.dictionary)
		fuzz_target.dictionary();
	if (o.seeds)
		return write_seeds(o.seeds);
	corpus_add((const uint8_t *)"", 0, "the empty input");
	for (int i = optind; i < argc; i++)
		corpus_read(argv[i]);
	if (o.bench)
		return bench_serve(benches, NULL);
	if (o.tell)
		replay_tell();
	if (!o.dictionary) {
		bench_replay(NULL, corpus.num);
		mutate_and_run(o.mutate, o.seed);
		printf("%s: %u inputs of the corpus, %lu changed ones\n", fuzz_target.name, corpus.num, o.mutate);
	}
	return 0;
}
