/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random operations on two connected QPs, each direction on a thread of its own, compared with a model: plain memory
 * that gets the same changes. Runs for 2 seconds, or for 60 if UVERBSD_LONG is set in the environment, and for 1,000
 * operations in each direction however slow the machine is. UVD_SEED repeats the operations of a run.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;

/* Each direction has an area to itself: a half of each end's buffer. */
enum { AREA = BUF_SIZE / 2, MAX_SGE = 4, INLINE = 64, LEAST_ROUNDS = 1000 };

struct side_model {
	struct end *end;
	size_t offset; /* of the area in the end's buffer */
	uint8_t *bytes; /* the bytes that the area should hold */
};

struct direction {
	struct side_model near, far;
	uint64_t seed, rounds, deadline;
};

static uint32_t rnd(struct direction *d, uint32_t below)
{
	d->seed = d->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (d->seed >> 33) % below;
}

/* Mostly small; at most two chunks of the engine (256 KiB). A receive in AREA can be longer by 99 bytes. */
static uint32_t some_length(struct direction *d)
{
	static const uint32_t below[] = { 2, 65, 4097, 65537, AREA - 99 };

	return rnd(d, below[rnd(d, 5)]);
}

/* Makes a list of ascending pieces that do not overlap, of `length` bytes in total. Returns their number. */
static int some_sges(struct direction *d, const struct side_model *m, uint32_t length, struct ibv_sge *sge)
{
	int n = 1 + rnd(d, MAX_SGE);
	size_t spare = AREA - length, at = 0;

	for (int i = 0; i < n; i++) {
		uint32_t gap = rnd(d, spare + 1), len = i == n - 1 ? length : rnd(d, length + 1);

		at += gap;
		spare -= gap;
		sge[i] = (struct ibv_sge){ (uintptr_t)m->end->buf + m->offset + at, len, m->end->mr->lkey };
		at += len;
		length -= len;
	}
	return n;
}

static uint8_t *model_of(const struct side_model *m, uint64_t addr)
{
	return m->bytes + (addr - ((uintptr_t)m->end->buf + m->offset));
}

static void gather(const struct side_model *m, const struct ibv_sge *sge, int n, uint8_t *out)
{
	for (int i = 0; i < n; out += sge[i++].length)
		memcpy(out, model_of(m, sge[i].addr), sge[i].length);
}

