/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The requests that the broker's own loop serves. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <uverbsd/log.h>
#include "broker/loop.h"
#include "broker/node.h"
#include "broker/owners.h"
#include "util/util.h"

/* One request, and the place for its answer. */
struct served {
	struct uvd_wire_request r;
	struct uvd_device_config device; /* that follows the request, if wire.c's row of the operation says so */
	struct uvd_wire_fds in;
	struct uvd_wire_answer a;
	int fd, fd2; /* go with the answer; -1: none */
};

static int serve_connect(struct broker *b, struct served *s)
{
	const struct uvd_child_files files = { .nodes = b->view, .ways = &b->ways, .queues = b->queues.mount };
	int ret = s->r.value >= 0 && s->r.value <= INT32_MAX
			  ? uvd_children_start(&b->children, s->r.index, s->in.fd[0], s->r.value, &files)
			  : -EINVAL;

	s->a.values[0] = ret;
	return ret < 0 ? ret : 0;
}

/* Returns the place for one more node whose clients are asked about; or NULL, logged. */
static _Atomic uint64_t *broker_node_place(struct broker *b)
{
	_Atomic uint64_t *place = uvd_nodes_place(b->nodes);

	if (!place)
		uvd_logf(b->config->log, UVD_ERR, "too many devices were removed that clients still have open");
	return place;
}

static int serve_node(struct broker *b, struct served *s)
{
	_Atomic uint64_t *place = broker_node_place(b);
	int number = s->r.value, err;
	dev_t rdev = 0;

	if (s->r.value < -1 || s->r.value >= UVD_NODE_NUMBERS)
		return -EINVAL;
	if (!place)
		return -ENFILE;
	err = b->config->ops->node(b->config->arg, s->r.index, &number, &rdev, &s->fd);
	if (err)
		return err;
	s->a.values[0] = number;
	s->a.values[1] = rdev;
	*place = rdev;
	return 0;
}

static int serve_add(struct broker *b, struct served *s)
{
	int ret = b->config->ops->add(b->config->arg, &s->device);

	s->a.values[0] = ret;
	return ret < 0 ? ret : 0;
}

static int serve_tables(struct broker *b, struct served *s)
{
	if (s->r.value < 0 || s->r.value > UVD_MAX_PORTS)
		return -EINVAL;
	return b->config->ops->tables(b->config->arg, s->r.index, s->r.value, &s->device);
}

static int serve_adapter(struct broker *b, struct served *s)
{
	dev_t rdev = 0;
	int err = b->config->ops->adapter(b->config->arg, b->engine, s->r.index, &rdev);

	if (!err)
		b->nodes->adapters[s->r.index] = rdev;
	return err;
}

static int serve_publish(struct broker *b, struct served *s)
{
	return b->config->ops->publish(b->config->arg, s->r.index);
}

static int serve_withdraw(struct broker *b, struct served *s)
{
	return b->config->ops->withdraw(b->config->arg, s->r.index);
}

static bool serve_has_port(const struct served *s)
{
	return s->r.value > 0 && s->r.value < 256;
}

static int serve_port(struct broker *b, struct served *s)
{
	return serve_has_port(s) ? b->config->ops->port(b->config->arg, s->r.index, s->r.value, s->r.flag) : -EINVAL;
}

static int serve_counters(struct broker *b, struct served *s)
{
	return serve_has_port(s) ? b->config->ops->counters(b->config->arg, s->r.index, s->r.value, s->r.counters)
				 : -EINVAL;
}

static int serve_ucap(struct broker *b, struct served *s)
{
	dev_t rdev = 0;
	int err = b->config->ops->ucap(b->config->arg, s->r.name, &rdev, &s->fd);

	if (!err)
		s->a.values[0] = rdev;
	return err;
}

static int serve_ucap_gone(struct broker *b, struct served *s)
{
	return b->config->ops->ucap_gone(b->config->arg, s->r.name);
}

