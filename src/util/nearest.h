/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* nearest.c: the known names that are nearest to a wrong one. */
#ifndef UVD_UTIL_NEAREST_H
#define UVD_UTIL_NEAREST_H

#include <stdbool.h>

enum { UVD_NEAREST_NAME = 64, UVD_NEAREST_TEXT = 3 * UVD_NEAREST_NAME + 8 };

struct uvd_nearest {
	const char *wrong;
	struct {
		char name[UVD_NEAREST_NAME]; /* "": there is none */
		unsigned int distance;
	} best[3];
};

/* Do two names differ at most in case, or in '-' for '_'? */
bool uvd_names_equal(const char *a, const char *b);
/* Tells a known name. */
void uvd_nearest_add(struct uvd_nearest *n, const char *name);
/* Writes the nearest names, "a, b, c", to text, and returns it. It is empty if no name is known. */
const char *uvd_nearest_text(const struct uvd_nearest *n, char text[UVD_NEAREST_TEXT]);

#endif
