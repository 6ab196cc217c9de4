/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a node's clients are reached: the caller's memory, until the call is let go, and the files of its thread. */
#include <errno.h>
#include <poll.h>
#include "cuse/internal.h"
#include "util/util.h"

static struct cuse_call *call_of(struct uvd_caller *c)
{
	return container_of(c, struct cuse_call, call.caller);
}

/*
 * Has the kernel ended the session? Then all clients run on. The worker that reads the channel sets c->aborted, but
 * may have to wait for a CPU before that: so this function also asks the kernel.
 */
static bool cuse_aborted(struct uvd_cuse *c)
{
	struct pollfd channel = { .fd = fuse_session_fd(c->se) };

	return c->aborted || poll(&channel, 1, 0) > 0;
}

bool uvd_cuse_call_waits(struct uvd_caller *c)
{
	struct cuse_call *call = call_of(c);

	return (!call->worker || uvd_claim_holds(&call->worker->claim)) && !cuse_aborted(call->cuse);
}

bool uvd_cuse_call_claim(struct uvd_caller *c)
{
	struct worker *w = call_of(c)->worker;

	return !w || uvd_claim_take(&w->claim);
}

/* Fails if the call no longer waits afterwards: then the bytes may be another thread's. */
static int mem_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	int err = uvd_mem_process.read(c, dst, src, len);

	return uvd_cuse_call_waits(c) ? err : -EFAULT;
}

static ssize_t mem_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	ssize_t n = uvd_mem_process.read_ahead(c, dst, src, least, most);

	return uvd_cuse_call_waits(c) ? n : -EFAULT;
}

/* With a broker: returns the caller's process, asked for at the first use of its memory. NULL: there is none. */
static struct uvd_peer *peer_of(struct cuse_call *call)
{
	struct worker *w = call->worker;

	if (!call->peer && w)
		call->peer = uvd_remote_peer(&call->cuse->remote, &call->call.caller, &w->file->peer_lock,
					     &w->file->peer, &call->no_peer);
	return call->peer;
}

static int remote_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	struct uvd_peer *p = peer_of(call_of(c));
	int err = p ? uvd_peer_read(p, dst, src, len) : -EFAULT;

	return uvd_cuse_call_waits(c) ? err : -EFAULT;
}

static ssize_t remote_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	struct uvd_peer *p = peer_of(call_of(c));
	ssize_t n = p ? uvd_peer_read_ahead(p, dst, src, least, most) : -EFAULT;

	return uvd_cuse_call_waits(c) ? n : -EFAULT;
}

void uvd_cuse_drop_peer(struct cuse_call *call)
{
	uvd_peer_put(call->peer);
	call->peer = NULL;
}

/* If a piece cannot be written, those before it are written all the same, as in the kernel. */
static int peer_writev(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	int err = uvd_peer_writev(p, v, n);

	if (!err || n == 1)
		return err;
	for (err = 0; n && !err; v++, n--)
		err = uvd_peer_writev(p, v, 1);
	return err;
}

/*
 * A write cannot be undone, so while the worker writes the tick lets go of the call only under a condition (claim.h).
 * For that a claimed write is one system call: the tick must not take the worker's next system call for the one that
 * it saw before.
 */
static int claimed_writev(struct uvd_caller *c, struct uvd_peer *peer, const struct uvd_write_vec *v, unsigned int n)
{
	struct cuse_call *call = call_of(c);
	int err = 0;

	for (unsigned int now; n && !err; v += now, n -= now) {
		now = n < UVD_WRITEV_AT_ONCE ? n : UVD_WRITEV_AT_ONCE;
		if (call->worker && !uvd_claim_write(&call->worker->claim))
			return -EFAULT;
		if (cuse_aborted(call->cuse))
			err = -EFAULT;
		else
			err = peer ? peer_writev(peer, v, now) : uvd_mem_process.writev(c, v, now);
		if (call->worker && !uvd_claim_written(&call->worker->claim))
			return -EFAULT;
	}
	return err;
}

static int mem_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	return claimed_writev(c, NULL, v, n);
}

static int mem_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return mem_writev(c, &(struct uvd_write_vec){ .addr = dst, .src = src, .len = len }, 1);
}

/* Asks for the process before the claim: the broker's answer can take long. */
static int remote_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	struct uvd_peer *peer = peer_of(call_of(c));

	return peer ? claimed_writev(c, peer, v, n) : -EFAULT;
}

static int remote_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return remote_writev(c, &(struct uvd_write_vec){ .addr = dst, .src = src, .len = len }, 1);
}

static const struct uvd_mem_ops mem_ops = {
	.read = mem_read,
	.write = mem_write,
	.writev = mem_writev,
	.read_ahead = mem_read_ahead,
};

static const struct uvd_mem_ops remote_mem_ops = {
	.read = remote_read,
	.write = remote_write,
	.writev = remote_writev,
	.read_ahead = remote_read_ahead,
};

/* ---- the tables --------------------------------------------------------------------------------------------------- */

static void local_begin(struct uvd_cuse *c)
{
	c->calls = c->opens = &uvd_proc_local;
}

static void local_keep_process(struct cuse_call *call)
{
}

static int local_write_whole(struct uvd_cuse *c, pid_t tid, uint64_t *addr, size_t *len)
{
	return uvd_cuse_write_whole(tid, addr, len);
}

const struct uvd_cuse_clients uvd_cuse_clients_local = {
	.mem = &mem_ops,
	.begin = local_begin,
	.keep_process = local_keep_process,
	.write_whole = local_write_whole,
};

static void remote_begin(struct uvd_cuse *c)
{
	uvd_remote_init(&c->remote, uvd_link_of(c->config.privilege));
	c->calls = &c->remote.calls;
	c->opens = &c->remote.opens;
}

static void remote_keep_process(struct cuse_call *call)
{
	(void)peer_of(call);
}

static int remote_write_whole(struct uvd_cuse *c, pid_t tid, uint64_t *addr, size_t *len)
{
	return uvd_remote_write_whole(&c->remote, tid, addr, len);
}

const struct uvd_cuse_clients uvd_cuse_clients_remote = {
	.mem = &remote_mem_ops,
	.begin = remote_begin,
	.keep_process = remote_keep_process,
	.write_whole = remote_write_whole,
	.open_waits = true,
	.opener_has_mm = true,
	.writes_by_descriptor = true,
};
