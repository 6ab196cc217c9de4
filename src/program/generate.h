/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UVD_PROG_GENERATE_H
#define UVD_PROG_GENERATE_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"
#include "format.h"

enum { UVD_PROG_SWEEP_CALLS = 12 };

/* The name of a random program: this, and its seed. */
#define UVD_PROG_SEED "seed "

/*
 * Makes the program of this seed: mostly valid calls from the schema's rows, some of them corrupted, none that the list
 * calls absent.
 */
void uvd_prog_generate(struct uvd_prog *p, const struct uvd_prog_list *list, uint64_t seed);

/*
 * The same for fuzzing: some calls are made beside each other, some twice; events are read, and descriptors closed, also the
 * device while calls are made. Most programs destroy their objects in the end, one after the other.
 */
void uvd_prog_generate_fuzz(struct uvd_prog *p, const struct uvd_prog_list *list, uint64_t seed);

/* The same of commands of rdma_cm: connections that end anywhere, groups, and any command in any state. */
void uvd_prog_generate_cm(struct uvd_prog *p, const struct uvd_prog_list *list, uint64_t seed);

/*
 * Makes part of the sweep of one target, a command by one front or a method: a call that succeeds, repeated with one
 * change each time. Returns false if there is no such part; for part 0: no such target.
 */
bool uvd_prog_sweep(struct uvd_prog *p, const struct uvd_prog_list *list, unsigned int target, unsigned int part);

#endif
