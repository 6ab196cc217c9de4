/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fuzz target: a function that gets hostile bytes. Each target is one file, which defines fuzz_target; entry.c gives it
 * to libFuzzer and AFL++, and replay.c runs it without either.
 */
#ifndef UVD_FUZZ_TARGET_H
#define UVD_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_MAX_INPUT = 16384 };

struct fuzz_gen;

struct fuzz_target {
	const char *name;
	void (*init)(void); /* once; NULL: nothing to do */
	/* Executes one input. Leaves no state behind that the next input depends on. Aborts if it finds an error. */
	void (*run)(const uint8_t *data, size_t size);
	/* Changes the input once. Returns its new size, at most `max`. NULL: bytes are changed at random. */
	size_t (*mutate)(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max);
	/* Writes seed number n, and its name of at most 63 bytes. Returns its size; 0: there is no such seed. NULL: no seeds. */
	size_t (*seed)(unsigned int n, uint8_t *data, size_t max, char name[64]);
	/* Prints the target's words as lines of a dictionary of libFuzzer. NULL: it has none. */
	void (*dictionary)(void);
	/* Prints a line about what the last input has done. NULL: there is nothing to tell. */
	void (*tell)(void);
};

extern const struct fuzz_target fuzz_target;

/* Changes the input once, by the target's own mutator or at random. The same seed makes the same change. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned int seed);

#endif
