/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * chaos SECONDS SEED [mapped]: processes of one user attack the device at random: random verbs by several threads on
 * shared files, descriptors passed between processes, signals, execs, kills, memory that is mapped and unmapped
 * meanwhile, and memory that does not answer. SIGTERM ends it after the round.
 *
 * mapped (start as root): the user is 1000, in a user namespace with 999 more ids, and each process takes one of these.
 * Otherwise the processes keep the ids of this one.
 *
 * Prints the number of rounds. Exit status 0 once all its processes have ended.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

enum {
	USER = 1000,
	MAPPED = 1000,
	FIRST_MAPPED = 200000,
	THREADS = 4,
	MEMORY = 16 * 4096,
	HANDLES = 16,
	FIRST_OBJECTS = 2,
	ALL_ACCESS = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_READ,
	DRIVER_DATA = 256,
	PROCESSES = 7
};
enum role { KILLED, EXECS, CLOSES, STOPS, SLOW_MEMORY, GRANTS, SLOW_FILE };

static int pot[2]; /* descriptors of device files; every process puts in and takes out */
static bool mapped;
static volatile sig_atomic_t ended;

struct worker {
	pthread_t thread;
	int fd, file;
	unsigned int seed;
	char *mem;
};

static unsigned int rnd(unsigned int *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8 & 0xffffff;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- descriptors that processes exchange ------------------------------------------------------------------------- */

union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr h;
};

