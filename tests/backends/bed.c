/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uverbsd/reason.h>
#include "explain/explain.h"
#include "tests/backends/bed.h"
#include "wire/wire.h"
#include "tests/backends/bed_mapped.h"

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void dev_event(struct uvd_ibdev *dev, enum ibv_event_type type, uint8_t port)
{
}

bool bed_is_on_wire(void)
{
	return getenv("BED_WIRE");
}

/* On the wire an address of the loopback interface that no other process takes at this time. */
enum { LATEST = 64 };

/* The latest explanations: for which QP, and the code of the reason. */
static struct {
	pthread_mutex_t lock;
	unsigned int num;
	struct {
		uint32_t qpn;
		const char *code;
		char text[UVD_EXPLAINED_TEXT]; /* the reason's, and the remedy */
	} latest[LATEST];
} explained = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void dev_explain(struct uvd_ibdev *dev, struct uvd_context *context, const struct uvd_explained *e)
{
	unsigned int n;

	pthread_mutex_lock(&explained.lock);
	n = explained.num++ % LATEST;
	explained.latest[n].qpn = e->number;
	uvd_why_text(explained.latest[n].text, UVD_EXPLAINED_TEXT, &e->why);
	explained.latest[n].code = e->why.reason ? e->why.reason->code : "none";
	pthread_mutex_unlock(&explained.lock);
}

unsigned int times_explained(const struct end *end, const char *code)
{
	const uint32_t qpn = end->qp->qp_num;
	unsigned int found = 0;

	pthread_mutex_lock(&explained.lock);
	for (unsigned int i = 0; i < LATEST; i++)
		found += explained.latest[i].code && explained.latest[i].qpn == qpn &&
			 !strcmp(explained.latest[i].code, code);
	pthread_mutex_unlock(&explained.lock);
	return found;
}

bool was_told(const struct end *end, const char *part)
{
	const uint32_t qpn = end->qp->qp_num;
	bool found = false;

	pthread_mutex_lock(&explained.lock);
	for (unsigned int i = 0; i < LATEST; i++)
		found |= explained.latest[i].qpn == qpn && strstr(explained.latest[i].text, part);
	pthread_mutex_unlock(&explained.lock);
	return found;
}

bool was_explained(const struct end *end, const char *code)
{
	return times_explained(end, code);
}

void expect_why(const struct end *end, const char *code, const char *on_wire)
{
	const char *want = bed_is_on_wire() ? on_wire : code;

	wait_until(was_explained(end, want));
}

static union ibv_gid side_gid(int nr)
{
	const int pid = getpid();
	union ibv_gid gid = { 0 };

	if (bed_is_on_wire()) {
		gid = (union ibv_gid){
			.raw = { [10] = 0xff, 0xff, 127, pid >> 14, pid >> 6, (pid & 63) << 2 | (nr + 1) }
		};
		gid.raw[13] |= 0x80; /* not 127.0.0.1 */
		return gid;
	}
	gid.raw[0] = 0xfe;
	gid.raw[1] = 0x80;
	gid.raw[15] = nr + 1;
	return gid;
}

