/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker answers CUSE_INIT itself: the process that answers it chooses the node's name and number. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/node.h"
#include "broker/serve.h"
#include "util/util.h"

enum { MOST = 128 << 10 /* bytes of a read or write, libfuse's value */, ROOM = FUSE_MIN_READ_BUFFER };

static int greet_kernel(int fd, const struct uvd_node *node)
{
	struct {
		struct fuse_in_header header;
		struct cuse_init_in init;
		char rest[ROOM];
	} in;
	/* No CUSE_UNRESTRICTED_IOCTL: whoever answers the channel could read and write any memory of the caller of an ioctl(). */
	struct cuse_init_out init = { .major = FUSE_KERNEL_VERSION, .max_read = MOST, .max_write = MOST };
	struct fuse_out_header header = { 0 };
	char info[sizeof(node->name) + 16];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct iovec v[3];
	ssize_t n;
	int len;

	do {
		n = read(fd, &in, sizeof(in));
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)(sizeof(in.header) + sizeof(in.init)) || in.header.opcode != CUSE_INIT ||
	    in.init.major != FUSE_KERNEL_VERSION)
		return n < 0 ? -errno : -EPROTO;
	init.minor = in.init.minor < FUSE_KERNEL_MINOR_VERSION ? in.init.minor : FUSE_KERNEL_MINOR_VERSION;
	len = snprintf(info, sizeof(info), "DEVNAME=%s", node->name) + 1;
	v[0] = (struct iovec){ &header, sizeof(header) };
	v[1] = (struct iovec){ &init, sizeof(init) };
	v[2] = (struct iovec){ info, len };
	header.unique = in.header.unique;
	header.len = sizeof(header) + sizeof(init) + len;
	if (writev(fd, v, 3) != (ssize_t)header.len)
		return errno == ENODEV ? -EEXIST : -errno;
	return poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP) ? -EEXIST : 0;
}

int uvd_channel_make(struct uvd_node *node, struct uvd_log *log)
{
	int fd = open("/dev/cuse", O_RDWR | O_CLOEXEC), err;

	if (fd < 0) {
		err = -errno;
		uvd_logf(log, UVD_ERR,
			 "/dev/cuse: %s (it needs root, and `modprobe cuse`; `uverbsctl run` needs neither)",
			 uvd_errno_name(err));
		return err;
	}
	err = greet_kernel(fd, node);
	if (err && err != -EEXIST)
		uvd_logf(log, UVD_ERR, "%s: no CUSE session: %s", node->path, uvd_errno_name(err));
	if (!err)
		err = uvd_node_verify(node, log);
	if (err)
		close(fd);
	return err ? err : fd;
}
