/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Privileged operations of an engine process, which has no privilege: the broker, or a child of it, carries them out. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/registration.h>
#include "broker/link.h"
#include "broker/node.h"
#include "broker/privilege.h"

/* ---- loans -------------------------------------------------------------------------------------------------------- */

/* The broker finds out by itself who the thread's users are. */
static int link_place_take(struct uvd_privilege *p, struct uvd_loan_place *place, pid_t tid,
			   const struct uvd_owners *owners)
{
	int ret = uvd_link_loan(uvd_link_of(p), tid, &place->pid);

	if (ret >= 0)
		place->sock = ret;
	return ret < 0 ? ret : 0;
}

static void link_place_drop(struct uvd_privilege *p, struct uvd_loan_place *place)
{
	if (place->sock >= 0)
		close(place->sock);
	place->sock = -1;
}

static bool link_place_put(struct uvd_privilege *p, struct uvd_loan_place *place)
{
	struct pollfd poll_sock = { .fd = place->sock };

	if (place->sock >= 0 && (poll(&poll_sock, 1, 0) <= 0 || !(poll_sock.revents & POLLHUP)))
		return false;
	link_place_drop(p, place);
	return true;
}

static void link_place_wait(struct uvd_privilege *p, const struct uvd_loan_place *place, unsigned int ms)
{
	struct pollfd poll_sock = { .fd = place->sock };

	if (poll_sock.fd >= 0)
		poll(&poll_sock, 1, ms);
}

static int loan_ask(struct uvd_loan *l, const struct uvd_wire_request *r, int fd, int64_t values[2],
		    struct uvd_wire_fds *out)
{
	int ret = uvd_link_loan_step(l->place->sock, r, fd, values, out);

	l->hung_up |= ret == -EPIPE;
	return ret;
}

static int link_seize(struct uvd_privilege *p, struct uvd_loan *l, pid_t tid, int nice)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_SEIZE, .tid = tid, .index = nice };
	struct uvd_wire_fds none = uvd_wire_no_fds;

	l->b = (struct uvd_borrow){ .tid = tid, .pidfd = -1, .memfd = -1, .mapsfd = -1 };
	return loan_ask(l, &r, -1, NULL, &none);
}

/* The broker's process stops the thread when it is asked to pass a descriptor. */
static int link_stop(struct uvd_privilege *p, struct uvd_loan *l)
{
	return 0;
}

/* Asks for a step that stops the thread and gives its memory. Returns 0 or a negative errno: then the loan is over. */
static int loan_ask_to_stop(struct uvd_loan *l, const struct uvd_wire_request *r, int fd, int64_t values[2])
{
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int err = loan_ask(l, r, fd, values, &out);

	l->b.memfd = out.fd[0];
	l->b.mapsfd = out.fd[1];
	l->killed = err == -EPIPE;
	l->lost = err && !l->killed;
	l->b.dead = err;
	return err;
}

static long link_pass(struct uvd_privilege *p, struct uvd_loan *l, int fd)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_TAKE, .index = fd < 0 };
	int64_t values[2];
	/*
	 * The request must carry a descriptor: without an end to pass, the loan's socket is sent, which the broker does not
	 * pass on.
	 */
	int err = loan_ask_to_stop(l, &r, fd < 0 ? l->place->sock : fd, values);

	if (err)
		return -ESRCH;
	l->b.dead = values[1];
	return values[0];
}

static int64_t link_register(struct uvd_privilege *p, struct uvd_loan *l, struct uvd_registration *r)
{
	const struct uvd_wire_request request = { .op = UVD_WIRE_REGISTER, .reg = r->order };
	int64_t values[2];
	int err = loan_ask_to_stop(l, &request, r->fd, values);

	r->executed = !err && values[1] & UVD_WIRE_EXECUTED;
	if (err)
		return -ESRCH;
	l->b.dead = values[1] & UVD_WIRE_DEAD;
	return values[0];
}

static int link_replace(struct uvd_privilege *p, struct uvd_loan *l, uint64_t name, unsigned int position)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_REPLACE, .value = (int64_t)name, .index = position };
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2] = { 0 };
	int err = loan_ask(l, &r, -1, values, &out);

	l->killed |= err == -EPIPE;
	l->b.dead |= err || values[1];
	return err ? -ESRCH : (int)values[0];
}

static int link_release(struct uvd_privilege *p, struct uvd_loan *l, bool close_it, const long *result)
{
	const struct uvd_wire_request r = {
		.op = UVD_WIRE_RELEASE, .index = close_it, .flag = result != NULL, .value = result ? *result : 0
	};
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2] = { 0 };
	int err = loan_ask(l, &r, -1, values, &out);

	l->cpu_ns = (uint64_t)values[0];
	return err;
}

/*
 * The broker's process ends. Our end stays open, as it tells when the process has been reaped. If the process has hung up,
 * it ends anyway, and a second half that is shut down would look like that.
 */
