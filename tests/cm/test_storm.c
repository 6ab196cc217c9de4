/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Threads that give commands at random, to identifiers that may be anybody's and in any state: nothing is left of them. */
#include <pthread.h>
#include "conversation.h"

enum { THREADS = 4, ROUNDS = 20000, LONG_ROUNDS = 400000, IDS = 12, PORTS = 3 };

static struct conversation v;

struct stormer {
	pthread_t thread;
	unsigned int seed;
	struct uvd_caller caller;
	unsigned int done; /* commands that succeeded */
};

static unsigned int any(struct stormer *s, unsigned int n)
{
	return (unsigned int)rand_r(&s->seed) % n;
}

static struct sockaddr_in any_address(struct stormer *s)
{
	static const uint32_t hosts[] = { INADDR_LOOPBACK, INADDR_LOOPBACK, INADDR_ANY, 0xe0000001 };

	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(any(s, PORTS) ? CONV_PORT + any(s, PORTS) : 0),
				     .sin_addr.s_addr = htonl(hosts[any(s, UVD_COUNT(hosts))]) };
}

static struct rdma_ucm_conn_param any_param(struct stormer *s)
{
	return (struct rdma_ucm_conn_param){ .qp_num = any(s, 1 << 20),
					     .private_data_len = any(s, 60),
					     .valid = any(s, 4) != 0 };
}

/* Puts the fields of the command in that decide whether it can succeed. */
static void fill(struct stormer *s, uint32_t command, void *in)
{
	const struct sockaddr_in addr = any_address(s);
	const uint32_t id = any(s, IDS);

	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		((struct rdma_ucm_create_id *)in)->uid = any(s, 4);
		((struct rdma_ucm_create_id *)in)->ps = any(s, 3) ? RDMA_PS_TCP : RDMA_PS_UDP;
		break;
	case RDMA_USER_CM_CMD_BIND:
		*(struct rdma_ucm_bind *)in = (struct rdma_ucm_bind){ .id = id, .addr_size = sizeof(addr) };
		memcpy(&((struct rdma_ucm_bind *)in)->addr, &addr, sizeof(addr));
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		*(struct rdma_ucm_resolve_addr *)in =
			(struct rdma_ucm_resolve_addr){ .id = id, .dst_size = sizeof(addr) };
		memcpy(&((struct rdma_ucm_resolve_addr *)in)->dst_addr, &addr, sizeof(addr));
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
	case RDMA_USER_CM_CMD_LISTEN:
		*(struct rdma_ucm_listen *)in = (struct rdma_ucm_listen){ .id = id, .backlog = 1 + any(s, 3) };
		break;
	case RDMA_USER_CM_CMD_CONNECT:
		*(struct rdma_ucm_connect *)in = (struct rdma_ucm_connect){ .id = id, .conn_param = any_param(s) };
		((struct rdma_ucm_connect *)in)->conn_param.valid = 1;
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		*(struct rdma_ucm_accept *)in =
			(struct rdma_ucm_accept){ .id = id, .uid = 1 + any(s, 3), .conn_param = any_param(s) };
		break;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		*(struct rdma_ucm_join_mcast *)in =
			(struct rdma_ucm_join_mcast){ .id = id, .uid = 1, .addr_size = sizeof(addr) };
		memcpy(&((struct rdma_ucm_join_mcast *)in)->addr, &addr, sizeof(addr));
		break;
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		*(struct rdma_ucm_migrate_id *)in = (struct rdma_ucm_migrate_id){ .id = id, .fd = 1 + any(s, 2) };
		break;
	case RDMA_USER_CM_CMD_DISCONNECT:
	case RDMA_USER_CM_CMD_REJECT:
		*(uint32_t *)in = id;
		break;
	default:
		((uint32_t *)in)[2] = id; /* behind the response's address */
	}
}

