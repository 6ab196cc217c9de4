/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A recorder: clients' threads put records into its ring, and its thread writes them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "account/account.h"
#include "core/core.h"
#include "explain/explain.h"
#include "trace/ring.h"
#include "trace/trace.h"
#include "util/util.h"

/* ROWS: of a tree in one record. MAX_TREES: trees of which a recorder knows that it has told them. */
enum { ROWS = 32, MAX_TREES = 32, GIVE_UP_MS = 2000 };

struct uvd_recorder {
	struct uvd_observer observer;
	struct uvd_engine *engine;
	struct uvd_recorder_config config;
	int fd, wake; /* wake: an eventfd, for the thread */
	pthread_t thread;
	/* Only under the lock of the observers: */
	uint64_t trees[MAX_TREES];
	unsigned int num_trees;
	size_t tree_len; /* bytes of the records of the last tree */
	uint64_t unobserved; /* of the engine's `lost`, what the trace has counted */
	/* Under `lock`: */
	pthread_mutex_t lock;
	struct uvd_ring ring;
	uint64_t lost; /* records that did not fit, and which the trace does not tell yet */
	bool sleeps; /* the thread waits for `wake` */
	bool stop, ended;
	int err; /* of a write */
};

/* ---- into the ring ----------------------------------------------------------------------------------------------- */

struct part {
	const void *bytes;
	size_t len;
};

/* Caller holds r->lock. Tells what was lost before; false: there is no room for that either. */
static bool recorder_tell_lost(struct uvd_recorder *r, size_t more)
{
	struct uvd_trace_lost lost = { .record = { sizeof(lost), UVD_TRACE_LOST }, .num = r->lost };

	if (uvd_ring_room(&r->ring) < more + (r->lost ? sizeof(lost) : 0))
		return false;
	if (r->lost)
		uvd_ring_put(&r->ring, &lost, sizeof(lost));
	r->lost = 0;
	return true;
}

/* Caller holds r->lock. Counts the calls that were not observed. */
static void recorder_count_unobserved(struct uvd_recorder *r)
{
	const uint64_t all = atomic_load(&r->engine->observers.lost);

	r->lost += all - r->unobserved;
	r->unobserved = all;
}

/* Is there room for so many bytes, or is half of the ring empty? If not, a record is lost. */
static bool recorder_has_room(struct uvd_recorder *r, size_t len)
{
	bool has;

	pthread_mutex_lock(&r->lock);
	has = uvd_ring_room(&r->ring) >= (len < r->ring.size / 2 ? len : r->ring.size / 2);
	r->lost += !has;
	pthread_mutex_unlock(&r->lock);
	return has;
}

/* Returns false if the record is lost. The parts together are one record. */
static bool recorder_put(struct uvd_recorder *r, const struct part *parts, unsigned int num)
{
	size_t len = 0;
	bool fits, wake;

	for (unsigned int i = 0; i < num; i++)
		len += parts[i].len;
	pthread_mutex_lock(&r->lock);
	recorder_count_unobserved(r);
	fits = !r->ended && recorder_tell_lost(r, len);
	for (unsigned int i = 0; i < num && fits; i++)
		uvd_ring_put(&r->ring, parts[i].bytes, parts[i].len);
	r->lost += !fits;
	wake = r->sleeps;
	r->sleeps = false;
	pthread_mutex_unlock(&r->lock);
	if (wake)
		eventfd_write(r->wake, 1);
	return fits;
}

/* ---- trees ------------------------------------------------------------------------------------------------------- */

struct tree_walk {
	struct uvd_recorder *r;
	struct uvd_trace_tree head;
	union {
		struct uverbsd_tree_row rows[ROWS];
		struct uverbsd_tree_role roles[ROWS];
	};
	bool ok;
};

/* The rows of a tree and of its roles, counted, and a digest of them: two trees with the same rows are one. */
struct tree_sum {
	uint64_t digest;
	uint32_t rows, roles;
};

