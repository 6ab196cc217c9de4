/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allreduce and alltoall of MPI, 1 B to 1 MiB, in several data types. Each rank compares every value that it receives.
 * The sums are whole numbers that each type holds exactly, so every order of the additions gives the same result.
 *
 *	mpi [N]		only every Nth combination of type and size
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1u << 20)
#define NUM_SIZES (sizeof(sizes) / sizeof(*sizes))

static const size_t sizes[] = { 1, 8, 200, 4096, 4104, 65536, LARGEST };

struct type {
	MPI_Datatype mpi;
	const char *name;
	size_t size;
	bool is_float;
};

static int rank, ranks;
static unsigned long compared, wrong;

/* Different for each rank, peer and index, and at most 15: an int8_t holds the sum of 8 ranks. */
static unsigned int value_of(int from, int to, size_t i)
{
	return (i * 2654435761u >> 7 ^ i * 5 ^ from * 11 ^ to * 7) % 16;
}

static void put(void *buffer, const struct type *t, size_t i, unsigned int value)
{
	char *p = (char *)buffer + i * t->size;

	if (t->is_float && t->size == sizeof(float))
		memcpy(p, &(float){ value }, t->size);
	else if (t->is_float)
		memcpy(p, &(double){ value }, t->size);
	else
		memcpy(p, &(uint64_t){ value }, t->size); /* little-endian, as every machine of this test */
}

static void compare(const void *buffer, const struct type *t, size_t i, unsigned int value, const char *what)
{
	char expected[sizeof(double)];

	put(expected, t, 0, value);
	compared++;
	if (!memcmp((const char *)buffer + i * t->size, expected, t->size))
		return;
	if (!wrong++)
		fprintf(stderr, "rank %d: %s of %s: value %zu is not %u\n", rank, what, t->name, i, value);
}

static void allreduce(const struct type *t, size_t count, void *mine, void *all, bool sums)
{
	for (size_t i = 0; i < count; i++)
		put(mine, t, i, value_of(rank, 0, i));
	memset(all, 0xff, count * t->size);
	MPI_Allreduce(mine, all, count, t->mpi, sums ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
	for (size_t i = 0; i < count; i++) {
		unsigned int sum = 0, most = 0;

		for (int r = 0; r < ranks; r++) {
			unsigned int value = value_of(r, 0, i);

			sum += value;
			most = value > most ? value : most;
		}
		compare(all, t, i, sums ? sum : most, sums ? "allreduce (sum)" : "allreduce (max)");
	}
}

static void alltoall(const struct type *t, size_t count, void *mine, void *all)
{
	for (int to = 0; to < ranks; to++)
		for (size_t i = 0; i < count; i++)
			put(mine, t, to * count + i, value_of(rank, to, i));
	memset(all, 0xff, ranks * count * t->size);
	MPI_Alltoall(mine, count, t->mpi, all, count, t->mpi, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		for (size_t i = 0; i < count; i++)
			compare(all, t, from * count + i, value_of(from, rank, i), "alltoall");
}

static void run(size_t every)
{
	const struct type types[] = {
		{ MPI_INT8_T, "int8_t", 1, false },   { MPI_INT32_T, "int32_t", 4, false },
		{ MPI_INT64_T, "int64_t", 8, false }, { MPI_FLOAT, "float", 4, true },
		{ MPI_DOUBLE, "double", 8, true },
	};
	char *mine = malloc((size_t)ranks * LARGEST), *all = malloc((size_t)ranks * LARGEST);

	if (!mine || !all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types) * NUM_SIZES; i += every) {
		const struct type *t = &types[i / NUM_SIZES];
		size_t count = sizes[i % NUM_SIZES] / t->size;

		if (!count)
			continue;
		allreduce(t, count, mine, all, true);
		allreduce(t, count, mine, all, false);
		alltoall(t, count, mine, all);
	}
	free(mine);
	free(all);
}

int main(int argc, char **argv)
{
	unsigned long mine[2], all[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	run(argc > 1 ? atoi(argv[1]) : 1);
	mine[0] = compared;
	mine[1] = wrong;
	MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks: %lu values compared, %lu wrong\n", ranks, all[0], all[1]);
	MPI_Finalize();
	return wrong != 0;
}
