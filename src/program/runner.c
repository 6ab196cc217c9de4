/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include "runner.h"

static long call_make(const struct uvd_prog_node_ops *ops, const struct uvd_prog_step *s)
{
	const struct uvd_prog_built *b = &s->call;
	long ret;

	if (s->fd < 0)
		return -EBADF;
	if (s->is_close)
		ret = ops->close(s->fd);
	else
		ret = b->is_ioctl ? ops->ioctl(s->fd, b->cmd, b->arg) : ops->write(s->fd, b->msg, b->len);
	return ret < 0 ? -errno : ret;
}

static void step_make(const struct uvd_prog_node_ops *ops, struct uvd_prog_step *s)
{
	s->result = call_make(ops, s);
	if (s->answered)
		s->answered(s);
}

struct beside {
	const struct uvd_prog_node_ops *ops;
	struct uvd_prog_step *step;
	pthread_barrier_t *start; /* the calls wait for each other there */
	pthread_t thread;
};

static void *beside_thread(void *arg)
{
	struct beside *b = arg;

	pthread_barrier_wait(b->start);
	step_make(b->ops, b->step);
	return NULL;
}

static int steps_make_beside(const struct uvd_prog_node_ops *ops, struct uvd_prog_step *const *steps, unsigned int n)
{
	/* Threads that wait for one that did not start keep both. */
	static struct beside beside[UVD_PROG_MAX_BESIDE];
	static pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, n);
	for (unsigned int k = 0; k < n; k++) {
		beside[k] = (struct beside){ .ops = ops, .step = steps[k], .start = &start };
		if (pthread_create(&beside[k].thread, NULL, beside_thread, &beside[k]))
			return -EAGAIN;
	}
	for (unsigned int k = 0; k < n; k++)
		pthread_join(beside[k].thread, NULL);
	pthread_barrier_destroy(&start);
	return 0;
}

int uvd_prog_steps_run(const struct uvd_prog_node_ops *ops, struct uvd_prog_step *const *steps, unsigned int n)
{
	for (unsigned int k = 0; k < n; k++)
		if (steps[k]->prepare && steps[k]->prepare(steps[k]))
			return -1;
	if (n == 1)
		step_make(ops, steps[0]);
	else if (steps_make_beside(ops, steps, n))
		return -EAGAIN;
	for (unsigned int k = 0; k < n; k++)
		if (steps[k]->finish)
			steps[k]->finish(steps[k]);
	return 0;
}
