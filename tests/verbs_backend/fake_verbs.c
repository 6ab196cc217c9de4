/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's objects and its events. What it does with work requests is in fake_queues.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "fake_internal.h"

struct fake_adapter fake;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ibv_device fake_device = { .node_type = IBV_NODE_CA, .name = "fake0", .dev_name = "uverbs-fake0" };
static struct list_head fake_objects, fake_contexts, fake_qps, fake_mrs;
static pthread_cond_t fake_acked = PTHREAD_COND_INITIALIZER;
static uint32_t fake_numbers = 0x100; /* of QPs and keys */

/* ---- the node ---------------------------------------------------------------------------------------------------- */

/* The system's function, and what replaces it in the program. */
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	return __real_inotify_add_watch(fd, strcmp(path, "/dev/infiniband/uverbs-fake0") ? path : fake.node, mask);
}

static void fake_node_make(void)
{
	strcpy(fake.node, "/tmp/uvd-fake-node-XXXXXX");
	close(mkstemp(fake.node));
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

void fake_begin(void)
{
	memset(&fake, 0, sizeof(fake));
	fake_node_make();
	INIT_LIST_HEAD(&fake_objects);
	INIT_LIST_HEAD(&fake_contexts);
	INIT_LIST_HEAD(&fake_qps);
	INIT_LIST_HEAD(&fake_mrs);
	sem_init(&fake.blocked, 0, 0);
	sem_init(&fake.unblock, 0, 0);
}

int fake_result(enum fake_call call)
{
	const int ret = atomic_load(&fake.gone) ? EIO : atomic_load(&fake.result[call]);

	if (ret == -1)
		errno = atomic_load(&fake.err);
	return ret;
}

/* An object that libibverbs has given out. */
struct fake_memory {
	struct list_head link;
	_Alignas(16) char object[];
};

/* Returns zeroed memory for an object, or NULL with errno set. */
static void *fake_new(enum fake_call call, size_t size)
{
	const int ret = fake_result(call);
	struct fake_memory *m;

	if (ret) {
		errno = ret;
		return NULL;
	}
	m = calloc(1, sizeof(*m) + size);
	pthread_mutex_lock(&fake_lock);
	list_add_tail(&m->link, &fake_objects);
	atomic_fetch_add(&fake.objects, 1);
	pthread_mutex_unlock(&fake_lock);
	return m->object;
}

static void fake_free(void *object)
{
	struct fake_memory *m = container_of(object, struct fake_memory, object);

	pthread_mutex_lock(&fake_lock);
	list_del_init(&m->link);
	atomic_fetch_sub(&fake.objects, 1);
	pthread_mutex_unlock(&fake_lock);
	free(m);
}

void fake_end(void)
{
	struct fake_memory *m, *next;

	unlink(fake.node);
	list_for_each_entry_safe(m, next, &fake_objects, link)
		free(m);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static int fake_events_open(struct fake_events *events)
{
	INIT_LIST_HEAD(&events->list);
	return eventfd(0, EFD_CLOEXEC);
}

static void fake_events_drop(struct fake_events *events, const void *object)
{
	struct fake_event *e, *next;

	list_for_each_entry_safe(e, next, &events->list, link) {
		if (object && e->object != object)
			continue;
		list_del_init(&e->link);
		free(e);
	}
}

/* Caller holds fake_lock. */
void fake_events_add(struct fake_events *events, int fd, struct ibv_async_event async, void *object)
{
	struct fake_event *e = calloc(1, sizeof(*e));

	e->async = async;
	e->object = object;
	list_add_tail(&e->link, &events->list);
	eventfd_write(fd, 1);
}

/* Returns 0, or -1 with errno EAGAIN. Caller holds fake_lock. */
static int fake_events_take(struct fake_events *events, int fd, struct fake_event *out)
{
	struct fake_event *e;
	eventfd_t count;

	if (list_empty(&events->list)) {
		eventfd_read(fd, &count);
		errno = EAGAIN;
		return -1;
	}
	e = list_first_entry(&events->list, struct fake_event, link);
	list_del_init(&e->link);
	*out = *e;
	free(e);
	return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_context *c = (struct fake_context *)context;
	struct fake_event e;
	int ret;

	pthread_mutex_lock(&fake_lock);
	ret = fake_events_take(&c->events, context->async_fd, &e);
	if (!ret && e.object)
		((struct fake_qp *)e.object)->unacked++;
	pthread_mutex_unlock(&fake_lock);
	if (!ret)
		*event = e.async;
	if (!ret && e.object && atomic_load(&fake.blocks_events)) {
		sem_post(&fake.blocked);
		sem_wait(&fake.unblock);
	}
	return ret;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (event->event_type == IBV_EVENT_DEVICE_FATAL)
		return;
	pthread_mutex_lock(&fake_lock);
	((struct fake_qp *)event->element.qp)->unacked--;
	pthread_cond_broadcast(&fake_acked);
	pthread_mutex_unlock(&fake_lock);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct fake_channel *c = (struct fake_channel *)channel;
	struct fake_event e;
	int ret;

	pthread_mutex_lock(&fake_lock);
	ret = fake_events_take(&c->events, channel->fd, &e);
	if (!ret) {
		((struct fake_cq *)e.object)->unacked++;
		*cq = e.object;
		*cq_context = (*cq)->cq_context;
	}
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
	pthread_mutex_lock(&fake_lock);
	((struct fake_cq *)cq)->unacked -= num;
	pthread_cond_broadcast(&fake_acked);
	pthread_mutex_unlock(&fake_lock);
}

/* As libibverbs does before it frees an object: drops its events, and waits until those taken are acknowledged. */
static void fake_events_end(struct fake_events *events, void *object, const unsigned int *unacked)
{
	fake_events_drop(events, object);
	while (*unacked)
		pthread_cond_wait(&fake_acked, &fake_lock);
}

/* Drops what is queued. Caller holds fake_lock. */
static void fake_qp_drop(struct fake_qp *qp)
{
	fake_queue_drop(&qp->sq);
	fake_queue_drop(&qp->rq);
}

void fake_device_lost(void)
{
	pthread_mutex_lock(&fake_lock);
	fake_qps_each(fake_qp_drop);
	atomic_store(&fake.gone, true);
	pthread_mutex_unlock(&fake_lock);
}

void fake_device_fatal(void)
{
	const struct ibv_async_event fatal = { .event_type = IBV_EVENT_DEVICE_FATAL };
	struct fake_context *c;

	fake_device_lost();
	pthread_mutex_lock(&fake_lock);
	list_for_each_entry(c, &fake_contexts, link)
		fake_events_add(&c->events, c->context.async_fd, fatal, NULL);
	pthread_mutex_unlock(&fake_lock);
}

void fake_qp_event(uint32_t qp_num, enum ibv_event_type type)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = fake_qp_find(qp_num);
	fake_events_add(&((struct fake_context *)qp->qp.context)->events, qp->qp.context->async_fd,
			(struct ibv_async_event){ .event_type = type, .element.qp = &qp->qp }, qp);
	pthread_mutex_unlock(&fake_lock);
}

/* ---- the device and its contexts --------------------------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *num)
{
	static struct ibv_device *list[] = { &fake_device, NULL };

	if (num)
		*num = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_context *c = fake_new(FAKE_OPEN, sizeof(*c));

	if (!c)
		return NULL;
	c->context.device = device;
	c->context.num_comp_vectors = 1;
	c->context.cmd_fd = open(fake.node, O_RDONLY | O_CLOEXEC);
	c->context.async_fd = fake_events_open(&c->events);
	c->context.ops = fake_queue_ops;
	pthread_mutex_lock(&fake_lock);
	list_add_tail(&c->link, &fake_contexts);
	pthread_mutex_unlock(&fake_lock);
	return &c->context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct fake_context *c = (struct fake_context *)context;

	pthread_mutex_lock(&fake_lock);
	list_del_init(&c->link);
	fake_events_drop(&c->events, NULL);
	pthread_mutex_unlock(&fake_lock);
	close(context->cmd_fd);
	close(context->async_fd);
	fake_free(c);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "1.2.3",
		.node_guid = 1,
		.max_qp = 100,
		.max_qp_wr = 1 << 14,
		.max_sge = 8,
		.max_cq = 100,
		.max_cqe = 1 << 16,
		.max_mr = 100,
		.max_pd = 100,
		.max_srq = 100,
		.phys_port_cnt = 1,
	};
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	if (atomic_load(&fake.gone))
		return EIO;
	/* The inline function that calls this one passes a struct ibv_port_attr. */
	*(struct ibv_port_attr *)attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 1,
		.pkey_tbl_len = 1,
		.lid = 7,
		.active_width = 2,
		.active_speed = 32,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
	};
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t size)
{
	*entry = (struct ibv_gid_entry){ .gid.raw = { 0xfe, 0x80, [15] = 1 }, .port_num = port, .gid_index = index };
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	*pkey = htobe16(0xffff);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *c = fake_new(FAKE_CREATE_CHANNEL, sizeof(*c));

	if (!c)
		return NULL;
	c->channel.context = context;
	c->channel.fd = fake_events_open(&c->events);
	return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	fake_events_drop(&((struct fake_channel *)channel)->events, NULL);
	close(channel->fd);
	fake_free(channel);
	return 0;
}

