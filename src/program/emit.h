/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program in C: the bytes of its calls at the addresses that they had, with no library but the C library. Handles and
 * keys are those of the run that wrote it, so it reproduces a finding on a device that chooses the same ones. What
 * `event`, `recv` and `close` name is what the C program's own calls have returned.
 *
 * The run's child writes the calls (run->emit names the file), so that one which never returns is in the file, too.
 */
#ifndef UVD_PROG_EMIT_H
#define UVD_PROG_EMIT_H

#include "run.h"

/* Runs the program on run->node, and writes it to `path`. comment: one line. Returns 0, or -1 with errno. */
int uvd_prog_emit(struct uvd_prog_run *run, const struct uvd_prog *p, const char *path, const char *comment);

/* For the child: call before the call is made; and before the first of n calls that are made at the same time. */
void uvd_prog_emit_call(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
			const struct uvd_prog_built *b);
void uvd_prog_emit_group(struct uvd_prog_run *run, unsigned int n);
/* For the child: an event, a recv or a close, before it is made. */
void uvd_prog_emit_other(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i);
/* For the child: after a call, whose message is at `msg`: keeps the outputs that later calls of the kinds above name. */
void uvd_prog_emit_outputs(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const uint8_t *msg);

#endif
