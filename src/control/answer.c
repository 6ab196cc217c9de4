/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Helpers that the control commands share: they match a device's name and build answers. */
#include "control/control.h"
#include <stdio.h>
#include <string.h>
#include <uverbsd/config.h>

bool uvd_control_is_called(const struct uvd_device_config *config, const char *name)
{
	char node[32];

	snprintf(node, sizeof(node), "uverbs%d", config->number);
	return !strcmp(name, config->ibdev) || !strcmp(name, node);
}

json_t *uvd_control_refuse(const char *why)
{
	return json_pack("{s:s}", "error", why);
}

json_t *uvd_control_tell(const struct uvd_device_config *config)
{
	char node[32];

	snprintf(node, sizeof(node), "uverbs%d", config->number);
	return json_pack("{s:s, s:s}", "device", config->ibdev, "node", node);
}