static void scatter(const struct side_model *m, const struct ibv_sge *sge, int n, const uint8_t *in, uint32_t length)
{
	for (int i = 0; i < n && length; i++) {
		uint32_t len = sge[i].length < length ? sge[i].length : length;

		memcpy(model_of(m, sge[i].addr), in, len);
		in += len;
		length -= len;
	}
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static struct uvd_send_wr request(struct direction *d, enum ibv_wr_opcode opcode, const struct ibv_sge *sge, int n)
{
	struct uvd_send_wr wr = wr_to(d->far.end, opcode, sge, n);

	wr.wr_id = d->rounds;
	return wr;
}

static void complete(struct direction *d, const struct uvd_send_wr *wr)
{
	expect(d->near.end->scq, wr->wr_id, IBV_WC_SUCCESS);
}

static void post(struct direction *d, const struct uvd_send_wr *wr)
{
	ck_assert_int_eq(post_send_wr(d->near.end, wr), 0);
}

static void send(struct direction *d)
{
	bool is_inline = !rnd(d, 4), late = rnd(d, 2);
	uint32_t length = is_inline ? rnd(d, INLINE + 1) : some_length(d);
	struct ibv_sge src[MAX_SGE], dst[MAX_SGE];
	int ns = some_sges(d, &d->near, length, src), nd = some_sges(d, &d->far, length + rnd(d, 100), dst);
	struct uvd_send_wr wr = request(d, rnd(d, 2) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, src, ns);
	uint8_t *data = malloc(length + 1);
	struct ibv_wc wc;

	gather(&d->near, src, ns, data);
	wr.imm_data = rnd(d, UINT32_MAX);
	if (is_inline) {
		wr.num_sge = 0;
		wr.inline_data = data;
		wr.inline_len = length;
	}
	if (late)
		post(d, &wr);
	ck_assert_int_eq(post_recv_list(d->far.end, d->rounds, dst, nd), 0);
	if (!late)
		post(d, &wr);
	complete(d, &wr);
	wc = expect(d->far.end->rcq, d->rounds, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, length);
	if (wr.opcode == IBV_WR_SEND_WITH_IMM)
		ck_assert_uint_eq(wc.imm_data, wr.imm_data);
	scatter(&d->far, dst, nd, data, length);
	free(data);
}

/* Returns a random address in the far area, with room for `length` bytes. */
static uint64_t some_target(struct direction *d, uint32_t length)
{
	return (uintptr_t)d->far.end->buf + d->far.offset + rnd(d, AREA - length + 1);
}

static void write_remote(struct direction *d)
{
	uint32_t length = some_length(d);
	struct ibv_sge src[MAX_SGE];
	int ns = some_sges(d, &d->near, length, src);
	struct uvd_send_wr wr = request(d, rnd(d, 2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM, src, ns);

	wr.remote_addr = some_target(d, length);
	if (wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ck_assert_int_eq(post_recv_list(d->far.end, d->rounds, NULL, 0), 0);
	post(d, &wr);
	complete(d, &wr);
	if (wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ck_assert_uint_eq(expect(d->far.end->rcq, d->rounds, IBV_WC_SUCCESS).byte_len, length);
	gather(&d->near, src, ns, model_of(&d->far, wr.remote_addr));
}

static void read_remote(struct direction *d)
{
	uint32_t length = some_length(d);
	struct ibv_sge dst[MAX_SGE];
	int nd = some_sges(d, &d->near, length, dst);
	struct uvd_send_wr wr = request(d, IBV_WR_RDMA_READ, dst, nd);

	wr.remote_addr = some_target(d, length);
	post(d, &wr);
	complete(d, &wr);
	scatter(&d->near, dst, nd, model_of(&d->far, wr.remote_addr), length);
}

static void atomic(struct direction *d)
{
	size_t at = rnd(d, AREA / 8) * 8;
	struct ibv_sge sge = sge_at(d->near.end, d->near.offset + at, 8);
	struct uvd_send_wr wr =
		request(d, rnd(d, 2) ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 1);
	uint64_t *word;

	wr.remote_addr = (uintptr_t)d->far.end->buf + d->far.offset + rnd(d, AREA / 8) * 8;
	word = (uint64_t *)model_of(&d->far, wr.remote_addr);
	wr.compare_add = rnd(d, 2) ? *word : rnd(d, UINT32_MAX);
	wr.swap = rnd(d, UINT32_MAX);
	post(d, &wr);
	complete(d, &wr);
	memcpy(d->near.bytes + at, word, 8);
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*word += wr.compare_add;
	else if (*word == wr.compare_add)
		*word = wr.swap;
}

/* The client itself writes into its memory. */
static void scribble(struct direction *d)
{
	uint32_t length = some_length(d), at = rnd(d, AREA - length + 1);

	for (uint32_t i = 0; i < length; i++)
		d->near.bytes[at + i] = i * 13 + d->rounds;
	memcpy(d->near.end->buf + d->near.offset + at, d->near.bytes + at, length);
}

static void run_one(struct direction *d)
{
	static void (*const operations[])(struct direction *) = { send,	       send,   write_remote, write_remote,
								  read_remote, atomic, scribble };

	operations[rnd(d, sizeof(operations) / sizeof(operations[0]))](d);
	d->rounds++;
}

static void compare(const struct direction *d, const struct side_model *m)
{
	ck_assert_msg(!memcmp(m->end->buf + m->offset, m->bytes, AREA), "round %llu of seed %s",
		      (unsigned long long)d->rounds, getenv("UVD_SEED") ? getenv("UVD_SEED") : "1");
}

static void *run(void *arg)
{
	struct direction *d = arg;

	while (now_us() < d->deadline || d->rounds < LEAST_ROUNDS) {
		run_one(d);
		if (d->rounds % 16 == 0) {
			compare(d, &d->near);
			compare(d, &d->far);
		}
	}
	compare(d, &d->near);
	compare(d, &d->far);
	return NULL;
}

START_TEST(test_random_operations_do_what_the_model_does)
{
	uint64_t seconds = suite_is_long() ? 60 : 2;
	struct direction directions[2] = { 0 };
	pthread_t threads[2];

	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	bed.cap = (struct ibv_qp_cap){ 32, 32, MAX_SGE, MAX_SGE, INLINE };
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 2; i++) {
		struct direction *d = &directions[i];

		d->near = (struct side_model){ &bed.end[i], 0, calloc(1, AREA) };
		d->far = (struct side_model){ &bed.end[!i], AREA, calloc(1, AREA) };
		d->seed = i + (getenv("UVD_SEED") ? strtoull(getenv("UVD_SEED"), NULL, 0) : 1) * 2;
		d->deadline = now_us() + seconds * 1000000;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run, d), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		printf("direction %d: %llu operations\n", i, (unsigned long long)directions[i].rounds);
		free(directions[i].near.bytes);
		free(directions[i].far.bytes);
	}
	bed_close(&bed);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("model");

	tcase_set_timeout(t, 700);
	tcase_add_test(t, test_random_operations_do_what_the_model_does);
	return run_suite("backends: soft, model", t);
}
