/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the backends that generate completions themselves. */
#ifndef UVD_BACKENDS_H
#define UVD_BACKENDS_H

#include "backends/comp_cntr.h"
#include "backends/cq_ring.h"

#endif
