/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A node's channel to the kernel: one open of /dev/cuse. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "cuse/internal.h"

enum { MOST_LEFT = 32 /* interrupts in libfuse at a session's end */ };

/* The session's first request is the kernel's greeting: when it is answered the device is there, or the session over. */
static int greet(struct fuse_session *se)
{
	struct fuse_buf buf = { 0 };
	struct pollfd p = { .fd = fuse_session_fd(se), .events = POLLIN };
	int n;

	do {
		n = fuse_session_receive_buf(se, &buf);
	} while (n == -EINTR);
	if (n > 0)
		fuse_session_process_buf(se, &buf);
	free(buf.mem);
	if (n <= 0)
		return n ? n : -EIO;
	return poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP) ? -EEXIST : 0;
}

/* libfuse writes to stderr, and without telling for what. Kept until somebody knows whether it matters. */
static __thread char fuse_message[256];

static void keep_message(enum fuse_log_level level, const char *fmt, va_list ap)
{
	vsnprintf(fuse_message, sizeof(fuse_message), fmt, ap);
	fuse_message[strcspn(fuse_message, "\n")] = 0;
}

int uvd_cuse_channel_open(struct uvd_node *node, const struct cuse_lowlevel_ops *ops, void *userdata,
			  struct uvd_log *log, struct fuse_session **se)
{
	char device[sizeof(node->name) + 16];
	const char *info[] = { device };
	/* Unrestricted: the argument is the client's pointer, and commands need not tell sizes in their number. */
	struct cuse_info ci = { .dev_info_argc = 1, .dev_info_argv = info, .flags = CUSE_UNRESTRICTED_IOCTL };
	char *argv[] = { "uverbsd", "-f", NULL };
	int multithreaded, err;

	fuse_set_log_func(keep_message);
	snprintf(device, sizeof(device), "DEVNAME=%s", node->name);
	*se = cuse_lowlevel_setup(2, argv, &ci, ops, &multithreaded, userdata);
	if (!*se) {
		uvd_logf(log, UVD_ERR, "%s: no CUSE session: %s", node->path, fuse_message);
		return -EIO;
	}
	fcntl(fuse_session_fd(*se), F_SETFD, FD_CLOEXEC);
	err = greet(*se);
	if (!err)
		err = uvd_node_verify(node, log);
	if (err)
		uvd_cuse_channel_close(node, se);
	return err;
}

/* ---- a channel that the broker has made ---------------------------------------------------------------------------- */

/* While libfuse is greeted: the kernel has had its answer from the broker already. */
static __thread bool swallow;

static ssize_t channel_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	ssize_t n = 0;

	if (!swallow)
		return writev(fd, iov, count);
	for (int i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

static ssize_t channel_read(int fd, void *buf, size_t size, void *userdata)
{
	return read(fd, buf, size);
}

/* libfuse learns of the session by the request that the broker has answered in its place. */
static void greet_libfuse(struct fuse_session *se)
{
	struct {
		struct fuse_in_header header;
		struct cuse_init_in init;
	} request = {
		.header = { .len = sizeof(request), .opcode = CUSE_INIT, .unique = 1 },
		.init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .flags = CUSE_UNRESTRICTED_IOCTL },
	};
	const struct fuse_buf buf = { .mem = &request, .size = sizeof(request) };

	swallow = true;
	fuse_session_process_buf(se, &buf);
	swallow = false;
}

int uvd_cuse_channel_adopt(struct uvd_node *node, const struct cuse_lowlevel_ops *ops, void *userdata, struct uvd_log *log, int fd,
			   struct fuse_session **se)
{
	const struct fuse_custom_io io = { .writev = channel_writev, .read = channel_read };
	const char *info[] = { "DEVNAME=the broker's" };
	struct cuse_info ci = { .dev_info_argc = 1, .dev_info_argv = info, .flags = CUSE_UNRESTRICTED_IOCTL };
	char *argv[] = { "uverbsd", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);

	fuse_set_log_func(keep_message);
	node->brokers = true;
	*se = cuse_lowlevel_new(&args, &ci, ops, userdata);
	if (!*se || fuse_session_custom_io(*se, &io, fd)) {
		uvd_logf(log, UVD_ERR, "%s: no CUSE session: %s", node->path, fuse_message);
		if (*se)
			fuse_session_destroy(*se);
		*se = NULL;
		close(fd);
		return -EIO;
	}
	greet_libfuse(*se);
	return 0;
}

/*
 * libfuse keeps an interrupt that comes after its request was answered until the next request, and forgets it when the
 * session ends. So there is a next one: of a kind that we do not have, which is refused after the look at the
 * interrupts. The kernel takes the refusal for one of a request that is gone. (A device's workers hand
 * libfuse none; the thread of a User Capability's node does.)
 */
static void forget_interrupts(struct fuse_session *se)
{
	struct {
		struct fuse_in_header header;
		struct fuse_flush_in flush;
	} request = { .header = { .len = sizeof(request), .opcode = FUSE_FLUSH, .unique = UINT64_MAX - 1 } };
	const struct fuse_buf buf = { .mem = &request, .size = sizeof(request) };

	for (int i = 0; i < MOST_LEFT; i++)
		fuse_session_process_buf(se, &buf);
}

void uvd_cuse_channel_close(struct uvd_node *node, struct fuse_session **se)
{
	if (!node->brokers)
		uvd_node_remove(node);
	forget_interrupts(*se);
	if (node->brokers)
		fuse_session_destroy(*se); /* libfuse has no signal handlers here to take back */
	else
		cuse_lowlevel_teardown(*se);
	*se = NULL;
}