static void side_open(struct side *side, const struct uvd_backend *ops, struct uvd_fabric *fabric, int nr, uint8_t ll)
{
	struct uvd_device_config *config = &side->dev.config;
	struct uvd_port_config *port = &config->ports[0];

	side->dev.ops = ops;
	side->dev.engine_data = fabric;
	side->dev.event_handler = dev_event;
	side->dev.explain = dev_explain;
	config->num_ports = 1;
	config->num_comp_vectors = 1;
	config->limits = (struct uvd_limits){
		.max_mr_size = 1ull << 40,
		.max_dm_size = 64 << 10,
		.max_qp = 1000,
		.max_qp_wr = 256,
		.max_sge = 8,
		.max_cq = 1000,
		.max_cqe = 4096,
		.max_mr = 1000,
		.max_pd = 1000,
		.max_ah = 1000,
		.max_mw = 100,
		.max_srq = 10,
		.max_srq_wr = 256,
		.max_srq_sge = 4,
		.max_mcast_grp = 4,
		.max_mcast_qp_attach = 4,
		.max_xrcd = 8,
		.max_counters = 8,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_inline_data = 256,
	};
	port->lid = ll == IBV_LINK_LAYER_INFINIBAND ? nr + 1 : 0;
	if (bed_is_on_wire())
		ll = IBV_LINK_LAYER_ETHERNET;
	if (bed_is_mapped()) {
		/*
		 * As of the persona rxe: its ports are Ethernet, and the room of a request holds entries or inline
		 * data. A test's address by LID becomes one by GID (bed_put_av()).
		 */
		ll = IBV_LINK_LAYER_ETHERNET;
		config->limits.max_sge = config->limits.max_inline_data / sizeof(struct ibv_sge);
	}
	port->link_layer = ll;
	port->max_mtu = port->active_mtu = IBV_MTU_4096;
	port->gid_tbl_len = 8;
	port->num_gids = 1;
	port->gids[0] = side_gid(nr);
	port->num_pkeys = 3;
	port->pkeys[0] = 0xffff;
	port->pkeys[1] = 0x7fff;
	port->pkeys[2] = 0x8001;
	ck_assert_int_eq(ops->open(&side->dev), 0);

	side->context = calloc(1, ops->size_context);
	side->context->dev = &side->dev;
	ck_assert_int_eq(ops->alloc_context(side->context, NULL), 0);
	side->pd = calloc(1, ops->size_pd);
	side->pd->context = side->context;
	ck_assert_int_eq(ops->alloc_pd(side->pd, NULL), 0);
}

static void side_close(struct side *side)
{
	const struct uvd_backend *ops = side->dev.ops;

	ck_assert_int_eq(ops->dealloc_pd(side->pd), 0);
	free(side->pd);
	ops->dealloc_context(side->context);
	free(side->context);
	ops->close(&side->dev);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static void comp_handler(struct uvd_cq *cq)
{
	((struct end *)cq->owner)->comp++;
}

static void cq_event(struct uvd_cq *cq, enum ibv_event_type type)
{
	((struct end *)cq->owner)->cq_event++;
}

static void qp_event(struct uvd_qp *qp, enum ibv_event_type type)
{
	((struct end *)qp->owner)->qp_event[type]++;
}

struct uvd_cq *make_cq(struct end *end, int cqe)
{
	const struct uvd_backend *ops = end->side->dev.ops;
	struct uvd_cq *cq = calloc(1, ops->size_cq);

	cq->context = end->side->context;
	cq->cqe = cqe;
	cq->owner = end;
	cq->comp_handler = comp_handler;
	cq->event_handler = cq_event;
	if (bed_is_mapped())
		bed_queue_for_cq(end, cq);
	if (ops->create_cq(cq, NULL)) {
		free(cq);
		return NULL;
	}
	return cq;
}

static void free_cq(struct end *end, struct uvd_cq *cq)
{
	ck_assert_int_eq(end->side->dev.ops->destroy_cq(cq), 0);
	free(cq);
}

static void srq_event(struct uvd_srq *srq, enum ibv_event_type type)
{
	((struct end *)srq->owner)->srq_event[type]++;
}

int make_srq(struct end *end, uint32_t max_wr, uint32_t max_sge, uint32_t limit)
{
	const struct uvd_backend *ops = end->side->dev.ops;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge, .srq_limit = limit } };
	struct uvd_srq *srq = calloc(1, ops->size_srq);
	int err;

	srq->pd = end->side->pd;
	srq->owner = end;
	srq->event_handler = srq_event;
	if (bed_is_mapped())
		bed_queue_for_srq(end, srq, &init.attr);
	err = ops->create_srq(srq, &init, NULL);
	if (err)
		free(srq);
	else
		end->srq = srq;
	return err;
}

struct uvd_mr *make_mr(struct end *end, void *addr, uint64_t length, unsigned int access)
{
	const struct uvd_backend *ops = end->side->dev.ops;
	struct uvd_mr *mr = calloc(1, ops->size_mr);

