/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Statements of docs/conformance.md that no test of a mechanism shows: RC, UC, UD and windows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_ah *ah; /* to b's port */

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
	memset(b->buf, 0x22, BUF_SIZE);
	ah = calloc(1, uvd_backend_soft.size_ah);
	ah->pd = a->side->pd;
	ah->attr = bed_address_of(b);
	ck_assert_int_eq(uvd_backend_soft.create_ah(ah, NULL), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(ah), 0);
	free(ah);
	bed_close(&bed);
}

static struct uvd_send_wr datagram(const struct ibv_sge *sge, uint32_t qpn)
{
	return (struct uvd_send_wr){ .wr_id = 0xa,
				     .opcode = IBV_WR_SEND,
				     .send_flags = IBV_SEND_SIGNALED,
				     .sg_list = sge,
				     .num_sge = 1,
				     .ah = ah,
				     .remote_qpn = qpn,
				     .remote_qkey = 0x1234 };
}

static void send_datagram(uint32_t length)
{
	struct ibv_sge sge = sge_at(a, 0, length);
	struct uvd_send_wr wr = datagram(&sge, b->qp->qp_num);

	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}

static int post_recv_with_a_wrong_key(uint64_t wr_id)
{
	struct ibv_sge sge = sge_at(b, 0, 1000);

	sge.lkey ^= 1;
	return post_recv_list(b, wr_id, &sge, 1);
}

/* ---- RC ----------------------------------------------------------------------------------------------------------- */

START_TEST(test_fenced_send_has_the_bytes_that_the_read_before_it_brought)
{
	struct ibv_sge sge = sge_at(a, 0, 5000);
	struct uvd_send_wr send = wr_to(b, IBV_WR_SEND, &sge, 1), read = wr_to(b, IBV_WR_RDMA_READ, &sge, 1);

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 8192, 5000), 0);
	send.send_flags |= IBV_SEND_FENCE;
	read.next = &send;
	ck_assert_int_eq(post_send_wr(a, &read), 0);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b->buf + 8192, b->buf, 5000);
}
END_TEST

START_TEST(test_retry_cnt_7_is_seven_retries)
{
	uint64_t start;

	a->retry_cnt = 7;
	a->timeout = 10; /* 4.2 ms */
	bed_connect(&bed, IBV_QPT_RC);
	free_qp(b);
	start = now_us();
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(now_us() - start, 8 * 4194);
}
END_TEST

/* The responder looks at its QP's rights first: also without bytes, and before it looks at the R_Key. */
START_TEST(test_rights_of_the_qp_come_before_the_key)
{
	struct ibv_sge sge = sge_at(a, 0, _i < 2 ? 0 : 8);
	struct uvd_send_wr wr = wr_to(b, _i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 1);

	b->access = IBV_ACCESS_LOCAL_WRITE;
	bed_connect(&bed, IBV_QPT_RC);
	wr.rkey ^= 1;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_REQ_ERR], 1);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_ACCESS_ERR], 0);
}
END_TEST

START_TEST(test_reads_and_atomics_need_max_rd_atomic)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, opcodes[_i], &sge, 1);

	a->max_rd_atomic = 0;
	bed_connect(&bed, IBV_QPT_RC);
	expect_not_postable(a, &wr);
	if (bed_is_mapped())
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

/* The region of another length: the limit is that of a message, and no memory is touched. _i: one byte too many. */
START_TEST(test_message_of_more_than_2_gib_is_einval)
{
	struct ibv_sge sge[2] = { { (uintptr_t)a->buf, 1u << 31, 0 }, { (uintptr_t)a->buf, 1, 0 } };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, sge, _i ? 2 : 1);

	bed_connect(&bed, IBV_QPT_RC);
	if (_i) {
		expect_not_postable(a, &wr);
	} else {
		ck_assert_int_eq(post_send_wr(a, &wr), 0);
		expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	}
}
END_TEST

START_TEST(test_qp_that_drains_may_go_back_to_rts)
{
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 8); /* has begun: it waits for a receive */
	ck_assert_int_eq(to_state(a, IBV_QPS_SQD), 0);
	ck_assert_int_eq(to_state(a, IBV_QPS_RTS), 0);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

