/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Routes each operation of <uverbsd/filter_ops.h> through the filters of a device. */
#include <uverbsd/log.h>

#include "filters/filters.h"

/*
 * Each operation has one entry, in whatever order; open(), close(), narrow(), borrow_obstacle(), take_port(), ending(),
 * drop_posts(), query_qp_work(), query_cq_lost() and send_why() have none.
 */
#define FILTER_COUNT(...) +1
_Static_assert(sizeof(struct uvd_backend) - offsetof(struct uvd_backend, open) ==
		       (10 UVD_FILTER_OPS(FILTER_COUNT)) * sizeof(void *),
	       "an operation of struct uvd_backend is not in UVD_FILTER_OPS");

static void filter_chain_release(struct uvd_filter_chain **chain)
{
	uvd_filter_chain_put(*chain);
}

const struct uvd_filter *uvd_next_filter(const struct uvd_next *next, size_t op, struct uvd_next *below, void **data)
{
	for (unsigned int i = next->index; i < next->chain->num; i++) {
		const struct uvd_filter_instance *instance = next->chain->list[i];

		if (!*(void *const *)((const char *)instance->filter + op))
			continue;
		*below = (struct uvd_next){ .chain = next->chain, .index = i + 1 };
		*data = instance->data;
		return instance->filter;
	}
	return NULL;
}

const struct uvd_backend *uvd_next_backend(const struct uvd_next *next)
{
	return next->chain->base;
}

/* The core calls these. A filter may have been removed since the caller has read the table of operations. */
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

int uvd_filter_needs_network(struct uvd_ibdev *dev, const char *filter)
{
	const struct uvd_backend *ops = dev->ops;

	if (ops->carry_message)
		return 0;
	uvd_logf(dev->log, UVD_ERR, "%s: filter %s: the backend %s shows filters no messages, soft does",
		 dev->config.ibdev, filter, ops->name);
	return -EOPNOTSUPP;
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
