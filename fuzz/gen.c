/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "fuzz/gen.h"

enum { ANY_OBJECT = 0xffff };

void fuzz_gen_init(struct fuzz_gen *gen, unsigned int seed)
{
	gen->state = (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
	gen->num_known = 0;
}

/* xorshift64*, by Vigna */
static uint64_t gen_next(struct fuzz_gen *gen)
{
	uint64_t x = gen->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	gen->state = x;
	return x * 0x2545f4914f6cdd1dull;
}

uint32_t fuzz_any(struct fuzz_gen *gen, uint32_t n)
{
	return (gen_next(gen) >> 32) * n >> 32;
}

bool fuzz_chance(struct fuzz_gen *gen, unsigned int percent)
{
	return fuzz_any(gen, 100) < percent;
}

uint64_t fuzz_number(struct fuzz_gen *gen)
{
	switch (fuzz_any(gen, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
	case 3:
		return fuzz_any(gen, 16);
	case 4:
		return 1ull << fuzz_any(gen, 64);
	case 5:
		return (1ull << fuzz_any(gen, 64)) - 1;
	case 6:
		return -(uint64_t)fuzz_any(gen, 4);
	default:
		return gen_next(gen) >> fuzz_any(gen, 64);
	}
}

static size_t gen_insert(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	size_t at = fuzz_any(gen, size + 1), more = 1 + fuzz_any(gen, 8);

	if (size + more > max)
		return size;
	memmove(data + at + more, data + at, size - at);
	for (size_t i = 0; i < more; i++)
		data[at + i] = fuzz_chance(gen, 50) ? 0 : gen_next(gen);
	return size + more;
}

static size_t gen_remove(struct fuzz_gen *gen, uint8_t *data, size_t size)
{
	size_t at = fuzz_any(gen, size), less = 1 + fuzz_any(gen, size - at);

	memmove(data + at, data + at + less, size - at - less);
	return size - less;
}

static void gen_copy(struct fuzz_gen *gen, uint8_t *data, size_t size)
{
	size_t from = fuzz_any(gen, size), to = fuzz_any(gen, size), most = size - (from > to ? from : to);

	memmove(data + to, data + from, 1 + fuzz_any(gen, most));
}

size_t fuzz_mutate_bytes(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	uint64_t number = fuzz_number(gen);
	size_t width = 1u << fuzz_any(gen, 4);

	if (!size)
		return gen_insert(gen, data, size, max);
	switch (fuzz_any(gen, 6)) {
	case 0:
		data[fuzz_any(gen, size)] ^= 1 << fuzz_any(gen, 8);
		return size;
	case 1:
		data[fuzz_any(gen, size)] = number;
		return size;
	case 2:
		if (size >= width)
			memcpy(data + fuzz_any(gen, size / width) * width, &number, width);
		return size;
	case 3:
		return gen_insert(gen, data, size, max);
	case 4:
		return gen_remove(gen, data, size);
	default:
		gen_copy(gen, data, size);
		return size;
	}
}

void fuzz_know(struct fuzz_gen *gen, uint16_t object, uint32_t handle)
{
	if (gen->num_known < FUZZ_MAX_KNOWN)
		gen->known[gen->num_known++] = (struct fuzz_known){ object, handle };
}

uint32_t fuzz_handle(struct fuzz_gen *gen, uint16_t object)
{
	unsigned int first = gen->num_known ? fuzz_any(gen, gen->num_known) : 0;

	if (fuzz_chance(gen, 5))
		return fuzz_number(gen);
	for (unsigned int i = 0; i < gen->num_known; i++) {
		const struct fuzz_known *k = &gen->known[(first + i) % gen->num_known];

		if (k->object == object || object == ANY_OBJECT)
			return k->handle;
	}
	return fuzz_any(gen, 12);
}
