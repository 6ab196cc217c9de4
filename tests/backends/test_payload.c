/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks every byte of each kind of transfer, for various sizes and alignments, in one piece and in several. The whole
 * destination area is compared, so that a stray write beside the message is found too.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;

enum { MOST = 8 << 20, ROOM = MOST + 64 * 1024, MAX_SGE = 4, UD_MOST = 4096, GRH = 40, INLINE = 4096 };

/* One area at each end. `expected` is what b's area should hold. */
static struct area {
	uint8_t *bytes;
	struct uvd_mr *mr;
} areas[2];
static uint8_t *expected;
static struct uvd_ah *ah;

static uint64_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	for (int i = 0; i < 2; i++) {
		bed.side[i].dev.config.limits.max_inline_data = INLINE;
		areas[i].bytes = aligned_alloc(4096, ROOM);
		areas[i].mr = make_mr(&bed.end[i], areas[i].bytes, ROOM, bed.end[i].access);
	}
	bed.cap.max_inline_data = INLINE;
	expected = malloc(ROOM);
	for (size_t i = 0; i < ROOM; i++)
		areas[0].bytes[i] = i * 7 + i / 251;
	ah = calloc(1, ops->size_ah);
	ah->pd = a->side->pd;
	ah->attr = bed_address_of(b);
	ck_assert_int_eq(ops->create_ah(ah, NULL), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(ops->destroy_ah(ah), 0);
	free(ah);
	for (int i = 0; i < 2; i++) {
		free_mr(areas[i].mr);
		free(areas[i].bytes);
	}
	free(expected);
	bed_close(&bed);
}

/* ---- one transfer ------------------------------------------------------------------------------------------------ */

struct transfer {
	enum ibv_wr_opcode opcode;
	uint32_t length;
	size_t from, to; /* offsets in the areas; there is a gap of one byte between two pieces */
	int from_pieces, to_pieces;
	bool is_inline;
};

/* Cuts length bytes into n pieces, some of which may be empty. */
static void cut(struct area *area, size_t at, uint32_t length, int n, struct ibv_sge *sge)
{
	for (int i = 0; i < n; i++) {
		uint32_t len = i == n - 1 ? length : rnd(length + 1);

		sge[i] = (struct ibv_sge){ (uintptr_t)area->bytes + at, len, area->mr->lkey };
		at += len + 1;
		length -= len;
	}
}

/* Copies the source's bytes to the places in `expected` where the destination's pieces are. addr 0 ends a list. */
static void expect_bytes(const struct ibv_sge *to, const struct area *dst, const struct ibv_sge *from)
{
	uint32_t done = 0;

	for (;; to++) {
		uint8_t *out = expected + (to->addr - (uintptr_t)dst->bytes);
		uint32_t left = to->length;

		while (left) {
			uint32_t n;

			while (done == from->length) {
				from++;
				done = 0;
				if (!from->addr)
					return;
			}
			n = left < from->length - done ? left : from->length - done;
			memcpy(out, (uint8_t *)(uintptr_t)from->addr + done, n);
			out += n;
			left -= n;
			done += n;
		}
		if (!to[1].addr)
			return;
	}
}

