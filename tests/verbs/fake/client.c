/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include "client.h"

enum { EVENT_TIMEOUT_MS = 30000 };

struct harness h;

/* ---- the fixture ------------------------------------------------------------------------------------------------- */

void client_init(const struct uvd_account_limits *limits)
{
	struct uvd_account_limits none;

	harness_no_limits(&none);
	fake_begin();
	harness_init_limited(&h, "verbs", limits ? limits : &none);
	snprintf(h.config.hca, sizeof(h.config.hca), "fake0");
	h.config.memory = UVD_MEMORY_BOUNCE;
}

void client_start(void)
{
	harness_start(&h, &uvd_mem_process);
}

void client_setup(void)
{
	client_init(NULL);
	client_start();
}

void client_teardown(void)
{
	harness_close(&h);
	if (!fake.gone)
		ck_assert_int_eq(fake.objects, 0);
	fake_end();
}

uint64_t client_bytes(void)
{
	return uvd_account_used(h.account, UVD_RES_BYTES);
}

void client_lend(void)
{
	struct hca_device *dev = client_device();
	struct hca_context *c;

	for (int i = 0; i < HCA_CONTEXT_LISTS; i++)
		list_for_each_entry(c, &dev->contexts[i], of_device)
			atomic_store(&c->lent, true);
}

void client_uncharge_left(unsigned int contexts)
{
	ck_assert_uint_eq(uvd_account_used(h.account, UVD_RES_DESCRIPTORS), 3 * contexts);
	ck_assert_uint_gt(client_bytes(), 0);
	ck_assert_uint_gt(uvd_account_used(h.account, UVD_RES_RINGS), 0);
	uvd_account_uncharge(h.account, UVD_RES_DESCRIPTORS, 3 * contexts);
	client_uncharge_rings();
	fake.gone = true;
}

void client_uncharge_rings(void)
{
	uvd_uncharge_bytes(h.account, client_bytes());
	uvd_account_uncharge(h.account, UVD_RES_RINGS, uvd_account_used(h.account, UVD_RES_RINGS));
}

