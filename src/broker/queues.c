/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/queues.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/privilege.h"
#include "util/util.h"

/* linux/fuse.h has these since 6.9. */
enum {
	QUEUES_INIT_EXT = 1 << 30, /* FUSE_INIT_EXT: there are flags2 */
	QUEUES_PASSTHROUGH = 1 << (37 - 32), /* FUSE_PASSTHROUGH, in flags2 */
};
struct queues_backing {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define QUEUES_BACKING_OPEN _IOW(229, 1, struct queues_backing)
#define QUEUES_BACKING_CLOSE _IOW(229, 2, uint32_t)

struct queues_init_in {
	uint32_t major, minor, max_readahead, flags, flags2, unused[11];
};
struct queues_init_out {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2, max_stack_depth, unused[6];
};

enum { QUEUES_MINOR = 40 /* the protocol's version that has passthrough */, QUEUES_WRITE = 128 << 10 };

void uvd_queue_files_init(struct uvd_queue_files *q)
{
	*q = (struct uvd_queue_files){ .channel = -1, .mount = -1, .inotify = -1, .bell = -1 };
}

/*
 * Nobody hears of a write() into this memory any more, so it fails with EPERM, as new mappings do that can be written. What is mapped stays as
 * it is.
 */
static void backing_end(int *memfd)
{
	if (*memfd < 0)
		return;
	fcntl(*memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	close(*memfd);
	*memfd = -1;
}

static void queue_files_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Mounts a file system of the kernel's nowhere, with no options. Returns its root or -1. */
static int queues_mount_plain(const char *type)
{
	int fs = syscall(SYS_fsopen, type, 1 /* FSOPEN_CLOEXEC */), mount = -1;

	if (fs < 0)
		return -1;
	if (!syscall(SYS_fsconfig, fs, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0))
		mount = syscall(SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, 0);
	close(fs);
	return mount;
}

/*
 * An engine process that is dead may be unable to exit, and has the channel open, too: its clients would wait for it. So this ends the
 * connection, which the kernel lists by the device number of its file system.
 */
static void queues_abort(dev_t st_dev)
{
	int control = queues_mount_plain("fusectl"), fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "%u/abort", minor(st_dev));
	if (control >= 0)
		fd = openat(control, path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "1", 1);
		close(fd);
	}
	queue_files_close(&control);
}

void uvd_queue_files_end(struct uvd_queue_files *q)
{
	if (q->st_dev)
		queues_abort(q->st_dev);
	for (unsigned int i = 0; i < q->num; i++)
		backing_end(&q->memfds[i]);
	queue_files_close(&q->mount);
	queue_files_close(&q->channel);
	queue_files_close(&q->inotify);
	queue_files_close(&q->bell);
	free(q->memfds);
	uvd_queue_files_init(q);
}

/* ---- the file system --------------------------------------------------------------------------------------------- */

/* Mounts the channel's file system nowhere. Its users are all clients, whose rights the engine process checks. */
static int queues_mount(int channel)
{
	const char *const strings[][2] = { { "rootmode", "40000" }, { "user_id", "0" }, { "group_id", "0" }, { NULL } };
	int fs = syscall(SYS_fsopen, "fuse", 1 /* FSOPEN_CLOEXEC */), mount, err = 0;
	char number[16];

	if (fs < 0)
		return -errno;
	snprintf(number, sizeof(number), "%d", channel);
	if (syscall(SYS_fsconfig, fs, 1 /* FSCONFIG_SET_STRING */, "fd", number, 0))
		err = -errno;
	for (unsigned int i = 0; strings[i][0] && !err; i++)
		if (syscall(SYS_fsconfig, fs, 1, strings[i][0], strings[i][1], 0))
			err = -errno;
	if (!err && (syscall(SYS_fsconfig, fs, 0 /* FSCONFIG_SET_FLAG */, "allow_other", NULL, 0) ||
		     syscall(SYS_fsconfig, fs, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0)))
		err = -errno;
	mount = err ? err : syscall(SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, 2 | 4 | 8 /* nosuid, nodev, noexec */);
	if (!err && mount < 0)
		mount = -errno;
	close(fs);
	return mount;
}

/* Answers INIT. Returns 0; -EOPNOTSUPP: the kernel offers no passthrough; or another negative errno. */
static int queues_greet(int channel)
{
	struct {
		struct fuse_in_header header;
		struct queues_init_in init;
		char rest[FUSE_MIN_READ_BUFFER];
	} in;
	struct queues_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = QUEUES_MINOR,
		.flags = QUEUES_INIT_EXT | FUSE_BIG_WRITES,
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = QUEUES_WRITE,
		.time_gran = 1,
		.flags2 = QUEUES_PASSTHROUGH,
		.max_stack_depth = 1,
	};
	struct fuse_out_header header = { .len = sizeof(header) + sizeof(init) };
	struct iovec v[] = { { &header, sizeof(header) }, { &init, sizeof(init) } };
	ssize_t n;

	memset(&in.init, 0, sizeof(in.init));
	do {
		n = read(channel, &in, sizeof(in));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)(sizeof(in.header) + 4 * sizeof(uint32_t)) || in.header.opcode != FUSE_INIT ||
	    in.init.major != FUSE_KERNEL_VERSION)
		return -EPROTO;
	if (!(in.init.flags & QUEUES_INIT_EXT) || !(in.init.flags2 & QUEUES_PASSTHROUGH))
		return -EOPNOTSUPP;
	header.unique = in.header.unique;
	return writev(channel, v, 2) == (ssize_t)header.len ? 0 : -errno;
}

