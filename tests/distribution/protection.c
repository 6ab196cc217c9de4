/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * protection [CASE | --list]: a client does what another client does not allow. Each case names the status that the
 * requester must see. Afterwards all bytes of both arenas must be unchanged, except those that the case may change.
 */
#include "side.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ARENA 65536
#define PAGE 4096
#define QKEY 0x11111111
#define LENGTH 200
/* The part of the responder's arena that the requester may access. */
#define WINDOW (4 * PAGE)
#define WINDOW_LENGTH (2 * PAGE + 100)

/* The setup of the two sides. A member that is 0 leaves the normal setup. */
struct setup {
	enum ibv_qp_type type;
	struct connection responder, requester;
	int mr_access; /* of the window */
	bool other_pd; /* the window's PD is not the responder QP's */
	bool deregistered; /* the window is deregistered before the request */
	bool unmapped; /* the window's second page is unmapped after the registration */
	bool read_only; /* the same page is made read-only */
	bool receives; /* the responder has a receive posted */
	uint32_t receive_len; /* default LENGTH */
	bool bad_receive_key;
	enum ibv_qp_state state; /* the responder QP's last state; RESET: it is destroyed */
	bool stops;
};

struct request {
	enum ibv_wr_opcode opcode;
	int64_t remote; /* offset from the window's start */
	uint32_t length; /* default LENGTH */
	uint32_t rkey_plus; /* added, to make the key wrong */
	uint32_t lkey_plus;
	int64_t local; /* offset from the arena's start */
	bool local_unmapped;
	bool local_read_only_mr;
	uint32_t qkey_plus;
};

struct shared { /* the argument of a side_call() */
	struct setup setup;
	struct address address;
	uint64_t addr;
	uint32_t rkey;
	bool something; /* a completion is expected */
	struct ibv_wc wc;
};

struct test {
	const char *name;
	struct setup setup;
	struct request request;
	enum ibv_wc_status status; /* at the requester */
	enum ibv_wc_status receive_status; /* at the responder */
	bool received; /* the responder gets a completion */
	bool flush; /* the responder's QP is in error: its receive is flushed */
	bool kill; /* the responder is killed before the request */
};

/* ---- the responder ----------------------------------------------------------------------------------------------- */

static struct ibv_mr *window;

static void spoil_page(struct side *s, const struct setup *setup)
{
	if (setup->unmapped)
		CHECK(!munmap(s->arena + WINDOW + PAGE, PAGE));
	if (setup->read_only)
		CHECK(!mprotect(s->arena + WINDOW + PAGE, PAGE, PROT_READ));
}

static int open_responder(struct side *s, void *arg)
{
	struct shared *x = arg;
	struct ibv_pd *pd;

	side_open(s, NULL);
	pd = x->setup.other_pd ? ibv_alloc_pd(s->context) : s->pd;
	CHECK(pd);
	window = ibv_reg_mr(pd, s->arena + WINDOW, WINDOW_LENGTH, x->setup.mr_access);
	CHECK(window);
	x->rkey = window->rkey;
	x->addr = (uintptr_t)s->arena + WINDOW;
	s->qp[0] = side_qp(s, x->setup.type, false);
	x->address = side_address(s, s->qp[0]);
	return 0;
}

static int connect_responder(struct side *s, void *arg)
{
	struct shared *x = arg;
	const struct setup *setup = &x->setup;
	struct ibv_sge sge = { (uintptr_t)s->arena + WINDOW, setup->receive_len ?: LENGTH,
			       s->mr->lkey + setup->bad_receive_key };
	struct ibv_recv_wr *bad, wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };

	if (!setup->stops) {
		qp_connect(s->qp[0], x->address, &setup->responder);
	} else if (setup->state == IBV_QPS_RESET) {
		CHECK(!ibv_destroy_qp(s->qp[0]));
	} else {
		qp_to_init(s->qp[0], &setup->responder);
		if (setup->state == IBV_QPS_ERR)
			qp_to_error(s->qp[0]);
	}
	if (setup->receives)
		CHECK(!ibv_post_recv(s->qp[0], &wr, &bad));
	if (setup->deregistered)
		CHECK(!ibv_dereg_mr(window));
	spoil_page(s, setup);
	return 0;
}

static int receive(struct side *s, void *arg)
{
	struct shared *x = arg;

	/* The requester already has its completion: ours is here, or arrives within a moment. */
	return next_wc(s, &x->wc, x->something ? 20 : 0.03);
}

static int qp_is_in_error(struct side *s, void *unused)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(s->qp[0], &attr, IBV_QP_STATE, &init));
	return attr.qp_state == IBV_QPS_ERR;
}

/* ---- the requester ----------------------------------------------------------------------------------------------- */

