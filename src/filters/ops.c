/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The way of a call through the filters of a device, for each operation of the list in <uverbsd/filter_ops.h>. */
#include <errno.h>

#include "filters/filters.h"

/* As operations that the backend may lack must not be called there. */
#define FILTER_NONE_int -EOPNOTSUPP
#define FILTER_NONE_void (void)0

/* Each operation has one entry, in whatever order; open() and close() have none. */
#define FILTER_COUNT(...) +1
_Static_assert(sizeof(struct uvd_backend) - offsetof(struct uvd_backend, open) ==
		       (2 UVD_FILTER_OPS(FILTER_COUNT)) * sizeof(void *),
	       "an operation of struct uvd_backend is not in UVD_FILTER_OPS");

static void filter_chain_release(struct uvd_filter_chain **chain)
{
	uvd_filter_chain_put(*chain);
}

/*
 * Returns the next filter that has the operation at this offset of struct uvd_filter, and what is below that filter.
 * NULL: it is the backend's turn.
 */
static const struct uvd_filter_instance *filter_find(const struct uvd_next *next, size_t op, struct uvd_next *below)
{
	for (unsigned int i = next->index; i < next->chain->num; i++) {
		const struct uvd_filter_instance *instance = next->chain->list[i];

		if (!*(void *const *)((const char *)instance->filter + op))
			continue;
		*below = (struct uvd_next){ .chain = next->chain, .index = i + 1 };
		return instance;
	}
	return NULL;
}

#define FILTER_NEXT(ret, op, dev, params, args) \
	ret uvd_next_##op(const struct uvd_next *next, UVD_FILTER_LIST params) \
	{ \
		const struct uvd_filter_instance *instance; \
		struct uvd_next below; \
\
		instance = filter_find(next, offsetof(struct uvd_filter, op), &below); \
		if (instance) \
			return instance->filter->op(instance->data, &below, UVD_FILTER_LIST args); \
		return next->chain->base->op ? next->chain->base->op args : FILTER_NONE_##ret; \
	}
UVD_FILTER_OPS(FILTER_NEXT)

/* What the core calls. A filter may have been removed since the caller has read the table of operations. */
#define FILTER_ENTER(ret, op, device, params, args) \
	static ret filter_enter_##op params \
	{ \
		struct uvd_filters *filters = (device)->filters; \
		struct uvd_filter_chain *chain __attribute__((cleanup(filter_chain_release))) = \
			uvd_filters_get(filters); \
\
		if (!chain) \
			return filters->base->op args; \
		return uvd_next_##op(&(struct uvd_next){ .chain = chain }, UVD_FILTER_LIST args); \
	}
UVD_FILTER_OPS(FILTER_ENTER)

static bool filter_list_has(struct uvd_filter_instance *const *list, unsigned int num, size_t op)
{
	while (num)
		if (*(void *const *)((const char *)list[--num]->filter + op))
			return true;
	return false;
}

bool uvd_filter_ops_put(struct uvd_backend *ops, struct uvd_filter_instance *const *list, unsigned int num)
{
	bool put = false;

#define FILTER_PUT(ret, name, ...) \
	if (ops->name && filter_list_has(list, num, offsetof(struct uvd_filter, name))) { \
		ops->name = filter_enter_##name; \
		put = true; \
	}
	UVD_FILTER_OPS(FILTER_PUT)
	return put;
}

void uvd_filter_completion(struct uvd_cq *cq, struct ibv_wc *wc)
{
	struct uvd_filters *filters = cq->context->dev->filters;
	struct uvd_filter_chain *chain;

	if (!filters || !atomic_load_explicit(&filters->completions, memory_order_relaxed))
		return;
	chain = uvd_filters_get(filters);
	/* Innermost first: a completion comes from below. */
	for (unsigned int i = chain ? chain->num : 0; i--;)
		if (chain->list[i]->filter->completion)
			chain->list[i]->filter->completion(chain->list[i]->data, cq, wc);
	uvd_filter_chain_put(chain);
}
