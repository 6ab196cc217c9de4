/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs of calls on one device: their text (format.h), random ones (generate.h), their execution (run.h), the
 * results that a file holds (expect.h), the comparison of two executions (compare.h) with a list of known differences
 * (list.h, listed.h), the numbers that two devices chose for the same objects (numbers.h), a model of the handle table (model.h),
 * shrinking (shrink.h), and the same calls in C (emit.h).
 * One thread uses a program and a run at a time. uvd_prog_build_*() and the random programs use static buffers: one
 * thread of a process may call them.
 */
#ifndef UVD_PROG_PROGRAM_H
#define UVD_PROG_PROGRAM_H

#include "answers.h"
#include "compare.h"
#include "emit.h"
#include "expect.h"
#include "format.h"
#include "generate.h"
#include "list.h"
#include "listed.h"
#include "model.h"
#include "numbers.h"
#include "record.h"
#include "run.h"
#include "shape.h"
#include "shrink.h"

#endif