static void pot_put(int fd)
{
	union control u = {
		.h = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
	};
	struct iovec v = { "f", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };

	memcpy(CMSG_DATA(&u.h), &fd, sizeof(fd));
	sendmsg(pot[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Returns -1 if there is none. */
static int pot_take(void)
{
	union control u;
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };
	int fd;

	if (recvmsg(pot[1], &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* ---- a worker thread --------------------------------------------------------------------------------------------- */

static void spoil_memory(struct worker *w)
{
	char *at = w->mem + rnd(&w->seed) % 16 * 4096;

	switch (rnd(&w->seed) % 5) {
	case 0:
		munmap(at, 4096);
		break;
	case 1:
		mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 2:
		mprotect(at, 4096, rnd(&w->seed) % 2 ? PROT_READ : PROT_READ | PROT_WRITE);
		break;
	case 3:
		mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, w->file, at - w->mem);
		break;
	default:
		(void)!ftruncate(w->file, rnd(&w->seed) % 2 ? 0 : MEMORY);
	}
}

/* Mostly small; at times as large as a count can be. */
static uint32_t count(struct worker *w, uint32_t small)
{
	switch (rnd(&w->seed) % 16) {
	case 0:
		return rnd(&w->seed) << 8 | 0xff;
	case 1:
		return 1u << rnd(&w->seed) % 32;
	default:
		return 1 + rnd(&w->seed) % small;
	}
}

static void create_with_driver_data(struct worker *w, enum uv_front front)
{
	struct ib_uverbs_create_cq cq = { .cqe = count(w, 64), .comp_channel = -1 };
	struct ib_uverbs_create_qp qp = { .pd_handle = rnd(&w->seed) % HANDLES,
					  .send_cq_handle = rnd(&w->seed) % HANDLES,
					  .recv_cq_handle = rnd(&w->seed) % HANDLES,
					  .max_send_wr = count(w, 16),
					  .max_recv_wr = count(w, 16),
					  .max_send_sge = count(w, 4),
					  .max_recv_sge = count(w, 4),
					  .max_inline_data = count(w, 64),
					  .qp_type = 2 + rnd(&w->seed) % 3 };
	struct ib_uverbs_create_qp_resp resp;
	uint8_t in[DRIVER_DATA], out[DRIVER_DATA];
	struct uv_cmd cmd = { IB_USER_VERBS_CMD_CREATE_CQ,
			      &cq,
			      sizeof(cq),
			      &resp,
			      sizeof(struct ib_uverbs_create_cq_resp),
			      in,
			      rnd(&w->seed) % DRIVER_DATA & ~7,
			      out,
			      rnd(&w->seed) % DRIVER_DATA & ~7 };

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = rnd(&w->seed);
	if (rnd(&w->seed) % 2) {
		cmd.command = IB_USER_VERBS_CMD_CREATE_QP;
		cmd.in = &qp;
		cmd.in_len = sizeof(qp);
		cmd.out_len = sizeof(resp);
	}
	uv_cmd(w->fd, front, &cmd);
}

/* Half of the regions are small: the pages of large ones are rarely all there. */
static void register_memory(struct worker *w, enum uv_front front, uint32_t pd, struct uv_mr *mr)
{
	const uint32_t len = 1 + rnd(&w->seed) % (rnd(&w->seed) % 2 ? MEMORY : MEMORY / 16);

	uv_reg_mr(w->fd, front, pd, w->mem + rnd(&w->seed) % MEMORY, len,
		  rnd(&w->seed) % 2 ? ALL_ACCESS : rnd(&w->seed) & 0xf, mr);
}

static void rereg_mr(struct worker *w, enum uv_front front, struct uv_mr *mr)
{
	const struct ib_uverbs_rereg_mr attr = { .mr_handle = rnd(&w->seed) % HANDLES,
						 .flags = rnd(&w->seed) % 9,
						 .start = (uintptr_t)w->mem + rnd(&w->seed) % MEMORY,
						 .length = rnd(&w->seed) % MEMORY,
						 .hca_va = (uintptr_t)w->mem,
						 .pd_handle = rnd(&w->seed) % HANDLES,
						 .access_flags = rnd(&w->seed) & 0xf };
	struct ib_uverbs_rereg_mr_resp resp;
	const struct uv_cmd cmd = { .command = IB_USER_VERBS_CMD_REREG_MR,
				    .in = &attr,
				    .in_len = sizeof(attr),
				    .out = &resp,
				    .out_len = sizeof(resp) };

	if (!uv_cmd(w->fd, front, &cmd))
		*mr = (struct uv_mr){ attr.mr_handle, resp.lkey, resp.rkey };
}

static void create_ah(struct worker *w, enum uv_front front, uint32_t pd)
{
	struct ib_uverbs_ah_attr attr = { .dlid = 1, .port_num = 1, .is_global = rnd(&w->seed) % 4 != 0 };
	uint32_t handle;

	attr.grh.sgid_index = rnd(&w->seed) % 4;
	/* The adapter's own address, ::ffff:10.99.0.1, or one that nobody has. */
	memcpy(attr.grh.dgid + 10, (uint8_t[]){ 0xff, 0xff, 10, 99, 0, 1 + rnd(&w->seed) % 2 }, 6);
	uv_create_ah(w->fd, front, pd, &attr, &handle);
}

static void modify_qp(struct worker *w, enum uv_front front)
{
	struct ib_uverbs_modify_qp attr = {
		.qp_handle = rnd(&w->seed) % HANDLES,
		.attr_mask = rnd(&w->seed) & 0x1fffff,
		.qp_state = rnd(&w->seed) % 7,
		.path_mtu = 1 + rnd(&w->seed) % 5,
		.dest_qp_num = rnd(&w->seed) % 256,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.dest = { .dlid = 1, .port_num = 1 },
	};

	if (rnd(&w->seed) % 2)
		attr.attr_mask = 0x39 | 0x40; /* INIT of UD: state, P_Key, port, Q_Key */
	uv_modify_qp(w->fd, front, &attr);
}

static void post(struct worker *w, enum uv_front front, uint32_t any, const struct uv_mr *mr)
{
	struct ib_uverbs_sge sge = { (uintptr_t)w->mem + rnd(&w->seed) % MEMORY, rnd(&w->seed) % MEMORY, mr->lkey };
	struct ib_uverbs_send_wr send = { .num_sge = 1, .opcode = rnd(&w->seed) % 9, .send_flags = 2 };
	struct ib_uverbs_recv_wr recv = { .num_sge = 1 };
	uint32_t bad;

	send.wr.rdma.remote_addr = (uintptr_t)w->mem;
	send.wr.rdma.rkey = mr->rkey;
	if (rnd(&w->seed) % 2)
		uv_post_send(w->fd, front, any, &send, 1, &sge, 1, &bad);
	else
		uv_post_recv(w->fd, front, any, &recv, 1, &sge, 1, &bad);
}

static void random_call(struct worker *w, struct uv_mr *mr)
{
	enum uv_front front = rnd(&w->seed) % UV_PLAIN_FRONTS;
	uint32_t any = rnd(&w->seed) % HANDLES, h, cqe;
	struct uv_cq_attr cq = uv_cq_default;
	struct uv_qp_attr qp_attr = uv_qp_attr(any, rnd(&w->seed) % HANDLES);
	struct uv_srq_attr srq_attr = uv_srq_attr(any);
	struct ib_uverbs_query_device_resp device;
	struct ib_uverbs_destroy_cq_resp destroyed;
	struct ib_uverbs_wc wc[4];
	struct uv_srq srq;
	struct uv_qp qp;
	int channel;

	switch (rnd(&w->seed) % 26) {
	case 0:
		uv_alloc_pd(w->fd, front, &h);
		break;
	case 1:
		cq.cqe = count(w, 100);
		uv_create_cq(w->fd, front, &cq, &h, &cqe);
		break;
	case 2:
		qp_attr.type = 2 + rnd(&w->seed) % 3;
		qp_attr.cap.max_send_wr = count(w, 16);
		qp_attr.cap.max_recv_sge = count(w, 4);
		uv_create_qp(w->fd, front, &qp_attr, &qp);
		break;
	case 3:
	case 4:
		register_memory(w, front, any, mr);
		break;
	case 5:
		uv_dereg_mr(w->fd, front, any);
		break;
	case 6:
		uv_dealloc_pd(w->fd, front, any);
		break;
	case 7:
		uv_destroy_qp(w->fd, front, any, &h);
		break;
	case 8:
		uv_destroy_cq(w->fd, front, any, &destroyed);
		break;
	case 9:
	case 10:
		modify_qp(w, front);
		break;
	case 11:
	case 12:
	case 13:
		post(w, front, any, mr);
		break;
	case 14:
		uv_poll_cq(w->fd, front, any, 4, wc);
		break;
	case 15:
		uv_resize_cq(w->fd, front, any, count(w, 200), &cqe);
		break;
	case 16:
		srq_attr.max_wr = count(w, 16);
		uv_create_srq(w->fd, front, &srq_attr, &srq);
		break;
	case 17:
		if (!uv_create_channel(w->fd, front, &channel))
			close(channel);
		break;
	case 18:
		uv_query_device(w->fd, front, &device);
		break;
	case 19:
		create_with_driver_data(w, front);
		break;
	case 20:
		rereg_mr(w, front, mr);
		break;
	case 21:
		create_ah(w, front, any);
		break;
	case 22:
		uv_destroy_ah(w->fd, front, any);
		break;
	case 23:
		uv_destroy_srq(w->fd, front, any, &h);
		break;
	case 24:
		uv_req_notify_cq(w->fd, front, any, false);
		break;
	default:
		spoil_memory(w);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct uv_mr mr = {};

	for (;;)
		random_call(w, &mr);
	return NULL;
}

/* Gets contexts and event files forever, while SIGALRM interrupts the process. */
static void *grants(void *arg)
{
	int fd, async, channel;
	uint32_t vectors;

	for (;;) {
		fd = uv_open();
		if (fd < 0)
			continue;
		if (!uv_get_context(fd, UV_INVOKE, &async, &vectors) && async >= 0)
			close(async);
		if (!uv_create_channel(fd, UV_WRITE, &channel))
			close(channel);
		close(fd);
	}
	return NULL;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void on_alarm(int sig)
{
}

static void become_mapped(unsigned int *seed)
{
	uid_t id = 1 + rnd(seed) % (MAPPED - 1);

	MUST(!setresgid(id, id, id) && !setresuid(id, id, id));
	/*
	 * setresuid() has cleared the dumpable flag. Without it root owns our files in /proc, and slow_start() cannot
	 * write the id maps of its user namespace.
	 */
	MUST(!prctl(PR_SET_DUMPABLE, 1));
}

/* Objects of each kind, so that a random handle is often that of one. */
static void create_first_objects(int fd)
{
	static char page[4096];
	struct uv_srq_attr srq_attr;
	struct uv_qp_attr qp_attr;
	uint32_t pd, cq, cqe;
	struct uv_srq srq;
	struct uv_qp qp;
	struct uv_mr mr;

	for (int i = 0; i < FIRST_OBJECTS; i++) {
		if (uv_alloc_pd(fd, UV_WRITE, &pd) || uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, &cqe))
			return;
		qp_attr = uv_qp_attr(pd, cq);
		qp_attr.type = i ? IB_UVERBS_QPT_UD : IB_UVERBS_QPT_RC;
		srq_attr = uv_srq_attr(pd);
		uv_create_qp(fd, UV_WRITE, &qp_attr, &qp);
		uv_create_srq(fd, UV_WRITE, &srq_attr, &srq);
		uv_reg_mr(fd, UV_WRITE, pd, page, sizeof(page), ALL_ACCESS, &mr);
	}
}

/* slow_file: -1, or a file that does not answer: half of the memory. */
static void start_workers(struct worker *workers, int fd, enum role role, int slow_file, unsigned int seed)
{
	int file = memfd_create("chaos", MFD_CLOEXEC);
	char *mem = uv_pages(MEMORY, PROT_READ | PROT_WRITE);

	(void)!ftruncate(file, MEMORY);
	if (slow_file >= 0)
		mmap(mem, MEMORY / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, slow_file, 0);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .fd = fd, .file = file, .seed = seed + i, .mem = mem };
		MUST(!pthread_create(&workers[i].thread, NULL, role == GRANTS ? grants : work, &workers[i]));
	}
}

static __attribute__((noreturn)) void process(enum role role, unsigned int seed)
{
	char *args[] = { "/bin/true", NULL }, *env[] = { NULL };
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } };
	struct worker workers[THREADS];
	struct slow slow;
	int fd, async, taken;
	uint32_t vectors;

	alarm(0);
	signal(SIGBUS, SIG_IGN);
	if (mapped)
		become_mapped(&seed);
	if (role == SLOW_MEMORY || role == SLOW_FILE)
		slow_start(&slow);
	fd = uv_open();
	if (fd < 0)
		_exit(0);
	uv_get_context(fd, UV_INVOKE, &async, &vectors);
	create_first_objects(fd);
	pot_put(fd);
	taken = rnd(&seed) % 2 ? pot_take() : -1;
	if (role == GRANTS) {
		sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm, .sa_flags = SA_RESTART }, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
	}
	start_workers(workers, taken >= 0 ? taken : fd, role, role == SLOW_FILE ? slow.file : -1, seed);
	nap(50 + rnd(&seed) % 400);
	switch (role) {
	case EXECS:
		execve(args[0], args, env);
		break;
	case CLOSES:
		close(fd);
		nap(100);
		break;
	case STOPS:
		raise(SIGSTOP);
		break;
	case SLOW_MEMORY:
		slow_hold_mmap_lock(&slow);
		nap(rnd(&seed) % 2500);
		slow_open_gate(&slow);
		break;
	case SLOW_FILE:
		nap(rnd(&seed) % 1000);
		slow_answer(&slow);
		nap(rnd(&seed) % 1000);
		break;
	default:
		nap(300);
	}
	_exit(0);
}

