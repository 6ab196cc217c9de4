/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ABI of the plug-in kv, for clients: a GET from a hash table in another process's registered memory, by one call.
 * It includes nothing but the kernel's types, so a client can copy it.
 *
 * The owner of a table registers it as an MR with IBV_ACCESS_REMOTE_READ, publishes the MR, and gives the store's
 * number and key to those that may read. Each device has its own stores.
 */
#ifndef KV_H
#define KV_H

#include <linux/types.h>

#define UVERBS_OBJECT_KV_STORE 0x10a0
#define UVERBS_OBJECT_KV_READER 0x10a1

enum {
	UVERBS_METHOD_KV_STORE_PUBLISH = 0x10a0,
	UVERBS_METHOD_KV_STORE_GET,
	UVERBS_METHOD_KV_STORE_DESTROY,
	UVERBS_METHOD_KV_STORE_QUERY,
};

/*
 * PUBLISH reads the geometry from the MR's beginning, once. The MR stays in use until the handle is destroyed, so
 * deregistering it fails with EBUSY. EINVAL: no valid table. EACCES: the MR has no remote read access. EOPNOTSUPP: it
 * is registered on demand, or in device memory or in a dma-buf.
 */
enum {
	UVERBS_ATTR_KV_STORE_PUBLISH_HANDLE = 0x10a0, /* IDR, NEW */
	UVERBS_ATTR_KV_STORE_PUBLISH_MR_HANDLE, /* IDR, READ */
	UVERBS_ATTR_KV_STORE_PUBLISH_RESP_NUMBER, /* PTR_OUT, u32 */
	UVERBS_ATTR_KV_STORE_PUBLISH_RESP_KEY, /* PTR_OUT, u64: the access right, a random number */
};

/*
 * GET names the store by number and key, or by a reader; other combinations are EINVAL. EACCES: there is no such
 * store, the key is wrong, or the store was destroyed meanwhile. ENOENT: the table does not have the key. ENOSPC: the
 * value is longer than the buffer; RESP_LENGTH is its length. EAGAIN: the owner changes this entry all the time. EIO:
 * the entry is invalid. EFAULT: the owner has unmapped the memory, or exited.
 */
enum {
	UVERBS_ATTR_KV_STORE_GET_NUMBER = 0x10a0, /* PTR_IN, u32; without a reader */
	UVERBS_ATTR_KV_STORE_GET_STORE_KEY, /* PTR_IN, u64; without a reader */
	UVERBS_ATTR_KV_STORE_GET_KEY, /* PTR_IN, from 1 to KV_MAX_KEY bytes */
	UVERBS_ATTR_KV_STORE_GET_RESP_VALUE, /* PTR_OUT */
	UVERBS_ATTR_KV_STORE_GET_RESP_LENGTH, /* PTR_OUT, u32 */
	UVERBS_ATTR_KV_STORE_GET_READER, /* IDR of KV_READER, READ; optional */
};

enum { UVERBS_ATTR_KV_STORE_DESTROY_HANDLE = 0x10a0 }; /* IDR, DESTROY */

/*
 * A reader is a store whose key was checked once. It neither keeps the store published nor gives more than the key did:
 * EACCES as for GET.
 */
enum { UVERBS_METHOD_KV_READER_OPEN = 0x10a0, UVERBS_METHOD_KV_READER_CLOSE };

enum {
	UVERBS_ATTR_KV_READER_OPEN_HANDLE = 0x10a0, /* IDR, NEW */
	UVERBS_ATTR_KV_READER_OPEN_NUMBER, /* PTR_IN, u32 */
	UVERBS_ATTR_KV_READER_OPEN_STORE_KEY, /* PTR_IN, u64 */
};

enum { UVERBS_ATTR_KV_READER_CLOSE_HANDLE = 0x10a0 }; /* IDR, DESTROY */

/* QUERY tells the owner about its store. */
enum {
	UVERBS_ATTR_KV_STORE_QUERY_HANDLE = 0x10a0, /* IDR, READ */
	UVERBS_ATTR_KV_STORE_QUERY_RESP, /* PTR_OUT, struct kv_info; later versions may add fields at its end */
};

struct kv_info {
	__u64 gets; /* GETs so far that had the right key */
	__u32 number, num_slots;
};

/* ---- the table in the owner's memory, in the byte order of the machine ------------------------------------------- */

#define KV_MAGIC 0x6b76746162303100ull
#define KV_MAX_SLOTS (1u << 24)
#define KV_MAX_KEY 255
#define KV_WINDOW 8 /* a key is in one of this many slots, from the one of its hash on */

/* At the beginning of the region. num_slots + KV_WINDOW - 1 slots follow, so a window never wraps around. */
struct kv_header {
	__u64 magic; /* KV_MAGIC */
	__u32 num_slots; /* a power of two, at most KV_MAX_SLOTS */
	__u32 reserved; /* 0 */
};

/*
 * The owner may change a slot at any time: it sets version to an odd number, changes the slot, the key and the value,
 * and sets version to the next even number.
 */
struct kv_slot {
	__u64 hash; /* kv_hash() of the key */
	__u64 offset; /* bytes from the beginning of the region: the key, and behind it the value */
	__u32 version;
	__u32 value_len;
	__u16 key_len; /* 0: the slot is empty */
	__u16 reserved[3]; /* 0 */
};

/* FNV-1a. The key's first slot is kv_hash() & (num_slots - 1). */
static inline __u64 kv_hash(const void *key, __u32 len)
{
	const __u8 *p = (const __u8 *)key;
	__u64 hash = 0xcbf29ce484222325ull;

	while (len--)
		hash = (hash ^ *p++) * 0x100000001b3ull;
	return hash;
}

#endif
