/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client's memory as a trace has it: the last piece counts, and many small pieces cost no more work than few large ones. */
#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"
#include "../suite.h"

enum { BASE = 1000, SPACE = 200, MOST = 1 << 14 };

static uint8_t *pieces;
static size_t len;

static void setup(void)
{
	pieces = calloc(MOST, sizeof(struct uvd_piece) + 64);
	len = 0;
}

static void teardown(void)
{
	free(pieces);
}

static void add(uint32_t kind, uint64_t addr, uint32_t kept, uint8_t byte)
{
	struct uvd_piece *p = (void *)(pieces + len);

	*p = (struct uvd_piece){ .addr = addr, .len = kept, .kept = kept, .kind = kind };
	memset(p + 1, byte, kept);
	len += sizeof(*p) + (kept + 7) / 8 * 8;
}

static struct uvd_trace_image indexed(void)
{
	struct uvd_trace_image image = { .pieces = pieces, .len = len };

	ck_assert(uvd_image_ok(&image));
	ck_assert(uvd_image_index(&image));
	return image;
}

START_TEST(test_of_overlapping_pieces_the_last_one_counts)
{
	srandom(_i);
	for (int round = 0; round < 50; round++) {
		uint8_t model[SPACE + 64] = {}, got[SPACE + 64];
		struct uvd_trace_image image;

		len = 0;
		for (int i = 1; i <= 30; i++) {
			const uint32_t at = random() % SPACE, kept = random() % 40;

			add(UVD_PIECE_READ, BASE + at, kept, i);
			memset(model + at, i, kept);
			add(UVD_PIECE_WRITTEN, BASE + at + 5, kept, 99); /* another kind */
		}
		image = indexed();
		for (size_t at = 0; at < SPACE; at++) {
			const size_t known = strnlen((char *)model + at, SPACE + 40 - at);

			ck_assert_uint_eq(uvd_image_get(&image, UVD_PIECE_READ, BASE + at, got, SPACE + 40 - at),
					  known);
			ck_assert_mem_eq(got, model + at, known);
		}
		uvd_image_index_free(&image);
	}
}
END_TEST

START_TEST(test_a_piece_at_the_end_of_memory_is_not_at_its_beginning)
{
	struct uvd_trace_image image;
	uint8_t got[32];

	add(UVD_PIECE_READ, UINT64_MAX - 7, 16, 1);
	image = indexed();
	ck_assert_uint_eq(uvd_image_get(&image, UVD_PIECE_READ, UINT64_MAX - 7, got, sizeof(got)), 7);
	ck_assert_uint_eq(uvd_image_get(&image, UVD_PIECE_READ, 0, got, sizeof(got)), 0);
	uvd_image_index_free(&image);
}
END_TEST

/* Returns the work for n pieces of one byte, which overlap as `stride` says, and one copy of all bytes. */
static uint64_t work_of(unsigned int n, unsigned int kept, bool backwards)
{
	uint8_t *got = malloc(n + kept);
	struct uvd_trace_image image;
	uint64_t steps;

	len = 0;
	for (unsigned int i = 0; i < n; i++)
		add(UVD_PIECE_READ, BASE + (backwards ? n - i : i), kept, 1);
	image = indexed();
	uvd_image_get(&image, UVD_PIECE_READ, BASE + backwards, got, n);
	steps = uvd_image_steps(&image);
	uvd_image_index_free(&image);
	free(got);
	return steps;
}

START_TEST(test_the_work_grows_as_the_number_of_pieces_does)
{
	for (unsigned int kept = 1; kept <= 64; kept += 21)
		for (int backwards = 0; backwards < 2; backwards++) {
			const uint64_t few = work_of(MOST / 16, kept, backwards), many = work_of(MOST, kept, backwards);

			/* Quadratic work would be 256 times as much. */
			ck_assert_uint_lt(many, 24 * few);
			ck_assert_uint_lt(many, 12 * MOST);
		}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("image");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_of_overlapping_pieces_the_last_one_counts, 0, 4);
	tcase_add_test(tc, test_a_piece_at_the_end_of_memory_is_not_at_its_beginning);
	tcase_add_test(tc, test_the_work_grows_as_the_number_of_pieces_does);
	return run_suite("trace image", tc);
}
