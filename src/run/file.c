/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the last close is seen. inotify tells that some struct file of the memfd was closed, but not which: a client can
 * open it again through /proc/self/fd, and close that. So the struct file that the client was given holds a flock(), which
 * the kernel drops when its last fd and its last mapping are gone; once inotify has spoken, we try to take the lock.
 * (A client that unlocks it closes its own device.)
 *
 * What the client may do with the file besides: it can be mapped and its pages written, but not made longer or shorter
 * (sealed, so a mapping of ours never faults). It is in append mode, so a raw write() that no filter saw would make it
 * longer, and fails: no command is ever taken for data in silence.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account/account.h"
#include "run/file.h"
#include "util/util.h"

/* Sparse, and offsets need never be used twice. */
static const off_t FILE_SIZE = (off_t)1 << 40;

int uvd_run_files_init(struct uvd_run_files *files)
{
	memset(files, 0, sizeof(*files));
	pthread_mutex_init(&files->lock, NULL);
	uvd_cond_init(&files->settled);
	files->look = -1;
	files->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (files->inotify < 0)
		return -errno;
	files->look = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return files->look < 0 ? -errno : 0;
}

static struct uvd_run_file **bucket(struct uvd_run_files *files, uint64_t ino)
{
	return &files->hash[ino % UVD_RUN_FILE_HASH];
}

static void file_free(struct uvd_run_file *f)
{
	if (f->file)
		uvd_file_close(f->file);
	uvd_opener_drop(&f->opener);
	if (f->memfd >= 0)
		close(f->memfd);
	uvd_account_uncharge(f->account, UVD_RES_DESCRIPTORS, 1);
	uvd_account_put(f->account);
	free(f);
}

void uvd_run_file_put(struct uvd_run_file *file)
{
	if (atomic_fetch_sub(&file->refs, 1) == 1)
		file_free(file);
}

bool uvd_run_file_put_unless_last(struct uvd_run_file *file)
{
	int refs = atomic_load(&file->refs);

	while (refs > 1)
		if (atomic_compare_exchange_weak(&file->refs, &refs, refs - 1))
			return true;
	return false;
}

struct uvd_run_file *uvd_run_file_get(struct uvd_run_files *files, const struct uvd_run_inode *inode)
{
	struct uvd_run_file *f;

	uvd_lock(&files->lock);
	for (f = *bucket(files, inode->ino); f; f = f->next)
		if (f->inode.ino == inode->ino && f->inode.mnt_id == inode->mnt_id)
			break;
	if (f)
		atomic_fetch_add(&f->refs, 1);
	uvd_unlock(&files->lock);
	return f;
}

/* ---- which file is this? ----------------------------------------------------------------------------------------- */

static const char *field(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? p + strlen(name) : NULL;
}

int uvd_run_inode_read(int fdinfo, struct uvd_run_inode *inode)
{
	char text[256];
	const char *mnt, *ino;
	/* pread at 0 makes the kernel write the text anew, for the thread and the number that the file was opened for. */
	ssize_t n = pread(fdinfo, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = 0;
	mnt = field(text, "\nmnt_id:\t");
	ino = mnt ? field(mnt, "\nino:\t") : NULL;
	if (!ino)
		return -EBADF;
	inode->mnt_id = strtol(mnt, NULL, 10);
	inode->ino = strtoull(ino, NULL, 10);
	return 0;
}

int uvd_run_own_inode(int fd, struct uvd_run_inode *inode)
{
	char path[64];
	int info, err;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -errno;
	err = uvd_run_inode_read(info, inode);
	close(info);
	return err;
}

/* ---- memory that the client maps ---------------------------------------------------------------------------------- */

static int share_get(void *owner, size_t length, uint8_t **memory, uint64_t *offset)
{
	struct uvd_run_file *f = owner;
	uint64_t at = atomic_fetch_add(&f->next_offset, length);

	if (at > (uint64_t)FILE_SIZE - length)
		return -ENOMEM;
	*memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, f->memfd, (off_t)at);
	if (*memory == MAP_FAILED)
		return -ENOMEM;
	*offset = at;
	return 0;
}

