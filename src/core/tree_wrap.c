/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Steps that features run before, after or instead of those of another feature's method or command. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "util/util.h"

struct uvd_tree_wrap {
	struct uvd_tree_wrap *next; /* in the order of the features */
	enum uvd_when when;
	const uvd_step *steps;
	const char *owner;
};

int uvd_tree_wrap_add(struct uvd_tree_wrap **list, enum uvd_when when, const uvd_step *steps, const char *owner,
		      const char **other)
{
	struct uvd_tree_wrap *wrap;

	for (; *list; list = &(*list)->next) {
		if (when == UVD_STEPS_INSTEAD && (*list)->when == UVD_STEPS_INSTEAD) {
			*other = (*list)->owner;
			return -EEXIST;
		}
	}
	wrap = uvd_zalloc(sizeof(*wrap));
	if (!wrap)
		return -ENOMEM;
	*wrap = (struct uvd_tree_wrap){ .when = when, .steps = steps, .owner = owner };
	*list = wrap;
	return 0;
}

void uvd_tree_wraps_free(struct uvd_tree_wrap **list)
{
	struct uvd_tree_wrap *next;

	for (; *list; *list = next) {
		next = (*list)->next;
		free(*list);
	}
}

static unsigned int steps_count(const uvd_step *steps)
{
	unsigned int n = 0;

	while (steps && steps[n])
		n++;
	return n;
}

/* Appends the steps of all wrappers of this kind. to: NULL: only counts. Returns how many there are in `to` then. */
static unsigned int wraps_append(const struct uvd_tree_wrap *list, enum uvd_when when, uvd_step *to, unsigned int n)
{
	for (; list; list = list->next) {
		const unsigned int num = list->when == when ? steps_count(list->steps) : 0;

		if (to && num)
			memcpy(to + n, list->steps, num * sizeof(*to));
		n += num;
	}
	return n;
}

static unsigned int steps_merge(const struct uvd_tree_wrap *list, const uvd_step *own, bool before, bool rest,
				uvd_step *to)
{
	unsigned int n = before ? wraps_append(list, UVD_STEPS_BEFORE, to, 0) : 0, all;

	if (!rest)
		return n;
	all = wraps_append(list, UVD_STEPS_INSTEAD, to, n);
	if (all == n) {
		all += steps_count(own);
		if (to && all > n)
			memcpy(to + n, own, (all - n) * sizeof(*to));
	}
	return wraps_append(list, UVD_STEPS_AFTER, to, all);
}

int uvd_tree_steps_merge(const struct uvd_tree_wrap *list, const uvd_step *own, bool before, bool rest,
			 uvd_step **merged)
{
	/* The end is NULL. */
	*merged = calloc(steps_merge(list, own, before, rest, NULL) + 1, sizeof(**merged));
	if (!*merged)
		return -ENOMEM;
	steps_merge(list, own, before, rest, *merged);
	return 0;
}
