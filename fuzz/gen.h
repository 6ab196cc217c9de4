/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random numbers, and random changes of bytes. All functions depend on gen->state alone. */
#ifndef UVD_FUZZ_GEN_H
#define UVD_FUZZ_GEN_H

#include <stddef.h>
#include <stdint.h>
#include "fuzz/target.h"

enum { FUZZ_MAX_KNOWN = 64 };

/* An object that the client has: its type's id and its handle or descriptor. */
struct fuzz_known {
	uint16_t object;
	uint32_t handle;
};

struct fuzz_gen {
	uint64_t state; /* not 0 */
	unsigned int num_known; /* objects whose handles the generator uses */
	struct fuzz_known known[FUZZ_MAX_KNOWN];
};

void fuzz_gen_init(struct fuzz_gen *gen, unsigned int seed);
/* Returns a number below n; n is not 0. */
uint32_t fuzz_any(struct fuzz_gen *gen, uint32_t n);
/* Returns true in `percent` of 100 cases. */
bool fuzz_chance(struct fuzz_gen *gen, unsigned int percent);
/* Returns a number that is often a boundary: small, a power of two, all ones, or random. */
uint64_t fuzz_number(struct fuzz_gen *gen);
/* Changes, inserts, removes or copies bytes. Returns the new size, at most max. */
size_t fuzz_mutate_bytes(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max);

void fuzz_know(struct fuzz_gen *gen, uint16_t object, uint32_t handle);
/* Returns the handle of a known object of this type (0xffff: of any), or sometimes, and if there is none, a small number. */
uint32_t fuzz_handle(struct fuzz_gen *gen, uint16_t object);

#endif
