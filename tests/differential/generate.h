/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef DIFF_GENERATE_H
#define DIFF_GENERATE_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"
#include "program.h"

enum { SWEEP_CALLS = 12 };

/* The name of a random program: this, and its seed. */
#define SEED "seed "

/*
 * Makes the program of this seed: mostly valid calls from the schema's rows, some of them corrupted, none that the list
 * calls absent.
 */
void generate(struct program *p, const struct list *list, uint64_t seed);

/*
 * Makes part of the sweep of one target, a command by one front or a method: a call that succeeds, repeated with one
 * change each time. Returns false if there is no such part; for part 0: no such target.
 */
bool sweep(struct program *p, const struct list *list, unsigned int target, unsigned int part);

#endif
