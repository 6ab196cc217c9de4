/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * shared [pinned]: two QPs of one process transfer between all pairs of kinds of memory, some of which a daemon could
 * map itself. Then memory is truncated while it is registered. pinned: a later mapping at a region's address must not
 * be transferred.
 */
#include "side.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

enum {
	PAGE = 4096,
	HUGE_PAGE = 2 << 20,
	SIZE = 128 * PAGE,
	FROM = 100, /* offset of a transfer in its arena */
	LENGTH = 300000, /* bytes of a transfer: more than one chunk */
	FILE_FROM = 3 * PAGE, /* offset of a mapping in its file */
};

/* An arena, and its file. */
struct memory {
	unsigned char *at;
	int fd; /* of a file that can be truncated, or -1 */
};

static void fill_file(struct memory *m, int fd, int flags)
{
	CHECK(fd >= 0 && !ftruncate(fd, FILE_FROM + SIZE));
	m->fd = fd;
	m->at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, FILE_FROM);
}

static void make_private(struct memory *m)
{
	m->at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void make_anonymous(struct memory *m)
{
	m->at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void make_memfd(struct memory *m)
{
	fill_file(m, memfd_create("shared", MFD_CLOEXEC), MAP_SHARED);
}

/* A private mapping: its bytes differ from the file's. */
static void make_private_memfd(struct memory *m)
{
	fill_file(m, memfd_create("private", MFD_CLOEXEC), MAP_PRIVATE);
}

static void make_sysv(struct memory *m)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);

	CHECK(id >= 0);
	m->at = shmat(id, NULL, 0);
	CHECK(!shmctl(id, IPC_RMID, NULL));
}

static int new_file(char path[64])
{
	strcpy(path, "/dev/shm/uverbsd-shared-XXXXXX");
	return mkostemp(path, O_CLOEXEC);
}

/* A file that can only be found by its name, as no fd stays open. */
static char names[8][64];
static unsigned int num_names;

static void make_named_file(struct memory *m)
{
	int fd = new_file(names[num_names++]);

	fill_file(m, fd, MAP_SHARED);
	close(fd);
	m->fd = -1;
}

static void make_unlinked_file(struct memory *m)
{
	char path[64];

	fill_file(m, new_file(path), MAP_SHARED);
	CHECK(!unlink(path));
}

/* A file whose name now belongs to another file. */
static void make_replaced_file(struct memory *m)
{
	char *path = names[num_names++];
	int fd = new_file(path);

	fill_file(m, fd, MAP_SHARED);
	close(fd);
	m->fd = -1;
	CHECK(!unlink(path));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, FILE_FROM + SIZE));
	close(fd);
}

static void make_huge_pages(struct memory *m)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	void *at;

	if (fd < 0 || ftruncate(fd, HUGE_PAGE))
		return;
	at = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		m->at = at;
}

static const struct {
	const char *name;
	void (*make)(struct memory *m);
} kinds[] = {
	{ "private", make_private },
	{ "anonymous", make_anonymous },
	{ "memfd", make_memfd },
	{ "memfd, private", make_private_memfd },
	{ "SysV", make_sysv },
	{ "named file", make_named_file },
	{ "unlinked file", make_unlinked_file },
	{ "replaced file", make_replaced_file },
	{ "huge pages", make_huge_pages },
};

enum { NUM_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct memory make_memory(unsigned int kind)
{
	struct memory m = { .fd = -1 };

	kinds[kind].make(&m);
	CHECK(m.at != MAP_FAILED);
	return m;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

static struct side a, b; /* requester and responder */

static void connect_both(void)
{
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &b : &a;

		if (s->qp[0])
			CHECK(!ibv_destroy_qp(s->qp[0]));
		s->qp[0] = side_qp(s, IBV_QPT_RC, false);
	}
	qp_connect(a.qp[0], side_address(&b, b.qp[0]), NULL);
	qp_connect(b.qp[0], side_address(&a, a.qp[0]), NULL);
}

static struct ibv_mr *reg(struct side *s, const struct memory *m)
{
	struct ibv_mr *mr = ibv_reg_mr(s->pd, m->at, SIZE, ALL_ACCESS);

	CHECK(mr);
	return mr;
}

/*
 * If before_a is not NULL, a request of the same length precedes each transfer, so that another thread of the daemon
 * carries the transfer out.
 */
static struct ibv_mr *before_a, *before_b;

static void post_behind(struct ibv_send_wr *wr)
{
	struct ibv_sge sge = { (uintptr_t)before_a->addr, LENGTH, before_a->lkey };
	struct ibv_send_wr *bad, first = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .next = wr };
	struct ibv_wc wc;

