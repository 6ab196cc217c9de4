/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * opcodes -d DEVICE -g GID [-m] [-n TIMES] [ADDRESS]: the requester of each row of opcodes_rows.h, and without ADDRESS its responder, which
 * listens. -m: also rows with misaligned atomics, which the stock provider of rxe refuses to post. -n: only rows of RC without errors, so often:
 * they must end alike over a link that loses packets. Each row has QPs of its own. The requester prints a line for each row and end: its work completions, the state in which the row
 * left its QP, and whether memory has the bytes that it should have.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "opcodes_rows.h"

#define CHECK(ok) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, "FAIL %s:%d: %s: %s (errno %m)\n", __FILE__, __LINE__, row->name, #ok); \
			_exit(1); \
		} \
	} while (0)

#define PORT "18515"
#define STUCK 60 /* seconds */
#define SLOT (32 * 1024)
#define AREA (MAX_WRS * SLOT)
#define ARENA (3 * AREA) /* what is sent or comes back, what peers reach, receives */
#define GRH 40
#define QKEY 0x1ee7
#define INLINE 64
#define IMM 0xfeedf00d

struct address { /* of a row's QP */
	uint32_t qpn, psn;
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey[WINDOW_KEY + 1];
};

static const struct row *row;
static bool requests;
static int peer_fd;
static uint8_t *arena, *model, *peers_model;
static struct ibv_context *context;
static int gid_index;
static struct ibv_pd *pd;
static struct ibv_mr *mr, *mr_local, *mr_read_only;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mw *window;
static char report[1024];

static void say(const char *format, ...)
{
	const size_t len = strlen(report);
	va_list ap;

	va_start(ap, format);
	vsnprintf(report + len, sizeof(report) - len, format, ap);
	va_end(ap);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- the other process ------------------------------------------------------------------------------------------- */

static void meet(const char *address)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE,
		.ai_family = address ? AF_UNSPEC : AF_INET6,
	};
	struct addrinfo *to;
	int fd;

	CHECK(!getaddrinfo(address, PORT, &hints, &to));
	fd = socket(to->ai_family, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	if (address) {
		CHECK(!connect(fd, to->ai_addr, to->ai_addrlen));
		peer_fd = fd;
	} else {
		CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
		CHECK(!bind(fd, to->ai_addr, to->ai_addrlen) && !listen(fd, 1));
		peer_fd = accept(fd, NULL, NULL);
		CHECK(peer_fd >= 0);
		close(fd);
	}
	CHECK(!setsockopt(peer_fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)));
	freeaddrinfo(to);
}

static void exchange(const void *mine, void *theirs, size_t size)
{
	CHECK(write(peer_fd, mine, size) == (ssize_t)size);
	CHECK(recv(peer_fd, theirs, size, MSG_WAITALL) == (ssize_t)size);
}