static int serve_cm(struct broker *b, struct served *s)
{
	_Atomic uint64_t *place = broker_node_place(b);
	bool aside = false;
	dev_t rdev = 0;
	int err = place ? b->config->ops->cm(b->config->arg, &rdev, &aside, &s->fd) : -ENFILE;

	if (err)
		return err;
	s->a.values[0] = rdev;
	s->a.values[1] = aside;
	*place = rdev;
	return 0;
}

static int serve_cm_gone(struct broker *b, struct served *s)
{
	return b->config->ops->cm_gone(b->config->arg);
}

static int serve_queues(struct broker *b, struct served *s)
{
	int err = uvd_queue_files_begin(&b->queues, b->config->log);

	if (err)
		return err;
	b->nodes->queues = b->queues.st_dev;
	s->fd = fcntl(b->queues.channel, F_DUPFD_CLOEXEC, 0);
	return s->fd < 0 ? -errno : 0;
}

static int serve_backing(struct broker *b, struct served *s)
{
	int memfd, ret = uvd_queue_files_back(&b->queues, &memfd);

	if (ret < 0)
		return ret;
	s->a.values[0] = ret;
	s->fd = fcntl(memfd, F_DUPFD_CLOEXEC, 0);
	if (s->fd >= 0)
		return 0;
	uvd_queue_files_drop(&b->queues, ret);
	return -ENFILE;
}

static int serve_backing_gone(struct broker *b, struct served *s)
{
	return uvd_queue_files_drop(&b->queues, s->r.value);
}

static int serve_ears(struct broker *b, struct served *s)
{
	int err = uvd_queue_files_ears(&b->queues);

	if (err)
		return err;
	s->fd = fcntl(b->queues.inotify, F_DUPFD_CLOEXEC, 0);
	s->fd2 = s->fd < 0 ? -1 : fcntl(b->queues.bell, F_DUPFD_CLOEXEC, 0);
	return s->fd2 < 0 ? -ENFILE : 0;
}

static int serve_watch(struct broker *b, struct served *s)
{
	int ret = uvd_queue_files_watch(&b->queues, s->r.value);

	s->a.values[0] = ret;
	return ret < 0 ? ret : 0;
}

static int serve_ready(struct broker *b, struct served *s)
{
	int err = b->config->ops->ready(b->config->arg);

	b->ready = b->ready || !err;
	uvd_broker_pass_hup(b);
	return err;
}

static int serve_reload(struct broker *b, struct served *s)
{
	if (!b->config->ops->reload || !b->ready)
		return -EINVAL;
	return b->config->ops->reload(b->config->arg, &s->fd);
}

static int serve_alive(struct broker *b, struct served *s)
{
	if (b->config->ops->alive)
		b->config->ops->alive(b->config->arg);
	return 0;
}

static int serve_restart(struct broker *b, struct served *s)
{
	return uvd_broker_restart(b);
}

/*
 * An engine process may be an attacker's: it cannot have the broker log less than the administrator has chosen at the start, but
 * more.
 */
static int serve_log_level(struct broker *b, struct served *s)
{
	b->level = s->r.index;
	uvd_log_set_most(b->config->log, b->level > b->least_level ? b->level : b->least_level);
	return 0;
}

static int serve_life(struct broker *b, struct served *s)
{
	s->a.values[0] = b->num_starts - 1;
	s->a.values[1] = b->level;
	return 0;
}

/*
 * Copies a plug-in into a slot. Its constructors run in a child meanwhile, which does not inherit the table.
 */
static int broker_copy_plugin(struct broker *b, struct served *s, int64_t nth, const char *name)
{
	if (madvise((void *)b->view, sizeof(*b->view), MADV_DONTFORK))
		return -errno;
	s->a.values[0] = b->config->ops->plugin(b->config->arg, s->r.index, nth, name, &s->fd);
	return madvise((void *)b->view, sizeof(*b->view), MADV_DOFORK) ? -errno : 0;
}

static int serve_plugin(struct broker *b, struct served *s)
{
	return broker_copy_plugin(b, s, -1, s->r.name);
}

static int serve_plugin_option(struct broker *b, struct served *s)
{
	return broker_copy_plugin(b, s, s->r.value, NULL);
}

