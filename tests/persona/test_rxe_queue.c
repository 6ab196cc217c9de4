/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* rxe's mapped queues: what we accept from memory that the client writes, and what we write for it. */
#include <check.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdlib.h>
#include <string.h>
#include "persona/persona.h"
#include "../suite.h"

enum { MAX_WR = 6, MAX_SGE = 4, INLINE = 96 };

static struct uvd_device_config config;
static struct uvd_queue q, other;

static const struct uvd_persona_queues *rxe(void)
{
	return uvd_persona_find("rxe")->queues;
}

static struct rxe_queue_buf *header(const struct uvd_queue *of)
{
	return (struct rxe_queue_buf *)of->memory;
}

static void *entry(const struct uvd_queue *of, uint32_t index)
{
	return header(of)->data + index * of->shape.entry_size;
}

static void make(struct uvd_queue *to, enum uvd_queue_kind kind, struct uvd_queue_shape shape)
{
	free(to->memory);
	free(to->entry);
	free(to->dropped);
	*to = (struct uvd_queue){ .ops = rxe()->ops, .kind = kind, .shape = shape, .config = &config };
	to->length = rxe()->header + (size_t)shape.entries * shape.entry_size;
	to->memory = calloc(1, to->length);
	to->entry = calloc(1, shape.entry_size);
	to->dropped = calloc(1, uvd_queue_dropped_size(kind, &shape) ?: 1);
	ck_assert(to->memory && to->entry && to->dropped);
	to->ops->init(to);
}

static void make_sq(void)
{
	struct ibv_qp_cap cap = { .max_send_wr = MAX_WR, .max_send_sge = MAX_SGE, .max_inline_data = INLINE };

	make(&q, UVD_QUEUE_SEND, rxe()->shape_sq(&cap));
}

static void set_up(void)
{
	uvd_config_default(&config, uvd_persona_find("rxe"), 0);
	make_sq();
}

static void tear_down(void)
{
	free(q.memory);
	free(q.entry);
	free(q.dropped);
	free(other.memory);
	free(other.entry);
	free(other.dropped);
	memset(&q, 0, sizeof(q));
	memset(&other, 0, sizeof(other));
}

/* Adds a request as the provider does, before the doorbell. */
static struct rxe_send_wqe *add(void)
{
	struct rxe_queue_buf *h = header(&q);
	struct rxe_send_wqe *wqe = entry(&q, h->producer_index);

	memset(wqe, 0, q.shape.entry_size);
	h->producer_index = (h->producer_index + 1) & h->index_mask;
	return wqe;
}

/* Adds a request, whose doorbell is accepted. */
static struct rxe_send_wqe *post(void)
{
	struct rxe_send_wqe *wqe = add();

	q.ops->accept(&q);
	return wqe;
}

START_TEST(test_sizes_are_rounded_up_as_by_the_kernel)
{
	struct ibv_qp_cap cap = { .max_send_wr = 7, .max_send_sge = 1, .max_inline_data = 100 };
	struct uvd_queue_shape sq = rxe()->shape_sq(&cap);

	ck_assert_uint_eq(sq.entries, 8);
	ck_assert_uint_eq(sq.entry_size, 512); /* 208 + 100 */
	ck_assert_uint_eq(cap.max_inline_data, 100);
	ck_assert_uint_eq(cap.max_send_sge, 6);
	cap = (struct ibv_qp_cap){ .max_send_wr = 8, .max_send_sge = 3 };
	sq = rxe()->shape_sq(&cap);
	ck_assert_uint_eq(sq.entries, 16);
	ck_assert_uint_eq(sq.entry_size, 256); /* 208 + 48: not rounded up */
	ck_assert_uint_eq(cap.max_inline_data, 48);
	ck_assert_uint_eq(rxe()->shape_rq(1, 1).entry_size, 64);
	ck_assert_uint_eq(rxe()->shape_rq(0, 0).entries, 1);
	ck_assert_uint_eq(rxe()->shape_cq(255).entries, 256);
	ck_assert_uint_eq(rxe()->shape_cq(256).entry_size, 64);
	ck_assert_uint_eq(rxe()->shape_cq(256).entries, 512);
}
END_TEST

START_TEST(test_header_tells_the_provider_the_geometry)
{
	ck_assert_uint_eq(1u << header(&q)->log2_elem_size, q.shape.entry_size);
	ck_assert_uint_eq(header(&q)->index_mask, q.shape.entries - 1);
}
END_TEST