struct hca_device *client_device(void)
{
	return h.dev->ib.priv;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

void client_connect(const struct client *c, uint32_t qpn)
{
	const struct ib_uverbs_modify_qp init = {
		.qp_handle = c->qp.handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};
	const struct ib_uverbs_modify_qp rtr = {
		.qp_handle = c->qp.handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.dest = { .dlid = 7, .port_num = 1 },
	};
	const struct ib_uverbs_modify_qp rts = {
		.qp_handle = c->qp.handle,
		.attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			     IBV_QP_MAX_QP_RD_ATOMIC,
		.qp_state = IBV_QPS_RTS,
	};

	ck_assert_int_eq(uv_modify_qp(c->fd, UV_WRITE, &init), 0);
	ck_assert_int_eq(uv_modify_qp(c->fd, UV_WRITE, &rtr), 0);
	ck_assert_int_eq(uv_modify_qp(c->fd, UV_WRITE, &rts), 0);
}

int client_reset(const struct client *c)
{
	const struct ib_uverbs_modify_qp reset = { .qp_handle = c->qp.handle,
						   .attr_mask = IBV_QP_STATE,
						   .qp_state = IBV_QPS_RESET };

	return uv_modify_qp(c->fd, UV_WRITE, &reset);
}

static int client_fail(const struct client *c)
{
	const struct ib_uverbs_modify_qp error = { .qp_handle = c->qp.handle,
						   .attr_mask = IBV_QP_STATE,
						   .qp_state = IBV_QPS_ERR };

	return uv_modify_qp(c->fd, UV_WRITE, &error);
}

bool client_changes_wait(const struct client *first, const struct client *second)
{
	struct worker change[2];
	struct timespec end;
	bool waits;

	fake.waits_in = FAKE_MODIFY_QP;
	worker_start(&change[0], first, client_fail);
	sem_wait(&fake.blocked);
	worker_start(&change[1], second, client_fail);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += 100000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	waits = sem_timedwait(&fake.blocked, &end);
	sem_post(&fake.unblock);
	sem_post(&fake.unblock);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(worker_join(&change[i]), 0);
	fake.waits_in = 0;
	return waits;
}

/* Makes the QP and its region. */
static void client_make_qp(struct client *c)
{
	struct uv_qp_attr attr = uv_qp_attr(c->pd, c->cq);

	/* The core tells the unread events of one QP from those of another by this. */
	attr.user_handle = (uintptr_t)c;
	c->mem = uv_pages(CLIENT_BYTES, PROT_READ | PROT_WRITE);
	ck_assert_int_eq(uv_reg_mr(c->fd, UV_WRITE, c->pd, c->mem, CLIENT_BYTES, IBV_ACCESS_LOCAL_WRITE, &c->mr), 0);
	ck_assert_int_eq(uv_create_qp(c->fd, UV_WRITE, &attr, &c->qp), 0);
	client_connect(c, c->qp.qpn);
}

void client_open(struct client *c, int fd)
{
	c->fd = fd;
	ck_assert_int_eq(uv_get_context(fd, UV_METHOD, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(fd, UV_WRITE, &c->pd), 0);
	ck_assert_int_eq(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &c->cq, NULL), 0);
	client_make_qp(c);
}

void client_open_beside(struct client *c, const struct client *first)
{
	*c = (struct client){ .fd = first->fd, .pd = first->pd, .cq = first->cq };
	client_make_qp(c);
}

uint32_t client_open_with_srq(struct client *c)
{
	const struct uv_srq_attr attr = uv_srq_attr(c->pd);
	struct ib_uverbs_create_qp in = { .pd_handle = c->pd,
					  .send_cq_handle = c->cq,
					  .recv_cq_handle = c->cq,
					  .max_send_wr = 1,
					  .max_send_sge = 1,
					  .qp_type = IBV_QPT_RC,
					  .is_srq = 1 };
	struct ib_uverbs_create_qp_resp resp = {};
	const struct uv_cmd cmd = { .command = IB_USER_VERBS_CMD_CREATE_QP,
				    .in = &in,
				    .in_len = sizeof(in),
				    .out = &resp,
				    .out_len = sizeof(resp) };
	struct uv_srq srq;

	ck_assert_int_eq(uv_create_srq(c->fd, UV_WRITE, &attr, &srq), 0);
	in.srq_handle = srq.handle;
	ck_assert_int_eq(uv_cmd(c->fd, UV_WRITE, &cmd), 0);
	c->qp.handle = resp.qp_handle;
	c->qp.qpn = resp.qpn;
	client_connect(c, c->qp.qpn);
	return srq.handle;
}

static struct ib_uverbs_sge client_sge(const struct client *c, size_t offset, size_t len)
{
	return (struct ib_uverbs_sge){ .addr = (uintptr_t)c->mem + offset, .length = len, .lkey = c->mr.lkey };
}

int client_send(const struct client *c, uint64_t wr_id, size_t offset, size_t len, unsigned int flags)
{
	const struct ib_uverbs_send_wr wr = {
		.wr_id = wr_id, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags
	};
	const struct ib_uverbs_sge sge = client_sge(c, offset, len);

	return uv_post_send(c->fd, UV_WRITE, c->qp.handle, &wr, 1, &sge, 1, NULL);
}

static int client_rdma(const struct client *c, enum ibv_wr_opcode opcode, uint64_t wr_id, struct ib_uverbs_sge sge,
		       const void *remote)
{
	const struct ib_uverbs_send_wr wr = {
		.wr_id = wr_id,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)remote,
	};

	return uv_post_send(c->fd, UV_WRITE, c->qp.handle, &wr, 1, &sge, 1, NULL);
}

int client_write(const struct client *c, uint64_t wr_id, size_t offset, size_t len, void *remote)
{
	return client_rdma(c, IBV_WR_RDMA_WRITE, wr_id, client_sge(c, offset, len), remote);
}

int client_read(const struct client *c, uint64_t wr_id, size_t offset, size_t len, const void *remote)
{
	return client_rdma(c, IBV_WR_RDMA_READ, wr_id, client_sge(c, offset, len), remote);
}

int client_recv(const struct client *c, uint64_t wr_id, size_t offset, size_t len)
{
	const struct ib_uverbs_recv_wr wr = { .wr_id = wr_id, .num_sge = 1 };
	const struct ib_uverbs_sge sge = client_sge(c, offset, len);

	return uv_post_recv(c->fd, UV_WRITE, c->qp.handle, &wr, 1, &sge, 1, NULL);
}

