/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The key table, shared by the files of this room. */
#ifndef UVD_SOFT_MR_H
#define UVD_SOFT_MR_H

#include "backends/soft/memory/memory.h"

struct soft_mr_slot {
	struct soft_mr *mr; /* either mr or mw, or neither */
	struct soft_mw *mw;
	uint32_t next_free; /* 0: the last */
	uint8_t tag;
};

/*
 * Charges mr, adds it to the key table and sets its keys. The device may have max_mr + spare regions. Returns 0, or
 * -ENOMEM: no memory, or a limit is reached.
 */
int soft_mr_add(struct soft_mr *mr, uint32_t spare);
/* Takes and frees an index. Caller holds the table's lock for writing. Take returns 0 if there is none left. */
uint32_t soft_index_take(struct soft_mr_table *table);
void soft_index_give(struct soft_mr_table *table, uint32_t index);
/*
 * Remembers a key that ends: 64 of each user. size: bytes of a region. Caller holds the table's lock for writing. soft_ended_free():
 * frees all.
 */
void soft_key_ended(struct soft_mr_table *table, const struct uvd_account *account, uint32_t key, bool is_window,
		    uint64_t size);
void soft_ended_free(struct soft_mr_table *table);
/* Is the range within the region? */
bool soft_mr_covers(const struct uvd_mr *mr, uint64_t addr, uint32_t length);
/* Caller holds the table's lock. Returns NULL if no MR has this key. */
struct soft_mr *soft_find_mr(struct soft_mr_table *table, uint32_t key);

#endif
