/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How we detect the last close. inotify reports that a struct file of the memfd was closed, but not which one: a client
 * can open the memfd again through /proc/self/fd, and close that. So the struct file that the client was given holds a
 * flock(), which the kernel drops when the last fd and the last mapping of it are gone. After an inotify event we try
 * to take this lock. (A client that unlocks it closes its own device.)
 *
 * What else the client can do with the file: it can map the file and write to its pages, but it cannot change the size,
 * which is sealed, so our own mappings never fault. If doorbells are calls the client's struct file is in append mode: a write() that
 * the filter did not trap would make the file longer, and fails, so no command is stored in the file as data unnoticed. Else it is at
 * the begin of the log.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account/account.h"
#include "cpu/cpu.h"
#include "run/file.h"
#include "util/util.h"

/*
 * Returns the size of new files, which are sparse and so large that no offset need be reused: less than UVD_DOORBELL_FILE only if
 * RLIMIT_FSIZE allows no more (check.c). Then there are no logs.
 */
static off_t run_files_size(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur >= (rlim_t)UVD_DOORBELL_FILE)
		return UVD_DOORBELL_FILE;
	return (off_t)r.rlim_cur & -(off_t)uvd_cpu_page_size();
}

int uvd_run_files_init(struct uvd_run_files *files)
{
	memset(files, 0, sizeof(*files));
	pthread_mutex_init(&files->lock, NULL);
	uvd_cond_init(&files->settled);
	files->size = run_files_size();
	files->look = -1;
	files->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (files->inotify < 0)
		return -errno;
	files->look = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return files->look < 0 ? -errno : 0;
}

uint64_t uvd_run_serial_new(struct uvd_run_files *files)
{
	return atomic_fetch_add(&files->serial, 1) + 1;
}

static struct uvd_run_file **run_files_bucket(struct uvd_run_files *files, uint64_t ino)
{
	return &files->hash[ino % UVD_RUN_FILE_HASH];
}

static void run_file_free(struct uvd_run_file *f)
{
	uvd_doorbell_log_end(f->log);
	if (f->file)
		uvd_file_close(f->file);
	uvd_opener_drop(&f->opener.who);
	if (f->memfd >= 0)
		close(f->memfd);
	uvd_account_uncharge(f->account, UVD_RES_DESCRIPTORS, 1);
	uvd_account_put(f->account);
	free(f);
}

void uvd_run_file_put(struct uvd_run_file *file)
{
	if (atomic_fetch_sub(&file->refs, 1) == 1)
		run_file_free(file);
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
	for (f = *run_files_bucket(files, inode->ino); f; f = f->next)
		if (uvd_run_inode_equal(&f->inode, inode))
			break;
	if (f)
		atomic_fetch_add(&f->refs, 1);
	uvd_unlock(&files->lock);
	return f;
}

bool uvd_run_file_is_linked(int dir, const char *name)
{
	static const char memfd[] = "/memfd:" UVD_RUN_MEMFD_NAME;
	char target[64];
	ssize_t n;

	errno = 0;
	n = readlinkat(dir, name, target, sizeof(target));
	return n >= (ssize_t)strlen(memfd) && !strncmp(target, memfd, strlen(memfd));
}

/* ---- the inode of an fd ------------------------------------------------------------------------------------------ */

static const char *fdinfo_field(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? p + strlen(name) : NULL;
}

enum { FDINFO_TEXT = 256 }; /* what all kinds of files have comes first */