/* ---- PDs and MRs ------------------------------------------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = fake_new(FAKE_ALLOC_PD, sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	const int ret = fake_result(FAKE_DEALLOC_PD);

	if (!ret)
		fake_free(pd);
	return ret;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct fake_mr *mr = fake_new(FAKE_REG_MR, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length };
	pthread_mutex_lock(&fake_lock);
	mr->mr.lkey = mr->mr.rkey = ++fake_numbers;
	list_add_tail(&mr->link, &fake_mrs);
	pthread_mutex_unlock(&fake_lock);
	return &mr->mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (atomic_load(&fake.gone))
		return EIO;
	pthread_mutex_lock(&fake_lock);
	list_del_init(&((struct fake_mr *)mr)->link);
	pthread_mutex_unlock(&fake_lock);
	fake_free(mr);
	return 0;
}

bool fake_mr_has(uint32_t lkey, const void *addr, uint32_t length)
{
	struct fake_mr *m;

	list_for_each_entry(m, &fake_mrs, link)
		if (m->mr.lkey == lkey)
			return (char *)addr >= (char *)m->mr.addr &&
			       (char *)addr + length <= (char *)m->mr.addr + m->mr.length;
	return false;
}

/* ---- CQs --------------------------------------------------------------------------------------------------------- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct fake_cq *cq = fake_new(FAKE_CREATE_CQ, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->cq.context = context;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.cqe = cqe;
	return &cq->cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	const int ret = fake_result(FAKE_RESIZE_CQ);

	if (!ret)
		cq->cqe = cqe;
	return ret;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct fake_cq *c = (struct fake_cq *)cq;
	const int ret = fake_result(FAKE_DESTROY_CQ);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	fake_events_end(&((struct fake_channel *)cq->channel)->events, cq, &c->unacked);
	pthread_mutex_unlock(&fake_lock);
	fake_free(cq);
	return ret;
}

/* ---- SRQs -------------------------------------------------------------------------------------------------------- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq = fake_new(FAKE_CREATE_SRQ, sizeof(*srq));

	if (!srq)
		return NULL;
	srq->srq.context = pd->context;
	srq->srq.pd = pd;
	srq->srq.srq_context = attr->srq_context;
	srq->attr = attr->attr;
	INIT_LIST_HEAD(&srq->rq);
	return &srq->srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	const int ret = fake_result(FAKE_MODIFY_SRQ);

	if (!ret && (mask & IBV_SRQ_MAX_WR))
		((struct fake_srq *)srq)->attr.max_wr = attr->max_wr;
	return ret;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = ((struct fake_srq *)srq)->attr;
	return fake_result(FAKE_QUERY_SRQ);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	const int ret = fake_result(FAKE_DESTROY_SRQ);

	if (ret)
		return ret;
	fake_queue_drop(&((struct fake_srq *)srq)->rq);
	fake_free(srq);
	return ret;
}

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

struct fake_qp *fake_qp_find(uint32_t qp_num)
{
	struct fake_qp *qp;

	list_for_each_entry(qp, &fake_qps, link)
		if (qp->qp.qp_num == qp_num)
			return qp;
	return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = fake_new(FAKE_CREATE_QP, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->qp = (struct ibv_qp){ .context = pd->context,
				  .qp_context = attr->qp_context,
				  .pd = pd,
				  .send_cq = attr->send_cq,
				  .recv_cq = attr->recv_cq,
				  .srq = attr->srq,
				  .qp_type = attr->qp_type };
	qp->cap = attr->cap;
	INIT_LIST_HEAD(&qp->sq);
	INIT_LIST_HEAD(&qp->rq);
	pthread_mutex_lock(&fake_lock);
	qp->qp.qp_num = ++fake_numbers;
	list_add_tail(&qp->link, &fake_qps);
	pthread_mutex_unlock(&fake_lock);
	return &qp->qp;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	const int ret = fake_result(FAKE_MODIFY_QP);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	if (mask & IBV_QP_STATE)
		qp->qp.state = attr->qp_state;
	if (mask & IBV_QP_DEST_QPN)
		qp->peer = attr->dest_qp_num;
	if (qp->qp.state == IBV_QPS_RESET) {
		fake_qp_drop(qp);
		if (atomic_load(&fake.cleans_cqs))
			fake_cq_clean(qp->qp.recv_cq, qp->qp.qp_num);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	*attr = (struct ibv_qp_attr){ .qp_state = qp->state };
	*init = (struct ibv_qp_init_attr){ .cap = ((struct fake_qp *)qp)->cap };
	return fake_result(FAKE_QUERY_QP);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	const int ret = fake_result(FAKE_DESTROY_QP);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	fake_events_end(&((struct fake_context *)base->context)->events, qp, &qp->unacked);
	list_del_init(&qp->link);
	fake_qp_drop(qp);
	if (atomic_load(&fake.cleans_cqs))
		fake_cq_clean(base->recv_cq, base->qp_num);
	pthread_mutex_unlock(&fake_lock);
	fake_free(qp);
	return ret;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return fake_result(FAKE_ATTACH_MCAST);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return fake_result(FAKE_DETACH_MCAST);
}

/* Caller holds fake_lock. */
void fake_qps_each(void (*fn)(struct fake_qp *qp))
{
	struct fake_qp *qp;

	list_for_each_entry(qp, &fake_qps, link)
		fn(qp);
}
