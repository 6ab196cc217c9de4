/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * mistakes NAME: one usual mistake of RDMA programs, between two QPs of this process. Prints the numbers of both QPs and of the
 * CQ, and the statuses of all completions with errors. tests/run/test_explain.py knows what the device says of each.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include "mistakes.h"

enum { RECV_ID = 100, SEND_ID = 1 };

struct plan plan = {
	.type_a = IBV_QPT_RC,
	.type_b = IBV_QPT_RC,
	.qp_access = ALL_ACCESS & ~IBV_ACCESS_LOCAL_WRITE,
	.mr_access = ALL_ACCESS | IBV_ACCESS_MW_BIND,
	.b_state = IBV_QPS_RTS,
	.mtu_b = IBV_MTU_1024,
	.dest_rd_atomic = 1,
	.cqe = 64,
	.messages = 1,
	.receives = 1,
	.mr_bytes = BYTES,
};

struct ibv_context *ctx;
struct ibv_pd *pd, *other_pd;
struct ibv_cq *cq;
struct ibv_qp *a, *b;
struct ibv_mr *mr, *other_mr;
struct ibv_srq *srq;
struct ibv_xrcd *xrcd;
unsigned char *bytes;
union ibv_gid gid;
struct ibv_port_attr port;
int pkey_index;

static void receive_post(void)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = RECV_ID, .sg_list = &plan.recv_sge, .num_sge = 1 };

	if (srq)
		CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	else
		CHECK(!ibv_post_recv(b, &wr, &bad));
	plan.recv_sge.addr += plan.apart;
}

/* Waits for the completion with this id, and prints each that has an error. */
static struct ibv_wc completion_of(uint64_t id)
{
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0);
		if (!n) {
			usleep(100);
			continue;
		}
		if (wc.status)
			printf("%llu: %s\n", (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
		if (wc.wr_id == id)
			return wc;
	}
}