	mr->pd = end->side->pd;
	mr->umem.mm = NULL;
	mr->umem.addr = (uintptr_t)addr;
	mr->umem.length = mr->length = length;
	mr->iova = mr->umem.addr;
	mr->access = access;
	if (ops->reg_mr(mr, NULL)) {
		free(mr);
		return NULL;
	}
	return mr;
}

void free_mr(struct uvd_mr *mr)
{
	ck_assert_int_eq(mr->pd->context->dev->ops->dereg_mr(mr), 0);
	free(mr);
}

struct uvd_qp *make_qp(struct end *end, enum ibv_qp_type type, struct uvd_qp_init_attr *init, int *err)
{
	const struct uvd_backend *ops = end->side->dev.ops;
	struct uvd_qp *qp = calloc(1, ops->size_qp);

	qp->pd = end->side->pd;
	qp->account = end->side->context->account;
	qp->send_cq = init->send_cq = end->scq;
	qp->recv_cq = init->recv_cq = end->rcq;
	qp->qp_type = init->qp_type = type;
	qp->srq = init->srq = end->srq;
	qp->sq = end->sq;
	qp->rq = end->rq;
	if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV) {
		qp->recv_cq = init->recv_cq = NULL;
		qp->srq = init->srq = NULL;
	}
	if (type == IBV_QPT_XRC_RECV) {
		qp->pd = NULL;
		qp->send_cq = init->send_cq = NULL;
		qp->xrcd = end->xrcd;
	}
	qp->owner = end;
	qp->event_handler = qp_event;
	if (bed_is_mapped() && !qp->sq && !qp->rq)
		bed_queues_for_qp(end, qp, init);
	*err = ops->create_qp(qp, init, NULL);
	if (*err) {
		free(qp);
		return NULL;
	}
	return qp;
}

void free_qp(struct end *end)
{
	ck_assert_int_eq(end->side->dev.ops->destroy_qp(end->qp), 0);
	free(end->qp);
	end->qp = NULL;
}

/* ---- bed --------------------------------------------------------------------------------------------------------- */

static void bed_add_wire(struct uvd_fabric *fabric, int nr)
{
	const struct uvd_socket_address address = { .gid = side_gid(nr) };
	const int fd = uvd_socket_open_fd(&address, NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(uvd_fabric_add_wire(fabric, fd), 0);
}

void bed_open(struct bed *bed, const struct uvd_backend *ops, uint8_t link_layer)
{
	memset(bed, 0, sizeof(*bed));
	bed->ops = ops;
	bed->cap = (struct ibv_qp_cap){ 32, 32, 4, 4, 64 };
	if (ops != &uvd_backend_null) {
		bed->fabric = uvd_fabric_new(NULL);
		ck_assert_ptr_nonnull(bed->fabric);
	}
	if (bed_is_on_wire()) {
		bed->other = uvd_fabric_new(NULL);
		ck_assert_ptr_nonnull(bed->other);
		bed_add_wire(bed->fabric, 0);
		bed_add_wire(bed->other, 1);
	}
	for (int i = 0; i < 2; i++) {
		struct end *end = &bed->end[i];

		side_open(&bed->side[i], ops, i && bed->other ? bed->other : bed->fabric, i, link_layer);
		end->side = &bed->side[i];
		end->timeout = bed_is_on_wire() ? 16 : 8; /* about 268 ms: packets wait for threads; else 1 ms */
		end->retry_cnt = 3;
		end->rnr_retry = 7;
		end->min_rnr_timer = 1;
		end->max_rd_atomic = end->max_dest_rd_atomic = 4;
		end->path_mtu = IBV_MTU_1024;
		end->psn = 0xfffff0 + i; /* wraps soon */
		end->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC;
		end->buf = calloc(1, BUF_SIZE);
		end->mr = make_mr(end, end->buf, BUF_SIZE, end->access);
		ck_assert_ptr_nonnull(end->mr);
	}
}

void bed_make_qps(struct bed *bed, enum ibv_qp_type type)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &bed->end[i];
		struct uvd_qp_init_attr init = { .cap = bed->cap, .sq_sig_all = bed->sq_sig_all };
		int err;

		end->scq = make_cq(end, bed->cqe ? bed->cqe : 64);
		ck_assert_ptr_nonnull(end->scq);
		end->rcq = bed->one_cq ? end->scq : make_cq(end, bed->cqe ? bed->cqe : 64);
		ck_assert_ptr_nonnull(end->rcq);
		end->qp = make_qp(end, type, &init, &err);
		ck_assert_int_eq(err, 0);
	}
}

