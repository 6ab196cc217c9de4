/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "account/account.h"
#include "client/event_file.h"
#include "util/util.h"

#define EVENT_MAX_BYTES 64
/*
 * The send buffer of the socket. The kernel doubles this value, and an unread event takes 768 bytes: there is room for
 * 2,700 events. (The queue of the kernel's event file has no limit.)
 */
#define BUFFER_BYTES (1 << 20)
/* More events than the buffer holds. The limit ends the loop even if a client keeps filling the queue. */
#define TAKE_BACK_MAX 65536
/* As many events as the buffer holds. */
#define HELD_MAX 2700

struct uvd_event_file {
	atomic_int refs;
	size_t size;
	struct uvd_account *account;
	pthread_mutex_t
		lock; /* protects all below, and the order of the events in the pair; held for a short time only */
	int ours, theirs; /* -1: none */
	dev_t dev; /* of theirs */
	ino_t ino;
	/* Events that were posted while events are taken back: they follow those that are put back. */
	bool is_taking;
	unsigned int num_held, held_room;
	char *held;
	/*
	 * One thread takes events back at a time. A client can hold that thread up for ever: the kernel lets one thread
	 * receive at a time, also without waiting, and a thread of the client that receives can wait for its memory.
	 */
	pthread_mutex_t take_lock;
};

/* An event file charges its account for both ends, and for all bytes that the socket can hold. */
static const struct {
	enum uvd_resource res;
	uint64_t n;
} event_file_costs[] = {
	{ UVD_RES_EVENT_FILES, 1 },
	{ UVD_RES_DESCRIPTORS, 2 },
	{ UVD_RES_BYTES, sizeof(struct uvd_event_file) + 2 * BUFFER_BYTES },
};

enum { EVENT_FILE_COSTS = sizeof(event_file_costs) / sizeof(event_file_costs[0]) };

static void event_file_uncharge(struct uvd_account *account, unsigned int num)
{
	while (num--)
		uvd_account_uncharge(account, event_file_costs[num].res, event_file_costs[num].n);
}

static int event_file_charge(struct uvd_account *account)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < EVENT_FILE_COSTS && !ret; i++)
		ret = uvd_account_charge(account, event_file_costs[i].res, event_file_costs[i].n);
	if (ret)
		event_file_uncharge(account, i - 1);
	return ret;
}

struct uvd_event_file *uvd_event_file_new(size_t size, struct uvd_account *account, int *err)
{
	struct uvd_event_file *f;

	*err = !size || size > EVENT_MAX_BYTES ? -EINVAL : event_file_charge(account);
	if (*err)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f) {
		event_file_uncharge(account, EVENT_FILE_COSTS);
		*err = -ENOMEM;
		return NULL;
	}
	f->account = uvd_account_ref(account);
	atomic_init(&f->refs, 1);
	f->size = size;
	f->ours = f->theirs = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->take_lock, NULL);
	return f;
}

struct uvd_event_file *uvd_event_file_ref(struct uvd_event_file *f)
{
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
	return f;
}

void uvd_event_file_put(struct uvd_event_file *f)
{
	if (!f || atomic_fetch_sub(&f->refs, 1) > 1)
		return;
	if (f->ours >= 0)
		close(f->ours);
	if (f->theirs >= 0)
		close(f->theirs);
	event_file_uncharge(f->account, EVENT_FILE_COSTS);
	uvd_account_put(f->account);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->take_lock);
	free(f->held);
	free(f);
}

