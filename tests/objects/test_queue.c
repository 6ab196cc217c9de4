/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Mapped queues of the persona rxe: their mmap offsets, their charge, and their release with the object. */
#include "queues.h"

START_TEST(test_cq_tells_where_its_queue_is)
{
	struct cq_answer resp;

	begin(true);
	ck_assert_int_eq(create_cq(10, &resp, sizeof(resp.driver)), 0);
	ck_assert_uint_eq(resp.core.cqe, 15);
	ck_assert_uint_eq(resp.driver.mi.offset, shared.offset);
	ck_assert_uint_eq(resp.driver.mi.size, 4096); /* 384 + 16 * 64 */
	ck_assert_uint_eq(shared.num, 1);
	destroy_cq(resp.core.cq_handle);
	ck_assert_uint_eq(shared.num, 0);
}
END_TEST

START_TEST(test_no_room_for_the_drivers_answer_is_einval)
{
	struct cq_answer resp;

	begin(true);
	ck_assert_int_eq(create_cq(10, &resp, sizeof(resp.driver) - 4), -EINVAL);
	ck_assert_uint_eq(shared.gets, 0);
}
END_TEST

START_TEST(test_file_that_cannot_be_mapped_has_no_queues)
{
	struct cq_answer resp;

	begin(false);
	ck_assert_int_eq(create_cq(10, &resp, sizeof(resp.driver)), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_sizes_beyond_the_limits_are_einval)
{
	struct cq_answer resp;
	struct qp_answer qp;

	begin(true);
	cq = new_cq();
	ck_assert_int_eq(create_cq(0, &resp, sizeof(resp.driver)), -EINVAL);
	ck_assert_int_eq(create_cq(h.config.limits.max_cqe + 1, &resp, sizeof(resp.driver)), -EINVAL);
	ck_assert_int_eq(create_cq(UINT32_MAX, &resp, sizeof(resp.driver)), -EINVAL);
	ck_assert_int_eq(create_qp(cq, h.config.limits.max_qp_wr + 1, &qp), -EINVAL);
	ck_assert_int_eq(create_qp(cq, UINT32_MAX, &qp), -EINVAL);
	ck_assert_uint_eq(shared.gets, 1);
	/* The limit itself is allowed, and the queue is rounded up beyond it. */
	ck_assert_int_eq(create_qp(cq, h.config.limits.max_qp_wr, &qp), 0);
	ck_assert_uint_gt(qp.core.max_send_wr, h.config.limits.max_qp_wr);
	h.dev->config.limits.max_cqe = h.dev->ib.config.limits.max_cqe = 1000;
	ck_assert_int_eq(create_cq(1000, &resp, sizeof(resp.driver)), 0);
	ck_assert_uint_eq(resp.core.cqe, 1023);
}
END_TEST

static int refuse_cq(struct uvd_cq *cq, struct uvd_udata *udata)
{
	return -EDOM;
}

/* harness_close() checks that nothing stays charged. */
START_TEST(test_queue_ends_where_the_backend_refuses)
{
	struct cq_answer resp;

	begin(true);
	h.ops.create_cq = refuse_cq;
	ck_assert_int_eq(create_cq(10, &resp, sizeof(resp.driver)), -EDOM);
	ck_assert_uint_eq(shared.gets, 1);
	ck_assert_uint_eq(shared.num, 0);
}
END_TEST

START_TEST(test_no_shared_memory_is_told_and_nothing_stays)
{
	struct qp_answer qp;

	begin(true);
	cq = new_cq();
	for (unsigned int from = 2; from < 4; from++) { /* 2: the send queue fails; 3: the receive queue */
		shared.gets = 1;
		shared.refuse_from = from;
		ck_assert_int_eq(create_qp(cq, 4, &qp), -ENFILE);
		ck_assert_uint_eq(shared.num, 1);
	}
	shared.refuse_from = 0;
	ck_assert_int_eq(create_qp(cq, 4, &qp), 0);
}
END_TEST

START_TEST(test_qp_tells_where_both_queues_are)
{
	struct qp_answer qp;

	begin(true);
	ck_assert_int_eq(create_qp(new_cq(), 4, &qp), 0);
	ck_assert(qp.driver.sq_mi.size && qp.driver.rq_mi.size && qp.driver.sq_mi.offset != qp.driver.rq_mi.offset);
	ck_assert_uint_eq(qp.core.max_send_wr, 7);
	ck_assert_uint_eq(qp.core.max_recv_wr, 3);
	ck_assert_uint_eq(shared.num, 3);
	harness_close_file(&h);
	ck_assert_uint_eq(shared.num, 0);
}
END_TEST

START_TEST(test_commands_of_the_data_path_are_rxes)
{
	struct {
		struct ib_uverbs_poll_cq_resp resp;
		struct ib_uverbs_wc wc;
	} out;
	struct ib_uverbs_poll_cq poll = { .ne = 1 };
	struct ib_uverbs_post_send post = { .wqe_size = sizeof(struct ib_uverbs_send_wr) };
	struct ib_uverbs_post_send_resp posted = { .bad_wr = 7 };
	struct ib_uverbs_req_notify_cq notify = {};
	struct qp_answer qp;

	begin(true);
	poll.cq_handle = notify.cq_handle = new_cq();
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_POLL_CQ, &poll, sizeof(poll), &out, sizeof(out)),
			 -EOPNOTSUPP);
	ck_assert_int_eq(WRITE(&h, POST_RECV, &post, &posted), -EOPNOTSUPP);
	ck_assert_int_eq(WRITE(&h, POST_SRQ_RECV, &post, &posted), -EOPNOTSUPP);
	ck_assert_int_eq(WRITE_IN(&h, REQ_NOTIFY_CQ, &notify), 0);
	ck_assert_int_eq(create_qp(poll.cq_handle, 4, &qp), 0);
	post.qp_handle = qp.core.qp_handle;
	/* POST_SEND is only a doorbell here; it fails because the QP is in RESET. */
	ck_assert_int_eq(WRITE(&h, POST_SEND, &post, &posted), -EINVAL);
	ck_assert_uint_eq(posted.bad_wr, 0);
}
END_TEST