/* A value beyond its limit, alone among good ones. */
static const struct {
	struct ibv_qp_attr attr;
	int mask;
	bool accepted;
} values[] = {
	{ { .max_dest_rd_atomic = 17 }, IBV_QP_MAX_DEST_RD_ATOMIC },
	{ { .max_dest_rd_atomic = 16 }, IBV_QP_MAX_DEST_RD_ATOMIC, true },
	{ { .min_rnr_timer = 32 }, IBV_QP_MIN_RNR_TIMER },
	{ { .min_rnr_timer = 31 }, IBV_QP_MIN_RNR_TIMER, true },
	{ { .pkey_index = 3 }, IBV_QP_PKEY_INDEX },
	{ { .pkey_index = 2 }, IBV_QP_PKEY_INDEX, true },
	{ { .ah_attr = { .port_num = 1, .dlid = 1, .static_rate = 200 } }, IBV_QP_AV, true }, /* as rxe */
	{ { .path_mig_state = IBV_MIG_ARMED }, IBV_QP_PATH_MIG_STATE },
	{ { .path_mig_state = IBV_MIG_REARM }, IBV_QP_PATH_MIG_STATE },
	{ { .retry_cnt = 8 }, IBV_QP_RETRY_CNT },
	{ { .retry_cnt = 7 }, IBV_QP_RETRY_CNT, true },
	{ { .rnr_retry = 8 }, IBV_QP_RNR_RETRY },
	{ { .rnr_retry = 6 }, IBV_QP_RNR_RETRY, true },
	{ { .max_rd_atomic = 17 }, IBV_QP_MAX_QP_RD_ATOMIC, true },
};

/* All of these may change in SQD. */
START_TEST(test_values_beyond_their_limits_are_einval_and_change_nothing)
{
	struct ibv_qp_attr attr = values[_i].attr, before = { 0 }, after = { 0 };
	struct uvd_qp_init_attr init;
	int err;

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_state(a, IBV_QPS_SQD), 0);
	ck_assert_int_eq(uvd_backend_soft.query_qp(a->qp, &before, ~0, &init), 0);
	attr.qp_state = values[_i].mask & IBV_QP_PATH_MIG_STATE ? IBV_QPS_RTS : IBV_QPS_SQD;
	err = uvd_backend_soft.modify_qp(a->qp, &attr, IBV_QP_STATE | values[_i].mask, NULL);
	ck_assert_int_eq(err, values[_i].accepted ? 0 : -EINVAL);
	ck_assert_int_eq(uvd_backend_soft.query_qp(a->qp, &after, ~0, &init), 0);
	ck_assert_int_eq(!memcmp(&before, &after, sizeof(before)), !values[_i].accepted);
}
END_TEST

/* _i: the last LID that is not multicast, and the first that is. */
START_TEST(test_path_to_a_multicast_lid_is_einval)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .ah_attr = { .port_num = 1, .dlid = 0xbfff + _i } };

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_state(a, IBV_QPS_SQD), 0);
	ck_assert_int_eq(uvd_backend_soft.modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_AV, NULL), _i ? -EINVAL : 0);
}
END_TEST

/* The key of an SGE without bytes may be wrong, in the request and in the receive. */
START_TEST(test_sge_of_length_0_is_ignored)
{
	struct ibv_sge sge[2] = { sge_at(a, 0, 8), sge_at(a, 100, 0) };
	struct ibv_sge recv[2] = { sge_at(b, 0, 0), sge_at(b, 200, 8) };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, sge, 2);

	sge[1].lkey ^= 1;
	recv[0].lkey ^= 1;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_list(b, 0xb, recv, 2), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[207], 0x11);
}
END_TEST

