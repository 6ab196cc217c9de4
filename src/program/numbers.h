/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pairs of numbers that two devices chose for the same object: a call that creates an object binds them, and from then on
 * each stands for the other. A replay of a program compares the kernel's device with ours, a replay of a trace the recorded
 * device with ours. One thread uses a table.
 */
#ifndef UVD_PROG_NUMBERS_H
#define UVD_PROG_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/roles.h>

enum uvd_prog_number_state {
	UVD_PROG_NUMBER_LIVE, /* of an object that exists: no other one has one of the two */
	UVD_PROG_NUMBER_GONE, /* the object is destroyed, or can be without our knowing: a device can give its number to another one */
	UVD_PROG_NUMBER_LOST, /* ours has no such object */
};

/* An object: the other device's handle, in an open file. */
struct uvd_prog_object {
	uint64_t file; /* a program has one: 0 */
	uint64_t handle;
};
/* No handle: all objects of the file. */
#define UVD_PROG_ALL_OBJECTS UINT64_MAX

struct uvd_prog_number {
	struct uvd_prog_number *next;
	enum uvd_role kind; /* numbers of different kinds have nothing to do with each other */
	uint64_t scope; /* where a number of this kind has one meaning: a device, or an open file */
	uint64_t theirs, ours;
	struct uvd_prog_object of;
	enum uvd_prog_number_state state;
};

/* Starts as zeroes. Pair it with uvd_prog_numbers_clear(). */
struct uvd_prog_numbers {
	struct uvd_prog_number *live, *others; /* by state; the newest is the first */
	void *by_theirs; /* a tree of the newest of each number (tsearch) */
	void *by_ours; /* likewise of those that live */
};

void uvd_prog_numbers_clear(struct uvd_prog_numbers *n);
/* Does any object have this pair of numbers, of whatever kind, or did one have it? */
bool uvd_prog_numbers_has(const struct uvd_prog_numbers *n, uint64_t theirs, uint64_t ours);
/* Returns the newest pair with this number of the other device, or NULL. */
const struct uvd_prog_number *uvd_prog_numbers_find(const struct uvd_prog_numbers *n, enum uvd_role kind,
						    uint64_t scope, uint64_t theirs);
/*
 * Binds a pair, which is copied. Returns false, and binds nothing, if one of the two is the number of another object that exists.
 * A 0 is no number: several objects can have it.
 */
bool uvd_prog_numbers_bind(struct uvd_prog_numbers *n, const struct uvd_prog_number *pair);
/* Do the two stand for each other: does an object that exists have them? */
bool uvd_prog_numbers_are_bound(const struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope, uint64_t theirs,
				uint64_t ours);
/* Returns false if one of the two belongs to an object that exists and has another number on the other side. */
bool uvd_prog_numbers_check(const struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope, uint64_t theirs,
			    uint64_t ours);
/* Adds a pair, with its state, whatever there is: such as a descriptor's, which the client can close. */
void uvd_prog_numbers_note(struct uvd_prog_numbers *n, const struct uvd_prog_number *pair);
/* The other device has given the number to a new object: the one that had it is destroyed. */
void uvd_prog_numbers_reuse(struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope, uint64_t theirs);
/* The object is destroyed, or gets new numbers. */
void uvd_prog_numbers_end(struct uvd_prog_numbers *n, struct uvd_prog_object of);
/* Removes the numbers of a scope, those that live and those that are gone. */
void uvd_prog_numbers_forget(struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope);

#endif
