/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Clients that leave as much as they can with the filters (held messages, late completions, QPs in a made-up error, counted
 * objects) and close the device, while the filters come and go. They keep messages and completions for a minute: a close that
 * waited for one would not end within the test's time. harness_close() checks that nothing stays charged.
 */
#include <pthread.h>
#include "bed.h"

enum { CLIENTS = 3, ROUNDS = 60, SENDS = 8, RECEIVES = 6, BYTES = 4096, GRH = 40 };

static const char *const hostile_filters[] = {
	"reorder:hold=60s",
	"delay:wc=60s",
	"delay:wc.recv=1us%50,wc.send=60s@2,post_send=1us%50",
	"error:wc=REM_OP_ERR@3+,create_qp=EAGAIN%20",
	"loss:ud=%50",
	"limit:qp=1,pd=2,bytes=8192",
	"nomem:when=%10",
};

static atomic_uint clients;

static void setup(void)
{
	struct ib_uverbs_query_device_resp device;

	harness_open_with(&h, "soft", &uvd_mem_self);
	/* uv.h asks for the driver's number once, and keeps it: not on several threads. */
	ck_assert_int_eq(uv_query_device(h.fd, UV_INVOKE, &device), -EINVAL); /* there is no context yet */
}

static void teardown(void)
{
	harness_close(&h);
}

struct client {
	int fd;
	uint32_t pd, cq, ah;
	struct uv_mr mr;
	struct uv_qp qp;
	char mem[BYTES];
};

/* Whatever fails of this does so because of a filter. */
static int client_begin(struct client *c, unsigned int *seed)
{
	struct uv_cq_attr cq = uv_cq_default;
	struct ib_uverbs_ah_attr ah = { .dlid = h.config.ports[0].lid, .port_num = 1 };
	struct uv_qp_attr qp;
	int ret, async = -1;
	uint32_t got;

	cq.cqe = 1 + rand_r(seed) % 8; /* some overflow */
	ret = uv_get_context(c->fd, UV_INVOKE, &async, &got) ?: uv_alloc_pd(c->fd, UV_WRITE, &c->pd)
			   ?: uv_create_cq(c->fd, UV_WRITE, &cq, &c->cq, &got)
			   ?: uv_reg_mr(c->fd, UV_WRITE, c->pd, c->mem, BYTES, IBV_ACCESS_LOCAL_WRITE, &c->mr)
			   ?: uv_create_ah(c->fd, UV_WRITE, c->pd, &ah, &c->ah);
	if (async >= 0)
		close(async);
	if (ret)
		return ret;
	qp = uv_qp_attr(c->pd, c->cq);
	qp.type = IBV_QPT_UD;
	qp.sq_sig_all = 1;
	return uv_create_qp(c->fd, UV_WRITE, &qp, &c->qp);
}

static int client_set_state(const struct client *c, enum ibv_qp_state state, unsigned int mask)
{
	const struct ib_uverbs_modify_qp attr = {
		.qp_handle = c->qp.handle, .attr_mask = IBV_QP_STATE | mask, .qp_state = state, .port_num = 1, .qkey = 1
	};

	return uv_modify_qp(c->fd, UV_WRITE, &attr);
}

static int client_connect(const struct client *c)
{
	return client_set_state(c, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
		       ?: client_set_state(c, IBV_QPS_RTR, 0)
		       ?: client_set_state(c, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

/* Sends to itself. */
static void client_send(struct client *c)
{
	const struct ib_uverbs_sge sge = { (uintptr_t)c->mem, BYTES / 4, c->mr.lkey };
	const struct ib_uverbs_recv_wr recv = { .num_sge = 1 };
	const struct ib_uverbs_send_wr send = {
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = c->ah, .remote_qpn = c->qp.qpn, .remote_qkey = 1 },
	};
	uint32_t bad;

	for (int i = 0; i < RECEIVES; i++)
		uv_post_recv(c->fd, UV_WRITE, c->qp.handle, &recv, 1, &sge, 1, &bad);
	for (int i = 0; i < SENDS; i++)
		uv_post_send(c->fd, UV_WRITE, c->qp.handle, &send, 1, &sge, 1, &bad);
}

/* The client does this before it closes the device, and the close ends the rest. */
static void client_leave(struct client *c, unsigned int *seed)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_wc wc[4];
	uint32_t n;

	switch (rand_r(seed) % 6) {
	case 0:
		client_set_state(c, IBV_QPS_ERR, 0);
		break;
	case 1:
		client_set_state(c, IBV_QPS_RESET, 0);
		if (!client_connect(c))
			client_send(c);
		break;
	case 2:
		uv_destroy_qp(c->fd, UV_WRITE, c->qp.handle, &n);
		uv_destroy_cq(c->fd, UV_WRITE, c->cq, &resp);
		break;
	case 3:
		uv_resize_cq(c->fd, UV_WRITE, c->cq, 1 + rand_r(seed) % 16, &n);
		break;
	case 4:
		uv_poll_cq(c->fd, UV_WRITE, c->cq, 4, wc);
		break;
	default:
		break;
	}
}

static void *client_main(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	struct client *c = malloc(sizeof(*c));

	for (int i = 0; i < ROUNDS; i++) {
		memset(c, 0, sizeof(*c));
		c->fd = uv_open();
		ck_assert_int_ge(c->fd, 0);
		if (!client_begin(c, &seed) && !client_connect(c)) {
			client_send(c);
			client_leave(c, &seed);
		}
		uv_close(c->fd);
	}
	free(c);
	clients--;
	return NULL;
}

START_TEST(test_what_filters_keep_holds_no_close_up_and_stays_with_nobody)
{
	pthread_t threads[CLIENTS];
	unsigned int n = 0;

	clients = CLIENTS;
	for (uintptr_t i = 0; i < CLIENTS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, client_main, (void *)(i + 1)), 0);
	while (clients) {
		const char *filter = hostile_filters[n++ % UV_ARRAY_SIZE(hostile_filters)];
		char name[16];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(filter, ":"), filter);
		/* Two at a time: the one before goes when the next one has come. */
		if (!uvd_device_filter_add(h.dev, filter, error)) {
			usleep(2000);
			ck_assert_int_eq(uvd_device_filter_remove(h.dev, name, error), 0);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

FILTERS_MAIN(setup, teardown, test_what_filters_keep_holds_no_close_up_and_stays_with_nobody)
