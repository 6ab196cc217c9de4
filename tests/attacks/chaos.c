/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * chaos SECONDS SEED [mapped]: processes of one user attack the device at random: random verbs by several threads on
 * shared files, descriptors passed between processes, signals, execs, kills, memory that is mapped and unmapped
 * meanwhile, and memory that does not answer.
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
	HANDLES = 40,
	PROCESSES = 6
};
enum role { KILLED, EXECS, CLOSES, STOPS, SLOW_MEMORY, GRANTS };

static int pot[2]; /* descriptors of device files; every process puts in and takes out */
static bool mapped;

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

	switch (rnd(&w->seed) % 20) {
	case 0:
		uv_alloc_pd(w->fd, front, &h);
		break;
	case 1:
		cq.cqe = 1 + rnd(&w->seed) % 100;
		uv_create_cq(w->fd, front, &cq, &h, &cqe);
		break;
	case 2:
		qp_attr.type = 2 + rnd(&w->seed) % 3;
		uv_create_qp(w->fd, front, &qp_attr, &qp);
		break;
	case 3:
	case 4:
		uv_reg_mr(w->fd, front, any, w->mem + rnd(&w->seed) % MEMORY, rnd(&w->seed) % MEMORY,
			  rnd(&w->seed) & 0xf, mr);
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
		uv_resize_cq(w->fd, front, any, 1 + rnd(&w->seed) % 200, &cqe);
		break;
	case 16:
		uv_create_srq(w->fd, front, &srq_attr, &srq);
		break;
	case 17:
		if (!uv_create_channel(w->fd, front, &channel))
			close(channel);
		break;
	case 18:
		uv_query_device(w->fd, front, &device);
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

static void start_workers(struct worker *workers, int fd, enum role role, unsigned int seed)
{
	int file = memfd_create("chaos", MFD_CLOEXEC);
	char *mem = uv_pages(MEMORY, PROT_READ | PROT_WRITE);

	(void)!ftruncate(file, MEMORY);
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
	if (role == SLOW_MEMORY)
		slow_start(&slow);
	fd = uv_open();
	if (fd < 0)
		_exit(0);
	uv_get_context(fd, UV_INVOKE, &async, &vectors);
	pot_put(fd);
	taken = rnd(&seed) % 2 ? pot_take() : -1;
	if (role == GRANTS) {
		sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm, .sa_flags = SA_RESTART }, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
	}
	start_workers(workers, taken >= 0 ? taken : fd, role, seed);
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

static int rounds(double seconds, unsigned int seed)
{
	double end = now_s() + seconds;
	int n = 0;

	MUST(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pot));
	for (; now_s() < end; n++)
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
