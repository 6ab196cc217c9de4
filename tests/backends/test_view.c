/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Views: memory that the engine has mapped is moved by one copy, and nothing else about a request changes. a is the
 * requester, b the responder. A view of this bed has bytes of its own, so that a test sees which bytes were moved.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

/* Each chunk of LENGTH bytes is long enough for a view. */
enum {
	LEAST = 16 * 1024,
	LENGTH = 3 * SOFT_CHUNK + 20 * 1024,
	SOON = 1000000 /* us: limit for a call that must not wait, on a busy machine */
};

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static char *view_a, *view_b;

static void fill(char *bytes, int salt)
{
	for (int i = 0; i < BUF_SIZE; i++)
		bytes[i] = i * 7 + i / 251 + salt;
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	bed.cap = (struct ibv_qp_cap){ 64, 64, 4, 4, 64 };
	a->timeout = b->timeout = 0;
	bed.fabric->movers.patience_ns = UINT64_MAX;
	bed_connect(&bed, IBV_QPT_RC);
	view_a = malloc(BUF_SIZE);
	view_b = malloc(BUF_SIZE);
	fill(a->buf, 1);
	fill(b->buf, 2);
	fill(view_a, 3);
	fill(view_b, 4);
	mm_viewed = 0;
	mm_bad_len = mm_slow_len = 0;
}

static void show(struct end *end, char *bytes)
{
	mm_views[end == b] = (struct fake_view){ (uintptr_t)end->buf, BUF_SIZE, bytes, false };
	end->mr->umem.shared = true;
}

static void teardown(void)
{
	mm_slow_len = mm_bad_len = 0;
	while (mm_slowed)
		usleep(100);
	bed_close(&bed);
	ck_assert_int_eq(mm_view_refs, 0);
	memset(mm_views, 0, sizeof(mm_views));
	free(view_a);
	free(view_b);
}

static void lose(const void *bytes, size_t len)
{
	mm_bad = (uintptr_t)bytes;
	mm_bad_len = len;
}

static void post(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int num_sge)
{
	struct uvd_send_wr wr = wr_to(b, opcode, sge, num_sge);

	if (opcode == IBV_WR_SEND)
		ck_assert_int_eq(post_recv_at(b, 0xb, 0, BUF_SIZE), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
}

static void move(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = sge_at(a, 0, length);

	post(opcode, &sge, 1);
}

static void move_well(enum ibv_wr_opcode opcode, uint32_t length)
{
	move(opcode, length);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_SUCCESS);
	if (opcode == IBV_WR_SEND)
		ck_assert_uint_eq(expect(b->rcq, 0xb, IBV_WC_SUCCESS).byte_len, length);
}

static void expect_bytes(const char *at, int salt, size_t len)
{
	char *want = malloc(BUF_SIZE);

	fill(want, salt);
	ck_assert(!memcmp(at, want, len));
	free(want);
}

static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ };

/* An RDMA READ reads the responder and writes the requester; all else goes the other way. */
static struct end *source(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ ? b : a;
}

static struct end *target(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ ? a : b;
}

static char *view_of(const struct end *end)
{
	return end == a ? view_a : view_b;
}

static int salt_of(const struct end *end)
{
	return end == a ? 1 : 2;
}

static int view_salt_of(const struct end *end)
{
	return end == a ? 3 : 4;
}

START_TEST(test_a_source_that_has_a_view_is_moved_from_there)
{
	struct end *from = source(opcodes[_i]), *to = target(opcodes[_i]);

	show(from, view_of(from));
	move_well(opcodes[_i], LENGTH);
	expect_bytes(to->buf, view_salt_of(from), LENGTH);
	ck_assert_int_eq(mm_viewed, 1);
}
END_TEST

START_TEST(test_a_target_that_has_a_view_is_written_there)
{
	struct end *from = source(opcodes[_i]), *to = target(opcodes[_i]);

	show(to, view_of(to));
	move_well(opcodes[_i], LENGTH);
	expect_bytes(view_of(to), salt_of(from), LENGTH);
	expect_bytes(to->buf, salt_of(to), LENGTH);
	ck_assert_int_eq(mm_viewed, 1);
}
END_TEST

START_TEST(test_two_views_are_copied_from_one_to_the_other)
{
	struct end *from = source(opcodes[_i]), *to = target(opcodes[_i]);

	show(from, view_of(from));
	show(to, view_of(to));
	move_well(opcodes[_i], LENGTH);
	expect_bytes(view_of(to), view_salt_of(from), LENGTH);
	expect_bytes(to->buf, salt_of(to), LENGTH);
}
END_TEST

