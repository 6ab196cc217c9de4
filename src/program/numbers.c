/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include "numbers.h"

bool uvd_prog_numbers_has(const struct uvd_prog_numbers *n, uint64_t kernel, uint64_t ours)
{
	for (unsigned int i = 0; i < n->num; i++)
		if (n->pairs[i].kernel == kernel && n->pairs[i].ours == ours)
			return true;
	return false;
}

/* Does an object that exists have one of the two numbers, but not both? */
static bool number_is_taken(const struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours)
{
	for (unsigned int i = 0; i < n->num; i++) {
		const struct uvd_prog_number *pair = &n->pairs[i];

		if (pair->gone || strcmp(pair->kind, kind))
			continue;
		if ((kernel && pair->kernel == kernel && pair->ours != ours) ||
		    (ours && pair->ours == ours && pair->kernel != kernel))
			return true;
	}
	return false;
}

static void number_add(struct uvd_prog_numbers *n, const char *kind, const struct uvd_prog_number *pair)
{
	if (n->num == UVD_PROG_MAX_NUMBERS)
		return;
	n->pairs[n->num] = *pair;
	snprintf(n->pairs[n->num++].kind, sizeof(pair->kind), "%s", kind);
}

bool uvd_prog_numbers_bind(struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours, uint64_t owner)
{
	if (number_is_taken(n, kind, kernel, ours))
		return false;
	number_add(n, kind, &(struct uvd_prog_number){ .kernel = kernel, .ours = ours, .owner = owner });
	return true;
}

void uvd_prog_numbers_note(struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours)
{
	number_add(n, kind, &(struct uvd_prog_number){ .kernel = kernel, .ours = ours, .gone = true });
}

bool uvd_prog_numbers_check(const struct uvd_prog_numbers *n, const char *kind, uint64_t kernel, uint64_t ours)
{
	for (unsigned int i = 0; i < n->num; i++)
		if (!n->pairs[i].gone && !strcmp(n->pairs[i].kind, kind) && n->pairs[i].kernel == kernel &&
		    n->pairs[i].ours == ours)
			return true;
	return !number_is_taken(n, kind, kernel, ours);
}

void uvd_prog_numbers_end(struct uvd_prog_numbers *n, uint64_t owner)
{
	for (unsigned int i = 0; i < n->num; i++)
		n->pairs[i].gone |= n->pairs[i].owner == owner || owner == UVD_PROG_NUMBERS_ALL;
}
