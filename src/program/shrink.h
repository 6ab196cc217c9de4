/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes a program as small as its finding allows. */
#ifndef UVD_PROG_SHRINK_H
#define UVD_PROG_SHRINK_H

#include "format.h"

/* Runs the program. Returns true if the finding is still there. */
typedef bool (*uvd_prog_still)(void *arg, const struct uvd_prog *p);

/*
 * Drops calls, first many at once, and then items of calls, as long as still() returns true for the rest. On return no
 * single call and no single item of *p can be dropped. *p must have the finding.
 */
void uvd_prog_shrink(struct uvd_prog *p, uvd_prog_still still, void *arg);

#endif
