/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * doorbells CASE [ARGUMENT]: posts by the distribution's provider, whose doorbells may be write()s that the kernel carries out (src/doorbell).
 * way: prints `direct` or `calls`.
 * again: the same, and once more after a line of standard input.
 * alone: the same for a file that this program opens without libibverbs; asked: after a refused socket of NETLINK_RDMA; become: as a
 * program that another one has become, which had asked.
 * states ERRNO: posts in each state; ERRNO (a number) is that of a refused one.
 * dup, fork: posts by duplicates of the descriptor, and by a child.
 * drain: a call hands over all doorbells before it.
 * garbage: whatever a client can do to its log, and posts after each. flood: the same for a second.
 * limit, limits: sets RLIMIT_FSIZE, of its own and of other processes. unlimited: the same without an open device, and with one whose doorbells are calls.
 * wait: posts a few, prints `ready`, and posts again after each line of standard input; if that is `go on`, without completions.
 * leave: ends with doorbells in its log.
 * The rest is in doorbells_traps.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include "doorbells.h"

struct side s;
struct ibv_qp *qp, *peer;

static void begin(void)
{
	side_init(&s, arena_new(ARENA), ARENA, false);
	side_open(&s, NULL);
}

static struct ibv_qp *qp_new(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s.cq,
		.recv_cq = s.cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC
	};
	struct ibv_qp *new = ibv_create_qp(s.pd, &init);

	CHECK(new);
	return new;
}

void begin_pair(void)
{
	static const struct connection how;

	qp = qp_new();
	peer = qp_new();
	qp_connect(peer, side_address(&s, qp), &how);
	qp_connect(qp, side_address(&s, peer), &how);
}

int post(uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s.arena, 1, s.mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)s.arena + 4096;
	wr.wr.rdma.rkey = s.mr->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

void expect(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(next_wc(&s, &wc, SECONDS));
	CHECK(wc.wr_id == wr_id && wc.status == status);
}

void post_and_expect(uint64_t wr_id)
{
	CHECK(!post(wr_id));
	expect(wr_id, IBV_WC_SUCCESS);
}

static bool nothing_comes(void)
{
	struct ibv_wc wc;

	return !next_wc(&s, &wc, 0);
}

bool is_direct(void)
{
	off_t was = lseek(s.context->cmd_fd, 0, SEEK_CUR);

	post_and_expect(1);
	return lseek(s.context->cmd_fd, 0, SEEK_CUR) == was + DOORBELL;
}

static void case_way(void)
{
	begin_pair();
	printf("%s\n", is_direct() ? "direct" : "calls");
}

static void case_again(void)
{
	char line[16];

	begin_pair();
	do {
		printf("%s\n", is_direct() ? "direct" : "calls");
		fflush(stdout);
	} while (fgets(line, sizeof(line), stdin));
}

/* ---- without libibverbs ------------------------------------------------------------------------------------------ */

/* Writes a command that has the length of a doorbell: a call answers it. */
static void case_alone(void)
{
	const int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	struct ib_uverbs_ex_query_device_resp answer = { 0 };
	struct ib_uverbs_get_context_resp context;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} get = { { IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(get) / 4, sizeof(context) / 4 }, { (uintptr_t)&context } };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_query_device cmd;
	} query = { .hdr = { IB_USER_VERBS_EX_CMD_QUERY_DEVICE | IB_USER_VERBS_CMD_FLAG_EXTENDED, 1,
			     sizeof(answer) / 8 },
		    .ex.response = (uintptr_t)&answer };

	_Static_assert(sizeof(query) == DOORBELL, "it could be a doorbell");
	CHECK(fd >= 0 && write(fd, &get, sizeof(get)) == sizeof(get));
	CHECK(write(fd, &query, sizeof(query)) == sizeof(query));
	printf("%s\n", answer.response_length ? "calls" : "direct");
}

