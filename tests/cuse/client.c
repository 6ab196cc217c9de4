/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client MODE [N]: a program for the tests to inspect, stop and kill. The modes that loop print "ready" first, and in
 * the end the errno of the first call that fails ("error 5"). Exit status 0 if every check has passed.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile sig_atomic_t alarms;
static int count;

#define CHECK(ok) \
	do { \
		if (!(ok)) { \
			printf("FAIL %s:%d: %s (errno %d)\n", __func__, __LINE__, #ok, errno); \
			exit(1); \
		} \
	} while (0)

/* Opens the device $IBDEV, or the first one. */
static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *name = getenv("IBDEV");
	struct ibv_context *context;
	int i = 0;

	CHECK(list);
	while (list[i] && name && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	CHECK(list[i]);
	context = ibv_open_device(list[i]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

/* ---- through libibverbs ------------------------------------------------------------------------------------------ */

/* Checks that a granted fd is open, close-on-exec, empty, and above `above`. */
static void check_channel(const struct ibv_comp_channel *channel, int above)
{
	struct pollfd p = { channel->fd, POLLIN, 0 };

	CHECK(channel->fd > above);
	CHECK(fcntl(channel->fd, F_GETFD) == FD_CLOEXEC);
	CHECK(TEMP_FAILURE_RETRY(poll(&p, 1, 0)) == 0);
}

/* Checks that no signal is blocked. None was at the start, and a grant blocks all signals for a moment. */
static void check_mask(void)
{
	sigset_t mask;

	CHECK(!sigprocmask(SIG_SETMASK, NULL, &mask));
	for (int sig = 1; sig < SIGRTMAX; sig++)
		CHECK(sigismember(&mask, sig) != 1);
}

static void make_channels(struct ibv_context *context, int n)
{
	struct ibv_comp_channel *channel;

	while (n--) {
		channel = ibv_create_comp_channel(context);
		CHECK(channel);
		check_channel(channel, context->cmd_fd);
		CHECK(!ibv_destroy_comp_channel(channel));
	}
}

static void mode_channels(void)
{
	make_channels(open_first(), count);
}

static void on_alarm(int sig)
{
	alarms++;
}

static void mode_alarms(void)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct ibv_context *context = open_first();

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	make_channels(context, count);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(alarms > 10);
	check_mask();
}

static void *channels_thread(void *context)
{
	make_channels(context, count);
	return NULL;
}

static void mode_threads(void)
{
	struct ibv_context *context = open_first();
	pthread_t t[6];

	for (int i = 0; i < 6; i++)
		CHECK(!pthread_create(&t[i], NULL, channels_thread, context));
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

static void *loop_channels(void *context)
{
	struct ibv_comp_channel *channel;

	while ((channel = ibv_create_comp_channel(context)) || errno == EINTR)
		if (channel)
			ibv_destroy_comp_channel(channel);
	return NULL;
}

/* An exec kills the other threads, whatever call they are in. */
static void mode_exec(void)
{
	struct ibv_context *context = open_first();
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, loop_channels, context));
	usleep(getpid() % 16 * 2000);
	execl("/bin/true", "true", NULL);
	CHECK(!"exec");
}

/* Sets a filter that kills the process for the system call that a grant makes it execute. */
static void mode_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { 4, code };
	struct ibv_context *context = open_first();

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	make_channels(context, count);
}

static void mode_full_table(void)
{
	struct ibv_context *context = open_first();
	int lowest = open("/dev/null", O_RDONLY);
	struct rlimit none = { lowest, lowest };

	close(lowest);
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	CHECK(!ibv_create_comp_channel(context) && errno == EMFILE);
}

/* However the daemon ended: no effect of a grant may remain in this process. */
static void end_loop(struct ibv_context *context)
{
	int error = errno;

	check_mask();
	printf("error %d\n", error);
	fflush(stdout);
	_exit(0);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void mode_loop_channel(void)
{
	struct ibv_context *context = open_first();
	struct ibv_comp_channel *channel;

	ready();
	while ((channel = ibv_create_comp_channel(context)))
		if (ibv_destroy_comp_channel(channel))
			break;
	end_loop(context);
}

static void mode_loop_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	CHECK(list && list[0]);
	ready();
	while ((context = ibv_open_device(list[0])))
		if (ibv_close_device(context))
			break;
	end_loop(NULL);
}

static void mode_loop_pd(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd;

	ready();
	while ((pd = ibv_alloc_pd(context)))
		if ((errno = ibv_dealloc_pd(pd)))
			break;
	end_loop(context);
}

