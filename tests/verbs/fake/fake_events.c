/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's events. Asynchronous events come through a descriptor, one struct of the kernel a read. An event that was
 * sent, and not dropped with its object, was read or will be: the object counts it until it is acknowledged.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fake_internal.h"

enum { EVENTS_MOST = 256 };

static pthread_cond_t fake_acked = PTHREAD_COND_INITIALIZER;

/* ---- asynchronous events ----------------------------------------------------------------------------------------- */

int fake_async_open(struct fake_context *c)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	c->kernel = uvd_fd_raise(ends[1]);
	return ends[0];
}

void fake_async_close(struct fake_context *c)
{
	close(c->verbs.context.async_fd);
	close(c->kernel);
}

static void async_send(const struct fake_context *c, const void *bytes, size_t len)
{
	if (send(c->kernel, bytes, len, 0) != (ssize_t)len)
		abort();
}

static void async_event(const struct fake_context *c, uint64_t element, enum ibv_event_type type)
{
	const struct ib_uverbs_async_event_desc desc = { .element = element, .event_type = type };

	async_send(c, &desc, sizeof(desc));
}

/* The kernel drops the events of an object that ends. */
void fake_async_end(struct ibv_context *context, const void *object, const unsigned int *unacked)
{
	struct fake_context *c = fake_context(context);
	struct ib_uverbs_async_event_desc kept[EVENTS_MOST];
	unsigned int num = 0, dropped = 0;

	while (num < EVENTS_MOST && recv(context->async_fd, &kept[num], sizeof(*kept), MSG_DONTWAIT) > 0)
		if (kept[num].element == (uintptr_t)object)
			dropped++;
		else
			num++;
	for (unsigned int i = 0; i < num; i++)
		async_send(c, &kept[i], sizeof(*kept));
	while (*unacked > dropped)
		pthread_cond_wait(&fake_acked, &fake_lock);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct ib_uverbs_async_event_desc desc;

	if (read(context->async_fd, &desc, sizeof(desc)) != sizeof(desc))
		return -1;
	*event = (struct ibv_async_event){ .event_type = desc.event_type, .element.port_num = desc.element };
	return 0;
}

static unsigned int *async_counter(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		return NULL;
	case IBV_EVENT_CQ_ERR:
		return &((struct fake_cq *)event->element.cq)->async_unacked;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &((struct fake_srq *)event->element.srq)->unacked;
	case IBV_EVENT_WQ_FATAL:
		return &((struct fake_wq *)event->element.wq)->unacked;
	default:
		return &((struct fake_qp *)event->element.qp)->unacked;
	}
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	unsigned int *unacked = async_counter(event);

	if (!unacked)
		return;
	if (atomic_load(&fake.blocks_events)) {
		sem_post(&fake.blocked);
		sem_wait(&fake.unblock);
	}
	pthread_mutex_lock(&fake_lock);
	--*unacked;
	pthread_cond_broadcast(&fake_acked);
	pthread_mutex_unlock(&fake_lock);
}

/* ---- completion events ------------------------------------------------------------------------------------------- */

int fake_completions_open(struct fake_channel *c)
{
	INIT_LIST_HEAD(&c->completions);
	return eventfd(0, EFD_CLOEXEC);
}

/* Drops the events of one CQ, or of all CQs. */
static void completions_drop(struct fake_channel *c, const struct fake_cq *cq)
{
	struct fake_completion *e, *next;

	list_for_each_entry_safe(e, next, &c->completions, link) {
		if (cq && e->cq != cq)
			continue;
		list_del_init(&e->link);
		free(e);
	}
}

void fake_completions_close(struct fake_channel *c)
{
	completions_drop(c, NULL);
	close(c->channel.fd);
}

void fake_completion_event(struct fake_cq *cq)
{
	struct fake_channel *c = (struct fake_channel *)cq->cq.channel;
	struct fake_completion *e = calloc(1, sizeof(*e));

	e->cq = cq;
	list_add_tail(&e->link, &c->completions);
	eventfd_write(c->channel.fd, 1);
}

