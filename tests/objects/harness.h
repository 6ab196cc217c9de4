/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device in this process, without a transport: the harness passes write() commands and ioctl trees to the dispatcher
 * and grants fds to its own process. For the tests of the core and its benchmarks.
 *
 * Return values: 0 or a negative errno, unless a comment says otherwise.
 */
#ifndef UVD_TESTS_HARNESS_H
#define UVD_TESTS_HARNESS_H

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "client/client.h"
#include "dispatch/dispatch.h"
#include "core/core.h"
#include "objects/internal.h"
#include "persona/persona.h"

struct harness {
	struct uvd_engine engine;
	struct uvd_account *account; /* charged for everything; harness_close() checks that it is back at 0 */
	struct uvd_device_config config;
	struct uvd_device *dev;
	struct uvd_file *file;
	struct uvd_backend ops; /* of the device; a test may replace functions */
	struct uvd_call *call;
	int refuse_grant; /* every grant fails with this errno; 0: grants succeed */
	int granted; /* fd of the last grant, which the test closes; -1: none */
};

/*
 * Opens files of a client's /proc directory. "status" shows all effective capabilities, so the client seems to be
 * root's whoever runs the test.
 */
static inline int harness_root_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	int fd = uvd_proc_local.open(proc, tid, name, flags), changed;
	char text[8192] = {}, *caps;

	if (fd < 0 || strcmp(name, "status"))
		return fd;
	if (read(fd, text, sizeof(text) - 1) < 0 || !(caps = strstr(text, "CapEff:\t")))
		abort();
	close(fd);
	memset(caps + strlen("CapEff:\t"), 'f', 16);
	changed = memfd_create("status", MFD_CLOEXEC);
	if (changed < 0 || pwrite(changed, text, strlen(text), 0) < 0)
		abort();
	return changed;
}

static struct uvd_proc harness_root __attribute__((unused)) = { .open = harness_root_open };

/* Makes the engine and a device's configuration. A test may change both before harness_start(). */
static inline void harness_init_limited(struct harness *h, const char *backend, const struct uvd_account_limits *limits)
{
	memset(h, 0, sizeof(*h));
	h->granted = -1;
	uvd_config_default(&h->config, &uvd_persona_hfi1, 0);
	h->config.limits.max_dm_size = 256 << 10;
	snprintf(h->config.backend, sizeof(h->config.backend), "%s", backend);
	if (uvd_engine_init(&h->engine, uvd_features, limits, NULL))
		abort();
	h->account = uvd_account_get(h->engine.accounts, &(uid_t){ 1000 }, 1);
	if (!h->account)
		abort();
}

static inline void harness_no_limits(struct uvd_account_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	memset(limits->max, 0xff, sizeof(limits->max));
}

static inline void harness_init(struct harness *h, const char *backend)
{
	struct uvd_account_limits limits;

	harness_no_limits(&limits);
	harness_init_limited(h, backend, &limits);
}

/* Makes the device and opens a file of it. */
static inline void harness_start(struct harness *h, const struct uvd_mem_ops *mem)
{
	int err;

	h->dev = uvd_device_new(&h->engine, &h->config, &err);
	h->file = h->dev ? uvd_file_open(h->dev, h->account, &err) : NULL;
	h->call = calloc(1, sizeof(*h->call));
	if (!h->file || !h->call) {
		fprintf(stderr, "no device: %s\n", strerror(-err));
		abort();
	}
	h->ops = *h->dev->ib.ops;
	h->dev->ib.ops = &h->ops;
	h->call->file = h->file;
	h->call->caller = (struct uvd_caller){ .mem = mem, .proc = &uvd_proc_local, .tid = gettid(), .memfd = -1 };
}

/* backend: "null" or "soft". mem: uvd_mem_process detects faults; uvd_mem_self is faster and does not. */
static inline void harness_open_with(struct harness *h, const char *backend, const struct uvd_mem_ops *mem)
{
	harness_init(h, backend);
	harness_start(h, mem);
}

static inline void harness_open(struct harness *h)
{
	harness_open_with(h, "null", &uvd_mem_process);
}

/* Closes the file, which destroys all its objects. */
static inline void harness_close_file(struct harness *h)
{
	if (h->file)
		uvd_file_close(h->file);
	h->file = NULL;
}

/* uvd_accounts_each() calls this for a charge that was not given back. */
static inline void harness_leak(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	fprintf(stderr, "user %u still holds %llu %s\n", uid, (unsigned long long)used,
		uvd_limit_rows[res].what ? uvd_limit_rows[res].what : "objects");
	abort();
}

