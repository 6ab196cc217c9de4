/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device that a test adds and removes: by uverbsctl, or by rdma(8) if the kernel serves the node. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "abi.h"

/* The path of uverbsctl: this program and it are in the same build folder. */
static const char *uverbsctl(void)
{
	static char path[PATH_MAX + 32];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);

	for (int up = 0; len > 0 && up < 3; up++)
		while (len > 0 && path[--len] != '/')
			;
	snprintf(path + len, sizeof(path) - len, "/tools/uverbsctl");
	return path;
}

/* Runs a command and stores the first line of its output. A failure ends the test. */
static void run(const char *command, char *line, int size)
{
	FILE *f = popen(command, "re");

	ck_assert_msg(f, "%s", command);
	if (!fgets(line, size, f))
		*line = 0;
	ck_assert_msg(pclose(f) == 0, "%s: failed", command);
}

static void kernel_plug_in(struct plug *plug)
{
	char command[512], line[8];

	snprintf(plug->ibdev, sizeof(plug->ibdev), "uvplug%d", getpid());
	snprintf(command, sizeof(command),
		 "ip link add %s type dummy && ip link set %s up && rdma link add %s type rxe netdev %s", plug->ibdev,
		 plug->ibdev, plug->ibdev, plug->ibdev);
	run(command, line, sizeof(line));
	snprintf(command, sizeof(command), "cd /sys/class/infiniband_verbs && dirname $(grep -lx %s */ibdev)",
		 plug->ibdev);
	run(command, plug->number, sizeof(plug->number));
}

static void our_plug_in(struct plug *plug)
{
	char command[PATH_MAX + 192], line[128];

	snprintf(command, sizeof(command), "%s device add --persona %s", uverbsctl(), target()->name);
	run(command, line, sizeof(line));
	ck_assert_int_eq(sscanf(line, "%31s %31s", plug->ibdev, plug->number), 2);
}

static void command_in(struct plug *plug)
{
	if (target()->where & ON_KERNEL)
		kernel_plug_in(plug);
	else
		our_plug_in(plug);
	plug->number[strcspn(plug->number, "\n")] = 0;
}

static void command_out_begin(struct plug *plug)
{
	char command[PATH_MAX + 128];

	plug->removal = fork();
	if (plug->removal)
		return;
	/* The removal must not keep this process's files open: a test may close them and wait for the removal. */
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	if (target()->where & ON_KERNEL)
		snprintf(command, sizeof(command), "rdma link delete %s && ip link delete %s", plug->ibdev,
			 plug->ibdev);
	else
		snprintf(command, sizeof(command), "%s device remove %s >/dev/null", uverbsctl(), plug->ibdev);
	_exit(system(command) ? 1 : 0);
}

static int command_out_end(struct plug *plug, int ms)
{
	int status;

	for (; ms > 0; ms -= 10) {
		if (waitpid(plug->removal, &status, WNOHANG) == plug->removal)
			return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
		usleep(10000);
	}
	return -ETIMEDOUT;
}

static const struct plug_ops commands = { .in = command_in,
					  .out_begin = command_out_begin,
					  .out_end = command_out_end };
const struct plug_ops *plug_ops = &commands;

void plug_in(struct plug *plug)
{
	plug_ops->in(plug);
	snprintf(plug->node, sizeof(plug->node), "/dev/infiniband/%s", plug->number);
	setenv("UVERBS_NODE", plug->node, 1); /* uv_open() */
}

void plug_out_begin(struct plug *plug)
{
	plug_ops->out_begin(plug);
}

int plug_out_end(struct plug *plug, int ms)
{
	return plug_ops->out_end(plug, ms);
}

void plug_out(struct plug *plug)
{
	plug_out_begin(plug);
	ck_assert_int_eq(plug_out_end(plug, 20000), 0);
}
