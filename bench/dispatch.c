/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * dispatch: the cost of parsing, the tables and the null backend alone. There is no transport, and the client's memory
 * is that of this process. uverbsd adds this cost to the cost of the transport.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <unistd.h>
#include "clock.h"
#include "host/host.h"
#include "persona/persona.h"

struct state {
	struct uvd_call call;
	uint16_t driver_id;
	uint32_t cq;
};

struct tree {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[8];
};

static void bench_tree_begin(struct tree *t, const struct state *s, uint16_t object, uint16_t method)
{
	memset(t, 0, sizeof(*t));
	t->hdr.object_id = object;
	t->hdr.method_id = method;
	t->hdr.driver_id = s->driver_id;
}

static void bench_tree_attr(struct tree *t, uint16_t id, uint64_t data, uint16_t len)
{
	t->attrs[t->hdr.num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = id,
		.len = len,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
}

static long send_tree(struct state *s, struct tree *t)
{
	t->hdr.length = sizeof(t->hdr) + t->hdr.num_attrs * sizeof(t->attrs[0]);
	return uvd_dispatch_ioctl(&s->call, RDMA_VERBS_IOCTL, (uintptr_t)t);
}

/* As libibverbs does it: INVOKE_WRITE runs ALLOC_PD, which has no method of its own; PD_DESTROY is a method. */
static unsigned int pd_by_ioctl(void *arg, unsigned long count)
{
	struct state *s = arg;
	struct ib_uverbs_alloc_pd cmd = { 0 };
	struct ib_uverbs_alloc_pd_resp resp;
	struct tree t;

	while (count--) {
		bench_tree_begin(&t, s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		bench_tree_attr(&t, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_ALLOC_PD, 8);
		bench_tree_attr(&t, UVERBS_ATTR_CORE_IN, 0, sizeof(cmd)); /* 8 bytes are inline */
		bench_tree_attr(&t, UVERBS_ATTR_CORE_OUT, (uintptr_t)&resp, sizeof(resp));
		if (send_tree(s, &t))
			return 0;
		bench_tree_begin(&t, s, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
		bench_tree_attr(&t, UVERBS_ATTR_DESTROY_PD_HANDLE, resp.pd_handle, 0);
		if (send_tree(s, &t))
			return 0;
	}
	return 2;
}

static unsigned int pd_by_write(void *arg, unsigned long count)
{
	struct state *s = arg;
	struct ib_uverbs_alloc_pd_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} alloc = { { IB_USER_VERBS_CMD_ALLOC_PD, sizeof(alloc) / 4, sizeof(resp) / 4 }, { (uintptr_t)&resp } };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dealloc_pd cmd;
	} dealloc __attribute__((aligned(8))) = { { IB_USER_VERBS_CMD_DEALLOC_PD, sizeof(dealloc) / 4, 0 }, { 0 } };
	size_t dealloc_len = sizeof(dealloc.hdr) + sizeof(dealloc.cmd);

	dealloc.hdr.in_words = dealloc_len / 4;
	while (count--) {
		if (uvd_dispatch_write(&s->call, &alloc, sizeof(alloc)) != sizeof(alloc))
			return 0;
		dealloc.cmd.pd_handle = resp.pd_handle;
		if (uvd_dispatch_write(&s->call, &dealloc, dealloc_len) != (long)dealloc_len)
			return 0;
	}
	return 2;
}

static unsigned int poll_by_write(void *arg, unsigned long count)
{
	struct state *s = arg;
	struct {
		struct ib_uverbs_poll_cq_resp hdr;
		struct ib_uverbs_wc wc[1];
	} resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_poll_cq cmd;
	} poll = { { IB_USER_VERBS_CMD_POLL_CQ, sizeof(poll) / 4, sizeof(resp) / 4 }, { (uintptr_t)&resp, s->cq, 1 } };

	while (count--)
		if (uvd_dispatch_write(&s->call, &poll, sizeof(poll)) != sizeof(poll))
			return 0;
	return 1;
}

static int set_up(struct state *s, struct uvd_engine *engine)
{
	const struct uvd_persona *persona = uvd_persona_find("hfi1");
	struct ib_uverbs_create_cq_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_cq cmd;
	} create = { { IB_USER_VERBS_CMD_CREATE_CQ, sizeof(create) / 4, sizeof(resp) / 4 },
		     { .response = (uintptr_t)&resp, .cqe = 16, .comp_channel = -1 } };
	struct uvd_device_config config;
	struct uvd_device *dev;
	struct tree t;
	int err;

	err = uvd_host_engine(engine, NULL, NULL);
	if (err)
		return err;
	uvd_config_default(&config, persona, 0);
	strcpy(config.backend, "null");
	dev = uvd_device_new(engine, &config, &err);
	if (!dev)
		return err;
	s->driver_id = persona->driver_id;
	s->call.caller = uvd_host_caller(&uvd_mem_self, &uvd_proc_local, NULL);
	s->call.file = uvd_file_open(dev, NULL, &err);
	if (!s->call.file)
		return err;
	bench_tree_begin(&t, s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	err = send_tree(s, &t);
	if (err)
		return err;
	err = uvd_dispatch_write(&s->call, &create, sizeof(create));
	s->cq = resp.cq_handle;
	return err < 0 ? err : 0;
}

static const struct bench all[] = {
	{ "alloc_pd+dealloc_pd_by_ioctl", pd_by_ioctl },
	{ "alloc_pd+dealloc_pd_by_write", pd_by_write },
	{ "poll_cq_by_write", poll_by_write },
	{ NULL, NULL },
};

int main(void)
{
	static struct state state;
	static struct uvd_engine engine;
	int err = set_up(&state, &engine);

	if (err) {
		fprintf(stderr, "dispatch: %s\n", strerror(-err));
		return 1;
	}
	return bench_serve(all, &state);
}
