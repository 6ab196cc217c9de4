/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "side.h"
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QKEY 0x11111111

struct call {
	int (*fn)(struct side *s, void *arg);
	size_t size;
	int ret;
	_Alignas(max_align_t) char arg[4096];
};

unsigned char *arena_new(size_t size)
{
	void *arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(arena != MAP_FAILED);
	return arena;
}

unsigned char *arena_of_file(size_t size)
{
	int fd = memfd_create("arena", MFD_CLOEXEC);
	void *arena;

	CHECK(fd >= 0 && !ftruncate(fd, size));
	arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(arena != MAP_FAILED);
	return arena;
}

static void serve(struct side *s)
{
	static struct call c;
	struct side self = { .arena = s->arena, .size = s->size, .fd = s->fd };

	while (recv(self.fd, &c, sizeof(c), 0) > 0) {
		c.ret = c.fn(&self, c.arg);
		CHECK(send(self.fd, &c, sizeof(c), MSG_NOSIGNAL) == sizeof(c));
	}
	_exit(0);
}

void side_init(struct side *s, unsigned char *arena, size_t size, bool child)
{
	int fds[2];

	*s = (struct side){ .arena = arena, .size = size, .fd = -1 };
	if (!child)
		return;
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	s->pid = fork();
	CHECK(s->pid >= 0);
	s->fd = fds[!s->pid];
	close(fds[!!s->pid]);
	if (s->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	serve(s);
}

int side_call(struct side *s, int (*fn)(struct side *s, void *arg), void *arg, size_t size)
{
	static struct call c;

	if (!s->pid)
		return fn(s, arg);
	CHECK(size <= sizeof(c.arg));
	c.fn = fn;
	c.size = size;
	if (size)
		memcpy(c.arg, arg, size);
	CHECK(send(s->fd, &c, sizeof(c), MSG_NOSIGNAL) == sizeof(c));
	CHECK(recv(s->fd, &c, sizeof(c), 0) == sizeof(c));
	if (size)
		memcpy(arg, c.arg, size);
	return c.ret;
}

void side_end(struct side *s)
{
	int status;

	if (!s->pid)
		return;
	close(s->fd);
	CHECK(waitpid(s->pid, &status, 0) == s->pid && WIFEXITED(status) && !WEXITSTATUS(status));
	s->pid = 0;
}

void side_kill(struct side *s)
{
	kill(s->pid, SIGKILL);
	CHECK(waitpid(s->pid, NULL, 0) == s->pid);
	close(s->fd);
}

int side_open(struct side *s, void *unused)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	s->context = ibv_open_device(list[0]);
	CHECK(s->context);
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 256, NULL, NULL, 0);
	CHECK(s->pd && s->cq);
	s->mr = ibv_reg_mr(s->pd, s->arena, s->size, ALL_ACCESS);
	CHECK(s->mr);
	return 0;
}

struct ibv_qp *side_qp(struct side *s, enum ibv_qp_type type, bool with_srq)
{
	struct ibv_qp_init_attr attr = { .send_cq = s->cq, .recv_cq = s->cq, .qp_type = type, .sq_sig_all = 1 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 4 } };
	struct ibv_qp *qp;

	attr.cap = (struct ibv_qp_cap){ .max_send_wr = 64, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4 };
	if (with_srq) {
		s->srq = s->srq ?: ibv_create_srq(s->pd, &srq);
		CHECK(s->srq);
		attr.srq = s->srq;
	}
	qp = ibv_create_qp(s->pd, &attr);
	CHECK(qp);
	return qp;
}

struct address side_address(struct side *s, struct ibv_qp *qp)
{
	struct address address = { .qpn = qp->qp_num };
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(s->context, 1, &port) && !ibv_query_gid(s->context, 1, 0, &address.gid));
	address.lid = port.lid;
	return address;
}

static struct ibv_ah_attr way_to(const struct address *peer)
{
	struct ibv_ah_attr a = { .dlid = peer->lid, .port_num = 1 };

	if (peer->lid)
		return a;
	a.is_global = 1;
	a.grh.dgid = peer->gid;
	a.grh.hop_limit = 1;
	return a;
}

static const struct connection *or_default(const struct connection *how)
{
	static const struct connection usual;

	return how ?: &usual;
}

void qp_to_init(struct ibv_qp *qp, const struct connection *how)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	a.qp_access_flags = or_default(how)->access ?: ALL_ACCESS;
	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	CHECK(!ibv_modify_qp(qp, &a, mask));
}

void qp_to_rtr(struct ibv_qp *qp, struct address peer, const struct connection *how)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_4096,
				 .dest_qp_num = peer.qpn,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 1,
				 .ah_attr = way_to(&peer) };
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK(!ibv_modify_qp(qp, &a, mask));
}

void qp_to_rts(struct ibv_qp *qp, const struct connection *how)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .max_rd_atomic = 1 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	how = or_default(how);
	a.timeout = how->timeout ?: 14;
	a.retry_cnt = how->no_retries ? 0 : how->retry_cnt ?: 7;
	a.rnr_retry = how->no_retries ? 0 : how->rnr_retry ?: 7;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK(!ibv_modify_qp(qp, &a, mask));
}

void qp_connect(struct ibv_qp *qp, struct address peer, const struct connection *how)
{
	qp_to_init(qp, how);
	qp_to_rtr(qp, peer, how);
	qp_to_rts(qp, how);
}

void qp_to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}

struct ibv_ah *side_ah(struct side *s, struct address peer)
{
	struct ibv_ah_attr a = way_to(&peer);
	struct ibv_ah *ah = ibv_create_ah(s->pd, &a);

	CHECK(ah);
	return ah;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

bool next_wc(struct side *s, struct ibv_wc *wc, double seconds)
{
	double end = now() + seconds;
	int n;

	while (!(n = ibv_poll_cq(s->cq, 1, wc))) {
		if (now() > end)
			return false;
		sched_yield();
	}
	CHECK(n == 1);
	return true;
}