/* pread() at 0 makes the kernel generate the text again, for the thread and fd that it was opened for. */
static int fdinfo_read(int fdinfo, char text[FDINFO_TEXT])
{
	ssize_t n = pread(fdinfo, text, FDINFO_TEXT - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return n < 0 ? -errno : 0;
}

int uvd_run_flags_read(int fdinfo, unsigned int *flags)
{
	char text[FDINFO_TEXT];
	int err = fdinfo_read(fdinfo, text);
	const char *octal = err ? NULL : fdinfo_field(text, "\nflags:\t");

	if (!octal)
		return err ? err : -EBADF;
	*flags = strtoul(octal, NULL, 8);
	return 0;
}

int uvd_run_inode_read(int fdinfo, struct uvd_run_inode *inode)
{
	char text[FDINFO_TEXT];
	const char *mnt, *ino;
	int err = fdinfo_read(fdinfo, text);

	if (err)
		return err;
	mnt = fdinfo_field(text, "\nmnt_id:\t");
	ino = mnt ? fdinfo_field(mnt, "\nino:\t") : NULL;
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

	const uint64_t end = f->log ? UVD_DOORBELL_QUEUES : f->size;

	if (length > end || at > end - length)
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
	if (ftruncate(f->memfd, f->size) || fchmod(f->memfd, 0666) ||
	    fcntl(f->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	return uvd_run_own_inode(f->memfd, &f->inode);
}

/*
 * Opens the client's struct file and locks it. (inotify reports closes only of files that were opened, not of those
 * that memfd_create() made.) Returns an fd or a negative errno.
 */
static int run_file_reopen(struct uvd_run_files *files, struct uvd_run_file *f, int flags)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->memfd);
	fd = open(path, f->mode | (flags & O_NONBLOCK) | (f->log ? 0 : O_APPEND) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (f->log)
		lseek(fd, UVD_DOORBELL_LOG, SEEK_SET);
	f->watch = inotify_add_watch(files->inotify, path, IN_CLOSE);
	if (f->watch >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Returns why the doorbells of this client on this file must be calls, or NULL. */
static const char *run_file_needs_calls(const struct uvd_run_file *f, struct uvd_caller *c)
{
	uint64_t most;

	if (f->size < UVD_DOORBELL_FILE)
		return "RLIMIT_FSIZE of the run is finite";
	if (f->mode != O_RDWR)
		return "it is not open for reading and writing";
	/* The kernel would end a process by SIGXFSZ that writes beyond its limit. */
	if (uvd_caller_file_size(c, &most) || most != RLIM_INFINITY)
		return "RLIMIT_FSIZE of the process is finite";
	return uvd_doorbell_refusal(f->file);
}

static void run_file_begin_log(struct uvd_run_file *f, struct uvd_doorbells *doorbells, struct uvd_caller *c)
{
	const char *why = run_file_needs_calls(f, c);
	int err = why ? 0 : uvd_doorbell_log_new(doorbells, f->file, f->memfd, -1, c, &f->log);

	if (err)
		why = uvd_errno_name(err);
	if (why)
		uvd_logf(f->file->dev->engine->log, UVD_DEBUG, "uverbs%u: doorbells of process %d are calls: %s",
			 f->number, (int)f->opener.who.tgid, why);
}

/* Returns the fd for the client, or a negative errno. */
static int file_attach(struct uvd_run_files *files, struct uvd_run_file *f, struct uvd_doorbells *doorbells,
		       struct uvd_device *dev, struct uvd_caller *c, int flags)
{
	int err = uvd_opener_take(&f->opener.who, c);

	if (err)
		return err;
	f->file = uvd_file_open(dev, c->account, &err);
	if (!f->file)
		return err;
	atomic_store_explicit(&f->file->watched.opened_by, f->opener.who.tgid, memory_order_relaxed);
	f->file->watched.privileged = f->opener.who.privileged;
	f->file->share = &share_ops;
	f->file->share_owner = f;
	if (doorbells)
		run_file_begin_log(f, doorbells, c);
	return run_file_reopen(files, f, flags);
}

/* If it fails it may be called again. */
static int file_init(struct uvd_run_files *files, struct uvd_run_file *f, struct uvd_doorbells *doorbells,
		     struct uvd_device *dev, struct uvd_caller *c, int flags)
{
	int err = 0;

	if (!f->account) {
		err = uvd_account_charge(c->account, UVD_RES_DESCRIPTORS, 1);
		if (err)
			return err;
		f->account = uvd_account_ref(c->account);
	}
	if (f->memfd < 0)
		err = make_memfd(f);
	return err ? err : file_attach(files, f, doorbells, dev, c, flags);
}

/*
 * The scheduler groups processes by session. In a session of its own the engine has the same right to the CPUs as all programs of the
 * terminal together, however many of them compute. A client that waits for an answer gives its CPU to the engine anyway, and the two context
 * switches of a call take a sixth longer between groups. So this is for engines that have a client that does not wait.
 */
static void run_files_own_session(void)
{
	/* The leader of a group cannot begin a session: it joins the guardian's group before. */
	if (!setpgid(0, getpgid(getppid())))
		setsid();
}

int uvd_run_file_open(struct uvd_run_files *files, struct uvd_doorbells *doorbells, struct uvd_device *dev,
		      struct uvd_caller *c, int flags, int *fd, bool *direct)
{
	struct uvd_run_file *f = calloc(1, sizeof(*f)), **list;

	if (!f)
		return -ENOMEM;
	f->memfd = f->watch = -1;
	f->opener.who = (struct uvd_opener){ .mmfd = -1, .pidfd = -1 };
	f->number = dev->config.number;
	f->size = files->size;
	f->mode = flags & O_ACCMODE;
	atomic_init(&f->refs, 1);
	atomic_init(&f->next_offset, uvd_cpu_page_size());
	*fd = file_init(files, f, doorbells, dev, c, flags);
	if (*fd == -EMFILE && !f->file) {
		/* Files that clients have closed may still be charged: wait for them, and try once more. */
		uvd_run_files_settle(files, 1000);
		uvd_opener_drop(&f->opener.who);
		*fd = file_init(files, f, doorbells, dev, c, flags);
	}
	if (*fd < 0) {
		run_file_free(f);
		return *fd;
	}
	*direct = f->log;
	if (f->log && !atomic_exchange(&files->has_logs, true))
		run_files_own_session();
	f->opener.serial = uvd_run_serial_new(files);
	uvd_lock(&files->lock);
	list = run_files_bucket(files, f->inode.ino);
	f->next = *list;
	*list = f;
	uvd_unlock(&files->lock);
	return 0;
}

/* ---- the last close ---------------------------------------------------------------------------------------------- */

/* watch: -1 for all files */
static void mark_closing(struct uvd_run_files *files, int watch)
{
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++)
		for (struct uvd_run_file *f = files->hash[i]; f; f = f->next) {
			if (watch >= 0 && f->watch != watch)
				continue;
			if (!f->probe_ms) {
				f->next_closing = files->closing;
				files->closing = f;
			}
			f->probe_ms = 1;
		}
}

/*
 * Clients that open their files again and close these make events without end: so it reads only so many, and the caller
 * finds the others at its next poll(). If more came than the kernel keeps, any file may have been closed.
 */
static void read_inotify(struct uvd_run_files *files)
{
	enum { MOST_READS = 16 };
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	int last = -1;
	ssize_t n;

	for (int i = 0; i < MOST_READS && (n = read(files->inotify, buf, sizeof(buf))) > 0; i++) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(buf + at);

			if (e->mask & IN_Q_OVERFLOW)
				mark_closing(files, last = -1);
			else if (e->mask & IN_CLOSE && e->wd != last)
				mark_closing(files, last = e->wd);
			at += sizeof(*e) + e->len;
		}
	}
}

static void run_files_unhash(struct uvd_run_files *files, struct uvd_run_file *f)
{
	struct uvd_run_file **p = run_files_bucket(files, f->inode.ino);

	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	inotify_rm_watch(files->inotify, f->watch);
}

/*
 * Takes files that were closed for the last time from the table and from the list `closing`, and returns them. Lowers
 * *wait to the ms until the next look at the others; -1: no limit. Caller holds files->lock.
 */
static struct uvd_run_file *run_files_reap(struct uvd_run_files *files, int *wait)
{
	struct uvd_run_file *gone = NULL, *f, **p = &files->closing;

	while ((f = *p)) {
		if (!flock(f->memfd, LOCK_EX | LOCK_NB)) {
			*p = f->next_closing;
			run_files_unhash(files, f);
			f->next_closing = gone;
			gone = f;
			continue;
		}
		/* inotify reports a close just before the kernel drops the lock. Or another struct file was closed. */
		if (*wait < 0 || f->probe_ms < *wait)
			*wait = f->probe_ms;
		if (f->probe_ms < 1000)
			f->probe_ms *= 2;
		p = &f->next_closing;
	}
	return gone;
}

/* A list of files to close. */
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

/*
 * Closes files on a new thread: a close can wait for a thread that is in the client's memory, for as long as that is
 * slow.
 */
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
	gone = run_files_reap(files, &wait);
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

	/* This call has consumed the inotify events. If files are left to look at, tell the main loop by `look`. */
	if (uvd_run_files_closed(files) >= 0)
		eventfd_write(files->look, 1);
	uvd_lock(&files->lock);
	while (files->ending && in_time)
		in_time = uvd_cond_wait_until(&files->settled, &files->lock, end);
	uvd_unlock(&files->lock);
	return in_time;
}

/*
 * A hole removes the pages from the file and from all mappings at once, whatever state the clients' processes are in
 * (regression-05). An access to a hole reads zeros: it is not beyond the end of the file, so there is no SIGBUS.
 */
void uvd_run_files_zap(struct uvd_run_files *files, const struct uvd_device *dev)
{
	uvd_lock(&files->lock);
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++)
		for (struct uvd_run_file *f = files->hash[i]; f; f = f->next)
			if (f->file->dev == dev)
				fallocate(f->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					  f->log ? UVD_DOORBELL_QUEUES : f->size);
	uvd_unlock(&files->lock);
}

void uvd_run_files_fini(struct uvd_run_files *files)
{
	for (int i = 0; i < UVD_RUN_FILE_HASH; i++) {
		struct uvd_run_file *f = files->hash[i], *next;

		for (; f; f = next) {
			next = f->next;
			run_file_free(f);
		}
	}
	if (files->inotify >= 0)
		close(files->inotify);
	if (files->look >= 0)
		close(files->look);
	pthread_cond_destroy(&files->settled);
	pthread_mutex_destroy(&files->lock);
}
