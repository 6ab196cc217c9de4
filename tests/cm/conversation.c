/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include "conversation.h"

static void note_events(void *owner, unsigned int num, bool added)
{
	struct conversation *v = owner;

	v->num_events = num;
	v->num_added += added;
}

static int file_of(void *owner, struct uvd_caller *caller, int fd, struct uvd_cm_file **file)
{
	struct conversation *v = owner;

	*file = fd == 1 ? v->a : fd == 2 ? v->b : NULL;
	if (*file)
		uvd_cm_file_get(*file);
	return *file ? 0 : -ENOENT;
}

static const struct uvd_cm_file_ops ops_a = { .events = note_events, .file_of = file_of },
				    ops_b = { .file_of = file_of };

void conversation_begin_with(struct conversation *v, const struct uvd_persona *persona,
			     const struct uvd_account_limits *limits)
{
	struct uvd_device_config config;
	int err;

	*v = (struct conversation){};
	ck_assert_int_eq(uvd_host_engine(&v->engine, limits, NULL), 0);
	v->account = uvd_host_account(&v->engine, UVD_HOST_UID);
	v->cm = uvd_cm_new(&v->engine, &err);
	ck_assert_ptr_nonnull(v->cm);
	uvd_config_default(&config, persona, 0);
	strcpy(config.backend, "soft");
	v->dev = uvd_device_new(&v->engine, &config, &err);
	ck_assert_int_eq(err, 0);
	v->caller = uvd_host_caller(&uvd_mem_process, &uvd_proc_local, v->account);
	v->a = uvd_cm_open(v->cm, v->account, 1, false, &ops_a, v, &err);
	v->b = uvd_cm_open(v->cm, v->account, 1, false, &ops_b, v, &err);
	ck_assert(v->a && v->b);
}

void conversation_begin(struct conversation *v)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	conversation_begin_with(v, &uvd_persona_rxe, &limits);
}

void conversation_end(struct conversation *v)
{
	char text[256];

	if (v->a)
		uvd_cm_close(v->a);
	if (v->b)
		uvd_cm_close(v->b);
	ck_assert_msg(!uvd_host_charged(&v->engine, text, sizeof(text), 0), "%s", text);
	uvd_cm_free(v->cm);
	if (v->dev)
		uvd_device_put(v->dev);
	uvd_account_put(v->account);
	uvd_engine_fini(&v->engine);
	*v = (struct conversation){};
}

long conv_write(struct conversation *v, struct uvd_cm_file *f, uint32_t command, void *in, size_t in_size, void *out,
		size_t out_size)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t in[512];
	} bytes = { .hdr = { .cmd = command, .in = in_size, .out = out ? out_size : 0 } };
	const size_t response = command == RDMA_USER_CM_CMD_CREATE_ID ? 8 : 0;
	long ret;

	if (out)
		memcpy((uint8_t *)in + response, &(uint64_t){ (uintptr_t)out }, 8);
	memcpy(bytes.in, in, in_size);
	ret = uvd_cm_write(f, &v->caller, &bytes, sizeof(bytes.hdr) + in_size);
	if (ret >= 0)
		ck_assert_int_eq(ret, sizeof(bytes.hdr) + in_size);
	return ret < 0 ? ret : 0;
}

static int plain(struct conversation *v, struct uvd_cm_file *f, uint32_t command, void *in, size_t in_size)
{
	return conv_write(v, f, command, in, in_size, NULL, 0);
}

#define PLAIN(v, f, COMMAND, in) plain(v, f, RDMA_USER_CM_CMD_##COMMAND, in, sizeof(*(in)))

uint32_t conv_create(struct conversation *v, struct uvd_cm_file *f, uint16_t ps, uint64_t uid)
{
	struct rdma_ucm_create_id in = { .uid = uid, .ps = ps, .qp_type = IBV_QPT_RC };
	struct rdma_ucm_create_id_resp out;

	ck_assert_int_eq(CONV(v, f, CREATE_ID, &in, &out), 0);
	return out.id;
}

long conv_destroy(struct conversation *v, struct uvd_cm_file *f, uint32_t id)
{
	struct rdma_ucm_destroy_id in = { .id = id };
	struct rdma_ucm_destroy_id_resp out;
	long ret = CONV(v, f, DESTROY_ID, &in, &out);

	return ret < 0 ? ret : (long)out.events_reported;
}

static struct sockaddr_in ip4(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(address),
				     .sin_port = htons(port) };
}

