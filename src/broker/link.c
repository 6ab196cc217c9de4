/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/link.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_IDLE = 16 };

struct uvd_link {
	int sock;
	pthread_mutex_t lock; /* of requests to the broker itself */
	pthread_mutex_t idle_lock;
	unsigned int num_idle;
	int idle[MAX_IDLE];
};

struct uvd_link *uvd_link_new(int sock)
{
	struct uvd_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->sock = sock;
	pthread_mutex_init(&link->lock, NULL);
	pthread_mutex_init(&link->idle_lock, NULL);
	return link;
}

void uvd_link_free(struct uvd_link *link)
{
	if (!link)
		return;
	while (link->num_idle)
		close(link->idle[--link->num_idle]);
	close(link->sock);
	pthread_mutex_destroy(&link->lock);
	pthread_mutex_destroy(&link->idle_lock);
	free(link);
}

static int exchange(int sock, const struct uvd_wire_request *r, const struct uvd_wire_fds *in, int64_t values[2],
		    struct uvd_wire_fds *out, int milliseconds)
{
	struct uvd_wire_request request = *r;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct uvd_wire_answer a;
	int err;

	request.version = UVD_WIRE_VERSION;
	err = uvd_wire_ask(sock, &request, in);
	if (!err && milliseconds && poll(&p, 1, milliseconds) <= 0)
		return -ETIME;
	err = err ?: uvd_wire_answered(sock, r->op, &a, out);
	if (err)
		return err == -EPROTO ? -EPIPE : err;
	if (values)
		memcpy(values, a.values, sizeof(a.values));
	return a.result;
}

static int ask_broker(struct uvd_link *link, const struct uvd_wire_request *r, int fd_in, int64_t values[2], int *fd_out)
{
	struct uvd_wire_fds in = { { fd_in, -1, -1 } }, out = uvd_wire_no_fds;
	int ret;

	pthread_mutex_lock(&link->lock);
	ret = exchange(link->sock, r, &in, values, &out, 0);
	pthread_mutex_unlock(&link->lock);
	if (ret == -EPIPE)
		_exit(1); /* without the broker there is nothing that this process can do */
	if (fd_out)
		*fd_out = out.fd[0];
	else
		uvd_wire_close(&out);
	return ret;
}

int uvd_link_node(struct uvd_link *link, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	int64_t values[2] = { 0, 0 };
	int ret = ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_NODE, .index = index }, -1, values, fd);

	*number = values[0];
	*rdev = values[1];
	return ret;
}

int uvd_link_ucap(struct uvd_link *link, const char *name, dev_t *rdev, int *fd)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_UCAP };
	int64_t values[2] = { 0, 0 };
	int ret;

	strncpy(r.name, name, sizeof(r.name) - 1);
	ret = ask_broker(link, &r, -1, values, fd);
	*rdev = values[0];
	return ret;
}

int uvd_link_ucap_gone(struct uvd_link *link, const char *name)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_UCAP_GONE };

	strncpy(r.name, name, sizeof(r.name) - 1);
	return ask_broker(link, &r, -1, NULL, NULL);
}

int uvd_link_tell(struct uvd_link *link, enum uvd_wire_op op, unsigned int index)
{
	return ask_broker(link, &(struct uvd_wire_request){ .op = op, .index = index }, -1, NULL, NULL);
}

int uvd_link_port(struct uvd_link *link, unsigned int index, unsigned int port, bool up)
{
	return ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_PORT, .index = index, .value = port, .flag = up }, -1,
			  NULL, NULL);
}

static int connect_to(struct uvd_link *link, enum uvd_wire_kind kind)
{
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ret = ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_CONNECT, .index = kind }, pair[1], NULL, NULL);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	return ret ? ret : pair[0];
}

static int take_idle(struct uvd_link *link)
{
	int sock = -1;

	pthread_mutex_lock(&link->idle_lock);
	if (link->num_idle)
		sock = link->idle[--link->num_idle];
	pthread_mutex_unlock(&link->idle_lock);
	return sock >= 0 ? sock : connect_to(link, UVD_WIRE_QUESTIONS);
}

static void put_idle(struct uvd_link *link, int sock)
{
	pthread_mutex_lock(&link->idle_lock);
	if (link->num_idle < MAX_IDLE) {
		link->idle[link->num_idle++] = sock;
		sock = -1;
	}
	pthread_mutex_unlock(&link->idle_lock);
	if (sock >= 0)
		close(sock);
}

int uvd_link_ask(struct uvd_link *link, const struct uvd_wire_request *r, int64_t values[2], struct uvd_wire_fds *out,
		 int milliseconds)
{
	int sock = take_idle(link), ret;

	*out = uvd_wire_no_fds;
	if (sock < 0)
		return sock;
	ret = exchange(sock, r, &uvd_wire_no_fds, values, out, milliseconds);
	/* Whoever has not answered yet might answer the next question with it. */
	if (ret == -ETIME || ret == -EPIPE) {
		close(sock);
		return ret == -ETIME ? -EINTR : -ESRCH;
	}
	put_idle(link, sock);
	return ret;
}

int uvd_link_loan(struct uvd_link *link)
{
	return connect_to(link, UVD_WIRE_LOAN);
}

int uvd_link_loan_step(int loan, const struct uvd_wire_request *r, int fd, int64_t values[2], struct uvd_wire_fds *out)
{
	return exchange(loan, r, &(struct uvd_wire_fds){ { fd, -1, -1 } }, values, out, 0);
}