static bool is_atomic(const struct request *r)
{
	return r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Returns false if rxe's provider refused an unaligned atomic itself: the device never sees it. */
static bool post(struct side *s, const struct request *r, const struct shared *peer)
{
	struct ibv_mr *mr = r->local_read_only_mr ? ibv_reg_mr(s->pd, s->arena, s->size, 0) : s->mr;
	struct ibv_sge sge = { (uintptr_t)s->arena + r->local, r->length ?: LENGTH, mr->lkey + r->lkey_plus };
	struct ibv_send_wr *bad, wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = r->opcode };
	int ret;

	if (r->local_unmapped)
		CHECK(!munmap(s->arena, PAGE));
	if (is_atomic(r)) {
		wr.wr.atomic.remote_addr = peer->addr + r->remote;
		wr.wr.atomic.rkey = peer->rkey + r->rkey_plus;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = peer->addr + r->remote;
		wr.wr.rdma.rkey = peer->rkey + r->rkey_plus;
	}
	if (peer->setup.type == IBV_QPT_UD) {
		wr.wr.ud.ah = side_ah(s, peer->address);
		wr.wr.ud.remote_qpn = peer->address.qpn;
		wr.wr.ud.remote_qkey = QKEY + r->qkey_plus;
	}
	ret = ibv_post_send(s->qp[0], &wr, &bad);
	if (ret && is_atomic(r) && r->remote % 8)
		return false;
	CHECK(!ret);
	return true;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

#define ALL .mr_access = ALL_ACCESS
#define QUICK .requester = { .timeout = 8, .retry_cnt = 2, .rnr_retry = 2 }
#define SETUP(...) .setup = { .type = IBV_QPT_RC, __VA_ARGS__ }
#define SEND(...) .request = { .opcode = IBV_WR_SEND, __VA_ARGS__ }
#define WRITE(...) .request = { .opcode = IBV_WR_RDMA_WRITE, __VA_ARGS__ }
#define READ(...) .request = { .opcode = IBV_WR_RDMA_READ, __VA_ARGS__ }
#define ADD(...) .request = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, __VA_ARGS__ }

static const struct test tests[] = {
	/* the responder's keys, ranges, access rights, PDs */
	{ .name = "write_with_a_wrong_key", SETUP(ALL), WRITE(.rkey_plus = 1), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_with_a_key_from_nowhere",
	  SETUP(ALL),
	  WRITE(.rkey_plus = 0x12345600),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "read_with_a_wrong_key", SETUP(ALL), READ(.rkey_plus = 1), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "atomic_with_a_wrong_key", SETUP(ALL), ADD(.rkey_plus = 1), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_over_the_end",
	  SETUP(ALL),
	  WRITE(.remote = WINDOW_LENGTH - LENGTH + 1),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_before_the_start", SETUP(ALL), WRITE(.remote = -1), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_round_the_end_of_memory",
	  SETUP(ALL),
	  WRITE(.remote = INT64_MIN),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "read_over_the_end",
	  SETUP(ALL),
	  READ(.remote = WINDOW_LENGTH - LENGTH + 1),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "read_before_the_start", SETUP(ALL), READ(.remote = -1), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "atomic_over_the_end",
	  SETUP(ALL),
	  ADD(.remote = WINDOW_LENGTH - 4),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "atomic_after_the_end", SETUP(ALL), ADD(.remote = 3 * PAGE), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "atomic_not_aligned", SETUP(ALL), ADD(.remote = 4), .status = IBV_WC_REM_INV_REQ_ERR },
	{ .name = "write_without_the_regions_right",
	  SETUP(.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
	  WRITE(),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "read_without_the_regions_right",
	  SETUP(.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
	  READ(),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "atomic_without_the_regions_right",
	  SETUP(.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
	  ADD(),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_without_the_qps_right",
	  SETUP(ALL, .responder.access = IBV_ACCESS_REMOTE_READ),
	  WRITE(),
	  .status = IBV_WC_REM_INV_REQ_ERR },
	{ .name = "read_without_the_qps_right",
	  SETUP(ALL, .responder.access = IBV_ACCESS_REMOTE_WRITE),
	  READ(),
	  .status = IBV_WC_REM_INV_REQ_ERR },
	{ .name = "atomic_without_the_qps_right",
	  SETUP(ALL, .responder.access = IBV_ACCESS_REMOTE_WRITE),
	  ADD(),
	  .status = IBV_WC_REM_INV_REQ_ERR },
	{ .name = "write_to_another_protection_domain",
	  SETUP(ALL, .other_pd = true),
	  WRITE(),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "read_from_another_protection_domain",
	  SETUP(ALL, .other_pd = true),
	  READ(),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_with_a_stale_key",
	  SETUP(ALL, .deregistered = true),
	  WRITE(),
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "read_with_a_stale_key", SETUP(ALL, .deregistered = true), READ(), .status = IBV_WC_REM_ACCESS_ERR },
	{ .name = "write_to_memory_that_is_unmapped",
	  SETUP(ALL, .unmapped = true),
	  WRITE(.remote = PAGE),
	  .status = IBV_WC_REM_OP_ERR },
	{ .name = "read_of_memory_that_is_unmapped",
	  SETUP(ALL, .unmapped = true),
	  READ(.remote = PAGE),
	  .status = IBV_WC_REM_OP_ERR },
	{ .name = "atomic_on_memory_that_is_unmapped",
	  SETUP(ALL, .unmapped = true),
	  ADD(.remote = PAGE),
	  .status = IBV_WC_REM_OP_ERR },
	{ .name = "write_to_memory_that_became_read_only",
	  SETUP(ALL, .read_only = true),
	  WRITE(.remote = PAGE),
	  .status = IBV_WC_REM_OP_ERR },
	{ .name = "write_by_uc_with_a_wrong_key",
	  .setup = { .type = IBV_QPT_UC, ALL },
	  WRITE(.rkey_plus = 1),
	  .status = IBV_WC_SUCCESS },

	/* the requester's own memory */
	{ .name = "send_with_a_wrong_local_key",
	  SETUP(ALL, .receives = true),
	  SEND(.lkey_plus = 1),
	  .status = IBV_WC_LOC_PROT_ERR },
	{ .name = "write_from_outside_the_region",
	  SETUP(ALL),
	  WRITE(.local = ARENA - LENGTH + 1),
	  .status = IBV_WC_LOC_PROT_ERR },
	{ .name = "write_from_memory_that_is_unmapped",
	  SETUP(ALL),
	  WRITE(.local_unmapped = true),
	  .status = IBV_WC_LOC_PROT_ERR },
	{ .name = "read_into_a_region_without_local_write",
	  SETUP(ALL),
	  READ(.local_read_only_mr = true),
	  .status = IBV_WC_LOC_PROT_ERR },
	{ .name = "read_into_memory_that_is_unmapped",
	  SETUP(ALL),
	  READ(.local_unmapped = true),
	  .status = IBV_WC_LOC_PROT_ERR },

	/* receives */
	{ .name = "send_of_more_than_the_receive_takes",
	  SETUP(ALL, .receives = true, .receive_len = LENGTH - 1),
	  SEND(),
	  .status = IBV_WC_REM_INV_REQ_ERR,
	  .receive_status = IBV_WC_LOC_LEN_ERR,
	  .received = true },
	{ .name = "send_into_a_receive_with_a_wrong_key",
	  SETUP(ALL, .receives = true, .bad_receive_key = true),
	  SEND(),
	  .status = IBV_WC_REM_OP_ERR,
	  .receive_status = IBV_WC_LOC_PROT_ERR,
	  .received = true },
	{ .name = "send_into_a_receive_that_is_unmapped",
	  SETUP(ALL, .receives = true, .unmapped = true, .receive_len = PAGE + LENGTH),
	  SEND(.length = PAGE + LENGTH),
	  .status = IBV_WC_REM_OP_ERR,
	  .receive_status = IBV_WC_LOC_PROT_ERR,
	  .received = true },
	{ .name = "send_without_a_receive",
	  SETUP(ALL, .requester.no_retries = true),
	  SEND(),
	  .status = IBV_WC_RNR_RETRY_EXC_ERR },
	{ .name = "send_without_a_receive_after_retries",
	  SETUP(ALL, QUICK),
	  SEND(),
	  .status = IBV_WC_RNR_RETRY_EXC_ERR },
	{ .name = "wrong_key_flushes_the_responders_receives",
	  SETUP(ALL, .receives = true),
	  WRITE(.rkey_plus = 1),
	  .status = IBV_WC_REM_ACCESS_ERR,
	  .receive_status = IBV_WC_WR_FLUSH_ERR,
	  .received = true,
	  .flush = true },
	{ .name = "datagram_with_a_wrong_qkey",
	  .setup = { .type = IBV_QPT_UD, ALL, .receives = true, .receive_len = LENGTH + 40 },
	  SEND(.qkey_plus = 1),
	  .status = IBV_WC_SUCCESS },

	/* QPs that are not ready, and dead clients */
	{ .name = "write_to_a_qp_in_init",
	  SETUP(ALL, QUICK, .stops = true, .state = IBV_QPS_INIT),
	  WRITE(),
	  .status = IBV_WC_RETRY_EXC_ERR },
	{ .name = "write_to_a_qp_in_error",
	  SETUP(ALL, QUICK, .stops = true, .state = IBV_QPS_ERR),
	  WRITE(),
	  .status = IBV_WC_RETRY_EXC_ERR },
	{ .name = "write_to_a_qp_that_is_gone",
	  SETUP(ALL, QUICK, .stops = true, .state = IBV_QPS_RESET),
	  WRITE(),
	  .status = IBV_WC_RETRY_EXC_ERR },
	{ .name = "write_to_a_client_that_is_gone",
	  SETUP(ALL, QUICK),
	  WRITE(),
	  .status = IBV_WC_RETRY_EXC_ERR,
	  .kill = true },
	{ .name = "read_from_a_client_that_is_gone",
	  SETUP(ALL, QUICK),
	  READ(),
	  .status = IBV_WC_RETRY_EXC_ERR,
	  .kill = true },
};

#define NUM_TESTS (sizeof(tests) / sizeof(tests[0]))

static void compare(const char *whose, const unsigned char *is, const unsigned char *was, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (is[i] == was[i])
			continue;
		printf("the %s's byte %#zx was touched: %02x, was %02x\n", whose, i, is[i], was[i]);
		exit(1);
	}
}

static void expect(const char *what, enum ibv_wc_status is, enum ibv_wc_status must)
{
	if (is == must)
		return;
	printf("%s: %s, must be %s\n", what, ibv_wc_status_str(is), ibv_wc_status_str(must));
	exit(1);
}

/* The requester's QP must be in error, and flush what is posted to it. */
static void check_flush(struct side *s, const struct shared *peer)
{
	struct request r = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_wc wc;

	CHECK(qp_is_in_error(s, NULL));
	CHECK(post(s, &r, peer));
	CHECK(next_wc(s, &wc, 20) && wc.wr_id == 9);
	expect("the next one", wc.status, IBV_WC_WR_FLUSH_ERR);
}

static void run(const struct test *t)
{
	static struct side requester, responder;
	static unsigned char was[2][ARENA];
	struct shared x = { .setup = t->setup }, to_responder;
	unsigned char *arena[2] = { arena_new(ARENA), arena_new(ARENA) };
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		for (int n = 0; n < ARENA; n++)
			arena[i][n] = was[i][n] = 31 * n + n / 256 + 100 * i;
	}
	side_init(&requester, arena[0], ARENA, false);
	side_init(&responder, arena[1], ARENA, true);
	side_call(&responder, open_responder, &x, sizeof(x));
	side_open(&requester, NULL);
	requester.qp[0] = side_qp(&requester, t->setup.type, false);
	qp_connect(requester.qp[0], x.address, &t->setup.requester);
	to_responder = x;
	to_responder.address = side_address(&requester, requester.qp[0]);
	side_call(&responder, connect_responder, &to_responder, sizeof(x));
	if (t->kill)
		side_kill(&responder);

	if (!post(&requester, &t->request, &x)) {
		side_end(&responder);
		return;
	}
	CHECK(next_wc(&requester, &wc, 20) && wc.wr_id == 9);
	expect("the requester", wc.status, t->status);
	if (t->status && !t->request.local_unmapped)
		check_flush(&requester, &x);
	if (!t->kill) {
		bool came;

		x.something = t->received;
		came = side_call(&responder, receive, &x, sizeof(x));
		CHECK(came == t->received);
		if (came)
			expect("the responder", x.wc.status, t->receive_status);
		if (t->status == IBV_WC_REM_ACCESS_ERR || t->status == IBV_WC_REM_INV_REQ_ERR ||
		    t->status == IBV_WC_REM_OP_ERR)
			CHECK(side_call(&responder, qp_is_in_error, NULL, 0));
		side_end(&responder);
	}
	compare("requester", arena[0], was[0], t->request.local_unmapped ? PAGE : 0, ARENA);
	/* A failed receive may have been filled partly. */
	if (t->received && !t->flush)
		memcpy(was[1] + WINDOW, arena[1] + WINDOW, t->setup.unmapped ? PAGE : LENGTH - 1);
	compare("responder", arena[1], was[1], 0, ARENA);
}

/* Runs each case in its own process; libibverbs' providers are loaded once, before the forks. */
static int run_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int failed = 0, status;

	CHECK(list);
	for (unsigned int i = 0; i < NUM_TESTS; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			run(&tests[i]);
			exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		printf("%s: %s\n", tests[i].name, status ? "failed" : "ok");
		failed |= status;
	}
	ibv_free_device_list(list);
	return !!failed;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return run_all();
	for (unsigned int i = 0; i < NUM_TESTS; i++) {
		if (!strcmp(argv[1], tests[i].name)) {
			run(&tests[i]);
			return 0;
		}
		if (!strcmp(argv[1], "--list"))
			puts(tests[i].name);
	}
	return strcmp(argv[1], "--list") ? 2 : 0;
}