static uint8_t draining(void)
{
	struct uvd_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(uvd_backend_soft.query_qp(a->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.sq_draining;
}

START_TEST(test_query_qp_says_whether_the_queue_drains)
{
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 8);
	ck_assert_uint_eq(draining(), 0);
	ck_assert_int_eq(to_state(a, IBV_QPS_SQD), 0);
	ck_assert_uint_eq(draining(), 1);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_eq(draining(), 0);
}
END_TEST

/* Also of a receive whose message has no bytes, alone and with others. */
START_TEST(test_keys_of_a_receive_are_checked_without_bytes_too)
{
	struct uvd_send_wr second = wr_to(b, IBV_WR_SEND, NULL, 0), first = second;

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_with_a_wrong_key(1) | post_recv_with_a_wrong_key(2), 0);
	first.next = _i ? &second : NULL;
	ck_assert_int_eq(post_send_wr(a, &first), 0);
	expect(a->scq, 0xa, IBV_WC_REM_OP_ERR);
	expect(b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	expect(b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

/* ---- UC ----------------------------------------------------------------------------------------------------------- */

START_TEST(test_uc_takes_any_psn)
{
	a->psn = 5; /* b expects it, and a is then told to begin elsewhere */
	bed_make_qps(&bed, IBV_QPT_UC);
	ck_assert_int_eq(to_init(a) | to_init(b), 0);
	ck_assert_int_eq(to_rtr(a, b) | to_rtr(b, a), 0);
	a->psn = 500;
	ck_assert_int_eq(to_rts(a) | to_rts(b), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 3000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wait_until(b->buf[2999] == 0x11);
}
END_TEST

START_TEST(test_uc_message_too_long_leaves_its_receive_to_the_next)
{
	if (_i)
		ck_assert_int_eq(make_srq(b, 8, 1, 0), 0);
	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(_i ? post_srq_at(b, 0xb, 0, 99) : post_recv_at(b, 0xb, 0, 99), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect_nothing(b->rcq);
	send_small(a, b, IBV_WR_SEND, 99);
	ck_assert_uint_eq(expect(b->rcq, 0xb, IBV_WC_SUCCESS).byte_len, 99);
}
END_TEST

/* ---- UC and UD ---------------------------------------------------------------------------------------------------- */

START_TEST(test_receive_with_a_wrong_key_is_the_receivers_error)
{
	bed_connect(&bed, _i ? IBV_QPT_UC : IBV_QPT_UD);
	ck_assert_int_eq(post_recv_with_a_wrong_key(0xb), 0);
	if (_i) {
		send_small(a, b, IBV_WR_SEND, 8);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	} else {
		send_datagram(8);
	}
	expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_RTS);
}
END_TEST

/* ---- UD ----------------------------------------------------------------------------------------------------------- */

START_TEST(test_ud_message_from_another_partition_is_dropped)
{
	b->pkey_index = _i ? 0 : 2; /* 2: another partition */
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	send_datagram(8);
	if (_i)
		expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	else
		expect_nothing(b->rcq);
}
END_TEST

START_TEST(test_ud_message_for_a_qp_of_another_type_is_dropped)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_qp_init_attr init;
	struct uvd_send_wr wr;
	struct end sender = *a;
	int err;

	/* b is connected to the UD QP, so that nothing but the type is wrong. */
	bed_make_qps(&bed, IBV_QPT_UC);
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	sender.scq = a->scq;
	sender.rcq = a->rcq;
	sender.qp = make_qp(&sender, IBV_QPT_UD, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(&sender) | to_rtr(&sender, b) | to_rts(&sender), 0);
	ck_assert_int_eq(to_init(b) | to_rtr(b, &sender) | to_rts(b), 0);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	wr = datagram(&sge, b->qp->qp_num);
	ck_assert_int_eq(post_send_wr(&sender, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect_nothing(b->rcq);
	free_qp(&sender);
}
END_TEST

START_TEST(test_qp_in_sqe_goes_on_receiving)
{
	struct ibv_sge sge = sge_at(b, 0, 8);
	struct uvd_send_wr wr;

	bed_connect(&bed, IBV_QPT_UD);
	sge.lkey ^= 1;
	wr = datagram(&sge, a->qp->qp_num);
	ah->pd = b->side->pd;
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	ah->pd = a->side->pd;
	expect(b->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_SQE);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	send_datagram(8);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_int_eq(state_of(b), IBV_QPS_SQE);
}
END_TEST

START_TEST(test_request_keeps_the_address_of_its_handle)
{
	struct uvd_ah *other = calloc(1, uvd_backend_soft.size_ah);
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr;
	struct uvd_work work;
	const struct uvd_send_wr *bad;

	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	other->pd = ah->pd;
	other->attr = ah->attr;
	ck_assert_int_eq(uvd_backend_soft.create_ah(other, NULL), 0);
	wr = datagram(&sge, b->qp->qp_num);
	wr.ah = other;
	ck_assert_int_eq(bed_post_send(a, &wr, &bad, &work), 0);
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(other), 0);
	memset(other, 0xff, uvd_backend_soft.size_ah);
	free(other);
	work.run(work.arg, NULL);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
}
END_TEST

/* ---- completions --------------------------------------------------------------------------------------------------- */

START_TEST(test_completion_of_a_read_has_its_length_and_of_an_atomic_8)
{
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_RDMA_READ, 5000);
	ck_assert_uint_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).byte_len, 5000);
	send_small(a, b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	ck_assert_uint_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).byte_len, 8);
}
END_TEST