void bed_connect(struct bed *bed, enum ibv_qp_type type)
{
	if (!bed->end[0].qp)
		bed_make_qps(bed, type);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(to_init(&bed->end[i]), 0);
		ck_assert_int_eq(to_rtr(&bed->end[i], &bed->end[!i]), 0);
		ck_assert_int_eq(to_rts(&bed->end[i]), 0);
	}
}

void bed_close(struct bed *bed)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &bed->end[i];

		if (end->qp)
			free_qp(end);
		if (end->rcq && end->rcq != end->scq)
			free_cq(end, end->rcq);
		if (end->scq)
			free_cq(end, end->scq);
		if (end->srq) {
			ck_assert_int_eq(bed->ops->destroy_srq(end->srq), 0);
			free(end->srq);
		}
		free_mr(end->mr);
		free(end->buf);
	}
	side_close(&bed->side[0]);
	side_close(&bed->side[1]);
	if (bed->fabric)
		uvd_fabric_free(bed->fabric);
	uvd_fabric_free(bed->other);
	bed_queues_free();
	memset(bed, 0, sizeof(*bed)); /* LeakSanitizer would not report memory that a stale pointer reaches */
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static int modify(struct end *end, const struct ibv_qp_attr *attr, int mask)
{
	return end->side->dev.ops->modify_qp(end->qp, attr, mask, NULL);
}

static bool connected(struct end *end)
{
	return end->qp->qp_type != IBV_QPT_UD && end->qp->qp_type != IBV_QPT_RAW_PACKET;
}

int to_init(struct end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = end->access,
		.qkey = 0x1234,
		.pkey_index = end->pkey_index,
	};

	if (end->qp->qp_type == IBV_QPT_RAW_PACKET)
		return modify(end, &attr, IBV_QP_STATE | IBV_QP_PORT);
	return modify(end, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      (connected(end) ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY));
}

struct ibv_ah_attr bed_address_of(const struct end *end)
{
	const struct uvd_port_config *port = &end->side->dev.config.ports[0];
	struct ibv_ah_attr attr = { .dlid = port->lid, .port_num = 1 };

	if (port->link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.is_global = 1;
		attr.grh.dgid = port->gids[0];
	}
	return attr;
}

int to_rtr(struct end *end, struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->path_mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = end->max_dest_rd_atomic,
		.min_rnr_timer = end->min_rnr_timer,
		.ah_attr = bed_address_of(peer),
	};
	int mask = IBV_QP_STATE;

	if (connected(end))
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (end->qp->qp_type == IBV_QPT_RC || end->qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return modify(end, &attr, mask);
}