static void both_are_here(void)
{
	char c = 0;

	exchange(&c, &c, 1);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void fill(uint8_t *bytes, bool of_requester)
{
	for (uint32_t i = 0; i < ARENA; i++)
		bytes[i] = (i * 2654435761u >> 13) + i / 251 + (of_requester ? 77 : 0);
}

static bool is_atomic(const struct wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint32_t remote_offset(const struct wr *wr, unsigned int n)
{
	if (wr->flags & BEYOND)
		return is_atomic(wr) ? ARENA : ARENA - wr->length + 1;
	return AREA + n * SLOT + (wr->flags & MISALIGNED ? 4 : 0);
}

static void atomic_in_model(const struct wr *wr, uint8_t *local, uint8_t *remote)
{
	uint64_t value, old;

	memcpy(&old, remote, sizeof(old));
	memcpy(local, &old, sizeof(old));
	value = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + 0x1234567890 : 0xabcdef;
	memcpy(remote, &value, sizeof(value));
}

/* Says what the row's requests should do to the memory of both. Requests with an effect take the receives in turn. */
static void model_row(void)
{
	uint8_t *requester = requests ? model : peers_model, *responder = requests ? peers_model : model;
	unsigned int receive = 0;

	for (unsigned int n = 0; n < row->num; n++) {
		const struct wr *wr = &row->wr[n];
		uint8_t *local = requester + n * SLOT, *remote = responder + remote_offset(wr, n);
		uint8_t *received = responder + 2 * AREA + receive * SLOT + (row->type == IBV_QPT_UD ? GRH : 0);

		if (wr->flags & WITHOUT_EFFECT)
			continue;
		switch (wr->opcode) {
		case IBV_WR_SEND:
		case IBV_WR_SEND_WITH_IMM:
		case IBV_WR_SEND_WITH_INV:
			memcpy(received, local, wr->length);
			receive++;
			break;
		case IBV_WR_RDMA_WRITE_WITH_IMM:
			receive++;
			/* fallthrough */
		case IBV_WR_RDMA_WRITE:
			memcpy(remote, local, wr->length);
			break;
		case IBV_WR_RDMA_READ:
			memcpy(local, remote, wr->length);
			break;
		default:
			atomic_in_model(wr, local, remote);
		}
	}
}

/* Leaves out the GRHs: their first half means nothing with IPv4, and the rest is looked at by say_grh(). */
static void say_memory(void)
{
	for (unsigned int n = 0; row->type == IBV_QPT_UD && n < MAX_WRS; n++)
		memcpy(model + 2 * AREA + n * SLOT, arena + 2 * AREA + n * SLOT, GRH);
	for (uint32_t i = 0; i < ARENA; i++) {
		if (arena[i] != model[i]) {
			say(" bytes differ from %" PRIu32 " on", i);
			return;
		}
	}
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list);
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	CHECK(context);
	pd = ibv_alloc_pd(context);
	arena = mmap(NULL, ARENA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	model = malloc(ARENA);
	peers_model = malloc(ARENA);
	CHECK(pd && arena != MAP_FAILED && model && peers_model);
	mr = ibv_reg_mr(pd, arena, ARENA,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	mr_local = ibv_reg_mr(pd, arena, ARENA, IBV_ACCESS_LOCAL_WRITE);
	mr_read_only = ibv_reg_mr(pd, arena, ARENA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){ .attr = { .max_wr = 16, .max_sge = 1 } });
	CHECK(mr && mr_local && mr_read_only && cq && srq);
}

static bool has_srq(void)
{
	return !requests && row->flags & WITH_SRQ;
}

static void make_qp(struct address *mine)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = has_srq() ? srq : NULL,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = INLINE },
		.qp_type = row->type,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX;

	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
	attr.qp_access_flags = row->flags & NO_QP_ACCESS
				       ? 0
				       : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	if (row->type == IBV_QPT_UC)
		attr.qp_access_flags &= IBV_ACCESS_REMOTE_WRITE;
	mask |= row->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	CHECK(!ibv_modify_qp(qp, &attr, mask));
	*mine = (struct address){
		.qpn = qp->qp_num,
		.psn = 0xfffff0, /* and on over zero */
		.addr = (uintptr_t)arena,
		.rkey = { mr->rkey, mr->rkey ^ 0x70, mr_local->rkey, mr_read_only->rkey },
	};
	CHECK(!ibv_query_gid(context, 1, gid_index, &mine->gid));
}

static struct ibv_ah_attr ah_attr_of(const struct address *peer)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = gid_index, .hop_limit = 64 },
	};
}