START_TEST(test_completions_outlive_their_qp)
{
	bed_connect(&bed, IBV_QPT_RC);
	uvd_backend_soft.req_notify_cq(a->scq, false);
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	wait_until(a->comp);
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
	if (_i)
		free_qp(a);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_cq_that_ignores_overruns_is_not_supported)
{
	struct uvd_cq *cq = calloc(1, uvd_backend_soft.size_cq);

	cq->context = a->side->context;
	cq->cqe = 8;
	cq->flags = IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	ck_assert_int_eq(uvd_backend_soft.create_cq(cq, NULL), -EOPNOTSUPP);
	free(cq);
}
END_TEST

/* ---- shared receive queues ----------------------------------------------------------------------------------------- */

START_TEST(test_limit_that_an_srq_is_created_with_counts)
{
	ck_assert_int_eq(make_srq(b, 8, 1, 2), 0);
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_srq_at(b, 1, 0, 8) | post_srq_at(b, 2, 0, 8), 0);
	ck_assert_int_eq(b->srq_event[IBV_EVENT_SRQ_LIMIT_REACHED], 0);
	send_small(a, b, IBV_WR_SEND, 8);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->srq_event[IBV_EVENT_SRQ_LIMIT_REACHED], 1);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------- */

/* libibverbs sends the iova, which the region begins at, with the flag and without it. */
START_TEST(test_zero_based_changes_no_address_of_memory)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_mr *mr = make_mr(b, b->buf, 4096, b->access | IBV_ACCESS_ZERO_BASED);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	bed_connect(&bed, IBV_QPT_RC);
	wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.rkey = mr->rkey;
	wr.remote_addr = _i ? 0 : (uintptr_t)b->buf;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, _i ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[0], _i ? 0x22 : 0x11);
	free_mr(mr);
}
END_TEST

START_TEST(test_implicit_region_begins_at_0)
{
	struct uvd_mr *mr = calloc(1, uvd_backend_soft.size_mr);

	*mr = (struct uvd_mr){ .pd = b->side->pd,
			       .umem.length = UINT64_MAX,
			       .length = UINT64_MAX,
			       .iova = 4096,
			       .access = b->access | IBV_ACCESS_ON_DEMAND };
	ck_assert_int_eq(uvd_backend_soft.reg_mr(mr, NULL), -EINVAL);
	mr->iova = 0;
	ck_assert_int_eq(uvd_backend_soft.reg_mr(mr, NULL), 0);
	free_mr(mr);
}
END_TEST

static void bind(struct uvd_mw *mw, const struct uvd_mr *mr)
{
	ck_assert_int_eq(send_wr(b, .wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
				 .bind = { .mw_rkey = mw->rkey,
					   .mr_lkey = mr->lkey,
					   .addr = (uintptr_t)b->buf,
					   .length = 64,
					   .access = IBV_ACCESS_REMOTE_WRITE }),
			 0);
	expect(b->scq, 1, IBV_WC_SUCCESS);
}

START_TEST(test_window_is_bound_to_memory_on_demand)
{
	struct uvd_mr *mr =
		make_mr(b, b->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND);
	struct uvd_mw *mw = calloc(1, uvd_backend_soft.size_mw);
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr;

	bed_connect(&bed, IBV_QPT_RC);
	mw->pd = b->side->pd;
	mw->type = IBV_MW_TYPE_2;
	ck_assert_int_eq(uvd_backend_soft.alloc_mw(mw, NULL), 0);
	bind(mw, mr);
	wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.rkey = mw->rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[7], 0x11);
	ck_assert_int_eq(uvd_backend_soft.dealloc_mw(mw), 0);
	free(mw);
	free_mr(mr);
}
END_TEST

