/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plug-in with a backend: one that only makes contexts. TAKEN: its name is one of uverbsd's. */
#include <uverbsd/plugin.h>

static int net_context(struct uvd_context *context, struct uvd_udata *udata)
{
	return 0;
}

static void net_context_end(struct uvd_context *context)
{
}

static const struct uvd_backend backend = {
	.name = TAKEN ? "soft" : "net",
	.size_context = sizeof(struct uvd_context),
	.query_device = uvd_config_query_device,
	.query_port = uvd_config_query_port,
	.query_gid = uvd_config_query_gid,
	.alloc_context = net_context,
	.dealloc_context = net_context_end,
};
static const struct uvd_backend *const backends[] = { &backend, NULL };

UVD_PLUGIN(.name = "net", .backends = backends);