static int resize_cq(uint32_t cqe, struct ib_uverbs_resize_cq_resp *core, struct rxe_resize_cq_resp *driver)
{
	struct {
		struct ib_uverbs_resize_cq_resp core;
		struct rxe_resize_cq_resp driver;
	} resp = {};
	struct ib_uverbs_resize_cq cmd = { .cq_handle = cq, .cqe = cqe };
	int ret = harness_write(&h, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));

	*core = resp.core;
	*driver = resp.driver;
	return ret;
}

START_TEST(test_resized_cq_has_another_queue)
{
	struct ib_uverbs_resize_cq_resp core;
	struct rxe_resize_cq_resp driver;
	uint64_t before;

	begin(true);
	cq = new_cq();
	before = shared.offset;
	ck_assert_int_eq(resize_cq(0, &core, &driver), -EINVAL);
	ck_assert_int_eq(resize_cq(h.config.limits.max_cqe + 1, &core, &driver), -EINVAL);
	ck_assert_uint_eq(shared.offset, before);
	ck_assert_int_eq(resize_cq(100, &core, &driver), 0);
	ck_assert_uint_eq(core.cqe, 127);
	ck_assert_uint_eq(driver.mi.offset, shared.offset);
	ck_assert_uint_ne(shared.offset, before);
	ck_assert_uint_eq(shared.num, 1);
}
END_TEST

START_TEST(test_resize_that_is_refused_keeps_the_queue)
{
	struct ib_uverbs_resize_cq_resp core;
	struct rxe_resize_cq_resp driver;
	struct rxe_queue_buf *queue;
	struct uvd_uobject *uobj;

	begin(true);
	cq = new_cq();
	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_cq, cq, UVD_UOBJ_READ, &uobj), 0);
	queue = (void *)((struct uvd_cq *)uobj->object)->queue->memory;
	queue->consumer_index = 5; /* as if the client had read ahead: now 11 of 16 entries are queued */
	ck_assert_int_eq(resize_cq(10, &core, &driver), 0);
	queue = (void *)((struct uvd_cq *)uobj->object)->queue->memory;
	ck_assert_uint_eq(queue->producer_index, 11);
	ck_assert_int_eq(resize_cq(6, &core, &driver), -EINVAL);
	ck_assert(queue == (void *)((struct uvd_cq *)uobj->object)->queue->memory);
	ck_assert_uint_eq(shared.num, 1);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
}
END_TEST

