/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef DIFF_GENERATE_H
#define DIFF_GENERATE_H

#include <stdint.h>
#include "program.h"

/* The program that belongs to this seed: mostly valid calls from the schema's rows, some of them spoiled. */
void generate(struct program *p, uint64_t seed);

#endif