START_TEST(test_request_is_decoded_and_its_entry_given_back)
{
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe = post();

	wqe->wr.wr_id = 77;
	wqe->wr.opcode = IBV_WR_RDMA_WRITE;
	wqe->wr.wr.rdma.remote_addr = 0x1234;
	wqe->wr.wr.rdma.rkey = 5;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ .addr = 9, .length = 10, .lkey = 11 };
	ck_assert_uint_eq(q.ops->count(&q), 1);
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	ck_assert(wr.wr_id == 77 && wr.opcode == IBV_WR_RDMA_WRITE && wr.remote_addr == 0x1234 && wr.rkey == 5);
	ck_assert(wr.num_sge == 1 && wr.sg_list[0].addr == 9 && wr.sg_list[0].length == 10 && wr.sg_list[0].lkey == 11);
	ck_assert_uint_eq(header(&q)->consumer_index, 0);
	q.ops->pop(&q);
	ck_assert_uint_eq(header(&q)->consumer_index, 1);
	ck_assert(!q.ops->peek_send(&q, 0, &wr));
}
END_TEST

/* A request is read once: what the client writes to it later changes nothing. */
START_TEST(test_request_stays_as_it_was_read)
{
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe = post();

	wqe->dma.num_sge = 1;
	wqe->dma.sge[0].lkey = 3;
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	wqe->dma.sge[0].lkey = 4;
	ck_assert_uint_eq(wr.sg_list[0].lkey, 3);
	ck_assert(wr.sg_list == (const void *)(q.entry + offsetof(struct rxe_send_wqe, dma.sge)));
}
END_TEST

START_TEST(test_indexes_of_the_client_are_masked)
{
	struct uvd_send_wr wr;

	header(&q)->producer_index = 0xffffffff;
	q.ops->accept(&q);
	ck_assert_uint_eq(q.ops->count(&q), q.shape.entries - 1);
	header(&q)->consumer_index = 0x80000005; /* our own index ignores it */
	for (uint32_t n = q.ops->count(&q); n; n--) {
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		q.ops->pop(&q);
	}
	ck_assert_uint_eq(q.index, q.shape.entries - 1);
	ck_assert_uint_eq(header(&q)->consumer_index, q.index);
}
END_TEST

START_TEST(test_geometry_in_the_header_is_not_believed)
{
	struct uvd_send_wr wr;

	header(&q)->index_mask = 0xffffffff;
	header(&q)->log2_elem_size = 31;
	header(&q)->producer_index = q.shape.entries; /* 0, with our mask */
	q.ops->accept(&q);
	ck_assert_uint_eq(q.ops->count(&q), 0);
	header(&q)->producer_index = q.shape.entries + 1;
	q.ops->accept(&q);
	((struct rxe_send_wqe *)entry(&q, 0))->wr.wr_id = 8;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && wr.wr_id == 8);
	q.ops->pop(&q);
	header(&q)->producer_index++;
	q.ops->accept(&q);
	((struct rxe_send_wqe *)entry(&q, 1))->wr.wr_id = 9;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && wr.wr_id == 9);
}
END_TEST

START_TEST(test_list_longer_than_the_entry_is_not_to_be_understood)
{
	static const uint32_t nums[] = { MAX_SGE + 3, 0x7fffffff, 0x80000000, 0xffffffff };
	struct uvd_send_wr wr;

	for (unsigned int i = 0; i < sizeof(nums) / sizeof(nums[0]); i++) {
		post()->dma.num_sge = nums[i];
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		ck_assert_int_eq(wr.num_sge, -1);
		q.ops->pop(&q);
	}
	post()->dma.num_sge = q.shape.max_sge;
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	ck_assert_int_eq(wr.num_sge, q.shape.max_sge);
}
END_TEST

START_TEST(test_inline_data_beyond_the_entry_is_not_to_be_understood)
{
	const uint32_t room = q.shape.entry_size - sizeof(struct rxe_send_wqe);
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe = post();

	wqe->wr.send_flags = IBV_SEND_INLINE;
	wqe->dma.length = room;
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	ck_assert(!wr.num_sge && wr.inline_len == room && wr.inline_data == q.entry + sizeof(*wqe));
	wqe->dma.length = room + 1;
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	ck_assert_int_eq(wr.num_sge, -1);
}
END_TEST