/* Makes the timer of some identifier run out. */
static void time_out_any(struct stormer *s)
{
	struct cm_id *id;

	cm_lock(v.cm);
	id = cm_number_find(&v.cm->ids, any(s, IDS));
	if (id && id->due) {
		cm_timer_stop(id);
		cm_timed_out(id);
	}
	cm_unlock(v.cm);
}

static void command_any(struct stormer *s)
{
	static const struct {
		uint32_t command;
		size_t in, out;
	} rows[] = {
		{ RDMA_USER_CM_CMD_CREATE_ID, 24, 4 },	    { RDMA_USER_CM_CMD_DESTROY_ID, 16, 4 },
		{ RDMA_USER_CM_CMD_BIND, 136, 0 },	    { RDMA_USER_CM_CMD_RESOLVE_ADDR, 272, 0 },
		{ RDMA_USER_CM_CMD_RESOLVE_ADDR, 272, 0 },  { RDMA_USER_CM_CMD_RESOLVE_ROUTE, 8, 0 },
		{ RDMA_USER_CM_CMD_RESOLVE_ROUTE, 8, 0 },   { RDMA_USER_CM_CMD_LISTEN, 8, 0 },
		{ RDMA_USER_CM_CMD_CONNECT, 288, 0 },	    { RDMA_USER_CM_CMD_CONNECT, 288, 0 },
		{ RDMA_USER_CM_CMD_ACCEPT, 296, 0 },	    { RDMA_USER_CM_CMD_ACCEPT, 296, 0 },
		{ RDMA_USER_CM_CMD_REJECT, 264, 0 },	    { RDMA_USER_CM_CMD_DISCONNECT, 4, 0 },
		{ RDMA_USER_CM_CMD_GET_EVENT, 8, 336 },	    { RDMA_USER_CM_CMD_GET_EVENT, 8, 336 },
		{ RDMA_USER_CM_CMD_INIT_QP_ATTR, 16, 144 }, { RDMA_USER_CM_CMD_QUERY, 16, 440 },
		{ RDMA_USER_CM_CMD_QUERY_ROUTE, 16, 208 },  { RDMA_USER_CM_CMD_JOIN_MCAST, 152, 4 },
		{ RDMA_USER_CM_CMD_LEAVE_MCAST, 16, 4 },    { RDMA_USER_CM_CMD_MIGRATE_ID, 16, 4 },
	};
	const unsigned int i = any(s, UVD_COUNT(rows));
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint64_t in[64];
	} bytes = { .hdr = { rows[i].command, rows[i].in, rows[i].out } };
	uint64_t out[64];

	fill(s, rows[i].command, bytes.in);
	if (rows[i].out)
		bytes.in[rows[i].command == RDMA_USER_CM_CMD_CREATE_ID] = (uintptr_t)out;
	s->done += uvd_cm_write(any(s, 2) ? v.a : v.b, &s->caller, &bytes, sizeof(bytes.hdr) + rows[i].in) > 0;
}

static void *storm(void *arg)
{
	const unsigned int rounds = suite_is_long() ? LONG_ROUNDS : ROUNDS;
	struct stormer *s = arg;

	s->caller = uvd_host_caller(&uvd_mem_self, &uvd_proc_local, v.account);
	for (unsigned int i = 0; i < rounds; i++)
		if (any(s, 50))
			command_any(s);
		else
			time_out_any(s);
	return NULL;
}

START_TEST(test_commands_of_many_threads_leave_nothing_behind)
{
	struct stormer stormers[THREADS] = {};

	conversation_begin(&v);
	for (unsigned int i = 0; i < THREADS; i++) {
		stormers[i].seed = i + 1;
		ck_assert_int_eq(pthread_create(&stormers[i].thread, NULL, storm, &stormers[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(stormers[i].thread, NULL);
		/* Otherwise the storm would test nothing. */
		ck_assert_uint_gt(stormers[i].done, ROUNDS / 20);
	}
	conversation_end(&v);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("storm");

	tcase_add_test(t, test_commands_of_many_threads_leave_nothing_behind);
	tcase_set_timeout(t, 300);
	return run_suite("cm storm", t);
}
