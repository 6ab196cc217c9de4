/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * killing ROUNDS [SEED]: in each round two connected clients send, write, read and do atomics in both directions, as
 * fast as they can. One or both are killed at a random moment, some during setup. A survivor must see its QP fail, and
 * must be able to exit.
 */
#include "side.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define ARENA (1024 * 1024)
#define DEPTH 8

struct hello {
	struct address address;
	uint64_t addr;
	uint32_t rkey;
};

static volatile sig_atomic_t late;

static void too_late(int sig)
{
	static const char text[] = "the peer is gone, and this QP has not failed\n";

	if (write(2, text, sizeof(text) - 1) < 0 || 1)
		_exit(3);
}

static void post_recv(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->arena, 4096, s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_recv(s->qp[0], &wr, &bad));
}

static void post_one(struct side *s, const struct hello *peer, unsigned int n)
{
	static const uint32_t sizes[] = { 8, 4096, 100, ARENA / 2, 20000 };
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = { (uintptr_t)s->arena + 4096, 8, s->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[n % 4] };

	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer->addr + 8192;
		wr.wr.atomic.rkey = peer->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		sge.length = wr.opcode == IBV_WR_SEND ? 4096 : sizes[n / 4 % 5];
		wr.wr.rdma.remote_addr = peer->addr + 8192;
		wr.wr.rdma.rkey = peer->rkey;
	}
	CHECK(!ibv_post_send(s->qp[0], &wr, &bad));
}

/* Runs until the QP fails, as it does after the peer has died. */
static void traffic(int fd)
{
	struct connection how = { .timeout = 8, .retry_cnt = 3, .rnr_retry = 3 };
	struct hello mine, peer;
	struct side s;
	struct ibv_wc wc;

	side_init(&s, mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ARENA, false);
	side_open(&s, NULL);
	s.qp[0] = side_qp(&s, IBV_QPT_RC, false);
	mine = (struct hello){ side_address(&s, s.qp[0]), (uintptr_t)s.arena, s.mr->rkey };
	if (write(fd, &mine, sizeof(mine)) != sizeof(mine) || read(fd, &peer, sizeof(peer)) != sizeof(peer))
		_exit(0); /* the peer was killed during setup */
	qp_connect(s.qp[0], peer.address, &how);
	for (int i = 0; i < DEPTH; i++)
		post_recv(&s);
	if (write(fd, "r", 1) != 1 || read(fd, &wc, 1) != 1)
		_exit(0);
	signal(SIGALRM, too_late);
	for (unsigned int n = 0; n < DEPTH / 2; n++)
		post_one(&s, &peer, n);
	for (unsigned int n = 0;; n++) {
		char c;

		/* After the peer's death the QP must fail within this time. */
		if (n % 256 == 0 && recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0 && !late) {
			late = 1;
			alarm(240);
		}
		if (!ibv_poll_cq(s.cq, 1, &wc))
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			break;
		if (wc.wr_id == 1)
			post_recv(&s);
		else
			post_one(&s, &peer, n);
	}
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_RNR_RETRY_EXC_ERR ||
	      wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_REM_OP_ERR || wc.status == IBV_WC_REM_ACCESS_ERR);
	/* One in three destroys its objects before it exits. */
	if (mine.address.qpn % 3 == 0) {
		CHECK(!ibv_destroy_qp(s.qp[0]) && !ibv_destroy_cq(s.cq) && !ibv_dereg_mr(s.mr) &&
		      !ibv_dealloc_pd(s.pd));
		CHECK(!ibv_close_device(s.context));
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[1]), left = 0;
	unsigned int seed = argc > 2 ? strtoul(argv[2], NULL, 0) : (unsigned int)time(NULL);

	fprintf(stderr, "seed %u\n", seed);
	for (int round = 0; round < rounds; round++) {
		int fds[2], status, which = rand_r(&seed) % 3; /* 2: both */
		unsigned int usec = rand_r(&seed) % (rand_r(&seed) % 2 ? 5000 : 40000);
		pid_t pid[2];

		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
		for (int i = 0; i < 2; i++) {
			pid[i] = fork();
			CHECK(pid[i] >= 0);
			if (pid[i])
				continue;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			signal(SIGPIPE, SIG_IGN);
			close(fds[!i]);
			traffic(fds[i]);
		}
		close(fds[0]);
		close(fds[1]);
		usleep(usec);
		for (int i = 0; i < 2; i++)
			if (which == i || which == 2)
				CHECK(!kill(pid[i], SIGKILL));
		for (int i = 0; i < 2; i++) {
			CHECK(waitpid(pid[i], &status, 0) == pid[i]);
			if (which == i || which == 2)
				continue;
			left++;
			if (!WIFEXITED(status) || WEXITSTATUS(status)) {
				fprintf(stderr, "round %d: the one that was left: status %#x\n", round, status);
				return 1;
			}
		}
	}
	printf("%d rounds, %d left alone\n", rounds, left);
	return 0;
}
