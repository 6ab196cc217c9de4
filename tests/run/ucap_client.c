/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ucap_client [CAPABILITY...]: opens the nodes of the User Capabilities ("/NAME": with O_PATH), gets a context of
 * uverbs0 with those that it could open, and takes port 1 down and up by the method that needs a capability. Prints a
 * line for each step: the errno's name, or 0. The port's state is read below $UCAP_SYSFS (default: /sys). The device is hfi1_0, with
 * $UCAP_RXE rxe0.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uverbsd/abi.h>

#define UVERBS_ATTR_GET_CONTEXT_FD_ARR 2

enum { MOST = 16 };

static const char *said(int err)
{
	return err ? strerrorname_np(err) : "0";
}

static bool is_rxe(void)
{
	return getenv("UCAP_RXE");
}

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[2];
};

static int issue(int fd, struct call *c, uint16_t object, uint16_t method, unsigned int num)
{
	c->hdr = (struct ib_uverbs_ioctl_hdr){
		.length = sizeof(c->hdr) + num * sizeof(c->attrs[0]),
		.object_id = object,
		.method_id = method,
		.num_attrs = num,
		.driver_id = is_rxe() ? RDMA_DRIVER_RXE : RDMA_DRIVER_HFI1,
	};
	return ioctl(fd, RDMA_VERBS_IOCTL, c) ? errno : 0;
}

static int get_context(int fd, const int32_t *ucaps, unsigned int num)
{
	uint64_t data = (uintptr_t)ucaps;
	struct call c;

	if (num <= 2)
		memcpy(&data, ucaps, sizeof(data));
	c.attrs[0] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_GET_CONTEXT_FD_ARR, .len = num * sizeof(*ucaps), .flags = 1, .data = data
	};
	return issue(fd, &c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, !!num);
}

static int set_port(int fd, bool up)
{
	struct call c = { .attrs = {
				  { UVERBSD_ATTR_PORT_SET_STATE_PORT, 8, .flags = 1, .data = 1 },
				  { UVERBSD_ATTR_PORT_SET_STATE_UP, 8, .flags = 1, .data = up },
			  } };

	return issue(fd, &c, UVERBSD_OBJECT_PORT, UVERBSD_METHOD_PORT_SET_STATE, 2);
}

static void print_state(void)
{
	const char *sysfs = getenv("UCAP_SYSFS");
	char line[32] = "?\n", path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/state", sysfs ? sysfs : "/sys",
		 is_rxe() ? "rxe0" : "hfi1_0");
	f = fopen(path, "re");
	if (f && !fgets(line, sizeof(line), f))
		strcpy(line, "?\n");
	if (f)
		fclose(f);
	printf("state %s", line);
}

int main(int argc, char **argv)
{
	int32_t ucaps[MOST] = { 0 };
	unsigned int num = 0;
	int fd, err;

	for (int i = 1; i < argc && num < MOST; i++) {
		char path[128];

		if (*argv[i] >= '0' && *argv[i] <= '9') {
			ucaps[num++] = atoi(argv[i]);
			continue;
		}
		snprintf(path, sizeof(path), "/dev/infiniband/%s", argv[i] + (*argv[i] == '/'));
		ucaps[num] = open(path, (*argv[i] == '/' ? O_PATH : O_RDONLY) | O_CLOEXEC);
		printf("open %s %s\n", argv[i], said(ucaps[num] < 0 ? errno : 0));
		/* The kernel's nodes have no operation but open(). A descriptor of O_PATH has none in any case. */
		if (ucaps[num] >= 0 && *argv[i] != '/' && (read(ucaps[num], path, 1) != -1 || errno != EINVAL))
			printf("read succeeds\n");
		num += ucaps[num] >= 0;
	}
	fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 1;
	err = get_context(fd, ucaps, num);
	printf("context %s\n", said(err));
	if (err)
		printf("context again %s\n", said(get_context(fd, ucaps, 0)));
	printf("down %s\n", said(set_port(fd, false)));
	print_state();
	printf("up %s\n", said(set_port(fd, true)));
	print_state();
	fflush(stdout);
	/* Lets a test inspect the process while it has the device open. */
	if (!isatty(STDIN_FILENO))
		(void)!read(STDIN_FILENO, &err, 1);
	printf("after %s\n", said(set_port(fd, true)));
	return 0;
}
