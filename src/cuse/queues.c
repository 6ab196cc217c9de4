/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cuse/queues.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "account/account.h"
#include "cpu/cpu.h"
#include "cuse/internal.h"
#include "util/util.h"

/* linux/fuse.h has this since 6.9: write() and mmap() are for the memory behind the file; with FOPEN_DIRECT_IO write() is a request. */
enum { QUEUES_PASSTHROUGH = 1 << 7 };

/* The position of a file whose doorbells go into a log, as a power of two. */
enum { QUEUES_LOG = 61 };
_Static_assert((off_t)1 << QUEUES_LOG == UVD_DOORBELL_LOG, "the log begins there");
_Static_assert(UVD_BACKING_BYTES == UVD_DOORBELL_FILE, "a log has room");

/* The attributes of these files never change. */
#define QUEUES_ATTR_SECONDS 86400.0

struct queue_offer {
	struct list_head of_channel;
	struct cuse_file *file; /* not referenced: the grant has the reference while it waits */
	uint64_t name;
	pid_t pid; /* the only process that may open it */
	bool taken;
};

void uvd_cuse_offers_init(struct uvd_cuse_offers *offers)
{
	INIT_LIST_HEAD(&offers->list);
	offers->last = FUSE_ROOT_ID;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Notes a new queue, and returns its offset, or 0. Caller holds m->lock. */
static uint64_t memory_place(struct uvd_cuse_memory *m, size_t length)
{
	const uint64_t offset = m->next;
	struct uvd_cuse_queue *more;

	if (length > UVD_DOORBELL_QUEUES || offset > UVD_DOORBELL_QUEUES - length)
		return 0;
	if (m->num_queues == m->max_queues) {
		more = realloc(m->queues, (2 * m->max_queues + 8) * sizeof(*more));
		if (!more)
			return 0;
		m->queues = more;
		m->max_queues = 2 * m->max_queues + 8;
	}
	m->queues[m->num_queues++] = (struct uvd_cuse_queue){ offset, length };
	m->next += length;
	return offset;
}

/* Caller holds m->lock. */
static void memory_forget(struct uvd_cuse_memory *m, uint64_t offset)
{
	unsigned int i = 0;

	while (i < m->num_queues && m->queues[i].offset != offset)
		i++;
	if (i == m->num_queues)
		return;
	m->num_queues--;
	memmove(m->queues + i, m->queues + i + 1, (m->num_queues - i) * sizeof(*m->queues));
}

static int queues_get(void *owner, size_t length, uint8_t **memory, uint64_t *offset)
{
	struct uvd_cuse_memory *m = &((struct cuse_file *)owner)->memory;
	void *mapped;

	if (m->memfd < 0)
		return -EOPNOTSUPP; /* a call by a descriptor that was duplicated before */
	uvd_lock(&m->lock);
	*offset = memory_place(m, length);
	uvd_unlock(&m->lock);
	if (!*offset)
		return -ENOMEM;
	mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, m->memfd, (off_t)*offset);
	*memory = mapped;
	if (mapped != MAP_FAILED)
		return 0;
	uvd_lock(&m->lock);
	memory_forget(m, *offset);
	uvd_unlock(&m->lock);
	return -ENOMEM;
}

/* The client's own mapping stays, and reads as zeros: its pages are removed from the file. */
static void queues_put(void *owner, uint8_t *memory, size_t length, uint64_t offset)
{
	struct uvd_cuse_memory *m = &((struct cuse_file *)owner)->memory;

	madvise(memory, length, MADV_REMOVE);
	munmap(memory, length);
	uvd_lock(&m->lock);
	memory_forget(m, offset);
	uvd_unlock(&m->lock);
}

static const struct uvd_share_ops queues_share = { .get = queues_get, .put = queues_put };

void uvd_cuse_memory_init(struct cuse_file *f)
{
	struct uvd_file *file = f->priv;

	file->share = &queues_share;
	file->share_owner = f;
	file->unmapped = true;
	f->memory.next = uvd_cpu_page_size();
}

void uvd_cuse_memory_drain(struct cuse_file *f)
{
	struct uvd_doorbell_log *log = atomic_load(&f->memory.log);

	if (log)
		uvd_doorbell_log_drain(log);
}