int uvd_event_file_adopt(struct uvd_event_file *f, int ours, int theirs)
{
	int bytes = BUFFER_BYTES, err = 0;
	struct stat st;

	pthread_mutex_lock(&f->lock);
	if (f->theirs >= 0)
		err = -EBUSY;
	else if (fstat(theirs, &st))
		err = -errno;
	else if (!S_ISSOCK(st.st_mode))
		err = -EINVAL;
	if (!err) {
		ours = f->ours = uvd_fd_raise(ours);
		f->theirs = uvd_fd_raise(theirs);
		f->dev = st.st_dev;
		f->ino = st.st_ino;
		/* Data and descriptors that the client sends must not queue up here. */
		shutdown(ours, SHUT_RD);
		if (setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
			(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	pthread_mutex_unlock(&f->lock);
	if (err) {
		close(ours);
		close(theirs);
	}
	return err;
}

int uvd_event_file_open(struct uvd_event_file *f)
{
	int pair[2], client, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	client = fcntl(pair[1], F_DUPFD_CLOEXEC, 0);
	if (client < 0) {
		err = -errno;
		close(pair[0]);
		close(pair[1]);
		return err;
	}
	err = uvd_event_file_adopt(f, pair[0], pair[1]);
	if (err) {
		close(client);
		return err;
	}
	return client;
}

bool uvd_event_file_is(struct uvd_event_file *f, const struct stat *st)
{
	bool is;

	pthread_mutex_lock(&f->lock);
	is = f->theirs >= 0 && S_ISSOCK(st->st_mode) && st->st_dev == f->dev && st->st_ino == f->ino;
	pthread_mutex_unlock(&f->lock);
	return is;
}

/* Caller holds f->lock. */
static int event_file_post(struct uvd_event_file *f, const void *event)
{
	ssize_t n;

	if (f->ours < 0)
		return -EPIPE;
	do
		n = send(f->ours, event, f->size, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -EPIPE;
}

/* Caller holds f->lock. */
static int event_file_hold(struct uvd_event_file *f, const void *event)
{
	char *more;

	if (f->num_held == HELD_MAX)
		return -EAGAIN;
	if (f->num_held == f->held_room) {
		more = realloc(f->held, (f->held_room + 64) * f->size);
		if (!more)
			return -EAGAIN;
		f->held = more;
		f->held_room += 64;
	}
	memcpy(f->held + f->num_held++ * f->size, event, f->size);
	return 0;
}

int uvd_event_file_post(struct uvd_event_file *f, const void *event)
{
	int err;

	pthread_mutex_lock(&f->lock);
	err = f->is_taking ? event_file_hold(f, event) : event_file_post(f, event);
	pthread_mutex_unlock(&f->lock);
	return err;
}

/* Dequeues one unread event. Returns false if there is none. Waits for threads of the client that receive. */
static bool event_file_take(const struct uvd_event_file *f, int theirs, char *event)
{
	char bytes[EVENT_MAX_BYTES + 1];
	ssize_t n;

	do {
		/* MSG_DONTWAIT: the client shares this open file description, so it can clear O_NONBLOCK. */
		n = recv(theirs, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && errno != EINTR)
			return false;
		if (!n)
			return false;
	} while (n != (ssize_t)f->size);
	memcpy(event, bytes, f->size);
	return true;
}

/* Begins to hold posted events. Returns the client's end, which stays open as long as the file; -1: there is none. */
static int event_file_begin_take(struct uvd_event_file *f)
{
	int theirs;

	pthread_mutex_lock(&f->lock);
	theirs = f->theirs;
	f->is_taking = theirs >= 0;
	pthread_mutex_unlock(&f->lock);
	return theirs;
}

/* Puts the events back, and after them those that were posted meanwhile. */
static void event_file_end_take(struct uvd_event_file *f, const char *keep, unsigned int kept)
{
	pthread_mutex_lock(&f->lock);
	for (unsigned int i = 0; i < kept; i++)
		event_file_post(f, keep + i * f->size);
	for (unsigned int i = 0; i < f->num_held; i++)
		event_file_post(f, f->held + i * f->size);
	f->num_held = 0;
	f->is_taking = false;
	pthread_mutex_unlock(&f->lock);
}

unsigned int uvd_event_file_take_back(struct uvd_event_file *f, bool (*match)(const void *event, void *arg), void *arg)
{
	unsigned int removed = 0, kept = 0, room = 0;
	char event[EVENT_MAX_BYTES], *keep = NULL;
	int theirs;

	uvd_might_fault();
	pthread_mutex_lock(&f->take_lock);
	theirs = event_file_begin_take(f);
	for (unsigned int i = 0; theirs >= 0 && i < TAKE_BACK_MAX && event_file_take(f, theirs, event); i++) {
		if (match(event, arg)) {
			removed++;
			continue;
		}
		if (kept == room) {
			char *more = realloc(keep, (room ? 2 * room : 64) * f->size);

			if (!more) { /* requeue it last: out of order, but not lost */
				uvd_event_file_post(f, event);
				break;
			}
			keep = more;
			room = room ? 2 * room : 64;
		}
		memcpy(keep + kept++ * f->size, event, f->size);
	}
	event_file_end_take(f, keep, kept);
	pthread_mutex_unlock(&f->take_lock);
	free(keep);
	return removed;
}

void uvd_event_file_hang_up(struct uvd_event_file *f)
{
	pthread_mutex_lock(&f->lock);
	if (f->ours >= 0)
		shutdown(f->ours, SHUT_RDWR);
	pthread_mutex_unlock(&f->lock);
}

ino_t uvd_event_file_ino(struct uvd_event_file *f)
{
	ino_t ino;

	pthread_mutex_lock(&f->lock);
	ino = f->ino;
	pthread_mutex_unlock(&f->lock);
	return ino;
}
