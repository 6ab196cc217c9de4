/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pairs of numbers that two devices chose for the same object: a call that creates an object binds them, and from then on
 * each stands for the other. The name of the output ("lkey") is the kind of the number.
 */
#ifndef UVD_PROG_NUMBERS_H
#define UVD_PROG_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

enum { UVD_PROG_MAX_NUMBERS = 128 };

struct uvd_prog_numbers {
	unsigned int num;
	struct uvd_prog_number {
		char kind[16];
		uint64_t kernel, ours;
		uint64_t owner; /* the kernel's handle of the object */
		bool gone; /* the object is destroyed: the device can give its number to another one */
	} pairs[UVD_PROG_MAX_NUMBERS];
};

/* Does any object have this pair of numbers, of whatever kind? */
bool uvd_prog_numbers_has(const struct uvd_prog_numbers *n, uint64_t kernel, uint64_t ours);
/*
 * Binds the pair. Returns false, and binds nothing, if one of the two is the number of another object that exists. A 0
 * is no number: several objects can have it.
 */
bool uvd_prog_numbers_bind(struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours,
			   uint64_t owner);
/* Returns false if one of the two belongs to an object that has another number on the other side. */
bool uvd_prog_numbers_check(const struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours);
/* Adds a pair that belongs to no object, such as a descriptor's, which the client can close. */
void uvd_prog_numbers_note(struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours);
/* The object is destroyed, or gets new numbers. UVD_PROG_NUMBERS_ALL: it may be any object. */
void uvd_prog_numbers_end(struct uvd_prog_numbers *n, uint64_t owner);
#define UVD_PROG_NUMBERS_ALL UINT64_MAX

#endif
