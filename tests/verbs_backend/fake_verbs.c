/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's objects. Their events are in fake_events.c; what it does with work requests is in fake_queues.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "fake_internal.h"

struct fake_adapter fake;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ibv_device fake_device = { .node_type = IBV_NODE_CA, .name = "fake0", .dev_name = "uverbs-fake0" };
struct list_head fake_contexts;
static struct list_head fake_objects, fake_qps, fake_mrs;
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
	c->context.async_fd = fake_async_open(c);
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
	pthread_mutex_unlock(&fake_lock);
	close(context->cmd_fd);
	fake_async_close(c);
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
	c->channel.fd = fake_completions_open(c);
	return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	fake_completions_close((struct fake_channel *)channel);
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
	fake_completions_end(c);
	fake_async_end(cq->context, cq, &c->async_unacked);
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
	pthread_mutex_lock(&fake_lock);
	fake_async_end(srq->context, srq, &((struct fake_srq *)srq)->unacked);
	pthread_mutex_unlock(&fake_lock);
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

void fake_qp_drop(struct fake_qp *qp)
{
	fake_queue_drop(&qp->sq);
	fake_queue_drop(&qp->rq);
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
	if (atomic_load(&fake.hangs)) {
		sem_post(&fake.blocked);
		sem_wait(&fake.unblock);
	}
	pthread_mutex_lock(&fake_lock);
	fake_async_end(base->context, qp, &qp->unacked);
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
