/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device under a recorder that writes to a memfd, and what the trace says by `uverbsctl trace`'s own reader. */
#ifndef UVD_TESTS_TRACE_BED_H
#define UVD_TESTS_TRACE_BED_H

#include <check.h>
#include <jansson.h>

#include "harness.h"
#include "trace/trace.h"

extern struct harness bed;

/* Opens a device of this backend, and starts to record all calls into a memfd. */
void bed_open(const char *backend);
/* Ends the recorder. The trace remains in bed_trace(). */
void bed_end(void);
/* Closes everything. */
void bed_close(void);
/* The memfd. */
int bed_trace(void);
/*
 * Reads a trace from the beginning of a file. Returns its calls and entries as the JSON of `uverbsctl trace --json`, in an array
 * that the caller frees; *lost is the number of records that it lacks. *ok: the reader did not complain.
 */
json_t *bed_calls(int fd, uint64_t *lost, bool *ok);
/* Returns the call of this verb in the array; the first if there are several, or NULL. */
json_t *bed_find(json_t *calls, const char *verb);
/* The number at this name in an object of the call, "out" or "in"; -1: it is not there. */
int64_t bed_number(json_t *call, const char *in, const char *name);

#endif
