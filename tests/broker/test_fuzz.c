/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random and mutated messages for each receiver: the broker's loop, a child for questions, a child for a loan, and the
 * engine process. Seeds are fixed. UVERBSD_LONG runs twice, UVERBSD_FUZZ=N 2N times as many rounds, with further seeds.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <uverbsd/log.h>
#include "broker/broker.h"
#include "broker/child.h"
#include "broker/waiting.h"
#include "messages.h"
#include "../suite.h"

/* ---- the broker's loop ---------------------------------------------------------------------------------------------- */

static struct shared {
	unsigned int seed, failed, survived;
} * shared;

static int op_node(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	*fd = dup(2);
	*rdev = index;
	return index & 1 ? -EINVAL : 0;
}

static int op_index(void *arg, unsigned int index)
{
	return index & 1 ? -EINVAL : 0;
}

static int op_tables(void *arg, unsigned int index, unsigned int port, const struct uvd_device_config *device)
{
	if (index >= UVD_MAX_DEVICES || port > UVD_MAX_PORTS || !device)
		shared->failed = __LINE__;
	return 0;
}

static int op_adapter(void *arg, pid_t engine, unsigned int index, dev_t *rdev)
{
	if (engine <= 0 || index >= UVD_MAX_DEVICES)
		shared->failed = __LINE__;
	return index & 1 ? -ENODEV : 0;
}

static int op_port(void *arg, unsigned int index, unsigned int port, bool up)
{
	if (!port || port > 255)
		shared->failed = __LINE__;
	return 0;
}

static int op_counters(void *arg, unsigned int index, unsigned int port, const uint64_t *values)
{
	if (!port || port > 255)
		shared->failed = __LINE__;
	return 0;
}

static int op_ucap(void *arg, const char *name, dev_t *rdev, int *fd)
{
	*fd = dup(2);
	if (!*name || strlen(name) >= UVD_WIRE_NAME)
		shared->failed = __LINE__;
	return *name & 1 ? -EINVAL : 0;
}

static int op_name(void *arg, const char *name)
{
	if (!*name || strlen(name) >= UVD_WIRE_NAME)
		shared->failed = __LINE__;
	return -EINVAL;
}

static int op_cm(void *arg, dev_t *rdev, bool *aside, int *fd)
{
	*fd = dup(2);
	return any(2) ? -EEXIST : 0;
}

static int op_cm_gone(void *arg)
{
	return -EINVAL;
}

static int op_ready(void *arg)
{
	return 0;
}

static void op_leave(void *arg)
{
}

static int op_add(void *arg, const struct uvd_device_config *device)
{
	return any(2) ? -EINVAL : 1;
}

static int op_plugin(void *arg, unsigned int slot, int64_t nth, const char *name, int *why)
{
	*why = any(2) ? dup(1) : -1;
	return *why >= 0 ? -ENOENT : 0;
}

/* Refuses another engine process, so that each round has one. */
static int op_renew(void *arg, bool asked)
{
	return -ECANCELED;
}

static const struct uvd_broker_ops broker_ops = {
	.node = op_node,
	.add = op_add,
	.plugin = op_plugin,
	.adapter = op_adapter,
	.tables = op_tables,
	.publish = op_index,
	.withdraw = op_index,
	.port = op_port,
	.counters = op_counters,
	.ucap = op_ucap,
	.ucap_gone = op_name,
	.cm = op_cm,
	.cm_gone = op_cm_gone,
	.ready = op_ready,
	.leave = op_leave,
	.renew = op_renew,
};

/* The broker keeps the memory of a file until it is told that the file is closed. */
static bool file_is_dropped(int sock, int64_t number)
{
	struct message m = request_of(UVD_WIRE_BACKING_GONE, 0);
	struct uvd_wire_answer a;
	struct uvd_wire_fds fds;

	m.r.value = number;
	return send_message(sock, &m, 2) && receive_answer(sock, &m, &a, &fds) && !a.result;
}

