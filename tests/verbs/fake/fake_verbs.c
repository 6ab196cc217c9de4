/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's contexts, PDs, MRs and CQs. Its QPs and SRQs are in fake_qps.c, its XRC domains in fake_xrc.c, its device
 * memory in fake_dm.c, its work queues in fake_wq.c, its events in fake_events.c, and what it does with work requests in
 * fake_queues.c.
 */
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
static struct list_head fake_objects, fake_mrs;
uint32_t fake_numbers = 0x100;

/* ---- the node ---------------------------------------------------------------------------------------------------- */

/* The functions that these replace in the program. */
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	return __real_inotify_add_watch(fd, strcmp(path, "/dev/infiniband/uverbs-fake0") ? path : fake.node, mask);
}

bool __wrap_hca_has_capability(uint32_t capabilities);

bool __wrap_hca_has_capability(uint32_t capabilities)
{
	return !fake.unprivileged;
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
	fake_wq_begin();
	INIT_LIST_HEAD(&fake_mrs);
	sem_init(&fake.blocked, 0, 0);
	sem_init(&fake.unblock, 0, 0);
}

int fake_result(enum fake_call call)
{
	const int ret = atomic_load(&fake.gone) ? EIO : atomic_load(&fake.result[call]);

	if (call && atomic_load(&fake.waits_in) == (int)call) {
		sem_post(&fake.blocked);
		sem_wait(&fake.unblock);
	}
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
	fake.opens++;
	c->verbs = (struct verbs_context){ .sz = sizeof(c->verbs), .query_device_ex = fake_query_device_ex };
	c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.context.device = device;
	c->verbs.context.num_comp_vectors = 1;
	c->verbs.context.cmd_fd = open(fake.node, O_RDONLY | O_CLOEXEC);
	c->verbs.context.async_fd = fake_async_open(c);
	c->verbs.context.ops = fake_queue_ops;
	fake_dm_ops(&c->verbs);
	fake_flow_ops(&c->verbs);
	fake_xrc_ops(&c->verbs);
	fake_wq_ops(&c->verbs);
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
	pthread_mutex_unlock(&fake_lock);
	close(context->cmd_fd);
	fake_async_close(c);
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

/* ---- address handles ---------------------------------------------------------------------------------------------- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = fake_new(FAKE_CREATE_AH, sizeof(*ah));

	if (ah)
		ah->context = pd->context;
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	const int ret = fake_result(FAKE_DESTROY_AH);

	if (!ret)
		fake_free(ah);
	return ret;
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