static void link_close(struct uvd_privilege *p, struct uvd_loan *l)
{
	if (l->place->sock >= 0 && !l->hung_up)
		shutdown(l->place->sock, SHUT_WR);
	uvd_borrow_close(&l->b);
}

static bool link_end_overdue(struct uvd_privilege *p, const struct uvd_loan *l)
{
	return false;
}

static bool link_dying(struct uvd_privilege *p, pid_t tid)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = tid, .index = UVD_WIRE_STATUS };
	struct uvd_wire_fds out;
	char status[4096];
	const char *pending;
	ssize_t n;

	if (uvd_link_ask(uvd_link_of(p), &r, NULL, &out) < 0)
		return false;
	n = read(out.fd[0], status, sizeof(status) - 1);
	uvd_wire_close(&out);
	status[n < 0 ? 0 : n] = 0;
	pending = strstr(status, "\nSigPnd:");
	return pending && strtoull(pending + 8, NULL, 16) >> (SIGKILL - 1) & 1;
}

/* The broker's processes wait for themselves. */
static void link_end_loans(struct uvd_privilege *p)
{
}

/* ---- nodes: the broker makes them, and keeps them ------------------------------------------------------------------ */

static int link_make_node(struct uvd_privilege *p, unsigned int index, int number, struct uvd_node *node, int *fd)
{
	dev_t rdev;
	int err = uvd_link_node(uvd_link_of(p), index, &number, &rdev, fd);

	if (err)
		return err;
	uvd_node_name(node, number);
	node->rdev = rdev;
	return 0;
}

static int link_make_ucap(struct uvd_privilege *p, const char *name, struct uvd_node *node, int *fd)
{
	uvd_node_name_ucap(node, name);
	return uvd_link_ucap(uvd_link_of(p), name, &node->rdev, fd);
}

static int link_make_cm(struct uvd_privilege *p, struct uvd_node *node, int *fd)
{
	dev_t rdev;
	bool aside;
	int ret = uvd_link_cm(uvd_link_of(p), &rdev, &aside, fd);

	uvd_node_name_cm(node, aside);
	node->rdev = rdev;
	return ret;
}

static int link_make_queues(struct uvd_privilege *p, int *fd)
{
	return uvd_link_queues(uvd_link_of(p), fd);
}

static int link_make_backing(struct uvd_privilege *p, int *number, int *memfd)
{
	return uvd_link_backing(uvd_link_of(p), number, memfd);
}

static void link_end_backing(struct uvd_privilege *p, int number)
{
	uvd_link_backing_gone(uvd_link_of(p), number);
}

static int link_make_ears(struct uvd_privilege *p, int *inotify, int *bell)
{
	return uvd_link_ears(uvd_link_of(p), inotify, bell);
}

static int link_watch_backing(struct uvd_privilege *p, int number)
{
	return uvd_link_watch(uvd_link_of(p), number);
}

static void link_withdraw(struct uvd_privilege *p, unsigned int index, struct uvd_node *node)
{
	uvd_link_tell(uvd_link_of(p), UVD_WIRE_WITHDRAW, index);
}

static void link_end_node(struct uvd_privilege *p, struct uvd_node *node)
{
}

/* ---- other processes: an engine process has no /proc ---------------------------------------------------------------- */

static int link_peer_owners(struct uvd_privilege *p, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	return uvd_link_peer_owners(uvd_link_of(p), pid, uid, uids, max);
}

static int link_sockets_in_use(struct uvd_privilege *p, const uint64_t *inos, unsigned int num, bool *used,
			       uint64_t *cpu_ns)
{
	return uvd_link_sockets(uvd_link_of(p), inos, num, used, cpu_ns);
}

static int link_open_comm(struct uvd_privilege *p, pid_t pid)
{
	const struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = pid, .index = UVD_WIRE_COMM };
	struct uvd_wire_fds out;
	int err = pid > 0 ? uvd_link_ask(uvd_link_of(p), &r, NULL, &out) : -ESRCH;

	return err < 0 ? err : out.fd[0];
}

/* ---- the table ---------------------------------------------------------------------------------------------------- */

const struct uvd_privilege_ops uvd_link_ops = {
	.place_take = link_place_take,
	.place_put = link_place_put,
	.place_wait = link_place_wait,
	.place_drop = link_place_drop,
	.seize = link_seize,
	.stop = link_stop,
	.pass = link_pass,
	.register_memory = link_register,
	.replace = link_replace,
	.release = link_release,
	.close = link_close,
	.end_overdue = link_end_overdue,
	.dying = link_dying,
	.end_loans = link_end_loans,
	.make_node = link_make_node,
	.make_ucap = link_make_ucap,
	.make_cm = link_make_cm,
	.make_queues = link_make_queues,
	.make_backing = link_make_backing,
	.end_backing = link_end_backing,
	.make_ears = link_make_ears,
	.watch_backing = link_watch_backing,
	.withdraw = link_withdraw,
	.end_node = link_end_node,
	.peer_owners = link_peer_owners,
	.sockets_in_use = link_sockets_in_use,
	.open_comm = link_open_comm,
};
