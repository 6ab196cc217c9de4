/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The pages of mapped queues, with the distribution's provider: those of a queue that is destroyed leave the file that the
 * client shares with the engine, and what the client has mapped reads as zeros then.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "../distribution/side.h"

enum { MOST = 8, ENTRIES = 64, PAGE = 4096 };

/* A queue's place in the file, and a mapping of it that outlives the provider's. */
struct pages {
	off_t offset;
	size_t length;
	char *memory;
};

struct queues {
	struct pages of[MOST];
	unsigned int num;
};

static struct side s;

/* Reads a mapping of the device from a line of /proc/self/maps. Returns false if it is one of something else. */
static bool pages_read(const char *line, struct pages *p)
{
	unsigned long from, to, offset;

	if (!strstr(line, "/memfd:") || sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3)
		return false;
	*p = (struct pages){ .offset = offset, .length = to - from };
	return true;
}

static bool queues_have(const struct queues *q, off_t offset)
{
	for (unsigned int i = 0; i < q->num; i++)
		if (q->of[i].offset == offset)
			return true;
	return false;
}

/* Adds to `q` what the provider has mapped, and is not in `known`. */
static void queues_look(struct queues *q, const struct queues *known)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct pages p;
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		if (pages_read(line, &p) && !queues_have(known, p.offset)) {
			CHECK(q->num < MOST);
			q->of[q->num++] = p;
		}
	fclose(maps);
}

/* The queues that have been made since `known`, mapped once more. */
static struct queues queues_made(const struct queues *known, unsigned int num)
{
	struct queues q = { .num = 0 };

	queues_look(&q, known);
	CHECK(q.num == num);
	for (unsigned int i = 0; i < num; i++) {
		struct pages *p = &q.of[i];

		CHECK(lseek(s.context->cmd_fd, p->offset, SEEK_DATA) == p->offset);
		p->memory = mmap(NULL, p->length, PROT_READ | PROT_WRITE, MAP_SHARED, s.context->cmd_fd, p->offset);
		CHECK(p->memory != MAP_FAILED && *p->memory); /* the header begins with the size of an entry */
		for (size_t end = PAGE; end <= p->length; end += PAGE)
			p->memory[end - 1] = 1;
	}
	return q;
}

/* Looks for the pages before it reads, as a read from a hole may fill it. */
static void queues_are_gone(struct queues *q)
{
	for (unsigned int i = 0; i < q->num; i++) {
		struct pages *p = &q->of[i];
		const off_t data = lseek(s.context->cmd_fd, p->offset, SEEK_DATA);

		CHECK(data < 0 ? errno == ENXIO : data >= p->offset + (off_t)p->length);
	}
	for (unsigned int i = 0; i < q->num; i++) {
		struct pages *p = &q->of[i];

		for (size_t n = 0; n < p->length; n++)
			CHECK(!p->memory[n]);
		munmap(p->memory, p->length);
	}
}

static struct ibv_srq *srq_new(uint32_t max_wr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(s.pd, &init);

	CHECK(srq);
	return srq;
}

static struct ibv_qp *qp_new(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s.cq,
		.recv_cq = s.cq,
		.srq = srq,
		.cap = { .max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(s.pd, &init);

	CHECK(qp);
	return qp;
}

static void check_cq(const struct queues *before)
{
	struct ibv_cq *cq = ibv_create_cq(s.context, ENTRIES, NULL, NULL, 0);
	struct queues old, resized;

	CHECK(cq);
	old = queues_made(before, 1);
	CHECK(!ibv_resize_cq(cq, 4 * ENTRIES));
	queues_are_gone(&old);
	resized = queues_made(before, 1);
	CHECK(!ibv_destroy_cq(cq));
	queues_are_gone(&resized);
}

static void check_srq(const struct queues *before)
{
	struct ibv_srq *srq = srq_new(ENTRIES);
	struct ibv_srq_attr larger = { .max_wr = 4 * ENTRIES };
	struct ibv_recv_wr *bad, wr = { .wr_id = ~0ULL };
	struct queues old, resized;

	old = queues_made(before, 1);
	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	CHECK(!ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR));
	queues_are_gone(&old);
	resized = queues_made(before, 1);
	CHECK(!ibv_destroy_srq(srq));
	queues_are_gone(&resized);
}

/* A QP has a queue for sends and one for receives, unless these come from an SRQ. */
static void check_qp(const struct queues *before)
{
	static const struct connection how;
	struct ibv_recv_wr *bad, wr = { .wr_id = ~0ULL };
	struct ibv_qp *qp = qp_new(NULL);
	struct queues q = queues_made(before, 2);
	struct ibv_srq *srq;

	qp_to_init(qp, &how);
	CHECK(!ibv_post_recv(qp, &wr, &bad));
	CHECK(!ibv_destroy_qp(qp));
	queues_are_gone(&q);
	srq = srq_new(ENTRIES);
	qp = qp_new(srq);
	q = queues_made(before, 2);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq));
	queues_are_gone(&q);
}

int main(void)
{
	struct queues before = { .num = 0 };

	side_init(&s, arena_new(PAGE), PAGE, false);
	side_open(&s, NULL);
	queues_look(&before, &(struct queues){ .num = 0 });
	CHECK(before.num == 1); /* that of the side's CQ */
	check_cq(&before);
	check_srq(&before);
	check_qp(&before);
	return 0;
}
