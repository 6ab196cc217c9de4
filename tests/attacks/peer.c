/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * peer attack MODE, and peer victim MODE: two connected clients. The attacker has memory that does not answer.
 *
 *   recv     the attacker's send from such memory waits for a receive; the victim posts one
 *   ud       the attacker's receive is in such memory; the victim sends a datagram there, then one to itself
 *   destroy  the attacker sends from such memory; the victim destroys its QP
 *   write    the victim writes into such memory, then destroys its QP
 *   atomic   the attacker has an atomic on such memory, the victim one on its own, at the same offset of a page
 *
 * Each prints its QP number, LID, address and rkey, reads the other's, and prints "ready". After a further line the
 * victim does its part, and prints how many milliseconds that took. The attacker's memory answers when a line comes.
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "slow.h"

enum {
	LENGTH = 64,
	ROOM = 4096,
	QKEY = 0x1111,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp, *loop;
static uint16_t lid;
static char memory[ROOM] __attribute__((aligned(ROOM)));
static struct ibv_mr *mr;

/* Shared with the attacker's second process, which registers the memory that does not answer. */
static struct shared {
	uint32_t lkey, rkey;
	uint64_t addr;
	int hold, held; /* set by the first process; set by the second */
} * other;

static bool is(const char *mode, const char *name)
{
	return !strcmp(mode, name);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	MUST(pd && cq && !ibv_query_port(context, 1, &port));
	lid = port.lid;
	memset(memory, 1, sizeof(memory));
	mr = ibv_reg_mr(pd, memory, sizeof(memory), RIGHTS);
	MUST(mr);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	MUST(made);
	return made;
}

/* The way to a QP of this port: by LID, or by GID where there are none. */
static struct ibv_ah_attr way(uint16_t dlid)
{
	struct ibv_ah_attr av = { .dlid = dlid, .port_num = 1, .is_global = !dlid };