void uvd_cuse_memory_end_log(struct cuse_file *f)
{
	uvd_doorbell_log_end(atomic_exchange(&f->memory.log, NULL));
}

void uvd_cuse_memory_fini(struct cuse_file *f)
{
	struct uvd_privilege *p = f->cuse->config.privilege;

	free(f->memory.queues);
	if (f->memory.memfd < 0)
		return;
	close(f->memory.memfd);
	p->ops->end_backing(p, f->memory.number);
	uvd_account_uncharge(f->memory.account, UVD_RES_DESCRIPTORS, 1);
	uvd_account_put(f->memory.account);
}

/* Begins the log of the client's doorbells, if it can have one. */
static void memory_begin_log(struct cuse_file *f, struct uvd_caller *caller)
{
	struct uvd_cuse_memory *m = &f->memory;
	struct uvd_doorbells *reader = f->cuse->config.queues->config.doorbells;
	const char *why = reader ? uvd_doorbell_refusal(f->priv) : "--doorbells calls";
	struct uvd_doorbell_log *log = NULL;
	int err = why || m->log ? 0 : uvd_doorbell_log_new(reader, f->priv, m->memfd, m->number, caller, &log);

	if (log)
		atomic_store(&m->log, log);

	if (err)
		why = uvd_errno_name(err);
	if (why)
		uvd_logf(f->cuse->config.log, UVD_DEBUG, "%s: doorbells of process %d are calls: %s",
			 f->cuse->node.path, (int)f->opener.tgid, why);
}

static void memory_punch(const struct uvd_cuse_memory *m, uint64_t begin, uint64_t end)
{
	if (begin < end)
		fallocate(m->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin));
}

/* Removes all pages that belong to no queue. Caller holds m->lock. */
static void memory_trim(struct uvd_cuse_memory *m)
{
	uint64_t begin = 0;

	for (unsigned int i = 0; i < m->num_queues; i++) {
		memory_punch(m, begin, m->queues[i].offset);
		begin = m->queues[i].offset + m->queues[i].length;
	}
	memory_punch(m, begin, m->log ? UVD_DOORBELL_LOG : UVD_BACKING_BYTES);
	if (m->log)
		uvd_doorbell_log_give_back(m->log);
}

void uvd_cuse_memory_look(struct cuse_file *f)
{
	enum { SLACK = 2 << 20 /* bytes: the log, and pages whose queue ends at this moment */, BLOCK = 512 };
	struct uvd_cuse_memory *m = &f->memory;
	uint64_t least = SLACK;
	struct stat st;

	uvd_lock(&m->lock);
	for (unsigned int i = 0; i < m->num_queues; i++)
		least += m->queues[i].length;
	if (m->memfd >= 0 && !fstat(m->memfd, &st) && (uint64_t)st.st_blocks * BLOCK > least) {
		uvd_log_limited(f->cuse->config.log, UVD_WARN,
				"%s: process %d has written %llu KiB where it has no queue: they are given back",
				f->cuse->node.path, (int)f->opener.tgid,
				((unsigned long long)st.st_blocks * BLOCK - least) >> 10);
		memory_trim(m);
	}
	uvd_unlock(&m->lock);
}

static int memory_make(struct cuse_file *f, struct uvd_privilege *p)
{
	struct uvd_cuse_memory *m = &f->memory;
	int err, number, memfd;

	if (m->memfd >= 0)
		return 0;
	err = uvd_account_charge(f->opener.account, UVD_RES_DESCRIPTORS, 1);
	if (err)
		return err;
	err = p->ops->make_backing(p, &number, &memfd);
	if (err) {
		uvd_account_uncharge(f->opener.account, UVD_RES_DESCRIPTORS, 1);
		return err;
	}
	uvd_lock(&m->lock);
	m->number = number;
	m->memfd = memfd;
	m->account = uvd_account_ref(f->opener.account);
	uvd_unlock(&m->lock);
	return 0;
}

/* ---- offers ------------------------------------------------------------------------------------------------------ */

static void offer_begin(struct uvd_cuse *channel, struct queue_offer *offer)
{
	uvd_lock(&channel->lock);
	offer->name = ++channel->offers.last;
	list_add(&offer->of_channel, &channel->offers.list);
	uvd_unlock(&channel->lock);
}