START_TEST(test_srq_is_resized_and_tells_where)
{
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct rxe_create_srq_resp driver;
	} resp = {};
	struct ib_uverbs_create_srq create = { .pd_handle = pd, .max_wr = 4, .max_sge = 2 };
	struct mminfo place = {};
	struct {
		struct ib_uverbs_modify_srq core;
		struct rxe_modify_srq_cmd driver;
	} modify = { .core = { .attr_mask = IBV_SRQ_MAX_WR, .max_wr = 20 },
		     .driver.mmap_info_addr = (uintptr_t)&place };

	begin(true);
	create.pd_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &create, &resp), 0);
	ck_assert_uint_eq(resp.core.max_wr, 7);
	ck_assert_uint_eq(resp.driver.mi.offset, shared.offset);
	modify.core.srq_handle = resp.core.srq_handle;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify.core), -EINVAL); /* no driver data */
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), 0);
	ck_assert_uint_eq(place.offset, shared.offset);
	ck_assert_uint_gt(place.offset, resp.driver.mi.offset);
	ck_assert_uint_eq(shared.num, 1);
	modify.core.max_wr = h.config.limits.max_srq_wr + 1;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), -EINVAL);
	modify.core.max_wr--;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), 0);
	/* The SRQ limit exceeds the new length. */
	modify.core = (struct ib_uverbs_modify_srq){ .srq_handle = resp.core.srq_handle,
						     .attr_mask = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT,
						     .max_wr = 5,
						     .srq_limit = 6 };
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), -EINVAL);
	ck_assert_uint_eq(shared.num, 1);
	modify.core.srq_limit = 5;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), 0);
}
END_TEST

static struct uvd_queue *srq_queue(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_queue *q;

	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_srq, handle, UVD_UOBJ_READ, &uobj), 0);
	q = ((struct uvd_srq *)uobj->object)->queue;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return q;
}

START_TEST(test_srq_is_resized_to_what_is_queued_and_not_below)
{
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct rxe_create_srq_resp driver;
	} resp = {};
	struct ib_uverbs_create_srq create = { .max_wr = 15, .max_sge = 1 };
	struct mminfo place = {};
	struct {
		struct ib_uverbs_modify_srq core;
		struct rxe_modify_srq_cmd driver;
	} modify = { .core = { .attr_mask = IBV_SRQ_MAX_WR }, .driver.mmap_info_addr = (uintptr_t)&place };
	const struct rxe_queue_buf *queue;

	begin(true);
	create.pd_handle = pd;
	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &create, &resp), 0);
	modify.core.srq_handle = resp.core.srq_handle;
	for (int n = 0; n < 7; n++) {
		((struct rxe_recv_wqe *)next_entry(srq_queue(resp.core.srq_handle)))->wr_id = n;
		publish(srq_queue(resp.core.srq_handle));
	}
	modify.core.max_wr = 3; /* one of 4 to 7 would be rounded up to 7 */
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), -EINVAL);
	modify.core.max_wr = 7;
	ck_assert_int_eq(WRITE_IN(&h, MODIFY_SRQ, &modify), 0);
	queue = (const void *)srq_queue(resp.core.srq_handle)->memory;
	ck_assert_uint_eq(queue->index_mask, 7);
	ck_assert_uint_eq(queue->producer_index - queue->consumer_index, 7);
	for (uint32_t n = 0; n < 7; n++) {
		const uint32_t at = (queue->consumer_index + n) & queue->index_mask;
		const struct rxe_recv_wqe *wqe = (const void *)(queue->data + ((size_t)at << queue->log2_elem_size));

		ck_assert_uint_eq(wqe->wr_id, n);
	}
}
END_TEST

/* ---- traffic ----------------------------------------------------------------------------------------------------- */

START_TEST(test_requests_of_a_mapped_queue_are_carried_out_in_their_order)
{
	struct ib_uverbs_wc wc;

	begin_traffic(1, 7);
	for (int n = 0; n < 20; n++) {
		post_recv(1, 100 + n);
		send_nothing(0, n);
		for (int got = 0; got < 2; got++) {
			ck_assert(next_wc(&wc, 20) && !wc.status);
			ck_assert_uint_eq(wc.wr_id, wc.opcode == IBV_WC_RECV ? 100 + n : n);
		}
	}
	ck_assert(!next_wc(&wc, 0));
}
END_TEST

