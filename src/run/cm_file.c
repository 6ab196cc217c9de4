/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The client's end of the socket pair becomes readable when we send a byte, which wakes poll() and is an edge for EPOLLET. It is never
 * writable, as it is full: we fill it before the client gets it. Our end hangs up at the last close of the client's. A write() that the
 * filter does not trap, as the client has put a duplicate at a low number (dup2()), fails with EPIPE; SIGPIPE is for streams only.
 *
 * Bytes go in under the lock of struct uvd_cm, and whoever makes an event must not wait for the client that the event is for. A
 * socket has no lock that a client can keep while it is sent to. A pipe has: a client that reads or splices from it keeps the pipe's
 * mutex while its memory, or the file that it writes to, does not answer, and write() waits for that also with O_NONBLOCK.
 *
 * Bytes come out by recv() on the client's own end, which only the thread of its tree does: the kernel lets one thread receive at a
 * time, so a client can keep that thread waiting. We hold no duplicate of that end for longer, as we would never see its last close.
 *
 * The client's end must have a byte if and only if the file has events, and each event must be an edge: it need not have a byte for
 * each. A client that receives from its end spoils its own poll(), and one that shuts it down closes its own file.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "account/account.h"
#include "run/cm_file.h"
#include "util/util.h"

int uvd_run_cm_files_init(struct uvd_run_cm_files *files)
{
	pthread_mutex_init(&files->lock, NULL);
	pthread_mutex_init(&files->closing, NULL);
	files->epoll = epoll_create1(EPOLL_CLOEXEC);
	return files->epoll < 0 ? -errno : 0;
}

static struct uvd_run_cm_file **cm_files_bucket(struct uvd_run_cm_files *files, uint64_t ino)
{
	return &files->hash[ino % UVD_RUN_FILE_HASH];
}

struct uvd_run_cm_file *uvd_run_cm_file_get(struct uvd_run_cm_files *files, const struct uvd_run_inode *inode)
{
	struct uvd_run_cm_file *f;

	uvd_lock(&files->lock);
	for (f = *cm_files_bucket(files, inode->ino); f; f = f->next)
		if (uvd_run_inode_equal(&f->inode, inode))
			break;
	if (f)
		atomic_fetch_add(&f->refs, 1);
	uvd_unlock(&files->lock);
	return f;
}

static void cm_file_free(struct uvd_run_cm_file *f)
{
	if (f->file)
		uvd_cm_close(f->file);
	uvd_opener_drop(&f->opener.who);
	if (f->ours >= 0)
		close(f->ours);
	uvd_account_uncharge(f->account, UVD_RES_DESCRIPTORS, 1);
	uvd_account_put(f->account);
	free(f);
}

