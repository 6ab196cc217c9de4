/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UVD_PIN_INTERNAL_H
#define UVD_PIN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_caller;

/* As uvd_check_range(). query: may PROCMAP_QUERY be used? Both ways must give the same result, so tests try both. */
int uvd_check_range_by(struct uvd_caller *c, uint64_t addr, uint64_t length, bool write, bool query, bool *shared);

#endif