/* Makes calls at a low rate. */
static void mode_loop_rarely(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd;

	ready();
	while ((pd = ibv_alloc_pd(context)) && !(errno = ibv_dealloc_pd(pd)))
		usleep(2000);
	end_loop(context);
}

static unsigned char answer[sizeof(struct ib_uverbs_query_device_resp)];

static bool query_device(int fd)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_query_device cmd;
	} query = { { IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof(query) / 4, sizeof(answer) / 4 }, { (uintptr_t)answer } };

	return write(fd, &query, sizeof(query)) == sizeof(query);
}

static void fill_answer(void)
{
	memset(answer, 0x5a, sizeof(answer));
}

static void check_answer_is_as_it_was(void)
{
	for (size_t i = 0; i < sizeof(answer); i++)
		CHECK(answer[i] == 0x5a);
}

/*
 * One call, which must fail. The daemon must not write its response later: the memory may be in other use by then. Waits
 * for a line before the call, and for another one before the check.
 */
static void mode_late(void)
{
	struct ibv_context *context = open_first();

	fill_answer();
	ready();
	CHECK(getchar() == '\n');
	CHECK(!query_device(context->cmd_fd));
	ready();
	CHECK(getchar() == '\n');
	check_answer_is_as_it_was();
}

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct end make_end(struct ibv_pd *pd)
{
	struct end e = { .cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0) };
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq, .recv_cq = e.cq, .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 0 }
	};
	CHECK(e.cq);
	e.qp = ibv_create_qp(pd, &init);
	CHECK(e.qp);
	return e;
}

/* Connects by LID, or to the GID 0 where there are none. */
static void connect_end(struct ibv_qp *qp, uint32_t peer, uint16_t lid)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 12,
				  .ah_attr = { .dlid = lid, .port_num = 1, .is_global = !lid } };
	CHECK(!ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid));
	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};
	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

/* As ibv_poll_cq(), which waits. A mapped queue does not tell that its server is gone, but the asynchronous events' file does. */
static int poll_waiting(struct ibv_context *context, struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct pollfd p = { context->async_fd, POLLIN, 0 };
	unsigned int spins = 0;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)))
		if (!(++spins % 1024) && poll(&p, 1, 0) > 0) {
			errno = EIO;
			return -1;
		}
	return n;
}

/* Makes RDMA writes of 1 MiB between two QPs of this process, until a call fails. */
static void mode_loop_transfer(void)
{
	enum { SIZE = 1 << 20 };
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char *buf = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_port_attr port;
	struct end a, b;
	struct ibv_wc wc;
	int n;

	CHECK(mr && !ibv_query_port(context, 1, &port));
	a = make_end(pd);
	b = make_end(pd);
	connect_end(a.qp, b.qp->qp_num, port.lid);
	connect_end(b.qp, a.qp->qp_num, port.lid);
	ready();
	for (;;) {
		struct ibv_sge sge = { (uintptr_t)buf, SIZE, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED,
					  .wr.rdma = { (uintptr_t)buf + SIZE, mr->rkey } },
				   *bad;

		errno = ibv_post_send(a.qp, &wr, &bad);
		if (errno)
			break;
		n = poll_waiting(context, a.cq, &wc);
		if (n < 0)
			break;
		CHECK(wc.status == IBV_WC_SUCCESS);
	}
	end_loop(context);
}

/* ---- by raw system calls ----------------------------------------------------------------------------------------- */

struct get_context {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_get_context cmd;
};

static void fill_get_context(struct get_context *c, struct ib_uverbs_get_context_resp *resp)
{
	c->hdr = (struct ib_uverbs_cmd_hdr){ IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(*c) / 4, sizeof(*resp) / 4 };
	c->cmd.response = (uintptr_t)resp;
	resp->async_fd = 0xbad;
}

