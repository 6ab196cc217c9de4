/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Privileged operations of a process that has the privileges itself. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include <uverbsd/registration.h>
#include "broker/node.h"
#include "broker/owners.h"
#include "broker/privilege.h"
#include "broker/register.h"
#include "broker/serve.h"
#include "broker/way.h"
#include "util/util.h"

struct local {
	struct uvd_privilege privilege;
	struct uvd_log *log;
	const struct uvd_local_nodes *nodes;
	struct uvd_ways ways;
};

static struct local *local_of(struct uvd_privilege *p)
{
	return container_of(p, struct local, privilege);
}

/* ---- loans -------------------------------------------------------------------------------------------------------- */

static int local_place_take(struct uvd_privilege *p, struct uvd_loan_place *place, pid_t tid,
			    const struct uvd_owners *owners)
{
	int ret = uvd_ways_take(&local_of(p)->ways, owners);

	if (ret >= 0)
		place->number = ret;
	return ret < 0 ? ret : 0;
}

static bool local_place_put(struct uvd_privilege *p, struct uvd_loan_place *place)
{
	if (place->number >= 0 && !uvd_ways_put(&local_of(p)->ways, place->number))
		return false;
	place->number = -1;
	return true;
}

/* The loan itself has waited for its sender. */
static void local_place_wait(struct uvd_privilege *p, const struct uvd_loan_place *place, unsigned int ms)
{
}

static void local_place_drop(struct uvd_privilege *p, struct uvd_loan_place *place)
{
}

static int local_seize(struct uvd_privilege *p, struct uvd_loan *l, pid_t tid, int nice)
{
	return uvd_borrow_seize(&l->b, tid);
}

static int local_stop(struct uvd_privilege *p, struct uvd_loan *l)
{
	return uvd_borrow_stop(&l->b);
}

/* The place is free again if its sender has ended, as it has but for an attack. */
static long local_pass(struct uvd_privilege *p, struct uvd_loan *l, int fd)
{
	long number;

	if (fd < 0)
		return -EPERM;
	number = uvd_way_pass(&local_of(p)->ways, l->place->number, &l->b, fd);
	local_place_put(p, l->place);
	return number;
}

static int64_t local_register(struct uvd_privilege *p, struct uvd_loan *l, struct uvd_registration *r)
{
	long number;
	int err;

	r->executed = false;
	err = uvd_borrow_stop(&l->b);
	if (err)
		return err;
	number = l->number < 0 ? local_pass(p, l, r->fd) : l->number;
	return number < 0 ? number : uvd_borrow_register_by(&l->b, number, &r->order, &r->executed);
}

/* This process serves the files of queues: it must not wait for itself. */
static int local_replace(struct uvd_privilege *p, struct uvd_loan *l, uint64_t name, unsigned int position)
{
	return -EOPNOTSUPP;
}

static int local_release(struct uvd_privilege *p, struct uvd_loan *l, bool close_it, const long *result)
{
	if (close_it)
		uvd_borrow_call(&l->b, UVD_SYSCALL_CLOSE, (long[3]){ l->way });
	return uvd_borrow_release(&l->b, result);
}

static void local_close(struct uvd_privilege *p, struct uvd_loan *l)
{
	uvd_borrow_close(&l->b);
}

static bool local_end_overdue(struct uvd_privilege *p, const struct uvd_loan *l)
{
	uvd_log_limited(local_of(p)->log, UVD_WARN, "thread %d did not come back from its loan: killing its process",
			l->b.tid);
	uvd_borrow_kill(&l->b);
	return true;
}

static bool local_dying(struct uvd_privilege *p, pid_t tid)
{
	return uvd_borrow_dying(tid);
}

static void local_end_loans(struct uvd_privilege *p)
{
	uvd_ways_end(&local_of(p)->ways);
}

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

/* For uvd_node_make(). Returns the channel's descriptor or a negative errno. */
static int local_open_node(void *arg, struct uvd_node *node)
{
	const struct local *local = arg;
	int fd = uvd_channel_make(node, local->log), err;

	if (fd < 0)
		return fd;
	err = uvd_node_permit(node, local->nodes->mode, local->nodes->group, local->log);
	if (!err)
		return fd;
	uvd_node_remove(node);
	close(fd);
	return err;
}

