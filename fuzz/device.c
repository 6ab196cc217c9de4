/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/device.h"
#include "persona/persona.h"
#include "uv.h"

static struct {
	struct uvd_engine engine;
	struct uvd_account *account;
	struct uvd_call call; /* its file changes from call to call */
	struct uvd_device *opening; /* uv_open() opens it */
	int refuse;
} fuzz;

static void fuzz_stop(const char *what, int err)
{
	fprintf(stderr, "fuzz: %s: %s\n", what, strerror(-err));
	abort();
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Grants the descriptor that the call asks for, as a transport does after a call. */
static long fuzz_finish(long ret)
{
	int number;

	return uvd_host_finish(&fuzz.call, ret, &fuzz_client_fds, fuzz.refuse, &number);
}

static long fuzz_write_at(struct uvd_file *file, uint64_t addr, size_t len)
{
	fuzz.call.file = file;
	return fuzz_finish(uvd_dispatch_write_from(&fuzz.call, addr, len));
}

static long fuzz_ioctl_at(struct uvd_file *file, unsigned int cmd, uint64_t addr)
{
	fuzz.call.file = file;
	return fuzz_finish(uvd_dispatch_ioctl(&fuzz.call, cmd, addr));
}

long fuzz_write(struct uvd_file *file, const uint8_t *bytes, size_t len)
{
	fuzz_client_put(FUZZ_MESSAGE, bytes, len);
	return fuzz_write_at(file, FUZZ_MESSAGE, len);
}

long fuzz_ioctl(struct uvd_file *file, const uint8_t *bytes, size_t len)
{
	struct ib_uverbs_ioctl_hdr hdr = {};
	size_t tree;

	memcpy(&hdr, bytes, len < sizeof(hdr) ? len : sizeof(hdr));
	tree = hdr.length < sizeof(hdr) || hdr.length > len ? len : hdr.length;
	fuzz_client_put(FUZZ_MESSAGE, bytes, tree);
	if (tree < len)
		fuzz_client_put(FUZZ_DATA, bytes + tree, len - tree);
	return fuzz_ioctl_at(file, RDMA_VERBS_IOCTL, FUZZ_MESSAGE);
}

void fuzz_refuse_grants(int err)
{
	fuzz.refuse = err;
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

void fuzz_engine_init(void)
{
	struct uvd_account_limits limits;
	int err;

	fuzz_client_init();
	uvd_account_limits_init(&limits);
	err = uvd_host_engine(&fuzz.engine, &limits, NULL);
	if (err)
		fuzz_stop("no engine", err);
	fuzz.account = uvd_host_account(&fuzz.engine, UVD_HOST_UID);
	if (!fuzz.account)
		fuzz_stop("no account", -ENOMEM);
	fuzz.call.caller = fuzz_client_caller(fuzz.account);
}

struct uvd_device *fuzz_device_new(const char *backend, const char *persona, unsigned int index)
{
	struct uvd_device_config config;
	struct uvd_device *dev;
	int err;

	uvd_config_default(&config, uvd_persona_find(persona), index);
	snprintf(config.backend, sizeof(config.backend), "%s", backend);
	config.memlock = UVD_MEMLOCK_UNLIMITED;
	config.limits.max_dm_size = 64 << 10;
	/* Large queues would cost most of an execution's time. */
	config.limits.max_cqe = config.limits.max_qp_wr = config.limits.max_srq_wr = 64;
	dev = uvd_device_new(&fuzz.engine, &config, &err);
	if (!dev)
		fuzz_stop(backend, err);
	return dev;
}

struct uvd_file *fuzz_file_open(struct uvd_device *dev)
{
	int err;

	return uvd_file_open(dev, fuzz.account, &err);
}

void fuzz_check_accounts(void)
{
	char left[1024];

	if (!uvd_host_charged(&fuzz.engine, left, sizeof(left), 0))
		return;
	fprintf(stderr, "fuzz: with all files closed: %s\n", left);
	abort();
}

/* ---- a file with objects, made by tests/uv ----------------------------------------------------------------------- */

static struct uvd_file *filling;

static int fuzz_node_open(const char *path)
{
	return 0;
}

static int fuzz_node_close(int fd)
{
	return 0;
}

static ssize_t fuzz_node_write(int fd, const void *bytes, size_t len)
{
	return fuzz_write_at(filling, (uintptr_t)bytes, len);
}

static int fuzz_node_ioctl(int fd, unsigned long cmd, const void *arg)
{
	return fuzz_ioctl_at(filling, cmd, (uintptr_t)arg);
}

static const struct uv_node_ops fuzz_node_ops = {
	.open = fuzz_node_open,
	.close = fuzz_node_close,
	.write = fuzz_node_write,
	.ioctl = fuzz_node_ioctl,
	.in_process = true,
};

static int fill_pd(uint32_t *handle)
{
	return uv_alloc_pd(0, UV_INVOKE, handle);
}

static int fill_cq(uint32_t *handle)
{
	const struct uv_cq_attr attr = { .cqe = 16, .channel = -1, .event_fd = -1 };
	uint32_t cqe;

	return uv_create_cq(0, UV_INVOKE, &attr, handle, &cqe);
}

static int fill_qp(uint32_t *handle)
{
	const struct uv_qp_attr attr = uv_qp_attr(FUZZ_PD, FUZZ_CQ);
	struct uv_qp qp = {};
	int ret = uv_create_qp(0, UV_INVOKE, &attr, &qp);

	*handle = qp.handle;
	return ret;
}

/* Makes an object by a tree without outputs other than its handle. */
static int fill_by_tree(struct uv_tree *tree, struct ib_uverbs_attr *made, uint32_t *handle)
{
	int ret = uv_ioctl(0, tree);

	*handle = made->data;
	return ret;
}

static int fill_dm(uint32_t *handle)
{
	struct ib_uverbs_attr *made;
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	made = uv_attr_obj(&tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr(&tree, UVERBS_ATTR_ALLOC_DM_LENGTH, 8, 4096);
	uv_attr(&tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, 0);
	return fill_by_tree(&tree, made, handle);
}

/* A region of device memory: to register memory of the client takes system calls. */
static int fill_mr(uint32_t *handle)
{
	struct ib_uverbs_attr *made;
	struct uv_tree tree;
	uint32_t keys[2];

	uv_tree_init(&tree, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	made = uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, FUZZ_PD);
	uv_attr_obj(&tree, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, FUZZ_DM);
	uv_attr(&tree, UVERBS_ATTR_REG_DM_MR_OFFSET, 8, 0);
	uv_attr(&tree, UVERBS_ATTR_REG_DM_MR_LENGTH, 8, 4096);
	uv_attr(&tree, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 4, IBV_ACCESS_ZERO_BASED);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &keys[0], 4);
	uv_attr_out(&tree, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &keys[1], 4);
	return fill_by_tree(&tree, made, handle);
}

static int fill_srq(uint32_t *handle)
{
	const struct uv_srq_attr attr = uv_srq_attr(FUZZ_PD);
	struct uv_srq srq = {};
	int ret = uv_create_srq(0, UV_INVOKE, &attr, &srq);

	*handle = srq.handle;
	return ret;
}

static int fill_ah(uint32_t *handle)
{
	const struct ib_uverbs_ah_attr attr = { .dlid = 1, .port_num = 1 };

	return uv_create_ah(0, UV_INVOKE, FUZZ_PD, &attr, handle);
}

static int fill_mw(uint32_t *handle)
{
	uint32_t rkey;

	return uv_alloc_mw(0, UV_INVOKE, FUZZ_PD, 1, handle, &rkey);
}

static int fill_xrcd(uint32_t *handle)
{
	return uv_open_xrcd(0, UV_INVOKE, -1, O_CREAT, handle);
}

static int fill_counters(uint32_t *handle)
{
	struct ib_uverbs_attr *made;
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	made = uv_attr_obj(&tree, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0);
	return fill_by_tree(&tree, made, handle);
}

static int fill_wq(uint32_t *handle)
{
	struct ib_uverbs_ex_create_wq in = { .pd_handle = FUZZ_PD, .cq_handle = FUZZ_CQ, .max_wr = 1, .max_sge = 1 };
	struct ib_uverbs_ex_create_wq_resp out = {};
	struct uv_cmd cmd = { UV_EX(CREATE_WQ), &in, sizeof(in), &out, sizeof(out) };
	int ret = uv_cmd(0, UV_INVOKE_EX, &cmd);

	*handle = out.wq_handle;
	return ret;
}

static const struct {
	uint16_t object;
	int (*make)(uint32_t *handle);
} filled[FUZZ_FILLED] = {
	[FUZZ_PD] = { UVERBS_OBJECT_PD, fill_pd },	 [FUZZ_CQ] = { UVERBS_OBJECT_CQ, fill_cq },
	[FUZZ_QP] = { UVERBS_OBJECT_QP, fill_qp },	 [FUZZ_DM] = { UVERBS_OBJECT_DM, fill_dm },
	[FUZZ_MR] = { UVERBS_OBJECT_MR, fill_mr },	 [FUZZ_SRQ] = { UVERBS_OBJECT_SRQ, fill_srq },
	[FUZZ_AH] = { UVERBS_OBJECT_AH, fill_ah },	 [FUZZ_MW] = { UVERBS_OBJECT_MW, fill_mw },
	[FUZZ_XRCD] = { UVERBS_OBJECT_XRCD, fill_xrcd }, [FUZZ_COUNTERS] = { UVERBS_OBJECT_COUNTERS, fill_counters },
	[FUZZ_WQ] = { UVERBS_OBJECT_WQ, fill_wq },
};

uint16_t fuzz_filled_object(uint32_t handle)
{
	return filled[handle].object;
}

static void fuzz_fill(void)
{
	uint32_t handle = -1;
	int ret = uv_get_context(0, UV_METHOD, NULL, NULL);

	if (ret)
		fuzz_stop("no context", ret);
	for (uint32_t i = 0; i < FUZZ_FILLED; i++) {
		ret = filled[i].make(&handle);
		if (ret || handle != i) {
			fprintf(stderr, "fuzz: object %u has handle %u\n", i, handle);
			fuzz_stop("object", ret);
		}
	}
}

struct uvd_file *fuzz_file_open_filled(struct uvd_device *dev)
{
	filling = fuzz_file_open(dev);
	if (!filling)
		fuzz_stop("cannot open", -EIO);
	uv_node_ops = &fuzz_node_ops;
	fuzz_client_trust(&fuzz.call.caller, true);
	fuzz_fill();
	fuzz_client_trust(&fuzz.call.caller, false);
	return filling;
}