static void ask(void)
{
	CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA) == -1 && errno == EPROTONOSUPPORT);
}

static void case_asked(void)
{
	ask();
	case_alone();
}

static void case_become(void)
{
	ask();
	execl("/proc/self/exe", "doorbells", "alone", NULL);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void expect_refused(int err)
{
	for (uint64_t n = 1; n < 4; n++)
		CHECK(post(n) == err);
	CHECK(nothing_comes());
}

static void case_states(int err)
{
	static const struct connection how;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	qp = qp_new();
	peer = qp_new();
	qp_connect(peer, side_address(&s, qp), &how);
	for (int round = 0; round < 3; round++) {
		expect_refused(err);
		qp_to_init(qp, &how);
		expect_refused(err);
		qp_to_rtr(qp, side_address(&s, peer), &how);
		expect_refused(err);
		qp_to_rts(qp, &how);
		/* No refused post keeps a place of the queue, and all places can be used. */
		for (uint64_t n = 10; n < 10 + DEPTH; n++)
			CHECK(!post(n));
		for (uint64_t n = 10; n < 10 + DEPTH; n++)
			expect(n, IBV_WC_SUCCESS);
		CHECK(nothing_comes());
		if (round == 1) {
			qp_to_error(qp);
			for (uint64_t n = 50; n < 50 + 2 * DEPTH; n++) {
				CHECK(!post(n));
				expect(n, IBV_WC_WR_FLUSH_ERR);
			}
		}
		CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE) && !ibv_modify_qp(peer, &attr, IBV_QP_STATE));
		qp_connect(peer, side_address(&s, qp), &how);
	}
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static void case_dup(void)
{
	const int fd = s.context->cmd_fd;
	int copies[4];

	begin_pair();
	copies[0] = dup(fd);
	copies[1] = dup2(fd, 9);
	copies[2] = fcntl(fd, F_DUPFD_CLOEXEC, 40);
	copies[3] = fcntl(fd, F_DUPFD, 900);
	for (int i = 0; i < 4; i++) {
		CHECK(copies[i] >= 0);
		s.context->cmd_fd = copies[i];
		for (uint64_t n = 1; n < 10; n++)
			post_and_expect(n);
	}
	s.context->cmd_fd = fd;
	for (int i = 0; i < 4; i++)
		close(copies[i]);
	post_and_expect(1);
}

/* A copy of a descriptor is direct like it, and a call where that is one. */
static void case_copies(void)
{
	const int fd = s.context->cmd_fd;
	bool direct;

	begin_pair();
	direct = is_direct();
	printf("%s\n", direct ? "direct" : "calls");
	s.context->cmd_fd = dup(fd);
	CHECK(s.context->cmd_fd >= 0 && is_direct() == direct);
	close(s.context->cmd_fd);
	s.context->cmd_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	CHECK(s.context->cmd_fd >= 0 && is_direct() == direct);
	close(s.context->cmd_fd);
	s.context->cmd_fd = fd;
}

