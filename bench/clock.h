/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol between bench.py and the programs that it times. A program prints "ready", then reads lines "NAME COUNT"
 * and answers each with the average time of one call, in nanoseconds. bench.py asks all programs in turn, round after
 * round, and takes medians over the rounds, so that a disturbance of the machine affects all programs alike.
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
	/*
	 * Makes `count` iterations. Returns the number of device calls in one iteration by which its time is divided,
	 * or 0 on failure.
	 */
	unsigned int (*run)(void *arg, unsigned long count);
};

/* Nanoseconds. A program that counts other ones than those that pass defines BENCH_NOW before it includes this. */
#ifndef BENCH_NOW
static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
#define BENCH_NOW bench_now
#endif

/* Answers the lines of stdin until it ends. `all` ends with a NULL name. Returns the exit status of the process. */
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
		start = BENCH_NOW();
		calls = b->run(arg, count);
		if (!calls) {
			fprintf(stderr, "%s failed\n", name);
			return 1;
		}
		printf("%.1f\n", (double)(BENCH_NOW() - start) / count / calls);
	}
	return 0;
}

#endif
