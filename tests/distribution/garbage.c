/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * garbage SECONDS [SEED]: a client that writes garbage to its mapped queues, and rings the doorbell. Its QPs are
 * connected to each other, and are reset and connected again and again, so that some of the requests are carried out.
 * The completions are not checked.
 */
#include "side.h"
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ARENA = 1 << 16, MAPS = 16, HEADER = 384, PRODUCER = 128, CONSUMER = 256 };

static struct map {
	unsigned char *at;
	size_t size;
} maps[MAPS];
static unsigned int num_maps, seed;

static unsigned int any(unsigned int n)
{
	return rand_r(&seed) % n;
}

/* Finds the mapped queues: a client maps nothing else of its open file. */
static void find_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];

	CHECK(f);
	for (num_maps = 0; num_maps < MAPS && fgets(line, sizeof(line), f);)
		if (strstr(line, "/memfd:uverbsd:") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			maps[num_maps++] = (struct map){ (unsigned char *)from, to - from };
	fclose(f);
}

static uint32_t word(const struct side *s)
{
	static const uint32_t edges[] = { 0, 1, 2, 31, 32, 33, 63, 64, 127, 0x7fffffff, 0x80000000, 0xffffffff };

	switch (any(4)) {
	case 0:
		return edges[any(sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return any(2) ? s->mr->lkey : s->mr->rkey;
	case 2:
		return any(20);
	default:
		return (uint32_t)rand_r(&seed) << 8 ^ rand_r(&seed);
	}
}

/* Overwrites some words of an entry, or an index: the producer's or the consumer's. */
static void spoil(const struct side *s)
{
	const struct map *m = &maps[any(num_maps)];
	uint64_t addr = (uintptr_t)s->arena + any(ARENA);
	size_t at;

	switch (any(8)) {
	case 0:
	case 1:
		at = any(4) ? PRODUCER : CONSUMER;
		break;
	case 2:
		at = any(HEADER / 4) * 4;
		break;
	case 3:
		at = any(m->size / 8) * 8;
		memcpy(m->at + at, &addr, sizeof(addr));
		return;
	case 4:
		if (!any(50))
			madvise(m->at, m->size, MADV_REMOVE);
		return;
	default:
		at = HEADER + any((m->size - HEADER) / 4) * 4;
	}
	*(volatile uint32_t *)(m->at + at) = word(s);
}

static void ring(const struct side *s, const struct ibv_qp *qp)
{
	struct ib_uverbs_post_send_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send cmd;
	} post = {
		.hdr = { .command = IB_USER_VERBS_CMD_POST_SEND,
			 .in_words = sizeof(post) / 4,
			 .out_words = sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp,
			 .qp_handle = qp->handle,
			 .wqe_size = sizeof(struct ib_uverbs_send_wr) },
	};

	if (write(s->context->cmd_fd, &post, sizeof(post)) < 0)
		return;
}

static void reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

static void connect_all(struct side *s)
{
	static const struct connection quick = { .timeout = 1, .retry_cnt = 1, .rnr_retry = 1 };

	for (int i = 0; i < 6; i++)
		qp_connect(s->qp[i], side_address(s, s->qp[i ^ 1]), &quick);
}

int main(int argc, char **argv)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UD
	};
	time_t end;
	struct side s;

	CHECK(argc > 1);
	end = time(NULL) + atoi(argv[1]);
	seed = argc > 2 ? strtoul(argv[2], NULL, 0) : (unsigned int)time(NULL);
	printf("seed %u\n", seed);
	side_init(&s, arena_new(ARENA), ARENA, false);
	side_open(&s, NULL);
	for (int i = 0; i < 6; i++)
		s.qp[i] = side_qp(&s, types[i], i & 1);
	connect_all(&s);
	find_maps();
	/* Six send queues, three receive queues, an SRQ, a CQ; adjacent mappings may be one line of the maps file. */
	CHECK(num_maps);
	for (unsigned int n = 0; time(NULL) < end; n++) {
		for (unsigned int i = any(30); i; i--)
			spoil(&s);
		ring(&s, s.qp[any(6)]);
		if (n % 64)
			continue;
		for (int i = 0; i < 6; i++)
			reset(s.qp[i]);
		connect_all(&s);
	}
	return 0;
}
