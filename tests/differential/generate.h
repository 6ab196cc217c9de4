/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef DIFF_GENERATE_H
#define DIFF_GENERATE_H

#include <stdint.h>
#include "list.h"
#include "program.h"

/* Random programs are named by it and the number. */
#define SEED "seed "

/* The program that belongs to this seed: mostly valid calls from the schema's rows, some of them spoiled; without what is absent. */
void generate(struct program *p, const struct list *list, uint64_t seed);

#endif