static void connect_qp(const struct address *mine, const struct address *peer)
{
	const bool is_rc = row->type == IBV_QPT_RC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12, /* 0.64 ms */
		.ah_attr = ah_attr_of(peer),
	};
	const bool gets_no_answer = row->flags & (PEER_IS_GONE | PEER_IS_RESET);
	int mask = IBV_QP_STATE;

	if (row->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	CHECK(!ibv_modify_qp(qp, &attr, mask | (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = mine->psn,
		.timeout = gets_no_answer ? 12 : 18, /* 17 ms or 1 s */
		.retry_cnt = gets_no_answer ? 1 : 7, /* a busy machine answers late */
		.rnr_retry = 1,
		.max_rd_atomic = 4,
	};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (is_rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK(!ibv_modify_qp(qp, &attr, mask));
}

static enum ibv_qp_state state_of_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* wr_id: the number of the request; of a receive 100 and its number */
static struct ibv_wc next_wc(void)
{
	const double end = now() + STUCK;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		CHECK(now() < end);
	CHECK(n == 1);
	return wc;
}

static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = { "ok",	   "LOC_LEN", "LOC_QP_OP", "LOC_EEC_OP",   "LOC_PROT",
					     "WR_FLUSH",   "MW_BIND", "BAD_RESP",  "LOC_ACCESS",   "REM_INV_REQ",
					     "REM_ACCESS", "REM_OP",  "RETRY_EXC", "RNR_RETRY_EXC" };

	return status < sizeof(names) / sizeof(*names) ? names[status] : "?";
}

static void say_wc(const struct ibv_wc *wc)
{
	/* With other QPs than UD's the flag for a GRH means nothing, and rxe sets it. */
	const unsigned int flags =
		wc->wc_flags & ((row->type == IBV_QPT_UD ? IBV_WC_GRH : 0) | IBV_WC_WITH_IMM | IBV_WC_WITH_INV);

	say(" [%" PRIu64 " %s", wc->wr_id, status_name(wc->status));
	if (wc->status == IBV_WC_SUCCESS) {
		say(" opcode %d, %" PRIu32 " bytes", wc->opcode, wc->byte_len);
		if (wc->opcode & IBV_WC_RECV) {
			say(" flags %u", flags);
			if (flags & IBV_WC_WITH_IMM)
				say(" imm %#x", ntohl(wc->imm_data));
			if (flags & IBV_WC_WITH_INV)
				say(" invalidated %s",
				    window && wc->invalidated_rkey == window->rkey ? "the window" : "?");
		}
	}
	say("]");
}

/* With IPv4 the last 20 bytes are its header. */
static void say_grh(const struct ibv_wc *wc, const struct address *mine, const struct address *peer)
{
	const uint8_t *grh = arena + 2 * AREA + (wc->wr_id - 100) * SLOT;
	const bool is_ipv4 = !memcmp(mine->gid.raw, "\0\0\0\0\0\0\0\0\0\0\377\377", 12);
	bool is_right;

	if (is_ipv4)
		is_right = grh[20] == 0x45 && grh[29] == 17 && !memcmp(grh + 32, peer->gid.raw + 12, 4) &&
			   !memcmp(grh + 36, mine->gid.raw + 12, 4);
	else
		is_right = grh[0] >> 4 == 6 && grh[6] == 17 && !memcmp(grh + 8, peer->gid.raw, 16) &&
			   !memcmp(grh + 24, mine->gid.raw, 16);
	say(" from %s%s", wc->src_qp == peer->qpn ? "the peer's QP" : "?", is_right ? ", GRH" : ", GRH ?");
}

/* ---- the responder ----------------------------------------------------------------------------------------------- */

static void post_receives(void)
{
	for (unsigned int n = 0; n < row->receives; n++) {
		const uint32_t length = row->receive_length + (row->type == IBV_QPT_UD ? GRH : 0);
		struct ibv_sge sge = { (uintptr_t)arena + 2 * AREA + n * SLOT, length,
				       row->flags & BAD_RECV_LKEY ? mr->lkey ^ 0x70 : mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = 100 + n, .sg_list = &sge, .num_sge = !!length }, *bad;

		CHECK(!(has_srq() ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
	}
}

static void bind_window(struct address *mine)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;

	window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	CHECK(window);
	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)arena + AREA, AREA, IBV_ACCESS_REMOTE_WRITE };
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(next_wc().status == IBV_WC_SUCCESS);
	window->rkey = wr.bind_mw.rkey;
	mine->rkey[WINDOW_KEY] = window->rkey;
}

static void respond(const struct address *mine, const struct address *peer)
{
	unsigned int left = row->receives;
	struct ibv_wc wc;

	for (unsigned int n = 0; n < row->arrive; n++, left--) {
		wc = next_wc();
		say_wc(&wc);
		if (row->type == IBV_QPT_UD && wc.status == IBV_WC_SUCCESS)
			say_grh(&wc, mine, peer);
	}
	both_are_here();
	if (row->flags & (PEER_IS_GONE | PEER_IS_RESET))
		return;
	for (double end = now() + STUCK; row->flags & RESPONDER_FAILS && state_of_qp() == IBV_QPS_RTS;)
		CHECK(now() < end);
	say(" state %d", state_of_qp());
	CHECK(!ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE));
	for (; left && !has_srq(); left--) {
		wc = next_wc();
		say_wc(&wc);
	}
	CHECK(!has_srq() || !left);
}

/* ---- the requester ----------------------------------------------------------------------------------------------- */