	MUST(!ibv_query_gid(pd->context, 1, 0, &av.grh.dgid));
	return av;
}

static void connect_to(struct ibv_qp *from, uint32_t qpn, uint16_t dlid)
{
	const bool ud = from->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = RIGHTS };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 20,
		.ah_attr = way(dlid),
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};

	MUST(!ibv_modify_qp(from, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	MUST(!ibv_modify_qp(from, &rtr,
			    ud ? IBV_QP_STATE
			       : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	MUST(!ibv_modify_qp(from, &rts,
			    ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
			       : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void post_recv(uint64_t addr, uint32_t lkey)
{
	struct ibv_sge sge = { addr, ROOM / 2, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(qp, &wr, &bad));
}

static void post(struct ibv_qp *from, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	MUST(!ibv_post_send(from, &wr, &bad));
}

static void post_datagram(uint16_t dlid, uint32_t qpn)
{
	struct ibv_ah_attr attr = way(dlid);
	struct ibv_sge sge = { (uintptr_t)memory, LENGTH, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr.ud.ah = ibv_create_ah(pd, &attr);
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	MUST(wr.wr.ud.ah && !ibv_post_send(qp, &wr, &bad));
}

static struct ibv_sge sge_of(uint64_t addr, uint32_t length, uint32_t lkey)
{
	return (struct ibv_sge){ addr, length, lkey };
}

static void completion(void)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		nap(1);
	MUST(wc.status == IBV_WC_SUCCESS);
}

/* ---- the attacker ------------------------------------------------------------------------------------------------ */

static void hold_memory(struct slow *slow)
{
	struct ibv_mr *own = ibv_reg_mr(pd, memory, sizeof(memory), RIGHTS);

	MUST(own);
	other->lkey = own->lkey;
	other->rkey = own->rkey;
	__atomic_store_n(&other->addr, (uintptr_t)memory, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&other->hold, __ATOMIC_ACQUIRE))
		nap(10);
	slow_hold_mmap_lock(slow);
	__atomic_store_n(&other->held, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void hold(void)
{
	__atomic_store_n(&other->hold, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&other->held, __ATOMIC_ACQUIRE))
		nap(10);
}

static void attack(const char *mode, struct slow *slow, uint32_t qpn, uint16_t dlid)
{
	char line[64];

	connect_to(qp, qpn, dlid);
	if (is(mode, "recv"))
		post(qp, IBV_WR_SEND, sge_of(other->addr, LENGTH, other->lkey), 0, 0);
	if (is(mode, "ud"))
		post_recv(other->addr, other->lkey);
	hold();
	if (is(mode, "destroy"))
		post(qp, IBV_WR_SEND, sge_of(other->addr, LENGTH, other->lkey), 0, 0);
	if (is(mode, "atomic"))
		post(loop, IBV_WR_ATOMIC_FETCH_AND_ADD, sge_of((uintptr_t)memory + LENGTH, 8, mr->lkey), other->addr,
		     other->rkey);
	nap(300);
	printf("ready\n");
	MUST(fgets(line, sizeof(line), stdin));
	slow_open_gate(slow);
}

/* ---- the victim -------------------------------------------------------------------------------------------------- */

static void suffer(const char *mode, uint32_t qpn, uint16_t dlid, uint64_t addr, uint32_t rkey)
{
	if (is(mode, "recv"))
		post_recv((uintptr_t)memory, mr->lkey);
	if (is(mode, "ud")) {
		post_datagram(dlid, qpn);
		post_datagram(lid, qp->qp_num);
		/* Both sends, and the receive of the datagram to itself. */
		for (int i = 0; i < 3; i++)
			completion();
	}
	if (is(mode, "write"))
		post(qp, IBV_WR_RDMA_WRITE, sge_of((uintptr_t)memory, LENGTH, mr->lkey), addr, rkey);
	if (is(mode, "atomic")) {
		post(loop, IBV_WR_ATOMIC_FETCH_AND_ADD, sge_of((uintptr_t)memory + LENGTH, 8, mr->lkey),
		     (uintptr_t)memory, mr->rkey);
		completion();
	}
	MUST(!ibv_destroy_qp(qp));
	MUST(!ibv_dereg_mr(mr));
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const bool attacks = argc > 1 && is(argv[1], "attack");
	const char *mode = argc > 2 ? argv[2] : "";
	unsigned int qpn, dlid, rkey;
	unsigned long long addr;
	struct slow slow;
	pid_t holder = 0;
	long long begin;
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device();
	qp = make_qp(is(mode, "ud") ? IBV_QPT_UD : IBV_QPT_RC);
	loop = make_qp(IBV_QPT_RC);
	connect_to(loop, loop->qp_num, lid);
	other = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(other != MAP_FAILED);
	if (attacks) {
		slow_start(&slow);
		holder = fork();
		if (!holder)
			hold_memory(&slow);
		while (!__atomic_load_n(&other->addr, __ATOMIC_ACQUIRE))
			nap(10);
	}
	printf("%u %u %llu %u\n", qp->qp_num, lid, (unsigned long long)other->addr, other->rkey);
	MUST(fgets(line, sizeof(line), stdin) && sscanf(line, "%u %u %llu %u", &qpn, &dlid, &addr, &rkey) == 4);
	if (attacks) {
		attack(mode, &slow, qpn, dlid);
		kill(holder, SIGKILL);
		return 0;
	}
	connect_to(qp, qpn, dlid);
	if (is(mode, "destroy"))
		post_recv((uintptr_t)memory, mr->lkey);
	if (is(mode, "ud"))
		post_recv((uintptr_t)memory + ROOM / 2, mr->lkey);
	printf("ready\n");
	MUST(fgets(line, sizeof(line), stdin));
	begin = now_ms();
	suffer(mode, qpn, dlid, addr, rkey);
	printf("%lld\n", now_ms() - begin);
	return 0;
}
