/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts users, so that the end can wait for them. */
#ifndef UVD_SOFT_REF_H
#define UVD_SOFT_REF_H

#include <stdatomic.h>

struct soft_ref {
	atomic_uint word;
};

void soft_ref_get(struct soft_ref *ref);
/* The object may be gone when this returns. */
void soft_ref_put(struct soft_ref *ref);
/* Nobody can get a new reference any more. Returns when all are put. */
void soft_ref_wait(struct soft_ref *ref);

#endif
