/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cuse/queues.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "account/account.h"
#include "cpu/cpu.h"
#include "cuse/internal.h"
#include "util/util.h"

/* Of linux/fuse.h since 6.9: write() and mmap() are for the memory behind the file; with FOPEN_DIRECT_IO write() is a request. */
enum { QUEUES_PASSTHROUGH = 1 << 7 };

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

static int queues_get(void *owner, size_t length, uint8_t **memory, uint64_t *offset)
{
	struct uvd_cuse_memory *m = &((struct cuse_file *)owner)->memory;
	void *mapped;

	if (m->memfd < 0)
		return -EOPNOTSUPP; /* a call by a descriptor that was duplicated before */
	*offset = atomic_fetch_add(&m->next, length);
	if (length > UVD_BACKING_BYTES || *offset > UVD_BACKING_BYTES - length)
		return -ENOMEM;
	mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, m->memfd, (off_t)*offset);
	*memory = mapped;
	return mapped == MAP_FAILED ? -ENOMEM : 0;
}

/* The client's own mapping stays, and reads as zeros: its pages are removed from the file. */
static void queues_put(void *owner, uint8_t *memory, size_t length, uint64_t offset)
{
	madvise(memory, length, MADV_REMOVE);
	munmap(memory, length);
}

static const struct uvd_share_ops queues_share = { .get = queues_get, .put = queues_put };

void uvd_cuse_memory_init(struct cuse_file *f)
{
	struct uvd_file *file = f->priv;

	file->share = &queues_share;
	file->share_owner = f;
	file->unmapped = true;
	atomic_init(&f->memory.next, uvd_cpu_page_size());
}

void uvd_cuse_memory_fini(struct cuse_file *f)
{
	struct uvd_privilege *p = f->cuse->config.privilege;

	if (f->memory.memfd < 0)
		return;
	close(f->memory.memfd);
	p->ops->end_backing(p, f->memory.number);
	uvd_account_uncharge(f->memory.account, UVD_RES_DESCRIPTORS, 1);
	uvd_account_put(f->memory.account);
}

static int memory_make(struct cuse_file *f, struct uvd_privilege *p)
{
	struct uvd_cuse_memory *m = &f->memory;
	int err;

	if (m->memfd >= 0)
		return 0;
	err = uvd_account_charge(f->opener.account, UVD_RES_DESCRIPTORS, 1);
	if (err)
		return err;
	err = p->ops->make_backing(p, &m->number, &m->memfd);
	if (err) {
		m->memfd = -1;
		uvd_account_uncharge(f->opener.account, UVD_RES_DESCRIPTORS, 1);
		return err;
	}
	m->account = uvd_account_ref(f->opener.account);
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
	}
	uvd_unlock(&channel->lock);
	return f;
}

int uvd_cuse_replace(struct cuse_file *f, struct uvd_privilege *p, struct uvd_loan *l)
{
	struct uvd_cuse *channel = f->cuse->config.queues;
	struct queue_offer offer = { .file = f, .pid = l->place->pid };
	int err = memory_make(f, p);

	if (err)
		return err;
	offer_begin(channel, &offer);
	err = p->ops->replace(p, l, offer.name);
	offer_end(channel, &offer);
	if (err || !offer.taken)
		return err ? err : -EPROTO;
	atomic_store(&((struct uvd_file *)f->priv)->unmapped, false);
	return 0;
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
		.open_flags = QUEUES_PASSTHROUGH | FOPEN_NOFLUSH | FOPEN_DIRECT_IO,
	};
	const struct fuse_out_header header = { .len = sizeof(header) + sizeof(open), .unique = unique };
	const struct iovec v[] = { { (void *)&header, sizeof(header) }, { &open, sizeof(open) } };

	_Static_assert(sizeof(open.padding) == sizeof(f->memory.number), "it is the number's place since 6.9");
	open.padding = (uint32_t)f->memory.number;
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
		uvd_cuse_file_put(f);
	fuse_reply_none(req);
}

static void queues_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	uvd_cuse_operations.release(req, fi);
}

static void queues_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	uvd_cuse_operations.read(req, size, off, fi);
}

/* The position moves with each write(), and has no meaning: a piece of a split write() cannot be told by it. */
static void queues_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	uvd_cuse_operations.write(req, data, size, 0, fi);
}

static void queues_ioctl(fuse_req_t req, fuse_ino_t ino, int cmd, void *arg, struct fuse_file_info *fi,
			 unsigned int flags, const void *in, size_t in_size, size_t out_size)
{
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
