/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reads a hash table in a client's memory. The owner is hostile, and writes while we read: everything is read once into
 * our memory and then checked, and every address is checked against the region before it is used.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "table.h"

enum { KV_ATTEMPTS = 16 };

/* Reads bytes of the region. -EIO: they are not all within it. */
static int kv_read(const struct kv_table *table, void *dst, uint64_t offset, uint64_t len)
{
	if (offset > table->length || len > table->length - offset)
		return -EIO;
	return uvd_mm_read(table->mm, dst, table->addr + offset, len);
}

int kv_table_open(struct kv_table *table, const struct uvd_umem *umem)
{
	struct kv_header header;
	uint64_t need;
	int ret;

	*table = (struct kv_table){ .mm = umem->mm, .addr = umem->addr, .length = umem->length };
	ret = kv_read(table, &header, 0, sizeof(header));
	if (ret)
		return ret == -EIO ? -EINVAL : ret;
	if (header.magic != KV_MAGIC || header.reserved || !header.num_slots || header.num_slots > KV_MAX_SLOTS ||
	    header.num_slots & (header.num_slots - 1))
		return -EINVAL;
	need = sizeof(header) + (header.num_slots + KV_WINDOW - 1) * (uint64_t)sizeof(struct kv_slot);
	if (need > table->length)
		return -EINVAL;
	table->num_slots = header.num_slots;
	uvd_mm_ref(table->mm);
	return 0;
}

/* Reads the key and value of a slot. Returns 0; 1: it is another key; or a negative errno. */
static int kv_read_entry(const struct kv_table *table, const struct kv_slot *slot, struct kv_query *query)
{
	const bool fits = slot->value_len <= query->room;
	int ret;

	if (slot->value_len > table->length)
		return -EIO;
	ret = kv_read(table, query->buf, slot->offset, query->key_len + (fits ? slot->value_len : 0));

	if (ret)
		return ret;
	if (memcmp(query->buf, query->key, query->key_len))
		return 1;
	query->value = query->buf + query->key_len;
	query->value_len = slot->value_len;
	return 0;
}

/*
 * Has the owner changed the slot since it was copied? Compare the whole slot: the first copy may have taken `offset`
 * before and `version` after a change. If the memory is gone, the next attempt fails.
 */
static bool kv_slot_changed(const struct kv_table *table, uint64_t at, const struct kv_slot *slot)
{
	struct kv_slot now;

	return kv_read(table, &now, at, sizeof(now)) || memcmp(&now, slot, sizeof(now));
}

/* One attempt. -EAGAIN: the owner is changing the entry, or has changed it meanwhile. */
static int kv_find_once(const struct kv_table *table, struct kv_query *query, uint64_t hash)
{
	const uint64_t at = sizeof(struct kv_header) + (hash & (table->num_slots - 1)) * sizeof(struct kv_slot);
	struct kv_slot slots[KV_WINDOW];
	int ret = kv_read(table, slots, at, sizeof(slots)), absent = -ENOENT;

	if (ret)
		return ret;
	for (unsigned int i = 0; i < KV_WINDOW; i++) {
		if (slots[i].version & 1) {
			absent = -EAGAIN; /* it may be this key's slot */
			continue;
		}
		if (slots[i].hash != hash || slots[i].key_len != query->key_len)
			continue;
		ret = kv_read_entry(table, &slots[i], query);
		if (kv_slot_changed(table, at + i * sizeof(slots[0]), &slots[i]))
			return -EAGAIN;
		if (ret <= 0)
			return ret;
	}
	return absent;
}

int kv_table_find(const struct kv_table *table, struct kv_query *query)
{
	const uint64_t hash = kv_hash(query->key, query->key_len);
	int ret = -EAGAIN;

	for (unsigned int i = 0; i < KV_ATTEMPTS && ret == -EAGAIN; i++)
		ret = kv_find_once(table, query, hash);
	return ret;
}
