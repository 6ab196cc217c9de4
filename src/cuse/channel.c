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

/* Gives libfuse the first request, that has been answered: libfuse needs it to start the session. */
static void greet_libfuse(struct fuse_session *se, bool is_node)
{
	struct {
		struct fuse_in_header header;
		union {
			struct cuse_init_in cuse;
			struct fuse_init_in fuse;
		} init;
	} request = {
		.header = { .len = sizeof(request), .opcode = is_node ? CUSE_INIT : FUSE_INIT, .unique = 1 },
	};
	const struct fuse_buf buf = { .mem = &request, .size = sizeof(request) };

	if (is_node)
		request.init.cuse =
			(struct cuse_init_in){ .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION };
	else
		request.init.fuse =
			(struct fuse_init_in){ .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION };
	swallow = true;
	fuse_session_process_buf(se, &buf);
	swallow = false;
}

static struct fuse_session *channel_session(struct uvd_cuse *c)
{
	const char *info[] = { "DEVNAME=answered" };
	struct cuse_info ci = { .dev_info_argc = 1, .dev_info_argv = info };
	char *argv[] = { "uverbsd", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	const struct fuse_lowlevel_ops *fuse = c->config.kind->fuse;
	struct fuse_session *se;

	fuse_set_log_func(keep_message);
	se = fuse ? fuse_session_new(&args, fuse, sizeof(*fuse), c)
		  : cuse_lowlevel_new(&args, &ci, &uvd_cuse_operations, c);
	fuse_opt_free_args(&args); /* libfuse has put a copy there */
	return se;
}

int uvd_cuse_channel_adopt(struct uvd_cuse *c, int fd)
{
	const struct fuse_custom_io io = { .writev = channel_writev, .read = channel_read };
	struct uvd_privilege *p = c->config.privilege;

	c->se = channel_session(c);
	if (!c->se || fuse_session_custom_io(c->se, &io, fd)) {
		uvd_logf(c->config.log, UVD_ERR, "%s: no session: %s", c->node.path, fuse_message);
		if (c->se)
			fuse_session_destroy(c->se);
		c->se = NULL;
		p->ops->end_node(p, &c->node);
		close(fd);
		return -EIO;
	}
	greet_libfuse(c->se, !c->config.kind->fuse);
	return 0;
}

void uvd_cuse_channel_close(struct uvd_cuse *c)
{
	struct uvd_privilege *p = c->config.privilege;

	p->ops->end_node(p, &c->node);
	fuse_session_destroy(c->se); /* no cuse_lowlevel_teardown(): no signal handlers are set here */
	c->se = NULL;
}