int conv_bind(struct conversation *v, struct uvd_cm_file *f, uint32_t id, uint32_t address, uint16_t port)
{
	struct rdma_ucm_bind in = { .id = id, .addr_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in addr = ip4(address, port);

	memcpy(&in.addr, &addr, sizeof(addr));
	return PLAIN(v, f, BIND, &in);
}

int conv_resolve(struct conversation *v, struct uvd_cm_file *f, uint32_t id, uint32_t address, uint16_t port)
{
	struct rdma_ucm_resolve_addr in = { .id = id, .timeout_ms = 1000, .dst_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in addr = ip4(address, port);

	memcpy(&in.dst_addr, &addr, sizeof(addr));
	return PLAIN(v, f, RESOLVE_ADDR, &in);
}

int conv_route(struct conversation *v, struct uvd_cm_file *f, uint32_t id)
{
	struct rdma_ucm_resolve_route in = { .id = id, .timeout_ms = 1000 };

	return PLAIN(v, f, RESOLVE_ROUTE, &in);
}

int conv_listen(struct conversation *v, struct uvd_cm_file *f, uint32_t id, unsigned int backlog)
{
	struct rdma_ucm_listen in = { .id = id, .backlog = backlog };

	return PLAIN(v, f, LISTEN, &in);
}

static struct rdma_ucm_conn_param param(bool valid, uint32_t qpn, const char *data)
{
	struct rdma_ucm_conn_param p = { .qp_num = qpn,
					 .responder_resources = 2,
					 .initiator_depth = 3,
					 .retry_count = 6,
					 .rnr_retry_count = 5,
					 .valid = valid };

	p.private_data_len = strlen(data);
	memcpy(p.private_data, data, p.private_data_len);
	return p;
}

int conv_connect(struct conversation *v, struct uvd_cm_file *f, uint32_t id, const char *data)
{
	struct rdma_ucm_connect in = { .conn_param = param(true, 0x10 + id, data), .id = id };

	return PLAIN(v, f, CONNECT, &in);
}

int conv_accept(struct conversation *v, struct uvd_cm_file *f, uint32_t id, uint64_t uid, bool valid, const char *data)
{
	struct rdma_ucm_accept in = { .uid = uid, .conn_param = param(valid, 0x10 + id, data), .id = id };

	return PLAIN(v, f, ACCEPT, &in);
}

int conv_reject(struct conversation *v, struct uvd_cm_file *f, uint32_t id, const char *data)
{
	struct rdma_ucm_reject in = { .id = id, .private_data_len = strlen(data) };

	memcpy(in.private_data, data, in.private_data_len);
	return PLAIN(v, f, REJECT, &in);
}

int conv_disconnect(struct conversation *v, struct uvd_cm_file *f, uint32_t id)
{
	struct rdma_ucm_disconnect in = { .id = id };

	return PLAIN(v, f, DISCONNECT, &in);
}

int conv_event(struct conversation *v, struct uvd_cm_file *f, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event in = {};

	return CONV(v, f, GET_EVENT, &in, ev);
}

struct rdma_ucm_event_resp conv_expect(struct conversation *v, struct uvd_cm_file *f, enum cm_event_type type,
				       uint32_t id)
{
	struct rdma_ucm_event_resp ev = {};

	ck_assert_int_eq(conv_event(v, f, &ev), 0);
	ck_assert_uint_eq(ev.event, type);
	if (type != CM_EVENT_CONNECT_REQUEST)
		ck_assert_uint_eq(ev.id, id);
	return ev;
}

void conv_expect_none(struct conversation *v, struct uvd_cm_file *f)
{
	struct rdma_ucm_event_resp ev;

	ck_assert_int_eq(conv_event(v, f, &ev), UVD_CM_WAITS);
	ck_assert(!uvd_cm_has_events(f));
}

uint32_t conv_listener(struct conversation *v, uint16_t ps, uint16_t port, unsigned int backlog)
{
	const uint32_t id = conv_create(v, v->b, ps, CONV_LISTENER_UID);

	ck_assert_int_eq(conv_bind(v, v->b, id, INADDR_ANY, port), 0);
	ck_assert_int_eq(conv_listen(v, v->b, id, backlog), 0);
	return id;
}

uint32_t conv_ready(struct conversation *v, uint16_t ps, uint16_t port)
{
	const uint32_t id = conv_create(v, v->a, ps, CONV_UID);

	ck_assert_int_eq(conv_resolve(v, v->a, id, INADDR_LOOPBACK, port), 0);
	conv_expect(v, v->a, CM_EVENT_ADDR_RESOLVED, id);
	ck_assert_int_eq(conv_route(v, v->a, id), 0);
	conv_expect(v, v->a, CM_EVENT_ROUTE_RESOLVED, id);
	return id;
}

struct pair conv_requested(struct conversation *v)
{
	struct pair p = { .listener = conv_listener(v, RDMA_PS_TCP, CONV_PORT, 5),
			  .active = conv_ready(v, RDMA_PS_TCP, CONV_PORT) };

	ck_assert_int_eq(conv_connect(v, v->a, p.active, "request"), 0);
	p.passive = conv_expect(v, v->b, CM_EVENT_CONNECT_REQUEST, 0).id;
	return p;
}

struct pair conv_replied(struct conversation *v)
{
	struct pair p = conv_requested(v);

	ck_assert_int_eq(conv_accept(v, v->b, p.passive, CONV_CHILD_UID, true, "reply"), 0);
	conv_expect(v, v->a, CM_EVENT_CONNECT_RESPONSE, p.active);
	return p;
}

struct pair conv_established(struct conversation *v)
{
	struct pair p = conv_replied(v);

	ck_assert_int_eq(conv_accept(v, v->a, p.active, 0, false, ""), 0);
	conv_expect(v, v->b, CM_EVENT_ESTABLISHED, p.passive);
	return p;
}

void conv_time_out(struct conversation *v, uint32_t number)
{
	struct cm_id *id;

	cm_lock(v->cm);
	id = cm_number_find(&v->cm->ids, number);
	ck_assert_ptr_nonnull(id);
	ck_assert_uint_ne(id->due, 0);
	cm_timer_stop(id);
	cm_timed_out(id);
	cm_unlock(v->cm);
}