/* The client's own mapping stays, and reads as zeros. */
static void share_put(void *owner, uint8_t *memory, size_t length, uint64_t offset)
{
	struct uvd_run_file *f = owner;

	munmap(memory, length);
	fallocate(f->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length);
}

static const struct uvd_share_ops share_ops = { .get = share_get, .put = share_put };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int make_memfd(struct uvd_run_file *f)
{
	char name[32];

	snprintf(name, sizeof(name), UVD_RUN_MEMFD_NAME "uverbs%u", f->number);
	f->memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f->memfd < 0)
		return -errno;
	if (ftruncate(f->memfd, FILE_SIZE) || fchmod(f->memfd, 0666) ||
	    fcntl(f->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	return uvd_run_own_inode(f->memfd, &f->inode);
}

/* The client's struct file. (inotify sees the closing of opened files only, not of those that memfd_create() made.) */
static int open_again(struct uvd_run_files *files, struct uvd_run_file *f, int flags)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->memfd);
	fd = open(path, f->mode | (flags & O_NONBLOCK) | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	f->watch = inotify_add_watch(files->inotify, path, IN_CLOSE);
	if (f->watch >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* The fd for the client, or a negative errno. */
static int file_attach(struct uvd_run_files *files, struct uvd_run_file *f, struct uvd_device *dev, struct uvd_caller *c,
		       int flags)
{
	int err = uvd_opener_take(&f->opener, c);

	if (err)
		return err;
	f->file = uvd_file_open(dev, c->account, &err);
	if (!f->file)
		return err;
	f->file->share = &share_ops;
	f->file->share_owner = f;
	return open_again(files, f, flags);
}

static int file_init(struct uvd_run_files *files, struct uvd_run_file *f, struct uvd_device *dev, struct uvd_caller *c,
		     int flags)
{
	int err = uvd_account_charge(c->account, UVD_RES_DESCRIPTORS, 1);

	if (err)
		return err;
	f->account = uvd_account_ref(c->account);
	err = make_memfd(f);
	return err ? err : file_attach(files, f, dev, c, flags);
}

int uvd_run_file_open(struct uvd_run_files *files, struct uvd_device *dev, struct uvd_caller *c, int flags, int *fd)
{
	struct uvd_run_file *f = calloc(1, sizeof(*f)), **list;

	if (!f)
		return -ENOMEM;
	f->memfd = f->watch = -1;
	f->opener = (struct uvd_opener){ .mmfd = -1, .pidfd = -1 };
	f->number = dev->config.number;
	f->mode = flags & O_ACCMODE;
	atomic_init(&f->refs, 1);
	atomic_init(&f->next_offset, 4096);
	*fd = file_init(files, f, dev, c, flags);
	if (*fd == -EMFILE && f->memfd >= 0 && !f->file) {
		/* Files that the tree has closed already may count still. */
		uvd_run_files_settle(files, 1000);
		uvd_opener_drop(&f->opener);
		*fd = file_attach(files, f, dev, c, flags);
	}
	if (*fd < 0) {
		file_free(f);
		return *fd;
	}
	uvd_lock(&files->lock);
	f->serial = ++files->serial;
	list = bucket(files, f->inode.ino);
	f->next = *list;
	*list = f;
	uvd_unlock(&files->lock);
	return 0;
}

/* ---- the last close ---------------------------------------------------------------------------------------------- */

static void mark_closing(struct uvd_run_files *files, int watch)
{
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++)
		for (struct uvd_run_file *f = files->hash[i]; f; f = f->next) {
			if (f->watch != watch)
				continue;
			if (!f->probe_ms) {
				f->next_closing = files->closing;
				files->closing = f;
			}
			f->probe_ms = 1;
		}
}

static void read_inotify(struct uvd_run_files *files)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(files->inotify, buf, sizeof(buf))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(buf + at);

			if (e->mask & IN_CLOSE)
				mark_closing(files, e->wd);
			at += sizeof(*e) + e->len;
		}
	}
}