	first.wr.rdma.remote_addr = (uintptr_t)before_b->addr + SIZE - LENGTH;
	first.wr.rdma.rkey = before_b->rkey;
	CHECK(!ibv_post_send(a.qp[0], &first, &bad));
	CHECK(next_wc(&a, &wc, 60) && !wc.status);
}

/* Carries out one transfer. Returns the requester's status. */
static enum ibv_wc_status carry_out(enum ibv_wr_opcode opcode, struct ibv_mr *mine, struct ibv_mr *its)
{
	struct ibv_sge local = { (uintptr_t)mine->addr + FROM, LENGTH, mine->lkey };
	struct ibv_sge remote = { (uintptr_t)its->addr + FROM, LENGTH, its->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &local, .num_sge = 1, .opcode = opcode };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &remote, .num_sge = 1 };
	struct ibv_wc wc, received;

	wr.wr.rdma.remote_addr = remote.addr;
	wr.wr.rdma.rkey = its->rkey;
	if (opcode == IBV_WR_SEND)
		CHECK(!ibv_post_recv(b.qp[0], &recv, &bad_recv));
	if (before_a)
		post_behind(&wr);
	else
		CHECK(!ibv_post_send(a.qp[0], &wr, &bad));
	CHECK(next_wc(&a, &wc, 60));
	if (opcode == IBV_WR_SEND && !wc.status)
		CHECK(next_wc(&b, &received, 60) && !received.status && received.byte_len == LENGTH);
	return wc.status;
}

static void fill(unsigned char *at, unsigned int salt)
{
	for (int i = 0; i < SIZE; i++)
		at[i] = i * 7 + i / 251 + salt;
}

/* Checks all of an arena: the bytes that were moved, and those around them. */
static void expect_filled(const unsigned char *at, unsigned int salt, unsigned int beside)
{
	for (int i = 0; i < SIZE; i++) {
		unsigned int here = i >= FROM && i < FROM + LENGTH ? salt : beside;

		CHECK(at[i] == (unsigned char)(i * 7 + i / 251 + here));
	}
}

static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ };

static void move_each(const struct memory *mine, const struct memory *its)
{
	struct ibv_mr *mr_a = reg(&a, mine), *mr_b = reg(&b, its);

	for (int i = 0; i < 3; i++) {
		bool is_read = opcodes[i] == IBV_WR_RDMA_READ;

		fill(mine->at, 10 + i);
		fill(its->at, 20 + i);
		CHECK(carry_out(opcodes[i], mr_a, mr_b) == IBV_WC_SUCCESS);
		expect_filled(mine->at, is_read ? 20 + i : 10 + i, 10 + i);
		expect_filled(its->at, is_read ? 20 + i : 10 + i, 20 + i);
	}
	CHECK(!ibv_dereg_mr(mr_a) && !ibv_dereg_mr(mr_b));
}

static void move_all(void)
{
	struct memory from[NUM_KINDS], to[NUM_KINDS];

	for (unsigned int i = 0; i < NUM_KINDS; i++) {
		from[i] = make_memory(i);
		to[i] = make_memory(i);
		if (!to[i].at)
			printf("%s: there are none here\n", kinds[i].name);
	}
	for (unsigned int i = 0; i < NUM_KINDS; i++)
		for (unsigned int k = 0; k < NUM_KINDS; k++)
			if (from[i].at && to[k].at)
				move_each(&from[i], &to[k]);
	for (unsigned int i = 0; i < num_names; i++)
		unlink(names[i]);
}

/* ---- memory that is truncated or remapped ------------------------------------------------------------------------ */

/*
 * After a successful transfer, truncates its source or target: the next transfer must fail with `status`. The daemon
 * and the other side must stay usable.
 */
static void truncate_one(enum ibv_wr_opcode opcode, bool mine_goes, enum ibv_wc_status status)
{
	struct memory mine = make_memory(2), its = make_memory(2);
	struct ibv_mr *mr_a = reg(&a, &mine), *mr_b = reg(&b, &its);

	connect_both();
	CHECK(carry_out(opcode, mr_a, mr_b) == IBV_WC_SUCCESS);
	CHECK(!ftruncate(mine_goes ? mine.fd : its.fd, FILE_FROM + 20 * PAGE));
	CHECK(carry_out(opcode, mr_a, mr_b) == status);
	/* Extend the file again: the lost pages are now zero. */
	CHECK(!ftruncate(mine_goes ? mine.fd : its.fd, FILE_FROM + SIZE));
	connect_both();
	while (next_wc(&b, &(struct ibv_wc){ 0 }, 0))
		;
	CHECK(carry_out(opcode, mr_a, mr_b) == IBV_WC_SUCCESS);
	CHECK(!memcmp(mine.at + FROM, its.at + FROM, LENGTH));
	CHECK(!ibv_dereg_mr(mr_a) && !ibv_dereg_mr(mr_b));
}

