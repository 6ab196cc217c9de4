/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of keys, shared by mr.c and mw.c. */
#ifndef UVD_SOFT_MR_H
#define UVD_SOFT_MR_H

#include "backends/soft/memory/memory.h"

struct soft_mr_slot {
	struct soft_mr *mr; /* or */
	struct soft_mw *mw;
	uint32_t next_free; /* 0: the last */
	uint8_t tag;
};

/* Gives it keys. -ENOMEM: the device has its most; spare: how many more than that there may be. */
int soft_mr_add(struct soft_mr *mr, uint32_t spare);
/* With the table's lock held for writing. 0: there is none left. */
uint32_t soft_index_take(struct soft_mr_table *table);
void soft_index_give(struct soft_mr_table *table, uint32_t index);
/* With the table's lock held. NULL: no MR has this key. */
struct soft_mr *soft_find_mr(struct soft_mr_table *table, uint32_t key);

#endif
