/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * payload SECONDS [SEED [FILES]]: two clients do transfers of every kind, first systematically (each kind at each size
 * class and alignment), then at random. After each transfer every byte of both arenas is compared with a model. FILES:
 * how many of the arenas are mappings of a file.
 */
#include "side.h"
#include <string.h>
#include <time.h>

#define ARENA (512 * 1024)
#define MAX_SGE 4
#define GRH 40
#define QKEY 0x11111111

#define SWAP(a, b) \
	do { \
		typeof(a) t_ = (a); \
		(a) = (b); \
		(b) = t_; \
	} while (0)

enum { RC, UC, UD, RC_SRQ, NUM_QPS };

struct kind {
	const char *name;
	int qp;
	enum ibv_wr_opcode opcode;
	bool receives; /* consumes a receive of the responder */
	bool imm;
	bool data_comes; /* the response writes to the requester's SGEs */
} kinds[] = {
	{ "RC send", RC, IBV_WR_SEND, .receives = true },
	{ "RC send with immediate", RC, IBV_WR_SEND_WITH_IMM, .receives = true, .imm = true },
	{ "RC write", RC, IBV_WR_RDMA_WRITE, .receives = false },
	{ "RC write with immediate", RC, IBV_WR_RDMA_WRITE_WITH_IMM, .receives = true, .imm = true },
	{ "RC read", RC, IBV_WR_RDMA_READ, .data_comes = true },
	{ "RC compare and swap", RC, IBV_WR_ATOMIC_CMP_AND_SWP, .data_comes = true },
	{ "RC fetch and add", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, .data_comes = true },
	{ "UC send", UC, IBV_WR_SEND, .receives = true },
	{ "UC send with immediate", UC, IBV_WR_SEND_WITH_IMM, .receives = true, .imm = true },
	{ "UC write", UC, IBV_WR_RDMA_WRITE, .receives = false },
	{ "UC write with immediate", UC, IBV_WR_RDMA_WRITE_WITH_IMM, .receives = true, .imm = true },
	{ "UD send", UD, IBV_WR_SEND, .receives = true },
	{ "UD send with immediate", UD, IBV_WR_SEND_WITH_IMM, .receives = true, .imm = true },
	{ "SRQ send", RC_SRQ, IBV_WR_SEND, .receives = true },
	{ "SRQ send with immediate", RC_SRQ, IBV_WR_SEND_WITH_IMM, .receives = true, .imm = true },
};

#define NUM_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct piece {
	uint32_t offset, length; /* in an arena */
};

struct list {
	int n;
	struct piece piece[MAX_SGE];
};

struct transfer {
	int kind;
	struct list local, receive;
	uint32_t remote, length;
	uint64_t swap, compare;
	uint32_t imm;
};

struct join {
	struct address address[NUM_QPS];
	uint64_t addr;
	uint32_t rkey;
};

struct posting { /* the argument of a side_call() */
	struct transfer t;
	struct join peer;
	bool receives; /* the completion that take_wc() waits for is a receive's */
	struct ibv_wc wc;
};

static uint64_t seed;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

/* ---- code that runs on a side ------------------------------------------------------------------------------------ */

static struct ibv_ah *ah;

static int open_all(struct side *s, void *arg)
{
	struct join *j = arg;

	side_open(s, NULL);
	for (int i = 0; i < NUM_QPS; i++) {
		s->qp[i] = side_qp(s, i == UC ? IBV_QPT_UC : i == UD ? IBV_QPT_UD : IBV_QPT_RC, i == RC_SRQ);
		j->address[i] = side_address(s, s->qp[i]);
	}
	j->addr = (uintptr_t)s->arena;
	j->rkey = s->mr->rkey;
	return 0;
}

static int connect_all(struct side *s, void *arg)
{
	struct join *j = arg;

	for (int i = 0; i < NUM_QPS; i++)
		qp_connect(s->qp[i], j->address[i], NULL);
	ah = side_ah(s, j->address[UD]);
	return 0;
}

static int sges_of(struct side *s, const struct list *list, struct ibv_sge *sge)
{
	for (int i = 0; i < list->n; i++) {
		sge[i].addr = (uintptr_t)s->arena + list->piece[i].offset;
		sge[i].length = list->piece[i].length;
		sge[i].lkey = s->mr->lkey;
	}
	return list->n;
}

static int post_receive(struct side *s, void *arg)
{
	struct posting *p = arg;
	struct ibv_sge sge[MAX_SGE];
	struct ibv_recv_wr *bad, wr = { .wr_id = 0xbeef, .sg_list = sge };
	int qp = kinds[p->t.kind].qp;

	wr.num_sge = sges_of(s, &p->t.receive, sge);
	CHECK(!(qp == RC_SRQ ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp[qp], &wr, &bad)));
	return 0;
}

