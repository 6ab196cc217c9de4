/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * null_cuse NAME: a CUSE device that answers every write() and ioctl() at once. Its calls cost the minimum of any CUSE
 * device. One thread reads the channel. The node is restricted, as uverbsd's nodes are: the kernel copies what an ioctl's
 * number says, and a server cannot ask for other memory of its callers.
 */
#define FUSE_USE_VERSION 31
#include <cuse_lowlevel.h>
#include <fuse_lowlevel.h>
#include <stdio.h>

static void null_open(fuse_req_t req, struct fuse_file_info *fi)
{
	fi->direct_io = 1;
	fi->nonseekable = 1;
	fuse_reply_open(req, fi);
}

static void null_release(fuse_req_t req, struct fuse_file_info *fi)
{
	fuse_reply_err(req, 0);
}

static void null_write(fuse_req_t req, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_write(req, size);
}

static void null_ioctl(fuse_req_t req, int cmd, void *arg, struct fuse_file_info *fi, unsigned int flags,
		       const void *in, size_t in_size, size_t out_size)
{
	fuse_reply_ioctl(req, 0, NULL, 0);
}

static const struct cuse_lowlevel_ops ops = {
	.open = null_open,
	.release = null_release,
	.write = null_write,
	.ioctl = null_ioctl,
};

int main(int argc, char **argv)
{
	char devname[128];
	const char *info[] = { devname };
	struct cuse_info ci = { .dev_info_argc = 1, .dev_info_argv = info };
	char *fuse_argv[] = { argv[0], "-f", "-s", NULL };

	if (argc != 2) {
		fprintf(stderr, "usage: %s NAME\n", argv[0]);
		return 2;
	}
	snprintf(devname, sizeof(devname), "DEVNAME=%s", argv[1]);
	return cuse_lowlevel_main(3, fuse_argv, &ci, &ops, NULL);
}