/* Sends valid messages, then an invalid one. The broker must kill this process without an answer to that. */
static int engine_fuzzes(void *arg, int sock)
{
	struct uvd_wire_answer a;
	struct uvd_wire_fds fds;
	struct message m = request_of(UVD_WIRE_QUEUES, 0);
	unsigned int before;
	char c;

	if (!send_message(sock, &m, 2) || !receive_answer(sock, &m, &a, &fds))
		shared->failed = __LINE__;
	uvd_wire_close(&fds);
	m = request_of(UVD_WIRE_EARS, 0);
	if (!send_message(sock, &m, 2) || !receive_answer(sock, &m, &a, &fds))
		shared->failed = __LINE__;
	uvd_wire_close(&fds);
	/* The broker's answer shows that its loop runs, so its descriptors can be counted, with those of its file system. */
	m = request_of(UVD_WIRE_READY, 0);
	if (!send_message(sock, &m, 2) || !receive_answer(sock, &m, &a, &fds))
		shared->failed = __LINE__;
	before = fds_of(getppid());
	srandom(shared->seed);
	for (unsigned int i = any(12); i > 0; i--) {
		m = request_of(op_of(UVD_WIRE_CONTROL), 0);
		if (!send_message(sock, &m, 2) || !receive_answer(sock, &m, &a, &fds))
			shared->failed = 1000 + m.r.op;
		if (m.r.op == UVD_WIRE_BACKING && !a.result && !file_is_dropped(sock, a.values[0]))
			shared->failed = __LINE__;
		uvd_wire_close(&fds);
	}
	if (!has_fds(getppid(), before))
		shared->failed = __LINE__;
	m = request_of(op_of(UVD_WIRE_CONTROL), 0);
	spoil(&m, UVD_WIRE_CONTROL);
	send_message(sock, &m, 2);
	while (recv(sock, &c, 1, 0) > 0)
		shared->survived = m.r.op + 1000;
	pause();
	return 0;
}

START_TEST(test_broker_kills_an_engine_that_says_what_none_would_say)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct uvd_log *log = uvd_log_new(null, "test", UVD_ERR);
	const struct uvd_broker_config config = { .ops = &broker_ops, .log = log };
	unsigned int before = fds_of(getpid());
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned int i = 0; i < rounds(200); i++) {
		shared->seed = i;
		if (uvd_broker_run(&config, engine_fuzzes, &status) < 0)
			_exit(status);
		ck_assert_msg(status == 1 && !shared->failed && !shared->survived,
			      "seed %u: status %d, failed %u, survived %u", i, status, shared->failed,
			      shared->survived);
		while (waitpid(-1, &status, 0) > 0)
			ck_assert_msg(WIFEXITED(status), "seed %u: a child's status is %x", i, status);
		ck_assert_uint_eq(fds_of(getpid()), before);
	}
	uvd_log_free(log);
	close(null);
}
END_TEST

/* ---- children -------------------------------------------------------------------------------------------------------- */

static int node, other;
static struct uvd_nodes nodes;
static _Atomic uint32_t registers;
static pid_t client, sleeper, writer;

static int stopped_terminal(dev_t *rdev)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct stat st;

	ck_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert(slave >= 0 && !fstat(slave, &st) && !tcflow(slave, TCOOFF));
	*rdev = st.st_rdev;
	return slave;
}

/* Starts an ordinary user's process that blocks in a write to fd; fd < 0: in pause(). */
static pid_t start_user(int fd)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (setgroups(0, NULL) || setresgid(GROUP, GROUP, GROUP) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(fd < 0 ? pause() : (int)write(fd, "x", 1));
}

static void start_users(void)
{
	dev_t rdev;

	other = stopped_terminal(&rdev);
	node = stopped_terminal(&rdev);
	nodes.rdev[0] = rdev;
	nodes.root_clients = UVD_ROOT_ALLOW;
	client = start_user(node);
	sleeper = start_user(-1);
	writer = start_user(other);
	usleep(100000);
}

static pid_t any_tid(void)
{
	const pid_t tids[] = { client, sleeper, writer, 1, getpid(), INT32_MAX, 4194303, 2 };

	return tids[any(sizeof(tids) / sizeof(tids[0]))];
}

/* tid: the thread of a loan. */
static pid_t start_child(enum uvd_wire_kind kind, pid_t tid, int *sock)
{
	struct uvd_borrower borrower = { .tid = tid };
	struct uvd_ways ways;
	int pair[2];
	pid_t pid;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	(void)uvd_owners_of(tid, &borrower.owners);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		if (kind == UVD_WIRE_LOAN) {
			uvd_ways_init(&ways);
			uvd_loan_serve(pair[1], &borrower,
				       &(struct uvd_child_files){ .nodes = &nodes, .ways = &ways, .queues = -1 },
				       &registers);
		} else if (uvd_process_role_take(UVD_PROCESS_QUESTIONS)) {
			uvd_questions_serve(pair[1], &nodes);
		}
		_exit(0);
	}
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

/* After any messages, a child must exit with status 0 when its socket closes. */
static void end_child(pid_t pid, int sock, unsigned int seed)
{
	int status;

	close(sock);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "seed %u: the child's status is %x", seed, status);
}

