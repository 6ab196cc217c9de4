/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The timers of QPs: one thread, and a binary heap with the earliest deadline first. */
#include <errno.h>
#include <stdlib.h>
#include "backends/soft/endpoint/endpoint.h"
#include "util/util.h"

void soft_timers_init(struct soft_timers *timers, void (*expired)(struct soft_qp *qp, unsigned int wait_nr))
{
	timers->expired = expired;
	pthread_mutex_init(&timers->lock, NULL);
	uvd_cond_init(&timers->changed);
}

void soft_timers_destroy(struct soft_timers *timers)
{
	pthread_mutex_lock(&timers->lock);
	timers->stop = true;
	pthread_cond_signal(&timers->changed);
	pthread_mutex_unlock(&timers->lock);
	if (timers->running)
		pthread_join(timers->thread, NULL);
	pthread_cond_destroy(&timers->changed);
	pthread_mutex_destroy(&timers->lock);
	free(timers->heap);
}

static void timer_place(struct soft_timers *timers, unsigned int slot, struct soft_qp *qp)
{
	timers->heap[slot] = qp;
	qp->timer.slot = slot;
}

static void sift_up(struct soft_timers *timers, unsigned int slot, struct soft_qp *qp)
{
	for (; slot > 1 && timers->heap[slot / 2]->timer.deadline > qp->timer.deadline; slot /= 2)
		timer_place(timers, slot, timers->heap[slot / 2]);
	timer_place(timers, slot, qp);
}

static void sift_down(struct soft_timers *timers, unsigned int slot, struct soft_qp *qp)
{
	for (unsigned int child; (child = slot * 2) <= timers->count; slot = child) {
		if (child < timers->count &&
		    timers->heap[child + 1]->timer.deadline < timers->heap[child]->timer.deadline)
			child++;
		if (timers->heap[child]->timer.deadline >= qp->timer.deadline)
			break;
		timer_place(timers, slot, timers->heap[child]);
	}
	timer_place(timers, slot, qp);
}

static void heap_remove(struct soft_timers *timers, struct soft_qp *qp)
{
	unsigned int slot = qp->timer.slot;
	struct soft_qp *last = timers->heap[timers->count--];

	qp->timer.slot = 0;
	if (last == qp)
		return;
	if (slot > 1 && timers->heap[slot / 2]->timer.deadline > last->timer.deadline)
		sift_up(timers, slot, last);
	else
		sift_down(timers, slot, last);
}

static void *timer_thread(void *arg)
{
	struct soft_timers *timers = arg;

	pthread_mutex_lock(&timers->lock);
	while (!timers->stop) {
		struct soft_qp *qp = timers->count ? timers->heap[1] : NULL;

		if (!qp) {
			pthread_cond_wait(&timers->changed, &timers->lock);
		} else if (qp->timer.deadline > uvd_now_ns()) {
			uvd_cond_wait_until(&timers->changed, &timers->lock, qp->timer.deadline);
		} else {
			unsigned int wait_nr = qp->timer.wait_nr;

			heap_remove(timers, qp);
			/* The QP was in the heap, so it is valid: its destruction calls soft_timers_release() first. */
			soft_ref_get(&qp->ref);
			pthread_mutex_unlock(&timers->lock);
			timers->expired(qp, wait_nr);
			soft_ref_put(&qp->ref);
			pthread_mutex_lock(&timers->lock);
		}
	}
	pthread_mutex_unlock(&timers->lock);
	return NULL;
}

static int timer_start_thread(struct soft_timers *timers)
{
	int err = uvd_thread_start(&timers->thread, 0, timer_thread, timers);

	timers->running = !err;
	return err;
}

int soft_timers_reserve(struct soft_timers *timers)
{
	int err = 0;

	pthread_mutex_lock(&timers->lock);
	if (timers->reserved + 1 >= timers->room) {
		unsigned int room = timers->room ? timers->room * 2 : 64;
		struct soft_qp **heap = realloc(timers->heap, room * sizeof(heap[0]));

		if (heap) {
			timers->heap = heap;
			timers->room = room;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err && !timers->running)
		err = timer_start_thread(timers);
	if (!err)
		timers->reserved++;
	pthread_mutex_unlock(&timers->lock);
	return err;
}

void soft_timers_release(struct soft_timers *timers, struct soft_qp *qp)
{
	pthread_mutex_lock(&timers->lock);
	if (qp->timer.slot)
		heap_remove(timers, qp);
	timers->reserved--;
	pthread_mutex_unlock(&timers->lock);
}

void soft_timer_arm(struct soft_timers *timers, struct soft_qp *qp, uint64_t ns)
{
	pthread_mutex_lock(&timers->lock);
	if (qp->timer.slot)
		heap_remove(timers, qp);
	qp->timer.deadline = uvd_now_ns() + ns;
	qp->timer.wait_nr = qp->s_wait_nr;
	sift_up(timers, ++timers->count, qp);
	if (qp->timer.slot == 1)
		pthread_cond_signal(&timers->changed);
	pthread_mutex_unlock(&timers->lock);
}

void soft_timer_disarm(struct soft_timers *timers, struct soft_qp *qp)
{
	pthread_mutex_lock(&timers->lock);
	if (qp->timer.slot)
		heap_remove(timers, qp);
	pthread_mutex_unlock(&timers->lock);
}