START_TEST(test_nobody_asks_for_a_view_for_few_bytes)
{
	struct end *from = source(opcodes[_i]), *to = target(opcodes[_i]);

	show(from, view_of(from));
	show(to, view_of(to));
	move_well(opcodes[_i], LEAST - 1);
	ck_assert_int_eq(mm_viewed, 0);
	expect_bytes(to->buf, salt_of(from), LEAST - 1);
	move_well(opcodes[_i], LEAST);
	ck_assert_int_eq(mm_viewed, 2);
	expect_bytes(view_of(to), view_salt_of(from), LEAST);
}
END_TEST

START_TEST(test_nobody_asks_for_a_view_of_memory_that_is_not_shared_or_on_demand)
{
	show(a, view_a);
	show(b, view_b);
	a->mr->umem.shared = false;
	((struct soft_mr *)b->mr)->on_demand = true;
	move_well(IBV_WR_RDMA_WRITE, LENGTH);
	ck_assert_int_eq(mm_viewed, 0);
	expect_bytes(b->buf, 1, LENGTH);
}
END_TEST

START_TEST(test_a_region_without_a_view_is_asked_once)
{
	a->mr->umem.shared = b->mr->umem.shared = true;
	for (int i = 0; i < 3; i++)
		move_well(opcodes[_i], LENGTH);
	ck_assert_int_eq(mm_viewed, 2);
	expect_bytes(target(opcodes[_i])->buf, salt_of(source(opcodes[_i])), LENGTH);
}
END_TEST

START_TEST(test_a_view_that_may_only_be_read_is_not_written)
{
	struct end *from = source(opcodes[_i]), *to = target(opcodes[_i]);

	show(from, view_of(from));
	show(to, view_of(to));
	mm_views[0].read_only = mm_views[1].read_only = true;
	move_well(opcodes[_i], LENGTH);
	expect_bytes(view_of(to), view_salt_of(to), LENGTH);
	expect_bytes(to->buf, view_salt_of(from), LENGTH);
}
END_TEST

/* The first chunk spans two SGEs, so it is read from memory. */
START_TEST(test_only_a_chunk_of_one_entry_is_moved_from_a_view)
{
	struct ibv_sge sges[] = { sge_at(a, 0, 40 * 1024), sge_at(a, 40 * 1024, SOFT_CHUNK + 56 * 1024) };

	show(a, view_a);
	post(IBV_WR_RDMA_WRITE, sges, 2);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_SUCCESS);
	expect_bytes(b->buf, 1, SOFT_CHUNK);
	ck_assert(!memcmp(b->buf + SOFT_CHUNK, view_a + SOFT_CHUNK, 96 * 1024));
}
END_TEST

START_TEST(test_a_receive_of_several_entries_is_filled_by_view_and_by_memory)
{
	/* An SGE shorter than LEAST is written to memory, not to the view. */
	struct ibv_sge sges[] = { sge_at(b, 0, LEAST), sge_at(b, LEAST, 1000), sge_at(b, LEAST + 1000, 2 * LEAST) };
	struct ibv_sge from = sge_at(a, 0, 3 * LEAST + 1000);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, &from, 1);

	show(a, view_a);
	show(b, view_b);
	ck_assert_int_eq(post_recv_list(b, 0xb, sges, 3), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_SUCCESS);
	expect_bytes(view_b, 3, LEAST);
	ck_assert(!memcmp(b->buf + LEAST, view_a + LEAST, 1000));
	ck_assert(!memcmp(view_b + LEAST + 1000, view_a + LEAST + 1000, 2 * LEAST));
	expect_bytes(b->buf, 2, LEAST);
}
END_TEST

/* ---- memory that is unmapped or truncated ------------------------------------------------------------------------ */

START_TEST(test_a_source_that_is_gone_is_the_requesters_error_alone)
{
	enum ibv_wr_opcode opcode = opcodes[_i % 2];

	show(a, view_a);
	if (_i >= 2)
		show(b, view_b);
	lose(view_a + SOFT_CHUNK, 1);
	move(opcode, LENGTH);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	expect_nothing(b->rcq);
	/* The chunk before the one that is gone has arrived. */
	expect_bytes(_i >= 2 ? view_b : b->buf, 3, SOFT_CHUNK);
}
END_TEST

START_TEST(test_the_source_of_a_read_that_is_gone_is_the_responders_error)
{
	show(b, view_b);
	lose(view_b, 1);
	move(IBV_WR_RDMA_READ, LENGTH);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_REM_OP_ERR);
}
END_TEST