/* Of a thread that does not wait on a node, the child may open only the files that every user may read. */
static void check_files(const struct message *m, const struct uvd_wire_fds *fds, unsigned int seed)
{
	char path[32], link[128], folder[32], *name;
	const bool everybody = m->r.op == UVD_WIRE_OPEN && m->r.index >= UVD_WIRE_STATUS;

	for (int i = 0; i < UVD_WIRE_FDS && fds->fd[i] >= 0; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds->fd[i]);
		ssize_t n = readlink(path, link, sizeof(link) - 1);

		ck_assert(n > 0);
		link[n] = 0;
		ck_assert_msg(everybody || m->r.tid == client, "seed %u: %s for op %u of %d", seed, link, m->r.op,
			      m->r.tid);
		snprintf(folder, sizeof(folder), "/proc/%d/", m->r.tid);
		name = link + strlen(folder);
		if (everybody && !memcmp(link, folder, strlen(folder)))
			ck_assert_msg(!strcmp(name, "status") || !strcmp(name, "stat") || !strcmp(name, "comm") ||
					      !strcmp(name, "statm"),
				      "%s", link);
		else if (everybody)
			ck_assert_msg(!memcmp(link, "/memfd:uverbsd-owners", 21), "%s", link);
	}
}

static void ask_questions(unsigned int seed)
{
	struct uvd_wire_answer a;
	struct uvd_wire_fds fds;
	struct message m;
	int sock;
	pid_t pid = start_child(UVD_WIRE_QUESTIONS, 0, &sock);
	unsigned int before;

	/* The answer to SAME_MEMORY has no descriptors, so the child has none left to close when it arrives. */
	m = request_of(UVD_WIRE_SAME_MEMORY, INT32_MAX);
	ck_assert(send_message(sock, &m, 2) && receive_answer(sock, &m, &a, &fds));
	before = fds_of(pid);
	srandom(seed);
	for (unsigned int i = 2 + any(60); i > 0; i--) {
		m = request_of(op_of(UVD_WIRE_QUESTIONS), any_tid());
		ck_assert(send_message(sock, &m, 2));
		ck_assert_msg(receive_answer(sock, &m, &a, &fds), "seed %u: op %u", seed, m.r.op);
		if (a.result >= 0)
			check_files(&m, &fds, seed);
		if (m.r.tid != client && m.r.op != UVD_WIRE_OPEN)
			ck_assert_msg(a.result < 0 && !a.values[0] && !a.values[1], "seed %u: op %u of %d", seed,
				      m.r.op, m.r.tid);
		uvd_wire_close(&fds);
		ck_assert_msg(has_fds(pid, before), "seed %u: op %u left descriptors", seed, m.r.op);
	}
	m = request_of(op_of(UVD_WIRE_QUESTIONS), client);
	spoil(&m, UVD_WIRE_QUESTIONS);
	ck_assert(send_message(sock, &m, 2));
	ck_assert_msg(!receive_answer(sock, &m, &a, &fds), "seed %u: an answer to op %u", seed, m.r.op);
	end_child(pid, sock, seed);
}

START_TEST(test_child_for_questions_opens_nothing_of_bystanders)
{
	unsigned int before;

	start_users();
	before = fds_of(getpid());
	for (unsigned int i = 0; i < rounds(60); i++)
		ask_questions(i);
	ck_assert_uint_eq(fds_of(getpid()), before);
}
END_TEST

static bool sleeps_untraced(pid_t pid)
{
	char path[40], text[4096] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY);
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	return strstr(text, "\nState:\tS") && strstr(text, "\nTracerPid:\t0\n");
}

/* Waits because a process runs for a moment when its tracer detaches. */
static bool is_untouched(pid_t pid)
{
	for (int ms = 0; ms < STUCK_MS && !sleeps_untraced(pid); ms++)
		usleep(1000);
	return sleeps_untraced(pid);
}

/*
 * Sends up to three messages for a loan, in random order. Half of the rounds begin with SEIZE, as is right. RELEASE
 * replaces a later TAKE, which would wait until the client's write() returns.
 */
