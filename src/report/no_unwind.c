/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A build without libdw. */
#include "report/internal.h"

bool uvd_report_has_stacks(void)
{
	return false;
}

void uvd_report_unwind(struct uvd_report *r)
{
}
