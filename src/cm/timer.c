/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Timers of connections. All of one kind run for the same time, so that each kind has a list in the order in which they run out. */
#include <errno.h>
#include "cm/internal.h"
#include "cm/message.h"

/*
 * A time of InfiniBand's is a power of two times 4.096 us; the kernel takes 2^(n - 8) ms for it (cm_convert_to_ms()). A path of RoCE
 * has 2^18 (CMA_IBOE_PACKET_LIFETIME), an answer 2^20 (CMA_CM_RESPONSE_TIMEOUT), an MRA promises 2^24 (CMA_CM_MRA_SETTING).
 */
static const uint64_t timer_ns[CM_NUM_TIMERS] = {
	[CM_TIMER_RESPONSE] = (2 * UINT64_C(1024) + 4096) * 1000000,
	[CM_TIMER_MRA] = (UINT64_C(65536) + 2048) * 1000000,
	[CM_TIMER_TIMEWAIT] = UINT64_C(2048) * 1000000,
};

/* The next timer that runs out; NULL: none runs. */
static struct cm_id *timers_next(struct uvd_cm *cm)
{
	struct cm_id *next = NULL, *id;

	for (int i = 0; i < CM_NUM_TIMERS; i++) {
		if (list_empty(&cm->timers[i]))
			continue;
		id = list_first_entry(&cm->timers[i], struct cm_id, of_timer);
		if (!next || id->due < next->due)
			next = id;
	}
	return next;
}

static void *timers_run(void *arg)
{
	struct uvd_cm *cm = arg;
	struct cm_id *id;

	cm_lock(cm);
	while (!cm->ends) {
		id = timers_next(cm);
		if (!id) {
			pthread_cond_wait(&cm->timers_changed, &cm->lock);
		} else if (id->due > uvd_now_ns()) {
			uvd_cond_wait_until(&cm->timers_changed, &cm->lock, id->due);
		} else {
			cm_timer_stop(id);
			cm_timed_out(id);
			cm_unlock(cm);
			cm_lock(cm);
		}
	}
	cm_unlock(cm);
	return NULL;
}

int cm_timers_init(struct uvd_cm *cm)
{
	for (int i = 0; i < CM_NUM_TIMERS; i++)
		INIT_LIST_HEAD(&cm->timers[i]);
	uvd_cond_init(&cm->timers_changed);
	return 0;
}

void cm_timers_fini(struct uvd_cm *cm)
{
	cm_lock(cm);
	cm->ends = true;
	pthread_cond_signal(&cm->timers_changed);
	cm_unlock(cm);
	if (cm->has_timer_thread)
		pthread_join(cm->timer_thread, NULL);
	pthread_cond_destroy(&cm->timers_changed);
}

/* The thread starts with the first timer. Without it nothing is sent again, which harms only who has no answer anyway. */
void cm_timer_start(struct cm_id *id, enum cm_timer_kind kind)
{
	struct uvd_cm *cm = id->cm;

	cm_timer_stop(id);
	id->timer = kind;
	id->due = uvd_now_ns() + timer_ns[kind];
	list_add_tail(&id->of_timer, &cm->timers[kind]);
	if (!cm->has_timer_thread)
		cm->has_timer_thread = !uvd_thread_start(&cm->timer_thread, 0, timers_run, cm);
	else if (timers_next(cm) == id)
		pthread_cond_signal(&cm->timers_changed);
}

void cm_timer_stop(struct cm_id *id)
{
	if (!id->due)
		return;
	id->due = 0;
	list_del_init(&id->of_timer);
}
