/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads a hash table (kv.h) in a client's memory. */
#ifndef KV_TABLE_H
#define KV_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <uverbsd/mm.h>

#include "kv.h"

/* A region that begins with a valid header. Constant: what the owner writes to the header later has no effect. */
struct kv_table {
	struct uvd_mm *mm; /* a reference */
	uint64_t addr, length; /* bytes, in the owner's address space */
	uint32_t num_slots;
};

struct kv_query {
	const uint8_t *key;
	uint32_t key_len;
	uint32_t room; /* bytes for the value */
	uint8_t *buf; /* key_len + room bytes */
	const uint8_t *value; /* set by kv_table_find(), in buf */
	uint32_t value_len; /* set by kv_table_find(). Larger than room: there is no value in buf */
};

/*
 * Reads the header of a region and checks it. Takes a reference to the address space. Returns 0; -EINVAL: it is no
 * table, or the slots do not fit into the region; -EFAULT. Can block as uvd_mm_read() can.
 */
int kv_table_open(struct kv_table *table, const struct uvd_umem *umem);
/*
 * Finds the value of a key. Takes no lock: the owner may change the table meanwhile. Returns 0; -ENOENT; -EAGAIN: the
 * entry has changed in each of several attempts; -EIO: the entry is not within the region; -EFAULT. Can block as
 * uvd_mm_read() can.
 */
int kv_table_find(const struct kv_table *table, struct kv_query *query);

#endif