static void until_cq_err(void)
{
	struct ibv_async_event event;

	do {
		CHECK(!ibv_get_async_event(ctx, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_CQ_ERR);
}

/* The completions that tell of them are lost: waits for the bytes of the last message. */
static void until_last_message(void)
{
	const volatile unsigned char *last = (const unsigned char *)(uintptr_t)(plan.recv_sge.addr - plan.apart);

	while (!*last)
		sched_yield();
}

static void do_as_planned(void)
{
	struct ibv_send_wr *bad;

	if (plan.type_a == IBV_QPT_UD)
		plan.wr.wr.ud.remote_qpn = b->qp_num + plan.dest_a;
	if (plan.b_state != IBV_QPS_RESET || srq)
		for (int i = 0; i < plan.receives; i++)
			receive_post();
	for (int i = 0; i < plan.messages; i++)
		CHECK(!ibv_post_send(a, &plan.wr, &bad));
}

/* ---- mistakes: keys ---------------------------------------------------------------------------------------------- */

static void write_to_peer(void)
{
	plan.wr.opcode = IBV_WR_RDMA_WRITE;
	plan.wr.wr.rdma.remote_addr = (uintptr_t)bytes + 4096;
	plan.wr.wr.rdma.rkey = mr->rkey;
	plan.receives = 0;
}

static void read_from_peer(void)
{
	write_to_peer();
	plan.wr.opcode = IBV_WR_RDMA_READ;
}

static void fetch_and_add(void)
{
	write_to_peer();
	plan.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	plan.wr.wr.atomic.remote_addr = (uintptr_t)bytes + 4096;
	plan.wr.wr.atomic.rkey = mr->rkey;
	plan.sge.length = 8;
}

static uint32_t key_that_ended(void)
{
	struct ibv_mr *gone = ibv_reg_mr(pd, bytes, 4096, ALL_ACCESS);
	uint32_t key = gone->lkey;

	CHECK(!ibv_dereg_mr(gone));
	return key;
}

static void l_key_unknown(void)
{
	plan.sge.lkey += 17 << 8;
}
static void l_key_ended(void)
{
	plan.sge.lkey = key_that_ended();
}
static void l_key_of_other_pd(void)
{
	plan.sge.lkey = other_mr->lkey;
}
static void l_key_range(void)
{
	plan.sge.length = BYTES + 8;
	plan.recv_sge.length = BYTES;
}
static void receive_l_key_unknown(void)
{
	plan.recv_sge.lkey += 17 << 8;
}
static void receive_l_key_of_other_pd(void)
{
	plan.recv_sge.lkey = other_mr->lkey;
}
static void read_into_read_only(void)
{
	struct ibv_mr *read_only = ibv_reg_mr(pd, bytes, 4096, 0);

	read_from_peer();
	plan.sge.lkey = read_only->lkey;
}
static void receive_into_read_only(void)
{
	plan.recv_sge.lkey = ibv_reg_mr(pd, bytes, 4096, 0)->lkey;
}
static void r_key_unknown(void)
{
	write_to_peer();
	plan.wr.wr.rdma.rkey += 17 << 8;
}
static void r_key_ended(void)
{
	write_to_peer();
	plan.wr.wr.rdma.rkey = key_that_ended();
}
static void r_key_of_other_pd(void)
{
	write_to_peer();
	plan.wr.wr.rdma.rkey = other_mr->rkey;
}
static void r_key_range(void)
{
	write_to_peer();
	plan.wr.wr.rdma.remote_addr += BYTES;
}
static void r_key_without_remote_write(void)
{
	write_to_peer();
	plan.wr.wr.rdma.rkey = ibv_reg_mr(pd, bytes, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)->rkey;
}
static void memory_unmapped(void)
{
	unsigned char *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	plan.sge.addr = (uintptr_t)gone;
	plan.sge.lkey = ibv_reg_mr(pd, gone, 4096, ALL_ACCESS)->lkey;
	CHECK(!munmap(gone, 4096));
}

/* ---- mistakes: QPs ----------------------------------------------------------------------------------------------- */

static void qp_without_remote_write(void)
{
	write_to_peer();
	plan.qp_access = IBV_ACCESS_REMOTE_READ;
}
static void qp_without_remote_read(void)
{
	read_from_peer();
	plan.qp_access = IBV_ACCESS_REMOTE_WRITE;
}
static void no_rd_atomic(void)
{
	read_from_peer();
	plan.dest_rd_atomic = 0;
}
static void mtus_differ(void)
{
	plan.mtu_b = IBV_MTU_512;
	plan.sge.length = plan.recv_sge.length = 2048;
}
static void read_with_other_mtu(void)
{
	read_from_peer();
	plan.mtu_b = IBV_MTU_512;
	plan.sge.length = 2048;
}
static void atomic_unaligned(void)
{
	fetch_and_add();
	plan.wr.wr.atomic.remote_addr += 4;
}
static void atomic_of_4_bytes(void)
{
	fetch_and_add();
	plan.sge.length = 4;
}
static void receive_short(void)
{
	plan.recv_sge.length = 8;
}
static void no_receive(void)
{
	plan.receives = 0;
}
static void peer_in_reset(void)
{
	plan.b_state = IBV_QPS_RESET;
}
static void peer_in_init(void)
{
	plan.b_state = IBV_QPS_INIT;
}
static void psns_differ(void)
{
	plan.psn_b = 77;
}
static void gid_wrong(void)
{
	plan.gid_byte = 0x55;
}
static void qpn_wrong(void)
{
	plan.dest_a = 0x1000;
}
static void peer_of_another(void)
{
	plan.dest_b = 0x1000;
}
static void peer_of_other_type(void)
{
	plan.type_b = IBV_QPT_UC;
}
static void peer_in_other_partition(void)
{
	plan.pkey_b = pkey_index;
}
static void cq_small(void)
{
	plan.cqe = 1;
	plan.messages = plan.receives = 20;
	plan.apart = plan.recv_sge.length = plan.sge.length;
	memset(bytes, 1, plan.sge.length);
}
static void srq_wrong(void)
{
	plan.type_a = IBV_QPT_XRC_SEND;
	plan.type_b = IBV_QPT_XRC_RECV;
	plan.wr.qp_type.xrc.remote_srqn = 0x777;
}
static void srq_key_of_other_pd(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };

	srq = ibv_create_srq(other_pd, &init);
	CHECK(srq);
}
static void datagram(void)
{
	struct ibv_ah_attr av;

	plan.type_a = plan.type_b = IBV_QPT_UD;
	av_set(&av);
	plan.wr.wr.ud.ah = ibv_create_ah(pd, &av);
	CHECK(plan.wr.wr.ud.ah);
	plan.wr.wr.ud.remote_qkey = QKEY;
}
static void datagram_long(void)
{
	datagram();
	plan.sge.length = 4096 + 1;
	plan.receives = 0;
}
static void datagram_qkey(void)
{
	datagram();
	plan.wr.wr.ud.remote_qkey = QKEY + 1;
}
static void datagram_short(void)
{
	datagram();
	plan.recv_sge.length = 64;
}
static void datagram_nowhere(void)
{
	datagram();
	plan.dest_a = 0x1000;
}

static void uc_no_receive(void)
{
	plan.type_a = plan.type_b = IBV_QPT_UC;
	plan.receives = 0;
}
static void uc_r_key_of_other_pd(void)
{
	r_key_of_other_pd();
	plan.type_a = plan.type_b = IBV_QPT_UC;
}

/* ---- mistakes: windows ------------------------------------------------------------------------------------------- */

static void bind(struct ibv_qp *qp, struct ibv_mw *mw, unsigned int access, size_t length)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW };

	wr.bind_mw = (typeof(wr.bind_mw)){ mw, ibv_inc_rkey(mw->rkey), { mr, (uintptr_t)bytes, length, access } };
	CHECK(!ibv_post_send(qp, &wr, &bad));
	completion_of(2);
	mw->rkey = wr.bind_mw.rkey;
}