static void unhash(struct uvd_run_files *files, struct uvd_run_file *f)
{
	struct uvd_run_file **p = bucket(files, f->inode.ino);

	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	inotify_rm_watch(files->inotify, f->watch);
}

/* Takes those that are gone for good from the tables. *wait: until the next look at the others. */
static struct uvd_run_file *reap(struct uvd_run_files *files, int *wait)
{
	struct uvd_run_file *gone = NULL, *f, **p = &files->closing;

	while ((f = *p)) {
		if (!flock(f->memfd, LOCK_EX | LOCK_NB)) {
			*p = f->next_closing;
			unhash(files, f);
			f->next_closing = gone;
			gone = f;
			continue;
		}
		/* The kernel speaks to inotify a moment before it drops the lock; or it was another struct file. */
		if (*wait < 0 || f->probe_ms < *wait)
			*wait = f->probe_ms;
		if (f->probe_ms < 1000)
			f->probe_ms *= 2;
		p = &f->next_closing;
	}
	return gone;
}

/* Files that are to be ended. */
struct ending {
	struct uvd_run_files *files;
	struct uvd_run_file *first;
};

static void end_files(struct ending ending)
{
	struct uvd_run_file *f, *next;

	for (f = ending.first; f; f = next) {
		next = f->next_closing;
		uvd_run_file_put(f);
	}
	uvd_lock(&ending.files->lock);
	if (!--ending.files->ending)
		pthread_cond_broadcast(&ending.files->settled);
	uvd_unlock(&ending.files->lock);
}

static void *ending_thread(void *arg)
{
	struct ending ending = *(struct ending *)arg;

	free(arg);
	end_files(ending);
	return NULL;
}

/* On a thread of their own: they may have to wait for somebody who is in the owner's memory, for as long as that is slow. */
static void end_all(struct uvd_run_files *files, struct uvd_run_file *first)
{
	struct ending *ending = malloc(sizeof(*ending));

	if (ending) {
		*ending = (struct ending){ files, first };
		if (!uvd_thread_start(NULL, 0, ending_thread, ending))
			return;
	}
	free(ending);
	end_files((struct ending){ files, first });
}

int uvd_run_files_closed(struct uvd_run_files *files)
{
	struct uvd_run_file *gone;
	int wait = -1;

	uvd_lock(&files->lock);
	read_inotify(files);
	gone = reap(files, &wait);
	files->ending += !!gone;
	uvd_unlock(&files->lock);
	if (gone)
		end_all(files, gone);
	return wait;
}

bool uvd_run_files_settle(struct uvd_run_files *files, unsigned int ms)
{
	const uint64_t end = uvd_now_ns() + ms * UINT64_C(1000000);
	bool in_time = true;

	/* What inotify told is read now, so that the loop would not hear of what is still to be looked at. */
	if (uvd_run_files_closed(files) >= 0)
		eventfd_write(files->look, 1);
	uvd_lock(&files->lock);
	while (files->ending && in_time)
		in_time = uvd_cond_wait_until(&files->settled, &files->lock, end);
	uvd_unlock(&files->lock);
	return in_time;
}

/*
 * The pages leave all mappings and the file at once, in whatever state their processes are (regression-05): a hole has none,
 * and is never beyond the end of the file.
 */
void uvd_run_files_zap(struct uvd_run_files *files, const struct uvd_device *dev)
{
	uvd_lock(&files->lock);
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++)
		for (struct uvd_run_file *f = files->hash[i]; f; f = f->next)
			if (f->file->dev == dev)
				fallocate(f->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, FILE_SIZE);
	uvd_unlock(&files->lock);
}

void uvd_run_files_fini(struct uvd_run_files *files)
{
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++) {
		struct uvd_run_file *f = files->hash[i], *next;

		for (; f; f = next) {
			next = f->next;
			file_free(f);
		}
	}
	if (files->inotify >= 0)
		close(files->inotify);
	if (files->look >= 0)
		close(files->look);
	pthread_cond_destroy(&files->settled);
	pthread_mutex_destroy(&files->lock);
}