static void post_request(unsigned int n, const struct address *peer, struct ibv_ah *ah)
{
	const struct wr *r = &row->wr[n];
	const uint32_t lkey = r->flags & BAD_LKEY ? mr->lkey ^ 0x70 : mr->lkey,
		       first = r->flags & TWO_SGES ? r->length / 3 : r->length;
	const uint64_t local = (uintptr_t)arena + n * SLOT;
	struct ibv_sge sge[2] = { { local, first, lkey }, { local + first, r->length - first, lkey } };
	struct ibv_send_wr wr = { .wr_id = n, .opcode = r->opcode, .sg_list = sge, .num_sge = !!r->length }, *bad;

	wr.num_sge += !!(r->flags & TWO_SGES);
	wr.send_flags = (r->flags & UNSIGNALED ? 0 : IBV_SEND_SIGNALED) |
			(r->flags & SENT_INLINE ? IBV_SEND_INLINE : 0) | (r->flags & FENCED ? IBV_SEND_FENCE : 0) |
			(r->flags & SOLICITED ? IBV_SEND_SOLICITED : 0);
	if (r->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = peer->rkey[r->key];
	else
		wr.imm_data = htonl(IMM + n);
	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer->qpn;
		wr.wr.ud.remote_qkey = r->flags & OTHER_QKEY ? QKEY + 1 : QKEY;
	} else if (is_atomic(r)) {
		wr.wr.atomic.remote_addr = peer->addr + remote_offset(r, n);
		wr.wr.atomic.rkey = peer->rkey[r->key];
		wr.wr.atomic.compare_add = 0x1234567890;
		wr.wr.atomic.swap = 0xabcdef;
		if (r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			memcpy(&wr.wr.atomic.compare_add, peers_model + AREA + n * SLOT, 8);
	} else {
		wr.wr.rdma.remote_addr = peer->addr + remote_offset(r, n);
		wr.wr.rdma.rkey = peer->rkey[r->key];
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void request(const struct address *peer)
{
	struct ibv_ah_attr attr = ah_attr_of(peer);
	struct ibv_ah *ah = row->type == IBV_QPT_UD ? ibv_create_ah(pd, &attr) : NULL;

	CHECK(ah || row->type != IBV_QPT_UD);
	for (unsigned int n = 0; n < row->num; n++)
		post_request(n, peer, ah);
	for (unsigned int n = 0; n < row->num; n++) {
		struct ibv_wc wc;

		if (row->wr[n].flags & UNSIGNALED)
			continue;
		wc = next_wc();
		say_wc(&wc);
	}
	both_are_here();
	for (double end = now() + STUCK; row->flags & REQUESTER_FAILS && state_of_qp() == IBV_QPS_RTS;)
		CHECK(now() < end);
	say(" state %d", state_of_qp());
	CHECK(!ah || !ibv_destroy_ah(ah));
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void run_row(void)
{
	struct address mine, peer;
	char theirs[sizeof(report)];

	memset(report, 0, sizeof(report));
	fill(arena, requests);
	fill(model, requests);
	fill(peers_model, !requests);
	make_qp(&mine);
	exchange(&mine, &peer, sizeof(mine));
	connect_qp(&mine, &peer);
	if (!requests) {
		post_receives();
		if (row->flags & WITH_WINDOW)
			bind_window(&mine);
		if (row->flags & PEER_IS_RESET)
			CHECK(!ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, IBV_QP_STATE));
		if (row->flags & PEER_IS_GONE)
			CHECK(!ibv_destroy_qp(qp));
	}
	exchange(&mine, &peer, sizeof(mine)); /* now with the window */
	if (requests)
		request(&peer);
	else
		respond(&mine, &peer);
	model_row();
	say_memory();
	/* A window that is bound keeps rxe from destroying its QP: DESTROY_QP waits for 50 s, and the kernel warns. */
	CHECK(!window || !ibv_dealloc_mw(window));
	window = NULL;
	CHECK((!requests && row->flags & PEER_IS_GONE) || !ibv_destroy_qp(qp));
	exchange(report, theirs, sizeof(report));
	if (requests)
		printf("%s: requester:%s\n%s: responder:%s\n", row->name, report, row->name, theirs);
}

/* times: 0: all rows once. */
static bool is_asked(bool misaligned, int times)
{
	const unsigned int errors = REQUESTER_FAILS | RESPONDER_FAILS | PEER_IS_GONE | PEER_IS_RESET;

	if (row->wr[0].flags & MISALIGNED)
		return misaligned;
	return !times || (row->type == IBV_QPT_RC && !(row->flags & errors));
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	bool misaligned = false;
	int option, times = 0;

	row = rows;
	while ((option = getopt(argc, argv, "d:g:mn:")) > 0) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = atoi(optarg);
		else if (option == 'n')
			times = atoi(optarg);
		else
			misaligned = true;
	}
	requests = optind < argc;
	open_device(device);
	meet(argv[optind]);
	for (int n = 0; n < times || !n; n++)
		for (row = rows; row < rows + sizeof(rows) / sizeof(*rows); row++)
			if (is_asked(misaligned, times))
				run_row();
	return 0;
}
