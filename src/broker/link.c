/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/link.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "broker/owners.h"
#include "util/util.h"

enum { MAX_IDLE = 16 };

struct uvd_link {
	struct uvd_privilege privilege;
	int sock;
	pthread_mutex_t lock; /* one request to the broker itself at a time */
	pthread_mutex_t idle_lock;
	unsigned int num_idle;
	int idle[MAX_IDLE];
};

struct uvd_link *uvd_link_new(int sock)
{
	struct uvd_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->privilege.ops = &uvd_link_ops;
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

struct uvd_privilege *uvd_link_privilege(struct uvd_link *link)
{
	return &link->privilege;
}

struct uvd_link *uvd_link_of(struct uvd_privilege *p)
{
	return container_of(p, struct uvd_link, privilege);
}

/*
 * Receives the answer to a request. err: the result of sending the request. Returns the answer's result; -EPIPE: the
 * other side is gone or breaks the protocol; or another negative errno.
 */
static int take_answer(int sock, int err, enum uvd_wire_op op, int64_t values[2], struct uvd_wire_fds *out)
{
	struct uvd_wire_answer a;

	if (!err)
		err = uvd_wire_answered(sock, op, &a, out);
	if (err)
		return err == -EPROTO ? -EPIPE : err;
	if (values)
		memcpy(values, a.values, sizeof(a.values));
	return a.result;
}

static int link_exchange(int sock, const struct uvd_wire_request *r, const struct uvd_wire_fds *in, int64_t values[2],
			 struct uvd_wire_fds *out)
{
	struct uvd_wire_request request = *r;

	request.version = UVD_WIRE_VERSION;
	return take_answer(sock, uvd_wire_ask(sock, &request, in), r->op, values, out);
}

static int ask_broker_all(struct uvd_link *link, const struct uvd_wire_request *r, int fd_in, int64_t values[2],
			  struct uvd_wire_fds *out)
{
	struct uvd_wire_fds in = uvd_wire_one_fd(fd_in);
	int ret;

	*out = uvd_wire_no_fds;
	pthread_mutex_lock(&link->lock);
	ret = link_exchange(link->sock, r, &in, values, out);
	pthread_mutex_unlock(&link->lock);
	if (ret == -EPIPE)
		_exit(1); /* without the broker this process can do nothing */
	return ret;
}

/* For answers with one descriptor at most. */
static int ask_broker(struct uvd_link *link, const struct uvd_wire_request *r, int fd_in, int64_t values[2],
		      int *fd_out)
{
	struct uvd_wire_fds out;
	int ret = ask_broker_all(link, r, fd_in, values, &out);

	if (fd_out)
		*fd_out = out.fd[0];
	else
		uvd_wire_close(&out);
	return ret;
}

int uvd_link_node(struct uvd_link *link, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	int64_t values[2] = { 0, 0 };
	const struct uvd_wire_request r = { .op = UVD_WIRE_NODE, .index = index, .value = *number };
	int ret = ask_broker(link, &r, -1, values, fd);

	if (ret == -EMFILE)
		uvd_link_tell(link, UVD_WIRE_WITHDRAW, index); /* we had no descriptor left for the channel */
	if (!ret)
		*number = values[0];
	*rdev = values[1];
	return ret;
}

static int ask_broker_with(struct uvd_link *link, const struct uvd_wire_request *r,
			   const struct uvd_device_config *device, int64_t values[2])
{
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int ret;

	pthread_mutex_lock(&link->lock);
	ret = take_answer(link->sock, uvd_wire_ask_with(link->sock, r, device), r->op, values, &out);
	pthread_mutex_unlock(&link->lock);
	if (ret == -EPIPE)
		_exit(1);
	return ret;
}

int uvd_link_add(struct uvd_link *link, const struct uvd_device_config *device)
{
	const struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = UVD_WIRE_ADD };
	int64_t values[2] = { 0, 0 };
	int ret = ask_broker_with(link, &r, device, values);

	return ret < 0 ? ret : (int)values[0];
}

