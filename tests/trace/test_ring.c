/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ring of a recorder: what goes in comes out, across its end. */
#include <stdlib.h>

#include "bed.h"
#include "trace/ring.h"
#include "../suite.h"

START_TEST(test_bytes_come_out_in_order_across_the_end_of_the_ring)
{
	uint8_t in[40], next_in = 0, next_out = 0;
	struct uvd_ring ring;
	const uint8_t *out;
	size_t len;

	ck_assert_int_eq(uvd_ring_init(&ring, 64), 0);
	for (int round = 0; round < 1000; round++) {
		const size_t n = round % 40 + 1;

		while (uvd_ring_room(&ring) < n) {
			out = uvd_ring_next(&ring, &len);
			ck_assert_uint_gt(len, 0);
			for (size_t i = 0; i < len; i++)
				ck_assert_uint_eq(out[i], next_out++);
			uvd_ring_took(&ring, len);
		}
		for (size_t i = 0; i < n; i++)
			in[i] = next_in++;
		uvd_ring_put(&ring, in, n);
	}
	uvd_ring_fini(&ring);
}
END_TEST

START_TEST(test_a_full_ring_has_no_room_and_an_empty_one_nothing_next)
{
	const uint8_t bytes[16] = {};
	struct uvd_ring ring;
	size_t len;

	ck_assert_int_eq(uvd_ring_init(&ring, sizeof(bytes)), 0);
	uvd_ring_next(&ring, &len);
	ck_assert_uint_eq(len, 0);
	uvd_ring_put(&ring, bytes, sizeof(bytes));
	ck_assert_uint_eq(uvd_ring_room(&ring), 0);
	uvd_ring_next(&ring, &len);
	ck_assert_uint_eq(len, sizeof(bytes));
	uvd_ring_took(&ring, 3);
	ck_assert_uint_eq(uvd_ring_room(&ring), 3);
	uvd_ring_fini(&ring);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("ring");

	tcase_add_test(t, test_bytes_come_out_in_order_across_the_end_of_the_ring);
	tcase_add_test(t, test_a_full_ring_has_no_room_and_an_empty_one_nothing_next);
	return run_suite("trace ring", t);
}