static int local_make_node(struct uvd_privilege *p, unsigned int index, int number, struct uvd_node *node, int *fd)
{
	struct local *local = local_of(p);
	int ret = uvd_node_make(node, number, local->nodes->orphans, local_open_node, local, local->log);

	*fd = ret;
	return ret < 0 ? ret : 0;
}

/* CUSE makes its nodes with mode 0600. A udev rule may give this one to others, as it may the kernel's. */
static int local_open_ucap(void *arg, struct uvd_node *node)
{
	return uvd_channel_make(node, arg);
}

static int local_make_ucap(struct uvd_privilege *p, const char *name, struct uvd_node *node, int *fd)
{
	struct local *local = local_of(p);
	int ret = uvd_node_make_ucap(node, name, local->nodes->orphans, local_open_ucap, local->log, local->log);

	*fd = ret;
	return ret < 0 ? ret : 0;
}

static int local_make_cm(struct uvd_privilege *p, struct uvd_node *node, int *fd)
{
	struct local *local = local_of(p);
	int ret = uvd_node_make_cm(node, local->nodes->orphans, local_open_node, local, local->log);

	*fd = ret;
	return ret < 0 ? ret : 0;
}

static int local_make_queues(struct uvd_privilege *p, int *fd)
{
	return -EOPNOTSUPP;
}

static int local_make_backing(struct uvd_privilege *p, int *number, int *memfd)
{
	return -EOPNOTSUPP;
}

static void local_end_backing(struct uvd_privilege *p, int number)
{
}

static int local_make_ears(struct uvd_privilege *p, int *inotify, int *bell)
{
	return -EOPNOTSUPP;
}

static int local_watch_backing(struct uvd_privilege *p, int number)
{
	return -EOPNOTSUPP;
}

static void local_withdraw(struct uvd_privilege *p, unsigned int index, struct uvd_node *node)
{
	uvd_node_hide(node);
}

static void local_end_node(struct uvd_privilege *p, struct uvd_node *node)
{
	uvd_node_remove(node);
}

/* ---- other processes ------------------------------------------------------------------------------------------------ */

static int local_peer_owners(struct uvd_privilege *p, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	return uvd_peer_owners(pid, uid, uids, max);
}

static int local_sockets_in_use(struct uvd_privilege *p, const uint64_t *inos, unsigned int num, bool *used,
				uint64_t *cpu_ns)
{
	*cpu_ns = 0;
	return uvd_sockets_in_use(getpid(), inos, num, used);
}

static int local_open_comm(struct uvd_privilege *p, pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- its beginning and end ---------------------------------------------------------------------------------------- */

static const struct uvd_privilege_ops local_ops = {
	.place_take = local_place_take,
	.place_put = local_place_put,
	.place_wait = local_place_wait,
	.place_drop = local_place_drop,
	.seize = local_seize,
	.stop = local_stop,
	.pass = local_pass,
	.register_memory = local_register,
	.replace = local_replace,
	.release = local_release,
	.close = local_close,
	.end_overdue = local_end_overdue,
	.dying = local_dying,
	.end_loans = local_end_loans,
	.make_node = local_make_node,
	.make_ucap = local_make_ucap,
	.make_cm = local_make_cm,
	.make_queues = local_make_queues,
	.make_backing = local_make_backing,
	.end_backing = local_end_backing,
	.make_ears = local_make_ears,
	.watch_backing = local_watch_backing,
	.withdraw = local_withdraw,
	.end_node = local_end_node,
	.peer_owners = local_peer_owners,
	.sockets_in_use = local_sockets_in_use,
	.open_comm = local_open_comm,
};

/*
 * Without SA_NOCLDSTOP every stop of a borrowed thread would send this process a SIGCHLD. The borrowing threads block
 * the signal, so the kernel would not drop it, but wake the main thread.
 */
static void tell_nobody_of_stops(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };

	sigaction(SIGCHLD, &sa, NULL);
}

struct uvd_privilege *uvd_local_new(const struct uvd_local_nodes *nodes, struct uvd_log *log)
{
	struct local *local = calloc(1, sizeof(*local));

	if (!local)
		return NULL;
	local->privilege.ops = &local_ops;
	local->log = log;
	local->nodes = nodes;
	tell_nobody_of_stops();
	uvd_ways_init(&local->ways);
	return &local->privilege;
}

void uvd_local_free(struct uvd_privilege *p)
{
	if (!p)
		return;
	uvd_ways_fini(&local_of(p)->ways);
	free(local_of(p));
}
