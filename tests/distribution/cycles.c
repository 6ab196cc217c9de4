/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * cycles ADDRESS NUMBER [WARM-UP]: connects and disconnects so many times, one after another, by the commands of
 * rdma/rdma_user_cm.h, and prints how long one takes. First the warm-up, of which it prints nothing. The server is another
 * process. Each end of a connection is a new identifier; there are no QPs.
 */
#include "side.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
	ADDR_RESOLVED = 0,
	ROUTE_RESOLVED = 2,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE = 5,
	ESTABLISHED = 9,
	DISCONNECTED = 10
};
/* A QP can have one connection at a time, and both ends have the same device: their numbers must differ, and be new. */
enum { CLIENT_QPN = 0x1000, SERVER_QPN = 0x800000 };

static int node;

#define COMMAND(number, in, out_size) \
	({ \
		struct { \
			struct rdma_ucm_cmd_hdr hdr; \
			__typeof__(in) body; \
		} __attribute__((packed)) cmd = { { RDMA_USER_CM_CMD_##number, sizeof(in), out_size }, in }; \
		CHECK(write(node, &cmd, sizeof(cmd)) == (ssize_t)sizeof(cmd)); \
	})

static uint32_t create(void)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id in = { 1, (uintptr_t)&resp, RDMA_PS_TCP, IBV_QPT_RC, { 0 } };

	COMMAND(CREATE_ID, in, sizeof(resp));
	return resp.id;
}

static void destroy(uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id in = { (uintptr_t)&resp, id, 0 };

	COMMAND(DESTROY_ID, in, sizeof(resp));
}

static void disconnect(uint32_t id)
{
	struct rdma_ucm_disconnect in = { id };

	COMMAND(DISCONNECT, in, 0);
}

static void accept_connection(uint32_t id, uint32_t qpn, bool valid)
{
	struct rdma_ucm_accept in = { .uid = 1, .conn_param = { .qp_num = qpn, .valid = valid }, .id = id };

	COMMAND(ACCEPT, in, 0);
}

static struct rdma_ucm_event_resp next_event(void)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event in = { (uintptr_t)&resp };

	COMMAND(GET_EVENT, in, sizeof(resp));
	return resp;
}

static void expect(uint32_t event)
{
	struct rdma_ucm_event_resp got = next_event();

	if (got.event == event)
		return;
	fprintf(stderr, "FAIL: event %u with status %d instead of %u\n", got.event, (int)got.status, event);
	_exit(1);
}

/* Tells the port by its end of a pipe. */
_Noreturn static void serve(struct sockaddr_in addr, int tell)
{
	struct rdma_ucm_query_addr_resp bound;
	struct rdma_ucm_bind bind = { .addr_size = sizeof(addr) };
	struct rdma_ucm_listen listen = { .backlog = 64 };
	struct rdma_ucm_query query = { .response = (uintptr_t)&bound, .option = RDMA_USER_CM_QUERY_ADDR };
	uint32_t qpn = SERVER_QPN;

	bind.id = listen.id = query.id = create();
	memcpy(&bind.addr, &addr, sizeof(addr));
	COMMAND(BIND, bind, 0);
	COMMAND(LISTEN, listen, 0);
	COMMAND(QUERY, query, sizeof(bound));
	memcpy(&addr, &bound.src_addr, sizeof(addr));
	CHECK(write(tell, &addr.sin_port, sizeof(addr.sin_port)) == sizeof(addr.sin_port));
	for (;;) {
		struct rdma_ucm_event_resp event = next_event();

		if (event.event == CONNECT_REQUEST) {
			accept_connection(event.id, qpn++, true);
		} else if (event.event == DISCONNECTED) {
			disconnect(event.id);
			destroy(event.id);
		} else {
			CHECK(event.event == ESTABLISHED);
		}
	}
}

static void cycle(const struct sockaddr_in *addr)
{
	static uint32_t qpn = CLIENT_QPN;
	struct rdma_ucm_resolve_addr resolve = { .timeout_ms = 2000, .dst_size = sizeof(*addr) };
	struct rdma_ucm_resolve_route route = { .timeout_ms = 2000 };
	struct rdma_ucm_connect connect = {
		.conn_param = { .qp_num = qpn++, .retry_count = 7, .rnr_retry_count = 7, .valid = 1 }
	};
	const uint32_t id = create();

	resolve.id = route.id = connect.id = id;
	memcpy(&resolve.dst_addr, addr, sizeof(*addr));
	COMMAND(RESOLVE_ADDR, resolve, 0);
	expect(ADDR_RESOLVED);
	COMMAND(RESOLVE_ROUTE, route, 0);
	expect(ROUTE_RESOLVED);
	COMMAND(CONNECT, connect, 0);
	expect(CONNECT_RESPONSE);
	accept_connection(id, 0, false);
	disconnect(id);
	expect(DISCONNECTED);
	destroy(id);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int tell[2], number, status;
	double began;
	pid_t server;

	CHECK(argc >= 3 && inet_pton(AF_INET, argv[1], &addr.sin_addr) == 1 && !pipe(tell));
	number = atoi(argv[2]);
	server = fork();
	CHECK(server >= 0);
	node = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	CHECK(node >= 0);
	if (!server) {
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		serve(addr, tell[1]);
	}
	close(tell[1]);
	CHECK(read(tell[0], &addr.sin_port, sizeof(addr.sin_port)) == sizeof(addr.sin_port));
	for (int n = argc > 3 ? atoi(argv[3]) : 0; n; n--)
		cycle(&addr);
	began = now();
	for (int n = 0; n < number; n++)
		cycle(&addr);
	printf("%d connections came and went, %.1f us each\n", number, (now() - began) * 1e6 / number);
	kill(server, SIGKILL);
	CHECK(waitpid(server, &status, 0) == server && WIFSIGNALED(status));
	return 0;
}
