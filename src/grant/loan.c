/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "account/account.h"
#include "client/client.h"
#include "grant/grant.h"
#include "grant/loan.h"

/* ---- its place --------------------------------------------------------------------------------------------------- */

int uvd_loan_place_take(struct uvd_loan_place *place, struct uvd_link *link, struct uvd_ways *ways, pid_t tid,
			const struct uvd_account *account)
{
	struct uvd_owners owners = { .num = uvd_account_uids(account, owners.uid, UVD_OWNERS_MAX) };
	int *taken = link ? &place->sock : &place->number;
	int ret = link ? uvd_link_loan(link, tid) : uvd_ways_take(ways, &owners);

	if (ret >= 0)
		*taken = ret;
	return ret < 0 ? ret : 0;
}

bool uvd_loan_place_put(struct uvd_loan_place *place, struct uvd_ways *ways)
{
	struct pollfd p = { .fd = place->sock };

	if (place->sock >= 0) {
		if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLHUP))
			return false;
		uvd_loan_place_drop(place);
	}
	if (place->number >= 0 && !uvd_ways_put(ways, place->number))
		return false;
	place->number = -1;
	return true;
}

void uvd_loan_place_wait(const struct uvd_loan_place *place, unsigned int ms)
{
	struct pollfd p = { .fd = place->sock };

	if (p.fd >= 0)
		poll(&p, 1, ms);
}

void uvd_loan_place_drop(struct uvd_loan_place *place)
{
	if (place->sock >= 0)
		close(place->sock);
	place->sock = -1;
}

/* ---- the loan ---------------------------------------------------------------------------------------------------- */

/* One step of a loan that the broker's process carries out. */
static int loan_ask(struct uvd_loan *l, const struct uvd_wire_request *r, int fd, int64_t values[2],
		    struct uvd_wire_fds *out)
{
	int ret = uvd_link_loan_step(l->place->sock, r, fd, values, out);

	l->hung_up |= ret == -EPIPE;
	return ret;
}

int uvd_loan_seize(struct uvd_loan *l, struct uvd_link *link, struct uvd_loan_place *place, pid_t tid, int nice)
{
	struct uvd_wire_fds none = uvd_wire_no_fds;

	*l = (struct uvd_loan){ .link = link, .place = place, .number = -1, .way = -EPERM };
	if (!link)
		return uvd_borrow_seize(&l->b, tid);
	l->b = (struct uvd_borrow){ .tid = tid, .pidfd = -1, .memfd = -1, .mapsfd = -1 };
	return loan_ask(l, &(struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = tid, .index = nice }, -1, NULL,
			&none);
}

/* Passes fd to the stopped thread. The place is free again if its sender has ended, as it has but for an attack. */
static long loan_pass_fd(struct uvd_loan *l, struct uvd_ways *ways, int fd)
{
	long number = uvd_way_pass(ways, l->place->number, &l->b, fd);

	uvd_loan_place_put(l->place, ways);
	return number;
}

static long take_remotely(struct uvd_loan *l, int end)
{
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2];
	/*
	 * The request must carry a descriptor: without an end to pass, the loan's socket is sent, which the broker does not
	 * pass on.
	 */
	int err = loan_ask(l, &(struct uvd_wire_request){ .op = UVD_WIRE_TAKE, .index = end < 0 },
			   end < 0 ? l->place->sock : end, values, &out);

	l->b.memfd = out.fd[0];
	l->b.mapsfd = out.fd[1];
	l->killed = err == -EPIPE;
	l->lost = err && !l->killed;
	l->b.dead = err || values[1];
	return err ? -ESRCH : values[0];
}

int uvd_loan_take(struct uvd_loan *l, struct uvd_ways *ways, struct uvd_event_file *file)
{
	int err = l->link ? 0 : uvd_borrow_stop(&l->b), end;

	if (err)
		return l->way = err == -EMFILE ? -EPERM : err;
	end = uvd_event_file_open(file);
	if (end < 0 && !l->link)
		return l->way = -EPERM; /* our own EMFILE must not reach the client */
	l->way = l->link ? take_remotely(l, end) : loan_pass_fd(l, ways, end);
	if (end >= 0)
		close(end);
	return l->way;
}

static int64_t register_remotely(struct uvd_loan *l, struct uvd_registration *r)
{
	const struct uvd_wire_request request = { .op = UVD_WIRE_REGISTER, .reg = r->order };
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2] = { 0 };
	int err = loan_ask(l, &request, r->fd, values, &out);

	l->b.memfd = out.fd[0];
	l->b.mapsfd = out.fd[1];
	l->killed = err == -EPIPE;
	l->lost = err && !l->killed;
	l->b.dead = err || values[1] & UVD_WIRE_DEAD;
	r->executed = !err && values[1] & UVD_WIRE_EXECUTED;
	return err ? -ESRCH : values[0];
}

int64_t uvd_loan_register(struct uvd_loan *l, struct uvd_ways *ways, struct uvd_registration *r)
{
	long number;
	int err;

	if (l->link)
		return register_remotely(l, r);
	r->executed = false;
	err = uvd_borrow_stop(&l->b);
	if (err)
		return err;
	number = l->number < 0 ? loan_pass_fd(l, ways, r->fd) : l->number;
	return number < 0 ? number : uvd_borrow_register_by(&l->b, number, &r->order, &r->executed);
}

int uvd_loan_release(struct uvd_loan *l, bool close_it, const long *result)
{
	struct uvd_wire_request r = {
		.op = UVD_WIRE_RELEASE, .index = close_it, .flag = result != NULL, .value = result ? *result : 0
	};
	struct uvd_wire_fds out = uvd_wire_no_fds;

	if (l->link) {
		int64_t values[2] = { 0 };
		int err = loan_ask(l, &r, -1, values, &out);

		l->cpu_ns = (uint64_t)values[0];
		return err;
	}
	if (close_it)
		uvd_borrow_call(&l->b, UVD_SYSCALL_CLOSE, (long[3]){ l->way });
	return uvd_borrow_release(&l->b, result);
}

void uvd_loan_close(struct uvd_loan *l)
{
	/*
	 * The broker's process ends. Our end stays open, as it tells when the process has been reaped. If the process has hung up,
	 * it ends anyway, and a second half that is shut down would look like that.
	 */
	if (l->place->sock >= 0 && !l->hung_up)
		shutdown(l->place->sock, SHUT_WR);
	uvd_borrow_close(&l->b);
}

void uvd_loan_kill(const struct uvd_loan *l)
{
	if (!l->link)
		uvd_borrow_kill(&l->b);
}

bool uvd_loan_dying(struct uvd_link *link, pid_t tid)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = tid, .index = UVD_WIRE_STATUS };
	struct uvd_wire_fds out;
	char status[4096];
	const char *p;
	ssize_t n;

	if (!link)
		return uvd_borrow_dying(tid);
	if (uvd_link_ask(link, &r, NULL, &out) < 0)
		return false;
	n = read(out.fd[0], status, sizeof(status) - 1);
	uvd_wire_close(&out);
	status[n < 0 ? 0 : n] = 0;
	p = strstr(status, "\nSigPnd:");
	return p && strtoull(p + 8, NULL, 16) >> (SIGKILL - 1) & 1;
}