int uvd_link_tables(struct uvd_link *link, unsigned int index, unsigned int port,
		    const struct uvd_device_config *device)
{
	const struct uvd_wire_request r = {
		.version = UVD_WIRE_VERSION, .op = UVD_WIRE_TABLES, .index = index, .value = port
	};

	return ask_broker_with(link, &r, device, NULL);
}

int uvd_link_ucap(struct uvd_link *link, const char *name, dev_t *rdev, int *fd)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_UCAP };
	int64_t values[2] = { 0, 0 };
	int ret;

	strncpy(r.name, name, sizeof(r.name) - 1);
	ret = ask_broker(link, &r, -1, values, fd);
	if (ret == -EMFILE)
		uvd_link_ucap_gone(link, name);
	*rdev = values[0];
	return ret;
}

int uvd_link_ucap_gone(struct uvd_link *link, const char *name)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_UCAP_GONE };

	strncpy(r.name, name, sizeof(r.name) - 1);
	return ask_broker(link, &r, -1, NULL, NULL);
}

int uvd_link_cm(struct uvd_link *link, dev_t *rdev, bool *aside, int *fd)
{
	int64_t values[2] = { 0, 0 };
	int ret = ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_CM }, -1, values, fd);

	if (ret == -EMFILE)
		uvd_link_tell(link, UVD_WIRE_CM_GONE, 0);
	*rdev = values[0];
	*aside = values[1];
	return ret;
}

int uvd_link_plugin(struct uvd_link *link, unsigned int slot, unsigned int nth, const char *name, int *why)
{
	struct uvd_wire_request r = { .op = name ? UVD_WIRE_PLUGIN : UVD_WIRE_PLUGIN_OPTION, .index = slot };
	int64_t values[2] = { 0, 0 };
	int ret;

	if (name)
		strncpy(r.name, name, sizeof(r.name) - 1);
	else
		r.value = nth;
	ret = ask_broker(link, &r, -1, values, why);
	return ret ? ret : (int)values[0];
}

int uvd_link_peer_owners(struct uvd_link *link, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_PEER_OWNERS, .tid = pid, .value = uid };
	int fd = -1, ret;

	if (pid <= 0)
		return -ESRCH;
	ret = ask_broker(link, &r, -1, NULL, &fd);
	if (!ret && fd < 0)
		ret = -EIO;
	return ret ? ret : uvd_owners_unpack(fd, uids, max);
}

int uvd_link_reload(struct uvd_link *link, int *fd)
{
	return ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_RELOAD }, -1, NULL, fd);
}

int uvd_link_tell(struct uvd_link *link, enum uvd_wire_op op, unsigned int index)
{
	return ask_broker(link, &(struct uvd_wire_request){ .op = op, .index = index }, -1, NULL, NULL);
}

int uvd_link_port(struct uvd_link *link, unsigned int index, unsigned int port, bool up)
{
	return ask_broker(link,
			  &(struct uvd_wire_request){ .op = UVD_WIRE_PORT, .index = index, .value = port, .flag = up },
			  -1, NULL, NULL);
}

int uvd_link_counters(struct uvd_link *link, unsigned int index, unsigned int port,
		      const uint64_t values[UVD_PORT_COUNTERS])
{
	struct uvd_wire_request r = { .op = UVD_WIRE_COUNTERS, .index = index, .value = port };

	memcpy(r.counters, values, sizeof(r.counters));
	return ask_broker(link, &r, -1, NULL, NULL);
}

int uvd_link_life(struct uvd_link *link, unsigned int *before, enum uvd_log_level *level)
{
	int64_t values[2] = { 0, 0 };
	int ret = ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_LIFE }, -1, values, NULL);

	*before = values[0];
	*level = values[1] >= UVD_ERR && values[1] <= UVD_DEBUG ? values[1] : UVD_INFO;
	return ret;
}

int uvd_link_queues(struct uvd_link *link, int *fd)
{
	return ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_QUEUES }, -1, NULL, fd);
}