START_TEST(test_window_is_invalidated_on_the_qp_that_bound_it_only)
{
	struct uvd_mr *mr = make_mr(b, b->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct uvd_mw *mw = calloc(1, uvd_backend_soft.size_mw);
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct end other = *b, far = *a;
	struct uvd_qp_init_attr init;
	struct uvd_send_wr wr;
	int err, err_far;

	bed_connect(&bed, IBV_QPT_RC);
	mw->pd = b->side->pd;
	mw->type = IBV_MW_TYPE_2;
	ck_assert_int_eq(uvd_backend_soft.alloc_mw(mw, NULL), 0);
	bind(mw, mr);
	other.scq = b->scq;
	other.rcq = b->rcq;
	far.scq = a->scq;
	far.rcq = a->rcq;
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	other.qp = make_qp(&other, IBV_QPT_RC, &init, &err);
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	far.qp = make_qp(&far, IBV_QPT_RC, &init, &err_far);
	ck_assert_int_eq(err | err_far, 0);
	ck_assert_int_eq(to_init(&other) | to_rtr(&other, &far) | to_rts(&other), 0);
	ck_assert_int_eq(send_wr(&other, .wr_id = 2, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = mw->rkey),
			 0);
	expect(b->scq, 2, IBV_WC_MW_BIND_ERR);
	wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.rkey = mw->rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS); /* the window is still open */
	free_qp(&other);
	free_qp(&far);
	ck_assert_int_eq(uvd_backend_soft.dealloc_mw(mw), 0);
	free(mw);
	free_mr(mr);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("statements");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_fenced_send_has_the_bytes_that_the_read_before_it_brought);
	tcase_add_test(t, test_retry_cnt_7_is_seven_retries);
	tcase_add_loop_test(t, test_rights_of_the_qp_come_before_the_key, 0, 4);
	tcase_add_loop_test(t, test_reads_and_atomics_need_max_rd_atomic, 0, 3);
	tcase_add_loop_test(t, test_message_of_more_than_2_gib_is_einval, 0, 2);
	tcase_add_test(t, test_qp_that_drains_may_go_back_to_rts);
	tcase_add_loop_test(t, test_values_beyond_their_limits_are_einval_and_change_nothing, 0,
			    sizeof(values) / sizeof(values[0]));
	if (!bed_is_on_wire()) /* nor have those of the wire */
		add_own_queue_loop_test(t, test_path_to_a_multicast_lid_is_einval, 0, 2,
					"all ports of mapped queues are Ethernet, which has no LIDs");
	tcase_add_test(t, test_sge_of_length_0_is_ignored);
	tcase_add_test(t, test_query_qp_says_whether_the_queue_drains);
	tcase_add_loop_test(t, test_keys_of_a_receive_are_checked_without_bytes_too, 0, 2);
	tcase_add_test(t, test_uc_takes_any_psn);
	tcase_add_loop_test(t, test_uc_message_too_long_leaves_its_receive_to_the_next, 0, 2);
	tcase_add_loop_test(t, test_receive_with_a_wrong_key_is_the_receivers_error, 0, 2);
	tcase_add_loop_test(t, test_ud_message_from_another_partition_is_dropped, 0, 2);
	tcase_add_test(t, test_ud_message_for_a_qp_of_another_type_is_dropped);
	tcase_add_test(t, test_qp_in_sqe_goes_on_receiving);
	tcase_add_test(t, test_request_keeps_the_address_of_its_handle);
	tcase_add_test(t, test_completion_of_a_read_has_its_length_and_of_an_atomic_8);
	tcase_add_loop_test(t, test_completions_outlive_their_qp, 0, 2);
	tcase_add_test(t, test_cq_that_ignores_overruns_is_not_supported);
	tcase_add_test(t, test_limit_that_an_srq_is_created_with_counts);
	tcase_add_test(t, test_implicit_region_begins_at_0);
	tcase_add_test(t, test_window_is_bound_to_memory_on_demand);
	tcase_add_loop_test(t, test_zero_based_changes_no_address_of_memory, 0, 2);
	tcase_add_test(t, test_window_is_invalidated_on_the_qp_that_bound_it_only);
	return run_suite("backends: soft, statements of docs/conformance.md", t);
}