/* Waits for nobody: the user namespace and the ids of a process can be read without its locks. */
static int serve_peer_owners(struct broker *b, struct served *s)
{
	uid_t uids[UVD_WIRE_OWNERS_MAX];
	int ret = s->r.value >= 0 && s->r.value <= UINT32_MAX
			  ? uvd_peer_owners(s->r.tid, s->r.value, uids, UVD_WIRE_OWNERS_MAX)
			  : -EINVAL;

	if (ret >= 0)
		ret = uvd_owners_pack(uids, ret);
	if (ret >= 0)
		s->fd = ret;
	return ret < 0 ? ret : 0;
}

/*
 * The operations that the broker's own loop serves: all of UVD_WIRE_CONTROL. A function returns the answer's result, and must not
 * wait for a client.
 */
static int (*const serve_rows[UVD_WIRE_OPS])(struct broker *b, struct served *s) = {
	[UVD_WIRE_CONNECT] = serve_connect,
	[UVD_WIRE_NODE] = serve_node,
	[UVD_WIRE_ADD] = serve_add,
	[UVD_WIRE_TABLES] = serve_tables,
	[UVD_WIRE_ADAPTER] = serve_adapter,
	[UVD_WIRE_PUBLISH] = serve_publish,
	[UVD_WIRE_WITHDRAW] = serve_withdraw,
	[UVD_WIRE_PORT] = serve_port,
	[UVD_WIRE_COUNTERS] = serve_counters,
	[UVD_WIRE_UCAP] = serve_ucap,
	[UVD_WIRE_UCAP_GONE] = serve_ucap_gone,
	[UVD_WIRE_CM] = serve_cm,
	[UVD_WIRE_CM_GONE] = serve_cm_gone,
	[UVD_WIRE_PLUGIN] = serve_plugin,
	[UVD_WIRE_PLUGIN_OPTION] = serve_plugin_option,
	[UVD_WIRE_PEER_OWNERS] = serve_peer_owners,
	[UVD_WIRE_QUEUES] = serve_queues,
	[UVD_WIRE_BACKING] = serve_backing,
	[UVD_WIRE_BACKING_GONE] = serve_backing_gone,
	[UVD_WIRE_EARS] = serve_ears,
	[UVD_WIRE_WATCH] = serve_watch,
	[UVD_WIRE_READY] = serve_ready,
	[UVD_WIRE_ALIVE] = serve_alive,
	[UVD_WIRE_RELOAD] = serve_reload,
	[UVD_WIRE_RESTART] = serve_restart,
	[UVD_WIRE_LOG_LEVEL] = serve_log_level,
	[UVD_WIRE_LIFE] = serve_life,
};

int uvd_broker_answer(struct broker *b)
{
	struct served s = { .fd = -1, .fd2 = -1 };
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int err = uvd_wire_asked_with(b->sock, UVD_WIRE_CONTROL, &s.r, &s.device, &s.in);

	if (err && err != -EMFILE) {
		if (err != -EPIPE)
			uvd_logf(b->config->log, UVD_ERR, "the engine process sent an invalid request (%s): killing it",
				 uvd_errno_name(err));
		return err;
	}
	s.a = (struct uvd_wire_answer){ .version = UVD_WIRE_VERSION, .op = s.r.op };
	if (!err)
		err = serve_rows[s.r.op] ? serve_rows[s.r.op](b, &s) : -EINVAL;
	s.a.result = err;
	out.fd[0] = s.fd;
	out.fd[1] = s.fd2;
	if (s.a.result < 0)
		uvd_wire_close(&out);
	s.a.num_fds = (out.fd[0] >= 0) + (out.fd[1] >= 0);
	err = uvd_wire_answer(b->sock, &s.a, &out);
	if (err && err != -EPIPE)
		uvd_logf(b->config->log, UVD_ERR, "the engine process does not read its answers (%s): killing it",
			 uvd_errno_name(err));
	uvd_wire_close(&s.in);
	uvd_wire_close(&out);
	return err;
}
