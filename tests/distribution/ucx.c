/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UCX between two processes: tagged messages, active messages, put and get, every byte checked, at sizes up to those
 * that use rendezvous. UCX_TLS and UCX_NET_DEVICES choose the device, as for any program.
 *
 *	ucx [ROUNDS]
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>
#include "side.h"

#define LARGEST (1u << 20)
#define AM_ID 7

static const size_t sizes[] = { 1, 8, 200, 4096, 4097, 65536, LARGEST };

struct process {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_mem_h mem;
	ucp_rkey_h rkey;
	uint64_t remote; /* address of the peer's `area` */
	unsigned char *area; /* the peer puts to it and gets from it */
	unsigned char *message; /* buffer for messages to send and to receive */
	int fd; /* to the peer */
	bool first;
	/* The expected active message. am_data: its descriptor, while the data is still at the sender. */
	size_t am_size;
	bool am_arrived;
	void *am_data;
};

/* Different for each byte, size, round and direction. */
static unsigned char byte_at(size_t i, size_t size, unsigned round, bool from_first)
{
	return (i * 2654435761u >> 7) + i + size * 31 + round * 17 + from_first * 101;
}

static void fill(unsigned char *p, size_t size, unsigned round, bool from_first)
{
	for (size_t i = 0; i < size; i++)
		p[i] = byte_at(i, size, round, from_first);
}

static void check(const unsigned char *p, size_t size, unsigned round, bool from_first, const char *what)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i] == byte_at(i, size, round, from_first))
			continue;
		fprintf(stderr, "FAIL %s of %zu bytes, round %u: byte %zu is %#x\n", what, size, round, i, p[i]);
		_exit(1);
	}
}

static void finish(struct process *p, ucs_status_ptr_t request)
{
	ucs_status_t status = UCS_PTR_STATUS(request);

	if (UCS_PTR_IS_PTR(request)) {
		while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
			ucp_worker_progress(p->worker);
		ucp_request_free(request);
	}
	if (status != UCS_OK)
		fprintf(stderr, "FAIL: %s\n", ucs_status_string(status));
	CHECK(status == UCS_OK);
}

/* Drives UCX while it waits: if UCX emulates put and get by messages, this process must answer the peer's. */
static void recv_all(struct process *p, void *to, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = recv(p->fd, (char *)to + got, size - got, MSG_DONTWAIT);

		CHECK(n > 0 || (n < 0 && errno == EAGAIN));
		if (n > 0)
			got += n;
		ucp_worker_progress(p->worker);
	}
}

static void send_all(struct process *p, const void *from, size_t size)
{
	CHECK(send(p->fd, from, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void meet(struct process *p)
{
	char c = 0;

	send_all(p, &c, 1);
	recv_all(p, &c, 1);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_size, void *data, size_t size,
			       const ucp_am_recv_param_t *param)
{
	struct process *p = arg;

	(void)header;
	(void)header_size;
	CHECK(size == p->am_size && !p->am_arrived);
	p->am_arrived = true;
	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		p->am_data = data;
		return UCS_INPROGRESS;
	}
	memcpy(p->message, data, size);
	return UCS_OK;
}

static void start(struct process *p)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
				.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA };
	ucp_worker_params_t worker = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SINGLE };
	ucp_am_handler_param_t am = {
		.field_mask =
			UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = AM_ID,
		.cb = on_message,
		.arg = p,
	};
	ucp_mem_map_params_t map = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.length = LARGEST,
	};
	ucp_config_t *config;

	map.address = p->area = malloc(LARGEST);
	p->message = malloc(LARGEST);
	CHECK(p->area && p->message);
	CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK);
	CHECK(ucp_init(&params, config, &p->context) == UCS_OK);
	ucp_config_release(config);
	CHECK(ucp_worker_create(p->context, &worker, &p->worker) == UCS_OK);
	CHECK(ucp_worker_set_am_recv_handler(p->worker, &am) == UCS_OK);
	CHECK(ucp_mem_map(p->context, &map, &p->mem) == UCS_OK);
}

static void *exchange(struct process *p, const void *mine, size_t size)
{
	size_t other;
	void *theirs;

	send_all(p, &size, sizeof(size));
	send_all(p, mine, size);
	recv_all(p, &other, sizeof(other));
	theirs = malloc(other);
	CHECK(theirs);
	recv_all(p, theirs, other);
	return theirs;
}

