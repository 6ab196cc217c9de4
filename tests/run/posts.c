/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * posts CASE: posts by the distribution's provider.
 * refused ERRNO: in states that refuse them, with this errno.
 * filtered: the first one fails by a filter.
 * drain: receives in ERR, as programs post them to learn when the QP is drained.
 * srq: receives to the SRQ of a QP in ERR.
 */
#include <errno.h>
#include <string.h>
#include "../distribution/side.h"

enum { ARENA = 8192, SECONDS = 20 };

static struct side s;

static struct ibv_qp *qp_new(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(s.pd, &init);

	CHECK(qp);
	return qp;
}

/* Writes the byte at arena[wr_id] to arena[4096 + wr_id]. */
static int post_write(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s.arena + wr_id, 1, s.mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)s.arena + 4096 + wr_id;
	wr.wr.rdma.rkey = s.mr->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id };

	return ibv_post_recv(qp, &wr, &bad);
}

static void expect(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(next_wc(&s, &wc, SECONDS));
	CHECK(wc.wr_id == wr_id && wc.status == status);
}

/* Completions come in the order of the requests, so the one that was refused is not carried out any more. */
static void expect_only(uint64_t wr_id)
{
	struct ibv_wc wc;

	expect(wr_id, IBV_WC_SUCCESS);
	CHECK(s.arena[4096 + wr_id] == 'x' && !s.arena[4096 + wr_id - 1]);
	CHECK(!next_wc(&s, &wc, 0));
}

static struct ibv_qp *peer_of(struct ibv_qp *qp)
{
	static const struct connection how;
	struct ibv_qp *peer = qp_new(s.cq);

	qp_connect(peer, side_address(&s, qp), &how);
	return peer;
}

static int refusal;

static void refuse_in(enum ibv_qp_state refused)
{
	static const struct connection how;
	struct ibv_qp *qp = qp_new(s.cq), *peer = peer_of(qp);

	memset(s.arena, 'x', 4096);
	memset(s.arena + 4096, 0, 4096);
	if (refused == IBV_QPS_RESET)
		CHECK(post_write(qp, 1) == refusal);
	qp_to_init(qp, &how);
	if (refused == IBV_QPS_INIT)
		CHECK(post_write(qp, 1) == refusal);
	qp_to_rtr(qp, side_address(&s, peer), &how);
	if (refused == IBV_QPS_RTR)
		CHECK(post_write(qp, 1) == refusal);
	qp_to_rts(qp, &how);
	CHECK(!post_write(qp, 2));
	expect_only(2);
	/* No refused post keeps a place of the queue. */
	for (int n = 0; n < 4; n++)
		CHECK(!post_write(qp, n));
	for (int n = 0; n < 4; n++)
		expect(n, IBV_WC_SUCCESS);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer));
}

static void case_refused(void)
{
	for (int state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++)
		refuse_in(state);
}

static void case_filtered(void)
{
	static const struct connection how;
	struct ibv_qp *qp = qp_new(s.cq), *peer = peer_of(qp);

	qp_connect(qp, side_address(&s, peer), &how);
	s.arena[1] = s.arena[2] = 'x';
	CHECK(post_write(qp, 1) == ENOMEM);
	CHECK(!post_write(qp, 2));
	expect_only(2);
}

/* The program polls; it posts a request behind the receive; it waits for an event. */
static void case_drain(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	static const struct connection how;
	void *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	CHECK(channel && !ibv_destroy_cq(s.cq));
	s.cq = ibv_create_cq(s.context, 16, NULL, channel, 0);
	CHECK(s.cq);
	qp = qp_new(s.cq);
	qp_to_init(qp, &how);
	CHECK(!post_recv(qp, 1));
	qp_to_error(qp);
	expect(1, IBV_WC_WR_FLUSH_ERR);
	for (int n = 2; n < 12; n++) {
		CHECK(!post_recv(qp, n));
		expect(n, IBV_WC_WR_FLUSH_ERR);
	}
	CHECK(!post_write(qp, 12));
	expect(12, IBV_WC_WR_FLUSH_ERR);
	for (int n = 20; n < 23; n++) {
		CHECK(!ibv_req_notify_cq(s.cq, 0));
		CHECK(!post_recv(qp, n));
		CHECK(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		expect(n, IBV_WC_WR_FLUSH_ERR);
	}
	qp_to_error(qp);
	CHECK(!post_recv(qp, 30));
	expect(30, IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_destroy_qp(qp));
}

/* Receives of an SRQ stay there for other QPs. The event says that the QP takes no more of them. */
static void case_srq(void)
{
	static const struct connection how;
	struct ibv_qp *qp = side_qp(&s, IBV_QPT_RC, true);
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };
	struct ibv_async_event event;
	struct ibv_wc wc;

	qp_to_init(qp, &how);
	CHECK(!ibv_post_srq_recv(s.srq, &wr, &bad));
	qp_to_error(qp);
	CHECK(!ibv_get_async_event(s.context, &event));
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp);
	ibv_ack_async_event(&event);
	CHECK(!ibv_post_srq_recv(s.srq, &wr, &bad) && !ibv_req_notify_cq(s.cq, 0));
	qp_to_error(qp);
	CHECK(!next_wc(&s, &wc, 0.1));
	CHECK(!ibv_destroy_qp(qp));
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	side_init(&s, arena_new(ARENA), ARENA, false);
	side_open(&s, NULL);
	refusal = argc > 2 ? atoi(argv[2]) : EINVAL;
	if (!strcmp(name, "refused"))
		case_refused();
	else if (!strcmp(name, "filtered"))
		case_filtered();
	else if (!strcmp(name, "drain"))
		case_drain();
	else if (!strcmp(name, "srq"))
		case_srq();
	else
		CHECK(!"a case");
	return 0;
}
