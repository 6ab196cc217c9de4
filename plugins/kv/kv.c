/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kv: a new verb on registered memory, a remote key-value GET by one call. kv.h is its ABI and the layout of a table.
 * table.c reads a key from a client's memory; here are the stores of a device and their rows.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <uverbsd/plugin.h>

#include "table.h"

enum { KV_BUCKETS = 256 };

/* The published stores of a device. device_exit() comes after the last store was destroyed. */
struct kv_device {
	pthread_mutex_t lock; /* protects the lists, and is never held while a client's memory is read */
	struct kv_store *buckets[KV_BUCKETS]; /* by number */
	uint32_t last_number;
};

/* A published table. The handle has a reference, and so has each GET in flight. */
struct kv_store {
	struct kv_store *next;
	struct kv_device *device;
	struct uvd_mr *mr; /* in use until the handle is destroyed. Only PUBLISH and destroy access it */
	struct kv_table table;
	uint64_t key;
	uint32_t number;
	atomic_bool withdrawn; /* the handle was destroyed */
	_Atomic uint64_t gets;
	atomic_uint ref;
};

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static void kv_store_put(struct kv_store *store)
{
	if (atomic_fetch_sub(&store->ref, 1) != 1)
		return;
	uvd_mm_put(store->table.mm);
	free(store);
}

static struct kv_store **kv_bucket(struct kv_device *device, uint32_t number)
{
	return &device->buckets[number % KV_BUCKETS];
}

/* Lists the store under a new number. */
static void kv_store_list(struct kv_store *store)
{
	struct kv_device *device = store->device;
	struct kv_store **bucket;

	pthread_mutex_lock(&device->lock);
	store->number = ++device->last_number;
	bucket = kv_bucket(device, store->number);
	store->next = *bucket;
	*bucket = store;
	pthread_mutex_unlock(&device->lock);
}

static void kv_store_unlist(struct kv_store *store)
{
	struct kv_device *device = store->device;
	struct kv_store **p;

	pthread_mutex_lock(&device->lock);
	for (p = kv_bucket(device, store->number); *p != store; p = &(*p)->next)
		;
	*p = store->next;
	pthread_mutex_unlock(&device->lock);
}

/* Returns a reference to the store of this number if the key is right, else NULL. */
static struct kv_store *kv_store_get(struct kv_device *device, uint32_t number, uint64_t key)
{
	struct kv_store *store;

	pthread_mutex_lock(&device->lock);
	for (store = *kv_bucket(device, number); store && store->number != number; store = store->next)
		;
	if (store && store->key == key)
		atomic_fetch_add(&store->ref, 1);
	else
		store = NULL;
	pthread_mutex_unlock(&device->lock);
	return store;
}

/* ---- PUBLISH and DESTROY ----------------------------------------------------------------------------------------- */

static int kv_check_mr(struct uvd_req *req, const struct uvd_mr *mr)
{
	if (!mr->umem.mm || mr->access & IBV_ACCESS_ON_DEMAND)
		return uvd_bad(req, -EOPNOTSUPP, "mr_handle", mr->access);
	if (!(mr->access & IBV_ACCESS_REMOTE_READ))
		return uvd_bad(req, -EACCES, "mr_handle", mr->access);
	return 0;
}

static struct kv_store *kv_store_new(struct uvd_req *req, struct uvd_mr *mr, int *ret)
{
	struct kv_store *store = calloc(1, sizeof(*store));

	*ret = store ? 0 : -ENOMEM;
	if (!store)
		return NULL;
	store->device = uvd_plugin_device_data(req, &uverbsd_plugin);
	store->mr = mr;
	atomic_init(&store->ref, 1);
	if (getrandom(&store->key, sizeof(store->key), 0) != sizeof(store->key))
		*ret = -EIO;
	else
		*ret = kv_table_open(&store->table, &mr->umem);
	if (!*ret)
		return store;
	free(store);
	return NULL;
}

static int kv_publish(struct uvd_req *req)
{
	struct uvd_mr *mr = uvd_attr_object(req, UVERBS_ATTR_KV_STORE_PUBLISH_MR_HANDLE);
	struct kv_store *store;
	int ret = kv_check_mr(req, mr);

	if (!ret)
		ret = uvd_uobject_charge(uvd_attr_uobj(req, UVERBS_ATTR_KV_STORE_PUBLISH_HANDLE), sizeof(*store));
	if (ret)
		return ret;
	store = kv_store_new(req, mr, &ret);
	if (!store)
		return ret;
	atomic_fetch_add(&mr->usecnt, 1);
	kv_store_list(store);
	uvd_attr_set_object(req, UVERBS_ATTR_KV_STORE_PUBLISH_HANDLE, store);
	ret = uvd_attr_copy_to(req, UVERBS_ATTR_KV_STORE_PUBLISH_RESP_NUMBER, &store->number);
	return ret ?: uvd_attr_copy_to(req, UVERBS_ATTR_KV_STORE_PUBLISH_RESP_KEY, &store->key);
}

