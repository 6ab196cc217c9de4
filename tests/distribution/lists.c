/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * lists SECONDS [SEED]: two clients post lists of small sends and writes to each other, as fast as they can. Every
 * message contains its number: it must arrive once, in order and complete, and the completions must be in order, too.
 */
#include "side.h"
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum {
	DEPTH = 64, /* of send queues; side_qp() */
	RECEIVES = 16,
	SLOT = 4096,
	LONGEST = 3000,
	SENT = 0,
	RECEIVED = DEPTH,
	WRITTEN = RECEIVED + RECEIVES,
	SLOTS = WRITTEN + DEPTH,
};

struct hello {
	struct address address;
	uint64_t addr;
	uint32_t rkey;
};

/* Each message begins with this. */
struct head {
	uint64_t nr; /* of its kind */
	uint64_t writes; /* before it */
	uint32_t length, last; /* length: of the whole message; last: this is the last send */
};

struct state {
	struct side side;
	struct hello peer;
	unsigned int seed;
	uint64_t posted, completed; /* requests */
	uint64_t sends, writes; /* posted */
	uint64_t received, heard; /* sends received, and writes posted before the last of them */
	bool ended; /* the last send was received */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static unsigned char *slot(struct state *s, unsigned int n)
{
	return s->side.arena + (size_t)n * SLOT;
}

static unsigned char byte_of(const struct head *h, uint32_t at)
{
	return h->nr * 31 + at * 7 + (at >> 8) + h->writes;
}

static void fill(unsigned char *to, const struct head *h)
{
	memcpy(to, h, sizeof(*h));
	for (uint32_t i = sizeof(*h); i < h->length; i++)
		to[i] = byte_of(h, i);
}

static void check_whole(const unsigned char *from, const struct head *h)
{
	CHECK(h->length >= sizeof(*h) && h->length <= LONGEST);
	for (uint32_t i = sizeof(*h); i < h->length; i++)
		CHECK(from[i] == byte_of(h, i));
}

static void post_receive(struct state *s, unsigned int n)
{
	struct ibv_sge sge = { (uintptr_t)slot(s, RECEIVED + n), SLOT, s->side.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_recv(s->side.qp[0], &wr, &bad));
}

static void make(struct state *s, struct ibv_send_wr *wr, struct ibv_sge *sge, bool is_write, bool last)
{
	unsigned char *from = slot(s, SENT + s->posted % DEPTH);
	struct head h = {
		.nr = is_write ? s->writes : s->sends,
		.writes = s->writes,
		.length = sizeof(h) + rand_r(&s->seed) % (rand_r(&s->seed) % 4 ? 100 : LONGEST - sizeof(h)),
		.last = last,
	};

	fill(from, &h);
	*sge = (struct ibv_sge){ (uintptr_t)from, h.length, s->side.mr->lkey };
	*wr = (struct ibv_send_wr){ .wr_id = s->posted++, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	if (!is_write) {
		s->sends++;
		return;
	}
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = s->peer.addr + (size_t)(WRITTEN + s->writes++ % DEPTH) * SLOT;
	wr->wr.rdma.rkey = s->peer.rkey;
}

static void post_list(struct state *s, unsigned int num, bool last)
{
	unsigned int kind = rand_r(&s->seed) % 3; /* sends, writes, both */
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_sge sge[DEPTH];

	for (unsigned int i = 0; i < num; i++) {
		make(s, &wr[i], &sge[i], !last && (kind == 1 || (kind == 2 && rand_r(&s->seed) % 2)), last);
		wr[i].next = i + 1 < num ? &wr[i + 1] : NULL;
	}
	CHECK(!ibv_post_send(s->side.qp[0], wr, &bad));
}

/* Checks that the n-th write has arrived, or a later one to the same slot. */
static void check_written(struct state *s, uint64_t n)
{
	const volatile struct head *h = (const struct head *)slot(s, WRITTEN + n % DEPTH);

	CHECK(h->nr >= n && h->nr % DEPTH == n % DEPTH);
}

static void hear(struct state *s, const struct ibv_wc *wc)
{
	const unsigned char *at = slot(s, RECEIVED + wc->wr_id);
	struct head h;

	CHECK(wc->opcode == IBV_WC_RECV && wc->wr_id == s->received % RECEIVES && !s->ended);
	memcpy(&h, at, sizeof(h));
	CHECK(h.nr == s->received && h.length == wc->byte_len);
	check_whole(at, &h);
	for (uint64_t n = s->heard > h.writes - DEPTH && h.writes > DEPTH ? h.writes - DEPTH : s->heard; n < h.writes;
	     n++)
		check_written(s, n);
	s->heard = h.writes;
	s->received++;
	s->ended = h.last;
	post_receive(s, wc->wr_id);
}

static void poll_all(struct state *s)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(s->side.cq, 16, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK(wc[i].status == IBV_WC_SUCCESS);
		if (wc[i].opcode != IBV_WC_SEND && wc[i].opcode != IBV_WC_RDMA_WRITE) {
			hear(s, &wc[i]);
			continue;
		}
		CHECK(wc[i].wr_id == s->completed);
		s->completed++;
	}
}

static void drain(struct state *s, unsigned int room)
{
	double end = now() + 120;

	while (DEPTH - (s->posted - s->completed) < room) {
		poll_all(s);
		CHECK(now() < end);
	}
}

static void meet(struct state *s, int fd)
{
	struct connection how = { 0 };
	struct hello mine;
	char c;

	side_init(&s->side,
		  mmap(NULL, (size_t)SLOTS * SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		  (size_t)SLOTS * SLOT, false);
	side_open(&s->side, NULL);
	s->side.qp[0] = side_qp(&s->side, IBV_QPT_RC, false);
	mine = (struct hello){ side_address(&s->side, s->side.qp[0]), (uintptr_t)s->side.arena, s->side.mr->rkey };
	CHECK(write(fd, &mine, sizeof(mine)) == sizeof(mine) && read(fd, &s->peer, sizeof(s->peer)) == sizeof(s->peer));
	qp_connect(s->side.qp[0], s->peer.address, &how);
	for (unsigned int n = 0; n < RECEIVES; n++)
		post_receive(s, n);
	CHECK(write(fd, "r", 1) == 1 && read(fd, &c, 1) == 1);
}

/* Checks that the last write to each slot arrived complete. */
static void check_end(struct state *s)
{
	for (uint64_t n = s->heard > DEPTH ? s->heard - DEPTH : 0; n < s->heard; n++) {
		struct head h;

		memcpy(&h, slot(s, WRITTEN + n % DEPTH), sizeof(h));
		CHECK(h.nr == n);
		check_whole(slot(s, WRITTEN + n % DEPTH), &h);
	}
}

static void client(int fd, double seconds, unsigned int seed)
{
	struct state s = { .seed = seed };
	double end, limit;
	char c;

	meet(&s, fd);
	end = now() + seconds;
	limit = end + 120;
	while (now() < end) {
		unsigned int num = 1 + rand_r(&s.seed) % (DEPTH / 2);

		drain(&s, rand_r(&s.seed) % 8 ? num : DEPTH);
		post_list(&s, num, false);
		poll_all(&s);
	}
	drain(&s, 1);
	post_list(&s, 1, true);
	drain(&s, DEPTH);
	while (!s.ended) {
		poll_all(&s);
		CHECK(now() < limit);
	}
	check_end(&s);
	fprintf(stderr, "%llu posted, %llu received\n", (unsigned long long)s.posted, (unsigned long long)s.received);
	/* Stay until the peer has finished, too: its last requests need this QP. */
	CHECK(write(fd, "e", 1) == 1 && read(fd, &c, 1) == 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	double seconds = atof(argv[1]);
	unsigned int seed = argc > 2 ? strtoul(argv[2], NULL, 0) : (unsigned int)time(NULL);
	int fds[2], status;

	fprintf(stderr, "seed %u\n", seed);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[!i]);
		client(fds[i], seconds, seed + i);
	}
	close(fds[0]);
	close(fds[1]);
	for (int i = 0; i < 2; i++)
		CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}