/* ibv_wr_set_inline_data() sets the length and leaves the list empty, whatever the flags are. */
START_TEST(test_length_without_a_list_is_inline_data)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
						      IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM };
	const uint32_t room = q.shape.entry_size - sizeof(struct rxe_send_wqe);
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		wqe = post();
		wqe->wr.opcode = opcodes[i];
		wqe->wr.send_flags = IBV_SEND_SIGNALED;
		wqe->dma.length = 28;
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		ck_assert(!wr.num_sge && wr.inline_len == 28 && wr.inline_data == q.entry + sizeof(*wqe));
		ck_assert_uint_eq(wr.send_flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
		wqe->dma.length = room + 1;
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		ck_assert_int_eq(wr.num_sge, -1);
		wqe->dma.length = 0; /* a request without bytes */
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		ck_assert(!wr.num_sge && !wr.inline_data && wr.send_flags == IBV_SEND_SIGNALED);
		wqe->dma.length = 8;
		wqe->dma.num_sge = 1;
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		ck_assert(wr.num_sge == 1 && !wr.inline_data && wr.send_flags == IBV_SEND_SIGNALED);
		q.ops->pop(&q);
	}
}
END_TEST

/* The list of a READ or an atomic is where the answer goes, so a length without a list is not data to send. */
START_TEST(test_length_without_a_list_of_a_read_is_no_inline_data)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_BIND_MW };
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		wqe = post();
		wqe->wr.opcode = opcodes[i];
		wqe->dma.length = 8;
		ck_assert(q.ops->peek_send(&q, 0, &wr));
		ck_assert(!wr.num_sge && !wr.inline_data && !wr.send_flags);
		q.ops->pop(&q);
	}
}
END_TEST

START_TEST(test_datagram_has_its_address_in_the_request)
{
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe;

	q.is_ud = true;
	wqe = post();
	wqe->wr.opcode = IBV_WR_SEND;
	wqe->wr.wr.ud.remote_qpn = 4;
	wqe->wr.wr.ud.remote_qkey = 5;
	wqe->wr.wr.ud.av.port_num = 1;
	wqe->wr.wr.ud.av.grh.dgid.raw[15] = 6;
	wqe->wr.wr.ud.av.grh.sgid_index = 1;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && wr.ah);
	ck_assert(wr.remote_qpn == 4 && wr.remote_qkey == 5);
	ck_assert(wr.ah->attr.is_global && wr.ah->attr.port_num == 1 && wr.ah->attr.grh.dgid.raw[15] == 6 &&
		  wr.ah->attr.grh.sgid_index == 1);
}
END_TEST

START_TEST(test_address_that_the_device_has_not_is_none)
{
	struct uvd_send_wr wr;
	struct rxe_send_wqe *wqe;

	q.is_ud = true;
	wqe = post();
	wqe->wr.opcode = IBV_WR_SEND;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && !wr.ah); /* port 0 */
	wqe->wr.wr.ud.av.port_num = config.num_ports + 1;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && !wr.ah);
	wqe->wr.wr.ud.av.port_num = 1;
	wqe->wr.wr.ud.av.grh.sgid_index = config.ports[0].gid_tbl_len;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && !wr.ah);
	wqe->wr.wr.ud.av.grh.sgid_index--;
	ck_assert(q.ops->peek_send(&q, 0, &wr) && wr.ah);
}
END_TEST

/* ---- doorbells --------------------------------------------------------------------------------------------------- */

static uint64_t wr_id_at(uint32_t n)
{
	struct uvd_send_wr wr;

	ck_assert(q.ops->peek_send(&q, n, &wr));
	return wr.wr_id;
}

static bool is_full(void)
{
	const struct rxe_queue_buf *h = header(&q);

	return h->consumer_index == ((h->producer_index + 1) & h->index_mask);
}

START_TEST(test_a_request_is_the_engines_once_its_doorbell_was_accepted)
{
	struct uvd_send_wr wr;

	add()->wr.wr_id = 1;
	ck_assert_uint_eq(q.ops->count(&q), 0);
	ck_assert(!q.ops->peek_send(&q, 0, &wr));
	q.ops->accept(&q);
	add()->wr.wr_id = 2;
	ck_assert_uint_eq(q.ops->count(&q), 1);
	ck_assert_uint_eq(wr_id_at(0), 1);
	ck_assert(!q.ops->peek_send(&q, 1, &wr));
}
END_TEST

START_TEST(test_refused_requests_are_dropped_and_their_entries_given_back)
{
	add();
	add();
	q.ops->drop(&q);
	ck_assert_uint_eq(q.ops->count(&q), 0);
	ck_assert_uint_eq(header(&q)->consumer_index, 2);
	q.ops->accept(&q);
	ck_assert_uint_eq(q.ops->count(&q), 0);
	post()->wr.wr_id = 3;
	ck_assert_uint_eq(q.ops->count(&q), 1);
	ck_assert_uint_eq(wr_id_at(0), 3);
}
END_TEST

