/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filters of a device: changes under calls in flight. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uverbsd/log.h>

#include "filters/filters.h"
#include "util/util.h"

enum { WAIT_MS = 2000 /* for the calls of the chain before, at a change */ };

/* A table of operations that the device has used. */
struct uvd_filter_table {
	struct uvd_backend ops;
	struct uvd_filter_table *next;
};

void uvd_filters_begin(struct uvd_filters *filters, struct uvd_ibdev *dev)
{
	*filters = (struct uvd_filters){ .dev = dev, .base = dev->ops };
	pthread_mutex_init(&filters->lock, NULL);
	dev->filters = filters;
}

void uvd_filter_instance_tell(const struct uvd_filter_instance *instance, uvd_filter_tell_fn tell, void *arg)
{
	if (instance->rules)
		instance->rules(instance->data, tell, arg);
}

void uvd_filter_instance_end(struct uvd_filter_instance *instance)
{
	if (!instance)
		return;
	if (instance->filter->exit)
		instance->filter->exit(instance->dev, instance->data);
	if (instance->put_owner)
		instance->put_owner(instance->owner);
	free(instance->text);
	free(instance);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct uvd_filter_chain *uvd_filters_get(struct uvd_filters *filters)
{
	struct uvd_filter_chain *chain;

	pthread_mutex_lock(&filters->lock);
	chain = filters->current;
	if (chain)
		atomic_fetch_add_explicit(&chain->ref, 1, memory_order_relaxed);
	pthread_mutex_unlock(&filters->lock);
	return chain;
}

/* Frees nothing: the caller can hold locks that the end of a filter must not run under. */
void uvd_filter_chain_put(struct uvd_filter_chain *chain)
{
	if (chain)
		atomic_fetch_sub_explicit(&chain->ref, 1, memory_order_release);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Not limited: it is one line for each rule that a user gave, however many calls clients make. */
static void filter_log_rule(void *arg, const char *rule, uint64_t seen, uint64_t done)
{
	const struct uvd_filter_instance *instance = arg;

	uvd_logf(instance->dev->log, UVD_WARN, "%s: filter %s: %s: %llu of %llu", instance->dev->config.ibdev,
		 instance->filter->name, rule, (unsigned long long)done, (unsigned long long)seen);
}

/* The last call has left the chain. */
static void filter_chain_end(struct uvd_filter_chain *chain)
{
	for (unsigned int i = 0; i < chain->num; i++) {
		struct uvd_filter_instance *instance = chain->list[i];

		if (--instance->chains)
			continue;
		uvd_filter_instance_tell(instance, filter_log_rule, instance);
		uvd_filter_instance_end(instance);
	}
	free(chain);
}

/* Ends the replaced chains whose calls have ended. Returns whether others are left. */
static bool filters_reap(struct uvd_filters *filters)
{
	struct uvd_filter_chain **p = &filters->old, *chain;

	/* Only changes touch `old`, and these come one at a time. */
	while ((chain = *p)) {
		if (atomic_load_explicit(&chain->ref, memory_order_acquire)) {
			p = &chain->older;
			continue;
		}
		*p = chain->older;
		filter_chain_end(chain);
	}
	return filters->old;
}

/* Waits for the calls of replaced chains. Polls, so that a call does not pay for waking us. ms: 0: without end. */
static void filters_wait(struct uvd_filters *filters, unsigned int ms)
{
	const uint64_t end = uvd_now_ns() + ms * UINT64_C(1000000);

	for (long us = 20; filters_reap(filters) && (!ms || uvd_now_ns() < end); us = us < 5000 ? 2 * us : us)
		nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/* Returns the table of operations for these filters. NULL: no memory. */
static const struct uvd_backend *filters_table(struct uvd_filters *filters, struct uvd_filter_instance *const *list,
					       unsigned int num)
{
	struct uvd_backend ops = *filters->base;
	struct uvd_filter_table *table;

	if (!uvd_filter_ops_put(&ops, list, num))
		return filters->base;
	for (table = filters->tables; table; table = table->next)
		if (!memcmp(&table->ops, &ops, sizeof(ops)))
			return &table->ops;
	table = uvd_zalloc(sizeof(*table));
	if (!table)
		return NULL;
	memcpy(&table->ops, &ops, sizeof(ops));
	table->next = filters->tables;
	filters->tables = table;
	return &table->ops;
}

/* Returns NULL without filters, or if there is no memory. */
static struct uvd_filter_chain *filter_chain_new(struct uvd_filters *filters, struct uvd_filter_instance *const *list,
						 unsigned int num)
{
	struct uvd_filter_chain *chain = num ? uvd_zalloc(sizeof(*chain)) : NULL;

	if (!chain)
		return NULL;
	atomic_init(&chain->ref, 1);
	chain->base = filters->base;
	chain->num = num;
	for (unsigned int i = 0; i < num; i++) {
		chain->list[i] = list[i];
		list[i]->chains++;
	}
	return chain;
}

static bool filters_want_completions(struct uvd_filter_instance *const *list, unsigned int num)
{
	while (num)
		if (list[--num]->filter->completion)
			return true;
	return false;
}

int uvd_filters_change(struct uvd_filters *filters, struct uvd_filter_instance *const *list, unsigned int num)
{
	const struct uvd_backend *ops = filters_table(filters, list, num);
	struct uvd_filter_chain *chain = filter_chain_new(filters, list, num), *old;

	if (!ops || (num && !chain)) {
		for (unsigned int i = 0; chain && i < num; i++)
			list[i]->chains--;
		free(chain);
		return -ENOMEM;
	}
	pthread_mutex_lock(&filters->lock);
	old = filters->current;
	filters->current = chain;
	atomic_store_explicit(&filters->completions, filters_want_completions(list, num), memory_order_relaxed);
	pthread_mutex_unlock(&filters->lock);
	filters->dev->ops = ops;
	if (old) {
		old->older = filters->old;
		filters->old = old;
		uvd_filter_chain_put(old);
	}
	filters_wait(filters, WAIT_MS);
	return 0;
}

void uvd_filters_clear(struct uvd_filters *filters)
{
	if (filters->current)
		uvd_filters_change(filters, NULL, 0);
	filters_wait(filters, 0);
}

void uvd_filters_end(struct uvd_filters *filters)
{
	struct uvd_filter_table *table;

	while ((table = filters->tables)) {
		filters->tables = table->next;
		free(table);
	}
	pthread_mutex_destroy(&filters->lock);
}
