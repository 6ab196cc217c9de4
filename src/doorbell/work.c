/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The work that doorbells have left: a queue, from which the reader's thread takes it. */
#include <stdlib.h>

#include "doorbell/internal.h"

enum { FIRST_WORKS = 64 };

void uvd_doorbell_works_init(struct uvd_doorbell_works *w)
{
	pthread_mutex_init(&w->lock, NULL);
	uvd_cond_init(&w->idle);
}

void uvd_doorbell_works_fini(struct uvd_doorbell_works *w)
{
	pthread_cond_destroy(&w->idle);
	pthread_mutex_destroy(&w->lock);
	free(w->list);
}

/* Caller holds w->lock. */
static bool works_grow(struct uvd_doorbell_works *w)
{
	const unsigned int max = w->max ? 2 * w->max : FIRST_WORKS;
	struct uvd_work *list = calloc(max, sizeof(*list));

	if (!list)
		return false;
	for (unsigned int i = 0; i < w->num; i++)
		list[i] = w->list[(w->first + i) % w->max];
	free(w->list);
	w->list = list;
	w->first = 0;
	w->max = max;
	return true;
}

bool uvd_doorbell_works_add(struct uvd_doorbell_works *w, struct uvd_work work)
{
	bool added;

	pthread_mutex_lock(&w->lock);
	added = w->num < w->max || works_grow(w);
	if (added)
		w->list[(w->first + w->num++) % w->max] = work;
	pthread_mutex_unlock(&w->lock);
	return added;
}

struct uvd_work uvd_doorbell_works_take(struct uvd_doorbell_works *w)
{
	struct uvd_work work = { NULL };

	pthread_mutex_lock(&w->lock);
	if (w->num) {
		work = w->list[w->first];
		w->first = (w->first + 1) % w->max;
		w->num--;
		w->running++;
	}
	pthread_mutex_unlock(&w->lock);
	return work;
}

void uvd_doorbell_works_leave(struct uvd_doorbell_works *w)
{
	pthread_mutex_lock(&w->lock);
	if (!--w->running && !w->num)
		pthread_cond_broadcast(&w->idle);
	pthread_mutex_unlock(&w->lock);
}

bool uvd_doorbell_works_any(struct uvd_doorbell_works *w)
{
	bool any;

	pthread_mutex_lock(&w->lock);
	any = w->num;
	pthread_mutex_unlock(&w->lock);
	return any;
}

void uvd_doorbell_works_wait(struct uvd_doorbell_works *w, uint64_t end)
{
	bool in_time = true;

	pthread_mutex_lock(&w->lock);
	while (in_time && (w->num || w->running))
		in_time = uvd_cond_wait_until(&w->idle, &w->lock, end);
	pthread_mutex_unlock(&w->lock);
}