static struct ibv_mw *window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

	CHECK(mw);
	return mw;
}

/* These come when the QPs are connected. */
static void window_of_other_qp(void)
{
	struct ibv_mw *mw = window();

	bind(a, mw, IBV_ACCESS_REMOTE_WRITE, BYTES);
	write_to_peer();
	plan.wr.wr.rdma.rkey = mw->rkey;
}
static void window_range(void)
{
	struct ibv_mw *mw = window();

	bind(b, mw, IBV_ACCESS_REMOTE_WRITE, 4096 + 8);
	write_to_peer();
	plan.wr.wr.rdma.rkey = mw->rkey;
}
static void window_without_remote_write(void)
{
	struct ibv_mw *mw = window();

	bind(b, mw, IBV_ACCESS_REMOTE_READ, BYTES);
	write_to_peer();
	plan.wr.wr.rdma.rkey = mw->rkey;
}
static void window_invalidated(void)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 3, .opcode = IBV_WR_LOCAL_INV };
	struct ibv_mw *mw = window();

	bind(b, mw, IBV_ACCESS_REMOTE_WRITE, BYTES);
	wr.invalidate_rkey = mw->rkey;
	CHECK(!ibv_post_send(b, &wr, &bad));
	completion_of(3);
	write_to_peer();
	plan.wr.wr.rdma.rkey = mw->rkey;
}
static void window_bound_anew(void)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 3, .opcode = IBV_WR_LOCAL_INV };
	struct ibv_mw *mw = window();

	bind(b, mw, IBV_ACCESS_REMOTE_WRITE, BYTES);
	write_to_peer();
	plan.wr.wr.rdma.rkey = wr.invalidate_rkey = mw->rkey;
	CHECK(!ibv_post_send(b, &wr, &bad));
	completion_of(3);
	bind(b, mw, IBV_ACCESS_REMOTE_WRITE, BYTES);
}
/* It does not matter on which QP that was bound. */
static void window_of_type_1(void)
{
	struct ibv_mw_bind wanted = { .wr_id = 2,
				      .bind_info = { mr, (uintptr_t)bytes, BYTES, IBV_ACCESS_REMOTE_READ } };
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);

	CHECK(mw && !ibv_bind_mw(a, mw, &wanted));
	completion_of(2);
	write_to_peer();
	plan.wr.wr.rdma.rkey = mw->rkey;
}
static void l_key_of_window(void)
{
	struct ibv_mw *mw = window();

	bind(a, mw, IBV_ACCESS_REMOTE_WRITE, BYTES);
	plan.sge.lkey = mw->rkey;
}
static void bind_beyond_region(void)
{
	struct ibv_mw *mw = window();

	bind(a, mw, IBV_ACCESS_REMOTE_WRITE, 2 * BYTES);
	plan.messages = 0;
}
static void invalidate_region(void)
{
	plan.wr.opcode = IBV_WR_LOCAL_INV;
	plan.wr.invalidate_rkey = mr->rkey;
	plan.wr.num_sge = 0;
	plan.receives = 0;
}
static void send_invalidates_region(void)
{
	plan.wr.opcode = IBV_WR_SEND_WITH_INV;
	plan.wr.invalidate_rkey = mr->rkey;
}

/* ---- */

