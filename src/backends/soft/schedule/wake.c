/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The waker: when a port comes up, it looks for requests that wait for an answer and could get one now, and has them
 * retried. The thread that reports the port serves the whole engine, so it must not walk over all QPs itself. The waker
 * starts when it is first needed.
 */
#include "backends/soft/schedule/schedule.h"
#include "util/util.h"

void soft_waker_init(struct soft_waker *waker)
{
	pthread_mutex_init(&waker->lock, NULL);
	pthread_cond_init(&waker->changed, NULL);
}

void soft_waker_destroy(struct soft_waker *waker)
{
	pthread_mutex_lock(&waker->lock);
	waker->stop = true;
	pthread_cond_signal(&waker->changed);
	pthread_mutex_unlock(&waker->lock);
	if (waker->running)
		pthread_join(waker->thread, NULL);
	pthread_cond_destroy(&waker->changed);
	pthread_mutex_destroy(&waker->lock);
}

static void waker_wake(struct soft_qp *qp, void *user)
{
	soft_send_wake(qp);
}

static void *waker_thread(void *arg)
{
	struct uvd_fabric *fabric = arg;
	struct soft_waker *waker = &fabric->waker;

	pthread_mutex_lock(&waker->lock);
	while (!waker->stop) {
		if (!waker->asked) {
			pthread_cond_wait(&waker->changed, &waker->lock);
			continue;
		}
		waker->asked = false;
		pthread_mutex_unlock(&waker->lock);
		soft_fabric_each_qp(fabric, waker_wake, NULL);
		pthread_mutex_lock(&waker->lock);
	}
	pthread_mutex_unlock(&waker->lock);
	return NULL;
}

void soft_wake_all(struct uvd_fabric *fabric)
{
	struct soft_waker *waker = &fabric->waker;

	pthread_mutex_lock(&waker->lock);
	waker->asked = true;
	pthread_cond_signal(&waker->changed);
	if (!waker->running) {
		/* If the thread cannot start, the requests' own timers retry them, while retries are left. */
		waker->running = !uvd_thread_start(&waker->thread, 0, waker_thread, fabric);
	}
	pthread_mutex_unlock(&waker->lock);
}
