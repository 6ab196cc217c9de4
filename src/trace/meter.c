/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A meter: counts the calls of each verb. The observers' lock admits one writer at a time. The reader takes no lock: all
 * counts are atomic, and a verb is complete before it is in the list.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "core/core.h"
#include "trace/trace.h"
#include "util/util.h"

/* SUB_BITS: a power of two has 1 << SUB_BITS buckets. */
enum { SUB_BITS = 3, SUB = 1 << SUB_BITS, SLOTS = 2 * UVD_METER_VERBS, METER_NAME = 64 };

struct meter_verb {
	char device[METER_NAME], object[METER_NAME], name[METER_NAME]; /* copies: a device or a plug-in's row can go */
	atomic_uint_fast64_t errors, total, max;
	atomic_uint_fast64_t buckets[UVD_METER_BUCKETS];
	atomic_uint_fast64_t errnos[UVD_METER_ERRNOS];
};

struct uvd_meter {
	struct uvd_observer observer;
	struct uvd_engine *engine;
	struct meter_verb *list[UVD_METER_VERBS];
	atomic_uint num; /* of the list */
	atomic_uint_fast64_t uncounted;
	struct uvd_meter_counts read; /* the reader's */
	/* The writer's: the index in the list + 1, by the hash of device and name; the next free slot on a collision. */
	uint16_t slots[SLOTS];
};

/* ---- the histogram ----------------------------------------------------------------------------------------------- */

static unsigned int meter_bucket(uint64_t ns)
{
	unsigned int power, bucket;

	if (ns < SUB)
		return ns;
	power = 63 - __builtin_clzll(ns);
	bucket = (power - SUB_BITS + 1) * SUB + ((ns >> (power - SUB_BITS)) & (SUB - 1));
	return bucket < UVD_METER_BUCKETS ? bucket : UVD_METER_BUCKETS - 1;
}

uint64_t uvd_meter_highest(unsigned int bucket)
{
	if (bucket < SUB)
		return bucket;
	if (bucket >= UVD_METER_BUCKETS - 1)
		return UINT64_MAX;
	return ((uint64_t)(SUB + bucket % SUB + 1) << (bucket / SUB - 1)) - 1;
}

/* ---- the writer, under the observers' lock ----------------------------------------------------------------------- */

/* There is one writer, so it needs no atomic addition. */
static void meter_add(atomic_uint_fast64_t *count, uint64_t n)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

/* FNV-1a */
static uint32_t meter_hash(const char *device, const char *name)
{
	uint32_t hash = 0x811c9dc5;

	for (; *device; device++)
		hash = (hash ^ (uint8_t)*device) * 0x01000193;
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x01000193;
	return hash;
}

static bool object_has_method(const struct uvd_tree_object *object, const char *name)
{
	for (unsigned int ns = 0; ns < UVD_COUNT(object->methods); ns++)
		for (unsigned int i = 0; i < object->num_methods[ns]; i++)
			if (object->methods[ns][i].row && object->methods[ns][i].row->name == name)
				return true;
	return false;
}

/* Returns the name of the object that the method or command belongs to. */
static const char *meter_object_of(const struct uvd_tree *tree, const char *name)
{
	for (unsigned int ex = 0; ex < UVD_COUNT(tree->writes); ex++)
		for (unsigned int i = 0; i < tree->num_writes[ex]; i++)
			if (tree->writes[ex][i].row && tree->writes[ex][i].row->name == name)
				return tree->writes[ex][i].object->name;
	for (unsigned int ns = 0; ns < UVD_COUNT(tree->objects); ns++)
		for (unsigned int i = 0; i < tree->num_objects[ns]; i++)
			if (tree->objects[ns][i].row && object_has_method(&tree->objects[ns][i], name))
				return tree->objects[ns][i].row->name;
	return "";
}

static void meter_copy_name(char to[METER_NAME], const char *from)
{
	memcpy(to, from, strnlen(from, METER_NAME - 1));
}

static struct meter_verb *meter_verb_new(struct uvd_meter *m, const struct uvd_observed *call)
{
	const unsigned int num = atomic_load_explicit(&m->num, memory_order_relaxed);
	struct meter_verb *verb = num < UVD_METER_VERBS ? calloc(1, sizeof(*verb)) : NULL;

