/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* null_client NODE: times calls on the device of null_cuse. */
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "clock.h"

static unsigned int null_write(void *arg, unsigned long count)
{
	char buf[24] = "";

	while (count--)
		if (write(*(int *)arg, buf, sizeof(buf)) != sizeof(buf))
			return 0;
	return 1;
}

/* The kernel copies a header to the server and back, as of each ioctl of verbs. */
static unsigned int null_ioctl(void *arg, unsigned long count)
{
	struct ib_uverbs_ioctl_hdr hdr = { 0 };

	while (count--)
		if (ioctl(*(int *)arg, RDMA_VERBS_IOCTL, &hdr))
			return 0;
	return 1;
}

static const struct bench all[] = {
	{ "null_write", null_write },
	{ "null_ioctl", null_ioctl },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0) {
		perror(argc == 2 ? argv[1] : "usage: null_client NODE");
		return 2;
	}
	return bench_serve(all, &fd);
}