/* The provider sees them as used until the request before them is done: the consumer has one index. */
START_TEST(test_refused_requests_behind_an_accepted_one_are_skipped)
{
	struct uvd_send_wr wr;

	post()->wr.wr_id = 1;
	add()->wr.wr_id = 2;
	add()->wr.wr_id = 3;
	q.ops->drop(&q);
	post()->wr.wr_id = 4;
	add()->wr.wr_id = 5;
	q.ops->drop(&q);
	ck_assert_uint_eq(q.ops->count(&q), 2);
	ck_assert(wr_id_at(0) == 1 && wr_id_at(1) == 4 && !q.ops->peek_send(&q, 2, &wr));
	ck_assert_uint_eq(header(&q)->consumer_index, 0);
	q.ops->pop(&q);
	ck_assert_uint_eq(header(&q)->consumer_index, 3);
	ck_assert_uint_eq(wr_id_at(0), 4);
	q.ops->pop(&q);
	ck_assert_uint_eq(header(&q)->consumer_index, 5);
	ck_assert_uint_eq(q.ops->count(&q), 0);
}
END_TEST

/* They end at each place of a word of 64 entries. */
START_TEST(test_long_runs_of_refused_requests_are_skipped)
{
	struct ibv_qp_cap cap = { .max_send_wr = 255, .max_send_sge = 1 };

	make(&q, UVD_QUEUE_SEND, rxe()->shape_sq(&cap));
	for (int length = 1; length < 250; length++) {
		post()->wr.wr_id = 1;
		for (int i = 0; i < length; i++)
			add()->wr.wr_id = 2;
		q.ops->drop(&q);
		post()->wr.wr_id = 3;
		ck_assert_uint_eq(wr_id_at(1), 3);
		q.ops->pop(&q);
		ck_assert_uint_eq(wr_id_at(0), 3);
		q.ops->pop(&q);
		ck_assert_uint_eq(header(&q)->consumer_index, header(&q)->producer_index);
	}
}
END_TEST

/* Random doorbells beside a list of what they have handed over. The index wraps many times. */
static void ring_at_random(uint32_t length)
{
	struct ibv_qp_cap cap = { .max_send_wr = length, .max_send_sge = 1 };
	uint64_t accepted[256], next = 1;
	uint32_t num = 0, fresh = 0;

	make(&q, UVD_QUEUE_SEND, rxe()->shape_sq(&cap));
	srandom(length);
	for (int step = 0; step < 40000; step++) {
		/* Mostly posts at times, and mostly completions at others. */
		const int what = random() % 8 + (step / 500 % 2 ? 3 : 0);

		if (what < 5 && !is_full()) {
			add()->wr.wr_id = next++;
			fresh++;
		} else if (what < 6) {
			for (; fresh; fresh--)
				accepted[num++] = next - fresh;
			q.ops->accept(&q);
		} else if (what < 8) {
			fresh = 0;
			q.ops->drop(&q);
		} else if (num) {
			q.ops->pop(&q);
			memmove(accepted, accepted + 1, --num * sizeof(accepted[0]));
		}
		ck_assert_uint_eq(q.ops->count(&q), num);
		if (num) {
			ck_assert_uint_eq(wr_id_at(0), accepted[0]);
			ck_assert_uint_eq(wr_id_at(num - 1), accepted[num - 1]);
		} else if (!fresh) {
			ck_assert_uint_eq(header(&q)->consumer_index, header(&q)->producer_index);
		}
	}
	ck_assert_uint_gt(next, 1000);
}

START_TEST(test_no_request_is_lost_or_repeated_whatever_doorbells_are_refused)
{
	ring_at_random(1);
	ring_at_random(7);
	ring_at_random(63);
	ring_at_random(200);
}
END_TEST

START_TEST(test_an_index_that_goes_back_takes_nothing_from_what_was_accepted)
{
	for (int i = 0; i < 3; i++)
		post()->wr.wr_id = i;
	header(&q)->producer_index = 1;
	q.ops->accept(&q);
	q.ops->drop(&q);
	ck_assert_uint_eq(q.ops->count(&q), 3);
	for (uint64_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(wr_id_at(0), i);
		q.ops->pop(&q);
	}
}
END_TEST

