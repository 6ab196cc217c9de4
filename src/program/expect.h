/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The results that a program file holds. Behind `=` stands what the call before it is to return:
 *
 *	ok, an errno's name, or RET/ERRNO	the result; `ok` of a write() is its length
 *	FIELD=NUMBER				a field of an output; `handle` is also the new handle or fd of a method
 *	FIELD=xHEX				one of more than 8 bytes
 *	ATTR+0=xHEX				all bytes of an output without fields; `out` of commands
 *	untouched				no byte of any output is written
 *
 * What is not named is not compared, but for the bytes behind the outputs: nothing may write there.
 */
#ifndef UVD_PROG_EXPECT_H
#define UVD_PROG_EXPECT_H

#include "run.h"

/* Writes the results of the run into the program. Calls that were not carried out lose theirs. */
void uvd_prog_expect_record(struct uvd_prog *p, const struct uvd_prog_run *run);

/*
 * Makes a run that has the results that the program holds, and the actual ones where it holds none. Returns NULL, or
 * what is wrong with the results of call *at.
 */
const char *uvd_prog_expect_run(const struct uvd_prog *p, const struct uvd_prog_run *actual,
				struct uvd_prog_run *expected, unsigned int *at);

#endif
