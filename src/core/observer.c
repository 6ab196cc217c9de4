/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Notes what a call reads and writes, and tells the observers at its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "account/account.h"
#include "client/client.h"
#include "core/internal.h"
#include "util/util.h"

enum { FIRST_ROOM = 2048 };

struct uvd_observation {
	struct uvd_mem_ops ops; /* the caller's, while the call runs */
	struct uvd_caller *caller;
	struct uvd_observed call;
	uint64_t started; /* CLOCK_MONOTONIC, ns */
	uint8_t *pieces;
	size_t room;
	bool complete; /* has pieces: an observer wants more than to count */
};

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static bool observation_reserve(struct uvd_observation *ob, size_t more)
{
	size_t room = ob->room ?: FIRST_ROOM;
	uint8_t *pieces;

	if (ob->call.len + more > UVD_PIECES_MAX)
		return false;
	while (room < ob->call.len + more)
		room *= 2;
	if (room == ob->room)
		return true;
	pieces = realloc(ob->pieces, room);
	if (!pieces)
		return false;
	ob->pieces = pieces;
	ob->room = room;
	return true;
}

static void piece_add(struct uvd_observation *ob, enum uvd_piece_kind kind, uint64_t addr, const void *bytes,
		      size_t len, int err)
{
	const size_t kept = err ? 0 : len < UVD_PIECE_MAX ? len : UVD_PIECE_MAX, padded = (kept + 7) & ~(size_t)7;
	const struct uvd_piece piece = { .addr = addr, .len = len, .kept = kept, .kind = kind, .failed = err != 0 };
	uint8_t *to;

	/* A replay needs all that the call read. What it wrote is only compared. */
	ob->call.cut |= kind != UVD_PIECE_WRITTEN && !err && kept < len;
	if (!observation_reserve(ob, sizeof(piece) + padded)) {
		ob->call.cut = true;
		return;
	}
	to = ob->pieces + ob->call.len;
	memcpy(to, &piece, sizeof(piece));
	if (kept)
		memcpy(to + sizeof(piece), bytes, kept);
	memset(to + sizeof(piece) + kept, 0, padded - kept);
	ob->call.len += sizeof(piece) + padded;
}

/* ---- the caller's memory operations ------------------------------------------------------------------------------ */

static struct uvd_observation *observation_of(struct uvd_caller *c)
{
	return container_of(c->mem, struct uvd_observation, ops);
}

static int observed_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	struct uvd_observation *ob = observation_of(c);
	int err = ob->ops.over->read(c, dst, src, len);

	piece_add(ob, UVD_PIECE_READ, src, dst, len, err);
	return err;
}

static ssize_t observed_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	struct uvd_observation *ob = observation_of(c);
	ssize_t n = ob->ops.over->read_ahead(c, dst, src, least, most);

	piece_add(ob, UVD_PIECE_READ, src, dst, n < 0 ? least : (size_t)n, n < 0);
	return n;
}

static int observed_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	struct uvd_observation *ob = observation_of(c);
	int err = ob->ops.over->write(c, dst, src, len);

	piece_add(ob, UVD_PIECE_WRITTEN, dst, src, len, err);
	return err;
}

/* If the write fails, some pieces may have been written: none of them counts. */
static int observed_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	struct uvd_observation *ob = observation_of(c);
	int err = ob->ops.over->writev(c, v, n);

	for (unsigned int i = 0; i < n; i++)
		piece_add(ob, UVD_PIECE_WRITTEN, v[i].addr, v[i].src, v[i].len, err);
	return err;
}

