/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* In the place of the backend `verbs` in a static uverbsctl: the providers of libibverbs are shared objects. */
#include <errno.h>
#include <uverbsd/backend.h>
#include "backends/backends.h"

static int none_open(struct uvd_ibdev *dev)
{
	uvd_logf(dev->log, UVD_ERR,
		 "device %s: --backend verbs is not built in: this program is static, take one that is not",
		 dev->config.ibdev);
	return -EOPNOTSUPP;
}

/* No device is open, so nobody calls the rest: the core requires that a backend has it. */
static void none_close(struct uvd_ibdev *dev)
{
}

static int none_alloc_context(struct uvd_context *context, struct uvd_udata *udata)
{
	return -EOPNOTSUPP;
}

static void none_dealloc_context(struct uvd_context *context)
{
}

const struct uvd_backend uvd_backend_verbs = {
	.name = "verbs",
	.size_context = sizeof(struct uvd_context),
	.open = none_open,
	.close = none_close,
	.query_device = uvd_config_query_device,
	.query_port = uvd_config_query_port,
	.query_gid = uvd_config_query_gid,
	.alloc_context = none_alloc_context,
	.dealloc_context = none_dealloc_context,
};