static void case_fork(void)
{
	int status;
	pid_t pid;

	begin_pair();
	post_and_expect(1);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(post(2));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	printf("%d\n", WEXITSTATUS(status));
	if (WEXITSTATUS(status))
		return;
	expect(2, IBV_WC_SUCCESS);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Writes `num` times these bytes, of the size of a doorbell. */
static void write_many(const void *bytes, int num)
{
	while (num--)
		CHECK(write(s.context->cmd_fd, bytes, DOORBELL) == DOORBELL);
}

/* The engine gives back what it has read of a log, but for its last pages. */
static void case_drain(void)
{
	enum { ROUNDS = 50, JUNK = 8192, KEPT = 160 << 10 };
	const int fd = s.context->cmd_fd;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send post;
	} bell = { .hdr = { IB_USER_VERBS_CMD_POST_SEND, DOORBELL / 4, 1 },
		   .post = { .response = 1, .wqe_size = 128 } };
	char junk[DOORBELL];
	off_t at, data;

	begin_pair();
	bell.post.qp_handle = qp->handle;
	memset(junk, 7, sizeof(junk));
	for (int n = 0; n < ROUNDS; n++) {
		/* The more of this it finds the longer the reader does not look, up to 16 ms. */
		write_many(junk, JUNK);
		write_many(&bell, 1);
		CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
		at = lseek(fd, 0, SEEK_CUR);
		data = lseek(fd, (off_t)1 << 61, SEEK_DATA);
		CHECK(data < 0 || at - data <= KEPT);
		CHECK(lseek(fd, at, SEEK_SET) == at);
	}
	CHECK(is_direct());
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static const struct rlimit a_megabyte = { MEGABYTE, RLIM_INFINITY };

static bool limit_is_refused(pid_t pid)
{
	struct rlimit before, now;
	int ret;

	CHECK(!prlimit(pid, RLIMIT_FSIZE, NULL, &before));
	ret = prlimit(pid, RLIMIT_FSIZE, &a_megabyte, NULL);
	if (!ret)
		return false;
	CHECK(errno == EPERM && !prlimit(pid, RLIMIT_FSIZE, NULL, &now) && now.rlim_cur == before.rlim_cur);
	return true;
}

static void case_limit(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	begin_pair();
	CHECK(setrlimit(RLIMIT_FSIZE, &a_megabyte) == -1 && errno == EPERM);
	CHECK(limit_is_refused(0) && limit_is_refused(getpid()));
	CHECK(!setrlimit(RLIMIT_FSIZE, &all));
	CHECK(is_direct());
}

static void wait_for_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* A process that asks for another one. */
static void case_limits(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	begin_pair();
	CHECK(!pipe(ready));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(limit_is_refused(getppid()));
		/* It may only want to limit what it is about to become. */
		CHECK(!limit_is_refused(0));
		CHECK(!fcntl(s.context->cmd_fd, F_SETFD, 0));
		CHECK(limit_is_refused(0) && limit_is_refused(getpid()));
		close(s.context->cmd_fd);
		CHECK(!limit_is_refused(0));
		_exit(0);
	}
	wait_for_child(pid);
	/* It has no device, whoever is asked for it. */
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(s.context->cmd_fd);
		CHECK(write(ready[1], "", 1) == 1);
		pause();
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(!limit_is_refused(pid));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(is_direct());
}

static void set_limit(rlim_t size)
{
	const struct rlimit limit = { size, RLIM_INFINITY };

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
}

static void case_unlimited(void)
{
	for (int n = 0; n < 20; n++) {
		set_limit(RLIM_INFINITY);
		begin();
		begin_pair();
		CHECK(is_direct());
		CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer));
		CHECK(!ibv_dereg_mr(s.mr) && !ibv_destroy_cq(s.cq) && !ibv_dealloc_pd(s.pd) &&
		      !ibv_close_device(s.context));
		/* The engine may not know yet that the file is closed. */
		set_limit(MEGABYTE);
		set_limit(2 * MEGABYTE);
	}
	begin();
	begin_pair();
	CHECK(!is_direct());
	set_limit(MEGABYTE);
	CHECK(!is_direct());
}

/* ---- garbage ----------------------------------------------------------------------------------------------------- */