/*
 * Clears h, so that no pointer is left in it: at the end of a test's process LeakSanitizer does not report memory that
 * a pointer still reaches.
 */
static inline void harness_close(struct harness *h)
{
	harness_close_file(h);
	uvd_device_put(h->dev);
	uvd_accounts_each(h->engine.accounts, harness_leak, NULL);
	uvd_account_put(h->account);
	uvd_engine_fini(&h->engine);
	free(h->call);
	memset(h, 0, sizeof(*h));
}

/* Does what a transport does after every call: grants the fd, if the call asks for one. */
static inline long harness_finish(struct harness *h, long ret)
{
	int fd;

	h->granted = -1;
	if (ret < 0 || !h->call->grant.uobj)
		return ret;
	fd = h->refuse_grant ? -h->refuse_grant : uvd_event_file_open(h->call->grant.file);
	ret = uvd_call_granted(h->call, fd);
	if (ret < 0 && fd >= 0)
		close(fd);
	else if (fd >= 0)
		h->granted = fd;
	return ret;
}

/* ---- write() ----------------------------------------------------------------------------------------------------- */

static inline int harness_bytes(struct harness *h, const void *bytes, size_t len)
{
	long ret = harness_finish(h, uvd_dispatch_write(h->call, bytes, len));

	return ret < 0 ? ret : (size_t)ret == len ? 0 : -EMSGSIZE;
}

/* Issues a plain command. With `out`, the first 8 bytes of `in` are set to its address. */
static inline int harness_write(struct harness *h, uint32_t command, void *in, size_t in_len, void *out, size_t out_len)
{
	uint64_t buf[512] = {}, *big = NULL, *p = buf;
	struct ib_uverbs_cmd_hdr hdr = {
		.command = command,
		.in_words = (sizeof(hdr) + in_len) / 4,
		.out_words = out_len / 4,
	};
	uint64_t response = (uintptr_t)out;
	int ret;

	if (sizeof(hdr) + in_len > sizeof(buf))
		p = big = calloc(1, sizeof(hdr) + in_len + 8);
	if (out)
		memcpy(in, &response, sizeof(response));
	memcpy(p, &hdr, sizeof(hdr));
	memcpy((uint8_t *)p + sizeof(hdr), in, in_len);
	ret = harness_bytes(h, p, sizeof(hdr) + in_len);
	free(big);
	return ret;
}

/* Issues an extended command. `in` is padded with zeros to a multiple of 8 bytes. */
static inline int harness_write_ex(struct harness *h, uint32_t command, const void *in, size_t in_len, void *out,
				   size_t out_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t in[];
	} *msg = calloc(1, sizeof(*msg) + in_len + 8);
	size_t words = (in_len + 7) / 8;
	int ret;

	msg->hdr.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	msg->hdr.in_words = words;
	msg->hdr.out_words = out_len / 8;
	msg->ex.response = (uintptr_t)out;
	memcpy(msg->in, in, in_len);
	ret = harness_bytes(h, msg, sizeof(*msg) + words * 8);
	free(msg);
	return ret;
}

/* The same for pointers to structs, whose sizes are passed. */
#define WRITE(h, n, in, out) harness_write(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))
#define WRITE_IN(h, n, in) harness_write(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), NULL, 0)
#define WRITE_EX_IN(h, n, in) harness_write_ex(h, IB_USER_VERBS_EX_CMD_##n, in, sizeof(*(in)), NULL, 0)
#define WRITE_EX(h, n, in, out) harness_write_ex(h, IB_USER_VERBS_EX_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))

/* ---- ioctl ------------------------------------------------------------------------------------------------------- */

struct harness_tree {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[32];
};

static inline struct ib_uverbs_attr *tree_add(struct harness_tree *tree, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &tree->attrs[tree->hdr.num_attrs++];

	*attr = (struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
	return attr;
}

static inline struct ib_uverbs_attr *tree_in(struct harness_tree *tree, uint16_t id, const void *in, uint16_t len)
{
	uint64_t data = (uintptr_t)in;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, in, len);
	}
	return tree_add(tree, id, len, data);
}

static inline struct ib_uverbs_attr *tree_out(struct harness_tree *tree, uint16_t id, void *out, uint16_t len)
{
	return tree_add(tree, id, len, (uintptr_t)out);
}

static inline struct ib_uverbs_attr *tree_const(struct harness_tree *tree, uint16_t id, uint64_t value)
{
	return tree_add(tree, id, sizeof(value), value);
}