static void lose_pages(void)
{
	truncate_one(IBV_WR_RDMA_WRITE, true, IBV_WC_LOC_PROT_ERR);
	truncate_one(IBV_WR_RDMA_WRITE, false, IBV_WC_REM_OP_ERR);
	truncate_one(IBV_WR_SEND, true, IBV_WC_LOC_PROT_ERR);
	truncate_one(IBV_WR_SEND, false, IBV_WC_REM_OP_ERR);
	truncate_one(IBV_WR_RDMA_READ, true, IBV_WC_LOC_PROT_ERR);
	truncate_one(IBV_WR_RDMA_READ, false, IBV_WC_REM_OP_ERR);
}

static void lose_pages_behind_another(void)
{
	struct memory m = make_memory(0);

	before_a = reg(&a, &m);
	before_b = reg(&b, &m);
	lose_pages();
	CHECK(!ibv_dereg_mr(before_a) && !ibv_dereg_mr(before_b));
	before_a = NULL;
}

static void make_hole(enum ibv_wr_opcode opcode)
{
	static const unsigned char zeros[50 * PAGE];
	struct memory mine = make_memory(2), its = make_memory(2);
	struct ibv_mr *mr_a = reg(&a, &mine), *mr_b = reg(&b, &its);

	for (int i = 0; i < 2; i++) {
		fill(mine.at, 1);
		fill(its.at, 1);
		if (i)
			CHECK(!fallocate(opcode == IBV_WR_RDMA_READ ? its.fd : mine.fd,
					 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FILE_FROM, sizeof(zeros)));
		CHECK(carry_out(opcode, mr_a, mr_b) == IBV_WC_SUCCESS);
		CHECK(!memcmp(mine.at + FROM, its.at + FROM, LENGTH));
	}
	CHECK(!memcmp((opcode == IBV_WR_RDMA_READ ? mine.at : its.at) + FROM, zeros, sizeof(zeros) - FROM));
	CHECK(!ibv_dereg_mr(mr_a) && !ibv_dereg_mr(mr_b));
}

static void keep_pinned(void)
{
	struct memory mine = make_memory(2), its = make_memory(2);
	struct ibv_mr *mr_a = reg(&a, &mine), *mr_b = reg(&b, &its);
	unsigned char *old;

	fill(mine.at, 1);
	CHECK(carry_out(IBV_WR_RDMA_WRITE, mr_a, mr_b) == IBV_WC_SUCCESS);
	CHECK(mmap(mine.at, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mine.at);
	old = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, mine.fd, FILE_FROM);
	CHECK(old != MAP_FAILED);
	fill(old, 2);
	fill(mine.at, 3);
	CHECK(carry_out(IBV_WR_RDMA_WRITE, mr_a, mr_b) == IBV_WC_SUCCESS);
	CHECK(!memcmp(its.at + FROM, old + FROM, LENGTH));
	CHECK(!ibv_dereg_mr(mr_a) && !ibv_dereg_mr(mr_b));
}

/* The same part of one file, mapped and registered at two addresses. */
static void move_from_two_mappings(void)
{
	struct memory one = make_memory(2), two = one, its = make_memory(0);
	struct ibv_mr *mr[2], *mr_b = reg(&b, &its);

	two.at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, one.fd, FILE_FROM);
	CHECK(two.at != MAP_FAILED);
	mr[0] = reg(&a, &one);
	mr[1] = reg(&a, &two);
	for (int i = 0; i < 4; i++) {
		fill(one.at, i);
		CHECK(carry_out(IBV_WR_RDMA_WRITE, mr[i % 2], mr_b) == IBV_WC_SUCCESS);
		CHECK(!memcmp(its.at + FROM, one.at + FROM, LENGTH));
	}
	CHECK(!ibv_dereg_mr(mr[0]) && !ibv_dereg_mr(mr[1]) && !ibv_dereg_mr(mr_b));
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &b : &a;

		side_init(s, arena_new(PAGE), PAGE, false);
		side_open(s, NULL);
	}
	connect_both();
	if (argc > 1) {
		keep_pinned();
		return 0;
	}
	move_all();
	move_from_two_mappings();
	lose_pages();
	lose_pages_behind_another();
	for (int i = 0; i < 3; i++)
		make_hole(opcodes[i]);
	puts("all is well");
	return 0;
}