/*
 * Does not wait for GETs in flight, which the owner's memory can hold up: they have references to the store and to the
 * address space, and deliver nothing once `withdrawn` is set. Real hardware must wait here until it has stopped.
 */
static int kv_destroy(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	struct kv_store *store = uvd_uobject_object(uobj);

	kv_store_unlist(store);
	atomic_store(&store->withdrawn, true);
	atomic_fetch_sub(&store->mr->usecnt, 1);
	kv_store_put(store);
	return 0;
}

/* ---- GET --------------------------------------------------------------------------------------------------------- */

struct kv_get_args {
	struct kv_store *reader; /* NULL: by number and key */
	uint32_t number;
	uint64_t store_key;
	struct kv_query query;
	uint8_t key[KV_MAX_KEY];
};

static int kv_decode_get(struct uvd_req *req)
{
	struct kv_get_args *args = uvd_args(req, struct kv_get_args);
	const size_t len = uvd_attr_len(req, UVERBS_ATTR_KV_STORE_GET_KEY);
	const int number = uvd_attr_copy_from(req, UVERBS_ATTR_KV_STORE_GET_NUMBER, &args->number);
	const int key = uvd_attr_copy_from(req, UVERBS_ATTR_KV_STORE_GET_STORE_KEY, &args->store_key);
	int ret = 0;

	args->reader = uvd_attr_object(req, UVERBS_ATTR_KV_STORE_GET_READER);
	if (args->reader ? !number || !key : number || key)
		ret = uvd_bad(req, -EINVAL, "number", args->number);
	if (!ret && len > KV_MAX_KEY)
		ret = uvd_bad(req, -EINVAL, "key", len);
	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_KV_STORE_GET_KEY, &args->key);
	args->query.key = args->key;
	args->query.key_len = len;
	args->query.room = uvd_attr_len(req, UVERBS_ATTR_KV_STORE_GET_RESP_VALUE);
	return ret;
}

static int kv_answer_get(struct uvd_req *req, const struct kv_query *query)
{
	int ret = uvd_attr_copy_to(req, UVERBS_ATTR_KV_STORE_GET_RESP_LENGTH, &query->value_len);

	if (ret)
		return ret;
	if (query->value_len > query->room)
		return -ENOSPC;
	return uvd_attr_copy_to_bytes(req, UVERBS_ATTR_KV_STORE_GET_RESP_VALUE, query->value, query->value_len);
}

static int kv_get(struct uvd_req *req)
{
	struct kv_get_args *args = uvd_args(req, struct kv_get_args);
	struct kv_query *query = &args->query;
	struct kv_store *store;
	int ret;

	query->buf = uvd_req_alloc(req, query->key_len + query->room);
	if (!query->buf)
		return -ENOMEM;
	store = args->reader;
	if (store)
		atomic_fetch_add(&store->ref, 1);
	else
		store = kv_store_get(uvd_plugin_device_data(req, &uverbsd_plugin), args->number, args->store_key);
	if (!store)
		return uvd_bad(req, -EACCES, "number", args->number);
	atomic_fetch_add(&store->gets, 1);
	ret = kv_table_find(&store->table, query);
	/* If it is not withdrawn yet, the owner may not have reused any of the memory that was read. */
	if (atomic_load(&store->withdrawn))
		ret = -EACCES;
	kv_store_put(store);
	if (ret == -ENOENT || ret == -EAGAIN) /* usual: nothing for the log */
		return ret;
	return ret ? uvd_bad(req, ret, "number", args->number) : kv_answer_get(req, query);
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* The object of a reader's handle is the store itself, with a reference. */
static int kv_open_reader(struct uvd_req *req)
{
	struct kv_store *store;
	uint64_t key;
	uint32_t number;
	int ret = uvd_attr_copy_from(req, UVERBS_ATTR_KV_READER_OPEN_NUMBER, &number);

	if (!ret)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_KV_READER_OPEN_STORE_KEY, &key);
	if (ret)
		return ret;
	store = kv_store_get(uvd_plugin_device_data(req, &uverbsd_plugin), number, key);
	if (!store)
		return uvd_bad(req, -EACCES, "number", number);
	uvd_attr_set_object(req, UVERBS_ATTR_KV_READER_OPEN_HANDLE, store);
	return 0;
}

static int kv_close_reader(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	kv_store_put(uvd_uobject_object(uobj));
	return 0;
}

/* ---- QUERY ------------------------------------------------------------------------------------------------------- */