static void offer_end(struct uvd_cuse *channel, struct queue_offer *offer)
{
	uvd_lock(&channel->lock);
	list_del_init(&offer->of_channel);
	uvd_unlock(&channel->lock);
}

/* Caller holds the channel's lock. */
static struct queue_offer *offer_find(struct uvd_cuse *channel, uint64_t name, pid_t pid)
{
	struct queue_offer *o;

	list_for_each_entry(o, &channel->offers.list, of_channel)
		if (o->name == name && o->pid == pid && !o->taken)
			return o;
	return NULL;
}

/* Returns a reference to the file that was offered to this process, once; or NULL. */
static struct cuse_file *offer_take(struct uvd_cuse *channel, uint64_t name, pid_t pid)
{
	struct cuse_file *f = NULL;
	struct queue_offer *o;

	uvd_lock(&channel->lock);
	o = offer_find(channel, name, pid);
	if (o) {
		o->taken = true;
		f = o->file;
		atomic_fetch_add(&f->ref, 1);
		atomic_fetch_add(&f->cuse->num_mapped, 1);
	}
	uvd_unlock(&channel->lock);
	return f;
}

/* Puts the channel's reference. */
static void offer_put(struct cuse_file *f)
{
	struct uvd_cuse *node = f->cuse;

	uvd_cuse_file_put(f);
	atomic_fetch_sub(&node->num_mapped, 1); /* last: then the node may be freed */
}

int uvd_cuse_may_replace(struct uvd_caller *caller)
{
	uint64_t most;

	return !uvd_caller_file_size(caller, &most) && most != RLIM_INFINITY ? -EFBIG : 0;
}

void uvd_cuse_log_not_replaced(struct cuse_file *f, const struct uvd_caller *caller, int err)
{
	const char *why = uvd_errno_name(err);

	if (err == -EFBIG)
		why = "its RLIMIT_FSIZE is finite, which counts doorbells, too: raise it";
	else if (err == -EAGAIN)
		why = "its user's programs have had all places for loans for a minute: start fewer at once";
	else if (err == -EPERM)
		why = "its thread cannot be borrowed: a debugger has it, or a seccomp filter of its own";
	uvd_log_of_user(
		f->cuse->config.log, caller->log_user, UVD_WARN,
		"%s: process %d gets no queues that it can map: %s; `uverbsctl device add --persona hfi1` makes a "
		"device that needs none",
		f->cuse->node.path, (int)f->opener.tgid, why);
}

static int queues_replace(struct cuse_file *f, struct uvd_caller *caller, struct uvd_privilege *p, struct uvd_loan *l)
{
	struct uvd_cuse *channel = f->cuse->config.queues;
	struct queue_offer offer = { .file = f, .pid = l->place->pid };
	int err = memory_make(f, p);

	if (err)
		return err;
	memory_begin_log(f, caller);
	offer_begin(channel, &offer);
	err = p->ops->replace(p, l, offer.name, f->memory.log ? QUEUES_LOG : 0);
	offer_end(channel, &offer);
	if (err || !offer.taken)
		return err ? err : -EPROTO;
	atomic_store(&((struct uvd_file *)f->priv)->unmapped, false);
	return 0;
}

int uvd_cuse_replace(struct cuse_file *f, struct uvd_caller *caller, struct uvd_privilege *p, struct uvd_loan *l)
{
	int err;

	if (atomic_exchange(&f->memory.is_made, true))
		return -EINVAL;
	err = queues_replace(f, caller, p, l);
	atomic_store(&f->memory.is_made, false);
	return err;
}

/* ---- the file system ---------------------------------------------------------------------------------------------- */

static struct stat queues_attr(fuse_ino_t ino)
{
	return (struct stat){
		.st_ino = ino,
		.st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600,
		.st_nlink = 1,
		.st_size = ino == FUSE_ROOT_ID ? 0 : UVD_BACKING_BYTES,
		.st_blksize = (blksize_t)uvd_cpu_page_size(),
	};
}

