/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects that have events. Each context knows its own by their addresses: the kernel reports an object by the number that
 * its maker has chosen. libibverbs chooses the object's address, but a client that has the context's device file can make
 * objects, too, with any number. So nobody follows such an address before it was found here.
 */
#include "backends/verbs/verbs.h"

static struct list_head *objects_of(struct hca_context *context, uint64_t address)
{
	/* Fibonacci hashing: the low bits of an address are all alike. */
	return &context->objects[address * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

_Static_assert(HCA_OBJECT_LISTS == 1 << 8, "the hash has 8 bits");

void hca_objects_init(struct hca_context *context)
{
	for (int i = 0; i < HCA_OBJECT_LISTS; i++)
		INIT_LIST_HEAD(&context->objects[i]);
}

void hca_object_add(struct hca_context *context, struct hca_object *object, enum hca_kind kind, void *adapter)
{
	struct hca_device *dev = hca_device(context->context.dev);

	object->kind = kind;
	object->adapter = adapter;
	uvd_lock(&dev->lock);
	list_add_tail(&object->of_context, objects_of(context, (uintptr_t)adapter));
	uvd_unlock(&dev->lock);
}

struct hca_object *hca_object_find(struct hca_context *context, enum hca_kind kind, uint64_t address)
{
	struct hca_device *dev = hca_device(context->context.dev);
	struct hca_object *o, *found = NULL;

	uvd_lock(&dev->lock);
	list_for_each_entry(o, objects_of(context, address), of_context)
		if (o->kind == kind && (uintptr_t)o->adapter == address)
			found = o;
	uvd_unlock(&dev->lock);
	return found;
}

int hca_object_destroy(struct hca_context *context, struct hca_object *object, int (*destroy)(void *adapter))
{
	struct hca_device *dev = hca_device(context->context.dev);
	int ret;

	hca_events_pause(dev, context);
	ret = hca_destroyed(dev, destroy(object->adapter));
	if (!ret) {
		uvd_lock(&dev->lock);
		list_del_init(&object->of_context);
		uvd_unlock(&dev->lock);
	}
	hca_events_resume(dev, context);
	return ret;
}