static int kv_query_store(struct uvd_req *req)
{
	struct kv_store *store = uvd_attr_object(req, UVERBS_ATTR_KV_STORE_QUERY_HANDLE);
	const struct kv_info info = {
		.gets = atomic_load(&store->gets),
		.number = store->number,
		.num_slots = store->table.num_slots,
	};

	return uvd_attr_copy_to_or_zero(req, UVERBS_ATTR_KV_STORE_QUERY_RESP, &info);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static int kv_device_init(struct uvd_ibdev *dev, void *engine, void **data)
{
	struct kv_device *device = calloc(1, sizeof(*device));

	if (!device)
		return -ENOMEM;
	pthread_mutex_init(&device->lock, NULL);
	*data = device;
	return 0;
}

static void kv_device_exit(struct uvd_ibdev *dev, void *data)
{
	struct kv_device *device = data;

	pthread_mutex_destroy(&device->lock);
	free(device);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const uvd_step kv_publish_steps[] = { kv_publish, NULL };
static const uvd_step kv_get_steps[] = { uvd_step_context, kv_decode_get, kv_get, NULL };
static const uvd_step kv_query_steps[] = { kv_query_store, NULL };

static const struct uvd_attr_row kv_publish_attrs[] = {
	UVD_IDR(UVERBS_ATTR_KV_STORE_PUBLISH_HANDLE, UVERBS_OBJECT_KV_STORE, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_IDR(UVERBS_ATTR_KV_STORE_PUBLISH_MR_HANDLE, UVERBS_OBJECT_MR, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_KV_STORE_PUBLISH_RESP_NUMBER, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_KV_STORE_PUBLISH_RESP_KEY, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row kv_get_attrs[] = {
	UVD_PTR_IN(UVERBS_ATTR_KV_STORE_GET_NUMBER, sizeof(uint32_t), 0),
	UVD_PTR_IN(UVERBS_ATTR_KV_STORE_GET_STORE_KEY, sizeof(uint64_t), 0),
	UVD_IDR(UVERBS_ATTR_KV_STORE_GET_READER, UVERBS_OBJECT_KV_READER, UVD_UOBJ_READ, 0),
	UVD_PTR_IN_MIN(UVERBS_ATTR_KV_STORE_GET_KEY, 1, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_KV_STORE_GET_RESP_VALUE, 0, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_KV_STORE_GET_RESP_LENGTH, sizeof(uint32_t), UVD_MANDATORY),
};

static const struct uvd_attr_row kv_destroy_attrs[] = {
	UVD_IDR(UVERBS_ATTR_KV_STORE_DESTROY_HANDLE, UVERBS_OBJECT_KV_STORE, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_attr_row kv_query_attrs[] = {
	UVD_IDR(UVERBS_ATTR_KV_STORE_QUERY_HANDLE, UVERBS_OBJECT_KV_STORE, UVD_UOBJ_READ, UVD_MANDATORY),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_KV_STORE_QUERY_RESP, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_method_row kv_methods[] = {
	UVD_METHOD(UVERBS_METHOD_KV_STORE_PUBLISH, kv_publish_attrs, kv_publish_steps),
	UVD_METHOD(UVERBS_METHOD_KV_STORE_GET, kv_get_attrs, kv_get_steps),
	UVD_METHOD(UVERBS_METHOD_KV_STORE_DESTROY, kv_destroy_attrs, NULL),
	UVD_METHOD(UVERBS_METHOD_KV_STORE_QUERY, kv_query_attrs, kv_query_steps),
};

static const struct uvd_object_row kv_store_object = {
	.name = "UVERBS_OBJECT_KV_STORE",
	.id = UVERBS_OBJECT_KV_STORE,
	.cls = UVD_CLASS_IDR,
	.destroy = kv_destroy,
	UVD_ROWS(methods, kv_methods),
};

static const uvd_step kv_open_steps[] = { kv_open_reader, NULL };

static const struct uvd_attr_row kv_open_attrs[] = {
	UVD_IDR(UVERBS_ATTR_KV_READER_OPEN_HANDLE, UVERBS_OBJECT_KV_READER, UVD_UOBJ_NEW, UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_KV_READER_OPEN_NUMBER, sizeof(uint32_t), UVD_MANDATORY),
	UVD_PTR_IN(UVERBS_ATTR_KV_READER_OPEN_STORE_KEY, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_attr_row kv_close_attrs[] = {
	UVD_IDR(UVERBS_ATTR_KV_READER_CLOSE_HANDLE, UVERBS_OBJECT_KV_READER, UVD_UOBJ_DESTROY, UVD_MANDATORY),
};

static const struct uvd_method_row kv_reader_methods[] = {
	UVD_METHOD(UVERBS_METHOD_KV_READER_OPEN, kv_open_attrs, kv_open_steps),
	UVD_METHOD(UVERBS_METHOD_KV_READER_CLOSE, kv_close_attrs, NULL),
};

static const struct uvd_object_row kv_reader_object = {
	.name = "UVERBS_OBJECT_KV_READER",
	.id = UVERBS_OBJECT_KV_READER,
	.cls = UVD_CLASS_IDR,
	.destroy = kv_close_reader,
	UVD_ROWS(methods, kv_reader_methods),
};

static const struct uvd_object_row *const kv_objects[] = { &kv_store_object, &kv_reader_object, NULL };
static const struct uvd_feature kv_feature = { .name = "kv", .objects = kv_objects };
static const struct uvd_feature *const kv_features[] = { &kv_feature, NULL };

UVD_PLUGIN(.name = "kv", .version = "1", .description = "a GET from a table in a peer's memory",
	   .features = kv_features, .device_init = kv_device_init, .device_exit = kv_device_exit);
