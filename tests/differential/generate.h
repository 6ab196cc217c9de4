/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef DIFF_GENERATE_H
#define DIFF_GENERATE_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"
#include "program.h"

enum { SWEEP_CALLS = 12 };

/* Random programs are named by it and the number. */
#define SEED "seed "

/* The program that belongs to this seed: mostly valid calls from the schema's rows, some of them spoiled; without what is absent. */
void generate(struct program *p, const struct list *list, uint64_t seed);

/*
 * What succeeds, with one thing changed in each call: part of all the changes that there are for one command by one front,
 * or one method. false: there is no such part; of part 0: no such target.
 */
bool sweep(struct program *p, const struct list *list, unsigned int target, unsigned int part);

#endif