void uvd_watched_init(struct uvd_watched *file, struct uvd_engine *engine, const char *name, uint32_t node,
		      const struct uvd_account *account)
{
	*file = (struct uvd_watched){ .engine = engine, .name = name, .node = node, .account = account };
	file->number = atomic_fetch_add(&engine->files_opened, 1) + 1;
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

bool uvd_observer_wants(const struct uvd_observer *o, const struct uvd_watched *file)
{
	if (!o->one_user)
		return true;
	return !file->privileged && file->account && uvd_account_uid(file->account) == o->uid;
}

/* Does an observer want the file's calls? *complete: one wants more than to count. */
static bool observers_want(struct uvd_observers *all, const struct uvd_watched *file, bool *complete)
{
	bool wanted = false;

	*complete = false;
	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_ALL_OBSERVERS; i++) {
		const struct uvd_observer *o = all->list[i];

		if (!o || !o->call || !uvd_observer_wants(o, file))
			continue;
		wanted = true;
		*complete |= !o->counts_only;
	}
	uvd_unlock(&all->lock);
	return wanted;
}

/* From now on the observation notes what the call reads and writes. */
static void observation_take_memory(struct uvd_observation *ob, struct uvd_caller *caller)
{
	const pid_t pid = uvd_caller_tgid(caller);

	ob->ops = (struct uvd_mem_ops){
		.read = observed_read,
		.write = observed_write,
		.writev = observed_writev,
		.read_ahead = caller->mem->read_ahead ? observed_read_ahead : NULL,
		.over = caller->mem,
	};
	ob->complete = true;
	caller->mem = &ob->ops;
	ob->call.pid = pid > 0 ? pid : 0;
	ob->call.tid = caller->tid;
}

struct uvd_observation *uvd_observe_begin(struct uvd_watched *file, const struct uvd_tree *tree,
					  struct uvd_caller *caller, bool ioctl)
{
	struct uvd_observation *ob;
	bool complete;

	/* One user's trace must cost the others little. */
	if (!observers_want(&file->engine->observers, file, &complete))
		return NULL;
	ob = calloc(1, sizeof(*ob));
	if (!ob) {
		atomic_fetch_add(&file->engine->observers.lost, 1);
		return NULL;
	}
	ob->caller = caller;
	ob->call = (struct uvd_observed){
		.file = file,
		.tree = tree,
		.begin = realtime_ns(),
		.ioctl = ioctl,
	};
	if (complete)
		observation_take_memory(ob, caller);
	ob->started = uvd_now_ns();
	return ob;
}

void uvd_observe_command(struct uvd_observation *ob, const void *buf, size_t len)
{
	ob->call.size = len;
	if (ob->complete)
		piece_add(ob, UVD_PIECE_COMMAND, 0, buf, len, 0);
}

void uvd_observe_size(struct uvd_observation *ob, size_t size)
{
	ob->call.size = size;
}

void uvd_observe_written(struct uvd_observation *ob, uint64_t addr, const void *src, size_t len, int err)
{
	/* During a loan of its thread the caller has other operations. */
	if (ob && ob->complete && ob->caller->mem != &ob->ops)
		piece_add(ob, UVD_PIECE_WRITTEN, addr, src, len, err);
}

static void give_memory_back(struct uvd_observation *ob)
{
	if (ob->caller->mem == &ob->ops)
		ob->caller->mem = ob->ops.over;
}

void uvd_observe_drop(struct uvd_observation *ob)
{
	give_memory_back(ob);
	free(ob->pieces);
	free(ob);
}

void uvd_observe_end(struct uvd_observation *ob, const char *verb, long result)
{
	struct uvd_observers *all = &ob->call.file->engine->observers;

	give_memory_back(ob);
	ob->call.duration = uvd_now_ns() - ob->started;
	ob->call.result = result;
	ob->call.verb = verb;
	ob->call.pieces = ob->pieces;
	uvd_lock(&all->lock);
	/* A recorder that was added during a call without pieces does not see that call. */
	for (unsigned int i = ob->complete ? 0 : UVD_MAX_OBSERVERS; i < UVD_ALL_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->call)
			all->list[i]->call(all->list[i], &ob->call);
	uvd_unlock(&all->lock);
	free(ob->pieces);
	free(ob);
}

void uvd_observe_entry(struct uvd_observed_entry *entry)
{
	struct uvd_observers *all = &entry->file->engine->observers;

	entry->time = realtime_ns();
	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_MAX_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->entry)
			all->list[i]->entry(all->list[i], entry);
	uvd_unlock(&all->lock);
}