	if (!verb)
		return NULL;
	meter_copy_name(verb->device, call->file->name);
	meter_copy_name(verb->object, meter_object_of(call->tree, call->verb));
	meter_copy_name(verb->name, call->verb);
	m->list[num] = verb;
	atomic_store_explicit(&m->num, num + 1, memory_order_release);
	return verb;
}

/* There are twice as many slots as verbs, so a search ends. */
static struct meter_verb *meter_find(struct uvd_meter *m, const struct uvd_observed *call)
{
	const char *device = call->file->name;
	unsigned int slot = meter_hash(device, call->verb) % SLOTS;
	struct meter_verb *verb;

	for (; m->slots[slot]; slot = (slot + 1) % SLOTS) {
		verb = m->list[m->slots[slot] - 1];
		if (!strncmp(verb->name, call->verb, METER_NAME - 1) && !strncmp(verb->device, device, METER_NAME - 1))
			return verb;
	}
	verb = meter_verb_new(m, call);
	if (verb)
		m->slots[slot] = atomic_load_explicit(&m->num, memory_order_relaxed);
	return verb;
}

static void meter_call(struct uvd_observer *o, const struct uvd_observed *call)
{
	struct uvd_meter *m = container_of(o, struct uvd_meter, observer);
	struct meter_verb *verb;

	/* Another observer may want what this one does not. */
	if (!uvd_observer_wants(o, call->file))
		return;
	verb = call->verb ? meter_find(m, call) : NULL;
	if (!verb) {
		meter_add(&m->uncounted, 1);
		return;
	}
	meter_add(&verb->errors, call->result < 0);
	if (call->result < 0)
		meter_add(&verb->errnos[-call->result < UVD_METER_ERRNOS ? -call->result : 0], 1);
	meter_add(&verb->total, call->duration);
	if (call->duration > atomic_load_explicit(&verb->max, memory_order_relaxed))
		atomic_store_explicit(&verb->max, call->duration, memory_order_relaxed);
	meter_add(&verb->buckets[meter_bucket(call->duration)], 1);
}

/* ---- the reader -------------------------------------------------------------------------------------------------- */

static void meter_read(struct uvd_meter_counts *counts, const struct meter_verb *verb)
{
	counts->device = verb->device;
	counts->object = verb->object;
	counts->name = verb->name;
	counts->errors = atomic_load_explicit(&verb->errors, memory_order_relaxed);
	counts->total = atomic_load_explicit(&verb->total, memory_order_relaxed);
	counts->max = atomic_load_explicit(&verb->max, memory_order_relaxed);
	counts->calls = 0;
	for (unsigned int i = 0; i < UVD_METER_ERRNOS; i++)
		counts->errnos[i] = atomic_load_explicit(&verb->errnos[i], memory_order_relaxed);
	for (unsigned int i = 0; i < UVD_METER_BUCKETS; i++) {
		counts->buckets[i] = atomic_load_explicit(&verb->buckets[i], memory_order_relaxed);
		counts->calls += counts->buckets[i];
	}
}

void uvd_meter_each(struct uvd_meter *m, void (*fn)(void *arg, const struct uvd_meter_counts *counts), void *arg)
{
	const unsigned int num = atomic_load_explicit(&m->num, memory_order_acquire);

	for (unsigned int i = 0; i < num; i++) {
		meter_read(&m->read, m->list[i]);
		fn(arg, &m->read);
	}
}

uint64_t uvd_meter_uncounted(const struct uvd_meter *m)
{
	return atomic_load_explicit(&m->uncounted, memory_order_relaxed);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

struct uvd_meter *uvd_meter_new(struct uvd_engine *engine, bool one_user, uid_t uid, int *err)
{
	struct uvd_meter *m = calloc(1, sizeof(*m));

	*err = -ENOMEM;
	if (!m)
		return NULL;
	m->engine = engine;
	m->observer.call = meter_call;
	m->observer.counts_only = true;
	m->observer.one_user = one_user;
	m->observer.uid = uid;
	*err = uvd_observer_add(engine, &m->observer);
	if (!*err)
		return m;
	free(m);
	return NULL;
}

void uvd_meter_free(struct uvd_meter *m)
{
	if (!m)
		return;
	uvd_observer_remove(m->engine, &m->observer);
	for (unsigned int i = 0; i < atomic_load(&m->num); i++)
		free(m->list[i]);
	free(m);
}