/* value: a handle or an fd. */
static inline struct ib_uverbs_attr *tree_object(struct harness_tree *tree, uint16_t id, int64_t value)
{
	return tree_add(tree, id, 0, value);
}

static inline int harness_ioctl(struct harness *h, uint16_t object, uint16_t method, struct harness_tree *tree)
{
	tree->hdr.object_id = object;
	tree->hdr.method_id = method;
	tree->hdr.driver_id = h->dev->tree->driver_id;
	tree->hdr.length = sizeof(tree->hdr) + tree->hdr.num_attrs * sizeof(tree->attrs[0]);
	return harness_finish(h, uvd_dispatch_ioctl(h->call, RDMA_VERBS_IOCTL, (uintptr_t)tree));
}

/* Issues a command by UVERBS_METHOD_INVOKE_WRITE, with the same structs as harness_write(). */
static inline int harness_invoke(struct harness *h, uint32_t command, const void *in, size_t in_len, void *out,
				 size_t out_len)
{
	struct harness_tree tree = {};

	tree_const(&tree, UVERBS_ATTR_WRITE_CMD, command);
	tree_in(&tree, UVERBS_ATTR_CORE_IN, in, in_len);
	if (out)
		tree_out(&tree, UVERBS_ATTR_CORE_OUT, out, out_len);
	return harness_ioctl(h, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, &tree);
}

#define INVOKE_EX(h, n, in, out) \
	harness_invoke(h, IB_USER_VERBS_EX_CMD_##n | IB_USER_VERBS_CMD_FLAG_EXTENDED, in, sizeof(*(in)), out, \
		       sizeof(*(out)))
#define INVOKE(h, n, in, out) harness_invoke(h, IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))

/* ---- verbs, by write() ------------------------------------------------------------------------------------------- */

static inline int harness_get_context(struct harness *h, struct ib_uverbs_get_context_resp *resp)
{
	struct ib_uverbs_get_context cmd = {};

	return WRITE(h, GET_CONTEXT, &cmd, resp);
}

static inline int harness_alloc_pd(struct harness *h, uint32_t *pd)
{
	struct ib_uverbs_alloc_pd_resp resp = { .pd_handle = ~0u };
	struct ib_uverbs_alloc_pd cmd = {};
	int ret = WRITE(h, ALLOC_PD, &cmd, &resp);

	*pd = resp.pd_handle;
	return ret;
}

static inline int harness_dealloc_pd(struct harness *h, uint32_t pd)
{
	struct ib_uverbs_dealloc_pd cmd = { .pd_handle = pd };

	return WRITE_IN(h, DEALLOC_PD, &cmd);
}

static inline int harness_reg_mr(struct harness *h, uint32_t pd, void *addr, uint64_t len, uint32_t access,
				 struct ib_uverbs_reg_mr_resp *resp)
{
	struct ib_uverbs_reg_mr cmd = {
		.start = (uintptr_t)addr,
		.length = len,
		.hca_va = (uintptr_t)addr,
		.pd_handle = pd,
		.access_flags = access,
	};

	return WRITE(h, REG_MR, &cmd, resp);
}

/* channel: the fd of a completion channel; -1: none. */
static inline int harness_create_cq(struct harness *h, uint64_t user_handle, uint32_t cqe, int channel, uint32_t *cq)
{
	struct ib_uverbs_create_cq_resp resp = { .cq_handle = ~0u };
	struct ib_uverbs_create_cq cmd = { .user_handle = user_handle, .cqe = cqe, .comp_channel = channel };
	int ret = WRITE(h, CREATE_CQ, &cmd, &resp);

	*cq = resp.cq_handle;
	return ret;
}

static inline int harness_create_qp(struct harness *h, uint8_t type, uint32_t pd, uint32_t cq,
				    struct ib_uverbs_create_qp_resp *resp)
{
	struct ib_uverbs_create_qp cmd = {
		.user_handle = 0x9999,
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = 16,
		.max_recv_wr = 16,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.qp_type = type,
	};

	return WRITE(h, CREATE_QP, &cmd, resp);
}

/* Makes a context, a PD (handle 0) and a CQ (handle 1). */
static inline int harness_begin(struct harness *h, uint32_t *pd, uint32_t *cq)
{
	struct ib_uverbs_get_context_resp resp;
	int ret = harness_get_context(h, &resp);

	if (!ret)
		ret = harness_alloc_pd(h, pd);
	return ret ? ret : harness_create_cq(h, 0x1111, 64, -1, cq);
}

#endif
