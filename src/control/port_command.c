/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control command that takes a port down or up. */
#include "control/control.h"
#include "core/core.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Splits the command into its words. Returns false if it is malformed. */
static bool port_command_parse(const char *command, char name[IBV_SYSFS_NAME_MAX], unsigned int *port, bool *up)
{
	char state[8], more;

	_Static_assert(IBV_SYSFS_NAME_MAX == 64, "the width below");
	if (sscanf(command, "port %63s %u %7s %c", name, port, state, &more) != 3)
		return false;
	*up = !strcmp(state, "up");
	return *up || !strcmp(state, "down");
}

static json_t *set_port(struct uvd_device *dev, unsigned int port, bool up)
{
	const char *state = up ? "up" : "down";
	int ret;

	if (port < 1 || port > dev->config.num_ports)
		return uvd_control_refuse("the device has no such port");
	if (dev->config.hca[0])
		return json_pack("{s:s++}", "error", "the ports of this device are those of its adapter ",
				 dev->config.hca, ": change them there");
	ret = uvd_device_set_port(dev, port, up);
	if (ret < 0)
		return json_pack("{s:s++}", "error", "cannot change the sysfs directory", ": ", uvd_errno_name(ret));
	return json_pack("{s:s, s:i, s:s, s:b}", "device", dev->config.ibdev, "port", (int)port, "state", state,
			 "changed", ret == 0);
}

json_t *uvd_control_port(const char *command, bool may_change, struct uvd_device *(*dev)(void *arg, unsigned int i),
			 void *arg)
{
	char name[IBV_SYSFS_NAME_MAX];
	struct uvd_device *d;
	unsigned int port;
	bool up;

	if (strncmp(command, "port", 4) || (command[4] && command[4] != ' '))
		return NULL;
	if (!port_command_parse(command, name, &port, &up))
		return uvd_control_refuse("usage: port DEVICE PORT up|down");
	if (!may_change)
		return uvd_control_refuse("only root and the user that serves the device may do that");
	for (unsigned int i = 0; (d = dev(arg, i)); i++)
		if (uvd_control_is_called(&d->config, name))
			return set_port(d, port, up);
	return uvd_control_refuse("there is no such device");
}