static int open_node(void)
{
	const char *node = getenv("NODE");
	int fd = open(node ? node : "/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* write() works for the opener only: not for a child, and not after a change of ids. */
static void mode_opener(void)
{
	struct ib_uverbs_get_context_resp resp;
	struct get_context c;
	int fd = open_node(), status;
	pid_t child;

	fill_get_context(&c, &resp);
	child = fork();
	if (!child)
		_exit(write(fd, &c, sizeof(c)) < 0 && errno == EACCES ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	if (!geteuid()) {
		setfsuid(65534);
		CHECK(write(fd, &c, sizeof(c)) < 0 && errno == EACCES);
		setfsuid(0);
	}
	CHECK(write(fd, &c, sizeof(c)) == sizeof(c));
	CHECK((int)resp.async_fd > fd && fcntl(resp.async_fd, F_GETFD) == FD_CLOEXEC);
}

/* A write() that CUSE passes in pieces must have the same result as one that comes whole. */
static void mode_torn(void)
{
	size_t len = 300 << 10;
	struct ib_uverbs_get_context_resp resp;
	struct get_context c;
	int fd = open_node();
	uint8_t *buf = calloc(1, len);

	/* The write() is longer than its header says; the first piece is about as long as the header says. */
	fill_get_context(&c, &resp);
	for (size_t n = 30 << 12; n <= 35 << 12; n += 1 << 12) {
		for (int shift = 0; shift < 4096; shift += 1000) {
			c.hdr.in_words = n / 4;
			memcpy(buf + shift, &c, sizeof(c));
			CHECK(write(fd, buf + shift, len - shift) < 0 && errno == EINVAL);
			CHECK(resp.async_fd == 0xbad);
		}
	}
	/*
	 * A long write() of the right length, from an address that is not page-aligned. Plain commands may be longer
	 * than their struct: the rest is driver data.
	 */
	for (int shift = 0; shift <= 64; shift += 8) {
		uint8_t *at = buf + 100 + shift;
		size_t n = 40 << 12;

		close(fd);
		fd = open_node();
		fill_get_context(&c, &resp);
		c.hdr.in_words = n / 4;
		memmove(at, &c, sizeof(c));
		CHECK(write(fd, at, n) == (ssize_t)n);
		CHECK(resp.async_fd != 0xbad && !close(resp.async_fd));
		/* The daemon sees only the first piece of a writev(), and cannot find the others. */
		resp.async_fd = 0xbad;
		CHECK(writev(fd, (struct iovec[]){ { at, n / 2 }, { at + n / 2, n / 2 } }, 2) < 0 && errno == EINVAL);
		CHECK(resp.async_fd == 0xbad);
	}
}

/* The response goes to a page that is never filled (userfaultfd). */
static void mode_hold_up(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { { (uintptr_t)page, 4096 }, UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC), fd = open_node();
	struct ib_uverbs_get_context_resp resp;
	struct get_context c;

	CHECK(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api) && !ioctl(uffd, UFFDIO_REGISTER, &range));
	fill_get_context(&c, &resp);
	c.cmd.response = (uintptr_t)page;
	ready();
	CHECK(write(fd, &c, sizeof(c)) < 0);
	end_loop(NULL);
}

/* A traced process gets no grant, because the daemon cannot trace it too. Everything else works. */
static void mode_traced(void)
{
	struct ibv_context *context;
	int status;
	pid_t child = fork();

	if (child) {
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
		return;
	}
	CHECK(!ptrace(PTRACE_TRACEME, 0, 0, 0));
	context = open_first();
	CHECK(context->async_fd == -2);
	CHECK(!ibv_create_comp_channel(context) && errno == EOPNOTSUPP);
	CHECK(ibv_alloc_pd(context) && ibv_create_cq(context, 4, NULL, NULL, 0));
	fflush(stdout);
	_exit(0);
}

/* N programs start at once. Each gets its asynchronous event file. */
static void mode_at_once(void)
{
	struct ib_uverbs_get_context_resp resp;
	struct get_context command;
	int go[2], status;
	char c;

	CHECK(!pipe(go));
	for (int i = 0; i < count; i++) {
		if (fork())
			continue;
		close(go[1]);
		CHECK(!read(go[0], &c, 1));
		fill_get_context(&command, &resp);
		CHECK(write(open_node(), &command, sizeof(command)) == sizeof(command));
		CHECK((int)resp.async_fd >= 0 && fcntl(resp.async_fd, F_GETFD) == FD_CLOEXEC);
		_exit(0);
	}
	close(go[1]);
	for (int i = 0; i < count; i++)
		CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* For `--grant-fds=off`. */
static void mode_no_grants(void)
{
	struct ibv_context *context = open_first();

	CHECK(context->async_fd == -2);
	CHECK(!ibv_create_comp_channel(context) && errno == EOPNOTSUPP);
	CHECK(ibv_alloc_pd(context) && ibv_create_cq(context, 4, NULL, NULL, 0));
}

/*
 * Changes the ids of this thread alone. A change of ids clears the dumpable flag: set it again, so that the daemon
 * can inspect this process like any other of that user.
 */
static void become(uid_t user)
{
	CHECK(!syscall(SYS_setresuid, user, user, user) && !prctl(PR_SET_DUMPABLE, 1));
}

static void *open_as_another(void *arg)
{
	become(1000);
	return open_first();
}

/* Start as root. One user opens the device and passes it on; another user allocates N protection domains. */
static void mode_passed_on(void)
{
	struct ibv_context *context;
	int made = 0;
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, open_as_another, NULL) && !pthread_join(t, (void **)&context));
	become(1001);
	while (made < count && ibv_alloc_pd(context))
		made++;
	printf("made %d, errno %d\n", made, made < count ? errno : 0);
	fflush(stdout);
	(void)getchar();
}

/* Start as root, which has no limit. Another user gets the open device from root, and may have no loan. */
static void mode_loan_of_another(void)
{
	struct ibv_context *context = open_first();

	CHECK(context->async_fd >= 0 && ibv_create_comp_channel(context));
	become(1000);
	CHECK(!ibv_create_comp_channel(context) && errno == EOPNOTSUPP);
}

static pthread_barrier_t apart;

static void *thread_with_own_files(void *arg)
{
	CHECK(!unshare(CLONE_FILES));
	pthread_barrier_wait(&apart);
	pthread_barrier_wait(&apart);
	CHECK(!ibv_create_comp_channel(arg) && errno == EOPNOTSUPP);
	return NULL;
}

/*
 * A thread with its own descriptor table asks for an event file. At the numbers that are free in that table the first
 * thread of the process has sockets. The daemon can read only the first thread's table, and must not touch these
 * sockets.
 */
static void mode_unshared(void)
{
	struct ibv_context *context = open_first();
	struct sockaddr_un name;
	int sockets[8];
	pthread_t t;
	char c;

	CHECK(!pthread_barrier_init(&apart, NULL, 2) && !pthread_create(&t, NULL, thread_with_own_files, context));
	pthread_barrier_wait(&apart);
	for (int i = 0; i < 8; i++)
		CHECK((sockets[i] = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0);
	pthread_barrier_wait(&apart);
	CHECK(!pthread_join(t, NULL));
	for (int i = 0; i < 8; i++) {
		socklen_t len = sizeof(name);

		CHECK(!getsockname(sockets[i], (struct sockaddr *)&name, &len) && len == sizeof(name.sun_family));
		CHECK(recv(sockets[i], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	}
}

/*
 * The test fills the daemon's descriptor table before it sends the first line, and makes room before the second. count:
 * how many processes uverbsd is.
 */
static void mode_full_daemon(void)
{
	struct ibv_context *context = open_first();
	struct ib_uverbs_get_context_resp resp;
	struct get_context c;
	int fd = open_node();

	fill_get_context(&c, &resp);
	ready();
	CHECK(getchar() == '\n');
	CHECK(!ibv_create_comp_channel(context) && errno == EOPNOTSUPP);
	/* An engine process needs descriptors for a process's first call on a file. */
	if (count == 2)
		CHECK(write(fd, &c, sizeof(c)) < 0 && errno == EMFILE);
	else
		CHECK(write(fd, &c, sizeof(c)) == sizeof(c) && (int)resp.async_fd == -2);
	ready();
	CHECK(getchar() == '\n');
	CHECK(ibv_create_comp_channel(context));
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "channels", mode_channels },
	{ "alarms", mode_alarms },
	{ "threads", mode_threads },
	{ "exec", mode_exec },
	{ "seccomp", mode_seccomp },
	{ "full-table", mode_full_table },
	{ "opener", mode_opener },
	{ "torn", mode_torn },
	{ "traced", mode_traced },
	{ "no-grants", mode_no_grants },
	{ "at-once", mode_at_once },
	{ "passed-on", mode_passed_on },
	{ "loan-of-another", mode_loan_of_another },
	{ "hold-up", mode_hold_up },
	{ "loop-channel", mode_loop_channel },
	{ "late", mode_late },
	{ "loop-open", mode_loop_open },
	{ "full-daemon", mode_full_daemon },
	{ "unshared", mode_unshared },
	{ "loop-pd", mode_loop_pd },
	{ "loop-rarely", mode_loop_rarely },
	{ "loop-transfer", mode_loop_transfer },
};

int main(int argc, char **argv)
{
	count = argc > 2 ? atoi(argv[2]) : 20;
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]))
			continue;
		modes[i].run();
		/* Not exit(): a sanitizer would report leaks, and this program closes nothing on purpose. */
		fflush(stdout);
		_exit(0);
	}
	return 2;
}