static void ask_for_loan(unsigned int seed)
{
	struct uvd_wire_answer a;
	struct uvd_wire_fds fds;
	struct message m;
	bool alive = true;
	pid_t pid, lent;
	int sock;

	srandom(seed);
	lent = any_tid();
	pid = start_child(UVD_WIRE_LOAN, lent, &sock);
	for (unsigned int i = 0; alive && i < 3; i++) {
		enum uvd_wire_op op = i || any(2) ? op_of(UVD_WIRE_LOAN) : UVD_WIRE_SEIZE;
		bool good = any(4), first = !i && op == UVD_WIRE_SEIZE;

		if ((op == UVD_WIRE_TAKE || op == UVD_WIRE_REGISTER) && i)
			op = UVD_WIRE_RELEASE;
		m = request_of(op, any(4) ? lent : any_tid());
		if (!good)
			spoil(&m, UVD_WIRE_LOAN);
		ck_assert(send_message(sock, &m, 2));
		alive = receive_answer(sock, &m, &a, &fds);
		ck_assert_msg(alive == (good && first), "seed %u: op %u, the message number %u", seed, m.r.op, i);
		if (alive)
			ck_assert_msg(m.r.tid == client && lent == client ? !a.result : a.result == -ESRCH,
				      "seed %u: a loan of %d: %d", seed, m.r.tid, a.result);
		uvd_wire_close(&fds);
	}
	end_child(pid, sock, seed);
	ck_assert(is_untouched(client) && is_untouched(sleeper) && is_untouched(writer));
}

START_TEST(test_child_for_a_loan_keeps_its_order_and_touches_nobody_else)
{
	unsigned int before;

	start_users();
	before = fds_of(getpid());
	for (unsigned int i = 0; i < rounds(150); i++)
		ask_for_loan(i);
	ck_assert_uint_eq(fds_of(getpid()), before);
}
END_TEST

/* ---- the engine process's side --------------------------------------------------------------------------------------- */

static struct message answer_to(const struct uvd_wire_request *r)
{
	static const unsigned int fds_out[UVD_WIRE_OPS] = {
		[UVD_WIRE_NODE] = 1, [UVD_WIRE_UCAP] = 1,     [UVD_WIRE_PEER_OWNERS] = 1,
		[UVD_WIRE_PEER] = 4, [UVD_WIRE_OPENER] = 1,   [UVD_WIRE_OPEN] = 1,
		[UVD_WIRE_TAKE] = 2, [UVD_WIRE_REGISTER] = 2, [UVD_WIRE_CM] = 1
	};
	struct message m = { .size = sizeof(m.a), .num_fds = r->op < UVD_WIRE_OPS ? fds_out[r->op] : 0 };

	m.a = (struct uvd_wire_answer){
		.version = UVD_WIRE_VERSION, .op = r->op, .num_fds = m.num_fds, .values = { any_value(), any_value() }
	};
	switch (any(8)) {
	case 0:
		m.a.result = -1 - (int)any(200);
		m.num_fds = m.a.num_fds = 0;
		break;
	case 1:
		m.num_fds = any(MOST_FDS);
		m.a.num_fds = any(2) ? m.num_fds : any(MOST_FDS);
		break;
	case 2:
		m.size = 1 + any(sizeof(m.bytes) - 1);
		break;
	case 3:
		m.bytes[any(sizeof(m.a))] ^= 1 << any(8);
		break;
	case 4:
		for (size_t i = 0; i < sizeof(m.a); i++)
			m.bytes[i] = random();
		break;
	}
	return m;
}

/* Answers every request on this socket, and on the sockets that CONNECT passes, with a random message. */
static void *answer_anything(void *arg)
{
	int sock = (int)(intptr_t)arg;
	struct uvd_wire_request r;
	struct uvd_wire_fds in;
	struct message m;
	pthread_t thread;

	for (;;) {
		union {
			char room[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		} control = { 0 };
		struct iovec iov = { &r, sizeof(r) };
		struct msghdr h = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = CMSG_LEN(sizeof(int)) };

		if (recvmsg(sock, &h, MSG_CMSG_CLOEXEC) <= 0)
			break;
		in = uvd_wire_no_fds;
		if (h.msg_controllen)
			memcpy(in.fd, CMSG_DATA(&control.align), sizeof(int));
		m = answer_to(&r);
		if (r.op == UVD_WIRE_CONNECT) {
			/* The answer to CONNECT is valid: otherwise there would be no socket for further requests. */
			m = (struct message){ .size = sizeof(m.a) };
			m.a = (struct uvd_wire_answer){ .version = UVD_WIRE_VERSION, .op = r.op };
			ck_assert(!pthread_create(&thread, NULL, answer_anything, (void *)(intptr_t)in.fd[0]));
			pthread_detach(thread);
		} else {
			uvd_wire_close(&in);
		}
		if (!any(50) && r.op != UVD_WIRE_CONNECT)
			break;
		send_message(sock, &m, 2);
	}
	close(sock);
	return NULL;
}