static void queues_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct uvd_cuse *channel = fuse_req_userdata(req);
	struct fuse_entry_param e = { .attr_timeout = QUEUES_ATTR_SECONDS, .generation = 1 };
	bool found;

	e.ino = strtoull(name, NULL, 10);
	uvd_lock(&channel->lock);
	found = parent == FUSE_ROOT_ID && offer_find(channel, e.ino, fuse_req_ctx(req)->pid);
	uvd_unlock(&channel->lock);
	e.attr = queues_attr(e.ino);
	if (found)
		fuse_reply_entry(req, &e);
	else
		fuse_reply_err(req, ENOENT);
}

static void queues_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct stat attr = queues_attr(ino);

	fuse_reply_attr(req, &attr, QUEUES_ATTR_SECONDS);
}

static void queues_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EPERM);
}

/* libfuse knows no passthrough: this function answers by itself. Returns false if the kernel did not take the answer. */
static bool queues_answer_open(struct uvd_cuse *channel, uint64_t unique, struct cuse_file *f)
{
	struct fuse_open_out open = {
		.fh = (uintptr_t)f,
		.open_flags = QUEUES_PASSTHROUGH | FOPEN_NOFLUSH | (f->memory.log ? 0 : FOPEN_DIRECT_IO),
	};
	const struct fuse_out_header header = { .len = sizeof(header) + sizeof(open), .unique = unique };
	const struct iovec v[] = { { (void *)&header, sizeof(header) }, { &open, sizeof(open) } };
	const size_t place = offsetof(struct fuse_open_out, open_flags) + sizeof(open.open_flags);
	const uint32_t number = f->memory.number;

	/* The number's place since 6.9: `padding` in headers before that, then `backing_id`. */
	memcpy((char *)&open + place, &number, sizeof(number));
	return writev(fuse_session_fd(channel->se), v, 2) == (ssize_t)header.len;
}

/* A client can open /proc/self/fd/N at any time: only the process of a loan that was ordered gets a file. */
static void queues_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct uvd_cuse *channel = fuse_req_userdata(req);
	struct cuse_file *f = offer_take(channel, ino, fuse_req_ctx(req)->pid);

	if (!f) {
		fuse_reply_err(req, EPERM);
		return;
	}
	if (!queues_answer_open(channel, uvd_cuse_unique(uvd_cuse_self()), f))
		offer_put(f);
	fuse_reply_none(req);
}

/* Counts a request at the file's device: the channel is that of all devices. */
static void queues_count(const struct fuse_file_info *fi)
{
	atomic_fetch_add_explicit(&((struct cuse_file *)fi->fh)->cuse->served_mapped, 1, memory_order_relaxed);
}

static void queues_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	queues_count(fi);
	offer_put((struct cuse_file *)fi->fh);
	fuse_reply_err(req, 0);
}

static void queues_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	queues_count(fi);
	uvd_cuse_operations.read(req, size, off, fi);
}

/* The position moves with each write(), and has no meaning: a piece of a split write() cannot be told by it. */
static void queues_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	queues_count(fi);
	uvd_cuse_operations.write(req, data, size, 0, fi);
}

static void queues_ioctl(fuse_req_t req, fuse_ino_t ino, int cmd, void *arg, struct fuse_file_info *fi,
			 unsigned int flags, const void *in, size_t in_size, size_t out_size)
{
	queues_count(fi);
	uvd_cuse_operations.ioctl(req, cmd, arg, fi, flags, in, in_size, out_size);
}

static const struct fuse_lowlevel_ops queues_operations = {
	.lookup = queues_lookup,
	.getattr = queues_getattr,
	.setattr = queues_setattr,
	.open = queues_open,
	.release = queues_release,
	.read = queues_read,
	.write = queues_write,
	.ioctl = queues_ioctl,
};

static int queues_make(struct uvd_cuse *c, int *fd)
{
	struct uvd_privilege *p = c->config.privilege;

	snprintf(c->node.path, sizeof(c->node.path), "queues");
	c->node.number = -1;
	return p->ops->make_queues(p, fd);
}

const struct uvd_cuse_kind uvd_cuse_queue_files = {
	.make = queues_make,
	.fuse = &queues_operations,
	.write = uvd_cuse_device_write,
	.write_from = uvd_cuse_device_write_from,
	.ioctl = uvd_cuse_device_ioctl,
};
