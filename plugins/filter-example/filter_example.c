/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * filter-example: a filter, `quota`, that lets a device have at most N protection domains, and slows their creation:
 *
 *   uverbsctl run --plugin ./filter-example.so --filter quota:pds=2 -- PROGRAM
 *
 * It shows the three things that a filter does: it refuses a call, passes one on, and follows the life of objects that
 * it may have missed the creation of.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

enum { MAX_PDS = 1024 };

/* The state of one device, which init() allocates. */
struct quota {
	uint64_t max, delay_us;
	pthread_mutex_t lock; /* the rest */
	unsigned int num;
	const struct uvd_pd *seen[MAX_PDS]; /* PDs that this filter saw being created */
};

static int quota_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct quota *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	/* A wrong value is told to the user who adds the filter. */
	err = uvd_plugin_number(values, "pds", 0, MAX_PDS, &q->max);
	if (!err)
		err = uvd_plugin_number(values, "delay-us", 0, 1000000, &q->delay_us);
	if (err) {
		free(q);
		return err;
	}
	pthread_mutex_init(&q->lock, NULL);
	*data = q;
	return 0;
}

/* PDs can still exist: the filter was removed from a running device. Their destruction does not come here any more. */
static void quota_exit(struct uvd_ibdev *dev, void *data)
{
	struct quota *q = data;

	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* Reserves a place for the PD. Returns false if there is none. */
static bool quota_take(struct quota *q, const struct uvd_pd *pd)
{
	bool taken;

	pthread_mutex_lock(&q->lock);
	taken = q->num < q->max;
	if (taken)
		q->seen[q->num++] = pd;
	pthread_mutex_unlock(&q->lock);
	return taken;
}

/* Does nothing for a PD that was created before the filter was added. */
static void quota_give_back(struct quota *q, const struct uvd_pd *pd)
{
	pthread_mutex_lock(&q->lock);
	for (unsigned int i = 0; i < q->num; i++)
		if (q->seen[i] == pd) {
			q->seen[i] = q->seen[--q->num];
			break;
		}
	pthread_mutex_unlock(&q->lock);
}

static int quota_alloc_pd(void *data, const struct uvd_next *next, struct uvd_pd *pd, struct uvd_udata *udata)
{
	struct quota *q = data;
	int ret;

	if (!quota_take(q, pd)) {
		uvd_log_limited(pd->context->dev->log, UVD_WARN, "filter quota: there are %llu PDs already",
				(unsigned long long)q->max);
		return -EDQUOT;
	}
	/* The call waits, and no other one: each call has a thread of its own. */
	if (q->delay_us)
		nanosleep(
			&(struct timespec){ .tv_sec = q->delay_us / 1000000, .tv_nsec = q->delay_us % 1000000 * 1000 },
			NULL);
	ret = uvd_next_alloc_pd(next, pd, udata);
	if (ret)
		quota_give_back(q, pd);
	return ret;
}

static int quota_dealloc_pd(void *data, const struct uvd_next *next, struct uvd_pd *pd)
{
	int ret = uvd_next_dealloc_pd(next, pd);

	if (!ret)
		quota_give_back(data, pd);
	return ret;
}

static const struct uvd_plugin_option quota_options[] = {
	{ "pds", "16", "N", "how many protection domains there can be" },
	{ "delay-us", "0", "US", "how long the creation of one takes, in microseconds" },
	{},
};

static const struct uvd_filter quota_filter = {
	.name = "quota",
	.description = "limits the protection domains of a device",
	.options = quota_options,
	.init = quota_init,
	.exit = quota_exit,
	.alloc_pd = quota_alloc_pd,
	.dealloc_pd = quota_dealloc_pd,
};
static const struct uvd_filter *const filters[] = { &quota_filter, NULL };

UVD_PLUGIN(.name = "filter-example", .version = "1", .description = "a filter that limits PDs", .filters = filters);