/* The RNR timer is 491 ms. The receive must be noticed well before it expires. */
START_TEST(test_receive_that_comes_during_a_wait_is_seen)
{
	struct ib_uverbs_wc wc;
	double began;

	begin_traffic(31, 7);
	send_nothing(0, 1);
	ck_assert(!next_wc(&wc, 0.005));
	post_recv(1, 2);
	began = now();
	ck_assert(next_wc(&wc, 20) && !wc.status && next_wc(&wc, 20) && !wc.status);
	ck_assert(now() - began < 0.3);
}
END_TEST

/*
 * The engine looks for a receive while the sender waits. This must not use up its one retry: the request fails only
 * after the RNR timer of 41 ms has expired.
 */
START_TEST(test_looking_uses_up_no_retry)
{
	struct ib_uverbs_wc wc;
	double began;

	begin_traffic(24, 1);
	began = now();
	send_nothing(0, 1);
	ck_assert(next_wc(&wc, 20));
	ck_assert_uint_eq(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert(now() - began > 0.04);
}
END_TEST

START_TEST(test_request_that_no_post_would_take_fails_and_flushes_the_rest)
{
	const struct uvd_queue *sq;
	struct ib_uverbs_wc wc;

	begin_traffic(1, 7);
	sq = queue_of(qps[0].core.qp_handle, &uvd_object_qp, true);
	for (int n = 0; n < 3; n++) {
		struct rxe_send_wqe *wqe = next_entry(sq);

		wqe->wr.wr_id = n;
		wqe->wr.opcode = n ? IBV_WR_SEND : 77;
		publish(sq);
	}
	ck_assert_int_eq(ring(0), 0);
	for (int n = 0; n < 3; n++) {
		ck_assert(next_wc(&wc, 20));
		ck_assert_uint_eq(wc.wr_id, n);
		ck_assert_uint_eq(wc.status, n ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR);
	}
}
END_TEST

/* With works_later the transport runs the work by uvd_call_work(). Otherwise the dispatcher does, before the answer. */
START_TEST(test_transport_that_answers_first_does_the_work_itself)
{
	struct ib_uverbs_wc wc;

	begin_traffic(1, 7);
	h.call->works_later = true;
	post_recv(1, 5);
	send_nothing(0, 6);
	ck_assert(!next_wc(&wc, 0.01));
	uvd_call_work(h.call, NULL);
	ck_assert(next_wc(&wc, 0) && next_wc(&wc, 0));
	uvd_call_work(h.call, NULL); /* no work is left */
	ck_assert(!next_wc(&wc, 0));
	/* A second doorbell rings before the work of the first has run: the work of both is done. */
	post_recv(1, 7);
	post_recv(1, 8);
	send_nothing(0, 9);
	send_nothing(0, 10);
	uvd_call_work(h.call, NULL);
	for (int n = 0; n < 4; n++)
		ck_assert(next_wc(&wc, 0) && !wc.status);
}
END_TEST

/* ---- observers --------------------------------------------------------------------------------------------------- */

/* The entries that an observer was told of. */
static struct {
	struct uvd_observed_entry entry;
	uint8_t bytes[UVD_PIECE_MAX];
} told[8];
static unsigned int num_told;

static void take_entry(struct uvd_observer *o, const struct uvd_observed_entry *entry)
{
	ck_assert_uint_lt(num_told, 8);
	ck_assert_uint_le(entry->len, sizeof(told->bytes));
	ck_assert(entry->file == &h.file->watched && entry->tree && entry->time);
	told[num_told].entry = *entry;
	memcpy(told[num_told++].bytes, entry->bytes, entry->len);
}

static void take_call(struct uvd_observer *o, const struct uvd_observed *call)
{
}

/* The only one of this kind. */
static const void *told_of(enum uvd_queue_kind kind, uint32_t handle, size_t len)
{
	const void *found = NULL;

	for (unsigned int i = 0; i < num_told; i++) {
		if (told[i].entry.kind != kind)
			continue;
		ck_assert_ptr_null(found);
		ck_assert_uint_eq(told[i].entry.handle, handle);
		ck_assert_uint_eq(told[i].entry.object, kind == UVD_QUEUE_CQ ? UVERBS_OBJECT_CQ : UVERBS_OBJECT_QP);
		ck_assert_uint_eq(told[i].entry.len, len);
		found = told[i].bytes;
	}
	ck_assert_ptr_nonnull(found);
	return found;
}

/* The request fails: the QP takes no inline data. */
START_TEST(test_an_observer_sees_requests_with_their_lists_and_inline_data_and_completions)
{
	struct uvd_observer o = { .call = take_call, .entry = take_entry };
	const struct ib_uverbs_send_wr *wr;
	const struct ib_uverbs_wc *completion;
	const struct uvd_queue *sq;
	struct rxe_send_wqe *wqe;
	struct ib_uverbs_wc wc;

	begin_traffic(1, 7);
	num_told = 0;
	ck_assert_int_eq(uvd_observer_add(&h.engine, &o), 0);
	sq = queue_of(qps[0].core.qp_handle, &uvd_object_qp, true);
	wqe = next_entry(sq);
	wqe->wr.wr_id = 4;
	wqe->wr.opcode = IBV_WR_RDMA_WRITE;
	wqe->wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	wqe->wr.wr.rdma.remote_addr = 0x1234;
	wqe->wr.wr.rdma.rkey = 99;
	wqe->dma.length = 5;
	memcpy(wqe->dma.inline_data, "hello", 5);
	publish(sq);
	ck_assert_int_eq(ring(0), 0);
	ck_assert(next_wc(&wc, 20));
	uvd_observer_remove(&h.engine, &o);
	wr = told_of(UVD_QUEUE_SEND, qps[0].core.qp_handle, sizeof(*wr) + 5);
	ck_assert(wr->wr_id == 4 && wr->opcode == IB_UVERBS_WR_RDMA_WRITE && !wr->num_sge);
	ck_assert(wr->wr.rdma.remote_addr == 0x1234 && wr->wr.rdma.rkey == 99);
	ck_assert_mem_eq(wr + 1, "hello", 5);
	completion = told_of(UVD_QUEUE_CQ, cq, sizeof(*completion));
	ck_assert_mem_eq(completion, &wc, sizeof(wc));
	ck_assert_uint_eq(completion->wr_id, 4);
}
END_TEST

START_TEST(test_an_observer_that_counts_and_one_that_has_gone_see_no_entries)
{
	struct uvd_observer o = { .call = take_call, .entry = take_entry, .counts_only = true };
	struct ib_uverbs_wc wc;

	begin_traffic(1, 7);
	num_told = 0;
	ck_assert_int_eq(uvd_observer_add(&h.engine, &o), 0);
	ck_assert(!uvd_queue_is_watched(queue_of(cq, &uvd_object_cq, false)));
	post_recv(1, 5);
	send_nothing(0, 6);
	ck_assert(next_wc(&wc, 20) && next_wc(&wc, 20));
	uvd_observer_remove(&h.engine, &o);
	o.counts_only = false;
	ck_assert_int_eq(uvd_observer_add(&h.engine, &o), 0);
	post_recv(1, 7);
	send_nothing(0, 8);
	ck_assert(next_wc(&wc, 20) && next_wc(&wc, 20));
	uvd_observer_remove(&h.engine, &o);
	ck_assert(!uvd_queue_is_watched(queue_of(cq, &uvd_object_cq, false)));
	ck_assert_uint_eq(num_told, 4); /* two requests, two completions */
	post_recv(1, 9);
	send_nothing(0, 10);
	ck_assert(next_wc(&wc, 20) && next_wc(&wc, 20));
	ck_assert_uint_eq(num_told, 4);
}
END_TEST

TEST_LIST(test_cq_tells_where_its_queue_is, test_no_room_for_the_drivers_answer_is_einval,
	  test_file_that_cannot_be_mapped_has_no_queues, test_sizes_beyond_the_limits_are_einval,
	  test_queue_ends_where_the_backend_refuses, test_no_shared_memory_is_told_and_nothing_stays,
	  test_qp_tells_where_both_queues_are, test_commands_of_the_data_path_are_rxes,
	  test_resized_cq_has_another_queue, test_resize_that_is_refused_keeps_the_queue,
	  test_srq_is_resized_to_what_is_queued_and_not_below, test_srq_is_resized_and_tells_where,
	  test_requests_of_a_mapped_queue_are_carried_out_in_their_order, test_receive_that_comes_during_a_wait_is_seen,
	  test_looking_uses_up_no_retry, test_request_that_no_post_would_take_fails_and_flushes_the_rest,
	  test_transport_that_answers_first_does_the_work_itself,
	  test_an_observer_sees_requests_with_their_lists_and_inline_data_and_completions,
	  test_an_observer_that_counts_and_one_that_has_gone_see_no_entries)
