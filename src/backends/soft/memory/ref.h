/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts references to an object, so that its destruction can wait for them. */
#ifndef UVD_SOFT_REF_H
#define UVD_SOFT_REF_H

#include <stdatomic.h>

struct soft_ref {
	atomic_uint word;
};

void soft_ref_get(struct soft_ref *ref);
/* The object may be freed before this returns. */
void soft_ref_put(struct soft_ref *ref);
/* Waits until all references are put. Call when no thread can get a new one any more. */
void soft_ref_wait(struct soft_ref *ref);

#endif