static int post_send(struct side *s, void *arg)
{
	struct posting *p = arg;
	const struct kind *k = &kinds[p->t.kind];
	struct ibv_sge sge[MAX_SGE];
	struct ibv_send_wr *bad, wr = { .wr_id = 0xfeed, .sg_list = sge, .opcode = k->opcode };

	wr.num_sge = sges_of(s, &p->t.local, sge);
	wr.imm_data = k->imm ? p->t.imm : 0;
	if (k->qp == UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = p->peer.address[UD].qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (k->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || k->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = p->peer.addr + p->t.remote;
		wr.wr.atomic.rkey = p->peer.rkey;
		wr.wr.atomic.compare_add = p->t.compare;
		wr.wr.atomic.swap = p->t.swap;
	} else {
		wr.wr.rdma.remote_addr = p->peer.addr + p->t.remote;
		wr.wr.rdma.rkey = p->peer.rkey;
	}
	if (ibv_post_send(s->qp[k->qp], &wr, &bad)) {
		printf("%s: not posted: %m\n", k->name);
		exit(1);
	}
	return 0;
}

static int take_wc(struct side *s, void *arg)
{
	struct posting *p = arg;

	if (!next_wc(s, &p->wc, 20)) {
		printf("%s, %u bytes: no completion within 20 s at the %s\n", kinds[p->t.kind].name, p->t.length,
		       p->receives ? "responder" : "requester");
		exit(1);
	}
	return 0;
}

static int nothing_more(struct side *s, void *unused)
{
	struct ibv_wc wc;

	return ibv_poll_cq(s->cq, 1, &wc);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

struct end {
	struct side side;
	struct join join;
	unsigned char *model;
};

static void gather(const unsigned char *arena, const struct list *list, unsigned char *to)
{
	for (int i = 0; i < list->n; to += list->piece[i++].length)
		memcpy(to, arena + list->piece[i].offset, list->piece[i].length);
}

static void scatter(unsigned char *arena, const struct list *list, const unsigned char *from, uint32_t length)
{
	for (int i = 0; i < list->n && length; i++) {
		uint32_t n = list->piece[i].length < length ? list->piece[i].length : length;

		memcpy(arena + list->piece[i].offset, from, n);
		from += n;
		length -= n;
	}
}

static bool is_atomic(const struct kind *k)
{
	return k->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || k->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void model(const struct transfer *t, struct end *from, struct end *to)
{
	static unsigned char data[ARENA];
	const struct kind *k = &kinds[t->kind];
	uint64_t value, changed;

	if (is_atomic(k)) {
		memcpy(&value, to->model + t->remote, 8);
		changed = k->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? value + t->compare
			  : value == t->compare			   ? t->swap
								   : value;
		memcpy(to->model + t->remote, &changed, 8);
		scatter(from->model, &t->local, (unsigned char *)&value, 8);
	} else if (k->data_comes) {
		memcpy(data, to->model + t->remote, t->length);
		scatter(from->model, &t->local, data, t->length);
	} else if (k->qp == UD) {
		/* The first bytes are reserved for a GRH. A datagram inside one subnet has none: they are undefined. */
		gather(to->side.arena, &t->receive, data);
		gather(from->model, &t->local, data + GRH);
		scatter(to->model, &t->receive, data, GRH + t->length);
	} else {
		gather(from->model, &t->local, data);
		if (k->receives && k->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			scatter(to->model, &t->receive, data, t->length);
		else
			memcpy(to->model + t->remote, data, t->length);
	}
}

static void compare(const struct transfer *t, struct end *e, const char *which)
{
	size_t i = 0;

	if (!memcmp(e->model, e->side.arena, ARENA))
		return;
	while (e->model[i] == e->side.arena[i])
		i++;
	printf("%s, %u bytes, remote offset %#x: the %s differs at %#zx: %02x, must be %02x\n", kinds[t->kind].name,
	       t->length, t->remote, which, i, e->side.arena[i], e->model[i]);
	for (int n = 0; n < t->local.n; n++)
		printf("  local %#x + %u\n", t->local.piece[n].offset, t->local.piece[n].length);
	for (int n = 0; n < t->receive.n; n++)
		printf("  receive %#x + %u\n", t->receive.piece[n].offset, t->receive.piece[n].length);
	exit(1);
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

static void check_wc(const struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	if (wc->status == IBV_WC_SUCCESS && wc->wr_id == wr_id && wc->opcode == opcode)
		return;
	printf("completion %#lx: %s, opcode %d; expected %#lx, opcode %d\n", wc->wr_id, ibv_wc_status_str(wc->status),
	       wc->opcode, wr_id, opcode);
	exit(1);
}

static enum ibv_wc_opcode wc_opcode(const struct kind *k)
{
	switch (k->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static void do_transfer(const struct transfer *t, struct end *from, struct end *to)
{
	const struct kind *k = &kinds[t->kind];
	struct posting p = { .t = *t, .peer = to->join };

	if (k->receives)
		side_call(&to->side, post_receive, &p, sizeof(p));
	side_call(&from->side, post_send, &p, sizeof(p));
	side_call(&from->side, take_wc, &p, sizeof(p));
	check_wc(&p.wc, 0xfeed, wc_opcode(k));
	if (k->receives) {
		p.receives = true;
		side_call(&to->side, take_wc, &p, sizeof(p));
		check_wc(&p.wc, 0xbeef,
			 k->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		CHECK(p.wc.byte_len == t->length + (k->qp == UD ? GRH : 0));
		CHECK(!!(p.wc.wc_flags & IBV_WC_WITH_IMM) == k->imm && (!k->imm || p.wc.imm_data == t->imm));
		CHECK(p.wc.qp_num == to->join.address[k->qp].qpn);
		CHECK(k->qp != UD || p.wc.src_qp == from->join.address[UD].qpn);
		CHECK(!side_call(&to->side, nothing_more, NULL, 0));
	}
	CHECK(!side_call(&from->side, nothing_more, NULL, 0));
	model(t, from, to);
	compare(t, from, "requester");
	compare(t, to, "responder");
}

/* Splits `length` bytes into n pieces in random order, each `align` bytes from a page's start, without overlap. */
static struct list pieces(uint32_t length, int n, uint32_t align)
{
	struct list list = { .n = n };
	uint32_t at = rnd((ARENA - length) / 4096 - 2 * n) * 4096, left = length;

	for (int i = 0; i < n; i++) {
		int swap = rnd(i + 1);

		list.piece[i].offset = (at + 4095) / 4096 * 4096 + align;
		list.piece[i].length = i == n - 1 ? left : rnd(left + 1);
		left -= list.piece[i].length;
		at = list.piece[i].offset + list.piece[i].length;
		SWAP(list.piece[i], list.piece[swap]);
	}
	return list;
}

static void make(struct transfer *t, int kind, uint32_t length, uint32_t align, struct end *to)
{
	const struct kind *k = &kinds[kind];

	*t = (struct transfer){ .kind = kind, .imm = rnd(UINT32_MAX) };
	if (is_atomic(k)) {
		t->length = 8;
		t->local = pieces(8, 1, align & ~7u); /* rdmavt requires 8-byte alignment */
		t->remote = rnd(ARENA / 8) * 8;
		t->swap = (uint64_t)rnd(UINT32_MAX) << 32 | rnd(UINT32_MAX);
		memcpy(&t->compare, to->model + t->remote, 8);
		t->compare += rnd(2); /* wrong half of the time */
		return;
	}
	if (k->qp == UD)
		length = length > 4096 ? 4096 : length;
	t->length = length;
	t->local = pieces(length, 1 + rnd(MAX_SGE), align);
	if (!length && rnd(2))
		t->local.n = 0;
	t->remote = rnd((ARENA - length - 4096) / 4096 + 1) * 4096 + rnd(2) * rnd(4096);
	if (!k->receives)
		return;
	/* The receive may be longer than the message. WRITE_WITH_IMM consumes a receive without SGEs. */
	t->receive = pieces(length + (k->qp == UD ? GRH : rnd(2) * rnd(100)), 1 + rnd(MAX_SGE), rnd(4096));
	if (k->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		t->receive.n = 0;
}

static const uint32_t sizes[] = { 0,	1,    2,    3,	   4,	  7,	 8,	9,     15,     16,     31,    63,
				  64,	65,   127,  255,   256,	  257,	 511,	1023,  2048,   4095,   4096,  4097,
				  8191, 8192, 8193, 16384, 32767, 65535, 65536, 65537, 131072, 262143, 400000 };
static const uint32_t aligns[] = { 0, 1, 7, 8, 63, 4088, 4095 };

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fill(struct end *e)
{
	for (size_t i = 0; i < ARENA; i++)
		e->model[i] = e->side.arena[i] = rnd(256);
}

int main(int argc, char **argv)
{
	static struct end end[2];
	struct transfer t;
	unsigned long done = 0;
	int num_files;
	double stop = now() + atof(argv[1]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	num_files = argc > 3 ? atoi(argv[3]) : 0;
	printf("seed %#lx\n", seed);
	for (int i = 0; i < 2; i++) {
		end[i].model = malloc(ARENA);
		side_init(&end[i].side, i < num_files ? arena_of_file(ARENA) : arena_new(ARENA), ARENA, i);
		fill(&end[i]);
	}
	for (int i = 0; i < 2; i++)
		side_call(&end[i].side, open_all, &end[i].join, sizeof(end[i].join));
	for (int i = 0; i < 2; i++)
		side_call(&end[i].side, connect_all, &end[!i].join, sizeof(end[i].join));
	for (unsigned int k = 0; k < NUM_KINDS; k++)
		for (unsigned int s = 0; s < NUM(sizes); s++)
			for (unsigned int a = 0; a < NUM(aligns); a++, done++) {
				int from = (s + a) % 2;

				make(&t, k, sizes[s], aligns[a], &end[!from]);
				do_transfer(&t, &end[from], &end[!from]);
			}
	printf("%lu systematic transfers\n", done);
	for (done = 0; now() < stop; done++) {
		int from = rnd(2);

		make(&t, rnd(NUM_KINDS), rnd(2) ? sizes[rnd(NUM(sizes))] : rnd(1 << rnd(19)), rnd(4096), &end[!from]);
		do_transfer(&t, &end[from], &end[!from]);
	}
	printf("%lu random transfers\n", done);
	side_end(&end[1].side);
	return 0;
}
