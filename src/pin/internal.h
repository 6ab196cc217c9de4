/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UVD_PIN_INTERNAL_H
#define UVD_PIN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_caller;

/* uvd_check_range(); query: PROCMAP_QUERY may be used. Both ways must say the same, so tests try both. */
int uvd_check_range_by(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool query, bool *shared);

#endif