START_TEST(test_refused_doorbells_without_end_leave_an_accepted_request_as_it_is)
{
	post()->wr.wr_id = 1;
	for (uint32_t i = 0; i < 10000; i++) {
		header(&q)->producer_index = i * 0x9e3779b1;
		q.ops->drop(&q);
		ck_assert_uint_eq(q.ops->count(&q), 1);
		ck_assert_uint_lt(q.num_dropped, q.shape.entries - 1);
		ck_assert_uint_eq(wr_id_at(0), 1);
	}
	q.ops->pop(&q);
	ck_assert(!q.ops->count(&q) && !q.num_dropped && q.index == q.accepted);
	header(&q)->producer_index = q.index;
	post()->wr.wr_id = 2;
	ck_assert_uint_eq(wr_id_at(0), 2);
}
END_TEST

START_TEST(test_receive_is_decoded)
{
	struct rxe_recv_wqe *wqe;
	struct uvd_recv_wr wr;

	make(&q, UVD_QUEUE_RECV, rxe()->shape_rq(3, 2));
	wqe = entry(&q, 0);
	wqe->wr_id = 12;
	wqe->dma.num_sge = 2;
	wqe->dma.sge[1].lkey = 13;
	ck_assert(!q.ops->peek_recv(&q, 0, &wr));
	header(&q)->producer_index = 1;
	ck_assert(q.ops->peek_recv(&q, 0, &wr));
	ck_assert(wr.wr_id == 12 && wr.num_sge == 2 && wr.sg_list[1].lkey == 13);
	wqe->dma.num_sge = 3;
	ck_assert(q.ops->peek_recv(&q, 0, &wr));
	ck_assert_int_eq(wr.num_sge, -1);
}
END_TEST

static bool push(uint64_t wr_id)
{
	return q.ops->push_wc(&q, &(struct ibv_wc){ .wr_id = wr_id,
						    .status = 1,
						    .opcode = 2,
						    .byte_len = 3,
						    .imm_data = 4,
						    .qp_num = 5,
						    .src_qp = 6,
						    .wc_flags = 7 });
}

START_TEST(test_completion_is_what_the_provider_polls)
{
	struct ib_uverbs_wc *wc;

	make(&q, UVD_QUEUE_CQ, rxe()->shape_cq(3));
	ck_assert(push(9));
	wc = entry(&q, 0);
	ck_assert(wc->wr_id == 9 && wc->status == 1 && wc->opcode == 2 && wc->byte_len == 3 && wc->ex.imm_data == 4);
	ck_assert(wc->qp_num == 5 && wc->src_qp == 6 && wc->wc_flags == 7);
	ck_assert_uint_eq(header(&q)->producer_index, 1);
}
END_TEST

/* ---- observers --------------------------------------------------------------------------------------------------- */

static unsigned int watched, told;
static const void *told_last;

static void count_told(struct uvd_queue *queue, const void *what)
{
	ck_assert_ptr_eq(queue, &q);
	told++;
	told_last = what;
}

static void watch(bool on)
{
	watched = on;
	q.watched = &watched;
	q.tell = count_told;
	told = 0;
}

START_TEST(test_an_observer_is_told_each_request_that_is_decoded_and_nothing_else)
{
	struct uvd_send_wr wr;

	header(&q)->producer_index = 2;
	q.ops->accept(&q);
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	watch(false);
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	ck_assert_uint_eq(told, 0);
	watch(true);
	ck_assert(q.ops->peek_send(&q, 0, &wr));
	ck_assert_uint_eq(told, 1);
	ck_assert_ptr_eq(told_last, &wr);
	ck_assert(q.ops->peek_send(&q, 1, &wr));
	ck_assert(!q.ops->peek_send(&q, 2, &wr));
	q.ops->pop(&q);
	ck_assert_uint_eq(told, 2);
}
END_TEST

START_TEST(test_an_observer_is_told_receives_and_completions)
{
	const struct ibv_wc wc = { .wr_id = 7 };
	struct uvd_recv_wr wr;

	make(&q, UVD_QUEUE_RECV, rxe()->shape_rq(MAX_WR, MAX_SGE));
	watch(true);
	header(&q)->producer_index = 1;
	ck_assert(q.ops->peek_recv(&q, 0, &wr));
	ck_assert_ptr_eq(told_last, &wr);
	make(&q, UVD_QUEUE_CQ, rxe()->shape_cq(1));
	watch(true);
	ck_assert(q.ops->push_wc(&q, &wc));
	ck_assert_ptr_eq(told_last, &wc);
	ck_assert(!q.ops->push_wc(&q, &wc)); /* full */
	ck_assert_uint_eq(told, 1);
}
END_TEST

