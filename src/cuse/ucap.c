/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "cuse/internal.h"
#include "util/util.h"

enum { UCAP_STACK = 256 << 10 };

struct uvd_cuse_ucap {
	struct uvd_node node;
	struct fuse_session *se;
	struct uvd_log *log;
	struct uvd_privilege *privilege;
	int end; /* eventfd: tells the thread to end */
	pthread_t thread;
};

/* ---- operations: as on the kernel's node, only open() succeeds --------------------------------------------------- */

static void ucap_open(fuse_req_t req, struct fuse_file_info *fi)
{
	fi->direct_io = 1;
	fi->nonseekable = 1;
	fuse_reply_open(req, fi);
}

static void ucap_read(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EINVAL);
}

static void ucap_write(fuse_req_t req, const char *data, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EINVAL);
}

static void ucap_ioctl(fuse_req_t req, int cmd, void *arg, struct fuse_file_info *fi, unsigned int flags,
		       const void *in, size_t in_size, size_t out_size)
{
	fuse_reply_err(req, ENOTTY);
}

static const struct cuse_lowlevel_ops operations = {
	.open = ucap_open,
	.read = ucap_read,
	.write = ucap_write,
	.ioctl = ucap_ioctl,
};

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void *ucap_node_serve(void *arg)
{
	struct uvd_cuse_ucap *u = arg;
	struct pollfd p[] = { { .fd = fuse_session_fd(u->se), .events = POLLIN }, { .fd = u->end, .events = POLLIN } };
	struct fuse_buf buf = { 0 };
	int n;

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents)
			break;
		n = fuse_session_receive_buf(u->se, &buf);
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0) {
			uvd_logf(u->log, UVD_WARN, "%s was aborted from outside", u->node.path);
			break;
		}
		fuse_session_process_buf(u->se, &buf);
	}
	free(buf.mem);
	return NULL;
}

static int ucap_node_start(struct uvd_cuse_ucap *u)
{
	int err;

	u->end = eventfd(0, EFD_CLOEXEC);
	if (u->end < 0)
		return -errno;
	err = uvd_thread_start(&u->thread, UCAP_STACK, ucap_node_serve, u);
	if (err)
		close(u->end);
	return err;
}

/* ---- creation and end -------------------------------------------------------------------------------------------- */

static int ucap_node_make(struct uvd_cuse_ucap *u, const char *name)
{
	int fd, err = u->privilege->ops->make_ucap(u->privilege, name, &u->node, &fd);

	return err ? err : uvd_cuse_channel_adopt(u->privilege, &u->node, &operations, u, u->log, fd, &u->se);
}

struct uvd_cuse_ucap *uvd_cuse_ucap_new(const char *name, struct uvd_privilege *privilege, struct uvd_log *log,
					int *err)
{
	struct uvd_cuse_ucap *u = calloc(1, sizeof(*u));

	if (!u) {
		*err = -ENOMEM;
		return NULL;
	}
	u->log = log;
	u->privilege = privilege;
	*err = ucap_node_make(u, name);
	if (*err) {
		free(u);
		return NULL;
	}
	*err = ucap_node_start(u);
	if (!*err)
		return u;
	uvd_cuse_channel_close(u->privilege, &u->node, &u->se);
	free(u);
	return NULL;
}

dev_t uvd_cuse_ucap_rdev(const struct uvd_cuse_ucap *u)
{
	return u->node.rdev;
}

void uvd_cuse_ucap_free(struct uvd_cuse_ucap *u)
{
	const uint64_t one = 1;

	(void)!write(u->end, &one, sizeof(one));
	pthread_join(u->thread, NULL);
	close(u->end);
	uvd_cuse_channel_close(u->privilege, &u->node, &u->se);
	free(u);
}