static const struct mistake {
	const char *name;
	void (*make)(void);
	bool when_connected;
} mistakes[] = {
#define MISTAKE(name) \
	{ \
#name, name \
	}
	MISTAKE(l_key_unknown),
	MISTAKE(l_key_ended),
	MISTAKE(l_key_of_other_pd),
	MISTAKE(l_key_range),
	MISTAKE(receive_l_key_unknown),
	MISTAKE(receive_l_key_of_other_pd),
	MISTAKE(read_into_read_only),
	MISTAKE(receive_into_read_only),
	MISTAKE(r_key_unknown),
	MISTAKE(r_key_ended),
	MISTAKE(r_key_of_other_pd),
	MISTAKE(r_key_range),
	MISTAKE(r_key_without_remote_write),
	MISTAKE(memory_unmapped),
	MISTAKE(qp_without_remote_write),
	MISTAKE(qp_without_remote_read),
	MISTAKE(no_rd_atomic),
	MISTAKE(mtus_differ),
	MISTAKE(read_with_other_mtu),
	MISTAKE(atomic_unaligned),
	MISTAKE(atomic_of_4_bytes),
	MISTAKE(receive_short),
	MISTAKE(no_receive),
	MISTAKE(peer_in_reset),
	MISTAKE(peer_in_init),
	MISTAKE(psns_differ),
	MISTAKE(gid_wrong),
	MISTAKE(qpn_wrong),
	MISTAKE(peer_of_another),
	MISTAKE(peer_of_other_type),
	MISTAKE(peer_in_other_partition),
	MISTAKE(cq_small),
	MISTAKE(srq_wrong),
	MISTAKE(srq_key_of_other_pd),
	MISTAKE(datagram_long),
	MISTAKE(datagram_qkey),
	MISTAKE(datagram_short),
	MISTAKE(datagram_nowhere),
	MISTAKE(uc_no_receive),
	MISTAKE(uc_r_key_of_other_pd),
	MISTAKE(invalidate_region),
	MISTAKE(send_invalidates_region),
	{ "window_of_other_qp", window_of_other_qp, true },
	{ "window_range", window_range, true },
	{ "window_without_remote_write", window_without_remote_write, true },
	{ "window_invalidated", window_invalidated, true },
	{ "window_bound_anew", window_bound_anew, true },
	{ "window_of_type_1", window_of_type_1, true },
	{ "l_key_of_window", l_key_of_window, true },
	{ "bind_beyond_region", bind_beyond_region, true },
};

static const struct mistake *mistake_named(const char *name)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		if (!strcmp(mistakes[i].name, name))
			return &mistakes[i];
	fprintf(stderr, "mistakes: no such mistake: %s\n", name);
	exit(2);
}

static void begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	uint16_t pkey;

	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx && !ibv_query_port(ctx, 1, &port) && !ibv_query_gid(ctx, 1, 0, &gid));
	/* The second partition of the device, if it has one. */
	if (!ibv_query_pkey(ctx, 1, 1, &pkey) && pkey)
		pkey_index = 1;
	pd = ibv_alloc_pd(ctx);
	other_pd = ibv_alloc_pd(ctx);
	bytes = mmap(NULL, 4 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(pd, bytes, plan.mr_bytes, plan.mr_access);
	other_mr = ibv_reg_mr(other_pd, bytes, BYTES, ALL_ACCESS);
	CHECK(mr && other_mr);
	plan.sge = (struct ibv_sge){ (uintptr_t)bytes, 64, mr->lkey };
	plan.recv_sge = (struct ibv_sge){ (uintptr_t)bytes + 4096, 4096, mr->lkey };
	plan.wr = (struct ibv_send_wr){ .wr_id = SEND_ID, .sg_list = &plan.sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	xrcd = ibv_open_xrcd(ctx, &init);
}

int main(int argc, char **argv)
{
	const struct mistake *m = mistake_named(argc > 1 ? argv[1] : "");

	setvbuf(stdout, NULL, _IOLBF, 0);
	begin();
	if (!m->when_connected)
		m->make();
	cq = ibv_create_cq(ctx, plan.cqe, NULL, NULL, 0);
	CHECK(cq);
	a = qp_new(plan.type_a);
	b = qp_new(plan.type_b);
	printf("a 0x%x\nb 0x%x\n", a->qp_num, b->qp_num);
	both_connect();
	if (m->when_connected)
		m->make();
	do_as_planned();
	if (plan.messages == 1)
		completion_of(SEND_ID);
	if (plan.messages > plan.cqe)
		until_cq_err();
	if (plan.apart)
		until_last_message();
	return 0;
}