void uvd_observe_reason(struct uvd_observed_reason *reason)
{
	struct uvd_observers *all = &reason->file->engine->observers;

	reason->time = realtime_ns();
	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_ALL_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->explained)
			all->list[i]->explained(all->list[i], reason);
	uvd_unlock(&all->lock);
}

void uvd_observe_close(struct uvd_watched *file)
{
	struct uvd_observers *all = &file->engine->observers;

	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_ALL_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->closed)
			all->list[i]->closed(all->list[i], file);
	uvd_unlock(&all->lock);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static struct uvd_observed_object observed_object(const struct uvd_uobject *uobj)
{
	return (struct uvd_observed_object){
		.file = &uobj->file->watched,
		.self = uobj,
		.type = uobj->row->name,
		.id = uobj->row->id,
		.has_handle = uobj->row->cls == UVD_CLASS_IDR,
		.handle = uobj->id,
		.facts = &uobj->facts,
	};
}

void uvd_observe_made(const struct uvd_uobject *uobj)
{
	const struct uvd_observed_object object = observed_object(uobj);
	struct uvd_observers *all = &uobj->file->watched.engine->observers;

	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_ALL_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->object_made)
			all->list[i]->object_made(all->list[i], &object);
	uvd_unlock(&all->lock);
}

void uvd_observe_ended(const struct uvd_uobject *uobj, enum uvd_remove_reason why, unsigned int events)
{
	struct uvd_observed_object object = observed_object(uobj);
	struct uvd_observers *all = &uobj->file->watched.engine->observers;

	object.why = why;
	object.unread = events - uvd_uobject_events(uobj);
	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_ALL_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->object_ended)
			all->list[i]->object_ended(all->list[i], &object);
	uvd_unlock(&all->lock);
}

void uvd_observe_qp_ends(const struct uvd_uobject *uobj, const struct uvd_qp_work *work)
{
	struct uvd_observers *all = &uobj->file->watched.engine->observers;

	uvd_lock(&all->lock);
	for (unsigned int i = 0; i < UVD_ALL_OBSERVERS; i++)
		if (all->list[i] && all->list[i]->qp_ends)
			all->list[i]->qp_ends(all->list[i], uobj, work);
	uvd_unlock(&all->lock);
}

/* ---- observers --------------------------------------------------------------------------------------------------- */

void uvd_observers_init(struct uvd_observers *all)
{
	pthread_mutex_init(&all->lock, NULL);
}

void uvd_observers_fini(struct uvd_observers *all)
{
	pthread_mutex_destroy(&all->lock);
}

/* Does it see the memory of calls, and mapped queues? */
static bool observer_is_complete(const struct uvd_observer *o)
{
	return o->call && !o->counts_only;
}

int uvd_observer_add(struct uvd_engine *engine, struct uvd_observer *o)
{
	const unsigned int first = o->counts_only ? UVD_MAX_OBSERVERS : 0,
			   end = o->counts_only ? UVD_ALL_OBSERVERS : UVD_MAX_OBSERVERS;
	struct uvd_observers *all = &engine->observers;
	int ret = -EBUSY;

	uvd_lock(&all->lock);
	for (unsigned int i = first; i < end && ret; i++) {
		if (all->list[i])
			continue;
		o->slot = i;
		o->serial = ++all->serial;
		all->list[i] = o;
		atomic_fetch_add(&all->watched, 1);
		__atomic_fetch_add(&all->complete, observer_is_complete(o), __ATOMIC_RELAXED);
		ret = 0;
	}
	uvd_unlock(&all->lock);
	return ret;
}

void uvd_observer_remove(struct uvd_engine *engine, struct uvd_observer *o)
{
	struct uvd_observers *all = &engine->observers;

	uvd_lock(&all->lock);
	if (all->list[o->slot] == o) {
		all->list[o->slot] = NULL;
		atomic_fetch_sub(&all->watched, 1);
		__atomic_fetch_sub(&all->complete, observer_is_complete(o), __ATOMIC_RELAXED);
	}
	uvd_unlock(&all->lock);
}
