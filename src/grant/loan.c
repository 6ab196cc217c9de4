/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "client/client.h"
#include "grant/loan.h"

enum { I386_CLOSE = 6 };

int uvd_loan_seize(struct uvd_loan *l, struct uvd_link *link, pid_t tid, int nice)
{
	struct uvd_wire_fds none = uvd_wire_no_fds;

	*l = (struct uvd_loan){ .link = link, .sock = -1, .number = -1, .way = -EPERM };
	if (!link)
		return uvd_borrow_seize(&l->b, tid);
	l->b = (struct uvd_borrow){ .tid = tid, .pidfd = -1, .memfd = -1, .mapsfd = -1 };
	l->sock = uvd_link_loan(link);
	if (l->sock < 0)
		return l->sock;
	return uvd_link_loan_step(l->sock,
				  &(struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = tid, .index = nice }, -1,
				  NULL, &none);
}

static long take_remotely(struct uvd_loan *l, int end)
{
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2];
	/*
	 * The request must carry a descriptor: without an end to pass, l->sock is sent, which the broker does not pass
	 * on.
	 */
	int err = uvd_link_loan_step(l->sock, &(struct uvd_wire_request){ .op = UVD_WIRE_TAKE, .index = end < 0 },
				     end < 0 ? l->sock : end, values, &out);

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
	l->way = l->link ? take_remotely(l, end) : uvd_way_pass(ways, &l->b, end);
	if (end >= 0)
		close(end);
	return l->way;
}

static int64_t register_remotely(struct uvd_loan *l, struct uvd_registration *r)
{
	const struct uvd_wire_request request = { .op = UVD_WIRE_REGISTER, .reg = r->order };
	struct uvd_wire_fds out = uvd_wire_no_fds;
	int64_t values[2] = { 0 };
	int err = uvd_link_loan_step(l->sock, &request, r->fd, values, &out);

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
	int err;

	if (l->link)
		return register_remotely(l, r);
	err = uvd_borrow_stop(&l->b);
	if (err)
		return err;
	return l->number < 0 ? uvd_borrow_register(ways, &l->b, r->fd, &r->order, &r->executed)
			     : uvd_borrow_register_by(&l->b, l->number, &r->order, &r->executed);
}

int uvd_loan_release(struct uvd_loan *l, bool close_it, const long *result)
{
	struct uvd_wire_request r = {
		.op = UVD_WIRE_RELEASE, .index = close_it, .flag = result != NULL, .value = result ? *result : 0
	};
	struct uvd_wire_fds out = uvd_wire_no_fds;

	if (l->link) {
		int64_t values[2] = { 0 };
		int err = uvd_link_loan_step(l->sock, &r, -1, values, &out);

		l->cpu_ns = (uint64_t)values[0];
		return err;
	}
	if (close_it)
		uvd_borrow_call(&l->b, SYS_close, I386_CLOSE, (long[3]){ l->way });
	return uvd_borrow_release(&l->b, result);
}

void uvd_loan_close(struct uvd_loan *l)
{
	if (l->sock >= 0)
		close(l->sock);
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