/* Returns the CQ, or NULL with errno EAGAIN. Caller holds fake_lock. */
static struct fake_cq *completion_take(struct fake_channel *c)
{
	struct fake_completion *e;
	struct fake_cq *cq;
	eventfd_t count;

	if (list_empty(&c->completions)) {
		eventfd_read(c->channel.fd, &count);
		errno = EAGAIN;
		return NULL;
	}
	e = list_first_entry(&c->completions, struct fake_completion, link);
	cq = e->cq;
	list_del_init(&e->link);
	free(e);
	cq->unacked++;
	return cq;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct fake_cq *taken;

	pthread_mutex_lock(&fake_lock);
	taken = completion_take((struct fake_channel *)channel);
	if (taken) {
		*cq = &taken->cq;
		*cq_context = taken->cq.cq_context;
	}
	pthread_mutex_unlock(&fake_lock);
	return taken ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
	pthread_mutex_lock(&fake_lock);
	((struct fake_cq *)cq)->unacked -= num;
	pthread_cond_broadcast(&fake_acked);
	pthread_mutex_unlock(&fake_lock);
}

void fake_completions_end(struct fake_cq *cq)
{
	completions_drop((struct fake_channel *)cq->cq.channel, cq);
	while (cq->unacked)
		pthread_cond_wait(&fake_acked, &fake_lock);
}

/* ---- what happens to the adapter --------------------------------------------------------------------------------- */

void fake_device_lost(void)
{
	pthread_mutex_lock(&fake_lock);
	fake_qps_each(fake_qp_drop);
	atomic_store(&fake.gone, true);
	pthread_mutex_unlock(&fake_lock);
}

void fake_device_fatal(void)
{
	struct fake_context *c;

	fake_device_lost();
	pthread_mutex_lock(&fake_lock);
	list_for_each_entry(c, &fake_contexts, link)
		async_event(c, 0, IBV_EVENT_DEVICE_FATAL);
	pthread_mutex_unlock(&fake_lock);
}

void fake_qp_event(uint32_t qp_num, enum ibv_event_type type)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = fake_qp_find(qp_num);
	qp->unacked++;
	async_event(fake_context(qp->qp.context), (uintptr_t)qp, type);
	pthread_mutex_unlock(&fake_lock);
}

void fake_srq_event(uint32_t srq_num, enum ibv_event_type type)
{
	struct fake_srq *srq;

	pthread_mutex_lock(&fake_lock);
	srq = fake_srq_find(srq_num);
	srq->unacked++;
	async_event(fake_context(srq->srq.context), (uintptr_t)srq, type);
	pthread_mutex_unlock(&fake_lock);
}

void fake_wq_event(uint32_t wq_num)
{
	struct fake_wq *wq;

	pthread_mutex_lock(&fake_lock);
	wq = fake_wq_find(wq_num);
	wq->unacked++;
	async_event(fake_context(wq->wq.context), (uintptr_t)wq, IBV_EVENT_WQ_FATAL);
	pthread_mutex_unlock(&fake_lock);
}

struct ibv_wq *fake_wq(uint32_t wq_num)
{
	struct fake_wq *wq;

	pthread_mutex_lock(&fake_lock);
	wq = fake_wq_find(wq_num);
	pthread_mutex_unlock(&fake_lock);
	return &wq->wq;
}

void fake_forged_event(uint32_t qp_num, uint64_t element, enum ibv_event_type type)
{
	pthread_mutex_lock(&fake_lock);
	async_event(fake_context(fake_qp_find(qp_num)->qp.context), element, type);
	pthread_mutex_unlock(&fake_lock);
}

void fake_odd_event(uint32_t qp_num, const void *bytes, size_t len)
{
	pthread_mutex_lock(&fake_lock);
	async_send(fake_context(fake_qp_find(qp_num)->qp.context), bytes, len);
	pthread_mutex_unlock(&fake_lock);
}

struct ibv_qp *fake_qp(uint32_t qp_num)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = fake_qp_find(qp_num);
	pthread_mutex_unlock(&fake_lock);
	return &qp->qp;
}