static void case_garbage(void)
{
	char *pages = mmap(NULL, 2 * MEGABYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = s.context->cmd_fd;
	off_t at;

	begin_pair();
	CHECK(pages != MAP_FAILED && !munmap(pages + MEGABYTE, MEGABYTE));
	for (int n = 1; n < DOORBELL; n++) {
		/* A pointer to `n` bytes and then to nothing. */
		memset(pages + MEGABYTE - n, n, n);
		CHECK(write(fd, pages + MEGABYTE - n, DOORBELL) != DOORBELL);
		for (uint64_t wr_id = 1; wr_id < 4; wr_id++)
			post_and_expect(wr_id);
	}
	CHECK(write(fd, pages + MEGABYTE, DOORBELL) == -1 && errno == EFAULT);
	post_and_expect(1);
	for (int n = 0; n < 1000; n++) {
		memset(pages, n + 1, DOORBELL);
		CHECK(write(fd, pages, DOORBELL) == DOORBELL);
	}
	post_and_expect(2);
	/* Somewhere behind: a place that is due is not zero for long. */
	at = lseek(fd, 0, SEEK_CUR);
	CHECK(pwrite(fd, pages, DOORBELL, at + 12345) == DOORBELL);
	post_and_expect(3);
	CHECK(pwrite(fd, pages, 16, at + DOORBELL) == 16);
	CHECK(lseek(fd, at + DOORBELL + 16, SEEK_SET) > 0);
	post_and_expect(4);
	/* Now its log is lost: the descriptor stands elsewhere. Its calls still hand posts over, or it gets an error. */
	CHECK(lseek(fd, 1 << 30, SEEK_CUR) > 0);
	post(5);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer));
}

/* Prints its descriptor, and then how many MiB it has written. */
static void case_flood(void)
{
	static char junk[MEGABYTE];
	const int fd = s.context->cmd_fd;
	const time_t end = time(NULL) + 2;
	off_t n = 0;

	begin_pair();
	printf("%d\n", fd);
	fflush(stdout);
	memset(junk, 7, sizeof(junk));
	for (; time(NULL) < end; n++) {
		for (int i = 0; i < 100; i++)
			CHECK(write(fd, junk, DOORBELL) == DOORBELL);
		CHECK(pwrite(fd, junk, sizeof(junk), ((off_t)1 << 61) + ((n + 16) << 20)) == sizeof(junk));
	}
	printf("%lu\n", (unsigned long)n);
}

/* ---- the end of devices ------------------------------------------------------------------------------------------ */

static void case_wait(void)
{
	uint64_t wr_id = 0;
	char line[16];

	begin_pair();
	post_and_expect(wr_id++);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct ibv_wc wc;
		const bool waits = strcmp(line, "go on\n");
		int err = post(wr_id++), last = err;

		/* Each of them fails. */
		for (int n = 0; n < 100 && err; n++)
			last = post(wr_id++);
		printf("%s %s %d\n", strerrorname_np(err), strerrorname_np(last),
		       next_wc(&s, &wc, err || !waits ? 0 : SECONDS));
		fflush(stdout);
	}
}

static void case_leave(void)
{
	begin_pair();
	for (int n = 0; n < DEPTH; n++)
		CHECK(!post(n));
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool opens_itself;
} cases[] = {
	{ "way", case_way },
	{ "alone", case_alone, true },
	{ "asked", case_asked, true },
	{ "become", case_become, true },
	{ "dup", case_dup },
	{ "copies", case_copies },
	{ "unlimited", case_unlimited, true },
	{ "fork", case_fork },
	{ "limit", case_limit },
	{ "again", case_again },
	{ "drain", case_drain },
	{ "limits", case_limits },
	{ "garbage", case_garbage },
	{ "flood", case_flood },
	{ "wait", case_wait },
	{ "leave", case_leave },
	{ "pointers", case_pointers },
	{ "end_of_file", case_end_of_file },
	{ "seals", case_seals },
	{ "append", case_append },
	{ "passed", case_passed },
	{ "reopened", case_reopened },
	{ "mapped", case_mapped },
	{ "at_once", case_at_once },
	{ "short_command", case_short_command },
	{ "many", case_many },
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(name, cases[i].name))
			continue;
		if (!cases[i].opens_itself)
			begin();
		cases[i].run();
		return 0;
	}
	CHECK(!strcmp(name, "states") && argc > 2);
	begin();
	case_states(atoi(argv[2]));
	return 0;
}