int uvd_link_backing(struct uvd_link *link, int *number, int *memfd)
{
	int64_t values[2] = { 0, 0 };
	int ret = ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_BACKING }, -1, values, memfd);

	*number = (int)values[0];
	return ret;
}

void uvd_link_backing_gone(struct uvd_link *link, int number)
{
	ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_BACKING_GONE, .value = number }, -1, NULL, NULL);
}

int uvd_link_ears(struct uvd_link *link, int *inotify, int *bell)
{
	struct uvd_wire_fds out;
	int ret = ask_broker_all(link, &(struct uvd_wire_request){ .op = UVD_WIRE_EARS }, -1, NULL, &out);

	*inotify = out.fd[0];
	*bell = out.fd[1];
	return ret;
}

int uvd_link_watch(struct uvd_link *link, int number)
{
	int64_t values[2] = { 0, 0 };
	int ret =
		ask_broker(link, &(struct uvd_wire_request){ .op = UVD_WIRE_WATCH, .value = number }, -1, values, NULL);

	return ret ? ret : (int)values[0];
}

static int link_connect(struct uvd_link *link, enum uvd_wire_kind kind, pid_t tid, pid_t *child)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_CONNECT, .index = kind, .value = tid };
	int64_t values[2] = { 0, 0 };
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ret = ask_broker(link, &r, pair[1], values, NULL);
	if (child)
		*child = (pid_t)values[0];
	close(pair[1]);
	if (ret)
		close(pair[0]);
	return ret ? ret : pair[0];
}

/* Returns a socket for questions, or a negative errno. *used: a question was asked on it before. */
static int take_idle(struct uvd_link *link, bool *used)
{
	int sock = -1;

	pthread_mutex_lock(&link->idle_lock);
	if (link->num_idle)
		sock = link->idle[--link->num_idle];
	pthread_mutex_unlock(&link->idle_lock);
	*used = sock >= 0;
	return sock >= 0 ? sock : link_connect(link, UVD_WIRE_QUESTIONS, 0, NULL);
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

static int link_ask(struct uvd_link *link, const struct uvd_wire_request *r, const struct uvd_wire_fds *in,
		    int64_t values[2], struct uvd_wire_fds *out)
{
	int sock, ret;
	bool used;

	do {
		sock = take_idle(link, &used);
		*out = uvd_wire_no_fds;
		if (sock < 0)
			return sock;
		ret = link_exchange(sock, r, in, values, out);
		if (ret == -EPIPE)
			close(sock);
	} while (ret == -EPIPE && used); /* the child behind a used socket may have died: try another */
	if (ret == -EPIPE)
		return -ESRCH;
	put_idle(link, sock);
	return ret;
}

int uvd_link_ask(struct uvd_link *link, const struct uvd_wire_request *r, int64_t values[2], struct uvd_wire_fds *out)
{
	return link_ask(link, r, &uvd_wire_no_fds, values, out);
}

int uvd_link_sockets(struct uvd_link *link, const uint64_t *inos, unsigned int num, bool *used, uint64_t *cpu_ns)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_SOCKETS, .tid = getpid() };
	const ssize_t size = (ssize_t)(num * sizeof(*inos));
	struct uvd_wire_fds in, out;
	int64_t values[2] = {};
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	in = uvd_wire_one_fd(pair[1]);
	ret = send(pair[0], inos, size, MSG_NOSIGNAL) == size ? link_ask(link, &r, &in, values, &out) : -errno;
	if (!ret && recv(pair[0], used, num, MSG_DONTWAIT) != (ssize_t)num)
		ret = -EPROTO;
	*cpu_ns = values[0];
	close(pair[0]);
	close(pair[1]);
	return ret;
}

int uvd_link_loan(struct uvd_link *link, pid_t tid, pid_t *child)
{
	return link_connect(link, UVD_WIRE_LOAN, tid, child);
}

int uvd_link_loan_step(int loan, const struct uvd_wire_request *r, int fd, int64_t values[2], struct uvd_wire_fds *out)
{
	struct uvd_wire_fds in = uvd_wire_one_fd(fd);

	return link_exchange(loan, r, &in, values, out);
}
