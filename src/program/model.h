/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A model of the handle table beside a run: which objects exist, and which refer to which. It checks the results of the
 * calls that it understands:
 *
 *	- a call that names a handle must not succeed unless the object exists and has the right type;
 *	- an object without references can be destroyed; one that others refer to cannot (EBUSY); one that does not exist
 *	  is ENOENT;
 *	- of calls at the same time, one can destroy an object, and one can close a descriptor;
 *	- a new handle is not that of another object, and a new descriptor not an open one;
 *	- an open descriptor can be closed; one that is not open cannot be closed, read from, or given to a CQ;
 *	- an event has its size: 8 bytes of a channel, 16 of an async event file;
 *	- no call on a closed device succeeds;
 *	- a write() that is too short, or an attribute that is shorter than the schema says, fails;
 *	- no byte behind an output is written, and none of the bytes between its fields is neither 0 nor untouched.
 *
 * It makes no statement where the kernel's rules leave more than one result, or where drivers differ.
 */
#ifndef UVD_PROG_MODEL_H
#define UVD_PROG_MODEL_H

#include "compare.h"

/*
 * Finds the first result of the run that contradicts the model. In *found, `kernel` is what the model expects and `ours`
 * what the device returned; `item` names what is wrong.
 */
void uvd_prog_model_check(const struct uvd_prog *p, const struct uvd_prog_run *run, struct uvd_prog_difference *found);

/* The same of rdma_cm's identifiers: model_cm.c says what it expects. */
void uvd_prog_model_check_cm(const struct uvd_prog *p, const struct uvd_prog_run *run,
			     struct uvd_prog_difference *found);

#endif