START_TEST(test_a_target_whose_view_is_gone_is_written_in_memory)
{
	struct end *from = source(opcodes[_i]), *to = target(opcodes[_i]);

	show(from, view_of(from));
	show(to, view_of(to));
	lose(view_of(to), BUF_SIZE);
	move_well(opcodes[_i], LENGTH);
	expect_bytes(to->buf, view_salt_of(from), LENGTH);
}
END_TEST

START_TEST(test_a_target_that_is_gone_is_the_responders_error)
{
	enum ibv_wr_opcode opcode = opcodes[_i];

	show(a, view_a);
	lose(b->buf, BUF_SIZE);
	move(opcode, LENGTH);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_REM_OP_ERR);
	if (opcode == IBV_WR_SEND)
		expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
}
END_TEST

START_TEST(test_a_requesters_target_that_is_gone_is_its_own_error)
{
	show(b, view_b);
	lose(a->buf, BUF_SIZE);
	move(IBV_WR_RDMA_READ, LENGTH);
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_LOC_PROT_ERR);
}
END_TEST

/* ---- slow memory ------------------------------------------------------------------------------------------------- */

static void *move_later(void *arg)
{
	move(*(enum ibv_wr_opcode *)arg, LENGTH);
	return NULL;
}

static uint64_t us_since(uint64_t start)
{
	return now_us() - start;
}

static void wait_until_slowed(void)
{
	while (!mm_slowed)
		usleep(100);
}

/* Starts a thread whose request stops in b's memory. Returns the time at which it has stopped. */
static uint64_t stop_in_memory_of_b(pthread_t *thread, enum ibv_wr_opcode *opcode)
{
	mm_slow = (uintptr_t)b->buf;
	mm_slow_len = BUF_SIZE;
	pthread_create(thread, NULL, move_later, opcode);
	wait_until_slowed();
	return now_us();
}

START_TEST(test_a_region_goes_while_its_bytes_are_on_their_way_to_slow_memory)
{
	enum ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
	pthread_t thread;
	uint64_t start;

	show(a, view_a);
	start = stop_in_memory_of_b(&thread, &opcode);
	free_mr(a->mr);
	ck_assert_uint_lt(us_since(start), SOON);
	a->mr = make_mr(a, a->buf, BUF_SIZE, 0);
	mm_slow_len = 0;
	pthread_join(thread, NULL);
	/* The L_Key is no longer valid when the next chunk is moved. */
	ck_assert_int_eq(wait_wc(a->scq).status, IBV_WC_LOC_PROT_ERR);
	expect_bytes(b->buf, 3, SOFT_CHUNK);
}
END_TEST

START_TEST(test_a_requester_ends_while_its_peers_view_is_not_found)
{
	enum ibv_wr_opcode opcode = IBV_WR_RDMA_READ;
	pthread_t thread;
	uint64_t start;

	show(b, view_b);
	start = stop_in_memory_of_b(&thread, &opcode);
	free_qp(a);
	ck_assert_uint_lt(us_since(start), SOON);
	mm_slow_len = 0;
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("view");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_a_source_that_has_a_view_is_moved_from_there, 0, 3);
	tcase_add_loop_test(t, test_a_target_that_has_a_view_is_written_there, 0, 3);
	tcase_add_loop_test(t, test_two_views_are_copied_from_one_to_the_other, 0, 3);
	tcase_add_loop_test(t, test_nobody_asks_for_a_view_for_few_bytes, 0, 3);
	tcase_add_test(t, test_nobody_asks_for_a_view_of_memory_that_is_not_shared_or_on_demand);
	tcase_add_loop_test(t, test_a_region_without_a_view_is_asked_once, 0, 3);
	tcase_add_loop_test(t, test_a_view_that_may_only_be_read_is_not_written, 0, 3);
	tcase_add_test(t, test_only_a_chunk_of_one_entry_is_moved_from_a_view);
	tcase_add_test(t, test_a_receive_of_several_entries_is_filled_by_view_and_by_memory);
	tcase_add_loop_test(t, test_a_source_that_is_gone_is_the_requesters_error_alone, 0, 4);
	tcase_add_test(t, test_the_source_of_a_read_that_is_gone_is_the_responders_error);
	tcase_add_loop_test(t, test_a_target_whose_view_is_gone_is_written_in_memory, 0, 3);
	tcase_add_loop_test(t, test_a_target_that_is_gone_is_the_responders_error, 0, 2);
	tcase_add_test(t, test_a_requesters_target_that_is_gone_is_its_own_error);
	tcase_add_test(t, test_a_region_goes_while_its_bytes_are_on_their_way_to_slow_memory);
	tcase_add_test(t, test_a_requester_ends_while_its_peers_view_is_not_found);
	return run_suite("backends view", t);
}