void uvd_run_cm_file_put(struct uvd_run_cm_file *file)
{
	if (atomic_fetch_sub(&file->refs, 1) == 1)
		cm_file_free(file);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/*
 * If there is no room for another byte there are some already, and it takes an edge alone: the shutdown, which was made at the open,
 * wakes the other end each time.
 */
static void cm_file_tell(struct uvd_run_cm_file *f)
{
	if (send(f->ours, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		f->bytes++;
	else if (errno == EAGAIN)
		shutdown(f->ours, SHUT_RD);
}

/* struct uvd_cm_file_ops.events. Caller holds the lock of struct uvd_cm. */
void uvd_run_cm_file_events(void *owner, unsigned int num, bool added)
{
	struct uvd_run_cm_file *f = owner;

	if (added) {
		cm_file_tell(f);
	} else if (!num) {
		atomic_fetch_add(&f->excess, f->bytes);
		f->bytes = 0;
	}
}

void uvd_run_cm_file_settle(struct uvd_run_cm_file *f, int theirs)
{
	unsigned int excess = atomic_exchange(&f->excess, 0);
	char bytes[64];
	ssize_t n = 1;

	uvd_might_fault();
	while (excess && n > 0) {
		n = recv(theirs, bytes, excess < sizeof(bytes) ? excess : sizeof(bytes), MSG_DONTWAIT);
		excess -= n > 0 ? n : 0;
	}
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Makes the client's end full, so that it is never writable, and makes each further send of it fail. */
static int cm_file_fill(int ours, int theirs)
{
	const int least = 1; /* the kernel has a minimum, which is some KiB */
	struct pollfd p = { .fd = theirs, .events = POLLOUT };

	/* Ours, too: else a client that takes no event would have hundreds of KiB of the kernel's memory. */
	if (setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) ||
	    setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)))
		return -errno;
	while (poll(&p, 1, 0) == 1)
		if (send(theirs, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
			return -errno;
	return shutdown(ours, SHUT_RD) ? -errno : 0;
}

bool uvd_run_cm_file_is_orphan(int fd)
{
	enum { MOST = 16384 }; /* twice the kernel's minimum, or more; its default is a dozen times as much */
	struct pollfd p = { .fd = fd };
	socklen_t len = sizeof(int);
	int domain, room;

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &len) && room < MOST && poll(&p, 1, 0) == 1 &&
	       p.revents & POLLHUP;
}

/* Returns the client's end or a negative errno. Sets f->ours. */
static int cm_file_pair(struct uvd_run_cm_file *f, unsigned int flags)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	f->ours = uvd_fd_raise(pair[0]);
	err = cm_file_fill(f->ours, pair[1]) ?: uvd_run_own_inode(pair[1], &f->inode);
	if (!err && flags & O_NONBLOCK && fcntl(pair[1], F_SETFL, O_NONBLOCK))
		err = -errno;
	if (!err)
		return pair[1];
	close(pair[1]);
	return err;
}

/* Returns the client's end or a negative errno. If it fails, cm_file_free() ends what there is. */
static int cm_file_init(struct uvd_run_cm_file *f, struct uvd_cm *cm, struct uvd_caller *c, unsigned int flags,
			const struct uvd_cm_file_ops *ops)
{
	int err, theirs;

	err = uvd_account_charge(c->account, UVD_RES_DESCRIPTORS, 1);
	if (err)
		return err;
	f->account = uvd_account_ref(c->account);
	err = uvd_opener_take(&f->opener.who, c);
	theirs = err ? err : cm_file_pair(f, flags);
	if (theirs < 0)
		return theirs;
	f->file = uvd_cm_open(cm, c->account, f->opener.who.tgid, f->opener.who.privileged, ops, f, &err);
	if (f->file)
		return theirs;
	close(theirs);
	return err;
}

/* Enters the file into the table, whose reference it gets. */
static int cm_file_enter(struct uvd_run_cm_files *files, struct uvd_run_cm_file *f)
{
	/* EPOLLHUP and EPOLLERR are always reported. */
	struct epoll_event hangs_up = { .data.ptr = f };
	struct uvd_run_cm_file **list = cm_files_bucket(files, f->inode.ino);

	uvd_lock(&files->lock);
	f->next = *list;
	*list = f;
	uvd_unlock(&files->lock);
	return epoll_ctl(files->epoll, EPOLL_CTL_ADD, f->ours, &hangs_up) ? -errno : 0;
}

static void cm_file_leave(struct uvd_run_cm_files *files, struct uvd_run_cm_file *f)
{
	struct uvd_run_cm_file **p;

	epoll_ctl(files->epoll, EPOLL_CTL_DEL, f->ours, NULL);
	uvd_lock(&files->lock);
	for (p = cm_files_bucket(files, f->inode.ino); *p != f; p = &(*p)->next)
		;
	*p = f->next;
	uvd_unlock(&files->lock);
}

int uvd_run_cm_file_open(struct uvd_run_cm_files *files, struct uvd_cm *cm, struct uvd_caller *c, unsigned int flags,
			 const struct uvd_cm_file_ops *ops, uint64_t serial, int *fd)
{
	struct uvd_run_cm_file *f = calloc(1, sizeof(*f));
	int err = 0;

	if (!f)
		return -ENOMEM;
	f->ours = -1;
	f->opener = (struct uvd_run_opener){ .who = { .mmfd = -1, .pidfd = -1 }, .serial = serial };
	f->mode = flags & O_ACCMODE;
	atomic_init(&f->refs, 1);
	*fd = cm_file_init(f, cm, c, flags, ops);
	if (*fd >= 0)
		err = cm_file_enter(files, f);
	if (!err && *fd >= 0)
		return 0;
	if (err) {
		cm_file_leave(files, f);
		close(*fd);
	}
	uvd_run_cm_file_put(f);
	return err ? err : *fd;
}

/* ---- the last close ---------------------------------------------------------------------------------------------- */

void uvd_run_cm_files_closed(struct uvd_run_cm_files *files)
{
	enum { AT_ONCE = 64 };
	struct epoll_event events[AT_ONCE];
	int n;

	uvd_lock(&files->closing);
	do {
		n = epoll_wait(files->epoll, events, AT_ONCE, 0);
		for (int i = 0; i < n; i++) {
			cm_file_leave(files, events[i].data.ptr);
			uvd_run_cm_file_put(events[i].data.ptr);
		}
	} while (n == AT_ONCE);
	uvd_unlock(&files->closing);
}

void uvd_run_cm_files_fini(struct uvd_run_cm_files *files)
{
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++) {
		struct uvd_run_cm_file *f = files->hash[i], *next;

		for (; f; f = next) {
			next = f->next;
			cm_file_free(f);
		}
	}
	if (files->epoll >= 0)
		close(files->epoll);
	pthread_mutex_destroy(&files->closing);
	pthread_mutex_destroy(&files->lock);
}
