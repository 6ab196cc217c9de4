/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A store's owner and its readers, for programs of libibverbs: the calls of kv.h, and a table in the owner's memory. */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <uverbsd/client.h>

#include "kv.h"

struct kv_published {
	uint32_t handle, number;
	uint64_t key;
};

/* driver_id: uverbsd_driver_id() of the device. The functions return 0 or an errno. */
static inline int kv_call_publish(struct ibv_context *context, int driver_id, struct ibv_mr *mr,
				  struct kv_published *store)
{
	struct uverbsd_call call = {};
	int err;

	uverbsd_handle(&call, UVERBS_ATTR_KV_STORE_PUBLISH_HANDLE, 0);
	uverbsd_handle(&call, UVERBS_ATTR_KV_STORE_PUBLISH_MR_HANDLE, mr->handle);
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_PUBLISH_RESP_NUMBER, &store->number, sizeof(store->number));
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_PUBLISH_RESP_KEY, &store->key, sizeof(store->key));
	err = uverbsd_call(context->cmd_fd, driver_id, &call, UVERBS_OBJECT_KV_STORE, UVERBS_METHOD_KV_STORE_PUBLISH);
	store->handle = uverbsd_handle_of(&call, UVERBS_ATTR_KV_STORE_PUBLISH_HANDLE);
	return err;
}

static inline int kv_call_destroy(struct ibv_context *context, int driver_id, const struct kv_published *store)
{
	struct uverbsd_call call = {};

	uverbsd_handle(&call, UVERBS_ATTR_KV_STORE_DESTROY_HANDLE, store->handle);
	return uverbsd_call(context->cmd_fd, driver_id, &call, UVERBS_OBJECT_KV_STORE, UVERBS_METHOD_KV_STORE_DESTROY);
}

/* *len: bytes of room for the value, at most 65535; on 0 and ENOSPC the value's length. */
static inline int kv_call_get(struct ibv_context *context, int driver_id, uint32_t number, uint64_t store_key,
			      const void *key, uint16_t key_len, void *value, uint32_t *len)
{
	struct uverbsd_call call = {};
	const uint16_t room = *len;

	uverbsd_in(&call, UVERBS_ATTR_KV_STORE_GET_NUMBER, &number, sizeof(number));
	uverbsd_in(&call, UVERBS_ATTR_KV_STORE_GET_STORE_KEY, &store_key, sizeof(store_key));
	uverbsd_in(&call, UVERBS_ATTR_KV_STORE_GET_KEY, key, key_len);
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_GET_RESP_VALUE, value, room);
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_GET_RESP_LENGTH, len, sizeof(*len));
	return uverbsd_call(context->cmd_fd, driver_id, &call, UVERBS_OBJECT_KV_STORE, UVERBS_METHOD_KV_STORE_GET);
}

/* ---- the owner's table ------------------------------------------------------------------------------------------- */

struct kv_memory {
	struct kv_header *header; /* the region begins here */
	struct kv_slot *slots;
	uint64_t length, used; /* bytes */
};

/* Makes an empty table in zeroed memory. Returns 0, or ENOSPC. */
static inline int kv_memory_init(struct kv_memory *memory, void *base, uint64_t length, uint32_t num_slots)
{
	memory->header = (struct kv_header *)base;
	memory->slots = (struct kv_slot *)(memory->header + 1);
	memory->length = length;
	memory->used = sizeof(struct kv_header) + (num_slots + KV_WINDOW - 1) * (uint64_t)sizeof(struct kv_slot);
	if (memory->used > length)
		return ENOSPC;
	*memory->header = (struct kv_header){ .magic = KV_MAGIC, .num_slots = num_slots };
	return 0;
}

/* Sets a key, which may be new. The bytes of an old value are not reused. Returns 0, or ENOSPC. */
static inline int kv_memory_set(struct kv_memory *memory, const void *key, uint16_t key_len, const void *value,
				uint32_t value_len)
{
	const uint64_t hash = kv_hash(key, key_len);
	struct kv_slot *slot = &memory->slots[hash & (memory->header->num_slots - 1)], *place = NULL;
	uint8_t *base = (uint8_t *)memory->header;

	for (unsigned int i = 0; i < KV_WINDOW; i++, slot++) {
		if (slot->key_len == key_len && slot->hash == hash && !memcmp(base + slot->offset, key, key_len)) {
			place = slot;
			break;
		}
		if (!slot->key_len && !place)
			place = slot;
	}
	if (!place || key_len + (uint64_t)value_len > memory->length - memory->used)
		return ENOSPC;
	memcpy(base + memory->used, key, key_len);
	memcpy(base + memory->used + key_len, value, value_len);
	__atomic_store_n(&place->version, place->version + 1, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_seq_cst);
	place->hash = hash;
	place->offset = memory->used;
	place->value_len = value_len;
	place->key_len = key_len;
	__atomic_store_n(&place->version, place->version + 1, __ATOMIC_RELEASE);
	memory->used += key_len + (uint64_t)value_len;
	return 0;
}

#endif
