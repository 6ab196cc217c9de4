/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol between bench.py and the programs that it times: one line "NAME COUNT" in, one line with the nanoseconds
 * that one call took on average out. bench.py asks all programs in turn, round after round, so that what disturbs the
 * machine disturbs all of them, and takes medians over the rounds.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench {
	const char *name;
	/* Makes `count` calls; how many calls on the device one of them is. 0: it failed. */
	unsigned int (*run)(void *arg, unsigned long count);
};

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Serves stdin until it ends. The process's exit status. */
static inline int bench_serve(const struct bench *all, void *arg)
{
	char name[64];
	unsigned long count;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (scanf("%63s %lu", name, &count) == 2) {
		const struct bench *b = all;
		uint64_t start;
		unsigned int calls;

		while (b->name && strcmp(b->name, name))
			b++;
		if (!b->name) {
			fprintf(stderr, "no benchmark %s\n", name);
			return 2;
		}
		start = bench_now();
		calls = b->run(arg, count);
		if (!calls) {
			fprintf(stderr, "%s failed\n", name);
			return 1;
		}
		printf("%.1f\n", (double)(bench_now() - start) / count / calls);
	}
	return 0;
}

#endif