static void one_round(unsigned int seed)
{
	pid_t pids[PROCESSES];

	for (int k = 0; k < PROCESSES; k++) {
		pids[k] = fork();
		MUST(pids[k] >= 0);
		if (!pids[k])
			process(k, seed * 31 + k * 7);
	}
	nap(100 + rnd(&seed) % 400);
	kill(pids[KILLED], SIGKILL);
	nap(rnd(&seed) % 800);
	for (int k = 0; k < PROCESSES; k++) {
		if (k == STOPS)
			kill(pids[k], SIGKILL);
		waitpid(pids[k], NULL, 0);
	}
	for (int fd = pot_take(); fd >= 0; fd = pot_take())
		close(fd);
}

static void on_term(int sig)
{
	ended = 1;
}

static int rounds(double seconds, unsigned int seed)
{
	double end = now_s() + seconds;
	int n = 0;

	MUST(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pot));
	uv_driver_id(); /* so that no process has to find it */
	MUST(!sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_term, .sa_flags = SA_RESTART }, NULL));
	for (; now_s() < end && !ended; n++)
		one_round(seed + n * 1000);
	printf("%d rounds\n", n);
	fflush(stdout);
	return 0;
}

static void write_map(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY);
	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/*
 * Runs the rounds as USER, in a user namespace with MAPPED ids. This process, as root, writes the maps like
 * newuidmap.
 */
static int mapped_rounds(double seconds, unsigned int seed)
{
	int ready[2], go[2], status;
	char map[96], c;
	pid_t pid;

	MUST(!pipe2(ready, O_CLOEXEC) && !pipe2(go, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		MUST(!setresgid(USER, USER, USER) && !setresuid(USER, USER, USER) && !unshare(CLONE_NEWUSER));
		MUST(write(ready[1], "r", 1) == 1 && read(go[0], &c, 1) == 1);
		MUST(!setresgid(0, 0, 0) && !setresuid(0, 0, 0));
		exit(rounds(seconds, seed));
	}
	MUST(read(ready[0], &c, 1) == 1);
	snprintf(map, sizeof(map), "0 %d 1\n1 %d %d\n", USER, FIRST_MAPPED, MAPPED - 1);
	write_map(pid, "uid_map", map);
	write_map(pid, "gid_map", map);
	MUST(write(go[1], "g", 1) == 1);
	MUST(waitpid(pid, &status, 0) == pid);
	return status != 0;
}

int main(int argc, char **argv)
{
	MUST(argc > 2);
	mapped = argc > 3;
	return mapped ? mapped_rounds(atof(argv[1]), atoi(argv[2])) : rounds(atof(argv[1]), atoi(argv[2]));
}
