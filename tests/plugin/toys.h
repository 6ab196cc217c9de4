/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The toy plug-ins of these tests share this, and tell the test which of their functions ran. */
#ifndef UVD_TESTS_TOYS_H
#define UVD_TESTS_TOYS_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <uverbsd/plugin.h>
#include "objects/internal.h"

enum {
	OBJ_KV = 0x1200,
	M_KV_CREATE = 0x1200,
	M_KV_DESTROY,
	M_KV_ASK,
	A_KV_HANDLE = 0x1200,
	A_KV_ANSWER,
	A_KV_PORT, /* of QUERY_PORT: gets the plug-in's version */
};

/* The answer of M_KV_ASK. */
struct kv_answer {
	uint64_t version, engine, device, context; /* are there such data? */
};

/* A toy gets its address by the option `trace`. Each function that runs adds a word to the text. */
struct trace {
	pthread_mutex_t lock;
	char text[4096];
	const char *fail_device; /* device_init() of kv fails on this one; NULL: on none */
};

static inline void trace_add(struct trace *t, const char *who, const char *what)
{
	size_t len;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	len = strlen(t->text);
	snprintf(t->text + len, sizeof(t->text) - len, "%s%s.%s", len ? " " : "", who, what);
	pthread_mutex_unlock(&t->lock);
}

/* init() of a toy: its engine data is the trace. */
static inline int toy_init(const struct uvd_plugin_values *values, void **data)
{
	uint64_t trace = 0;
	int ret = uvd_plugin_number(values, "trace", 0, UINT64_MAX, &trace);

	*data = (void *)(uintptr_t)trace;
	return ret;
}

#define TRACE_OPTION \
	{ \
		.name = "trace", .value = "0", .metavar = "ADDRESS", .help = "where to tell" \
	}

#endif