int to_rts(struct end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = end->psn,
		.timeout = end->timeout,
		.retry_cnt = end->retry_cnt,
		.rnr_retry = end->rnr_retry,
		.max_rd_atomic = end->max_rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (end->qp->qp_type == IBV_QPT_RAW_PACKET)
		mask = IBV_QP_STATE;
	if (end->qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	if (end->qp->qp_type == IBV_QPT_RC || end->qp->qp_type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return modify(end, &attr, mask);
}

int to_state(struct end *end, enum ibv_qp_state state)
{
	return modify(end, &(struct ibv_qp_attr){ .qp_state = state }, IBV_QP_STATE);
}

enum ibv_qp_state state_of(struct end *end)
{
	struct ibv_qp_attr attr;
	struct uvd_qp_init_attr init;

	ck_assert_int_eq(end->side->dev.ops->query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

struct ibv_sge sge_at(struct end *end, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)end->buf + offset, length, end->mr->lkey };
}

/* A test that brings queues of its own fills them itself. */
int bed_post_send(struct end *end, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad, struct uvd_work *work)
{
	if (bed_is_mapped() && end->qp->sq && !end->sq)
		return bed_mapped_post_send(end->qp, wr, bad, work);
	return end->side->dev.ops->post_send(end->qp, wr, bad, work);
}

int bed_post_recv(struct end *end, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	if (bed_is_mapped() && end->qp->rq && !end->rq)
		return bed_mapped_post_recv(end->qp->rq, wr, bad);
	return end->side->dev.ops->post_recv(end->qp, wr, bad);
}

int bed_post_srq_recv(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	if (srq->queue)
		return bed_mapped_post_recv(srq->queue, wr, bad);
	return srq->pd->context->dev->ops->post_srq_recv(srq, wr, bad);
}

int post_send_wr(struct end *end, const struct uvd_send_wr *wr)
{
	const struct uvd_send_wr *bad = NULL;
	struct uvd_work work = { 0 };
	int err = bed_post_send(end, wr, &bad, &work);

	if (work.run)
		work.run(work.arg, NULL);
	if (err)
		ck_assert_ptr_nonnull(bad);
	return err;
}

int post_srq_at(struct end *end, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_at(end, offset, length);
	struct uvd_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	const struct uvd_recv_wr *bad = NULL;

	return bed_post_srq_recv(end->srq, &wr, &bad);
}

int post_recv_list(struct end *end, uint64_t wr_id, const struct ibv_sge *sge, int num_sge)
{
	struct uvd_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge };
	const struct uvd_recv_wr *bad = NULL;

	return bed_post_recv(end, &wr, &bad);
}

int post_recv_at(struct end *end, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_at(end, offset, length);

	return post_recv_list(end, wr_id, &sge, 1);
}

int poll_cq(struct uvd_cq *cq, struct ibv_wc *wc)
{
	return cq->queue ? bed_mapped_poll(cq->queue, wc) : cq->context->dev->ops->poll_cq(cq, 1, wc);
}

uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

struct ibv_wc wait_wc(struct uvd_cq *cq)
{
	uint64_t end = now_us() + 60000000; /* enough for a slow machine: only a request that is stuck fails the test */
	struct ibv_wc wc;
	int n;

	while (!(n = poll_cq(cq, &wc)) && now_us() < end)
		usleep(50);
	ck_assert_msg(n == 1, "no completion came");
	return wc;
}

struct uvd_send_wr wr_to(struct end *peer, enum ibv_wr_opcode opcode, const struct ibv_sge *sge, int num_sge)
{
	return (struct uvd_send_wr){
		.wr_id = 0xa,
		.opcode = opcode,
		.sg_list = sge,
		.num_sge = num_sge,
		.send_flags = IBV_SEND_SIGNALED,
		.remote_addr = (uintptr_t)peer->buf,
		.rkey = peer->mr->rkey,
	};
}

void send_small(struct end *from, struct end *to, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = sge_at(from, 0, length);
	struct uvd_send_wr wr = wr_to(to, opcode, &sge, 1);

	ck_assert_int_eq(post_send_wr(from, &wr), 0);
}

void expect_not_postable(struct end *end, const struct uvd_send_wr *wr)
{
	ck_assert_int_eq(post_send_wr(end, wr), bed_is_mapped() ? 0 : -EINVAL);
	if (bed_is_mapped()) {
		expect(end->scq, 0xa, IBV_WC_LOC_QP_OP_ERR);
		expect_why(end, "send-refused", "send-refused");
	}
	expect_nothing(end->scq);
}

struct ibv_wc expect(struct uvd_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(cq);

	ck_assert_uint_eq(wc.wr_id, wr_id);
	ck_assert_msg(wc.status == status, "%s, not %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	return wc;
}

void expect_nothing(struct uvd_cq *cq)
{
	struct ibv_wc wc;

	ck_assert_int_eq(poll_cq(cq, &wc), 0);
}