/* FNV-1a */
static void tree_hash(struct tree_sum *sum, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum->digest = (sum->digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static int tree_hash_row(void *arg, const struct uverbsd_tree_row *row)
{
	struct tree_sum *sum = arg;

	tree_hash(sum, row, sizeof(*row));
	sum->rows++;
	return 0;
}

static int tree_hash_role(void *arg, const struct uverbsd_tree_role *row)
{
	struct tree_sum *sum = arg;

	tree_hash(sum, row, sizeof(*row));
	sum->roles++;
	return 0;
}

static void tree_put_rows(struct tree_walk *w)
{
	const size_t size = w->head.record.kind == UVD_TRACE_TREE ? sizeof(*w->rows) : sizeof(*w->roles);
	struct part parts[] = { { &w->head, sizeof(w->head) }, { w->rows, w->head.num * size } };

	if (!w->head.num || !w->ok)
		return;
	w->head.record.len = parts[0].len + parts[1].len;
	w->ok = recorder_put(w->r, parts, 2);
	w->head.first += w->head.num;
	w->head.num = 0;
}

static int tree_take_row(void *arg, const struct uverbsd_tree_row *row)
{
	struct tree_walk *w = arg;

	w->rows[w->head.num++] = *row;
	if (w->head.num == ROWS)
		tree_put_rows(w);
	return 0;
}

static int tree_take_role(void *arg, const struct uverbsd_tree_role *row)
{
	struct tree_walk *w = arg;

	w->roles[w->head.num++] = *row;
	if (w->head.num == ROWS)
		tree_put_rows(w);
	return 0;
}

static bool recorder_knows(const struct uvd_recorder *r, uint64_t tree)
{
	for (unsigned int i = 0; i < r->num_trees; i++)
		if (r->trees[i] == tree)
			return true;
	return false;
}

/* Tells the tree unless the trace has it. Sets *id. Returns false if a part of it is lost. */
static bool recorder_tell_tree(struct uvd_recorder *r, const struct uvd_tree *tree, uint64_t *id)
{
	struct tree_sum sum = {};
	struct tree_walk *w;
	bool ok;

	/* Opening many files must not make the observers' lock slow: a tree is described once. */
	*id = atomic_load_explicit(&tree->digest, memory_order_relaxed);
	if (*id && recorder_knows(r, *id))
		return true;
	uvd_tree_describe(tree, tree_hash_row, &sum);
	uvd_tree_describe_roles(tree, tree_hash_role, &sum);
	*id = sum.digest;
	/* The only member of a tree that changes. */
	atomic_store_explicit(&((struct uvd_tree *)tree)->digest, sum.digest, memory_order_relaxed);
	if (recorder_knows(r, sum.digest))
		return true;
	r->tree_len = (sum.rows / ROWS + sum.roles / ROWS + 2) * sizeof(w->head) + sum.rows * sizeof(*w->rows) +
		      sum.roles * sizeof(*w->roles);
	if (!recorder_has_room(r, r->tree_len))
		return false;
	w = malloc(sizeof(*w));
	if (!w) {
		atomic_fetch_add(&r->engine->observers.lost, 1);
		return false;
	}
	*w = (struct tree_walk){ .r = r, .ok = true };
	w->head = (struct uvd_trace_tree){ .tree = sum.digest, .total = sum.rows, .driver_id = tree->driver_id };
	w->head.record.kind = UVD_TRACE_TREE;
	uvd_tree_describe(tree, tree_take_row, w);
	tree_put_rows(w);
	w->head = (struct uvd_trace_tree){ .tree = sum.digest, .total = sum.roles, .row_size = sizeof(*w->roles) };
	w->head.record.kind = UVD_TRACE_ROLES;
	uvd_tree_describe_roles(tree, tree_take_role, w);
	tree_put_rows(w);
	ok = w->ok;
	free(w);
	if (ok && r->num_trees < MAX_TREES)
		r->trees[r->num_trees++] = sum.digest;
	return ok;
}

/* ---- files and calls --------------------------------------------------------------------------------------------- */

static bool recorder_put_file(struct uvd_recorder *r, struct uvd_watched *file, struct uvd_trace_file *f,
			      const struct uvd_tree *tree)
{
	const struct part part = { f, sizeof(*f) };

	memcpy(f->ibdev, file->name, strnlen(file->name, sizeof(f->ibdev) - 1));
	if (r->config.program && f->pid)
		r->config.program(r->config.arg, f->pid, f->program, sizeof(f->program));
	if (!recorder_put(r, &part, 1))
		return false;
	file->told[r->observer.slot] = (struct uvd_told){ .serial = r->observer.serial, .tree = tree };
	return true;
}

/* Tells the file before its first call. If that is lost, the next call tries again. */
static bool recorder_tell_file(struct uvd_recorder *r, struct uvd_watched *file, const struct uvd_tree *tree)
{
	struct uvd_trace_file f = { .record = { sizeof(f), UVD_TRACE_FILE },
				    .file = file->number,
				    .pid = file->opened_by,
				    .number = file->node };
	const struct uvd_told *told = &file->told[r->observer.slot];

	if (told->serial == r->observer.serial && told->tree == tree)
		return true;
	if (r->config.explanations)
		return recorder_put_file(r, file, &f, tree);
	/* While the reader is slow, do not look at the whole tree for each call. */
	if (!recorder_has_room(r, r->tree_len) || !recorder_tell_tree(r, tree, &f.tree))
		return false;
	return recorder_put_file(r, file, &f, tree);
}

/* Another observer may want what this one does not. */
static bool recorder_wants(const struct uvd_recorder *r, const struct uvd_watched *file, pid_t pid, pid_t tid)
{
	if (r->config.pid && r->config.pid != pid && r->config.pid != tid)
		return false;
	return uvd_observer_wants(&r->observer, file);
}

static void recorder_call(struct uvd_observer *o, const struct uvd_observed *call)
{
	struct uvd_recorder *r = container_of(o, struct uvd_recorder, observer);
	struct uvd_trace_call c = {
		.record = { sizeof(c) + call->len, UVD_TRACE_CALL },
		.file = call->file->number,
		.begin = call->begin,
		.duration = call->duration,
		.result = call->result,
		.pid = call->pid,
		.tid = call->tid,
		.flags = (call->ioctl ? UVD_TRACE_CALL_IOCTL : 0) | (call->cut ? UVD_TRACE_CALL_CUT : 0),
		.pieces = call->len,
	};
	const struct part parts[] = { { &c, sizeof(c) }, { call->pieces, call->len } };

	if (recorder_wants(r, call->file, call->pid, call->tid) && recorder_tell_file(r, call->file, call->tree))
		recorder_put(r, parts, call->len ? 2 : 1);
}

/* The engine's thread says nothing about who has posted: the opener stands for the process. */
static void recorder_entry(struct uvd_observer *o, const struct uvd_observed_entry *entry)
{
	static const uint8_t zeros[8];
	struct uvd_recorder *r = container_of(o, struct uvd_recorder, observer);
	const size_t padding = -entry->len & 7;
	struct uvd_trace_entry e = {
		.record = { sizeof(e) + entry->len + padding, UVD_TRACE_ENTRY },
		.file = entry->file->number,
		.time = entry->time,
		.handle = entry->handle,
		.object = entry->object,
		.kind = entry->kind,
		.bytes = entry->len,
	};
	const struct part parts[] = { { &e, sizeof(e) }, { entry->bytes, entry->len }, { zeros, padding } };
	const pid_t opener = entry->file->opened_by;

	if (recorder_wants(r, entry->file, opener, opener) && recorder_tell_file(r, entry->file, entry->tree))
		recorder_put(r, parts, padding ? 3 : 2);
}

static void recorder_explained(struct uvd_observer *o, const struct uvd_observed_reason *reason)
{
	static const uint8_t zeros[8];
	struct uvd_recorder *r = container_of(o, struct uvd_recorder, observer);
	char text[UVD_EXPLAINED_TEXT], json[2 * UVD_EXPLAINED_TEXT];
	struct uvd_trace_why w = {
		.record.kind = UVD_TRACE_WHY,
		.file = reason->file->number,
		.time = reason->time,
		.pid = reason->pid,
	};
	struct part parts[] = { { &w, sizeof(w) }, { text, 0 }, { json, 0 }, { zeros, 0 } };

	if (!recorder_wants(r, reason->file, reason->pid, reason->pid))
		return;
	parts[1].len = w.text = uvd_explained_text(text, sizeof(text), reason->explained);
	parts[2].len = w.json =
		uvd_explained_json(json, sizeof(json), reason->explained, reason->file->name, reason->pid);
	parts[3].len = -(w.text + w.json) & 7;
	w.record.len = sizeof(w) + w.text + w.json + parts[3].len;
	if (recorder_tell_file(r, reason->file, reason->tree))
		recorder_put(r, parts, 4);
}

static void recorder_closed(struct uvd_observer *o, struct uvd_watched *file)
{
	struct uvd_recorder *r = container_of(o, struct uvd_recorder, observer);
	struct uvd_trace_close c = { .record = { sizeof(c), UVD_TRACE_CLOSE }, .file = file->number };
	struct part part = { &c, sizeof(c) };
	struct timespec t;

	if (file->told[o->slot].serial != o->serial)
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	c.time = t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
	recorder_put(r, &part, 1);
}

/* ---- out of the ring --------------------------------------------------------------------------------------------- */

/*
 * Waits until there is more to write, or the fd takes more, and if *end is set, until then. Sets *end if the recorder
 * stops. Returns false if the reader has gone, or time is up.
 */
static bool recorder_wait(struct uvd_recorder *r, bool stopping, bool for_room, uint64_t *end)
{
	const uint64_t now = uvd_now_ns() / 1000000;
	struct pollfd p[] = { { .fd = r->fd, .events = for_room ? POLLOUT : 0 },
			      { .fd = stopping ? -1 : r->wake, .events = POLLIN } };
	eventfd_t ignored;
	int n;

	if (stopping && !*end)
		*end = now + GIVE_UP_MS;
	n = poll(p, 2, !*end ? -1 : now < *end ? (int)(*end - now) : 0);
	if (p[1].revents)
		eventfd_read(r->wake, &ignored);
	return (n > 0 || (n < 0 && errno == EINTR)) && (!*end || now < *end) &&
	       !(p[0].revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* Looks at what is next. Returns false if there is nothing and there will be nothing. */
static bool recorder_next(struct uvd_recorder *r, const uint8_t **bytes, size_t *len, bool *stopping)
{
	pthread_mutex_lock(&r->lock);
	*stopping = r->stop;
	if (r->stop)
		recorder_tell_lost(r, 0);
	*bytes = uvd_ring_next(&r->ring, len);
	r->sleeps = !*len;
	pthread_mutex_unlock(&r->lock);
	return *len || !*stopping;
}

/* Returns 0, or the errno that ends the trace. */
static int recorder_write_all(struct uvd_recorder *r)
{
	const uint8_t *bytes;
	uint64_t end = 0;
	bool stopping;
	size_t len;
	ssize_t n;

	while (recorder_next(r, &bytes, &len, &stopping)) {
		n = len ? write(r->fd, bytes, len) : 0;
		if (n > 0) {
			pthread_mutex_lock(&r->lock);
			uvd_ring_took(&r->ring, n);
			pthread_mutex_unlock(&r->lock);
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return -errno;
		} else if (!recorder_wait(r, stopping, len, &end)) {
			return -EPIPE;
		}
	}
	return 0;
}

static void *recorder_thread(void *arg)
{
	struct uvd_recorder *r = arg;
	int err = recorder_write_all(r);

	if (!err)
		return NULL;
	uvd_observer_remove(r->engine, &r->observer);
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	r->err = err;
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static void recorder_release(struct uvd_recorder *r)
{
	if (r->wake >= 0)
		close(r->wake);
	uvd_ring_fini(&r->ring);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static int recorder_start(struct uvd_recorder *r)
{
	const struct uvd_trace_header header = { .magic = UVD_TRACE_MAGIC,
						 .order = UVD_TRACE_ORDER,
						 .version = UVD_TRACE_VERSION,
						 .row_size = sizeof(struct uverbsd_tree_row) };
	const int flags = fcntl(r->fd, F_GETFL);
	int err;

	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake < 0 || flags < 0 || fcntl(r->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	err = uvd_ring_init(&r->ring, r->config.ring ?: UVD_RECORDER_RING);
	if (err)
		return err;
	if (r->config.greeting)
		uvd_ring_put(&r->ring, r->config.greeting, strlen(r->config.greeting));
	uvd_ring_put(&r->ring, &header, sizeof(header));
	err = uvd_observer_add(r->engine, &r->observer);
	if (err)
		return err;
	err = uvd_thread_start(&r->thread, 0, recorder_thread, r);
	if (err)
		uvd_observer_remove(r->engine, &r->observer);
	return err;
}

struct uvd_recorder *uvd_recorder_new(struct uvd_engine *engine, int fd, const struct uvd_recorder_config *config,
				      int *err)
{
	struct uvd_recorder *r = calloc(1, sizeof(*r));

	*err = -ENOMEM;
	if (!r)
		return NULL;
	r->engine = engine;
	r->config = *config;
	if (!config->explanations) {
		r->observer.call = recorder_call;
		r->observer.entry = recorder_entry;
	}
	r->observer.closed = recorder_closed;
	r->observer.explained = recorder_explained;
	r->observer.one_user = config->one_user;
	r->observer.uid = config->uid;
	r->unobserved = atomic_load(&engine->observers.lost);
	r->fd = fd;
	pthread_mutex_init(&r->lock, NULL);
	*err = recorder_start(r);
	if (!*err)
		return r;
	recorder_release(r);
	return NULL;
}

bool uvd_recorder_ended(struct uvd_recorder *r)
{
	bool ended;

	pthread_mutex_lock(&r->lock);
	ended = r->ended;
	pthread_mutex_unlock(&r->lock);
	return ended;
}

int uvd_recorder_free(struct uvd_recorder *r)
{
	int err;

	if (!r)
		return 0;
	uvd_observer_remove(r->engine, &r->observer);
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_mutex_unlock(&r->lock);
	eventfd_write(r->wake, 1);
	pthread_join(r->thread, NULL);
	err = r->err;
	close(r->fd);
	recorder_release(r);
	return err;
}
