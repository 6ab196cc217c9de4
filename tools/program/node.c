/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "node.h"
#include "../tree/view.h"
#include "more.h"
#include "util/util.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Learns the calls of the device's plug-ins. What it does not tell, programs cannot make. */
static void program_learn(const char *who, const char *node)
{
	const int fd = open(node, O_RDWR | O_CLOEXEC);
	const int ret = fd < 0 ? 0 : uvd_program_more_of_node(who, node, fd);

	if (ret)
		fprintf(stderr, "%s: %s: cannot ask for the calls of plug-ins: %s\n", who, node, uvd_errno_name(ret));
	if (fd >= 0)
		close(fd);
}

struct uvd_prog_run *uvd_program_open(const char *who, const char *control, const char *device, char node[PATH_MAX])
{
	struct uvd_prog_run *run;

	if (device && strchr(device, '/'))
		snprintf(node, PATH_MAX, "%s", device);
	else if (uvd_node_find(who, control, device, node))
		return NULL;
	program_learn(who, node);
	run = uvd_prog_run_new(node, -1);
	if (!run)
		fprintf(stderr, "%s: %s: cannot open it, or it accepts no ioctl: %s\n", who, node,
			uvd_errno_name(errno));
	return run;
}

bool uvd_program_is_kernel(const char *node, uint16_t driver_id)
{
	struct uvd_tree_view view = { .who = "uverbsctl", .driver_id = driver_id };
	int fd = open(node, O_RDWR | O_CLOEXEC), ret = 0;

	if (fd >= 0) {
		ret = uvd_view_ask_file(&view, fd);
		close(fd);
	}
	uvd_view_free(&view);
	return ret == -EPROTONOSUPPORT;
}

bool uvd_program_list_read(struct uvd_prog_list *list, bool cross)
{
	FILE *in = fmemopen((void *)uvd_program_list, strlen(uvd_program_list), "r");
	bool ok = in && uvd_prog_list_read_file(list, in, "docs/abi-differences.md");

	if (in)
		fclose(in);
	if (ok && !cross)
		uvd_prog_list_keep_chosen(list);
	/* The transport decides which numbers new descriptors get. */
	return ok && uvd_prog_list_add(list, "| descriptors | * | fd *_fd_handle.data | * | * | | chosen |");
}