static pid_t start_liar(int *sock, unsigned int seed)
{
	int pair[2];
	pid_t pid;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	pid = fork();
	if (!pid) {
		close(pair[0]);
		srandom(seed);
		answer_anything((void *)(intptr_t)pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

static unsigned int count_fds(const struct uvd_wire_fds *fds)
{
	unsigned int n = 0;

	for (int i = 0; i < UVD_WIRE_FDS; i++)
		n += fds->fd[i] >= 0;
	return n;
}

START_TEST(test_engine_takes_no_answer_that_the_table_does_not_allow)
{
	const unsigned int most[UVD_WIRE_OPS] = {
		[UVD_WIRE_PEER] = 4, [UVD_WIRE_OPENER] = 1,   [UVD_WIRE_OPEN] = 1,
		[UVD_WIRE_TAKE] = 2, [UVD_WIRE_REGISTER] = 2,
	};
	unsigned int before = fds_of(getpid());
	struct uvd_wire_fds out;
	struct uvd_link *link;
	int sock, loan, ret;
	pid_t pid = start_liar(&sock, 1);

	srandom(1);
	link = uvd_link_new(sock);
	for (unsigned int i = 0; i < rounds(2000); i++) {
		struct message m = request_of(op_of(any(2) ? UVD_WIRE_QUESTIONS : UVD_WIRE_LOAN), 1 + any(1000));

		loan = -1;
		if (ops[m.r.op].kind == UVD_WIRE_LOAN) {
			loan = uvd_link_loan(link, getpid(), NULL);
			ck_assert_int_ge(loan, 0);
			ret = uvd_link_loan_step(loan, &m.r, m.num_fds ? 2 : -1, NULL, &out);
		} else {
			ret = uvd_link_ask(link, &m.r, NULL, &out);
		}
		ck_assert_uint_le(count_fds(&out), ret < 0 ? 0 : most[m.r.op]);
		uvd_wire_close(&out);
		if (loan >= 0)
			close(loan);
		/* The link keeps up to 16 sockets for later questions. */
		ck_assert_uint_le(fds_of(getpid()), before + 1 + 16);
	}
	uvd_link_free(link);
	ck_assert_uint_eq(fds_of(getpid()), before);
	waitpid(pid, &ret, 0);
	ck_assert(WIFEXITED(ret));
}
END_TEST

/* An engine process has only one socket to the broker's loop, so it exits after an invalid answer there. */
static void ask_lying_broker(int sock)
{
	struct uvd_link *link = uvd_link_new(sock);
	unsigned int before = fds_of(getpid());
	int number = -1, fd;
	bool aside;
	dev_t rdev;

	for (int i = 0; i < 50; i++) {
		int ret = i % 4 == 0   ? uvd_link_node(link, i, &number, &rdev, &fd)
			  : i % 4 == 1 ? uvd_link_ucap(link, "x", &rdev, &fd)
			  : i % 4 == 2 ? uvd_link_cm(link, &rdev, &aside, &fd)
				       : uvd_link_tell(link, UVD_WIRE_READY, 0);

		if (i % 4 == 3)
			fd = -1;
		if (ret < 0 && fd >= 0)
			_exit(3);
		if (fd >= 0)
			close(fd);
		if (fds_of(getpid()) != before)
			_exit(4);
	}
	_exit(0);
}

START_TEST(test_engine_ends_with_a_broker_that_lies)
{
	int ended = 0;

	for (unsigned int i = 0; i < rounds(60); i++) {
		int sock, status;
		pid_t liar = start_liar(&sock, i), pid = fork();

		if (!pid)
			ask_lying_broker(sock);
		close(sock);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "seed %u: status %x", i, status);
		ended += WEXITSTATUS(status) == 1;
		waitpid(liar, NULL, 0);
	}
	ck_assert_int_gt(ended, 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("fuzz");

	if (geteuid()) {
		puts("skipped: needs root");
		return 77;
	}
	tcase_set_timeout(t, rounds(60));
	tcase_add_test(t, test_broker_kills_an_engine_that_says_what_none_would_say);
	tcase_add_test(t, test_child_for_questions_opens_nothing_of_bystanders);
	tcase_add_test(t, test_child_for_a_loan_keeps_its_order_and_touches_nobody_else);
	tcase_add_test(t, test_engine_takes_no_answer_that_the_table_does_not_allow);
	tcase_add_test(t, test_engine_ends_with_a_broker_that_lies);
	return run_suite("fuzz", t);
}
