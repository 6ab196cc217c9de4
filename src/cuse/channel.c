/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* libfuse's session on a node's channel: one open of /dev/cuse, whose first request broker/channel.c has answered. */
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

/* libfuse would write to stderr, without the node's name. Its last message is kept for the caller's log line. */
static __thread char fuse_message[256];

static void keep_message(enum fuse_log_level level, const char *fmt, va_list ap)
{
	vsnprintf(fuse_message, sizeof(fuse_message), fmt, ap);
	fuse_message[strcspn(fuse_message, "\n")] = 0;
}

/* Set while libfuse answers CUSE_INIT: uvd_channel_make() has answered the kernel already, so libfuse's answer is dropped. */
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

/* Gives libfuse the CUSE_INIT request that has been answered: libfuse needs it to start the session. */
static void greet_libfuse(struct fuse_session *se)
{
	struct {
		struct fuse_in_header header;
		struct cuse_init_in init;
	} request = {
		.header = { .len = sizeof(request), .opcode = CUSE_INIT, .unique = 1 },
		.init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION },
	};
	const struct fuse_buf buf = { .mem = &request, .size = sizeof(request) };

	swallow = true;
	fuse_session_process_buf(se, &buf);
	swallow = false;
}

int uvd_cuse_channel_adopt(struct uvd_privilege *p, struct uvd_node *node, const struct cuse_lowlevel_ops *ops,
			   void *userdata, struct uvd_log *log, int fd, struct fuse_session **se)
{
	const struct fuse_custom_io io = { .writev = channel_writev, .read = channel_read };
	const char *info[] = { "DEVNAME=answered" };
	struct cuse_info ci = { .dev_info_argc = 1, .dev_info_argv = info };
	char *argv[] = { "uverbsd", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);

	fuse_set_log_func(keep_message);
	*se = cuse_lowlevel_new(&args, &ci, ops, userdata);
	fuse_opt_free_args(&args); /* libfuse has put a copy there */
	if (!*se || fuse_session_custom_io(*se, &io, fd)) {
		uvd_logf(log, UVD_ERR, "%s: no CUSE session: %s", node->path, fuse_message);
		if (*se)
			fuse_session_destroy(*se);
		*se = NULL;
		p->ops->end_node(p, node);
		close(fd);
		return -EIO;
	}
	greet_libfuse(*se);
	return 0;
}

void uvd_cuse_channel_close(struct uvd_privilege *p, struct uvd_node *node, struct fuse_session **se)
{
	p->ops->end_node(p, node);
	fuse_session_destroy(*se); /* no cuse_lowlevel_teardown(): no signal handlers are set here */
	*se = NULL;
}
