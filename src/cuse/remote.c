/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "broker/broker.h"
#include "cuse/remote.h"
#include "cuse/split_write.h"
#include "util/util.h"

static bool find_file(const char *name, int flags, struct uvd_wire_request *r)
{
	static const char *const names[UVD_WIRE_FILES] = {
		[UVD_WIRE_MEM] = "mem",	      [UVD_WIRE_MAPS] = "maps",	       [UVD_WIRE_PAGEMAP] = "pagemap",
		[UVD_WIRE_AUXV] = "auxv",     [UVD_WIRE_LIMITS] = "limits",    [UVD_WIRE_USER_NS] = "ns/user",
		[UVD_WIRE_FD] = "fd/%d",      [UVD_WIRE_FDINFO] = "fdinfo/%d", [UVD_WIRE_STATUS] = "status",
		[UVD_WIRE_STAT] = "stat",     [UVD_WIRE_COMM] = "comm",	       [UVD_WIRE_STATM] = "statm",
		[UVD_WIRE_OWNERS] = "owners",
	};
	int value = 0;

	for (r->index = 0; r->index < UVD_WIRE_FILES; r->index++) {
		if (strchr(names[r->index], '%') ? sscanf(name, names[r->index], &value) != 1
						 : strcmp(name, names[r->index]) != 0)
			continue;
		r->value = r->index == UVD_WIRE_MEM && (flags & O_ACCMODE) == O_RDWR ? 1 : value;
		return true;
	}
	return false;
}

static int open_for_call(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	struct uvd_remote *remote = container_of(proc, struct uvd_remote, calls);
	struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = tid };
	struct uvd_wire_fds out;
	int ret;

	if (!find_file(name, flags, &r))
		return -ENOENT;
	ret = uvd_link_ask(remote->link, &r, NULL, &out);
	return ret < 0 ? ret : out.fd[0];
}

static int open_for_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	struct uvd_remote *remote = container_of(proc, struct uvd_remote, opens);
	struct uvd_wire_request r = { .op = UVD_WIRE_OPEN, .tid = tid };
	struct uvd_wire_fds out;
	int ret;

	if (!strcmp(name, "pagemap"))
		r.op = UVD_WIRE_OPENER;
	else if (!find_file(name, flags, &r))
		return -ENOENT;
	ret = uvd_link_ask(remote->link, &r, NULL, &out);
	return ret < 0 ? ret : out.fd[0];
}

static bool same_memory(struct uvd_proc *proc, pid_t tid, pid_t other)
{
	struct uvd_remote *remote = container_of(proc, struct uvd_remote, calls);
	struct uvd_wire_request r = { .op = UVD_WIRE_SAME_MEMORY, .tid = tid, .value = other };
	struct uvd_wire_fds out;

	return uvd_link_ask(remote->link, &r, NULL, &out) == 1;
}

void uvd_remote_init(struct uvd_remote *r, struct uvd_link *link)
{
	r->link = link;
	r->calls = (struct uvd_proc){ .open = open_for_call, .same_memory = same_memory, .tells_owners = true };
	r->opens = (struct uvd_proc){ .open = open_for_open, .tells_owners = true };
}

bool uvd_remote_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EAGAIN;
}

static struct uvd_peer *ask_for_peer(struct uvd_remote *remote, struct uvd_caller *c, int *err)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_PEER, .tid = c->tid };
	struct uvd_wire_fds out;
	struct uvd_peer *p;
	int64_t values[2];
	int ret = uvd_link_ask(remote->link, &r, values, &out);

	*err = ret < 0 ? ret : -ESRCH;
	if (ret < 0)
		return NULL;
	if (out.fd[UVD_WIRE_FDS - 1] < 0) {
		uvd_wire_close(&out);
		return NULL;
	}
	p = uvd_peer_new(values[0], &(struct uvd_peer_fds){ out.fd[0], out.fd[1], out.fd[2], out.fd[3] }, true);
	if (!p)
		*err = -errno;
	/* The broker has seen a thread with this id wait. It was the caller only if our call still waits. */
	if (p && uvd_caller_waits(c))
		return p;
	uvd_peer_put(p);
	return NULL;
}

struct uvd_peer *uvd_remote_peer(struct uvd_remote *r, struct uvd_caller *c, pthread_mutex_t *lock,
				 struct uvd_peer **kept, int *err)
{
	struct uvd_peer *p = NULL, *old;

	*err = -ESRCH;
	if (!c->tid)
		return NULL;
	pthread_mutex_lock(lock);
	if (*kept && uvd_peer_has(*kept, c->tid))
		p = uvd_peer_ref(*kept);
	pthread_mutex_unlock(lock);
	if (!p) {
		p = ask_for_peer(r, c, err);
		if (!p)
			return NULL;
		pthread_mutex_lock(lock);
		old = *kept;
		*kept = uvd_peer_ref(p);
		pthread_mutex_unlock(lock);
		uvd_peer_put(old);
	}
	*err = 0;
	return p;
}

int uvd_remote_write_whole(struct uvd_remote *remote, pid_t tid, uint64_t *addr, size_t *len)
{
	struct uvd_wire_request r = { .op = UVD_WIRE_WRITE, .tid = tid };
	struct uvd_wire_fds out;
	int64_t values[2];
	int ret = uvd_link_ask(remote->link, &r, values, &out);

	if (ret < 0 || (uint64_t)values[1] > UVD_CUSE_MAX_WRITE)
		return -EINVAL;
	*addr = values[0];
	*len = values[1];
	return 0;
}