int client_post_srq(const struct client *c, uint32_t srq, uint64_t wr_id, size_t len)
{
	struct {
		struct ib_uverbs_post_srq_recv cmd;
		struct ib_uverbs_recv_wr wr;
		struct ib_uverbs_sge sge;
	} list = {
		.cmd = { .srq_handle = srq, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(list.wr) },
		.wr = { .wr_id = wr_id, .num_sge = 1 },
		.sge = { .addr = (uintptr_t)c->mem, .length = len, .lkey = c->mr.lkey },
	};
	struct ib_uverbs_post_srq_recv_resp resp;
	const struct uv_cmd cmd = { .command = IB_USER_VERBS_CMD_POST_SRQ_RECV,
				    .in = &list,
				    .in_len = sizeof(list),
				    .out = &resp,
				    .out_len = sizeof(resp) };

	return uv_cmd(c->fd, UV_WRITE, &cmd);
}

int client_poll(const struct client *c, struct ib_uverbs_wc *wc)
{
	return uv_poll_cq(c->fd, UV_WRITE, c->cq, 1, wc);
}

void client_expect(const struct client *c, uint64_t wr_id)
{
	struct ib_uverbs_wc wc;

	ck_assert_int_eq(client_poll(c, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, wr_id);
	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
}

void client_expect_none(const struct client *c)
{
	struct ib_uverbs_wc wc;

	ck_assert_int_eq(client_poll(c, &wc), 0);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

int client_async_fd(const struct client *c)
{
	int fd;

	ck_assert_int_eq(uv_alloc_async_fd(c->fd, &fd), 0);
	return h.granted;
}

struct ib_uverbs_async_event_desc client_async_event_whole(int fd)
{
	struct ib_uverbs_async_event_desc event;

	ck_assert_int_eq(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, EVENT_TIMEOUT_MS), 1);
	ck_assert_int_eq(recv(fd, &event, sizeof(event), 0), sizeof(event));
	return event;
}

unsigned int client_async_event(int fd)
{
	return client_async_event_whole(fd).event_type;
}

/* ---- copies that block ------------------------------------------------------------------------------------------- */

static _Atomic uint64_t copy_addr;
static sem_t copy_entered, copy_go;

int __real_uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len);
int __wrap_uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len);
int __real_uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len);
int __wrap_uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len);

static void copy_may_block(uint64_t addr)
{
	if (atomic_load(&copy_addr) != addr)
		return;
	sem_post(&copy_entered);
	sem_wait(&copy_go);
}

int __wrap_uvd_mm_read(struct uvd_mm *mm, void *dst, uint64_t src, size_t len)
{
	copy_may_block(src);
	return __real_uvd_mm_read(mm, dst, src, len);
}

int __wrap_uvd_mm_write(struct uvd_mm *mm, uint64_t dst, const void *src, size_t len)
{
	copy_may_block(dst);
	return __real_uvd_mm_write(mm, dst, src, len);
}

void copy_block(const void *addr)
{
	sem_init(&copy_entered, 0, 0);
	sem_init(&copy_go, 0, 0);
	atomic_store(&copy_addr, (uintptr_t)addr);
}

void copy_wait(void)
{
	sem_wait(&copy_entered);
}

void copy_release(void)
{
	atomic_store(&copy_addr, 0);
	sem_post(&copy_go);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static _Thread_local bool worker_is_watched;
static sem_t worker_news; /* a watched worker waits, or has returned */
static atomic_bool worker_is_waiting;

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (worker_is_watched) {
		worker_is_watched = false;
		atomic_store(&worker_is_waiting, true);
		sem_post(&worker_news);
	}
	return __real_pthread_cond_wait(cond, mutex);
}

static void *watched_worker_run(void *arg)
{
	struct worker *w = arg;

	worker_is_watched = true;
	w->ret = w->fn(w->client);
	worker_is_watched = false;
	sem_post(&worker_news);
	return NULL;
}

void worker_start(struct worker *w, const struct client *c, int (*fn)(const struct client *c))
{
	w->client = c;
	w->fn = fn;
	sem_init(&worker_news, 0, 0);
	atomic_store(&worker_is_waiting, false);
	ck_assert_int_eq(pthread_create(&w->thread, NULL, watched_worker_run, w), 0);
}

bool worker_waits(void)
{
	sem_wait(&worker_news);
	return atomic_load(&worker_is_waiting);
}

int worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	return w->ret;
}
