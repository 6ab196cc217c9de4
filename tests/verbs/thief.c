/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * thief DEVICE MODE: a client of uverbsd whose second thread looks through all descriptors while the first one registers
 * memory, and keeps copies of the adapter's device file ($UVERBS_NODE). What it does with them, by MODE:
 *
 *   events   makes objects whose events have numbers of its choice, and lets them report
 *   race     the same for three seconds, with every copy that it gets, and calls and maps every descriptor meanwhile
 *   destroy  destroys what uverbsd has made for it, and puts its own objects there
 *
 * Prints how many copies it has kept.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "uv.h"

enum { MAX_FD = 40, MAX_KEPT = 16, BYTES = 8192, SECONDS = 3, HANDLES = 24 };

#define WILD UINT64_C(0x4141414141414141)

static dev_t adapter;
static int kept[MAX_KEPT];
static unsigned int num_kept;
static atomic_bool stop;

/* ---- the client of uverbsd --------------------------------------------------------------------------------------- */

struct owner {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static bool owner_begin(struct owner *o, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !o->context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			o->context = ibv_open_device(list[i]);
	o->pd = o->context ? ibv_alloc_pd(o->context) : NULL;
	o->cq = o->pd ? ibv_create_cq(o->context, 16, NULL, NULL, 0) : NULL;
	if (!o->cq)
		return false;
	o->qp = ibv_create_qp(
		o->pd, &(struct ibv_qp_init_attr){
			       .send_cq = o->cq, .recv_cq = o->cq, .cap = { 4, 4, 1, 1 }, .qp_type = IBV_QPT_UD });
	return o->qp;
}

/* Some of it may be gone. */
static void owner_end(struct owner *o)
{
	ibv_destroy_qp(o->qp);
	ibv_destroy_cq(o->cq);
	ibv_dealloc_pd(o->pd);
	ibv_close_device(o->context);
}

static void *owner_register(void *arg)
{
	const struct owner *o = arg;
	static char memory[BYTES];

	while (!atomic_load(&stop)) {
		struct ibv_mr *mr = ibv_reg_mr(o->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		if (mr)
			ibv_dereg_mr(mr);
	}
	return NULL;
}

/* ---- the thief --------------------------------------------------------------------------------------------------- */

/* Keeps a copy if the descriptor is the adapter's device file. Returns it, or -1. */
static int keep(int fd)
{
	const int copy = fcntl(fd, F_DUPFD, MAX_FD);
	struct stat st;

	if (copy < 0)
		return -1;
	if (num_kept < MAX_KEPT && !fstat(copy, &st) && S_ISCHR(st.st_mode) && st.st_rdev == adapter)
		return kept[num_kept++] = copy;
	close(copy);
	return -1;
}

static int keep_one(void)
{
	for (;;)
		for (int fd = 3; fd < MAX_FD; fd++) {
			const int copy = keep(fd);

			if (copy >= 0)
				return copy;
		}
}

/* A UD QP that reports IBV_EVENT_SQ_DRAINED. Returns 0 or a negative errno. */
static int drain(int fd, uint32_t qp)
{
	const struct ib_uverbs_modify_qp steps[] = {
		{ .attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		  .qp_state = IBV_QPS_INIT,
		  .port_num = 1 },
		{ .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RTR },
		{ .attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN, .qp_state = IBV_QPS_RTS },
		{ .attr_mask = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
		  .qp_state = IBV_QPS_SQD,
		  .en_sqd_async_notify = 1 },
	};
	int ret = 0;

	for (size_t i = 0; i < UV_ARRAY_SIZE(steps) && !ret; i++) {
		struct ib_uverbs_modify_qp step = steps[i];

		step.qp_handle = qp;
		ret = uv_modify_qp(fd, UV_INVOKE, &step);
	}
	return ret;
}

/* Makes objects by the adapter's own device file. Returns 0 or a negative errno. */
static int make_wild(int fd)
{
	struct uv_cq_attr cq = uv_cq_default;
	struct uv_qp_attr attr;
	uint32_t pd, handle;
	struct uv_qp qp;
	int ret = uv_alloc_pd(fd, UV_INVOKE, &pd);

	cq.user_handle = WILD;
	if (!ret)
		ret = uv_create_cq(fd, UV_INVOKE, &cq, &handle, NULL);
	if (ret)
		return ret;
	attr = uv_qp_attr(pd, handle);
	attr.type = IBV_QPT_UD;
	attr.user_handle = WILD;
	ret = uv_create_qp(fd, UV_INVOKE, &attr, &qp);
	return ret ? ret : drain(fd, qp.handle);
}

static void destroy_all(int fd)
{
	struct ib_uverbs_destroy_cq_resp resp;
	uint32_t events;

	for (uint32_t h = 0; h < HANDLES; h++)
		uv_destroy_qp(fd, UV_INVOKE, h, &events);
	for (uint32_t h = 0; h < HANDLES; h++)
		uv_destroy_cq(fd, UV_INVOKE, h, &resp);
	for (uint32_t h = 0; h < HANDLES; h++)
		uv_dealloc_pd(fd, UV_INVOKE, h);
}

/* One look at every descriptor of the process. */
static void try_all(void)
{
	uint32_t pd;

	for (int fd = 3; fd < MAX_FD; fd++) {
		void *map;

		if (keep(fd) >= 0)
			make_wild(kept[num_kept - 1]);
		if (!uv_alloc_pd(fd, UV_INVOKE, &pd))
			uv_dealloc_pd(fd, UV_INVOKE, pd);
		map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED)
			munmap(map, 4096);
	}
}

static int steal(const char *mode)
{
	const time_t end = time(NULL) + SECONDS;
	int fd, ret;

	if (!strcmp(mode, "race")) {
		while (time(NULL) < end)
			try_all();
		return 0;
	}
	fd = keep_one();
	if (!strcmp(mode, "destroy")) {
		destroy_all(fd);
		make_wild(fd);
		make_wild(fd);
		return 0;
	}
	ret = make_wild(fd);
	if (ret)
		printf("no event: %s\n", strerror(-ret));
	return ret;
}

int main(int argc, char **argv)
{
	struct owner owner = {};
	pthread_t thread;
	struct stat st;
	int ret;

	if (argc != 3 || stat(uv_node(), &st) || !owner_begin(&owner, argv[1]))
		return 2;
	adapter = st.st_rdev;
	uv_room = (struct uv_room){ .create_cq = 16, .create_qp = 32 };
	if (pthread_create(&thread, NULL, owner_register, &owner))
		return 2;
	ret = steal(argv[2]);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	owner_end(&owner);
	printf("kept %u\n", num_kept);
	return ret ? 1 : 0;
}