static int queues_begin(struct uvd_queue_files *q)
{
	struct statx x;
	int err;

	q->channel = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (q->channel < 0)
		return -errno;
	q->mount = queues_mount(q->channel);
	if (q->mount < 0)
		return q->mount;
	err = queues_greet(q->channel);
	/* The root's attributes are not asked for: the server is not there yet. */
	if (!err && statx(q->mount, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x))
		err = -errno;
	if (!err)
		q->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	return err;
}

int uvd_queue_files_look(void)
{
	struct uvd_queue_files q;
	int err;

	uvd_queue_files_init(&q);
	err = queues_begin(&q);
	uvd_queue_files_end(&q);
	return err;
}

void uvd_queue_files_say(int err, struct uvd_log *log)
{
	uvd_logf(
		log, err == -EOPNOTSUPP ? UVD_INFO : UVD_WARN,
		"no mapped queues, so each post and poll is a call: %s; programs get them over CUSE with Linux 6.9 or later that has "
		"CONFIG_FUSE_PASSTHROUGH, and `uverbsctl run` has them everywhere",
		uvd_errno_name(err));
}

int uvd_queue_files_begin(struct uvd_queue_files *q, struct uvd_log *log)
{
	int err = q->channel >= 0 ? 0 : queues_begin(q);

	if (!err)
		return 0;
	uvd_queue_files_end(q);
	uvd_queue_files_say(err, log);
	return err;
}

/* ---- its files --------------------------------------------------------------------------------------------------- */

/* The file's end never moves, so nobody gets SIGBUS. No F_SEAL_SEAL: backing_end() adds one. */
static int backing_memfd(void)
{
	int fd = memfd_create("uverbsd:queues", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, UVD_BACKING_BYTES) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* The kernel gives the lowest free number, from 1. */
static int backing_note(struct uvd_queue_files *q, int number, int memfd)
{
	const unsigned int num = number + 1 > 2 * (int)q->num ? number + 1 : 2 * (int)q->num;
	int *more;

	if (number < 0 || number >= UVD_BACKINGS_MAX)
		return -ENFILE;
	if ((unsigned int)number >= q->num) {
		more = realloc(q->memfds, num * sizeof(*more));
		if (!more)
			return -ENOMEM;
		for (unsigned int i = q->num; i < num; i++)
			more[i] = -1;
		q->memfds = more;
		q->num = num;
	}
	q->memfds[number] = memfd;
	return number;
}

int uvd_queue_files_back(struct uvd_queue_files *q, int *memfd)
{
	struct queues_backing backing = { .fd = q->channel < 0 ? -EINVAL : backing_memfd() };
	int number, ret;
	uint32_t id;

	if (backing.fd < 0)
		return backing.fd;
	number = ioctl(q->channel, QUEUES_BACKING_OPEN, &backing);
	ret = number < 0 ? -errno : backing_note(q, number, backing.fd);
	if (number >= 0 && ret < 0) {
		id = number;
		ioctl(q->channel, QUEUES_BACKING_CLOSE, &id);
	}
	if (ret < 0)
		close(backing.fd);
	*memfd = backing.fd;
	return ret;
}

int uvd_queue_files_drop(struct uvd_queue_files *q, int64_t number)
{
	const uint32_t id = number;

	if (number < 0 || number >= q->num || q->memfds[number] < 0)
		return -EINVAL;
	ioctl(q->channel, QUEUES_BACKING_CLOSE, &id);
	backing_end(&q->memfds[number]);
	return 0;
}

int uvd_queue_files_open(int mount, uint64_t st_dev, int64_t name, int flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	struct statx x;
	char text[24];
	int fd;

	snprintf(text, sizeof(text), "%lld", (long long)name);
	fd = syscall(SYS_openat2, mount, text, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) && S_ISREG(x.stx_mode) &&
	    makedev(x.stx_dev_major, x.stx_dev_minor) == st_dev)
		return fd;
	close(fd);
	return -EPERM;
}

/* ---- write()s into their memory ---------------------------------------------------------------------------------- */

/* Opened anew: a descriptor that memfd_create() returns makes no events. */
static int queues_bell(void)
{
	int memfd = memfd_create("uverbsd-bell", MFD_CLOEXEC), fd;
	char path[32];

	if (memfd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	close(memfd);
	return fd;
}

static int queues_watch(struct uvd_queue_files *q, int fd)
{
	char path[32];
	int watch;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	watch = inotify_add_watch(q->inotify, path, IN_MODIFY);
	return watch < 0 ? -errno : watch;
}

int uvd_queue_files_ears(struct uvd_queue_files *q)
{
	int err;

	if (q->bell >= 0)
		return 0;
	q->inotify = inotify_init1(IN_CLOEXEC);
	if (q->inotify < 0)
		return -errno;
	q->bell = queues_bell();
	err = q->bell < 0 ? q->bell : queues_watch(q, q->bell);
	if (err >= 0)
		return 0;
	queue_files_close(&q->inotify);
	queue_files_close(&q->bell);
	return err;
}

int uvd_queue_files_watch(struct uvd_queue_files *q, int64_t number)
{
	if (q->inotify < 0 || number < 0 || number >= q->num || q->memfds[number] < 0)
		return -EINVAL;
	return queues_watch(q, q->memfds[number]);
}
