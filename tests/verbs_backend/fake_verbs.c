/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's contexts, PDs, MRs, CQs and events. Its QPs and SRQs are in fake_qps.c, its XRC domains in fake_xrc.c, what
 * it does with work requests in fake_queues.c.
 */
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
static struct list_head fake_objects, fake_contexts, fake_mrs;
static pthread_cond_t fake_acked = PTHREAD_COND_INITIALIZER;
uint32_t fake_numbers = 0x100;

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
	fake_qps_begin();
	fake_xrc_begin();
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

void *fake_new(enum fake_call call, size_t size)
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

void fake_free(void *object)
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

/* The counter of the object of an event. */
static unsigned int *fake_unacked(const struct ibv_async_event *event)
{
	if (event->event_type == IBV_EVENT_SRQ_ERR || event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
		return &((struct fake_srq *)event->element.srq)->unacked;
	return &((struct fake_qp *)event->element.qp)->unacked;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_context *c = fake_context(context);
	struct fake_event e;
	int ret;

	pthread_mutex_lock(&fake_lock);
	ret = fake_events_take(&c->events, context->async_fd, &e);
	if (!ret && e.object)
		++*fake_unacked(&e.async);
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
	--*fake_unacked(event);
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

void fake_events_end(struct fake_events *events, void *object, const unsigned int *unacked)
{
	fake_events_drop(events, object);
	while (*unacked)
		pthread_cond_wait(&fake_acked, &fake_lock);
}

void fake_device_lost(void)
{
	pthread_mutex_lock(&fake_lock);
	fake_qps_drop();
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
		fake_events_add(&c->events, c->verbs.context.async_fd, fatal, NULL);
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

static int fake_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t size)
{
	*attr = fake.attr;
	ibv_query_device(context, &attr->orig_attr);
	attr->orig_attr.device_cap_flags = fake.attr.orig_attr.device_cap_flags;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_context *c = fake_new(FAKE_OPEN, sizeof(*c));

	if (!c)
		return NULL;
	c->verbs = (struct verbs_context){ .sz = sizeof(c->verbs), .query_device_ex = fake_query_device_ex };
	c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.context.device = device;
	c->verbs.context.num_comp_vectors = 1;
	c->verbs.context.cmd_fd = open(fake.node, O_RDONLY | O_CLOEXEC);
	c->verbs.context.async_fd = fake_events_open(&c->events);
	c->verbs.context.ops = fake_queue_ops;
	fake_dm_ops(&c->verbs);
	fake_flow_ops(&c->verbs);
	fake_xrc_ops(&c->verbs);
	pthread_mutex_lock(&fake_lock);
	list_add_tail(&c->link, &fake_contexts);
	pthread_mutex_unlock(&fake_lock);
	return &c->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct fake_context *c = fake_context(context);

	pthread_mutex_lock(&fake_lock);
	list_del_init(&c->link);
	fake_events_drop(&c->events, NULL);
	pthread_mutex_unlock(&fake_lock);
	close(context->cmd_fd);
	close(context->async_fd);
	fake_free(c);
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

void fake_mr_add(struct fake_mr *mr)
{
	pthread_mutex_lock(&fake_lock);
	mr->mr.lkey = mr->mr.rkey = ++fake_numbers;
	list_add_tail(&mr->link, &fake_mrs);
	pthread_mutex_unlock(&fake_lock);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct fake_mr *mr = fake_new(FAKE_REG_MR, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = length };
	fake_mr_add(mr);
	return &mr->mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct fake_mr *m = (struct fake_mr *)mr;
	const int ret = fake_result(FAKE_DEREG_MR);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	list_del_init(&m->link);
	if (m->dm)
		fake_dm_leave(m->dm);
	pthread_mutex_unlock(&fake_lock);
	fake_free(mr);
	return 0;
}

static struct fake_mr *fake_mr_find(uint32_t lkey)
{
	struct fake_mr *m;

	list_for_each_entry(m, &fake_mrs, link)
		if (m->mr.lkey == lkey)
			return m;
	return NULL;
}

bool fake_mr_has(uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct fake_mr *m = fake_mr_find(lkey);
	const uint64_t first = m && !m->dm ? (uintptr_t)m->mr.addr : 0;

	return m && addr >= first && addr + length <= first + m->mr.length;
}

void *fake_mr_bytes(uint32_t lkey, uint64_t addr)
{
	const struct fake_mr *m = fake_mr_find(lkey);

	return m && m->dm ? m->bytes + addr : (void *)(uintptr_t)addr;
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
