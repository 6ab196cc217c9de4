/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * objects DEVICE GID [mrs N|qps N|hold|hold N COMMAND...]: the cost of objects on a device that carries verbs out, with the
 * distribution's libibverbs. GID is the index of the GID for a QP that is connected to itself.
 *
 *   mrs N, qps N   creates N more regions or QPs beside those that are timed
 *   hold           opens the device, and waits until its parent exits
 *   hold N COMMAND opens the device N times, and exits as the command does, which runs meanwhile
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clock.h"

enum { SMALL = 64 << 10, LARGE = 1 << 30 };

struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *other; /* qp is connected to itself; other is in RESET */
	struct ibv_mr *mr;
	char *small, *large;
	union ibv_gid gid;
	uint8_t gid_index;
};

static unsigned int alloc_pd(void *arg, unsigned long count)
{
	struct objects *o = arg;

	while (count--) {
		struct ibv_pd *pd = ibv_alloc_pd(o->context);

		if (!pd || ibv_dealloc_pd(pd))
			return 0;
	}
	return 1;
}

static unsigned int reg_mr(struct objects *o, void *addr, size_t length, unsigned long count)
{
	while (count--) {
		struct ibv_mr *mr = ibv_reg_mr(o->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		if (!mr || ibv_dereg_mr(mr))
			return 0;
	}
	return 1;
}

static unsigned int reg_small(void *arg, unsigned long count)
{
	struct objects *o = arg;

	return reg_mr(o, o->small, SMALL, count);
}

/* Maps and populates 1 GiB, so that the registration is timed without the zeroing of the pages. */
static unsigned int get_large(void *arg, unsigned long count)
{
	struct objects *o = arg;

	if (!o->large)
		o->large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return o->large != MAP_FAILED;
}

static unsigned int reg_large(void *arg, unsigned long count)
{
	struct objects *o = arg;

	return get_large(o, 1) && reg_mr(o, o->large, LARGE, count);
}

static unsigned int create_cq(void *arg, unsigned long count)
{
	struct objects *o = arg;

	while (count--) {
		struct ibv_cq *cq = ibv_create_cq(o->context, 256, NULL, NULL, 0);

		if (!cq || ibv_destroy_cq(cq))
			return 0;
	}
	return 1;
}

static struct ibv_qp *new_qp(struct objects *o)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = o->cq, .recv_cq = o->cq, .cap = { 16, 16, 1, 1, 0 }
	};

	return ibv_create_qp(o->pd, &init);
}

static unsigned int create_qp(void *arg, unsigned long count)
{
	while (count--) {
		struct ibv_qp *qp = new_qp(arg);

		if (!qp || ibv_destroy_qp(qp))
			return 0;
	}
	return 1;
}

/* Brings the QP to RTS, connected to QP number dest. */
static int to_rts(struct objects *o, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .dlid = 1,
			     .port_num = 1,
			     .is_global = 1,
			     .grh = { .dgid = o->gid, .sgid_index = o->gid_index, .hop_limit = 1 } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};

	return ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	       ibv_modify_qp(qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
	       ibv_modify_qp(qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

/* From RESET to RTS, and back. */
static unsigned int modify_qp(void *arg, unsigned long count)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct objects *o = arg;

	while (count--)
		if (to_rts(o, o->other, o->qp->qp_num) || ibv_modify_qp(o->other, &reset, IBV_QP_STATE))
			return 0;
	return 1;
}

/* An RDMA WRITE of 64 bytes, from the post to the completion. */
static unsigned int write_64(void *arg, unsigned long count)
{
	struct objects *o = arg;
	struct ibv_sge sge = { (uintptr_t)o->small, 64, o->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)o->small + SMALL / 2, o->mr->rkey },
	};
	struct ibv_wc wc;
	int n;

	while (count--) {
		if (ibv_post_send(o->qp, &wr, &bad))
			return 0;
		while (!(n = ibv_poll_cq(o->cq, 1, &wc)))
			;
		if (n < 0 || wc.status)
			return 0;
	}
	return 1;
}

static const struct bench all[] = {
	{ "alloc_pd", alloc_pd },   { "reg_mr_64k", reg_small }, { "get_1g", get_large },
	{ "reg_mr_1g", reg_large }, { "create_cq", create_cq },	 { "create_qp", create_qp },
	{ "modify_qp", modify_qp }, { "write_64", write_64 },	 { NULL, NULL },
};

static int open_device(struct objects *o, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	o->context = NULL;
	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			o->context = ibv_open_device(*d);
	return o->context ? 0 : -1;
}

static int objects_make(struct objects *o)
{
	o->small = mmap(NULL, SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	o->pd = ibv_alloc_pd(o->context);
	o->cq = ibv_create_cq(o->context, 256, NULL, NULL, 0);
	if (o->small == MAP_FAILED || !o->pd || !o->cq || ibv_query_gid(o->context, 1, o->gid_index, &o->gid))
		return -1;
	o->mr = ibv_reg_mr(o->pd, o->small, SMALL, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	o->qp = new_qp(o);
	o->other = new_qp(o);
	return o->mr && o->qp && o->other ? to_rts(o, o->qp, o->qp->qp_num) : -1;
}

/* Creates the objects of `mrs N` or `qps N`. */
static int make_more(struct objects *o, const char *what, long num)
{
	while (num-- > 0)
		if (!strcmp(what, "mrs") ? !ibv_reg_mr(o->pd, o->small, 4096, IBV_ACCESS_LOCAL_WRITE) : !new_qp(o))
			return -1;
	return 0;
}

/* One file is open already. Returns the exit status of the command. */
static int hold_while(struct objects *o, const char *name, long num, char **command)
{
	int status;
	pid_t pid;

	while (--num > 0)
		if (open_device(o, name)) {
			perror("objects: opening the device once more");
			return 1;
		}
	pid = fork();
	if (!pid) {
		execvp(command[0], command);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	struct objects o = { NULL };

	if (argc < 3 || open_device(&o, argv[1])) {
		fprintf(stderr, "objects: cannot open %s\n",
			argc < 3 ? "(usage: objects DEVICE GID [mrs N|qps N|hold|hold N COMMAND...])" : argv[1]);
		return 2;
	}
	if (argc == 4) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	if (argc > 5 && !strcmp(argv[3], "hold"))
		return hold_while(&o, argv[1], atol(argv[4]), argv + 5);
	o.gid_index = atoi(argv[2]);
	if (objects_make(&o) || (argc > 4 && make_more(&o, argv[3], atol(argv[4])))) {
		perror("objects: setting up");
		return 1;
	}
	return bench_serve(all, &o);
}