static void run(const struct transfer *t)
{
	bool reads = t->opcode == IBV_WR_RDMA_READ;
	bool ud = a->qp->qp_type == IBV_QPT_UD;
	bool is_send = t->opcode == IBV_WR_SEND || t->opcode == IBV_WR_SEND_WITH_IMM;
	/* The destination is always b's area: a read is posted by b. */
	struct end *poster = reads ? b : a;
	struct ibv_sge from[MAX_SGE + 1] = { 0 }, to[MAX_SGE + 1] = { 0 };
	uint8_t data[INLINE];
	struct uvd_send_wr wr;

	cut(&areas[0], t->from, t->length, reads ? 1 : t->from_pieces, from);
	cut(&areas[1], t->to, t->length + (ud ? GRH : 0), is_send || reads ? t->to_pieces : 1, to);
	memset(areas[1].bytes, 0x5a, ROOM);
	memset(expected, 0x5a, ROOM);

	wr = wr_to(b, t->opcode, from, t->from_pieces);
	wr.remote_addr = to[0].addr;
	wr.rkey = areas[1].mr->rkey;
	if (reads) {
		wr.sg_list = to;
		wr.num_sge = t->to_pieces;
		wr.remote_addr = from[0].addr;
		wr.rkey = areas[0].mr->rkey;
	}
	if (t->is_inline) {
		wr.num_sge = 0;
		wr.inline_data = data;
		wr.inline_len = t->length;
		cut(&areas[0], t->from, t->length, 1, from);
		from[1].addr = 0;
		memcpy(data, areas[0].bytes + t->from, t->length);
	}
	if (ud) {
		wr.ah = ah;
		wr.remote_qpn = b->qp->qp_num;
		wr.remote_qkey = 0x1234;
	}
	if (is_send)
		ck_assert_int_eq(post_recv_list(b, 0xb, to, t->to_pieces), 0);
	else if (t->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ck_assert_int_eq(post_recv_list(b, 0xb, NULL, 0), 0);
	ck_assert_int_eq(post_send_wr(poster, &wr), 0);
	memset(data, 0, sizeof(data));
	expect(poster->scq, 0xa, IBV_WC_SUCCESS);
	if (is_send || t->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ck_assert_uint_eq(expect(b->rcq, 0xb, IBV_WC_SUCCESS).byte_len, t->length + (ud ? GRH : 0));

	if (ud) {
		/* No GRH is written: the receive's first 40 bytes stay as they are, in whichever pieces. */
		struct ibv_sge whole[MAX_SGE + 2] = { { (uintptr_t)memset(data, 0x5a, GRH), GRH, 0 } };

		memcpy(&whole[1], from, sizeof(from));
		expect_bytes(to, &areas[1], whole);
	} else {
		expect_bytes(to, &areas[1], from);
	}
	ck_assert_msg(!memcmp(areas[1].bytes, expected, ROOM), "opcode %d, %u bytes, %zu -> %zu, %d -> %d pieces",
		      t->opcode, t->length, t->from, t->to, t->from_pieces, t->to_pieces);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static const struct {
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	bool is_inline;
} kinds[] = {
	{ IBV_QPT_RC, IBV_WR_SEND },
	{ IBV_QPT_RC, IBV_WR_SEND_WITH_IMM },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ IBV_QPT_RC, IBV_WR_RDMA_READ },
	{ IBV_QPT_RC, IBV_WR_SEND, true },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, true },
	{ IBV_QPT_UC, IBV_WR_SEND },
	{ IBV_QPT_UC, IBV_WR_RDMA_WRITE },
	{ IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ IBV_QPT_UC, IBV_WR_SEND, true },
	{ IBV_QPT_UD, IBV_WR_SEND },
	{ IBV_QPT_UD, IBV_WR_SEND_WITH_IMM },
	{ IBV_QPT_UD, IBV_WR_SEND, true },
};

static const uint32_t sizes[] = { 0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 4095, 4096, 4097, 65535, 65536, 1 << 20, MOST };
/* On, behind and before the start of a page. */
static const size_t alignments[] = { 0, 1, 7, 4091, 4095 };

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), ALIGNMENTS = sizeof(alignments) / sizeof(alignments[0]) };

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void run_size(int kind, uint32_t length)
{
	/* Comparing the whole area is slow: try fewer combinations for large sizes, and in a sanitizer build. */
	int step = length > 65536 ? 7 : SANITIZED ? 3 : 1;

	for (int i = 0; i < ALIGNMENTS * ALIGNMENTS; i += step) {
		struct transfer t = {
			.opcode = kinds[kind].opcode,
			.length = length,
			.from = alignments[i / ALIGNMENTS],
			.to = alignments[i % ALIGNMENTS],
			.from_pieces = 1 + i % MAX_SGE,
			.to_pieces = 1 + i / MAX_SGE % MAX_SGE,
			.is_inline = kinds[kind].is_inline,
		};

		run(&t);
	}
}

START_TEST(test_every_byte_arrives_and_no_other_changes)
{
	uint32_t most = kinds[_i].is_inline ? INLINE : kinds[_i].type == IBV_QPT_UD ? UD_MOST : MOST;

	bed_connect(&bed, kinds[_i].type);
	for (int i = 0; i < SIZES && sizes[i] <= most; i++)
		run_size(_i, sizes[i]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("payload");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 100);
	tcase_add_loop_test(t, test_every_byte_arrives_and_no_other_changes, 0, sizeof(kinds) / sizeof(kinds[0]));
	return run_suite("backends: soft, payload", t);
}