static void connect_to_other(struct process *p)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *address;
	void *packed, *theirs;
	uint64_t *remote;
	size_t size;

	CHECK(ucp_worker_get_address(p->worker, &address, &size) == UCS_OK);
	params.address = theirs = exchange(p, address, size);
	CHECK(ucp_ep_create(p->worker, &params, &p->ep) == UCS_OK);
	free(theirs);
	ucp_worker_release_address(p->worker, address);
	CHECK(ucp_rkey_pack(p->context, p->mem, &packed, &size) == UCS_OK);
	theirs = exchange(p, packed, size);
	CHECK(ucp_ep_rkey_unpack(p->ep, theirs, &p->rkey) == UCS_OK);
	free(theirs);
	ucp_rkey_buffer_release(packed);
	remote = exchange(p, &(uint64_t){ (uintptr_t)p->area }, sizeof(*remote));
	p->remote = *remote;
	free(remote);
}

static void tagged(struct process *p, size_t size, unsigned round, bool sends)
{
	ucp_request_param_t none = { 0 };

	if (sends) {
		fill(p->message, size, round, p->first);
		finish(p, ucp_tag_send_nbx(p->ep, p->message, size, size + round, &none));
	} else {
		memset(p->message, 0, size);
		finish(p, ucp_tag_recv_nbx(p->worker, p->message, size, size + round, UINT64_MAX, &none));
		check(p->message, size, round, !p->first, "tagged message");
	}
	meet(p);
}

static void active(struct process *p, size_t size, unsigned round, bool sends)
{
	ucp_request_param_t none = { 0 };

	p->am_size = size;
	p->am_arrived = false;
	p->am_data = NULL;
	memset(p->message, 0, size);
	meet(p);
	if (sends) {
		fill(p->message, size, round, p->first);
		finish(p, ucp_am_send_nbx(p->ep, AM_ID, NULL, 0, p->message, size, &none));
	} else {
		while (!p->am_arrived)
			ucp_worker_progress(p->worker);
		if (p->am_data)
			finish(p, ucp_am_recv_data_nbx(p->worker, p->am_data, p->message, size, &none));
		check(p->message, size, round, !p->first, "active message");
	}
	meet(p);
}

static void put(struct process *p, size_t size, unsigned round, bool sends)
{
	ucp_request_param_t none = { 0 };

	memset(p->area, 0, size);
	meet(p);
	if (sends) {
		fill(p->message, size, round, p->first);
		finish(p, ucp_put_nbx(p->ep, p->message, size, p->remote, p->rkey, &none));
		finish(p, ucp_ep_flush_nbx(p->ep, &none));
	}
	meet(p);
	if (!sends)
		check(p->area, size, round, !p->first, "put");
	meet(p);
}

static void get(struct process *p, size_t size, unsigned round, bool reads)
{
	ucp_request_param_t none = { 0 };

	fill(p->area, size, round, p->first);
	meet(p);
	if (reads) {
		memset(p->message, 0, size);
		finish(p, ucp_get_nbx(p->ep, p->message, size, p->remote, p->rkey, &none));
		finish(p, ucp_ep_flush_nbx(p->ep, &none));
		check(p->message, size, round, !p->first, "get");
	}
	meet(p);
}

static void run(struct process *p, unsigned int rounds)
{
	static void (*const operations[])(struct process *, size_t, unsigned, bool) = { tagged, active, put, get };
	ucp_request_param_t none = { 0 };

	start(p);
	connect_to_other(p);
	for (unsigned round = 0; round < rounds; round++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
			for (size_t o = 0; o < sizeof(operations) / sizeof(*operations); o++) {
				operations[o](p, sizes[s], round, p->first);
				operations[o](p, sizes[s], round, !p->first);
			}
	if (p->first)
		ucp_ep_print_info(p->ep, stdout);
	ucp_rkey_destroy(p->rkey);
	meet(p);
	finish(p, ucp_ep_close_nbx(p->ep, &none));
	meet(p);
	ucp_mem_unmap(p->context, p->mem);
	ucp_worker_destroy(p->worker);
	ucp_cleanup(p->context);
	free(p->area);
	free(p->message);
}

int main(int argc, char **argv)
{
	struct process p = { 0 };
	int fds[2], status;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	pid = fork();
	CHECK(pid >= 0);
	p.first = pid;
	p.fd = fds[!pid];
	close(fds[!!pid]);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(&p, argc > 1 ? atoi(argv[1]) : 1);
	if (!pid)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	printf("ok\n");
	return 0;
}
