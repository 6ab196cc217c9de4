/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * target GID FIFO: QPs for a test that sends them packets, and is their peer with the address GID. Prints `qp KIND NUMBER PEERS_NUMBER` for each
 * one, `memory ADDRESS BYTES RKEY`, and `ready`. Connects QPs that fail anew. Lines of the FIFO: `look` prints `looked CHANGED
 * COMPLETIONS AGAIN`: whether the registered memory has changed, the completions, and the QPs that failed. `work`: the same, and from now
 * on the requesters post requests, and more when these are complete. At their end checks that the memory beside the
 * registered one has not changed.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include "../distribution/side.h"

enum {
	GUARD = 65536,
	SIZE = 65536,
	QPS = 11,
	FIRST_REQUESTER = 7,
	PEER_QPN = 0x800000,
	SLOT = 4096,
	RECEIVES = 16,
	AT_ONCE = 4,
	FILL = 0x5a
};

static struct side s;
static struct address peer;
static struct ibv_qp *qps[QPS];
static unsigned long completions, again;
static unsigned int in_flight[QPS];
static bool works;

static const char *kind_of(int i)
{
	return i >= FIRST_REQUESTER ? "requester" : i < 4 ? "rc" : i < 6 ? "uc" : "ud";
}

static uintptr_t slot(void)
{
	return (uintptr_t)s.arena + rand() % (SIZE / SLOT) * SLOT;
}

/* The QP may have failed meanwhile. */
static void post_recv(int i)
{
	struct ibv_sge sge = { slot(), rand() % 8 ? SLOT : 64, s.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

	ibv_post_recv(qps[i], &wr, &bad);
}

static void post_request(int i)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_RDMA_WRITE,	     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	struct ibv_sge sge = { slot(), rand() % SLOT, s.mr->lkey };
	struct ibv_send_wr *bad,
		wr = { .wr_id = QPS + i, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };

	wr.opcode = opcodes[rand() % (sizeof(opcodes) / sizeof(*opcodes))];
	wr.wr.rdma.remote_addr = 0x10000; /* where remote_addr of atomics is, too */
	wr.wr.rdma.rkey = 1;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = 0x10000;
		wr.wr.atomic.rkey = 1;
	}
	in_flight[i] += !ibv_post_send(qps[i], &wr, &bad);
}

static void connect_qp(int i)
{
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .max_rd_atomic = 1, .timeout = 10, .retry_cnt = 7, .rnr_retry = 7
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct address to = peer;

	to.qpn = PEER_QPN + i;
	qp_to_init(qps[i], NULL);
	qp_to_rtr(qps[i], to, NULL);
	if (qps[i]->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	/* A packet can have put it into error already. */
	CHECK(!ibv_modify_qp(qps[i], &rts, mask) || works);
	for (int n = 0; n < RECEIVES; n++)
		post_recv(i);
}

static void connect_failed(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET }, attr;
	struct ibv_qp_init_attr init;

	for (int i = 0; i < QPS; i++) {
		CHECK(!ibv_query_qp(qps[i], &attr, IBV_QP_STATE, &init));
		if (attr.qp_state == IBV_QPS_RTS)
			continue;
		again++;
		CHECK(!ibv_modify_qp(qps[i], &reset, IBV_QP_STATE));
		in_flight[i] = 0;
		connect_qp(i);
	}
}

static void complete(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = ibv_poll_cq(s.cq, 16, wc)) > 0)
		for (int k = 0; k < n; k++) {
			int i = wc[k].wr_id % QPS;

			completions++;
			if (wc[k].wr_id < QPS && wc[k].status == IBV_WC_SUCCESS)
				post_recv(i);
			else if (wc[k].wr_id >= QPS && in_flight[i]) /* else it is from before the QP failed */
				in_flight[i]--;
		}
	CHECK(!n);
	for (int i = FIRST_REQUESTER; works && i < QPS; i++)
		while (in_flight[i] < AT_ONCE && !(rand() % 4))
			post_request(i);
}

static bool is_filled(const unsigned char *bytes, size_t size)
{
	return bytes[0] == FILL && !memcmp(bytes, bytes + 1, size - 1);
}

int main(int argc, char **argv)
{
	unsigned char *memory = arena_new(GUARD + SIZE + GUARD);
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char line[16];

	CHECK(argc == 3 && freopen(argv[2], "r", stdin) && inet_pton(AF_INET6, argv[1], &peer.gid) == 1);
	memset(memory, FILL, GUARD + SIZE + GUARD);
	side_init(&s, memory + GUARD, SIZE, false);
	side_open(&s, NULL);
	for (int i = 0; i < QPS; i++) {
		qps[i] = side_qp(&s,
				 i < 4 || i >= FIRST_REQUESTER ? IBV_QPT_RC
				 : i < 6		       ? IBV_QPT_UC
							       : IBV_QPT_UD,
				 false);
		connect_qp(i);
		printf("qp %s %u %u\n", kind_of(i), qps[i]->qp_num, PEER_QPN + i);
	}
	printf("memory %lu %u %u\nready\n", (unsigned long)s.arena, SIZE, s.mr->rkey);
	fflush(stdout);
	for (;;) {
		complete();
		if (poll(&in, 1, 1)) {
			if (!fgets(line, sizeof(line), stdin))
				break;
			if (!strcmp(line, "work\n"))
				works = true;
			printf("looked %d %lu %lu\n", !is_filled(s.arena, SIZE), completions, again);
			fflush(stdout);
		}
		connect_failed();
	}
	CHECK(is_filled(memory, GUARD) && is_filled(memory + GUARD + SIZE, GUARD));
	return 0;
}