START_TEST(test_full_queue_takes_no_completion)
{
	make(&q, UVD_QUEUE_CQ, rxe()->shape_cq(3));
	ck_assert(push(0) && push(1) && push(2));
	ck_assert(!push(3));
	header(&q)->consumer_index = 1;
	ck_assert(push(3) && !push(4));
	header(&q)->consumer_index = 0xfffffffe; /* 2, with our mask */
	ck_assert(push(4) && !push(5));
	ck_assert_uint_eq(((struct ib_uverbs_wc *)entry(&q, 0))->wr_id, 4);
}
END_TEST

START_TEST(test_completions_move_to_another_queue_in_their_order)
{
	make(&q, UVD_QUEUE_CQ, rxe()->shape_cq(3));
	ck_assert(push(0) && push(1) && push(2));
	header(&q)->consumer_index = 2;
	ck_assert(push(3) && push(4)); /* they wrap around */
	make(&other, UVD_QUEUE_CQ, rxe()->shape_cq(1));
	ck_assert(!q.ops->move(&q, &other));
	ck_assert_uint_eq(header(&other)->producer_index, 0);
	header(&q)->consumer_index = 3;
	ck_assert(!q.ops->move(&q, &other)); /* one too many */
	header(&q)->consumer_index = 2;
	make(&other, UVD_QUEUE_CQ, rxe()->shape_cq(7));
	ck_assert(q.ops->move(&q, &other));
	ck_assert_uint_eq(header(&other)->producer_index, 3);
	ck_assert_uint_eq(other.index, 3);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_uint_eq(((struct ib_uverbs_wc *)entry(&other, i))->wr_id, 2 + i);
}
END_TEST

START_TEST(test_receives_move_to_another_queue_in_their_order)
{
	struct uvd_recv_wr wr;

	make(&q, UVD_QUEUE_RECV, rxe()->shape_rq(3, 1));
	for (unsigned int i = 0; i < 3; i++)
		((struct rxe_recv_wqe *)entry(&q, i))->wr_id = i;
	header(&q)->producer_index = 3;
	ck_assert(q.ops->peek_recv(&q, 0, &wr));
	q.ops->pop(&q);
	make(&other, UVD_QUEUE_RECV, rxe()->shape_rq(7, 1));
	ck_assert(q.ops->move(&q, &other));
	ck_assert_uint_eq(other.ops->count(&other), 2);
	ck_assert(other.ops->peek_recv(&other, 0, &wr) && wr.wr_id == 1);
	other.ops->pop(&other);
	ck_assert(other.ops->peek_recv(&other, 0, &wr) && wr.wr_id == 2);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_sizes_are_rounded_up_as_by_the_kernel,
		test_header_tells_the_provider_the_geometry,
		test_request_is_decoded_and_its_entry_given_back,
		test_request_stays_as_it_was_read,
		test_indexes_of_the_client_are_masked,
		test_geometry_in_the_header_is_not_believed,
		test_list_longer_than_the_entry_is_not_to_be_understood,
		test_inline_data_beyond_the_entry_is_not_to_be_understood,
		test_length_without_a_list_is_inline_data,
		test_length_without_a_list_of_a_read_is_no_inline_data,
		test_datagram_has_its_address_in_the_request,
		test_address_that_the_device_has_not_is_none,
		test_a_request_is_the_engines_once_its_doorbell_was_accepted,
		test_refused_requests_are_dropped_and_their_entries_given_back,
		test_refused_requests_behind_an_accepted_one_are_skipped,
		test_long_runs_of_refused_requests_are_skipped,
		test_no_request_is_lost_or_repeated_whatever_doorbells_are_refused,
		test_an_index_that_goes_back_takes_nothing_from_what_was_accepted,
		test_refused_doorbells_without_end_leave_an_accepted_request_as_it_is,
		test_receive_is_decoded,
		test_completion_is_what_the_provider_polls,
		test_an_observer_is_told_each_request_that_is_decoded_and_nothing_else,
		test_an_observer_is_told_receives_and_completions,
		test_full_queue_takes_no_completion,
		test_completions_move_to_another_queue_in_their_order,
		test_receives_move_to_another_queue_in_their_order,
	};
	TCase *t = tcase_create("rxe_queue");

	tcase_add_checked_fixture(t, set_up, tear_down);
	for (unsigned int i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	return run_suite("rxe_queue", t);
}
