/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A conversation whose device has filters, and what their rules have counted. */
#ifndef UVD_TESTS_CM_FILTERED_H
#define UVD_TESTS_CM_FILTERED_H

#include "conversation.h"
#include "core/filters.h"

static struct conversation v;
static char error[UVD_PLUGIN_ERROR];

static inline void add(const char *text)
{
	ck_assert_msg(!uvd_device_filter_add(v.dev, text, error), "%s: %s", text, error);
}

static inline void begin(const char *filter)
{
	conversation_begin(&v);
	add(filter);
}

/* A rule's counts. */
struct counts {
	const char *rule;
	uint64_t seen, done;
	bool found;
};

static inline void ignore_text(void *arg, const char *text)
{
}

static inline void take_counts(void *arg, const char *rule, uint64_t seen, uint64_t done)
{
	struct counts *c = arg;

	if (strcmp(rule, c->rule))
		return;
	c->found = true;
	c->seen = seen;
	c->done = done;
}

static inline struct counts counts_of(struct uvd_device *dev, const char *rule)
{
	struct counts c = { .rule = rule };

	uvd_device_filter_list(dev, ignore_text, take_counts, &c);
	ck_assert_msg(c.found, "%s", rule);
	return c;
}

static inline void check_counts(struct uvd_device *dev, const char *rule, uint64_t seen, uint64_t done)
{
	const struct counts c = counts_of(dev, rule);

	ck_assert_msg(c.seen == seen && c.done == done, "%s: %llu of %llu", rule, (unsigned long long)c.done,
		      (unsigned long long)c.seen);
}

#endif
