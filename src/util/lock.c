/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/lock.h"

#ifndef NDEBUG
#include <assert.h>

static __thread int held;

void uvd_locks_count(int by)
{
	held += by;
}

void uvd_might_fault(void)
{
	assert(!held);
}
#endif
