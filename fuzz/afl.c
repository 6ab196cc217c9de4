/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The target's mutator as a library for afl-fuzz (AFL_CUSTOM_MUTATOR_LIBRARY), with the functions that AFL++ looks for
 * (its docs/custom_mutators.md). afl-fuzz keeps its own mutators beside it.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/target.h"

#define EXPORTED __attribute__((visibility("default")))

struct afl_mutator {
	unsigned int seed; /* of the next change */
	uint8_t changed[FUZZ_MAX_INPUT];
};

void *afl_custom_init(void *afl, unsigned int seed);
size_t afl_custom_fuzz(void *data, uint8_t *input, size_t size, uint8_t **out, uint8_t *other, size_t other_size,
		       size_t max);
void afl_custom_deinit(void *data);

EXPORTED void *afl_custom_init(void *afl, unsigned int seed)
{
	struct afl_mutator *m = calloc(1, sizeof(*m));

	(void)afl;
	if (!m)
		return NULL;
	m->seed = seed;
	if (fuzz_target.init)
		fuzz_target.init();
	return m;
}

/* *out belongs to the mutator, and is valid until the next call. */
EXPORTED size_t afl_custom_fuzz(void *data, uint8_t *input, size_t size, uint8_t **out, uint8_t *other,
				size_t other_size, size_t max)
{
	struct afl_mutator *m = data;
	size_t ret;

	(void)other, (void)other_size;
	*out = input;
	if (size > sizeof(m->changed))
		return size;
	memcpy(m->changed, input, size);
	ret = fuzz_mutate(m->changed, size, sizeof(m->changed), m->seed++);
	if (!ret || ret > max)
		return size;
	*out = m->changed;
	return ret;
}

EXPORTED void afl_custom_deinit(void *data)
{
	free(data);
}
