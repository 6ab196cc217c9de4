/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Do two devices give one call the same answer? The comparison of programs walks over the bytes that a call has written, that of
 * traces over what the decoder names; both ask here about each result and each output. One thread uses a comparison.
 */
#ifndef UVD_PROG_ANSWERS_H
#define UVD_PROG_ANSWERS_H

#include "call/call.h"
#include "listed.h"
#include "numbers.h"

/* The answers of two devices, `theirs` and `ours`, to one call. */
struct uvd_prog_answers {
	struct uvd_prog_list *list; /* of differences; NULL: none is listed */
	struct uvd_prog_numbers *numbers; /* of all calls until now */
	struct uvd_prog_asked asked; /* the call, for the conditions of the list */
	bool ours_is_kernel; /* a trace, which only uverbsd records, on the kernel's device; else the kernel's are `theirs` */
	unsigned int same; /* what the devices share: a set of enum uvd_same */
	/*
	 * The table has the numbers of all objects, and each number in the call was replaced by the one that stands for it: a trace
	 * has all calls of a file. A program's line of results need not name a number, a call that the comparison cannot follow
	 * can have changed it, and a call can have the same number for both devices.
	 */
	bool complete;
	bool races; /* calls were made at the same time: their objects can have numbers one after the other, in whichever order */
	bool gives; /* the call makes its object, or gives it other numbers; else it answers those that the object has */
	uint64_t scope; /* of the numbers */
	struct uvd_prog_object of; /* that the call is about */
};

/* An output of both devices. */
struct uvd_prog_output {
	const char *name; /* as rows of the list have it: "cqe" */
	const char *outer; /* the struct in which it is, whose name a row can have, too: "odp_caps"; or NULL */
	enum uvd_role role;
	bool equal;
	bool is_number; /* of up to 8 bytes; else there are no values */
	uint64_t theirs, ours;
};

/* Is an output of this role one that the two devices cannot be compared in? */
bool uvd_prog_output_is_free(const struct uvd_prog_answers *a, enum uvd_role role);
/* All return true if the devices agree, or may differ: the output is not to be compared, or the difference is listed. */
bool uvd_prog_results_agree(const struct uvd_prog_answers *a, bool equal, const char *theirs, const char *ours);
bool uvd_prog_outputs_agree(const struct uvd_prog_answers *a, const struct uvd_prog_output *o);
/*
 * The same of a number that each device has chosen for an object (uvd_role_is_chosen()), in the answer to a call that has
 * succeeded on both. Binds the two if the call gives its object numbers. Two that are equal can be wrong, too.
 */
bool uvd_prog_numbers_agree(const struct uvd_prog_answers *a, const struct uvd_prog_output *o);
/* Is it, by the list, a number that the device has chosen for the object that the call is about? */
bool uvd_prog_output_is_own_number(const struct uvd_prog_answers *a, const char *name, enum uvd_role role);

#endif
